"""Walkthroughs: what they tell of a run is what the run was."""

import json
import xml.etree.ElementTree as ET
from copy import deepcopy
from functools import cache

import pytest

from roundelay.sim.runner import ScenarioRunner
from roundelay.sim.scenario import parse
from roundelay.trace.schema import WORLD
from roundelay.web.lab import steps
from roundelay.web.lab.catalogue import FIRST, catalogue, text_of
from roundelay.web.lab.errors import LaboratoryError
from roundelay.web.lab.state import ENGINE, of_core
from roundelay.web.lab.steps import SteppingRunner
from roundelay.web.lab.walkthrough import Walkthrough, walk

KINDS = (
    "fc/x1_two_fail",  # a manual network, crashes
    "totem/g14_token_loss",  # timers, a rule that loses frames
    "totem/g09_quick_restart",  # restarts, views
    "log/r01_sender_cut_off",  # journals
    "st/st_x2_cycle_paper",  # a channel that everybody hears
    "causal/waits_for_a_cause",
    "sealed/restart",  # frames that no node has sent
)
"""Scenarios of every kind."""


@cache
def walked(name: str) -> Walkthrough:
    return walk(name, text_of(name))


def walked_anew(name: str) -> Walkthrough:
    return walk(name, text_of(name))


def states(walkthrough: Walkthrough, until: int | None = None) -> dict[str, dict[str, str]]:
    """The states of the nodes after some steps, put together from their changes."""
    found: dict[str, dict[str, str]] = {}
    for step in walkthrough.document["steps"][:until]:
        for node, changes in step.get("changes", {}).items():
            state = found.setdefault(node, {})
            for name, value in changes.items():
                assert state.get(name) != value, f"{name} of {node} has not changed"
                if value is None:
                    del state[name]
                else:
                    state[name] = value
    return found


@pytest.mark.parametrize("name", KINDS)
def test_the_same_scenario_gives_the_same_walkthrough(name):
    assert json.dumps(walked_anew(name).document) == json.dumps(walked(name).document)


@pytest.mark.parametrize("name", KINDS)
def test_it_is_the_run_that_the_simulator_plays(name):
    runner = ScenarioRunner()
    for block in parse(text_of(name)):
        runner.play(block)
    assert list(walked(name).rows) == runner.rows


@pytest.mark.parametrize("name", KINDS)
def test_every_row_belongs_to_one_step_in_order(name):
    walkthrough = walked(name)
    in_steps = [i for rows in walkthrough.step_rows for i in rows]
    assert in_steps == list(range(len(walkthrough.rows)))


@pytest.mark.parametrize("name", KINDS)
def test_a_step_is_about_one_node_and_one_moment(name):
    walkthrough = walked(name)
    nodes = walkthrough.document["nodes"]
    for step, rows in zip(walkthrough.document["steps"], walkthrough.step_rows, strict=True):
        of_step = [walkthrough.rows[i] for i in rows]
        assert len({row.t_ns for row in of_step}) == 1
        named = {nodes[row.proc] for row in of_step if row.proc != WORLD}
        assert named <= {step["node"]}


@pytest.mark.parametrize("name", KINDS)
def test_copies_of_frames_arrive_where_and_when_the_steps_say(name):
    document = walked(name).document
    arrivals = 0
    for i, step in enumerate(document["steps"]):
        if "flight" not in step:
            continue
        frame, to, sent, ended, fate = document["flights"][step["flight"]]
        assert ended == i
        assert sent <= i
        if step["kind"] == "arrive":
            arrivals += 1
            assert fate == "arrived"
            assert to == step["node"]
            assert document["frames"][frame]["tag"] in step["said"]
    assert arrivals


@pytest.mark.parametrize(
    "name", ["fc/x1_two_fail", "totem/g03_loss", "dtp_two_holders", "st/st_x2_cycle_paper"]
)
def test_the_changes_lead_to_the_state_in_which_the_run_ends(name):
    runner = ScenarioRunner()
    for block in parse(text_of(name)):
        runner.play(block)
    last = states(walked(name))
    compared = 0
    for node, host in runner.world.hosts.items():
        if host.alive:
            now = of_core(host.core)
            assert {key: last[node][key] for key in now} == now
            assert last[node]["is"] == "up"
            assert last[node]["timers"] == " ".join(sorted(host.timers))
            compared += 1
        else:
            assert last[node]["is"] == "down"
    assert compared


def test_what_a_node_delivered_is_in_its_state():
    last = states(walked("fc/x1_two_fail"))
    assert [last[node]["delivered"] for node in "12345"] == ["", "", "r1", "r1 r3", "r2"]


def test_state_is_that_after_the_step_and_not_that_after_the_next():
    """Three messages of one node, one after the other: none is counted before it is submitted."""
    text = "engine totem static\ngroup packet_messages=1\nnodes a b\n"
    text += "submit b x\nsubmit b y\nsubmit b z\n----\n"
    walkthrough = walk("three", text)
    submits = [
        i for i, step in enumerate(walkthrough.document["steps"]) if step["kind"] == "submit"
    ]
    waiting = [states(walkthrough, i + 1)["b"]["packets to send"] for i in submits]
    assert waiting == ["1", "2", "3"]


