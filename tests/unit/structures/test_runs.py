"""Entries applied together come to the same as each by itself."""

import json
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundelay.core.ids import ViewId
from roundelay.core.log import NAMED
from roundelay.structures import Counter, Machine, MachineError, Map, Refused, UpgradeError, write
from roundelay.structures.arguments import ALIKE_MIN, Arguments, read_alike
from roundelay.structures.replica import (
    TICK,
    Issued,
    LogEntry,
    Replica,
    Run,
    announcement,
    command_head,
)
from roundelay.structures.values import SHORT_TEXT, dumps

TERM = ViewId(1, "a")


@dataclass
class Pair:
    left: int
    right: list[str]


class Shelf(Machine):
    """Has methods of every sort."""

    seen: list[str]

    def __init__(self) -> None:
        self.seen = []

    @write
    def note(self, text: str, times: int = 1) -> str:
        if times < 0:
            raise Refused(f"not {times} times \ud800")
        now = self.now
        self.seen.append(f"{now.index} {now.sender} {now.session} {now.version} {text}")
        return text * times

    @write
    def by_name(self, *, text: str) -> list[str]:
        self.seen.append(text)
        return self.seen

    @write
    def pair(self, pair: Pair) -> Pair:
        return Pair(pair.left + 1, pair.right)

    @write(version=3)
    def number(self, number: int) -> int:
        return number * number

    @write
    def any(self, value: Any) -> Any:
        return value

    @write
    def fail(self) -> None:
        raise KeyError("x")

    @write
    def lie(self) -> int:
        return "text"  # type: ignore[return-value]


def replica() -> Replica:
    return Replica({"s": Shelf(), "m": Map(), "": Counter()})


def run_of(
    payloads: list[bytes], index: int = 0, number: int | None = None, session: int = 7
) -> Run:
    return Run(index, payloads, TERM, "a", session, index if number is None else number, 5_000_000)


def command(name: str, *packed: object) -> bytes:
    return command_head(name) + dumps(list(packed))


WORDS = st.text('aä"\\\n\u05e9\x00', max_size=5)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=2),
    max_leaves=3,
)
COMMANDS = st.one_of(
    st.builds(lambda text, times: command("s", "note", 1, text, times), WORDS, st.integers(-1, 3)),
    st.builds(lambda text: command("s", "note", 1, text), WORDS),
    st.builds(lambda text: command("s", "by_name", 1, text), WORDS),
    st.builds(lambda n, v: command("s", "number", v, n), st.integers(), st.integers(-1, 3)),
    st.builds(
        lambda key, value: command_head("m") + json.dumps(["set", 1, key, value, None]).encode(),
        st.sampled_from("xyz"),
        VALUES,
    ),
    st.builds(
        lambda key, ttl_s: command("m", "set", 1, key, 1, ttl_s),
        st.sampled_from("xyz"),
        st.sampled_from([1e-7, 0.5, 2.0, -1.0]),
    ),
    st.builds(lambda amount: command("", "add", 1, amount), st.integers(-3, 3)),
    st.sampled_from(
        [
            TICK,
            announcement({"": 1}),
            b"of others",
            command("s", "pair", 1, {"left": 1, "right": ["x"]}),
            command("s", "any", 1, {"a": [1]}),
            command("s", "any", 1, "x" * SHORT_TEXT),
            command("s", "any", 1, 10**1100),
            command("s"),
            command("s", 1, 2),
            command("s", [], 1),
            command("s", {"a": 1}, 1),
            command_head("s") + b'["note",1,"\\ud800",1]',
            command_head("s") + b'["any",1,NaN]',
            command_head("s") + b'["any",1,"x"],["any",1,"y"',
            command_head("s") + b'["any",1,"x"] ',
            command_head("s") + b'["any",1,"x"]\n',
            command_head("s") + b"[" * 900,
            command_head("s") + b"\xff",
            command("s", "note", 1),
            command("s", "note", True, "x", 1),
            command("s", "note", 1, "x", True),
            command("s", "note", 2, "x", 1),
            command("s", "unknown", 1),
            command("s", "fail", 1),
            command("s", "lie", 1),
            command("other", "add", 1, 1),
            b"\xd7\x01\x05ab",
            b"\xd7\x09",
        ]
    ),
)


def one_by_one(payloads: list[bytes]) -> tuple[Replica, list[bytes | None], str]:
    made, replies = replica(), []
    try:
        for n, payload in enumerate(payloads):
            replies.append(made.apply(LogEntry(n, payload, TERM, "a", 7, n, 5_000_000)))
    except MachineError as e:
        return made, replies, f"{type(e).__name__} {e}"
    return made, replies, ""


