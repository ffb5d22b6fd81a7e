"""Learners and donors that are wired together."""

import random
from dataclasses import replace

import pytest
from tests.unit.group.log.hosts import (
    CONFIG,
    Host,
    Wires,
    arrival,
    begin_term,
    enter,
    entries_of,
    grown,
    mark,
    opening,
    same,
    store,
    write,
)

from roundelay.core.effects import Load
from roundelay.core.ids import ViewId
from roundelay.core.log import Checkpoint
from roundelay.group.log.messages import Chunk, CutTo, Fetch


def test_a_new_node_fetches_the_whole_log_and_joins() -> None:
    wires = Wires()
    a, b = wires.add("a", "b")
    grown(a)
    a.state.show_committed(50)
    enter([a, b], 9)
    assert a.learner.joined
    assert not b.learner.filled
    wires.settle()
    assert b.learner.joined
    assert same(a, b)
    assert a.disk.log == b.disk.log
    assert b.committed == 50
    assert not a.refused + b.refused


def test_what_was_shown_and_never_stored_is_shown_again_after_a_kill() -> None:
    wires = Wires()
    a, b = wires.add("a", "b")
    grown(a)
    a.state.show_committed(50)
    enter([a, b], 9)
    while b.committed < 10:
        a.disk.work(a)
        if wires.frames:
            wires.arrive()
    shown = b.committed
    b.leave()
    b.restart()
    assert b.committed == b.state.length == 0, "its disk did nothing"
    wires.frames.clear()
    enter([a, b], 10)
    while not b.committed:
        a.disk.work(a)
        if wires.frames:
            wires.arrive()
    assert b.committed <= shown
    wires.settle()
    assert same(a, b)
    assert b.committed == 50


def test_a_node_with_a_beginning_fetches_the_rest() -> None:
    wires = Wires()
    a, b = wires.add("a", "b")
    grown(b, terms=1)
    grown(a)
    had = len(b.disk.log)
    enter([a, b], 9)
    wires.settle()
    assert same(a, b)
    fetched = sum(len(m.data) for m in a.sent if isinstance(m, Chunk))
    assert had
    assert fetched < sum(len(e.body) + 150 for e in entries_of(a)) * 0.8


def test_what_is_delivered_meanwhile_waits_and_joins() -> None:
    wires = Wires()
    a, b = wires.add("a", "b")
    grown(a)
    enter([a, b], 9)
    for i in range(300, 350):
        for host in (a, b):
            host.live(arrival(i - 300 + 180))
            host.live(arrival(i - 300 + 180))  # A duplicate: it gets no index.
        if wires.frames:
            wires.arrive()
    assert not b.learner.joined
    wires.settle()
    assert b.learner.joined
    assert same(a, b)
    assert a.state.length == 180 + 50
    a.live(arrival(230))
    b.live(arrival(230))
    store(a)
    store(b)
    assert same(a, b)


@pytest.mark.parametrize("seed", range(8))
def test_lost_and_repeated_frames_cost_time_and_nothing_else(seed: int) -> None:
    rng = random.Random(seed)
    wires = Wires()
    a, b, c = wires.add("a", "b", "c")
    grown(a)
    grown(c, terms=2)
    enter([a, b, c], 9, donors=("a",))
    number = 180
    while not (b.learner.joined and c.learner.joined):
        if wires.frames and rng.random() < 0.8:
            wires.arrive(
                rng.randrange(min(6, len(wires.frames))), copies=rng.choice((0, 1, 1, 1, 2))
            )
        elif number < 230 and rng.random() < 0.3:
            for host in (a, b, c):
                host.live(arrival(number))
            number += 1
        elif not sum(host.disk.work(host) for host in (a, b, c)):
            for host in (a, b, c):
                for timer in list(host.timers):
                    host.expire(timer)
    for host in (a, b, c):
        store(host)
    assert a.disk.log == b.disk.log == c.disk.log
    assert same(a, b)
    assert same(a, c)
    assert not a.refused + b.refused + c.refused


