"""The status document of a node."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from roundelay.runtime.group import join
from roundelay.transport.address import free_addresses


def test_the_reason_of_gather_is_told_only_while_the_node_gathers() -> None:
    async def story() -> None:
        async with join("g", node="a", peers=free_addresses("ab")) as group:
            node: Any = group._node
            core = node.core
            found = []
            for phase in ("gather", "operational"):
                told = SimpleNamespace(phase=phase, gather="the token is lost", waiting_packets=3)
                node.core = SimpleNamespace(status=told)
                found.append(group.status())
            node.core = core
        assert [(one["phase"], one["gather"]) for one in found] == [
            ("gather", "the token is lost"),
            ("operational", ""),
        ]
        assert found[0]["queues"]["packets_to_send"] == 3

    asyncio.run(story())


def test_how_the_writing_of_the_trace_goes_is_told_where_there_is_one(tmp_path: Path) -> None:
    async def story() -> None:
        for trace, every, told in (
            (None, False, None),
            (tmp_path, False, {"waits": 0, "waited_s": 0.0, "ended": ""}),
            (tmp_path, True, {"waits": 0, "waited_s": 0.0, "ended": ""}),
        ):
            peers = free_addresses("a")
            node = join("g", node="a", peers=peers, trace=trace, trace_every_row=every)
            async with node as group:
                assert group.status()["trace"] == told

    asyncio.run(story())
