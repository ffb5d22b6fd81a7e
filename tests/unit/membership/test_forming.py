"""The ring being formed, from its Commit token to its last retransmission, without Gather."""

from typing import Any

import pytest

from roundelay.core.contract import Boot, Conclusion, Origin
from roundelay.core.effects import CancelTimer, Effect, Kind, Persist, Record, Refuse, Send
from roundelay.core.ids import View, ViewId
from roundelay.membership.config import LOSS, RETRANSMIT, MembershipConfig
from roundelay.membership.engine_guard import EngineGuard
from roundelay.membership.forming import Forming
from roundelay.membership.messages import (
    NO_TERMS,
    Commit,
    CommitEntry,
    Installed,
    Join,
    RingToken,
)
from roundelay.membership.phase import Phase
from roundelay.membership.plausibility import SEQ_BELIEVED, SEQ_STEP
from roundelay.membership.state import State

OLD = ViewId(4, "a")


class Silent:
    """An engine that has nothing to offer."""

    def freeze(self) -> bytes:
        return b""

    def seal(self, summaries: Any) -> tuple[()]:
        return ()

    def conclude(self, *_: Any) -> Conclusion:
        return Conclusion()


def forming(node: str = "a", config: MembershipConfig | None = None) -> tuple[State, Forming]:
    """A node in a view of its own, in Gather."""
    state = State(Boot("g", node), ("a", "b"), config or MembershipConfig(), NO_TERMS)
    state.start()
    state.phase = Phase.GATHER
    state.drain()
    return state, Forming(state, EngineGuard(Silent()))  # type: ignore[arg-type]


def sent(effects: list[Effect[Any]], kind: type) -> list[Any]:
    return [e.message for e in effects if isinstance(e, Send) and isinstance(e.message, kind)]


def test_the_number_of_a_ring_is_stored_before_its_token_leaves():
    state, made = forming()
    assert made.accept(made.first_commit(("a", "b"))) is None
    effects = state.drain()
    kinds = [type(effect) for effect in effects]
    assert kinds.index(Persist) < kinds.index(Send)
    assert (state.phase, state.ring_id) == (Phase.COMMIT, ViewId(8, "a"))
    assert Record(Kind.FREEZE, view=ViewId(8, "a")) in effects
    (token,) = sent(effects, Commit)
    assert (token.index, token.entries[0].old) == (1, OLD)
    assert made.members == ("a", "b")


def token_for_b(seq: int = 8) -> Commit:
    """As a, the representative, sends it on."""
    entries = (CommitEntry("a", OLD), CommitEntry("b"))
    return Commit(ViewId(seq, "a"), 1, 1, entries)


def test_only_the_token_that_was_agreed_to_is_expected():
    state, made = forming("b")
    assert made.is_expected(token_for_b(), ("a", "b"))
    assert not made.is_expected(token_for_b(), ("a", "b", "c")), "another membership"
    assert not made.is_expected(token_for_b(4), ("a", "b")), "a number that was used"
    copy = Commit(ViewId(8, "a"), 3, 1, token_for_b().entries)
    assert not made.is_expected(copy, ("a", "b")), "more hops than entries"
    assert state.drain() == []
    incredible = token_for_b(SEQ_BELIEVED + SEQ_STEP + 4)
    assert not made.is_expected(incredible, ("a", "b"))
    assert [type(effect) for effect in state.drain()] == [Refuse]


def pair() -> tuple[tuple[State, Forming], tuple[State, Forming]]:
    """Two nodes in Recovery: the Commit token has gone round twice."""
    (sa, a), (sb, b) = forming("a"), forming("b")
    a.accept(a.first_commit(("a", "b")))
    (token,) = sent(sa.drain(), Commit)
    b.accept(token)
    for state, node, other in ((sb, a, sa), (sa, b, sb)):
        (token,) = sent(state.drain(), Commit)
        node.on_commit(token)
        assert other.phase is Phase.RECOVERY
    return (sa, a), (sb, b)


