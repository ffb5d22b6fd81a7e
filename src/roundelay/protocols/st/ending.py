"""How a view ends: as an epoch does, with the members that are here.

Theory of operation
===================

The end of a view stops every member, whether a recovery was under way or not. What members exchange
is their lists, those of others that they have, and packets.

If the lists of *all* members of the view are here, they decide. A member that is gone may have
ended this epoch with them, since it did so only after everybody had said that all lists were there.
Otherwise nobody can have ended it, and the lists of those who are here decide. A member that is an
epoch ahead of another has ended the earlier epoch, and hands out its lists, so that the other can
end it too; that one has said nothing in the later epoch.

What a member had pre-acknowledged is delivered in the old view, with what the same sources sent
before; all else in the transitional view; both in union order. Whom such a packet is for has it,
here or elsewhere, since all members have said so. What a member had delivered is among them, and so
is whatever comes before such a packet in the order of its source or by its causes: who delivered
something before it sent the packet knew that all had pre-acknowledged it.

A packet that nobody here has is dropped, with what its source sent after it: that source is gone.
Nothing is ever withdrawn, because its source has it. Sides of a partition may place differently
what nobody of one side heard: only those who move on together agree.

A member that took part in an earlier attempt to end the view may have ended it, and is gone now.
What it brought is here, and its list counts as if it were here, too.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence

from roundelay.core.contract import Item
from roundelay.core.effects import Deliver
from roundelay.core.ids import NodeId, Packet, ViewId
from roundelay.core.value import value
from roundelay.protocols.st.lists import List, Listed, parts, union_order
from roundelay.protocols.st.messages import ListPart, Name
from roundelay.wire.packet import decode_packet, encode_packet
from roundelay.wire.primitives import I64_MAX, Reader, Reason, WireError, Writer
from roundelay.wire.summaries import decode_summary, encode_summary

_HEAD = struct.Struct(">Q")

PACKET_ITEM = 0
LIST_ITEM = 1
"""The first part of an item's key; after it the packet, or the part of a list."""


@value
class Summary:
    """What a member brings along."""

    epoch: int
    done: tuple[int, ...]
    """By source: all of its packets below this number that are for this member are delivered."""


def summarize(epoch: int, done: tuple[int, ...]) -> bytes:
    return encode_summary(_HEAD, epoch, by_member=done)


def read_summary(summary: bytes, members: int) -> Summary:
    """A summary as `summarize` wrote it, or WireError."""
    (epoch,), done = decode_summary(_HEAD, summary, members)
    if epoch > I64_MAX:
        raise WireError(Reason.MALFORMED, "an epoch that never comes")
    return Summary(epoch, done)


def list_items(made: List, part_bytes: int) -> list[Item]:
    """A list, to be handed out."""
    found: list[Item] = []
    for part in parts(made, part_bytes):
        w = Writer()
        w.u16(part.parts)
        w.rest(part.data)
        found.append(Item((LIST_ITEM, part.epoch, part.member, part.part), w.done()))
    return found


def packet_item(name: Name, packet: Packet) -> Item:
    return Item((PACKET_ITEM, *name), encode_packet(packet))


def unpack(item: Item, members: tuple[NodeId, ...]) -> tuple[Name, Packet] | ListPart:
    """What another offered, or WireError."""
    match item.key:
        case (0, source, number) if source < len(members):
            packet = decode_packet(item.body, 0)
            if packet.span.node != members[source]:
                raise WireError(Reason.IMPLAUSIBLE, "a packet under the name of another source")
            if not 0 < number <= I64_MAX:
                raise WireError(Reason.IMPLAUSIBLE, "a packet without a number")
            return Name(source, number), packet
        case (1, epoch, member, part) if member < len(members):
            r = Reader(item.body)
            count = r.u16()
            if part >= count:
                raise WireError(Reason.IMPLAUSIBLE, "a part of no list")
            return ListPart(epoch, member, part, count, item.body[2:])
        case _:
            raise WireError(Reason.MALFORMED, "not an item of this view")


def heard(
    members: Iterable[int], lists: Mapping[int, List], before: Mapping[int, List], size: int
) -> dict[int, tuple[int, ...]]:
    """By member and by source: how many packets for that member it heard without a gap. `before`
    are the lists of the epoch before: a member that has no list of the last epoch was in that one,
    and has heard nothing since."""
    found: dict[int, tuple[int, ...]] = {}
    for member in members:
        if member in lists:
            found[member] = lists[member].got
        elif len(before) == size:
            found[member] = tuple(before[source].counts[member] for source in range(size))
    return found


class End:
    """The end of a view for the members who move on together, from what they exchanged alone."""

    def __init__(
        self,
        me: int,
        view: ViewId,
        summaries: Mapping[int, Summary],
        packets: Mapping[Name, Packet],
        delivered: frozenset[Name],
    ) -> None:
        self._me = me
        self._view = view
        self._summaries = summaries
        """By member that is here."""
        self._packets = packets
        self._delivered = delivered
        """What this node has delivered and still lists."""
        self.regular: list[Deliver] = []
        self.late: list[Deliver] = []

    def earlier(self, lists: Mapping[int, List]) -> None:
        """An epoch that another member here has ended with these lists."""
        for item in union_order(lists):
            packet = self._packets.get(item.name)
            if packet is not None and self._awaits(self._me, item):
                self.regular.append(Deliver(packet, self._view))

    def last(self, lists: Mapping[int, List], got: Mapping[int, tuple[int, ...]]) -> None:
        """The epoch that nobody here has ended. `got` says, by member that is here and by source,
        how many packets for that member it heard without a gap."""
        certain: dict[int, int] = {}
        for made in lists.values():
            for item in made.listed:
                if item.agreed or item.delivered:
                    source, number = item.name
                    certain[source] = max(number, certain.get(source, 0))
        order = union_order(lists)
        broken = self._gaps(order, got)
        for item in order:
            packet = self._packets.get(item.name)
            if packet is None or not self._awaits(self._me, item):
                continue
            if item.name.number <= certain.get(item.name.source, 0):
                self.regular.append(Deliver(packet, self._view))
            elif item.name.number < broken.get(item.name.source, I64_MAX):
                self.late.append(Deliver(packet, self._view))

    def _gaps(self, order: Sequence[Listed], got: Mapping[int, tuple[int, ...]]) -> dict[int, int]:
        """By source: the number of the first packet that a member here awaits, and that nobody here
        has, or before which such a packet is missing."""
        broken: dict[int, int] = {}
        had = {member: list(counts) for member, counts in got.items()}
        for item in sorted(order, key=lambda item: item.name):
            source, number = item.name
            for member in item.to:
                if member not in had or not self._awaits(member, item):
                    continue
                if item.counts[member] > had[member][source] or item.name not in self._packets:
                    broken.setdefault(source, number)
                had[member][source] = max(had[member][source], item.counts[member] + 1)
        return broken

    def _awaits(self, member: int, item: Listed) -> bool:
        """Whether it is for that member, which is here and has not delivered it."""
        source, number = item.name
        if member not in item.to or number < self._summaries[member].done[source]:
            return False
        return member != self._me or item.name not in self._delivered
