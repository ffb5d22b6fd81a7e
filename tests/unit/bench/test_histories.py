"""The judge of what clients of real nodes wrote down convicts notes that no sound group leaves."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.unit.journal.logs import LOG, T1, T2, entries, mark, open_journal

from roundelay.bench.histories.member import BRIEF, KINDS
from roundelay.bench.histories.replay import KeptLog, log_of
from roundelay.bench.histories.run import judge
from roundelay.check.verdict import Validity
from roundelay.cli.bench import histories as command
from roundelay.core.ids import ViewId
from roundelay.core.log import Mark
from roundelay.structures import Lock, Machine, Map, Queue
from roundelay.structures.replica import LogEntry, Replica, command_head
from roundelay.structures.turns import Turns
from roundelay.structures.values import dumps

Line = dict[str, Any]


def call(client: str, op: str, argument: Any, key: str = "", *, reads: bool = False) -> Line:
    return {"call": [client, key, op, argument, reads]}


def reply(what: Any, index: int | None = None) -> Line:
    return {"reply": what} if index is None else {"reply": what, "index": index}


def logged(*commands: list[object]) -> KeptLog:
    """A log of these commands, with a payload of others at its beginning."""
    payloads = [b"of others", *(command_head("") + dumps(command) for command in commands)]
    return KeptLog(
        [LogEntry(n, payload, ViewId(1, "a"), "a", 7, n, 0) for n, payload in enumerate(payloads)]
    )


def write(directory: Path, *lives: list[Line]) -> None:
    """Notes of several lives, whose operations come one after the other: the times are those of the
    order in which lines are given, life by life."""
    directory.mkdir(parents=True, exist_ok=True)
    moment = 0.0
    for n, lines in enumerate(lives):
        text, number = "", 0
        for line in lines:
            moment += 1.0
            number += "call" in line
            given = {"id": number, "at": moment} if "call" in line or "reply" in line else {}
            text += json.dumps({**given, **line}) + "\n"
        (directory / f"saw-a-{n}").write_text(text)


SET = [call("a0", "set", 1, "x"), reply(3), call("a0", "set", 2, "x"), reply(4)]
STORIES: dict[str, tuple[str, list[list[Line]], list[list[Line]]]] = {
    "a value that was there before": (
        "map",
        [SET, [call("b0", "get", None, "x", reads=True), reply(2)]],
        [SET, [call("b0", "get", None, "x", reads=True), reply(1)]],
    ),
    "a comparison that cannot have held": (
        "map",
        [SET, [call("b0", "compare_and_set", [2, 5], "x"), reply(True)]],
        [SET, [call("b0", "compare_and_set", [1, 5], "x"), reply(True)]],
    ),
    "an addition that is gone": (
        "counter",
        [
            [call("a0", "add", 1), reply(1)],
            [call("b0", "add", 1)],
            [call("c0", "value", None, reads=True), reply(1)],
        ],
        [
            [call("a0", "add", 1), reply(1)],
            [call("b0", "add", 1)],
            [call("c0", "value", None, reads=True), reply(0)],
        ],
    ),
    "an addition that counted twice": (
        "counter",
        [[call("b0", "add", 1)], [call("c0", "value", None, reads=True), reply(1)]],
        [[call("b0", "add", 1)], [call("c0", "value", None, reads=True), reply(2)]],
    ),
    "an update of which a half is gone": (
        "map",
        [
            [call("a0", "update", {"x": 1, "y": 2}), reply(3)],
            [call("b0", "items", None, reads=True), reply({"x": 1, "y": 2})],
        ],
        [
            [call("a0", "update", {"x": 1, "y": 2}), reply(3)],
            [call("b0", "items", None, reads=True), reply({"x": 1})],
        ],
    ),
    "a value that was popped and is there": (
        "map",
        [SET, [call("b0", "pop", None, "x"), reply(2), call("b0", "pop", None, "x"), reply(None)]],
        [SET, [call("b0", "pop", None, "x"), reply(2), call("b0", "pop", None, "x"), reply(2)]],
    ),
    "a version that did not hold": (
        "map",
        [SET, [call("b0", "set_if", 5, "x"), reply(5)], [call("c0", "pop", None, "x"), reply(5)]],
        [
            SET,
            [call("b0", "set_if", 5, "x"), reply(None)],
            [call("c0", "pop", None, "x"), reply(5)],
        ],
    ),
    "money that nobody had": (
        "own",
        [[call("a0", "pay", ["x", 3]), reply(3)], [call("b0", "pay", ["x", -3]), reply(0)]],
        [[call("a0", "pay", ["x", 3]), reply(3)], [call("b0", "pay", ["x", -4]), reply(0)]],
    ),
    "a token that was given twice": (
        "lock",
        [
            [{"hold": 5, "client": "a0", "asked": 1.0, "got": 2.0}],
            [{"hold": 6, "client": "b0", "asked": 1.0, "got": 2.0}],
        ],
        [
            [{"hold": 5, "client": "a0", "asked": 1.0, "got": 2.0}],
            [{"hold": 5, "client": "b0", "asked": 1.0, "got": 2.0}],
        ],
    ),
    "a lock that two held": (
        "lock",
        [
            [{"hold": 5, "client": "a0", "asked": 1.0, "got": 2.0}, {"gave": 5, "at": 4.0}],
            [{"hold": 6, "client": "b0", "asked": 1.0, "got": 4.5}],
        ],
        [
            [{"hold": 5, "client": "a0", "asked": 1.0, "got": 2.0}, {"gave": 5, "at": 4.0}],
            [{"hold": 6, "client": "b0", "asked": 1.0, "got": 3.5}],
        ],
    ),
    "an item that was done twice": (
        "queue",
        [
            [
                {"took": [1, 3, 0], "client": "a0", "asked": 1.0, "got": 2.0},
                {"ended": 3, "done": False, "at": 3.0},
            ],
            [
                {"took": [1, 4, 0], "client": "b0", "asked": 4.0, "got": 5.0},
                {"ended": 4, "done": True, "at": 6.0},
            ],
        ],
        [
            [
                {"took": [1, 3, 0], "client": "a0", "asked": 1.0, "got": 2.0},
                {"ended": 3, "done": True, "at": 3.0},
            ],
            [
                {"took": [1, 4, 0], "client": "b0", "asked": 4.0, "got": 5.0},
                {"ended": 4, "done": True, "at": 6.0},
            ],
        ],
    ),
}


@pytest.mark.parametrize("story", STORIES)
def test_a_planted_history_is_convicted_and_the_sound_one_beside_it_is_not(tmp_path, story):
    kind, sound, planted = STORIES[story]
    write(tmp_path / "sound", *sound)
    write(tmp_path / "planted", *planted)
    assert judge(kind, tmp_path / "sound").validity is Validity.OK
    verdict = judge(kind, tmp_path / "planted")
    assert verdict.validity is Validity.VIOLATED
    assert verdict.reason
    assert verdict.witness


ADDED = logged(["add", 1, 1], ["add", 1, 1], ["add", 1, 1])
PLACES = {
    "each reply is that of its place": (
        [call("a0", "add", 1), reply(1, 1), call("a0", "value", None, reads=True), reply(1, 2)],
        Validity.OK,
    ),
    "a read of an older log than a write before it": (
        [call("a0", "add", 1), reply(1, 1), call("a0", "value", None, reads=True), reply(0, 1)],
        Validity.VIOLATED,
    ),
    "a write that stands before one that had returned": (
        [call("a0", "add", 1), reply(2, 2), call("a0", "add", 1), reply(1, 1)],
        Validity.VIOLATED,
    ),
    "a reply that the log does not give there": (
        [call("a0", "add", 1), reply(1, 2)],
        Validity.VIOLATED,
    ),
    "an index beyond the log": ([call("a0", "add", 1), reply(4, 4)], Validity.VIOLATED),
    "a reply without an index": (
        [call("a0", "add", 1), reply(1, 1), call("a0", "add", 1), reply(2)],
        Validity.INCONCLUSIVE,
    ),
    "no index at all": ([call("a0", "add", 1), reply(1)], Validity.VACUOUS),
}


@pytest.mark.parametrize("story", PLACES)
def test_indexes_of_replies_are_held_against_the_log(tmp_path, story):
    lines, expected = PLACES[story]
    write(tmp_path, lines)
    assert judge("counter", tmp_path, ADDED).validity is expected


def test_what_the_log_says_convicts_where_a_search_finds_an_order(tmp_path):
    """Two additions at once could stand in either order; the log tells in which they stand."""
    lines = [call("a0", "add", 1), reply(2, 1)], [call("b0", "add", 1), reply(1, 2)]
    write(tmp_path, *lines)
    for path in tmp_path.glob("saw-*"):
        text = path.read_text()
        called, answered = map(json.loads, text.splitlines())
        called["at"], answered["at"] = 1.0, 5.0
        path.write_text(f"{json.dumps(called)}\n{json.dumps(answered)}\n")
    assert judge("counter", tmp_path).validity is Validity.OK
    assert judge("counter", tmp_path, ADDED).property == "H2"
    assert judge("counter", tmp_path, ADDED).validity is Validity.VIOLATED


def test_refusals_and_keys_have_places_too(tmp_path):
    write(
        tmp_path / "own",
        [call("a0", "pay", ["x", 3]), reply(3, 1), call("a0", "pay", ["x", -4]),
         reply(["refused", "x has 3"], 2), call("a0", "total", [], reads=True), reply(3, 3)],
    )  # fmt: skip
    assert judge("own", tmp_path / "own", logged(["pay", 1, "x", 3], ["pay", 1, "x", -4])) == (
        judge("own", tmp_path / "own")
    )
    kept = logged(
        ["set", 1, "x", 5, None], ["delete", 1, "x"], ["compare_and_set", 1, "x", 5, 6, None]
    )
    lines = [
        *(call("a0", "set", 5, "x"), reply(1, 1), call("a0", "get", None, "x", reads=True)),
        *(reply(5, 2), call("a0", "delete", None, "x"), reply(True, 2)),
        *(call("a0", "compare_and_set", [5, 6], "x"), reply(False, 3)),
    ]
    write(tmp_path / "map", lines)
    assert judge("map", tmp_path / "map", kept).validity is Validity.OK


# What machines with a bug in them leave behind

SESSIONS = {"a": 5, "b": 6, "c": 8}
LOST_B = Mark(T2, 0, ("a", "c"), ("a", "c"), (5, 8), 0, LOG)
"""Its base is of no importance here."""
Step = tuple[str, str, list[Any]] | Mark


def left_by(kind: str, steps: Sequence[Step], directory: Path) -> KeptLog:
    """The log of these commands, each with its node, and notes of what their clients saw who used a
    machine as it is now, also of the turns and items that they got."""
    log, lines, marks = list[LogEntry](), list[Line](), list[Mark]()
    asked = dict[tuple[int, int], int]()
    machine = KINDS[kind][0]()
    replica, methods, term = Replica({"": machine}), machine.write_arguments(), T1
    for step in steps:
        if isinstance(step, Mark):
            marks.append(step)
            term = step.term
            replica.begin_term(term, dict(zip(step.members, step.sessions, strict=True)))
            continue
        node, op, arguments = step
        index, session = len(log), SESSIONS[node]
        command = command_head("") + dumps([op, 1, *arguments])
        log.append(LogEntry(index, command, term, node, session, index, 1_000_000 * index))
        told = replica.apply(log[-1])
        assert told is not None
        key, given = (arguments[0], arguments[-1]) if kind == "map" else ("", arguments)
        begun = {**call(node, op, given, key), "at": 2.0 * index}
        ended = {**reply(methods[op].decode_reply(told), index), "at": 2.0 * index + 1}
        lines += [begun, ended]
        if op == "ask":
            asked[session, arguments[0]] = index
        for claim, since in list(asked.items()):
            if (found := got(machine, *claim)) is not None:
                del asked[claim]
                moments = {"asked": 2.0 * since, "got": 2.0 * index + 1}
                about = {"claim": claim, "index": index + 1, "client": node}
                lines.append({**found, **about, **moments})
    write(directory, lines)
    return KeptLog(log, marks)


def got(machine: Machine, session: int, handle: int) -> Line | None:
    match machine:
        case Lock():
            claim = machine.claim(session, handle)
            return {"hold": claim.token} if claim is not None and claim.number else None
        case Queue():
            taken = machine.taken_by(session, handle)
            if taken is not None:
                return {"took": [taken.item.id, taken.token, taken.item.value]}
    return None


ASKED: list[Step] = [("a", "ask", [1]), ("b", "ask", [1]), ("c", "ask", [1])]
PUT: list[Step] = [("a", "put", [n]) for n in (7, 8, 9)]
SET_AND_POP: list[Step] = [("a", "set", ["x", 5]), ("b", "pop", ["x"])]


class Plant(NamedTuple):
    """A bug, and commands that show it."""

    kind: str
    steps: list[Step]
    method: tuple[type[Machine], str]
    bug: Callable[[Any], Callable[..., object]]
    """Makes of the method what takes its place."""


PLANTED = {
    "order reversed": Plant(
        "queue",
        [*PUT, *ASKED],
        (Queue, "_hand_out"),
        lambda sound: lambda self: (self.items.sort(reverse=True), sound(self)),
    ),
    "item lost": Plant(
        "queue",
        PUT,
        (Queue, "_hand_out"),
        lambda sound: lambda self: self.items.pop() if self.now.index % 2 else None,
    ),
    "item lost as it is given back": Plant(
        "queue",
        [PUT[0], ASKED[0], ("a", "give_back", [0, 1])],
        (Queue, "_give_back"),
        lambda sound: lambda self, taken: self.taken.clear(),
    ),
    "lock given while somebody has it": Plant(
        "lock",
        ASKED,
        (Lock, "__init__"),
        lambda sound: lambda self: (sound(self), self.__setattr__("limit", 2))[0],
    ),
    "item lost with who had taken it": Plant(
        "queue",
        [*PUT, ("b", "ask", [1]), LOST_B, ("a", "put", [6])],
        (Queue, "on_term"),
        lambda sound: lambda self, sessions: self.taken.clear(),
    ),
    "lock given to the second": Plant(
        "lock",
        [*ASKED, ("a", "give", [1])],
        (Turns, "_fill"),
        lambda sound: lambda self: (self.waiting.reverse(), sound(self)),
    ),
    "lock kept by the lost": Plant(
        "lock",
        [("b", "ask", [1]), ("a", "ask", [1]), LOST_B, ("c", "ask", [1])],
        (Turns, "on_term"),
        lambda sound: lambda self, sessions: None,
    ),
    "value that is there after pop": Plant(
        "map",
        [*SET_AND_POP, ("a", "pop", ["x"])],
        (Map, "_delete"),
        lambda sound: lambda self, key: self._slots.get(key),
    ),
    "time to live by another clock": Plant(
        "map",
        [("a", "set", [BRIEF, 5, 2.5]), *3 * [("b", "pop", ["y"])], ("a", "pop", [BRIEF])],
        (Map, "_set"),
        lambda sound: lambda self, key, value, ttl_s: sound(self, key, value, ttl_s and ttl_s + 2),
    ),
    "version that comes again": Plant(
        "map",
        [*SET_AND_POP, ("a", "set", ["x", 5])],
        (Map, "_set"),
        lambda sound: lambda self, *given: min(1, sound(self, *given)),
    ),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_machine_is_convicted_by_its_log_and_the_sound_one_is_not(
    tmp_path, monkeypatch, bug
):
    kind, steps, method, planted = PLANTED[bug]
    assert judge(kind, tmp_path / "sound", left_by(kind, steps, tmp_path / "sound")).validity in (
        Validity.OK,
        Validity.VACUOUS,  # Nothing was taken, say.
    )
    monkeypatch.setattr(*method, planted(getattr(*method)))
    verdict = judge(kind, tmp_path / "planted", left_by(kind, steps, tmp_path / "planted"))
    assert verdict.validity is Validity.VIOLATED
    assert verdict.reason


def test_a_turn_that_another_was_granted_is_found_where_all_replies_are_right(tmp_path):
    log = left_by("lock", [*ASKED, ("a", "give", [1])], tmp_path)
    (path,) = tmp_path.glob("saw-*")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    (second,) = (line for line in lines if line.get("hold") == 3)
    assert second["claim"] == [6, 1]
    second["claim"] = [8, 1]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    verdict = judge("lock", tmp_path, log)
    assert (verdict.property, verdict.validity) == ("H2", Validity.VIOLATED)
    assert verdict.witness[-1].op == "granted"


def test_half_of_an_update_is_seen_by_nobody(tmp_path):
    """While it is under way: key by key there is an order, of all of them there is none."""
    log = logged(["update", 1, {"x": 1, "y": 2}, None])
    told = {"at": 1.0, **call("a0", "update", {"x": 1, "y": 2}), "id": 1}
    for seen, index in (({"x": 1, "y": 2}, 2), ({}, 1), ({"x": 1}, 2), ({"y": 2}, 1)):
        lines = [
            *(told, {"at": 2.0, **call("b0", "items", None, reads=True), "id": 2}),
            *({"id": 2, "at": 3.0, **reply(seen, index)}, {"id": 1, "at": 4.0, **reply(1, 1)}),
        ]
        (tmp_path / "saw-a-0").write_text("".join(json.dumps(line) + "\n" for line in lines))
        assert judge("map", tmp_path).validity is Validity.OK
        expected = Validity.VIOLATED if len(seen) == 1 else Validity.OK
        assert judge("map", tmp_path, log).validity is expected


BEATS = [{"beat": n / 50} for n in range(1, 200)]
HELD = {"hold": 5, "client": "a0", "asked": 0.9, "got": 1.0}
NEXT = {"hold": 6, "client": "b0", "asked": 1.0, "got": 2.0}


@pytest.mark.parametrize(
    ("of_the_first", "expected"),
    [
        ([*BEATS, {"lost": 5, "at": 1.9}], Validity.OK),
        ([*BEATS, {"lost": 5, "at": 2.02}], Validity.OK),  # Its note may be late.
        ([*BEATS, {"lost": 5, "at": 2.1}], Validity.VIOLATED),
        (BEATS, Validity.VIOLATED),
        ([*BEATS, {"giving": 5, "at": 1.5}], Validity.OK),  # It knows that it has it no more.
        ([*BEATS[:60], *BEATS[90:]], Validity.OK),  # It was stopped for a while,
        (BEATS[:90], Validity.OK),  # killed before,
        (BEATS[90:], Validity.OK),  # or nobody knows.
    ],
)
def test_a_holder_that_runs_is_told_before_another_gets_the_lock(tmp_path, of_the_first, expected):
    write(tmp_path, [HELD, *of_the_first], [NEXT])
    assert judge("lock", tmp_path).validity is expected


def test_half_a_line_of_a_killed_node_is_left_out(tmp_path):
    write(tmp_path, SET)
    with (tmp_path / "saw-a-0").open("a") as notes:
        notes.write('{"id": 3, "ca')
    assert judge("map", tmp_path).instances == 2


def test_a_conviction_is_told_and_ends_with_1(tmp_path, monkeypatch, capsys):
    import argparse

    from roundelay.bench.histories import run as runs

    def perform(run: runs.Run, directory: Path) -> runs.Outcome:
        kind, sound, planted = STORIES["an addition that is gone"]
        write(directory, *(planted if run.seed == 2 else sound))
        return runs.Outcome(run, judge(kind, directory), {})

    monkeypatch.setattr(runs, "perform", perform)
    parser = argparse.ArgumentParser()
    command.configure(parser)
    out = str(tmp_path / "out")
    told = ["--runs", "2", "--kind", "counter", "--json", "--output", out]
    assert command.run(parser.parse_args(told)) == 1
    shown = json.loads(capsys.readouterr().out)
    assert (shown["ok"], shown["violated"]) == (1, 1)
    assert [bad["seed"] for bad in shown["bad"]] == [2]
    told[-1] = f"{out}-2"
    assert command.run(parser.parse_args([*told[:1], "1", *told[2:]])) == 0


def test_an_entry_that_only_a_killed_node_knew_to_be_committed_is_in_the_log(tmp_path):
    """It is on the disks of a majority, so that no later view can be without it. A mark behind the
    last such entry may be of a view that never opened."""
    for node, known, kept in (("a", 2, 4), ("b", 1, 3), ("c", 2, 2)):
        journal = open_journal(tmp_path / node / "orders")
        journal.append([mark()])
        journal.committed = known
        journal.append([entries(0, kept), mark(T2, kept)])
        journal.close()
    log = log_of(tmp_path, "abc")
    assert [entry.index for entry in log.entries] == [0, 1, 2]
    assert list(log.marks) == [mark()]
