"""Claims of [DTP97], one by one; members are called 1 to n as in the paper.

The worked example is figure 1. It does not say who sends what: of the sequences that fit it we take
2, 3, 5, 3, 5, 4. Where the paper's own rules do not keep what it claims, see
`tests/sim/test_dtp.py`.
"""

from typing import Any, NamedTuple

import pytest

from roundelay.core.ids import NodeId
from roundelay.protocols.dtp.engine import DtpEngine
from roundelay.protocols.dtp.messages import Ack
from roundelay.sim.runner import ScenarioRunner
from roundelay.sim.scenario import parse
from roundelay.sim.world import World

SENDERS = "235354"


class Step(NamedTuple):
    """What the figure says of one message."""

    held: int
    """What its sender says that it holds."""
    by: int
    next: int
    stable: int
    """What is stable at the member that acknowledges it."""
    vector: tuple[int, ...] = ()
    """R of that member."""


FIGURE = {
    "cm": [
        Step(0, 1, 2, 0),
        Step(1, 2, 3, 0),
        Step(2, 3, 4, 0),
        Step(3, 4, 5, 0),
        Step(4, 5, 1, 1),
        Step(5, 1, 2, 2),
    ],
    "pinwheel": [
        Step(0, 1, 2, 0),
        Step(1, 2, 3, 0),
        Step(2, 3, 4, 0),
        Step(3, 4, 5, 1),
        Step(4, 5, 1, 1),
        Step(5, 1, 2, 2),
    ],
    "dtp": [
        Step(0, 1, 2, 0, (1, 0, 0, 0, 0)),
        Step(1, 2, 4, 0, (1, 2, 1, 0, 0)),
        Step(2, 4, 1, 1, (1, 2, 1, 3, 2)),
        Step(3, 1, 2, 2, (4, 2, 3, 3, 2)),
        Step(4, 2, 3, 3, (4, 5, 3, 3, 4)),
        Step(5, 3, 5, 4, (4, 5, 6, 5, 4)),
    ],
}


class Party:
    """A static group in which things happen one after the other."""

    def __init__(self, head: str) -> None:
        self.sent: list[tuple[str, Any]] = []
        """Frames: their type, and what they say."""
        self.story = ScenarioRunner(watch=self._watch)
        self.play(head)

    def play(self, *commands: str) -> str:
        (block,) = parse("\n".join(commands) + "\n----\n")
        return self.story.play(block)

    def engine(self, member: int) -> DtpEngine:
        core: Any = self.story.world.hosts[str(member)].core
        engine = core.engine
        assert isinstance(engine, DtpEngine)
        return engine

    def _watch(self, world: World, node: NodeId, verb: str, what: Any) -> None:
        if verb == "sends":
            self.sent.append((what.tag, what.frame.message))


@pytest.mark.parametrize("protocol", FIGURE)
def test_figure_1(protocol):
    """Section 3: who acknowledges, who is next, and when a message is stable, for all three."""
    party = Party(f"engine {protocol} static\nnodes 1 2 3 4 5")
    for number, (sender, step) in enumerate(zip(SENDERS, FIGURE[protocol], strict=True), 1):
        party.play(f"submit {sender} m{number}")
        (_, msg), *_ = party.sent
        assert msg.held == step.held
        party.play("stabilize")
        _, (_, ack) = party.sent
        party.sent.clear()
        assert (ack.holder + 1, ack.last, ack.next + 1) == (step.by, number, step.next)
        ledger = party.engine(step.by).ledger
        assert ledger.low == step.stable
        assert step.vector in ((), tuple(ledger.held))


def test_dtp_is_the_first_to_know_that_a_message_is_stable():
    """Section 3: after the third acknowledgment; Pinwheel after the fourth, CM after the fifth."""
    first = {
        protocol: next(z for z, step in enumerate(steps, 1) if step.stable)
        for protocol, steps in FIGURE.items()
    }
    assert first == {"cm": 5, "pinwheel": 4, "dtp": 3}


def test_the_token_goes_on_though_nobody_speaks():
    """Section 4.2: after T without a message the token is passed on; so stability is bounded."""
    party = Party("engine dtp static\nnetwork lan latency=1ms\nnodes 1 2 3")
    party.play("submit 1 m1", "run 50ms")
    assert party.sent[1:] == [("ACK", Ack(0, ((0, 1),), 1, 1, 1))]
    stable = []
    for hop, (holder, next_) in ((2, (1, 2)), (3, (2, 0)), (4, (0, 1))):
        party.sent.clear()
        party.play("run 101ms")
        assert party.sent == [("ACK", Ack(holder, (), 1, next_, hop))]
        stable.append([party.engine(member).ledger.low for member in (1, 2, 3)])
    assert stable == [[0, 0, 1], [1, 1, 1], [1, 1, 1]]


def test_with_resilience_others_must_be_known_to_hold_a_message():
    """Section 4.2: F = 2 takes three; F = n - 1 is safe delivery."""
    for resilience, delivered in ((0, [1, 1, 1, 1, 1]), (2, [0] * 5), (4, [0] * 5)):
        party = Party(f"engine dtp static resilience={resilience}\nnodes 1 2 3 4 5")
        party.play("submit 2 m1", "stabilize")
        assert [party.engine(member).delivered for member in range(1, 6)] == delivered
        party.play("submit 3 m2", "stabilize")
        assert [party.engine(member).delivered for member in range(1, 6)] == (
            [2] * 5 if not resilience else [1] * 5 if resilience == 2 else [0] * 5
        )
        party.play("submit 5 m3", "stabilize")
        assert all(party.engine(member).delivered >= 1 for member in range(1, 6))


BUS = """
engine {protocol} static
seed 1
network bus rate=10Mbit
group packet_messages=1
nodes {nodes}
load messages=250 rate={rate}/s size=500
run 2s
end after=2s
----
"""


def fullest(protocol: str, size: int, rate: int) -> tuple[int, int]:
    """The most messages and acknowledgments that any member ever kept, where nothing is lost."""
    msgs, acks = [0], [0]

    def watch(world: World, node: NodeId, verb: str, what: Any) -> None:
        core: Any = world.hosts[node].core
        msgs.append(len(core.engine.ledger.msgs))
        acks.append(len(core.engine.ledger.acks))

    story = ScenarioRunner(watch=watch)
    nodes = " ".join("123456789"[:size])
    for block in parse(BUS.format(protocol=protocol, nodes=nodes, rate=rate)):
        story.play(block)
    return max(msgs), max(acks)


@pytest.mark.parametrize("protocol", ["dtp", "cm"])
@pytest.mark.parametrize(("size", "rate"), [(3, 20), (5, 100), (8, 10), (8, 90)])
def test_the_buffer_is_bounded_where_nothing_is_lost(protocol, size, rate):
    """Section 4.2: at most 2n - 1 messages and n - 1 acknowledgments, at any member, at any time.

    Once something is lost this does not hold at a member that lags; the bounds that do are in
    `sim.engines.dtp.watch`."""
    msgs, acks = fullest(protocol, size, rate)
    assert size - 1 <= msgs <= 2 * size - 1
    assert size - 2 <= acks <= size - 1


@pytest.mark.parametrize("protocol", ["dtp", "cm"])
def test_the_bound_is_reached_where_everybody_always_has_something_to_say(protocol):
    assert fullest(protocol, 8, 200) == (15, 7)


def test_acknowledging_several_messages_at_once_breaks_the_bound():
    """Pinwheel; the paper does not say so."""
    msgs, acks = fullest("pinwheel", 8, 200)
    assert msgs > 15
    assert acks > 7
