"""Scenario files: their form, and what happens when they are wrong."""

import pytest

from roundelay.sim.runner import ScenarioRunner
from roundelay.sim.scenario import ScenarioError, parse, rewrite

GOOD = """# A story.

nodes a b
----
ok

# Two commands, one block.
submit a x
deliver b
----
a -> * DATA a:0
a delivers a:0 'x'
b delivers a:0 'x'
"""


def play(text: str) -> list[str]:
    story = ScenarioRunner()
    return [story.play(block) for block in parse(text)]


def test_a_file_is_rewritten_to_itself_when_it_is_right():
    assert rewrite(GOOD, ScenarioRunner().play) == GOOD


def test_a_file_without_output_is_filled_in():
    empty = "\n".join(line for line in GOOD.splitlines() if not line.startswith(("ok", "a ", "b ")))
    filled = rewrite(empty, ScenarioRunner().play)
    assert parse(filled)[1].expected == parse(GOOD)[1].expected


def test_options_that_name_nodes_are_checked_where_these_are_named():
    text = "engine atop static policy=given weights=zz:3\nnodes a b\n----\n"
    with pytest.raises(ScenarioError, match="'zz', which is no node of the group"):
        play(text)
    assert play(text.replace("zz:3", "b:3")) == ["ok"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("nodes a b\n", "line 1: no ---- after this command"),
        ("nodes a b\n\n----\n", "line 1: no ---- after this command"),
        ("----\n", "line 1: dashes without a command"),
        ("submit a x\n----\n", "line 1: submit a x: there are no nodes yet"),
        ("nodes a b\nsubmit z x\n----\n", "line 2: submit z x: there is no node 'z'"),
        ("nodes a b\njump a\n----\n", "'jump' is not a command; docs/scenarios.md lists them"),
        ("nodes a a\n----\n", "name each node once"),
        ("engine totem2\n----\n", "no engine is called 'totem2'"),
        ("engine template colour=red\n----\n", "template has no option 'colour'"),
        ("engine template memory_packets=many\n----\n", "memory_packets=many is not of type int"),
        ("engine template views\n----\n", "template runs on static groups only; write: engine"),
        ("engine fc rules=x\n----\n", "no rules 'x'; choose one of safe, paper, link"),
        ("engine fc rules=paper\n----\n", "fc with rules=paper runs on static groups only; write"),
        ("engine fc views rules=link\n----\n", "rules=link runs on static groups only; write"),
        ("engine fc static rules=paper k=2\nnodes a b c\n----\n", "a group of 3; choose 1 at most"),
        ("engine fc k=3\nnodes 5\n----\n", "k=3 members that fail together are too many"),
        ("engine st rules=x\n----\n", "there are no rules 'x'; choose one of safe, paper"),
        ("engine st static rules=paper\n----\n", "a network that is one channel: add medium"),
        (
            "engine st rules=paper medium=channel\n----\n",
            "st with rules=paper runs on static groups only; write: engine st static",
        ),
        (
            "engine st static rules=paper medium=channel\nnetwork lan\nnodes a b\n----\n",
            "needs a network that is one channel; write: network channel",
        ),
        (
            "engine st medium=channel\nnodes a b\n----\n",
            "st with medium=channel needs a network that is one channel; write: network channel",
        ),
        ("group colour=red\n----\n", "group has no option 'colour'; it has: packet_bytes"),
        ("group packet_bytes=8\nnodes a b\n----\n", "packet_bytes=8 leaves no room"),
        ("network ether\n----\n", "choose a network: bus, switched"),
        ("network lan latency=5\n----\n", "'5' is not a time like 100us"),
        ("network lan speed=5ms\n----\n", "lan has no option 'speed'; it has: latency, jitter"),
        ("nodes a b\nnetwork lan\n----\n", "this comes before the nodes command"),
        ("nodes a b\nfaults\n----\n", "write rates, like"),
        ("nodes a b\nfaults loss=70% corrupt=70%\n----\n", "together they are at most 1"),
        ("nodes a b\nfate a/1>b broken\n----\n", "'broken' is no fate"),
        ("nodes a b\nexpire a token_loss\n----\n", "a has no timer 'token_loss'; armed: none"),
        ("nodes a b\ndeliver b\n----\n", "no such frame is under way"),
        ("nodes a b\nrestart a storage=gone\n----\n", "storage is one of kept, lost, torn"),
        ("nodes a b\ncut a-b\n----\n", "'a-b' is not a link"),
        ("nodes a b\nsubmit a x colour=red\n----\n", "there is no option colour here"),
        ("nodes a b\nsubmit a 'x\n----\n", "No closing quotation"),
        ("network lan\nnodes a b\nrun 5ms\nat 1ms crash a\n----\n", "it is already 5ms"),
    ],
)
def test_a_wrong_file_gets_a_sentence(text, sentence):
    with pytest.raises(ScenarioError) as e:
        play(text)
    assert sentence in str(e.value)


def test_an_error_in_a_scheduled_command_names_its_line():
    with pytest.raises(ScenarioError, match="line 3"):
        play("network lan\nnodes a b\nat 1ms crash z\nrun 2ms\n----\n")


def test_wan_links_and_costs_are_read():
    story = ScenarioRunner()
    text = "network wan latency=5ms a>b=80ms\ncosts send=1ms NOTE=2ms\nnodes a b c\n----\n"
    assert [story.play(block) for block in parse(text)] == ["ok"]
    assert story.world.costs.tag_ns == {"NOTE": 2_000_000}
    assert story.world.network.arrivals(0, "a", ("b", "c"), 1) == [80_000_000, 5_000_000]


@pytest.mark.parametrize(
    ("group", "sends"),
    [
        ("", ["[100us] b -> * DATA 1: b:0..1"]),
        ("group packet_messages=1\n", ["[100us] b -> * DATA 1: b:0", "[100us] b -> * DATA 2: b:1"]),
    ],
)
def test_the_group_layer_takes_options(group, sends):
    begin = f"engine totem static\nnetwork lan latency=100us\n{group}show sends\nnodes a b\n"
    (out,) = play(f"{begin}submit b x\nsubmit b y\nrun 150us\n----\n")
    assert [line for line in out.splitlines() if "DATA" in line] == sends
