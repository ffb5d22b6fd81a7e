"""Two engines side by side: the same load for both, and true numbers."""

import pytest

from roundelay.sim.runner import ScenarioRunner
from roundelay.sim.scenario import parse
from roundelay.web.lab.comparison import (
    BOUNDS,
    NETWORKS,
    Load,
    choices,
    compare,
    engines,
    read_load,
)
from roundelay.web.lab.errors import LaboratoryError

SMALL = Load(nodes=3, messages=12, rate=100)


def test_both_have_the_same_messages_to_deliver():
    one, two = compare(("totem", "dtp"), SMALL)["sides"]
    assert one["messages"] == two["messages"] == 12
    assert one["delivered"] == two["delivered"] == one["owed"] == 36
    assert sorted(one["orders"]["a"]) == sorted(two["orders"]["a"])


def test_it_is_the_same_every_time():
    assert compare(("totem", "allack"), SMALL) == compare(("totem", "allack"), SMALL)


@pytest.mark.parametrize("network", NETWORKS)
def test_every_engine_can_be_compared_on_every_network(network):
    names = engines()
    for one, two in zip(names[::2], (*names[1::2], "totem"), strict=True):
        sides = compare((one, two), Load(network, nodes=3, messages=6))["sides"]
        assert [side["engine"] for side in sides] == [one, two]
        for side in sides:
            assert side["delivered"] == side["owed"] == 18
            assert side["svg"].startswith("<svg")


def test_numbers_are_those_of_the_network():
    """The template sends each message once and waits for nothing: a delivery by its sender takes no
    time, one by another node what the network takes, 1 ms and at most a tenth of that more."""
    (side, _) = compare(("template", "totem"), Load(nodes=4, messages=40))["sides"]
    assert side["frames_per_message"] == 1
    assert side["frames_by_type"] == {"DATA": 40}
    assert 1 <= side["latency_ms"]["p50"] <= side["latency_ms"]["max"] <= 1.1
    assert side["bytes_per_message"] > 100


def test_who_promises_no_order_has_none():
    (side, _) = compare(("template", "totem"), Load(nodes=4, messages=60, rate=2000))["sides"]
    assert not side["one_order"]
    assert len({tuple(order) for order in side["orders"].values()}) > 1


def test_the_scenario_of_a_side_can_be_run():
    (side, _) = compare(("totem", "dtp"), SMALL)["sides"]
    runner = ScenarioRunner()
    outputs = [runner.play(block) for block in parse(side["scenario"])]
    assert f"{side['kept']} ok" in outputs[-1]


def test_a_broken_promise_is_told():
    """Lost frames are lost messages, where nothing is sent twice."""
    load = Load(nodes=4, messages=60, loss=20)
    (side, _) = compare(("template", "totem"), load)["sides"]
    assert side["delivered"] < side["owed"]
    assert "L1" in [one["property"] for one in side["broken"]]


def test_what_is_chosen_is_within_bounds():
    assert read_load({}) == Load()
    chosen = read_load({"nodes": "5", "rate": "12.5", "network": "bus", "other": "x"})
    assert (chosen.nodes, chosen.rate, chosen.network) == (5, 12.5, "bus")
    for name, bounds in BOUNDS.items():
        assert bounds.low <= getattr(Load(), name) <= bounds.high
        assert getattr(Load(), name) == bounds.usual


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"nodes": "8"}, "nodes: 8 is not between 2 and 7"),
        ({"nodes": "x"}, "'x' is not a number"),
        ({"loss": "-1"}, "'-1' is not a number"),
        ({"size": "nan"}, "'nan' is not a number"),
        ({"messages": "1e9"}, "'1e9' is not a number"),
        ({"network": "wan\nseed 3"}, "there is no network"),
        ({"messages": "200", "rate": "1"}, "raise the rate, or send fewer"),
    ],
)
def test_what_makes_no_sense_is_refused(asked, sentence):
    with pytest.raises(LaboratoryError, match=sentence):
        read_load(asked)


def test_an_engine_that_does_not_exist_is_refused():
    with pytest.raises(LaboratoryError, match="there is no engine 'totem2'"):
        compare(("totem", "totem2"), SMALL)


def test_the_page_is_offered_every_engine_and_number():
    offered = choices()
    assert [engine["name"] for engine in offered["engines"]] == list(engines())
    assert all(engine["what"] for engine in offered["engines"])
    assert set(offered["numbers"]) == set(BOUNDS)
