"""Snapshots that come from a donor."""

import random
from dataclasses import replace

import pytest
from tests.unit.group.log.hosts import (
    CODEC,
    CONFIG,
    Host,
    Wires,
    arrival,
    enter,
    grown,
    mark,
    opening,
    same,
    store,
    take_snapshot,
    write,
)

from roundelay.core.log import Place
from roundelay.group.log.messages import FetchSnapshot, TooFar

WITH_STATE = replace(CONFIG, application=True, snapshot_part_bytes=1000)
STATE = bytes(range(256)) * 30


def _far_back(*names: str) -> tuple[Wires, list[Host]]:
    """Hosts of which all but the last have a snapshot, and no longer the log before it."""
    wires = Wires()
    hosts = wires.add(*names, config=WITH_STATE)
    for host in hosts[:-1]:
        grown(host)
        take_snapshot(host, STATE)
        write(host, opening("later"), arrival(180, count=3), arrival(183))
        host.state.show_committed(183)
        host.run()
        host.disk.remove_before(180, host.state)
    return wires, hosts


def test_a_node_that_is_too_far_back_gets_the_snapshot_and_what_follows_it() -> None:
    wires, (a, b) = _far_back("a", "b")
    enter([a, b], 9)
    wires.settle()
    assert b.learner.joined
    assert b.disk.snapshots == a.disk.snapshots
    assert b.state.snapshot == 180
    assert b.disk.log[1:] == a.disk.log[1:]
    assert same(a, b)
    assert not a.refused + b.refused
    assert b.committed >= 183


def test_lost_frames_do_not_harm_a_snapshot() -> None:
    rng = random.Random(5)
    wires, (a, b) = _far_back("a", "b")
    enter([a, b], 9)
    wires.settle(lose=lambda: rng.random() < 0.2)
    assert b.disk.snapshots == a.disk.snapshots
    assert same(a, b)


def _half(wires: Wires, b: Host) -> int:
    """Let half of the snapshot come, then the donor `a` dies; how much has come."""
    while not any(isinstance(m, FetchSnapshot) and m.offset > 4000 for m in b.sent):
        if wires.frames:
            wires.arrive()
        else:
            for host in wires.hosts.values():
                store(host)
                host.expire("log donor")
    wires.dead.add("a")
    wires.frames.clear()
    assert b.learner._transfer is not None
    received = b.learner._transfer.received
    b.sent.clear()
    return received


def test_another_donor_goes_on_with_the_same_snapshot() -> None:
    wires, (a, c, b) = _far_back("a", "c", "b")
    enter([a, b, c], 9, donors=("a", "c"))
    received = _half(wires, b)
    wires.settle()
    assert b.disk.snapshots == c.disk.snapshots
    assert same(c, b)
    offsets = [m.offset for m in b.sent if isinstance(m, FetchSnapshot)]
    assert min(offsets) >= received > 4000


def test_a_view_change_keeps_what_came_of_a_snapshot() -> None:
    wires, (a, c, b) = _far_back("a", "c", "b")
    target = a.state.place
    enter([a, b], 9)
    received = _half(wires, b)
    b.leave()
    for host in (c, b):
        host.enter(mark(10, target), target, ("c",))
    wires.settle()
    assert b.disk.snapshots == c.disk.snapshots
    offsets = [m.offset for m in b.sent if isinstance(m, FetchSnapshot)]
    assert min(offsets) >= received


def test_another_snapshot_at_another_donor_begins_anew() -> None:
    wires, (a, c, b) = _far_back("a", "c", "b")
    c.disk.snapshots.clear()
    write(c, arrival(184))
    take_snapshot(c, b"another state" * 500)
    write(a, arrival(184))
    enter([a, b, c], 9, donors=("a", "c"))
    _half(wires, b)
    wires.settle()
    assert b.disk.snapshots == c.disk.snapshots
    assert same(b, c)


def test_a_snapshot_that_came_damaged_is_fetched_again() -> None:
    wires, (a, b) = _far_back("a", "b")
    enter([a, b], 9)
    while not any(isinstance(m, FetchSnapshot) and m.offset > 4000 for m in b.sent):
        if wires.frames:
            wires.arrive()
        else:
            store(a)
            store(b)
            a.expire("log donor")
    b.disk.incoming = b"rubbish" + b.disk.incoming[7:]
    wires.settle()
    assert b.disk.snapshots == a.disk.snapshots
    assert same(a, b)


def test_a_snapshot_that_is_gone_is_replaced_by_the_newest() -> None:
    wires, (a, b) = _far_back("a", "b")
    enter([a, b], 9)
    while not any(isinstance(m, FetchSnapshot) and m.offset > 4000 for m in b.sent):
        if wires.frames:
            wires.arrive()
        else:
            store(a)
            store(b)
            a.expire("log donor")
    a.disk.snapshots.clear()
    a.live(arrival(184))
    store(a)
    b.live(arrival(184))
    take_snapshot(a, b"newer" * 1000)
    wires.settle()
    assert b.disk.snapshots == a.disk.snapshots
    assert b.state.snapshot == 185
    assert same(a, b)


def test_a_snapshot_for_a_plain_log_is_refused() -> None:
    wires = Wires()
    a, b = wires.add("a", "b")
    grown(a)
    enter([a, b], 9)
    b.receive("a", TooFar(1, 120, 100, 0, a.state.marks[1]))
    assert b.refused == ["a snapshot that was not asked for"]


@pytest.mark.parametrize("wrong", ["index", "log", "term", "short", "rubbish"])
def test_a_snapshot_of_something_else_than_was_offered_is_refused(wrong: str) -> None:
    wires, (a, b) = _far_back("a", "b")
    data = a.disk.snapshots[180]
    if wrong == "rubbish":
        a.disk.snapshots[180] = data[:100] + bytes((data[100] ^ 1,)) + data[101:]
    elif wrong == "short":
        a.disk.snapshots[180] = data[:200] + data[-28:]
    elif wrong == "index":
        a.disk.snapshots[170] = data
    enter([a, b], 9)
    for _ in range(200):
        for at, (origin, to, frame) in enumerate(wires.frames):
            if frame[0] == 104 and wrong in ("index", "log", "term"):
                offer = CODEC.decode(104, frame, 1)
                assert isinstance(offer, TooFar)
                offer = {
                    "index": replace(offer, index=170),
                    "log": replace(offer, mark=replace(offer.mark, log=b"y" * 16)),
                    "term": replace(offer, mark=a.state.marks[0]),
                }[wrong]
                wires.frames[at] = origin, to, b"\x68" + CODEC.encode(offer)[1]
        if wires.frames:
            wires.arrive()
        else:
            store(a)
            store(b)
            a.expire("log donor")
    assert b.refused
    assert not b.disk.snapshots
    assert b.state.place == Place()
