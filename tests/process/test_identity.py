"""Lives of real nodes that might be mistaken for one another: many within a moment, after the state
is lost or damaged, and with clocks that are wrong."""

import asyncio
import dataclasses
import os
import shutil
import time
from collections.abc import Iterable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.patience import LIMIT_S, play, until
from tests.process.cluster import Cluster, judge

import roundelay
from roundelay.check import check
from roundelay.check.text import table
from roundelay.core.effects import Kind
from roundelay.runtime.collect import collect, quiet_end
from roundelay.runtime.group import Group
from roundelay.runtime.machine import Machine
from roundelay.runtime.settings import settings
from roundelay.trace import reader
from roundelay.trace.schema import Row
from roundelay.transport.address import free_addresses

pytestmark = pytest.mark.process


def lives_and_messages(rows: Iterable[Row], proc: int) -> tuple[int, int]:
    """How many lives a node had and how many messages it accepted; no message has the name of
    another."""
    lives, messages = set(), []
    for row in rows:
        if row.proc == proc:
            lives.add(row.inc)
            if row.kind == Kind.SUBMIT:
                assert row.m_seq is not None
                messages += [(row.m_inc, row.m_seq + i) for i in range(row.count)]
    assert len(set(messages)) == len(messages)
    return len(lives), len(messages)


RESTARTS = 30


@pytest.mark.parametrize("kept", [True, False])
def test_thirty_lives_within_a_moment(tmp_path, kept):
    """In one process: a life begins, sends and ends without a word, and the next begins. Where
    state is kept the clock stands still meanwhile."""
    traces = tmp_path / "traces"
    peers = free_addresses("abc")
    now = time.time_ns()
    machine = Machine(wall_ns=lambda: now) if kept else Machine()

    def join(node: str) -> roundelay.Group:
        told = {"group": "g", "node": node, "peers": peers, "trace": traces, "trace_frames": True}
        return Group(settings(told | ({"state": tmp_path / node} if kept else {})), machine)

    async def story() -> None:
        async with AsyncExitStack() as stack:
            groups = [await stack.enter_async_context(join(node)) for node in "ab"]
            for _ in range(RESTARTS):
                group = join("c")
                await group.start()
                group.send_nowait(b"short-lived")
                await asyncio.sleep(0.01)  # Its first frames leave.
                assert group._node is not None
                group._node.close(roundelay.ClosedError("killed"))
                await group._release()
            groups.append(await stack.enter_async_context(join("c")))
            for group in groups:
                group.ignore()
                await group.wait_for(timeout_s=LIMIT_S)
            before = list(map(delivered, groups))
            for group in groups:
                await (await group.send(b"in the end", safe=True))
            await until_settled(groups, [count + len(groups) for count in before])

    play(story)
    collect(traces, tmp_path / "whole", quiet_end(traces), format="jsonl")
    whole = reader.read(tmp_path / "whole")
    report = check(whole.rows, whole.manifest, problems=whole.problems)
    assert report.ok, table(report, whole.manifest)
    assert lives_and_messages(whole.rows, 2) == (RESTARTS + 1, RESTARTS + 1)
    assert whole.manifest is not None
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert set(whole.manifest.clocks().values()) == {boot}


def delivered(group: roundelay.Group) -> int:
    return int(group.status()["counters"]["messages_delivered"])


async def until_settled(groups: list[roundelay.Group], messages: list[int]) -> None:
    """Wait until each node delivered so many messages, and knows that all have."""

    def done(group: roundelay.Group, count: int) -> bool:
        assert group._node is not None
        core: Any = group._node.core
        engine = core.engine
        return delivered(group) >= count and bool(engine.claimed == engine.delivered)

    while not all(map(done, groups, messages)):  # noqa: ASYNC110  # Nobody tells of it.
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("kept", [True, False])
def test_a_process_that_is_killed_again_and_again(tmp_path, kept):
    with Cluster(tmp_path, "abc", relay=False, state=kept) as cluster:
        cluster.start()
        cluster.view()
        for _ in range(6):
            cluster.kill("c")
            before = begun(tmp_path)
            cluster.start("c")
            until(lambda before=before: begun(tmp_path) > before, "a life")  # type: ignore[misc]
        cluster.view()
        cluster.traffic()
        assert lives_and_messages(judge(cluster), 2)[0] == 7


def begun(directory: Path) -> int:
    """Lives of c that wrote to their traces."""
    traces = (directory / "traces").glob("c-*.jsonl")
    return sum(path.stat().st_size > 0 for path in traces)


def files(directory: Path) -> list[Path]:
    return [path for path in (directory / "g").iterdir() if path.name != "lock"]


def deleted(directory: Path) -> None:
    shutil.rmtree(directory)


def emptied(directory: Path) -> None:
    for path in files(directory):
        path.write_bytes(b"")


def torn(directory: Path) -> None:
    for path in files(directory):
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def half_torn(directory: Path) -> None:
    """Whose it is can still be read."""
    for name in ("core", "incarnation"):
        path = directory / "g" / name
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def random_bytes(directory: Path) -> None:
    for path in files(directory):
        path.write_bytes(os.urandom(path.stat().st_size))


