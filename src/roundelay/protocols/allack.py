"""All-Ack: one order by Lamport clocks, once every member has been heard.

The symmetric protocol that others are compared with. A sender stamps each packet with its clock.
The packet with the least stamp is delivered when every other member has sent something with the
same stamp or a larger one: nothing smaller can come any more, since links keep each sender's order.
Equal stamps are ordered by the places of their senders in the view.

So the group is as slow as its slowest sender. A member that has nothing to send tells its clock in
a null message when others wait for it (`nulls=yes`). Without null messages, which is how the
protocol is compared in the literature, the last packets before a quiet time wait for ever.

Services: `fifo`, `causal` and `agreed` packets are delivered in the one order. A `safe` packet
waits until every member of the view has it, and all that is ordered behind it waits too.

The end of a view: all that the members who move on together hold is delivered, in the order of
stamps. A safe packet which nobody knows to have reached all of the view goes to the transitional
view, with all that is ordered behind it. Nothing is ever withdrawn.
"""

import struct
from collections.abc import Mapping, Sequence
from heapq import heappop, heappush

from roundelay.core.contract import Outlet
from roundelay.core.description import Capacity, Description, Promises, Properties
from roundelay.core.effects import CancelTimer, SetTimer
from roundelay.core.ids import NodeId, Packet, View
from roundelay.core.value import value
from roundelay.links.engine import HoldBack, LinkEngine, Ordered
from roundelay.links.link import LinkConfig
from roundelay.links.messages import Data, LinkCodec, header_bytes
from roundelay.wire.packet import decode_packet, encode_packet
from roundelay.wire.primitives import Reason, WireError

_new = tuple.__new__
_HEAD = struct.Struct(">QB")

HOLD = "hold"

CLOCK_MAX = 2**48
"""Largest stamp: with a view of 1024 members, keys still fit 63 bits."""

CLOCK_STEP_MAX = 1 << 20
"""How far a stamp may be ahead of all that this member has heard. An honest one is ahead by what is
on its way; a forged one must not use up the clock of the view."""


@value
class Config(LinkConfig):
    """Besides the settings of links: null messages."""

    nulls: bool = True
    """Whether a member tells its clock when it has nothing else to send."""
    hold_s: float = 0.002
    """Until it does. Shorter: null messages that the next packet would have made needless; longer:
    every packet waits that long for a silent member."""

    def __post_init__(self) -> None:
        LinkConfig.__post_init__(self)
        if self.hold_s <= 0:
            raise ValueError("hold_s is a time above 0, like hold_s=0.002")


@value
class Content:
    """A packet, or none, and the clock of its sender."""

    clock: int
    packet: Packet | None = None

    def __str__(self) -> str:
        return f"@{self.clock} {self.packet if self.packet is not None else 'null'}"


def _write(content: Content, before: bytes) -> bytes:
    packet = content.packet
    head = before + _HEAD.pack(content.clock, packet is not None)
    return head if packet is None else encode_packet(packet, head)


def _read(data: bytes, start: int) -> Content:
    try:
        clock, full = _HEAD.unpack_from(data, start)
    except struct.error:
        raise WireError(Reason.MALFORMED, "the message ends within a number") from None
    if not 0 < clock <= CLOCK_MAX or full > 1:
        raise WireError(Reason.MALFORMED, f"a clock of {clock}, a flag of {full}")
    at = start + _HEAD.size
    if full:
        return Content(clock, decode_packet(data, at))
    if at != len(data):
        raise WireError(Reason.MALFORMED, f"{len(data) - at} bytes too many")
    return Content(clock)