def test_another_donor_is_asked_after_three_times() -> None:
    wires = Wires()
    a, b, c = wires.add("a", "b", "c")
    grown(a)
    grown(c)
    enter([a, b, c], 9, donors=("a", "c"))
    a.sent.clear()
    while len(entries_of(b)) < 10:
        wires.arrive()
        store(a)
        store(b)
    here = b.state.place
    wires.dead.add("a")
    wires.frames.clear()
    asked: list[str] = []
    for _ in range(6):
        b.expire("log fetch")
        asked += [to for origin, to, _ in wires.frames if origin == "b"]
        wires.frames.clear()
    assert asked == ["a", "a", "c", "c", "c"]
    assert b.state.place == here
    sent = [m for m in b.sent if isinstance(m, Fetch)]
    wires.settle()
    assert b.learner.joined
    assert same(b, c)
    assert all(m.place >= here for m in [m for m in b.sent if isinstance(m, Fetch)][len(sent) :])


def test_a_view_change_keeps_what_came_also_of_a_record() -> None:
    """The record is larger than the window: without its beginning it would never come."""
    wires = Wires()
    a, b, c = wires.add("a", "b", "c")
    for host in (a, c):
        begin_term(host, 1)
        write(host, arrival(0, size=30_000), arrival(1))
    enter([a, b, c], 5)
    while not any(isinstance(m, Fetch) and m.offset > 8000 for m in b.sent):
        if wires.frames:
            wires.arrive()
        elif not a.disk.work(a):
            a.expire("log donor")
    b.sent.clear()
    for host in (a, b, c):
        host.leave()
    wires.frames.clear()
    wires.dead.add("a")
    enter([c, b], 6, donors=("c",))
    first = next(m for m in b.sent if isinstance(m, Fetch))
    assert first.offset > 8000
    wires.settle()
    assert b.learner.joined
    assert entries_of(b) == entries_of(c)


@pytest.mark.parametrize("tail", [1, 5])
def test_an_end_that_the_adopted_log_lacks_is_cut(tail: int) -> None:
    wires = Wires()
    a, b = wires.add("a", "b")
    grown(a, terms=1, packets=6)
    grown(b, terms=1, packets=6)
    begin_term(a, 4)
    write(a, arrival(18, count=9))
    begin_term(b, 2)
    for i in range(tail):
        write(b, arrival(18 + i, size=7), opening(f"x{i}"))
    begin_term(b, 3)
    write(b, arrival(18 + tail), opening("y"))
    enter([a, b], 9)
    wires.settle()
    assert a.disk.log == b.disk.log
    assert same(a, b)
    cuts = [m for m in a.sent if isinstance(m, CutTo)]
    assert [cut.place.term for cut in cuts] == [ViewId(1, "a")]


def test_a_term_that_went_further_here_than_there_is_cut_to_its_end_there() -> None:
    wires = Wires()
    a, b = wires.add("a", "b")
    for host in (a, b):
        begin_term(host, 1)
        write(host, opening("x"), arrival(0), opening("y"))
    end = a.state.place
    write(b, opening("z"), arrival(1), opening("w"))
    begin_term(a, 2)
    enter([a, b], 9)
    wires.settle()
    assert same(a, b)
    assert a.disk.log == b.disk.log
    assert [m.place for m in a.sent if isinstance(m, CutTo)] == [end]
    assert not b.refused


def test_a_cut_below_what_is_committed_is_a_fork() -> None:
    wires = Wires()
    a, b = wires.add("a", "b")
    for host in (a, b):
        begin_term(host, 1)
        write(host, arrival(0))
    begin_term(a, 3)
    begin_term(b, 2)
    write(b, arrival(1))
    b.state.show_committed(2)
    enter([a, b], 9)
    for _ in range(20):
        if wires.frames:
            wires.arrive()
    assert b.forks == ["the adopted log differs from entry 1 on, and 2 are committed"]
    assert b.state.length == 2


def test_who_is_outrun_by_the_window_fetches_entries_of_the_present_term_too() -> None:
    config = replace(CONFIG, live_window_bytes=5_000)
    wires = Wires()
    a, b = wires.add("a", "b", config=config)
    grown(a, terms=1)
    enter([a, b], 9)
    for number in range(60, 160):
        a.live(arrival(number, size=30))
        b.live(arrival(number, size=30))
        store(a)
    assert not b.learner._window.follows(0)
    wires.settle()
    assert b.learner.joined
    assert same(a, b)
    assert a.disk.log == b.disk.log


