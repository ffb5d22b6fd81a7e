"""`roundelay bench core` and the ring of `bench sim`: that they run, and what they say."""

import json

import pytest

from roundelay.bench import core, realtime
from roundelay.cli import main
from roundelay.group.engines import engine_names


@pytest.mark.parametrize("packing", [False, True])
@pytest.mark.parametrize("engine", engine_names())
def test_every_engine_delivers_everything_everywhere(engine, packing):
    """An engine that cannot run saturated on a static group must be named here."""
    bench = core.Bench(engine, 400, packing=packing)
    assert bench.run()
    assert bench.deliveries == 400 * 5 * 5
    assert bench.events >= bench.packets


def test_packing_is_what_it_says():
    plain, packed = (core.measure("totem", 400, packing=on) for on in (False, True))
    assert plain.packets == plain.deliveries
    assert packed.packets * 5 < packed.deliveries


def test_an_engine_that_comes_to_rest_is_found_out(monkeypatch, capsys):
    monkeypatch.setattr(core.Bench, "_perform", lambda self, node, effects: None)
    assert not core.measure("totem", 10, packing=False).complete
    assert main(["bench", "core", "--protocol", "totem", "--messages", "10", "--rounds", "1"]) == 0
    assert "does not run saturated" in capsys.readouterr().out


def test_the_command_compares_with_totem(capsys):
    arguments = ["--protocol", "template", "--messages", "50", "--rounds", "1"]
    assert main(["bench", "core", *arguments, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [(e["engine"], e["packing"]) for e in document["engines"]] == [
        ("totem", False),
        ("template", False),
        ("totem", True),
        ("template", True),
    ]
    assert document["engines"][0]["ratio"] == 1
    assert document["engines"][0]["event_ratio"] == 1
    assert main(["bench", "core", *arguments]) == 0
    assert "event cost" in capsys.readouterr().out


def test_the_cost_of_an_event_is_compared_round_by_round(monkeypatch):
    """The machine is far slower in the second round, which must not count for more."""
    first, second = [(1, 128), (3, 256)], [(16, 128), (32, 256)]
    turns = iter(first * 2 + second * 2)

    def measure(engine, messages, *, packing, subset):
        seconds, events = next(turns)
        return core.Measurement(seconds, events, 50, 50, 0, complete=True, messages=10)

    monkeypatch.setattr(core, "measure", measure)
    figures = core.compare(["dtp"], 1, 2, lambda done, total: None)
    costs = {f.engine: f.event_ratio for f in figures if f.packing}
    assert costs == {"totem": 1, "dtp": (1.5 + 1) / 2}


def test_an_unknown_engine_is_a_sentence(capsys):
    assert main(["bench", "core", "--protocol", "corosync"]) == 2
    assert "no engine is called 'corosync'; there are: " in capsys.readouterr().err


def test_a_ring_is_timed_in_four_ways(capsys):
    arguments = ["bench", "sim", "--ring", "--rounds", "1", "--ring-seconds", "0.05"]
    assert main([*arguments, "--json"]) == 0
    paces = json.loads(capsys.readouterr().out)["ring"]
    assert [pace["way"] for pace in paces] == list(realtime.WAYS)
    assert paces[0]["rows"] == 0 < paces[1]["rows"] == paces[2]["rows"]
    assert main(arguments) == 0
    assert "times real time" in capsys.readouterr().out


def test_the_profile_names_every_layer(capsys):
    assert main(["bench", "sim", "--profile", "--ring-seconds", "0.05", "--json"]) == 0
    shares = json.loads(capsys.readouterr().out)["profile"]
    assert {"check", "sim", "protocols", "trace", "membership", "wire", "group"} <= {
        share["package"] for share in shares
    }
    assert sum(share["share"] for share in shares) == pytest.approx(1)


@pytest.mark.parametrize(("subset", "receivers"), [(0.2, 1), (0.5, 2), (1.0, 5)])
@pytest.mark.parametrize("engine", ["fifo", "st"])
def test_messages_for_a_subset_are_delivered_by_it_alone(engine, subset, receivers):
    found = core.measure(engine, 60, packing=True, subset=subset)
    assert found.complete
    assert found.messages == 60 * len(core.NODES)
    assert found.deliveries == found.messages * receivers
