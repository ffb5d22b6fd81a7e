"""What a node makes of the Joins and frames of others, without the rest of membership."""

from roundelay.core.contract import Boot, Origin
from roundelay.core.effects import CancelTimer, Send, SetTimer
from roundelay.core.ids import View, ViewId
from roundelay.membership.config import CONSENSUS, JOIN, LOSS, MembershipConfig
from roundelay.membership.gather import Gather, Heard
from roundelay.membership.messages import NO_TERMS, Join
from roundelay.membership.phase import GatherReason, Phase
from roundelay.membership.state import State

VIEW = View(ViewId(8, "a"), ("a", "b"))


def operational(config: MembershipConfig | None = None) -> tuple[State, Gather]:
    """Node a in a view with b."""
    state = State(Boot("g", "a"), ("a", "b"), config or MembershipConfig(), NO_TERMS)
    gather = Gather(state)
    state.ring_id, state.view, state.lives = VIEW.id, VIEW, {"a": 0, "b": 0}
    gather.end(VIEW, VIEW)
    state.drain()
    return state, gather


def gathering(config: MembershipConfig | None = None) -> tuple[State, Gather]:
    state, gather = operational(config)
    state.phase = Phase.GATHER
    gather.begin()
    state.drain()
    return state, gather


def of(node: str, seq: int = 4) -> Origin:
    return Origin("g", node, 0, ViewId(seq, node))


def test_a_gather_begins_with_a_join_and_two_timers():
    state, gather = operational()
    state.phase = Phase.GATHER
    gather.begin()
    effects = state.drain()
    assert Send(Join(("a", "b"), (), 8), VIEW.id) in effects
    assert [e.timer for e in effects if isinstance(e, SetTimer)] == [JOIN, CONSENSUS]
    assert CancelTimer(LOSS) in effects


def test_a_join_of_an_outsider_that_finds_us_operational_begins_a_gather():
    _, gather = operational()
    heard = gather.hear_join(of("c"), Join(("c",), (), 4), forming=False)
    assert heard == Heard(GatherReason.JOIN_HEARD)
    assert gather.proposal.procs == {"a", "b", "c"}


def test_no_outsider_is_answered_while_members_have_yet_to_install():
    _, gather = operational()
    assert gather.hear_join(of("c"), Join(("c",), (), 4), forming=True) == Heard()
    assert not gather.hear_stranger(of("c"), forming=True)
    assert gather.proposal.procs == {"a", "b"}
    assert gather.hear_stranger(of("c"), forming=False)
    assert gather.proposal.procs == {"a", "b", "c"}


def test_a_join_of_the_gather_that_led_to_the_view_is_stale():
    _, gather = operational()
    b = Origin("g", "b", 0, ViewId(4, "b"))
    assert gather.hear_join(b, Join(("a", "b"), (), 4), forming=False) == Heard()
    heard = gather.hear_join(b, Join(("a", "b"), (), 8), forming=False)
    assert heard == Heard(GatherReason.JOIN_HEARD, agrees=True)


def test_a_delayed_frame_of_a_member_and_an_early_one_of_the_ring_are_no_strangers():
    state, gather = operational()
    assert not gather.hear_stranger(of("b"), forming=False)
    state.ring_id = ViewId(12, "a")
    early = Origin("g", "c", 0, state.ring_id)
    assert not gather.hear_stranger(early, forming=False)


def test_joins_that_agree_tell_less_or_tell_more():
    _, gather = gathering()
    assert gather.hear_join(of("b"), Join(("a", "b"), (), 8), forming=False) == Heard(agrees=True)
    assert gather.hear_join(of("b"), Join(("b",), (), 8), forming=False) == Heard()
    heard = gather.hear_join(of("b"), Join(("a", "b", "c"), (), 8), forming=False)
    assert heard == Heard(GatherReason.PROPOSAL_GREW, agrees=True)


def test_a_node_that_was_given_up_is_not_listened_to():
    _, gather = gathering()
    gather.give_up_silent()
    assert gather.proposal.fails == {"b"}
    assert gather.hear_join(of("b"), Join(("b", "c"), (), 8), forming=False) == Heard()
    assert "c" not in gather.proposal.procs


def test_a_list_of_more_names_than_a_ring_holds_changes_nothing():
    state, gather = gathering(MembershipConfig(members_max=3))
    many = Join(("b", "c", "d"), (), 400)
    assert gather.hear_join(of("b"), many, forming=False) == Heard()
    assert (gather.proposal.procs, state.max_seq) == ({"a", "b"}, 0)
    assert gather.hear_stranger(of("c"), forming=False)
    assert not gather.hear_stranger(of("d"), forming=False)


def test_outsiders_are_not_let_in_once_all_have_agreed():
    state, gather = gathering()
    gather.await_commit()
    assert state.drain() == [CancelTimer(CONSENSUS), SetTimer(LOSS, state.config.ring_loss_s)]
    gather.await_commit()
    assert state.drain() == [], "it waits already"
    assert gather.hear_join(of("c"), Join(("c",), (), 4), forming=False) == Heard()
    assert not gather.hear_stranger(of("c"), forming=False)


def test_consensus_is_reached_when_all_that_are_left_agree():
    _, gather = gathering()
    assert gather.consensus() == ()
    gather.proposal.agreed.add("b")
    assert gather.consensus() == ("a", "b")


def test_a_node_that_has_just_started_does_not_go_on_alone_at_once():
    state = State(Boot("g", "a"), ("a",), MembershipConfig(), NO_TERMS)
    gather = Gather(state)
    assert gather.consensus() == ()
    assert gather.consensus(alone=True) == ("a",)
    gather.proposal.give_up(("b",))
    assert gather.consensus() == ("a",), "it has given up the others, and need not wait"


def test_a_membership_that_fails_repeatedly_loses_its_largest_member():
    _, gather = gathering()
    for _ in range(2):
        gather.count_failure(("a", "b"))
        assert gather.proposal.fails == set()
    gather.count_failure(("a", "b"))
    assert gather.proposal.fails == {"b"}
