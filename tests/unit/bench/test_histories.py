"""The judge of what clients of real nodes wrote down convicts notes that no sound group leaves."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.journal.logs import entries, mark, open_journal

from roundelay.bench.histories.replay import entries_of
from roundelay.bench.histories.run import judge
from roundelay.check.verdict import Validity
from roundelay.cli.bench import histories as command
from roundelay.core.ids import ViewId
from roundelay.structures.replica import LogEntry, command_head
from roundelay.structures.values import dumps

Line = dict[str, Any]


def call(client: str, op: str, argument: Any, key: str = "", *, reads: bool = False) -> Line:
    return {"call": [client, key, op, argument, reads]}


def reply(what: Any, index: int | None = None) -> Line:
    return {"reply": what} if index is None else {"reply": what, "index": index}


def log_of(*commands: list[object]) -> list[LogEntry]:
    """A log of these commands, with a payload of others at its beginning."""
    payloads = [b"of others", *(command_head("") + dumps(command) for command in commands)]
    return [
        LogEntry(n, payload, ViewId(1, "a"), "a", 7, n, 0) for n, payload in enumerate(payloads)
    ]


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
                {"took": 1, "token": 3, "client": "a0", "asked": 1.0, "got": 2.0},
                {"ended": 3, "done": False, "at": 3.0},
            ],
            [
                {"took": 1, "token": 4, "client": "b0", "asked": 4.0, "got": 5.0},
                {"ended": 4, "done": True, "at": 6.0},
            ],
        ],
        [
            [
                {"took": 1, "token": 3, "client": "a0", "asked": 1.0, "got": 2.0},
                {"ended": 3, "done": True, "at": 3.0},
            ],
            [
                {"took": 1, "token": 4, "client": "b0", "asked": 4.0, "got": 5.0},
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


ADDED = log_of(["add", 1, 1], ["add", 1, 1], ["add", 1, 1])
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
    assert judge("own", tmp_path / "own", log_of(["pay", 1, "x", 3], ["pay", 1, "x", -4])) == (
        judge("own", tmp_path / "own")
    )
    kept = log_of(
        ["set", 1, "x", 5, None], ["delete", 1, "x"], ["compare_and_set", 1, "x", 5, 6, None]
    )
    lines = [
        *(call("a0", "set", 5, "x"), reply(1, 1), call("a0", "get", None, "x", reads=True)),
        *(reply(5, 2), call("a0", "delete", None, "x"), reply(True, 2)),
        *(call("a0", "compare_and_set", [5, 6], "x"), reply(False, 3)),
    ]
    write(tmp_path / "map", lines)
    assert judge("map", tmp_path / "map", kept).validity is Validity.OK


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
    """It is on the disks of a majority, so that no later view can be without it."""
    for node, known, kept in (("a", 2, 4), ("b", 1, 3), ("c", 2, 2)):
        journal = open_journal(tmp_path / node / "orders")
        journal.append([mark()])
        journal.committed = known
        journal.append([entries(0, kept)])
        journal.close()
    assert [entry.index for entry in entries_of(tmp_path, "abc")] == [0, 1, 2]