@given(st.lists(COMMANDS, max_size=12), st.lists(st.integers(1, 6), min_size=1))
def test_entries_together_come_to_the_same_as_each_by_itself(payloads, sizes):
    expected, replies, error = one_by_one(payloads)
    made, at, said = replica(), 0, ""
    try:
        while at < len(payloads):
            size = sizes[at % len(sizes)]
            made.apply_all(run_of(payloads[at : at + size], at))
            at += size
    except MachineError as e:
        said = f"{type(e).__name__} {e}"
    assert said == error
    assert b"".join(made.snapshot()) == b"".join(expected.snapshot())
    if not error:
        assert len(replies) == made.index == len(payloads)


NOTES = st.lists(
    st.one_of(
        st.builds(lambda text: command("s", "note", 1, text, 2), st.text("aä\u05e9 ", max_size=4)),
        st.builds(lambda number: command("s", "note", 1, "x", number), st.integers(-1, 3)),
    ),
    min_size=5,
    max_size=9,
)
TRICKS = [
    b'["note",1,"a",1],["note",1,"b",1]',
    b'["note",1,"a",1',
    b'"b"]',
    b"1]",
    b"",
    b" ",
    b'["note",1,"a",1] ',
    b' ["note",1,"a",1]',
    b'["note",1,"a",1]\n',
    b'["note",1,"a",1],\n["note",1,"a",1]',
    b'["note",1,"a]',
    b'[",1,"]',
    b'["note",1,"\\u005b",1]',
    b'["note",1,"[",1]',
    b'["note",1,"a",[]]',
    b'["note",1,{},1]',
    b'["note",true,"a",1]',
    b'["note",1.0,"a",1]',
    b'["note",2,"a",1]',
    b'["note",1,"a",true]',
    b'["note",1,"a",NaN]',
    b'["note",1,"a"]',
    b'["note"]',
    b"[]",
    b"[[],1]",
    b'["number",1,2]',
    b'["note",1,"\xff",1]',
    b'["note",1,"' + b"a" * SHORT_TEXT + b'",1]',
]
"""What stands behind the name of the machine, in commands that look like others or are none."""


@given(NOTES, st.lists(st.tuples(st.integers(0, 9), st.sampled_from(TRICKS)), max_size=3))
def test_commands_that_are_read_at_once_are_what_each_is_by_itself(payloads, tricks):
    for place, text in tricks:
        payloads.insert(min(place, len(payloads)), command_head("s") + text)
    expected, _, error = one_by_one(payloads)
    made, said = replica(), ""
    try:
        made.apply_all(run_of(payloads))
    except MachineError as e:
        said = f"{type(e).__name__} {e}"
    assert (said, made.index) == (error, expected.index)
    assert b"".join(made.snapshot()) == b"".join(expected.snapshot())


def alike(payloads: list[bytes], machine: str = "s") -> bool:
    made = replica().machines[machine]
    return read_alike(payloads, command_head(machine), made.write_arguments()) is not None


def test_commands_of_one_method_are_read_at_once():
    sound = command("s", "note", 1, "a", 1)
    assert alike([sound] * ALIKE_MIN)
    assert alike([command("s", "number", 3, 5)] * ALIKE_MIN)
    assert not alike([sound] * (ALIKE_MIN - 1))
    for text in TRICKS:
        assert not alike([sound, sound, command_head("s") + text, sound, sound]), text
    assert not alike([sound] * 4 + [command("m", "set", 1, "a", 1, None)])
    assert not alike([command("s", "by_name", 1, "x")] * 5)


def test_a_time_that_ends_among_commands_read_at_once_ends_there():
    """A life of no time at all is over at the next entry."""
    payloads = [command("m", "set", 1, f"k{n}", n, None) for n in range(5)]
    made, other = replica(), replica()
    first = command("m", "set", 1, "old", 1, 1e-7)
    for replica_, together in ((made, True), (other, False)):
        replica_.apply_all(run_of([first]))
        if together:
            replica_.apply_all(run_of(payloads, 1))
        else:
            for n, payload in enumerate(payloads):
                replica_.apply_all(run_of([payload], n + 1))
    assert b"".join(made.snapshot()) == b"".join(other.snapshot())
    assert made.machines["m"].status() == {"size": 5}


class Hasty(Counter):
    """Wants to be called at every entry behind each that made it odd."""

    def due_us(self) -> int | None:
        return 0 if self.number % 2 else None

    def on_time(self) -> None:
        self.number += 10


def test_what_becomes_due_among_commands_read_at_once_is_done_before_the_next():
    made, other = Replica({"": Hasty()}), Replica({"": Hasty()})
    payloads = [command("", "add", 1, 1)] * 6
    assert read_alike(payloads, command_head(""), made.machines[""].write_arguments()) is not None
    made.apply_all(run_of(payloads))
    for n, payload in enumerate(payloads):
        other.apply(LogEntry(n, payload, TERM, "a", 7, n, 5_000_000))
    assert made.status() == other.status() != {"": {"value": 6}}


