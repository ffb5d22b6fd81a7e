"""The judge of what clients of real nodes wrote down convicts notes that no sound group leaves."""

import json
from pathlib import Path
from typing import Any

import pytest

from roundelay.bench.histories.run import judge
from roundelay.check.verdict import Validity
from roundelay.cli.bench import histories as command

Line = dict[str, Any]


def call(client: str, op: str, argument: Any, key: str = "", *, reads: bool = False) -> Line:
    return {"call": [client, key, op, argument, reads]}


def reply(what: Any) -> Line:
    return {"reply": what}


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
