"""What catching up takes of memory, disk and network, at both ends."""

import random
from dataclasses import replace

import pytest
from tests.unit.group.log.hosts import (
    CONFIG,
    Wires,
    arrival,
    begin_term,
    enter,
    entries_of,
    grown,
    same,
    store,
)

from roundelay.group.log.messages import Chunk, Fetch


def test_a_learner_asks_for_no_more_than_its_disk_can_take() -> None:
    config = replace(CONFIG, unsynced_bytes=20_000)
    wires = Wires()
    a, b = wires.add("a", "b", config=config)
    grown(a, terms=2, packets=200, size=40)
    enter([a, b], 9)
    most = 0
    for _ in range(3000):
        if wires.frames:
            wires.arrive()
        elif not a.disk.work(a):
            a.expire("log donor")
        most = max(most, b.state.waiting_bytes)
    assert 10_000 < most < 20_000
    assert not b.learner.joined
    wires.settle()
    assert same(a, b)


def test_a_donor_keeps_two_loads_at_most_and_sends_what_was_asked_for_and_no_more() -> None:
    wires = Wires()
    a, b = wires.add("a", "b")
    grown(a, packets=100, size=50)
    enter([a, b], 9)
    wires.arrive()
    for _ in range(50):
        store(a)
        a.expire("log donor")
    chunks = [m for m in a.sent if isinstance(m, Chunk)]
    assert sum(len(m.data) for m in chunks) == CONFIG.fetch_window_bytes
    assert max(len(m.data) for m in chunks) == CONFIG.chunk_bytes
    (cursor,) = a.donor._cursors.values()
    assert cursor.outflow.bytes <= 2 * CONFIG.load_bytes


def test_a_donor_is_slower_while_log_packets_flow() -> None:
    config = replace(CONFIG, fetch_window_bytes=1 << 20, load_bytes=1 << 18, chunk_bytes=1000)
    delays: list[float] = []
    for flowing in (False, True):
        wires = Wires()
        a, b = wires.add("a", "b", config=config)
        begin_term(a, 1)
        for number in range(1000):
            a.state.take(arrival(number, size=1000))
        store(a)
        enter([a, b], 9)
        if flowing:
            a.live(arrival(1000))
        wires.arrive()
        sent = 0
        delay = 0.0
        while sent < 900_000:
            store(a)
            delay += a.timers["log donor"]
            a.expire("log donor")
            sent = sum(len(m.data) for m in a.sent if isinstance(m, Chunk))
        delays.append(delay)
    idle, busy = delays
    assert idle == pytest.approx(0.9e6 / config.idle_bytes_per_s, rel=2)
    assert busy == pytest.approx(0.9e6 / config.catchup_bytes_per_s, rel=0.3)


def test_learners_of_one_donor_take_turns() -> None:
    wires = Wires()
    a, b, c = wires.add("a", "b", "c", config=replace(CONFIG, fetch_window_bytes=1 << 20))
    grown(a, packets=100)
    enter([a, b, c], 9)
    wires.arrive()
    wires.arrive()
    store(a)
    to = [to for _, to, _ in wires.frames]
    assert abs(to.count("b") - to.count("c")) <= 1


def test_a_lossy_network_makes_the_learner_ask_for_less_at_once() -> None:
    rng = random.Random(3)
    wires = Wires()
    a, b = wires.add("a", "b", config=replace(CONFIG, fetch_window_bytes=64 * 1024))
    grown(a, packets=300)
    enter([a, b], 9)
    wires.settle(200_000, lose=lambda: rng.random() < 0.2)
    assert same(a, b)
    asked = [m.limit - m.offset for m in b.sent if isinstance(m, Fetch)]
    assert asked[0] == 64 * 1024
    assert min(asked) < 16 * 1024
    sent = sum(len(m.data) for m in a.sent if isinstance(m, Chunk))
    assert sent < 4 * sum(len(e.body) + 100 for e in entries_of(b))
