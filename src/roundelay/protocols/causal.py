"""Causal: no message before those that its sender had delivered; no order between the rest.

A sender tells with each packet how many packets of every member it had delivered (a vector clock of
the view). A receiver delivers the packet once it has delivered as many itself. Packets that do not
know of each other are delivered as they come, so members may deliver them in different orders.

Services: `fifo`, `causal` and `agreed` packets are delivered in causal order, since this engine has
no other. A `safe` packet waits until every member of the view has it and all its causes; what
depends on it waits too, and nothing else does.

The end of a view: all that the members who move on together hold is delivered, except a packet
whose cause none of them has: it is dropped, with what depends on it, by all of them alike. A safe
packet which nobody knows to have reached all of the view goes to the transitional view, with what
depends on it. Nothing is ever withdrawn: the causes of its own packets are with their sender.
"""

import struct
from collections import deque
from collections.abc import Mapping, Sequence
from operator import gt, le, lt

from roundelay.core.contract import Outlet
from roundelay.core.description import Capacity, Description, Promises, Properties
from roundelay.core.ids import NodeId, Packet, Service, View
from roundelay.core.value import value
from roundelay.links.engine import LinkEngine, Ordered
from roundelay.links.link import LinkConfig
from roundelay.links.messages import Data, LinkCodec, header_bytes
from roundelay.wire.packet import MEMBERS_MAX, decode_packet, encode_packet
from roundelay.wire.primitives import I64_MAX, Reason, WireError

_SAFE = Service.SAFE
_COUNT = struct.Struct(">H")
_new = tuple.__new__

Config = LinkConfig
"""Nothing of its own to tune."""

Causes = tuple[int, ...]
"""By member: how many of its packets the sender had delivered."""


@value
class Content:
    """A packet and its causes."""

    causes: Causes
    packet: Packet

    def __str__(self) -> str:
        return f"after {' '.join(map(str, self.causes))} {self.packet}"


def _write(content: Content, before: bytes) -> bytes:
    causes = content.causes
    vector = struct.pack(f">H{len(causes)}Q", len(causes), *causes)
    return encode_packet(content.packet, before + vector)


def _read(data: bytes, start: int) -> Content:
    try:
        (count,) = _COUNT.unpack_from(data, start)
        if count > MEMBERS_MAX:
            raise WireError(Reason.MALFORMED, f"causes of {count} members")
        causes = struct.unpack_from(f">{count}Q", data, start + _COUNT.size)
    except struct.error:
        raise WireError(Reason.MALFORMED, "the message ends within a number") from None
    if causes and max(causes) > I64_MAX:
        raise WireError(Reason.MALFORMED, "a number past 63 bits")
    return Content(causes, decode_packet(data, start + _COUNT.size + 8 * count))


class CausalOrder:
    """Packets behind their causes. Members are numbered by their place."""

    def __init__(self, members: int, me: int) -> None:
        self.me = me
        self.members = members
        self.delivered = [0] * members
        """By member: its packets delivered here, which is the number of the last one."""
        self._arrived: list[Causes] = [(0,) * members] * members
        """By member: the causes of its last packet, which never grow smaller."""
        self._waiting: list[deque[tuple[int, Content]]] = [deque() for _ in range(members)]
        """By member: packets that are not delivered, with their numbers on the link."""
        self._waiting_count = 0

    def causes(self) -> Causes:
        """Those of an own packet that is sent now."""
        return tuple(self.delivered)

    def sound(self, content: Content) -> bool:
        return len(content.causes) == self.members

    def arrive(self, sender: int, number: int, content: Content) -> bool:
        if any(map(lt, content.causes, self._arrived[sender])):
            return False
        self._arrived[sender] = content.causes
        self._waiting[sender].append((number, content))
        self._waiting_count += 1
        return True

    def close(self) -> None:
        """A packet whose cause is not here is never ready."""

    def ready(self, stable: Sequence[int]) -> list[Ordered]:
        ready: list[Ordered] = []
        progress = True
        while progress and self._waiting_count:
            progress = False
            for sender, waiting in enumerate(self._waiting):
                while waiting and self._may_go(sender, *waiting[0], stable):
                    number, content = waiting.popleft()
                    self.delivered[sender] = number
                    ready.append(_new(Ordered, (sender, number, content.packet, None)))
                    self._waiting_count -= 1
                    progress = True
        return ready

    def _may_go(self, sender: int, number: int, content: Content, stable: Sequence[int]) -> bool:
        delivered = self.delivered
        if any(map(gt, content.causes, delivered)):  # The loop alone would do, and is slower.
            for member, cause in enumerate(content.causes):
                if cause > delivered[member] and member != sender:
                    return False
        if content.packet.service is not _SAFE:
            return True
        return number <= stable[sender] and all(map(le, content.causes, stable))


class CausalEngine(LinkEngine[Content]):
    """One member of a group in causal order."""

    codec = LinkCodec(_write, _read)

    def __init__(self, node: NodeId, outlet: Outlet, config: Config | None = None) -> None:
        self.config = config or Config()
        super().__init__(node, outlet, self.config)

    def _new_order(self, view: View) -> CausalOrder:
        self.causal = CausalOrder(len(view.members), self.me)
        return self.causal

    def _genuine(self, sender: int, content: Content) -> bool:
        """Its causes are packets that members can have sent, too."""
        return super()._genuine(sender, content) and self.link.can_hold(content.causes)

    def _handed_up(self, sender: int, content: Content) -> None:
        """A cause that nobody else tells of is forged. It is asked for in vain, and so the view
        ends."""
        if any(map(gt, content.causes, self.link.ledger.top)):
            self.link.note_sent(content.causes)

    def _wrap(self, packet: Packet) -> Content:
        return Content(self.causal.causes(), packet)


def _tune(capacity: Capacity, timers: Mapping[str, float]) -> Mapping[str, float]:
    """Every sender has a window of its own: together they fill the receive buffer."""
    return {"window_packets": max(2, capacity.window_packets // max(1, capacity.nodes - 1))}


DESCRIPTION = Description(
    name="causal",
    summary="No message before those that its sender had delivered; no order between the rest.",
    engine=CausalEngine,
    config=Config,
    data_tags=("DATA",),
    header_bytes=lambda nodes: header_bytes(nodes) + 2 + 8 * nodes,  # Causes, too.
    packets_in=lambda message: type(message) is Data,
    promises=Promises(
        Properties("O1r O2r S1 S3 S4 L1 L4", "D8 O1 O2"),
        in_views=Properties("S2"),
    ),
    alarm="silence_s",
    shared_options=("heartbeat_s",),
    tune=_tune,
    simulation="roundelay.sim.engines.causal",
)
