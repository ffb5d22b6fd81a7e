"""What a node keeps for those who watch it."""

import asyncio
import time
from types import SimpleNamespace
from typing import Any

import pytest
from tests.patience import holds

from roundelay.core.effects import Kind
from roundelay.core.ids import View, ViewId
from roundelay.runtime import happened, recent, watched
from roundelay.runtime.group import Group, join
from roundelay.runtime.happened import Happened
from roundelay.runtime.recent import Recent
from roundelay.runtime.watched import SLICE_NS, SLICE_ROWS, RecentRows, Sparing, Subject
from roundelay.trace.recorder import Recorder
from roundelay.trace.schema import Row
from roundelay.transport.address import free_addresses

SUBJECT = Subject(("a", "b"), "a", 7, "machine")
VIEW = View(ViewId(4, "a"), ("a", "b"), primary=True)


def row(t_ns: int, lseq: int = 0, **more: Any) -> Row:
    return Row(more.pop("kind", "send"), 0, 7, lseq, t_ns=t_ns, **more)


def test_what_happened_is_numbered_and_bounded():
    kept = Happened()
    for number in range(happened.HAPPENED_MAX + 3):
        kept.add("warning", f"sentence {number}", about="x")
    assert len(kept.since(0)) == happened.HAPPENED_MAX
    assert [one["sentence"] for one in kept.since(kept.number - 1)] == [f"sentence {number}"]
    assert kept.since(kept.number) == []


