"""How two checkouts of the project are compared, and what is refused."""

import argparse
import json
from types import SimpleNamespace

import pytest

from roundelay.bench import against
from roundelay.bench.against import HERE, THERE
from roundelay.cli import main
from roundelay.cli.bench import against as against_words
from roundelay.cli.bench import core, ring, sim

FAKE = """
import json, sys
with open({log!r}, "a") as log:
    log.write({side!r} + " " + " ".join(sys.argv[1:]) + "\\n")
print(json.dumps({{"engines": [
    {{"engine": "totem", "packing": True, "complete": True, "ns_per_delivery": {cost}}}
]}}))
"""


def checkout(tmp_path, side, cost):
    """A directory that looks like the project and prints one document."""
    package = tmp_path / side / "src" / "roundelay"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    program = FAKE.format(log=str(tmp_path / "log"), side=side, cost=cost)
    (package / "__main__.py").write_text(program)
    return tmp_path / side


def test_the_sides_take_turns_and_are_told_the_same(tmp_path, monkeypatch, capsys):
    here, there = checkout(tmp_path, "new", 50.0), checkout(tmp_path, "old", 200.0)
    package = SimpleNamespace(__file__=str(here / "src" / "roundelay" / "__init__.py"))
    monkeypatch.setattr(against, "roundelay", package)
    arguments = ["bench", "core", "--protocol", "totem", "fifo", "--messages", "20"]
    assert main([*arguments, "--rounds", "2", "--against", str(there), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    (figure,) = document["figures"]
    assert figure == {
        "name": "totem, packing on: ns/delivery",
        "rounds": 2,
        "here": 50.0,
        "there": 200.0,
        "ratio": 0.25,
        "lowest": 0.25,
        "highest": 0.25,
    }
    runs = (tmp_path / "log").read_text().splitlines()
    assert [run.split()[0] for run in runs] == ["old", "new", "new", "old"] * 2
    told = "bench core --protocol totem fifo --messages 20 --subset 1.0 --rounds 1 --json"
    assert {run.split(None, 1)[1] for run in runs} == {told}


FAILING = """
if open({log!r}).read().count("new") % 3 == 2:
    raise SystemExit("a false suspicion")
"""


def test_a_run_that_fails_is_left_out_and_counted(tmp_path, monkeypatch, capsys):
    """Here the second run of the first round fails, and the first of the third."""
    here, there = checkout(tmp_path, "new", 50.0), checkout(tmp_path, "old", 200.0)
    program = here / "src" / "roundelay" / "__main__.py"
    begin, end = program.read_text().split("print(")
    program.write_text(begin + FAILING.format(log=str(tmp_path / "log")) + "print(" + end)
    package = SimpleNamespace(__file__=str(here / "src" / "roundelay" / "__init__.py"))
    monkeypatch.setattr(against, "roundelay", package)
    arguments = ["bench", "core", "--rounds", "3", "--against", str(there)]
    assert main([*arguments, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [figure["rounds"] for figure in document["figures"]] == [1]
    sides = document["sides"]
    assert sides[HERE]["runs"] == sides[THERE]["runs"] == 6
    assert (sides[HERE]["failures"], sides[THERE]["failures"]) == (["a false suspicion"] * 2, [])


def test_what_should_not_have_happened_is_counted_for_both(tmp_path, monkeypatch):
    here, there = checkout(tmp_path, "new", 50.0), checkout(tmp_path, "old", 200.0)
    package = SimpleNamespace(__file__=str(here / "src" / "roundelay" / "__init__.py"))
    monkeypatch.setattr(against, "roundelay", package)
    found = against.compare(
        there,
        ["bench", "core"],
        core._figures,
        1,
        lambda done, total: None,
        lambda document: {"dear": int(document["engines"][0]["ns_per_delivery"] > 100)},
    )
    assert {name: side.troubles["dear"] for name, side in found.sides.items()} == {
        HERE: 0,
        THERE: 2,
    }
    cells = [{"suspicions": 2, "splits": 0}, {"suspicions": 1, "splits": 1}]
    assert ring._troubles({"throughput": cells}) == {"false suspicions": 3, "splits": 1}


def test_ratios_are_taken_within_a_round():
    """The machine is ten times as slow in the second round, and in the third one run fails."""
    rounds = [
        {HERE: {"rate": [10.0, 14.0]}, THERE: {"rate": [5.0, 7.0]}},
        {HERE: {"rate": [1.0, 2.0]}, THERE: {"rate": [1.0, 0.5]}},
        {HERE: {"rate": [100.0]}, THERE: {"rate": [1.0, 1.0]}},
        {HERE: {"rate": [3.0, 3.0]}, THERE: {"rate": [1.0, 1.0]}},
    ]
    (rate,) = against.comparisons(rounds)
    assert (rate.rounds, rate.ratio, rate.lowest, rate.highest) == (3, 2.0, 2.0, 3.0)
    assert (rate.here, rate.there) == (3.0, 1.0)


def test_what_no_round_has_on_both_sides_is_left_out():
    rounds = [{HERE: {"rate": [1.0, 1.0], "new": [1.0, 1.0]}, THERE: {"rate": [1.0, 1.0]}}]
    assert [found.name for found in against.comparisons(rounds)] == ["rate"]
    with pytest.raises(against.AgainstError, match="run it again"):
        against.comparisons([{HERE: {"new": [1.0, 1.0]}, THERE: {}}])


def test_a_directory_without_the_project(tmp_path, capsys):
    assert main(["bench", "sim", "--ring", "--against", str(tmp_path)]) == 2
    assert "git worktree add" in capsys.readouterr().err


def test_a_checkout_that_cannot_do_it_says_why(tmp_path, capsys):
    there = checkout(tmp_path, "old", 1.0)
    (there / "src" / "roundelay" / "__main__.py").write_text(
        "import sys; print('no such option', file=sys.stderr); sys.exit(2)"
    )
    assert main(["bench", "core", "--against", str(there)]) == 2
    assert "cannot be measured so: no such option" in capsys.readouterr().err


@pytest.mark.parametrize("option", [["--sealed"], ["--journal", "off"], ["--peer", "none"]])
def test_what_of_a_ring_is_not_compared(option, tmp_path, capsys):
    assert main(["bench", "ring", *option, "--against", str(tmp_path)]) == 2
    assert "leave --sealed" in capsys.readouterr().err


def test_every_set_of_options_is_passed_on():
    words = ["--queue", "65536", "--option", "accelerated=0", "--option", "--trace", "on"]
    parser = argparse.ArgumentParser()
    ring.configure(parser)
    found = parser.parse_args(against_words.words(parser.parse_args(words), ring.PASSED_ON))
    assert (found.queue, found.options) == ([65536], [["accelerated=0"], []])
    assert found.trace == ["on"]


def test_figures_of_a_ring():
    """The other checkout may know settings that this one does not."""
    cell = {"engine": "totem", "nodes": 3, "size": 100, "datagram": 1400, "colour": "red"}
    entry = {"cell": cell, "msgs_per_s": 7.0, "cpu_us_per_msg": 2.0, "splits": 0}
    latency = {"engine": "totem", "nodes": 3, "p50_ms": 1.0, "p99_ms": 2.0}
    document = {
        "throughput": [entry, {**entry, "cell": {**cell, "nodes": 5}, "splits": 1}],
        "latency": [{**latency, "system": "roundelay"}, {**latency, "system": "bare UDP"}],
        "idle": [{"engine": "totem", "nodes": 3, "cpu_share": 0.5}],
    }
    assert ring._figures(document) == {
        "totem, 3 nodes, 100 B, datagrams of 1400, batches: messages/s": 7.0,
        "totem, 3 nodes, 100 B, datagrams of 1400, batches: us CPU each": 2.0,
        "totem, 3 nodes: p50_ms": 1.0,
        "totem, 3 nodes: p99_ms": 2.0,
        "totem, 3 nodes: idle CPU share": 0.5,
    }


def test_figures_of_cores_and_of_the_simulator():
    engine = {"engine": "totem", "packing": False, "complete": True, "ns_per_delivery": 9.0}
    stuck = {**engine, "engine": "fifo", "complete": False}
    assert core._figures({"engines": [engine, stuck]}) == {"totem, packing off: ns/delivery": 9.0}
    ring_of_five = [{"way": "bare", "times_real_time": 4.0}]
    assert sim._figures({"ring": ring_of_five}) == {"ring, bare: times real time": 4.0}
    assert len(sim._figures({"ring": [], "ours": 1.0, "ratio_callbacks": 3.0})) == 2