class ClockOrder:
    """Packets by the clocks of their senders. Members are numbered by their place."""

    def __init__(self, members: int, me: int) -> None:
        self.me = me
        self.members = members
        self.clock = 0
        """The largest stamp sent or heard."""
        self.heard = [0] * members
        """By member: the stamp of its last content."""
        self._others = [0] * members
        """The same, with a stamp that is never the least in place of this member's own."""
        self._others[me] = CLOCK_MAX
        self._least = 0 if members > 1 else CLOCK_MAX
        """The least of those: all other members have sent something with this stamp or later."""
        self.newest = 0
        """The largest stamp of a packet."""
        self.closed = False
        self._waiting: list[tuple[int, int, int, Packet]] = []
        """A heap: stamp, sender, number on the link, packet."""
        self._held = HoldBack()

    def next_stamp(self) -> int:
        self.clock += 1
        return self.clock

    @property
    def behind(self) -> bool:
        """Whether a packet may wait somewhere for a word of this member."""
        return self.heard[self.me] < self.newest

    def sound(self, content: Content) -> bool:
        return content.clock <= self.clock + CLOCK_STEP_MAX

    def arrive(self, sender: int, number: int, content: Content) -> bool:
        clock, before = content.clock, self.heard[sender]
        if clock <= before:
            return False
        if clock > self.clock:
            self.clock = clock
        self.heard[sender] = clock
        if sender != self.me:
            self._others[sender] = clock
            if before == self._least:  # It may be the one that all others were ahead of.
                self._least = min(self._others)
        if content.packet is not None:
            if clock > self.newest:
                self.newest = clock
            heappush(self._waiting, (clock, sender, number, content.packet))
        return True

    def close(self) -> None:
        self.closed = True

    def ready(self, stable: Sequence[int]) -> list[Ordered]:
        waiting, held = self._waiting, self._held
        least = CLOCK_MAX if self.closed else self._least
        while waiting and waiting[0][0] <= least:
            clock, sender, number, packet = heappop(waiting)
            key = (clock * self.members + sender, 0)
            held.waiting.append(_new(Ordered, (sender, number, packet, key)))
        return held.ready(stable)


class AllAckEngine(LinkEngine[Content]):
    """One member of a group that waits for everybody's word."""

    codec = LinkCodec(_write, _read)

    def __init__(self, node: NodeId, outlet: Outlet, config: Config | None = None) -> None:
        self.config = config or Config()
        super().__init__(node, outlet, self.config)

    def _new_order(self, view: View) -> ClockOrder:
        self.clocks = ClockOrder(len(view.members), self.me)
        self.nulls = 0
        """Null messages sent in this view."""
        self._holding = False
        """The timer after which a null message may be due is armed."""
        return self.clocks

    def _wrap(self, packet: Packet) -> Content:
        return Content(self.clocks.next_stamp(), packet)

    def _tend(self) -> None:
        due = self.config.nulls and self.clocks.behind
        if due != self._holding:
            self._holding = due
            self._out.append(SetTimer(HOLD, self.config.hold_s) if due else CancelTimer(HOLD))

    def _on_timer(self, timer: str) -> None:
        if timer != HOLD:
            super()._on_timer(timer)
        self._holding = False
        self._send_waiting()
        if self.clocks.behind and self.link.room > 0:
            self.nulls += 1
            self.link.send(Content(self.clocks.next_stamp()))


def _tune(capacity: Capacity, timers: Mapping[str, float]) -> Mapping[str, float]:
    """Every sender has a window of its own. A timer that is no alarm stays as it is."""
    return {
        "window_packets": max(2, capacity.window_packets // max(1, capacity.nodes - 1)),
        "hold_s": Config().hold_s,
    }


DESCRIPTION = Description(
    name="allack",
    summary="One order by Lamport clocks, once every member has been heard.",
    engine=AllAckEngine,
    config=Config,
    data_tags=("DATA",),
    header_bytes=header_bytes,
    packets_in=lambda message: type(message) is Data and message.content.packet is not None,
    promises=Promises(
        Properties("O1 O1r O2 O3f O3i O4 O5 O9 S1 S3 S4 L4 L5", "O5p L1", "E5"),
        in_views=Properties("D4t S2", "O8"),
    ),
    alarm="silence_s",
    shared_options=("heartbeat_s", "nulls"),
    tune=_tune,
    simulation="roundelay.sim.engines.allack",
)
