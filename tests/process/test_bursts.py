"""Datagrams that one call of the system brings, over real sockets: traced, recorded, replayed."""

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.patience import LIMIT_S, STORY_S
from tests.process.cluster import delivers

import roundelay
from roundelay.check import check
from roundelay.check.text import table
from roundelay.links.engine import LinkEngine
from roundelay.protocols.fc.member import Member as FcMember
from roundelay.protocols.st.member import StMember
from roundelay.runtime.collect import collect, quiet_end
from roundelay.runtime.input_log import Input, read, records
from roundelay.runtime.replay import replay
from roundelay.trace import reader
from roundelay.transport.address import free_addresses

pytestmark = pytest.mark.process

NODES = "abc"
MESSAGES = 600


async def load(directory: Path, engine: str) -> dict[str, list[tuple[str, bytes]]]:
    """Every node sends many messages in packets of one datagram; what each of them delivered."""
    where = free_addresses(NODES)
    log: dict[str, list[tuple[str, bytes]]] = {node: [] for node in NODES}

    async def read_all(node: str, group: roundelay.Group) -> None:
        async for event in group:
            if isinstance(event, roundelay.Message):
                log[node].append((event.sender, event.payload))
                if len(log[node]) == MESSAGES * len(NODES):
                    return

    async with asyncio.timeout(STORY_S), AsyncExitStack() as stack:
        groups = {}
        for node in NODES:
            group = roundelay.join(
                "g",
                node=node,
                peers=where,
                engine=engine,
                timeout_s=2.0,
                datagram_bytes=1400,
                trace=directory / "traces",
                record=directory / "records",
            )
            groups[node] = await stack.enter_async_context(group)
        for group in groups.values():
            await group.wait_for(timeout_s=LIMIT_S)
        for i in range(MESSAGES):
            for node, group in groups.items():
                group.send_nowait(f"{node}{i}".ljust(100).encode())
        await asyncio.gather(*(read_all(node, group) for node, group in groups.items()))
        while not all(map(settled, groups.values())):  # noqa: ASYNC110  # Nobody tells of it.
            await asyncio.sleep(0.01)
    return log


def settled(group: roundelay.Group) -> bool:
    """Whether this node knows that all have everything."""
    assert group._node is not None
    core: Any = group._node.core
    engine = core.engine
    if isinstance(engine, FcMember):
        return engine.stable >= engine.chain.real
    if isinstance(engine, LinkEngine):
        return bool(engine.link.ledger.stable == engine.link.ledger.received)
    if isinstance(engine, StMember):
        return not engine.logs.waiting and engine.logs.least() == engine.logs.next
    return bool(engine.claimed == engine.delivered)


@pytest.mark.parametrize("engine", ["totem", "dtp", "atop", "allack", "fc", "st"])
def test_bursts_are_ordered_traced_and_replayed(tmp_path, engine):
    log = asyncio.run(load(tmp_path, engine))
    assert log["a"] == log["b"] == log["c"]
    kinds: Counter[Input] = Counter()
    kept = records(tmp_path / "records")
    assert len(kept) == len(NODES)
    for path in kept:
        found = replay(path)
        assert found.differs_at is None, f"{path}: {found}"
        kinds.update(entry.kind for entry in read(path)[1])
    if engine != "dtp":  # DTP sends one packet at a time.
        assert kinds[Input.BURST] > 5
    world = quiet_end(tmp_path / "traces")
    collect(tmp_path / "traces", tmp_path / "whole", world, format="jsonl")
    whole = reader.read(tmp_path / "whole")
    report = check(whole.rows, whole.manifest, problems=whole.problems)
    assert report.ok, table(report, whole.manifest)
    assert delivers(report)
