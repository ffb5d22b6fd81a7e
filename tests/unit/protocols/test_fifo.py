"""The fifo engine: what it adds to a link."""

import pytest
from tests.unit.protocols.outlet import Queue

from roundelay.core.contract import Item, Origin
from roundelay.core.effects import Deliver, Kind, Receipt, Record, Refuse, Send, Suspect
from roundelay.core.ids import Packet, Service, Span, View, ViewId
from roundelay.links.messages import Data, Heartbeat
from roundelay.protocols.fifo import Config, FifoEngine
from roundelay.wire.primitives import WireError

VIEW = View(ViewId(8, "a"), ("a", "b", "c"))
REST = View(ViewId(11, "a"), ("a", "b"), transitional=True)


def packet(node="a", number=0, service=Service.AGREED, to=None):
    return Packet(Span(node, 0, number), service, b"x", to)


def engine(node="a", **options):
    queue = Queue()
    made = FifoEngine(node, queue, Config(**options))
    made.start(VIEW)
    return made, queue


def hear(made, node, message):
    return made.receive(Origin("g", node, 0, VIEW.id), message)


def delivered(effects):
    return [str(e.packet.span) for e in effects if isinstance(e, Deliver)]


def recorded(effects, kind):
    return [
        str(e.subject.span if isinstance(e.subject, Packet) else e.subject)
        for e in effects
        if isinstance(e, Record) and e.kind is kind
    ]


def test_a_packet_is_originated_sent_and_delivered_in_this_order():
    made, queue = engine()
    queue.packets.append(packet())
    effects = made.submit()
    kinds = [e.kind if isinstance(e, Record) else type(e) for e in effects]
    assert kinds.index(Kind.ORIGINATE) < kinds.index(Send) < kinds.index(Deliver)


def test_packets_that_waited_for_a_view_are_sent_in_it():
    queue = Queue()
    queue.packets.append(packet())
    assert delivered(FifoEngine("a", queue).start(VIEW)) == ["a:0"]


def test_every_copy_is_recorded_and_one_is_delivered():
    made, _ = engine("b")
    data = Data(0, 1, 0, (1, 0, 0), packet())
    first, again = hear(made, "a", data), hear(made, "c", data)
    assert recorded(first, Kind.RECEIVE) == recorded(again, Kind.RECEIVE) == ["a:0"]
    assert delivered(first) == ["a:0"]
    assert delivered(again) == []


def test_what_all_have_is_claimed_once():
    made, _ = engine("b")
    hear(made, "a", Data(0, 1, 0, (1, 0, 0), packet()))
    assert recorded(hear(made, "c", Heartbeat((1, 0, 0))), Kind.STABLE) == ["a:0"]
    assert recorded(hear(made, "c", Heartbeat((1, 0, 0))), Kind.STABLE) == []


def test_a_packet_under_another_name_changes_nothing():
    made, _ = engine("b")
    for sender in (0, 7):
        forged = Data(sender, 1, 0, (1, 0, 0), packet("c"))
        assert [type(effect) for effect in hear(made, "a", forged)] == [Refuse]
    assert made.link.ledger.held == [{}, {}, {}]
    item = Item((0, 1), made.codec.pack(packet("c")))
    with pytest.raises(WireError):
        made.absorb(item)


def test_a_frozen_engine_pulls_and_delivers_nothing():
    made, queue = engine("b")
    made.freeze()
    queue.packets.append(packet("b"))
    effects = hear(made, "a", Data(0, 1, 0, (1, 0, 0), packet()))
    assert effects == [Record(Kind.RECEIVE, packet().span, VIEW.id)]
    assert queue.waiting == 1
    end = made.conclude({"a": made.freeze(), "b": made.freeze()}, REST, ("a", "b"))
    assert delivered(end.regular) == ["a:0"]


def together(*engines):
    """All of a and b move on; how each ends the view."""
    for _ in range(2):  # An attempt that fails, and another.
        summaries = {made.node: made.freeze() for made in engines}
        items = [item for made in engines for item in made.seal(summaries)]
    for made in engines:
        for item in items:
            assert made.absorb(item)
    return [made.conclude(summaries, REST, ("a", "b")) for made in engines]


