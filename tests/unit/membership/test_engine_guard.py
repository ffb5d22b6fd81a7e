"""The engine under membership: what it may still do, and what is remembered of it."""

import pytest

from roundelay.core.contract import Conclusion, Item
from roundelay.core.effects import (
    CancelTimer,
    Deliver,
    Kind,
    Record,
    Refuse,
    Send,
    SetTimer,
    Suspect,
)
from roundelay.core.ids import Packet, Service, Span, View, ViewId
from roundelay.membership.engine_guard import EngineGuard
from roundelay.membership.phase import Hold
from roundelay.wire.primitives import Reason, WireError

VIEW = View(ViewId(4, "a"), ("a", "b"))
MINE = Packet(Span("a", 0, 1, 1), Service.AGREED, b"x")


class Still:
    """An engine that notes what it is asked for."""

    def __init__(self):
        self.calls = []
        self.sealing = None

    def start(self, view):
        self.calls.append("start")
        return [SetTimer("beat", 1.0)]

    def freeze(self):
        self.calls.append("freeze")
        return b"sum"

    def seal(self, summaries):
        self.calls.append("seal")
        if self.sealing is not None:
            raise self.sealing
        return [Item((1,), b"x")]

    def absorb(self, item):
        self.calls.append("absorb")
        return [Record(Kind.RECEIVE)]

    def conclude(self, summaries, transitional, obligations):
        self.calls.append("conclude")
        return Conclusion(withdrawn=(MINE,))


@pytest.fixture
def guard():
    return EngineGuard(Still())  # type: ignore[arg-type]  # As much of one as is asked for.


def test_the_view_a_node_starts_in_is_left_without_the_engine(guard):
    assert guard.freeze() == (b"", [])
    assert guard.seal({}) == ()
    assert guard.absorb(Item((1,), b"x")) == []
    assert guard.conclude({}, VIEW, ()) == Conclusion()
    assert guard.engine.calls == []


def test_a_view_from_its_beginning_to_its_end(guard):
    assert guard.note_effects(guard.start(VIEW)) is None
    assert (guard.hold, guard.timers) == (Hold.LIVE, {"beat"})
    assert guard.freeze() == (b"sum", [CancelTimer("beat")])
    assert guard.freeze() == (b"sum", []), "it is asked again when an attempt failed"
    assert guard.hold.value == "frozen"
    assert guard.seal({}) == [Item((1,), b"x")]
    assert guard.hold.value == "sealed"
    assert guard.freeze() == (b"sum", [])
    assert guard.hold.value == "sealed", "what is sealed stays sealed"
    assert guard.absorb(Item((1,), b"x")) == [Record(Kind.RECEIVE)]
    assert guard.conclude({}, VIEW, ()).withdrawn == (MINE,)


def test_a_forged_summary_seals_nothing(guard):
    guard.start(VIEW)
    guard.freeze()
    guard.engine.sealing = WireError(Reason.MALFORMED)
    with pytest.raises(WireError):
        guard.seal({})
    assert guard.hold is Hold.FROZEN


def test_a_view_neither_begins_nor_ends_while_one_runs(guard):
    guard.start(VIEW)
    with pytest.raises(AssertionError, match="still runs"):
        guard.start(VIEW)
    with pytest.raises(AssertionError, match="still runs"):
        guard.conclude({}, VIEW, ())


def test_timers_words_and_suspicions_are_accounted_for(guard):
    guard.start(VIEW)
    doubt = Suspect(("b",), "silent")
    assert guard.note_effects([SetTimer("t", 1.0), Send("x", VIEW.id, "b")]) is None
    assert (guard.timers, guard.multicast) == ({"t"}, False)
    assert guard.note_effects([CancelTimer("t"), Send("x", VIEW.id), doubt, Suspect()]) is doubt
    assert (guard.timers, guard.multicast) == (set(), True)


def test_an_expired_timer_is_the_engines_once(guard):
    guard.note_effects(guard.start(VIEW))
    assert not guard.pop_timer("join")
    assert guard.pop_timer("beat")
    assert not guard.pop_timer("beat")


def test_a_view_that_is_over_has_records_and_nothing_else(guard):
    guard.start(VIEW)
    guard.freeze()
    assert guard.note_effects([Record(Kind.RECEIVE), Refuse("forged")]) is None
    for effect in (SetTimer("t", 1.0), Send("x", VIEW.id), Deliver(MINE, VIEW.id), Suspect(("b",))):
        with pytest.raises(AssertionError, match="a view that is over"):
            guard.note_effects([effect])
