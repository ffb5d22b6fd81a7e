"""The rules of the paper: where they run, and what is said on the wire."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundelay.core.ids import Packet, Service, Span
from roundelay.group.engines import engine_config, without_views
from roundelay.protocols.st.literal_messages import (
    Abort,
    Ask,
    LiteralCodec,
    LiteralMessage,
    Ret,
    Rst,
    RstAck,
    RstPak,
)
from roundelay.protocols.st.messages import Placed, Transmission
from roundelay.sim.runner import ScenarioRunner
from roundelay.sim.scenario import ScenarioError, parse
from roundelay.wire.primitives import WireError

CODEC = LiteralCodec()
PACKET = Packet(Span("2", 0, 4), Service.AGREED, b"x", ("1", "3"))
SENT = Transmission(1, 2, 5, (3, 0, 4), (1, 6, 1), (1, 6, 1), (1, 6, 1), 7, PACKET)
MESSAGES: list[LiteralMessage] = [
    Placed(0, 0, SENT),
    Rst(1, (3, 3, 4)),
    RstPak(1, (3, 1, 3)),
    RstAck(1, (3, 1, 3), (2, 2, 3), (2, 3, 3), (2, 0, 1)),
    Ret(1, SENT),
    Ask(1, 2, 3),
    Abort(),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_messages_come_back_from_their_bytes(message):
    tag, data = CODEC.encode(message)
    assert CODEC.decode(tag, b"##" + data, 2) == message
    with pytest.raises(WireError):
        CODEC.decode(tag, b"##" + data + b"\0", 2)


@given(st.sampled_from(range(64)), st.binary(max_size=200))
def test_nonsense_is_refused(tag, data):
    try:
        message = CODEC.decode(tag, data, 0)
    except WireError:
        return
    assert tag in CODEC.tags
    assert CODEC.encode(message)[0] == tag


def test_all_tags_are_made():
    assert {CODEC.encode(message)[0] for message in MESSAGES} | {2} == set(CODEC.tags)


def test_messages_read_as_in_the_paper():
    assert str(RstPak(0, (3, 1, 3))) == "epoch 0: <3,1,3>"
    assert str(MESSAGES[3]) == "epoch 1: <3,1,3> preq <2,2,3> pseq <2,3,3> order 3,1,2"


def test_a_network_that_is_not_one_channel_is_refused_in_a_sentence():
    with pytest.raises(ValueError, match="rules=paper is for a network that is one channel"):
        engine_config("st", {"rules": "paper"})


def test_views_are_refused_in_a_sentence():
    options = {"rules": "paper", "medium": "channel"}
    assert without_views("st", options) == "st with rules=paper runs on static groups only"
    assert not without_views("st", {"medium": "channel"})
    text = "# \nengine st views rules=paper medium=channel\n----\n"
    with pytest.raises(ScenarioError, match="runs on static groups only"):
        ScenarioRunner().play(parse(text)[0])


def test_a_node_that_is_alone_hears_itself():
    runner = ScenarioRunner()
    text = """
engine st static rules=paper medium=channel
network channel
nodes 1
submit 1 a
submit 1 b
run 500ms
log
end after=10ms
check
----
"""
    assert runner.play(parse(text)[0]).startswith("1: a b\n")


@pytest.mark.parametrize(("loss", "aborted"), [("0%", False), ("0.2%", False), ("10%", True)])
def test_under_losses_of_everything_the_group_delivers_all_or_stops_and_says_so(loss, aborted):
    text = f"""
engine st static rules=paper medium=channel window_packets=2
network channel
show suspects
seed 3
nodes 3
faults loss={loss}
load messages=60 rate=2000/s subset=50%
run 2s
heal
end after=500ms
check
----
"""
    printed = ScenarioRunner().play(parse(text)[0])
    assert ("suspects the view: aborted" in printed) == aborted
    assert ("L1 violated" in printed) == aborted