def test_a_counterexample_leads_to_its_witness():
    document = walked("fc/x1_two_fail").document
    violated = {verdict["property"]: verdict for verdict in document["violated"]}
    assert set(violated) == {"O3i", "O6", "N2"}
    number = violated["N2"]
    assert number["title"] == "Replicas that confirm a number confirm the same request"
    assert number["reason"] == "3 confirms 1:0 as 1, 5 confirms 2:0 as 1"
    assert [place["node"] for place in number["witness"]] == ["3", "5"]
    for place in number["witness"]:
        step = document["steps"][place["step"]]
        assert place["said"] in [thing["said"] for thing in step["then"]]


BREAKING = [name for name, entry in catalogue().items() if entry.breaks]


@pytest.mark.parametrize("name", BREAKING)
def test_every_witness_is_at_a_step(name):
    document = walked(name).document
    for verdict in document["violated"]:
        assert verdict["witness"]
        for place in verdict["witness"]:
            step = document["steps"][place["step"]]
            assert place["said"] in [step["said"], *(thing["said"] for thing in step["then"])]


def test_both_holders_of_a_token_have_it():
    document = walked("dtp_two_holders")
    count = len(document.step_rows)
    both = [
        [node for node, state in states(document, i).items() if state.get("token") == "here"]
        for i in range(count + 1)
    ]
    assert ["1", "2"] in both
    assert both[0] == []


def test_a_step_names_its_line_and_command():
    text = text_of("fc/x1_two_fail").splitlines()
    for step in walked("fc/x1_two_fail").document["steps"]:
        assert text[step["line"] - 1] == step["command"]


def test_what_was_said_to_happen_at_a_time_has_its_own_line():
    text = "network lan latency=1ms\nnodes a b\nat 2ms crash b\nrun 5ms\n----\n"
    steps_ = walk("at", text).document["steps"]
    crash = next(step for step in steps_ if step["said"] == "crash b")
    assert (crash["line"], crash["at"]) == (3, "2ms")
    assert [thing["said"] for thing in crash["then"]] == ["b crashes"]


def test_a_partition_is_told_and_its_end():
    document = walked("totem/g05_partition_and_merge").document
    cuts = [step["cuts"] for step in document["steps"] if "cuts" in step]
    assert "1>6" in cuts[0]
    assert "1>2" not in cuts[0]
    assert cuts[-1] == []


def test_a_long_run_is_told_in_part_and_judged_in_whole(monkeypatch):
    whole = walked("fc/x1_two_fail")
    monkeypatch.setattr(steps, "STEPS_MAX", 12)
    part = walked_anew("fc/x1_two_fail")
    assert part.document["steps"] == whole.document["steps"][:12]
    assert "first 12 steps" in part.document["note"]
    assert whole.document["note"] == ""
    assert [v["property"] for v in part.document["violated"]] == ["O3i", "O6", "N2"]
    assert {place["step"] for place in part.document["violated"][0]["witness"]} == {None}


def test_text_about_states_is_bounded(monkeypatch):
    monkeypatch.setattr(steps, "STATE_CHARACTERS_MAX", 5000)
    part = walked_anew("fc/x1_two_fail").document
    assert 0 < len(part["steps"]) < 39


def test_a_run_of_too_many_events_is_refused(monkeypatch):
    monkeypatch.setattr(steps, "ROWS_MAX", 50)
    with pytest.raises(LaboratoryError, match="more than 50 events"):
        walked_anew("fc/x1_two_fail")


def test_diagrams_show_a_step_and_a_witness():
    walkthrough = walked("fc/x1_two_fail")
    step = walkthrough.document["violated"][0]["witness"][0]["step"]
    for svg in (walkthrough.diagram(step), walkthrough.witness("O6")):
        root = ET.fromstring(svg)
        assert root.tag.endswith("svg")
        assert 'class="halo"' in svg
    assert "nearest to the step" in walkthrough.diagram(step)
    assert "number 1 is 1:0 at 3 and 2:0 at 5" in walkthrough.witness("O6")


def test_there_is_no_diagram_of_what_is_not_there():
    walkthrough = walked("fc/x1_two_fail")
    count = len(walkthrough.step_rows)
    with pytest.raises(LaboratoryError, match=f"no step {count + 1}"):
        walkthrough.diagram(count)
    with pytest.raises(LaboratoryError, match="not violated"):
        walkthrough.witness("O1")


def test_diagrams_escape_names():
    text = "nodes '<script>&' b\nsubmit b x\nstabilize\n----\n"
    walkthrough = walk("names", text)
    assert walkthrough.document["nodes"] == ["<script>&", "b"]
    svg = walkthrough.diagram(0)
    assert "<script" not in svg
    assert "&lt;script&gt;&amp;" in svg
    ET.fromstring(svg)


def test_a_scenario_that_cannot_be_played_says_where():
    with pytest.raises(LaboratoryError, match="line 2: submit c x: there is no node 'c'"):
        walk("mine", "nodes a b\nsubmit c x\n----\n")
    with pytest.raises(LaboratoryError, match="there are no nodes"):
        walk("mine", "engine totem\n----\n")


def test_values_of_states_are_short_and_say_no_addresses():
    for name in (*KINDS, *(name for name, _ in FIRST)):
        for step in walked(name).document["steps"]:
            for changes in step.get("changes", {}).values():
                for field, value in changes.items():
                    assert value is None or " at 0x" not in value
                    if field.startswith(ENGINE) and value is not None:
                        assert len(value) <= 160


def test_the_end_of_a_run_closes_its_last_step():
    runner = SteppingRunner()
    for block in parse("nodes a b\nsubmit b x\ndeliver a\n----\n"):
        runner.play(block)
    before = deepcopy(runner.steps[-1].changes)
    runner.finish()
    assert runner.steps[-1].changes != before
    assert runner.complete