def method(made: Replica, machine: str, name: str) -> Arguments:
    return made.machines[machine].write_arguments()[name]


CALLS = [
    ("s", "note", ("x", 2)),
    ("s", "note", ('"ä', 2)),
    ("s", "note", ("x", -1)),
    ("s", "by_name", ("x",)),
    ("s", "pair", (Pair(1, ["x"]),)),
    ("s", "number", (10**40,)),
    ("s", "number", (True,)),
    ("s", "any", ([1, {"a": b"x"}],)),
    ("s", "any", ("ä",)),
    ("s", "any", ("x" * SHORT_TEXT,)),
    ("s", "any", (1.5,)),
    ("m", "set", ("k", 1, None)),
    ("m", "get", None),
    ("", "add", (3,)),
]


@pytest.mark.parametrize("call", [call for call in CALLS if call[2] is not None])
def test_who_waits_gets_what_the_reply_would_be_read_as(call):
    machine, name, given_ = call
    made = replica()
    arguments = method(made, machine, name)
    simple = arguments.simple_command(given_)
    payload = command_head(machine) + arguments.command(given_)
    assert simple is None or command_head(machine) + simple == payload
    expected = one_by_one([payload])[1][0]
    assert expected is not None
    kept = None if simple is None else given_
    waiting: dict[int, Issued] = {3: (machine, arguments, kept, "caller")}
    ((issued, index, reply, error),) = made.apply_all(run_of([payload], number=3), waiting)
    assert (issued[3], index, waiting) == ("caller", 0, {})
    if isinstance(error, Refused):
        assert error.index == 0
        with pytest.raises(Refused, match="^" + str(error).replace("?", r"\?") + "$"):
            arguments.decode_reply(expected)
    else:
        found = arguments.decode_reply(expected)
        assert (reply, type(reply)) == (found, type(found))


@pytest.mark.parametrize(
    ("machine", "name", "given_"),
    [
        ("s", "note", ("x", True)),
        ("s", "note", ("x" * SHORT_TEXT, 1)),
        ("s", "note", ("\ud800", 1)),
        ("s", "note", ("x",)),
        ("s", "number", (10**1200,)),
        ("s", "any", (1.0,)),
        ("s", "any", ([],)),
        ("s", "pair", (Pair(1, []),)),
    ],
)
def test_what_has_to_be_checked_is_not_simple(machine, name, given_):
    assert method(replica(), machine, name).simple_command(given_) is None


def test_a_reply_shares_nothing_with_the_state():
    made = replica()
    arguments = method(made, "s", "by_name")
    waiting: dict[int, Issued] = {0: ("s", arguments, None, None)}
    ((_, _, reply, _),) = made.apply_all(run_of([command("s", "by_name", 1, "x")]), waiting)
    reply.append("mine")
    shelf = made.machines["s"]
    assert isinstance(shelf, Shelf)
    assert shelf.seen == ["x"]


def test_one_that_refuses_does_not_spoil_its_neighbours():
    made = replica()
    arguments = method(made, "s", "note")
    calls: list[tuple[Any, ...]] = [("x", 1), ("y", -1), ("z", 1)]
    waiting: dict[int, Issued] = {n: ("s", arguments, call, n) for n, call in enumerate(calls)}
    payloads = [command("s", "note", 1, *call) for call in calls]
    answers = made.apply_all(run_of(payloads), waiting)
    assert [(issued[3], reply) for issued, _, reply, _ in answers] == [
        (0, "x"),
        (1, None),
        (2, "z"),
    ]
    assert [str(error) for _, _, _, error in answers if error] == ["not -1 times ?"]


def test_who_waits_for_the_state_is_asked_after_each_entry():
    made = replica()
    seen: list[tuple[int, int]] = []

    def look() -> None:
        counter = made.machines[""]
        assert isinstance(counter, Counter)
        assert "now" not in vars(counter)
        seen.append((made.index, counter.number))

    made.apply_all(run_of([command("", "add", 1, 1)] * 3), None, look)
    assert seen == [(1, 1), (2, 2), (3, 3)]


def test_entries_together_come_in_order_too():
    with pytest.raises(MachineError, match="index 4 came where 0 was next"):
        replica().apply_all(run_of([TICK], index=4))


def test_named_sessions_are_applied_one_by_one():
    with pytest.raises(AssertionError, match="kept"):
        replica().apply_all(run_of([TICK], session=NAMED | 7))


def test_a_failure_in_the_middle_leaves_what_was_before():
    made = replica()
    with pytest.raises(UpgradeError):
        made.apply_all(run_of([command("", "add", 1, 1), b"\xd7\x09", command("", "add", 1, 1)]))
    assert (made.index, made.machines[""].status()) == (2, {"value": 1})
