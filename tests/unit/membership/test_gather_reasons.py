"""Every Gather says in the trace why it began."""

from typing import Any

from roundelay.core.contract import Boot, Origin
from roundelay.core.effects import Effect, Kind, Record, Send, Suspect
from roundelay.core.ids import Terms, ViewId
from roundelay.group.engines import engine_factory
from roundelay.group.stack import Stack
from roundelay.membership.messages import Join, Leave, Merge
from roundelay.membership.phase import GatherReason, Phase

OURS = Terms("engine totem", "a,b")
THEIRS = Terms("engine dtp", "a,b")


def stack(name: str = "a") -> Stack:
    return Stack(Boot("g", name), ("a", "b"), engine_factory("totem"), terms=OURS)


def reasons(effects: list[Effect[Any]]) -> list[str]:
    return [e.tag for e in effects if isinstance(e, Record) and e.kind is Kind.GATHER]


def alone() -> Stack:
    """Node a, operational in a view of its own."""
    made = stack()
    made.start()
    made.expire("consensus")
    assert made.membership.phase is Phase.OPERATIONAL
    return made


def from_b(view: ViewId | None = None) -> Origin:
    return Origin("g", "b", 0, view or ViewId(4, "b"))


def test_a_start():
    made = stack()
    assert reasons(made.start()) == [GatherReason.STARTED]
    assert made.membership.gather_reason is GatherReason.STARTED


def test_a_stranger_and_its_join():
    assert reasons(alone().receive(from_b(), Merge(OURS))) == [GatherReason.STRANGER_HEARD]
    made = alone()
    assert reasons(made.receive(from_b(), Join(("b",), (), 4, OURS))) == [GatherReason.JOIN_HEARD]
    assert made.membership.gather_reason is GatherReason.JOIN_HEARD


def test_a_proposal_that_grows_and_a_peer_that_stays_silent():
    made = stack()
    made.start()
    effects = made.receive(from_b(), Join(("b",), (), 4, OURS))
    assert reasons(effects) == [GatherReason.PROPOSAL_GREW]
    assert reasons(made.expire("consensus")) == [GatherReason.SILENT_GIVEN_UP]


def test_a_peer_of_the_proposal_that_turns_out_to_have_other_settings():
    made = stack()
    made.start()
    made.receive(from_b(), Join(("b",), (), 4, OURS))
    effects = made.receive(from_b(), Join(("b",), (), 4, THEIRS))
    assert reasons(effects) == [GatherReason.SETTINGS_DIFFER]


def test_a_commit_token_that_does_not_come_back_and_one_that_never_comes():
    made = stack()
    made.start()
    made.receive(from_b(), Join(("a", "b"), (), 4, OURS))
    assert made.membership.phase is Phase.COMMIT
    assert reasons(made.expire("ring_loss")) == [GatherReason.COMMIT_LOST]
    made = stack("b")
    made.start()
    made.receive(Origin("g", "a", 0, ViewId(4, "a")), Join(("a", "b"), (), 4, OURS))
    assert made.membership.phase is Phase.GATHER
    assert reasons(made.expire("ring_loss")) == [GatherReason.COMMIT_MISSING]


def pair(until: Phase = Phase.OPERATIONAL) -> tuple[Stack, Stack, list[tuple[str, str]]]:
    """Two nodes that have come together as far as this phase, and the reasons on the way there."""
    nodes = {"a": stack("a"), "b": stack("b")}
    told: list[tuple[str, str]] = []
    waiting = [(name, effect) for name in nodes for effect in nodes[name].start()]
    for _ in range(400):
        if {node.membership.phase for node in nodes.values()} == {until}:
            break
        name, effect = waiting.pop(0)
        if isinstance(effect, Record) and effect.kind is Kind.GATHER:
            told.append((name, effect.tag))
        if isinstance(effect, Send):
            other = "b" if name == "a" else "a"
            origin = Origin("g", name, 0, effect.view)
            waiting += [(other, e) for e in nodes[other].receive(origin, effect.message)]
    else:
        raise AssertionError(f"they do not get to {until}")
    return nodes["a"], nodes["b"], told


def test_a_member_that_leaves():
    a, _, told = pair()
    assert told[:2] == [("a", GatherReason.STARTED), ("b", GatherReason.STARTED)]
    effects = a.receive(from_b(a.membership.view.id), Leave())
    assert reasons(effects) == [GatherReason.MEMBER_LEAVES]


def test_an_engine_that_suspects():
    a, b, _ = pair()
    for made in (a, b):
        effects = made.expire("token_loss")
        assert any(isinstance(effect, Suspect) for effect in effects)
        assert reasons(effects) == [GatherReason.ENGINE_SUSPECTS]


def test_a_ring_that_gets_stuck_while_it_is_formed():
    for made in pair(Phase.RECOVERY)[:2]:
        assert reasons(made.expire("ring_loss")) == [GatherReason.RING_STUCK]


def test_a_node_that_has_caught_up():
    assert reasons(alone().expire("caught_up")) == [GatherReason.CAUGHT_UP]


def test_a_member_that_abandons_the_ring_being_formed():
    made = stack()
    made.start()
    made.receive(from_b(), Join(("a", "b"), (), 4, OURS))
    ring = made.membership.ring_id
    effects = made.receive(from_b(), Join(("a", "b"), (), ring.seq, OURS))
    assert reasons(effects)[0] == GatherReason.RING_ABANDONED
