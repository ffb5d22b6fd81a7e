"""The same commands make the same state, at every node and over every snapshot."""

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from roundelay.core.ids import ViewId
from roundelay.core.log import NAMED
from roundelay.structures import (
    Barrier,
    Counter,
    Leader,
    Lock,
    Locks,
    Machine,
    Map,
    Queue,
    Semaphore,
    Set,
)
from roundelay.structures.replica import TICK, LogEntry, Replica, command_head
from roundelay.structures.values import Value, dumps, pack_value

MACHINES: dict[str, Callable[[], Machine]] = {
    "barrier": Barrier,
    "counter": Counter,
    "leader": Leader,
    "lock": Lock,
    "locks": Locks,
    "map": Map,
    "queue": Queue,
    "semaphore": Semaphore,
    "set": Set,
}
SESSIONS = [1, 2, 3, NAMED | 4, NAMED | 5]
SMALL = st.integers(0, 3)
KEYS = st.sampled_from(["x", "y", "z", "xx"])
ANY: st.SearchStrategy[Any] = (
    st.none() | SMALL | st.lists(SMALL, max_size=2) | st.binary(max_size=2)
)
TTL = st.none() | st.sampled_from([0.5, 1.0, 3.0])
KINDS: dict[object, st.SearchStrategy[Any]] = {
    "handle": SMALL,
    "parties": st.integers(0, 3),
    "limit": st.integers(0, 3),
    "label": KEYS,
    "wait": st.booleans(),
    "amount": st.integers(),
    "number": st.integers(-2, 2),
    "key": KEYS,
    "name": KEYS,
    "prefix": st.sampled_from(["", "x"]),
    "value": ANY,
    "member": ANY,
    "ttl_s": TTL,
    "version": st.none() | st.integers(0, 20),
    "items": st.dictionaries(KEYS, SMALL, max_size=3),
    "priority": st.integers(-1, 1),
    "id": st.integers(0, 20),
    "token": st.integers(0, 20),
    ("counter", "expected"): SMALL,
    ("map", "expected"): ANY,
}


def commands_of(name: str) -> st.SearchStrategy[bytes]:
    cls = type(MACHINES[name]())
    choices = []
    for method in cls._writes.values():
        arguments = method.arguments(cls)
        values = [KINDS[(name, n) if (name, n) in KINDS else n] for n in arguments.names]
        choices.append(st.tuples(*values).map(arguments.command))
    return st.one_of(choices).map(lambda command: command_head(name) + command)


COMMANDS = {name: commands_of(name) for name in MACHINES}
STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.one_of(*COMMANDS.values(), st.just(TICK), st.just(b"of others")),
            st.sampled_from(SESSIONS),
            st.integers(0, 3_000_000),
        ),
        st.sets(st.sampled_from([1, 2, 3]), min_size=1).map(sorted),
    ),
    max_size=30,
)


def made() -> Replica:
    return Replica({name: make() for name, make in MACHINES.items()})


def run(replica: Replica, step: Any, term: int, clock_us: int) -> bytes | None:
    if isinstance(step, list):
        replica.begin_term(ViewId(term, "a"), {f"n{session}": session for session in step})
        return None
    payload, session, _ = step
    index = replica.index
    return replica.apply(
        LogEntry(index, payload, ViewId(term, "a"), f"n{session % 8}", session, index, clock_us)
    )


@given(STEPS, st.data())
def test_a_snapshot_taken_anywhere_and_the_rest_of_the_log_give_what_the_whole_log_gives(
    steps, data
):
    whole, fresh = made(), made()
    cut = data.draw(st.integers(0, len(steps)))
    clock_us = 0
    for place, step in enumerate(steps):
        if place == cut:
            fresh.restore(list(whole.snapshot()))
        clock_us += 0 if isinstance(step, list) else step[2]
        reply = run(whole, step, place, clock_us)
        if place >= cut:
            assert run(fresh, step, place, clock_us) == reply
    if cut == len(steps):
        fresh.restore(list(whole.snapshot()))
    assert list(fresh.snapshot()) == list(whole.snapshot())
    assert fresh.status() == whole.status()
    assert fresh.due_us() == whole.due_us()


@given(STEPS)
def test_two_nodes_agree_in_replies_and_in_their_snapshots(steps):
    one, two = made(), made()
    clock_us = 0
    for place, step in enumerate(steps):
        clock_us += 0 if isinstance(step, list) else step[2]
        assert run(one, step, place, clock_us) == run(two, step, place, clock_us)
        list(one.snapshot())  # Taking one changes nothing.
    assert list(one.snapshot()) == list(two.snapshot())


@given(st.lists(st.tuples(KEYS, SMALL | st.lists(SMALL)), max_size=20))
def test_the_order_of_keys_is_that_of_the_log(pairs):
    replica = Replica({"": Map()})
    expected: dict[str, Value] = {}
    for index, (key, value) in enumerate(pairs):
        payload = command_head("") + dumps(["set", 1, key, pack_value(value), None])
        replica.apply(LogEntry(index, payload, ViewId(1, "a"), "a", 1, index, 0))
        expected[key] = value
    machine = replica.machines[""]
    assert isinstance(machine, Map)
    assert [(key, slot.value) for key, slot in machine._slots.items()] == list(expected.items())