def exchange() -> tuple[tuple[State, Forming], tuple[State, Forming]]:
    """The ring's token goes round until a, the representative, can install."""
    (sa, a), (sb, b) = pair()
    (token,) = sent(sb.drain(), Commit)
    step = a.on_commit(token)
    rings = {"a": (sa, a), "b": (sb, b)}
    at = "a"
    for _ in range(20):
        assert step is not None
        if step.install and at == "a":
            return rings["a"], rings["b"]
        (message,) = sent(rings[at][0].drain(), RingToken)
        origin = Origin("g", at, 0, ViewId(8, "a"))
        at = "b" if at == "a" else "a"
        step = rings[at][1].on_ring_token(origin, message)
    raise AssertionError("nobody can install")


def test_the_token_goes_round_until_the_ring_can_be_installed():
    (_, a), _ = exchange()
    assert a.recovery is not None
    assert a.recovery.complete
    assert a.recovery.new_view.members == ("a", "b")
    assert a.recovery.new_view.previous == a.recovery.transitional_view.id == ViewId(7, "a")


def test_a_commit_token_with_changed_entries_is_refused():
    state, made = forming()
    made.accept(made.first_commit(("a", "b")))
    state.drain()
    forged = (CommitEntry("a", ViewId(0, "x")), CommitEntry("b", ViewId(4, "b")))
    assert made.on_commit(Commit(ViewId(8, "a"), 2, 2, forged)) is None
    assert state.drain() == [Refuse("a Commit token with entries that nobody wrote")]
    assert state.phase is Phase.COMMIT


def test_the_last_token_is_sent_again_until_the_successor_has_installed():
    (state, made), _ = exchange()
    last = sent(state.drain(), RingToken)
    state.phase = Phase.OPERATIONAL
    made.retransmit()
    assert sent(state.drain(), RingToken) == last
    made.on_installed(Origin("g", "b", 1, ViewId(8, "a")))
    assert made.recovery is not None, "another incarnation has installed nothing"
    made.on_installed(Origin("g", "b", 0, ViewId(8, "a")))
    assert made.recovery is None
    assert state.drain() == [CancelTimer(LOSS), CancelTimer(RETRANSMIT)]
    made.retransmit()
    assert state.drain() == []


def test_who_has_installed_tells_a_member_that_still_sends_the_token():
    state, made = forming()
    state.phase = Phase.OPERATIONAL
    state.view = View(ViewId(8, "a"), ("a", "b"))
    state.lives = {"a": 0, "b": 3}
    (rs, ring), _ = exchange()
    (message,) = sent(rs.drain(), RingToken)
    made.on_ring_token(Origin("g", "b", 2, state.view.id), message)
    assert state.drain() == [], "another incarnation is no member"
    made.on_ring_token(Origin("g", "b", 3, state.view.id), message)
    assert sent(state.drain(), Installed) == [Installed()]
    assert ring.recovery is not None


@pytest.mark.parametrize(("node", "seq", "abandoned"), [("b", 8, True), ("b", 4, False)])
def test_a_join_abandons_the_ring_if_its_sender_knew_of_it(node, seq, abandoned):
    _, made = forming()
    made.accept(made.first_commit(("a", "b")))
    assert made.is_abandoned_by(node, Join(("b",), (), seq)) is abandoned
    assert not made.is_abandoned_by("c", Join(("c",), (), 8))


def test_early_frames_are_kept_up_to_a_limit_and_given_once():
    _, made = forming(config=MembershipConfig(early_frames_max=2))
    origin = Origin("g", "b", 0, ViewId(8, "a"))
    for message in ("one", "two", "three"):
        made.keep_early(origin, message)
    assert made.pop_early() == [(origin, "one"), (origin, "two")]
    assert made.pop_early() == []
    made.keep_early(origin, "four")
    made.abandon()
    assert made.pop_early() == []


def test_a_ring_of_one_goes_through_it_all_at_once():
    state, made = forming()
    step = made.accept(made.first_commit(("a",)))
    assert step is not None
    assert step.install
    assert state.phase is Phase.RECOVERY
    assert sent(state.drain(), Commit) == []