def test_a_safe_packet_that_may_not_have_reached_all_goes_to_the_transitional_view():
    a, queue = engine("a")
    b, _ = engine("b")
    queue.packets += [packet(), packet(number=1, service=Service.SAFE), packet(number=2)]
    assert delivered(a.submit()) == ["a:0"]
    first, second = together(a, b)
    assert delivered(first.regular) == []
    assert delivered(second.regular) == ["a:0"]
    assert delivered(first.transitional) == delivered(second.transitional) == ["a:1", "a:2"]
    assert first.withdrawn == second.withdrawn == ()


def test_one_member_that_knows_a_safe_packet_to_be_everywhere_is_enough():
    a, queue = engine("a")
    b, _ = engine("b")
    queue.packets += [packet(service=Service.SAFE), packet(number=1)]
    for effect in a.submit():
        if isinstance(effect, Send):
            hear(b, "a", effect.message)
    hear(a, "b", Heartbeat((2, 0, 0)))
    assert delivered(hear(a, "c", Heartbeat((2, 0, 0)))) == ["a:0", "a:1"]
    first, second = together(a, b)
    assert delivered(first.regular) == []
    assert delivered(second.regular) == ["a:0", "a:1"]
    assert second.transitional == ()


def test_where_nobody_is_left_behind_everything_is_delivered_in_the_old_view():
    a, queue = engine("a")
    b, c = engine("b")[0], engine("c")[0]
    queue.packets += [packet(service=Service.SAFE, to=("b",)), packet(number=1)]
    a.submit()
    ends = together(a, b, c)
    assert [delivered(end.regular) for end in ends] == [["a:1"], ["a:0", "a:1"], ["a:1"]]
    assert [delivered(end.transitional) for end in ends] == [[], [], []]
    assert [receipts(end.transitional) for end in ends] == [["a:0"], [], []]


# Destinations


def receipts(effects) -> list[str]:
    return [str(effect.span) for effect in effects if isinstance(effect, Receipt)]


def to(*destinations: str, sender: str = "a", number: int = 0) -> Packet:
    return Packet(Span(sender, 0, number), Service.AGREED, b"x", destinations)


def test_a_packet_for_nobody_of_the_view_is_refused_and_not_sent():
    made, queue = engine("b")
    forged = Data(0, 1, 0, (1, 0, 0), to("ghost"))
    assert [type(effect) for effect in hear(made, "a", forged)] == [Refuse]
    with pytest.raises(WireError):
        made.absorb(Item((0, 1), made.codec.pack(to("ghost"))))
    queue.packets.append(to("ghost", sender="b"))
    effects = made.submit()
    assert receipts(effects) == ["b:0"]
    assert not [effect for effect in effects if isinstance(effect, Send)]


def test_a_destination_beside_a_stranger_is_enough():
    made, _ = engine("b")
    assert delivered(hear(made, "a", Data(0, 1, 0, (1, 0, 0), to("b", "ghost")))) == ["a:0"]


def test_the_receipt_of_what_is_for_others_waits_for_those_alone():
    made, queue = engine("b")
    queue.packets += [to("a", sender="b"), to("b", "c", sender="b", number=1)]
    assert receipts(made.submit()) == []
    assert receipts(hear(made, "c", Heartbeat((0, 2, 0)))) == []
    assert receipts(hear(made, "a", Heartbeat((0, 1, 0)))) == ["b:0"]
    assert receipts(hear(made, "a", Heartbeat((0, 2, 0)))) == [], "its own delivery is the receipt"


def test_no_receipt_for_a_piece_that_completes_no_message():
    made, queue = engine("b")
    queue.packets.append(Packet(Span("b", 0, 0, 0), Service.AGREED, b"x", ("a",)))
    made.submit()
    assert receipts(hear(made, "a", Heartbeat((0, 1, 0)))) == []


def test_what_asks_in_vain_suspects_the_view():
    made, _ = engine("b")
    hear(made, "a", Heartbeat((3, 0, 0)))  # Forged: a has sent nothing, and says no more.
    attempts = round(made.config.stall_s / made.config.missing_s)
    suspicions = [
        attempt
        for attempt in range(1, attempts + 1)
        for effect in made.expire("missing")
        if isinstance(effect, Suspect)
    ]
    assert suspicions == [attempts]


def test_more_than_a_sender_can_have_sent_is_refused():
    made, _ = engine("b")
    for numbers in ((4097, 0, 0), (0, 1, 0), (2**62, 0, 0), (0, 0)):
        assert [type(effect) for effect in hear(made, "a", Heartbeat(numbers))] == [Refuse]
    assert made.link.ledger.top == [0, 0, 0]
