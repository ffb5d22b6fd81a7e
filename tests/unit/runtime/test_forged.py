"""What a core refuses is counted by a real node; and receipts of what is for others."""

import asyncio

from tests.patience import LIMIT_S
from tests.unit.runtime.test_bursts import Net, run

from roundelay.core.contract import Boot
from roundelay.core.ids import Packet, Service, Span
from roundelay.group.body import pack
from roundelay.protocols.totem import Data
from roundelay.wire.endpoint import Endpoint
from roundelay.wire.primitives import Reason


def forged(net: Net, seq: int, sender: str) -> bytes:
    """A packet under a name, as if a had sent it in the view of both."""
    node = net.nodes["a"]
    assert node.view is not None
    endpoint = Endpoint(Boot("g", "a"), node.core.codec)
    packet = Packet(Span(sender, 0, 0), Service.AGREED, pack([b"x"]))
    return endpoint.encode(Data(seq, packet), node.view.id)[1]


def test_a_refused_frame_is_counted_whether_it_comes_alone_or_in_a_burst():
    async def story(net: Net) -> None:
        b = net.nodes["b"]
        b.receive(forged(net, 1, "ghost"))
        assert b.endpoint.drops[Reason.IMPLAUSIBLE] == 1
        b.receive_many([forged(net, 1, "ghost"), forged(net, 1, "b")])
        assert b.endpoint.drops[Reason.IMPLAUSIBLE] == 3
        assert b.error is None
        net.nodes["a"].sending.accept(b"real")
        await net.until(lambda: net.payloads("b") == [b"real"])

    run(story)


def test_what_is_for_others_is_resolved_when_they_have_it():
    async def story(net: Net) -> None:
        a = net.nodes["a"]
        number = a.sending.accept(b"for b", destinations=("b",))
        receipt = a.sending.receipts.give(number)
        assert receipt.position is None
        a.sending.accept(b"for all")  # Delivered here at once: it overtakes the other.
        await net.until(lambda: receipt.position is not None)
        async with asyncio.timeout(LIMIT_S):
            await a.sending.wait_until_delivered()
        assert net.payloads("b") == [b"for b", b"for all"]

    run(story, "fifo")
