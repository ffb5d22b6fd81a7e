"""Learners and donors that are wired together."""



from tests.unit.group.log.hosts import (
    Host,
    Wires,
    arrival,
    begin_term,
    entries_of,
    mark,
    opening,
    same,
    store,
    write,
)

from roundelay.group.log.messages import Chunk


def grown(host: Host, *, terms: int = 3, packets: int = 20, size: int = 10) -> None:
    """Give a host a log of several terms."""
    number = 0
    for term in range(1, terms + 1):
        begin_term(host, term)
        for i in range(packets):
            write(host, arrival(number, count=3, size=size))
            number += 3
            if i % 7 == 0:
                write(host, opening(f"s{term}.{i}"))
        write(host, opening(f"end of {term}"))


def enter(hosts: list[Host], seq: int, donors: tuple[str, ...] = ("a",)) -> None:
    """All enter a view, which adopts the log of the first host."""
    target = hosts[0].state.place
    for host in hosts:
        host.enter(mark(seq, target), target, donors)


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
