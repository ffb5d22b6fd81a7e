"""The engine under membership: what it may still do, and what is remembered of it."""

import pytest

from roundelay.core.contract import Conclusion, Item
from roundelay.core.effects import CancelTimer, Kind, Record, Send, SetTimer, Suspect
from roundelay.core.ids import Packet, Service, Span, View, ViewId
from roundelay.membership.phase import Hold
from roundelay.membership.tenant import Tenant
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
def tenant():
    return Tenant(Still())  # type: ignore[arg-type]  # As much of one as is asked for.


def test_the_view_a_node_starts_in_is_left_without_the_engine(tenant):
    assert tenant.freeze() == (b"", [])
    assert tenant.seal({}) == ()
    assert tenant.absorb(Item((1,), b"x")) == []
    assert tenant.conclude({}, VIEW, ()) == Conclusion()
    assert tenant.engine.calls == []


def test_a_view_from_its_beginning_to_its_end(tenant):
    assert tenant.heed(tenant.begin(VIEW)) == []
    assert (tenant.hold, tenant.timers) == (Hold.LIVE, {"beat"})
    assert tenant.freeze() == (b"sum", [CancelTimer("beat")])
    assert tenant.freeze() == (b"sum", []), "it is asked again when an attempt failed"
    assert tenant.hold.value == "frozen"
    assert tenant.seal({}) == [Item((1,), b"x")]
    assert tenant.hold.value == "sealed"
    assert tenant.freeze() == (b"sum", [])
    assert tenant.hold.value == "sealed", "what is sealed stays sealed"
    assert tenant.absorb(Item((1,), b"x")) == [Record(Kind.RECEIVE)]
    assert tenant.conclude({}, VIEW, ()).withdrawn == (MINE,)


def test_a_forged_summary_seals_nothing(tenant):
    tenant.begin(VIEW)
    tenant.freeze()
    tenant.engine.sealing = WireError(Reason.MALFORMED)
    with pytest.raises(WireError):
        tenant.seal({})
    assert tenant.hold is Hold.FROZEN


def test_a_view_neither_begins_nor_ends_while_one_runs(tenant):
    tenant.begin(VIEW)
    with pytest.raises(AssertionError, match="still runs"):
        tenant.begin(VIEW)
    with pytest.raises(AssertionError, match="still runs"):
        tenant.conclude({}, VIEW, ())


def test_timers_words_and_suspicions_are_accounted_for(tenant):
    tenant.begin(VIEW)
    doubt = Suspect(("b",), "silent")
    assert tenant.heed([SetTimer("t", 1.0), Send("x", VIEW.id, "b")]) == []
    assert (tenant.timers, tenant.spoke) == ({"t"}, False)
    assert tenant.heed([CancelTimer("t"), Send("x", VIEW.id), doubt]) == [doubt]
    assert (tenant.timers, tenant.spoke) == (set(), True)


def test_an_expired_timer_is_the_engines_once(tenant):
    tenant.heed(tenant.begin(VIEW))
    assert not tenant.owns("join")
    assert tenant.owns("beat")
    assert not tenant.owns("beat")


def test_a_view_that_is_over_has_records_and_nothing_else(tenant):
    tenant.begin(VIEW)
    tenant.freeze()
    assert tenant.heed([Record(Kind.RECEIVE)]) == []
    with pytest.raises(AssertionError, match="a view that is over"):
        tenant.heed([SetTimer("t", 1.0)])
