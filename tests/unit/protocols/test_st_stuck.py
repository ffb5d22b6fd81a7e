"""A view of ST that comes to nothing ends with a suspicion, and keeps a bounded number of packets
until then."""

from dataclasses import replace
from typing import Any

from tests.unit.protocols.outlet import Queue

from roundelay.core.contract import Origin
from roundelay.core.effects import Deliver, Suspect
from roundelay.core.ids import Packet, Service, Span, View, ViewId
from roundelay.protocols.st.config import Config
from roundelay.protocols.st.member import StMember
from roundelay.protocols.st.messages import Placed, Transmission
from roundelay.protocols.st.st import Engine
from roundelay.protocols.st.state import WATCHES
from roundelay.protocols.st.watching import STUCK_SILENCES

VIEW = View(ViewId(4, "a"), ("a", "b", "c"), primary=True)
FROM_A = Origin("group", "a", 0, VIEW.id)


def member(**options: Any) -> StMember:
    engine = Engine("b", Queue(), replace(Config(), **options))
    engine.start(VIEW)
    return engine


def packet(number: int) -> Packet:
    return Packet(Span("a", 0, number, 1), Service.AGREED, b"x")


def words(source: int, number: int, sent: Packet | None, ack: tuple[int, ...]) -> Transmission:
    count = number - 1 if source == 0 else 0
    return Transmission(source, 0, number, (count,) * 3, ack, (1, 1, 1), (1, 1, 1), 9, sent)


def looks(engine: StMember, hop: int, sent: int = 0) -> list[Suspect]:
    """What is suspected after a while in which a, who has sent so many packets, is heard."""
    found: list[Suspect] = []
    for _ in range(STUCK_SILENCES * WATCHES + 1):
        hop += 1
        word = words(0, sent + 1, None, (sent + 1, 1, 1))
        engine.receive(FROM_A, Placed(hop, hop, word))
        found += [e for e in engine.expire("watch") if isinstance(e, Suspect)]
    return found


def test_a_forged_acknowledgment_that_holds_everything_back_ends_the_view():
    engine = member()
    engine.receive(FROM_A, Placed(1, 1, words(0, 1, packet(0), (1, 1, 1))))
    # c is said to have seen a hundred packets of a, which has sent one.
    engine.receive(FROM_A, Placed(2, 1, words(2, 1, None, (100, 1, 1))))
    assert [suspect.reason for suspect in looks(engine, 2, sent=1)] == ["nothing is agreed on"]


def test_a_member_that_acknowledges_nothing_is_suspected():
    engine = member()
    outlet = engine._outlet
    assert isinstance(outlet, Queue)
    outlet.packets.append(replace(packet(0), span=Span("b", 0, 0, 1)))
    engine.submit()
    (suspect,) = looks(engine, 0)
    assert suspect == Suspect(("a", "c"), "nothing is acknowledged")


def test_nobody_is_suspected_while_nothing_waits():
    engine = member()
    assert looks(engine, 0) == []


def test_a_member_without_room_closes_the_window():
    engine = member()
    outlet = engine._outlet
    assert isinstance(outlet, Queue)
    engine.receive(FROM_A, Placed(1, 1, replace(words(0, 1, None, (1, 1, 1)), room=0)))
    outlet.packets.append(replace(packet(0), span=Span("b", 0, 0, 1)))
    assert not [e for e in engine.submit() if isinstance(e, Deliver)]
    assert outlet.waiting == 1
    engine.receive(FROM_A, Placed(2, 2, replace(words(0, 1, None, (1, 1, 1)), room=1)))
    assert outlet.waiting == 0


def test_a_member_that_is_alone_keeps_nothing():
    outlet = Queue()
    engine = Engine("b", outlet, Config())
    engine.start(View(ViewId(4, "b"), ("b",), primary=True))
    for number in range(100):
        outlet.packets.append(replace(packet(0), span=Span("b", 0, number, 1)))
        delivered = [e for e in engine.submit() if isinstance(e, Deliver)]
        assert len(delivered) == 1
    assert not engine.logs.known