def test_a_log_that_is_ahead_of_what_was_delivered_here_takes_nothing_twice() -> None:
    """The donor has delivered more than the learner when the learner's log reaches the donor's."""
    config = replace(CONFIG, live_window_bytes=1_000)
    wires = Wires()
    a, b = wires.add("a", "b", config=config)
    grown(a, terms=1)
    enter([a, b], 9)
    for number in range(60, 90):
        a.live(arrival(number, size=30))
        if number < 75:
            b.live(arrival(number, size=30))
    for _ in range(400):
        if wires.frames:
            wires.arrive()
        else:
            store(a)
            store(b)
            a.expire("log donor")
    assert b.state.length == 90
    assert not b.learner.joined
    for number in range(75, 91):
        b.live(arrival(number, size=30))
    a.live(arrival(90, size=30))
    assert b.learner.joined
    store(a)
    store(b)
    assert same(a, b)


def test_a_plain_log_begins_where_the_donor_begins() -> None:
    wires = Wires()
    a, b = wires.add("a", "b")
    grown(a)
    a.state.show_committed(180)
    a.run()
    a.disk.remove_before(100, a.state)
    grown(b, terms=1, packets=3)
    enter([a, b], 9)
    wires.settle()
    assert b.state.first == a.state.first > 60
    assert b.disk.log[1:] == a.disk.log[1:]
    assert isinstance(b.disk.records[0], Checkpoint)
    assert same(a, b)
    assert not b.refused
    assert b.committed == 180


def test_a_donor_that_has_removed_the_adopted_log_too_fills_the_learner_at_once() -> None:
    wires = Wires()
    a, b = wires.add("a", "b", config=replace(CONFIG, live_window_bytes=1000))
    grown(a, terms=1)
    enter([a, b], 9)
    wires.frames.clear()
    for number in range(60, 120):
        a.live(arrival(number))
        b.live(arrival(number))
    store(a)
    a.state.show_committed(120)
    a.run()
    a.disk.remove_before(100, a.state)
    wires.settle()
    assert b.learner.filled
    assert b.learner.joined
    assert same(a, b)
    assert b.state.first == 100


def test_a_node_whose_disk_is_behind_drops_packets_and_fetches_them_later() -> None:
    config = replace(CONFIG, unsynced_bytes=4_000, live_window_bytes=4_000)
    wires = Wires()
    a, b = wires.add("a", "b", config=config)
    enter([a, b], 1)
    assert b.learner.joined
    for number in range(100):
        a.live(arrival(number, size=50))
        b.live(arrival(number, size=50))
        store(a)
    assert b.learner.behind
    assert b.state.waiting_bytes < 5_000
    wires.settle()
    assert b.learner.joined
    store(b)
    assert same(a, b)
    assert a.disk.log == b.disk.log


def test_a_disk_that_was_behind_for_a_moment_fetches_nothing() -> None:
    config = replace(CONFIG, unsynced_bytes=4_000)
    wires = Wires()
    a, b = wires.add("a", "b", config=config)
    enter([a, b], 1)
    for number in range(100):
        a.live(arrival(number, size=50))
        b.live(arrival(number, size=50))
        store(a)
    assert b.learner.behind
    wires.settle()
    store(b)
    assert same(a, b)
    assert not b.sent


def test_a_member_that_becomes_ready_can_be_asked_too() -> None:
    wires = Wires()
    a, b = wires.add("a", "b")
    grown(a)
    enter([a, b], 9, donors=())
    assert not wires.frames
    b.learner.add_donor("a")
    b.run()
    wires.settle()
    assert same(a, b)


def test_packets_that_nobody_could_store_need_another_view() -> None:
    config = replace(CONFIG, unsynced_bytes=4_000, live_window_bytes=4_000)
    wires = Wires()
    a, b = wires.add("a", "b", config=config)
    target = a.state.place
    a.enter(mark(1, target), target, ("b",))
    b.enter(mark(1, target), target, ("a",))
    for number in range(200):
        a.live(arrival(number, size=50))
        b.live(arrival(number, size=50))
    wires.settle()
    assert a.learner.stuck or b.learner.stuck
    for host in (a, b):
        store(host)
        host.leave()
    assert same(a, b)
    assert 0 < a.state.length < 200
    enter([a, b], 2)
    for host in (a, b):
        assert host.learner.joined
        assert not host.learner.stuck