def test_state_that_is_lost_or_damaged_makes_another_life_and_no_trouble(tmp_path):
    damages = (deleted, emptied, torn, half_torn, random_bytes)
    with Cluster(tmp_path, "abc", relay=False) as cluster:
        cluster.start()
        cluster.view()
        for damage in damages:
            cluster.traffic("c", messages=5)
            cluster.kill("c")
            damage(cluster.state("c"))
            cluster.start("c")
            cluster.view()
        cluster.traffic()
        lives, messages = lives_and_messages(judge(cluster), 2)
        assert lives == 1 + len(damages)
        assert messages >= 2 * lives  # What was about to be written is lost with a life.


def test_state_of_another_node_is_refused_and_told(tmp_path):
    with Cluster(tmp_path, "abc", relay=False) as cluster:
        cluster.start()
        cluster.view()
        cluster.kill("c")
        shutil.copytree(cluster.state("a"), cluster.state("c"), dirs_exist_ok=True)
        cluster.start("c")
        assert cluster.exit_code("c") == 1
        assert "StateError: the state directory" in cluster.log("c")
        assert "belongs to node 'a' of group 'g'; give 'c' a directory of its own" in cluster.log(
            "c"
        )
        deleted(cluster.state("c"))
        cluster.start("c")
        cluster.view()
        cluster.traffic()
        judge(cluster)


HOURS_S = (3600.0, -3600.0, 0.0)


def set_clock(cluster: Cluster) -> None:
    """Restart c with its clock set forward, then back, then right again."""
    cluster.start()
    cluster.view()
    for shift_s in HOURS_S:
        cluster.traffic("c", messages=5)
        cluster.kill("c")
        cluster.clocks_s["c"] = shift_s
        cluster.start("c")
        cluster.view()
    cluster.traffic()


def test_a_clock_that_is_set_forward_and_back(tmp_path):
    with Cluster(tmp_path, "abc", relay=False) as cluster:
        set_clock(cluster)
        assert lives_and_messages(judge(cluster), 2)[0] == 1 + len(HOURS_S)


def test_a_clock_that_is_set_where_no_state_is_kept(tmp_path):
    """Then neither the numbers of lives nor those of a node's first views need grow: nobody
    remembers the last. The trace as it was collected convicts nobody, and in the order in which
    the lives came all is as ever."""
    with Cluster(tmp_path, "abc", relay=False, state=False) as cluster:
        set_clock(cluster)
        whole = reader.read(cluster.finish())
    assert whole.manifest is not None
    assert lives_and_messages(whole.rows, 2)[0] == 1 + len(HOURS_S)
    report = check(whole.rows, whole.manifest, problems=whole.problems)
    assert not report.violated, table(report)
    rows = in_time_order(whole.rows)
    report = check(rows, dataclasses.replace(whole.manifest, rows=None, machines={}))
    assert not report.violated, table(report)
    assert report["L1"].instances


def in_time_order(rows: list[Row]) -> list[Row]:
    """The same, with lives numbered 0, 1, 2 ... as they came."""
    lives: dict[int, dict[int, int]] = {}
    for row in sorted(rows, key=lambda row: row.t_ns):
        seen = lives.setdefault(row.proc, {})
        seen.setdefault(row.inc, len(seen))

    def numbered(row: Row) -> Row:
        whose = None if row.m_src is None or row.m_inc is None else lives[row.m_src][row.m_inc]
        return row._replace(inc=lives[row.proc][row.inc], m_inc=whose)

    return list(map(numbered, rows))


def test_all_clocks_are_set_back_while_all_are_down(tmp_path):
    with Cluster(tmp_path, "abc", relay=False) as cluster:
        cluster.start()
        cluster.view()
        cluster.traffic()
        for node in cluster.nodes:
            cluster.kill(node)
        cluster.clocks_s = dict.fromkeys(cluster.nodes, -3600.0)
        cluster.start()
        cluster.view()
        cluster.traffic()
        rows = judge(cluster)
        assert all(lives_and_messages(rows, proc)[0] == 2 for proc in range(3))
        views = [(r.proc, r.c_seq, r.c_rep, r.c_kind) for r in rows if r.kind == Kind.INSTALL]
        assert len(set(views)) == len(views)


def primary(cluster: Cluster, node: str) -> bool:
    status = cluster.status(node)
    return status is not None and bool(status["view"]["primary"])


def why(cluster: Cluster, node: str) -> str:
    status = cluster.status(node)
    return "" if status is None else str(status["view"]["why"])


def test_two_of_three_are_primary_again_after_a_full_outage(tmp_path):
    with Cluster(tmp_path, "abc", relay=False) as cluster:
        cluster.start()
        cluster.view()
        cluster.traffic()
        for node in cluster.nodes:
            cluster.kill(node)
        cluster.start("a", "b")
        cluster.view("a", "b")
        until(lambda: primary(cluster, "a") and primary(cluster, "b"), "a primary view of two")
        cluster.start("c")
        cluster.view()
        cluster.traffic()
        judge(cluster)


def test_where_no_state_is_kept_the_status_says_what_would_help(tmp_path):
    with Cluster(tmp_path, "abc", relay=False, state=False) as cluster:
        cluster.start()
        cluster.view()
        until(lambda: primary(cluster, "a"), "a primary view")
        for node in "ab":
            cluster.kill(node)
        cluster.start("a", "b")
        cluster.view()
        told = "a, b lost their state; restart c as well, without state, to begin anew"
        until(lambda: all(why(cluster, node) == told for node in cluster.nodes), "the advice")
        cluster.kill("c")
        cluster.start("c")
        cluster.view()
        until(lambda: primary(cluster, "c"), "a primary view again")
