"""The book-keeper's shares: packets count, since each takes one slot, however much it holds."""

from tests.unit.protocols.outlet import Queue

from roundelay.core.contract import Origin
from roundelay.core.description import Capacity
from roundelay.core.ids import Packet, Service, Span, View, ViewId
from roundelay.links.messages import Data
from roundelay.protocols.atop.atom import COVER_SLOTS_MAX, Tag
from roundelay.protocols.atop.atop import DESCRIPTION, AtopEngine, Config
from roundelay.protocols.atop.messages import Content

VIEW = View(ViewId(4, "a"), ("a", "b", "c"))


def test_a_packet_of_many_messages_counts_as_one():
    keeper = AtopEngine("a", Queue(), Config(factor=4, threshold_permille=500))
    keeper.start(VIEW)
    for number in range(1, 7):
        for sender, messages in ((1, 500), (2, 1)):
            span = Span("abc"[sender], 0, 500 * number, messages)
            content = Content(Tag(0, number - 1), Packet(span, Service.AGREED, b"x"))
            received = (0, number, number if sender == 2 else number - 1)
            origin = Origin("g", "abc"[sender], 0, VIEW.id)
            keeper.receive(origin, Data(sender, number, 0, received, content))
    keeper.expire("period")
    assert keeper.atom.known[1] == (1, 6 * 16 + 1, 6 * 16 + 1)


def test_a_real_group_looks_back_on_several_windows():
    """One member's burst is a window at most, and must not pass for its share of the traffic."""
    for nodes in range(2, 30):
        for packets in (2, 60, 120, 300):
            tuned = DESCRIPTION.tune(Capacity(nodes, 1400, 100, packets), {})
            look_back = tuned["factor"] * nodes
            assert look_back >= 2.5 * tuned["window_packets"]
            walked = tuned["window_packets"] * look_back * tuned["scale"]
            assert tuned["scale"] == 1 or walked <= COVER_SLOTS_MAX
            assert {type(tuned[name]) for name in ("factor", "scale", "window_packets")} == {int}