def test_a_donor_that_lacks_packets_itself_is_no_reason_for_another_view() -> None:
    """One node is behind, and asks another one first that is behind as well."""
    slow = replace(CONFIG, unsynced_bytes=4_000, live_window_bytes=4_000)
    wires = Wires()
    (a,) = wires.add("a")
    b, c = wires.add("b", "c", config=slow)
    target = a.state.place
    for host, donors in ((a, ("b",)), (b, ("c", "a")), (c, ("b", "a"))):
        host.enter(mark(1, target), target, donors)
    for number in range(200):
        for host in (a, b, c):
            host.live(arrival(number, size=50))
    wires.settle()
    for host in (b, c):
        assert host.learner.joined
        store(host)
    store(a)
    assert same(a, b)
    assert same(a, c)


def _begins_late(host: Host, sessions: int) -> None:
    """A log whose beginning was removed, behind so many sessions."""
    begin_term(host, 1)
    write(host, *[opening(f"session {n}") for n in range(sessions)])
    write(host, *[arrival(n) for n in range(20)])
    host.state.show_committed(20)
    host.run()
    host.disk.remove_before(10, host.state)


def test_a_large_checkpoint_comes_through_a_lossy_network() -> None:
    """It is larger than the window, and began again at every loss it would never come."""
    rng = random.Random(7)
    wires = Wires()
    a, b, c = wires.add("a", "b", "c")
    for host in (a, c):
        _begins_late(host, 2_000)
    enter([a, b, c], 9, donors=("a", "c"))
    wires.settle(4_000, lose=lambda: rng.random() < 0.1)
    assert same(a, b)
    offsets = [m.offset for m in b.sent if isinstance(m, Fetch)]
    assert offsets == sorted(offsets)


def test_a_part_of_a_checkpoint_that_no_donor_has_any_more_is_forgotten() -> None:
    wires = Wires()
    a, b = wires.add("a", "b")
    _begins_late(a, 500)
    enter([a, b], 9)
    while not any(isinstance(m, Fetch) and m.offset > 4_000 for m in b.sent):
        if wires.frames:
            wires.arrive()
        else:
            store(a)
            a.expire("log donor")
    wires.frames.clear()
    a.disk.remove_before(15, a.state)
    b.sent.clear()
    b.expire("log fetch")  # Chunks came since the last time.
    for _ in range(40):
        b.expire("log fetch")
        while wires.frames:
            wires.arrive()
            store(a)
    assert b.sent
    wires.settle()
    assert same(a, b)
    assert b.state.first == 15
    assert not b.refused


def test_reads_that_overtake_writes_do_not_keep_a_learner_from_joining() -> None:
    """The donor's disk is always behind the donor's log, so what is read never ends where the log
    ends, and packets come without a pause."""
    wires = Wires()
    a, b = wires.add("a", "b", config=replace(CONFIG, live_window_bytes=10_000))
    a.disk.reads_first = True
    grown(a, terms=1)
    enter([a, b], 9)
    store(a)
    number = 60
    for _ in range(120):  # The window is outrun, and only then the learner is heard.
        a.live(arrival(number, size=30))
        b.live(arrival(number, size=30))
        number += 1
    wires.frames.clear()
    b.expire("log fetch")
    store(a)
    for _ in range(12):
        a.live(arrival(number, size=30))
        b.live(arrival(number, size=30))
        number += 1
    behind = 0
    while not b.learner.joined:
        a.live(arrival(number, size=30))
        b.live(arrival(number, size=30))
        number += 1
        assert number < 400
        for _ in range(20):
            if wires.frames:
                wires.arrive()
            while a.disk.asked and isinstance(a.disk.asked[-1], Load):
                a.disk.work(a)
        b.disk.work(b)
        if len(a.disk.asked) > 12:
            a.disk.work(a)
        behind = max(behind, len(a.disk.asked))
        for host, timer in ((a, "log donor"), (b, "log fetch")):
            host.expire(timer)
        assert not b.learner.stuck
    assert behind > 10
    store(a)
    store(b)
    assert same(a, b)