def test_rows_are_kept_for_a_while_and_so_many_of_a_slice():
    rows = RecentRows(10 * SLICE_NS)
    for number in range(SLICE_ROWS + 50):
        rows.append(row(number))
    assert rows.full
    assert len(rows.near(0, 10_000)) == SLICE_ROWS
    assert rows.left_out == 50
    rows.append(row(2 * SLICE_NS))
    assert not rows.full
    rows.append(row(11 * SLICE_NS + SLICE_ROWS))
    assert [one.t_ns // SLICE_NS for one in rows.near(0, 10_000)] == [2, 11]
    rows.forget()
    assert rows.near(0, 10) == []


def test_texts_are_bounded(monkeypatch):
    monkeypatch.setattr(watched, "TEXT_BYTES_MAX", 100)
    rows = RecentRows(SLICE_NS)
    for number in range(10):
        rows.append(row(number, x="x" * 40))
    assert len(rows.near(0, 100)) == 2


def test_the_rows_near_a_time_come_with_the_view_before_them():
    rows = RecentRows(10 * SLICE_NS)
    rows.append(row(0, 0, kind=Kind.INSTALL))
    for number in range(1, 30):
        rows.append(row(number, number))
    assert [one.t_ns for one in rows.near(20, 4)] == [0, 18, 19, 20, 21]
    assert [one.t_ns for one in rows.near(99, 4)] == [0, 26, 27, 28, 29]
    assert [one.t_ns for one in rows.near(0, 4)] == [0, 1, 2, 3]


def test_no_rows_are_made_while_a_slice_is_full_but_those_of_a_view(monkeypatch):
    clock = SimpleNamespace(now=0)
    monkeypatch.setattr(time, "monotonic_ns", lambda: clock.now)
    rows = RecentRows(100 * SLICE_NS)
    made: list[Row] = []

    def append(one: Row) -> None:
        made.append(one)
        rows.append(one)

    sparing = Sparing(Recorder(append, {"a": 0, "b": 1}, "a", 7, clock), rows)
    for _ in range(SLICE_ROWS + 100):
        sparing.expire("timer")
    assert len(made) == SLICE_ROWS
    sparing.install(VIEW)
    assert made[-1].kind == Kind.INSTALL
    sparing.expire("timer")
    assert made[-1].kind == Kind.EXPIRE
    for _ in range(SLICE_ROWS):
        sparing.expire("timer")
    count = len(made)
    sparing.expire("timer")
    assert len(made) == count
    clock.now += SLICE_NS
    sparing.expire("timer")
    assert len(made) == count + 1
    assert made[-1].cause is None
    assert [one.lseq for one in made] == list(range(len(made)))


def observed(tracing: Any = None) -> Any:
    return SimpleNamespace(view=VIEW, instruments=SimpleNamespace(tracing=tracing))


def test_rows_are_made_only_while_somebody_asks(monkeypatch):
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(time, "monotonic", lambda: clock.now)
    kept, node = Recent(SUBJECT, 60.0, Happened()), observed()
    assert not kept.answer({"since": 0}, node)["recording"]
    assert node.instruments.tracing is None
    assert kept.answer({"record": True}, node)["recording"]
    tracing: Any = node.instruments.tracing
    tracing.recorder.expire("timer")
    clock.now += recent.UNASKED_S - 1
    kept.ease(node)
    assert node.instruments.tracing is not None
    clock.now += 2
    kept.ease(node)
    assert node.instruments.tracing is None
    told = kept.answer({"at_ns": time.monotonic_ns(), "limit": 1}, node)
    assert [one.kind for one in told["rows"]] == [Kind.INSTALL, Kind.EXPIRE]
    clock.now += 61
    kept.ease(node)
    assert kept.answer({"at_ns": time.monotonic_ns()}, node)["rows"] == []


def test_a_node_that_keeps_no_rows_still_tells_what_happened():
    kept, node = Recent(SUBJECT, 0.0, Happened()), observed()
    kept.happened.add("warning", "something")
    told = kept.answer({"since": 0, "record": True, "at_ns": 1}, node)
    assert (told["recording"], told["rows"], told["next"]) == (False, [], 1)
    assert node.instruments.tracing is None


@pytest.mark.parametrize("wrong", [{"since": "x"}, {"at_ns": []}, {"at_ns": 1, "limit": 0}])
def test_requests_that_make_no_sense_are_refused(wrong):
    with pytest.raises((TypeError, ValueError)):
        Recent(SUBJECT, 1.0, Happened()).answer(wrong, observed())


def test_a_watched_node_has_rows_of_frames_and_one_with_a_trace_writes_the_same_file(tmp_path):
    async def story() -> None:
        peers = free_addresses("ab")
        async with (
            join("g", node="a", peers=peers) as a,
            join("g", node="b", peers=peers, trace=tmp_path) as b,
        ):
            for group in (a, b):
                await group.wait_for_view(lambda view: len(view.members) == 2)
            answers = [ask(group, record=True) for group in (a, b)]
            assert all(answer["recording"] for answer in answers)
            await (await a.send(b"hello"))
            await holds(lambda: all(Kind.DELIVER in kinds(group) for group in (a, b)))
            assert {Kind.INSTALL, Kind.SEND, Kind.ARRIVE} <= kinds(a)
            told = ask(b, since=0)["happened"]
            assert any(one["kind"] == "view" and one["members"] == ["a", "b"] for one in told)

    asyncio.run(story())


def test_a_trace_gives_its_rows_to_a_watcher_while_a_slice_has_room(tmp_path):
    async def story() -> None:
        async with join("g", node="a", peers=free_addresses("a"), trace=tmp_path) as group:
            await group.wait_for_view(lambda view: True)
            ask(group, record=True)
            node: Any = group._node
            recorder = node.instruments.tracing.recorder
            given = recorder._append
            for _ in range(SLICE_ROWS):
                recorder.suspect((), "a test")
            assert recorder._append is not given
            assert len(ask(group, at_ns=time.monotonic_ns())["rows"]) <= SLICE_ROWS
            await holds(lambda: recorder._append is not recorder._first)
            node.recent._asked -= recent.UNASKED_S + 1
            node.recent.ease(node)
            assert recorder._append is recorder._first

    asyncio.run(story())


def ask(group: Group, **request: Any) -> dict[str, Any]:
    node = group._node
    assert node is not None
    assert node.recent is not None
    return node.recent.answer(request, node)


def kinds(group: Group) -> set[str]:
    return {one.kind for one in ask(group, at_ns=time.monotonic_ns())["rows"]}
