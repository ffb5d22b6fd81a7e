"""How a view ends: what its members tell each other, and what they make of it.

Theory of operation
===================

A view has one sequence of global numbers, since only who has the token gives them out. Members
that move on together put together what they hold. Up to the first number that none of them knows,
or whose packet none of them has, they deliver in the order of the numbers: first, in the old view,
what one of them had delivered already, then the rest in the transitional view. So whatever becomes
of the others, nobody delivers two packets in opposite order as long as both have numbers here.

What is left are packets of members who are here and whose numbers, if they have any, are not known
here. Somebody who is not here may have delivered them, and then they must not be sent again. Which
of two ways is taken depends on F.

*Few hold a packet when it is delivered* (F less than half of the view). If the last transfer of the
token went to somebody who is here, and all numbers given out until then are known here, then what
has no number never got one: it is withdrawn, to be sent again. Otherwise it is delivered at once,
without a number, in the transitional view. Sides of a partition may therefore deliver such packets
in different orders: all that is promised is that those who move on together agree.

*Many do* (F at least half). Then nobody delivers a packet before its sender holds it, in the view
or at its end: packets of senders who are not here are delivered in the transitional view only as
far as those are known to hold them. So a packet that its sender does not hold was delivered
nowhere, and is withdrawn. All sides deliver in one order. The price is paid by a packet whose
sender and all who delivered it are gone, if nobody who is here heard that its sender held it:
those who are here drop it.

An earlier attempt to end the view may have succeeded at some who are no longer here, and those
decided from what was known then. A packet that they may have delivered without a number must not be
withdrawn; nobody else's decision matters, since nothing of an absent sender is ever delivered
beyond what that sender is sure to deliver as well.
"""

import struct
from collections.abc import Mapping, Sequence

from roundelay.core.contract import Conclusion, Item
from roundelay.core.effects import Deliver
from roundelay.core.ids import NodeId, Packet, ViewId
from roundelay.core.value import value
from roundelay.protocols.dtp.ledger import Ledger
from roundelay.protocols.dtp.messages import Ack, Msg, Uid, read_uid, write_uid
from roundelay.protocols.dtp.token import Token
from roundelay.wire.packet import decode_packet, encode_packet
from roundelay.wire.primitives import I64_MAX, Reader, Reason, WireError, Writer
from roundelay.wire.summaries import decode_summary, encode_summary

_HEAD = struct.Struct(">QQHQ")

MSG_ITEM = 0
ACK_ITEM = 1
"""The first part of an item's key; after it the packet, or the number."""


@value
class Summary:
    """What a member brings along."""

    delivered: int
    hop: int
    """The last transfer of the token that it heard of."""
    next: int
    """To whom that went."""
    top: int
    """The largest number that it heard of."""
    held: tuple[int, ...]
    """By member: what that is known to hold."""


def summarize(ledger: Ledger, token: Token, delivered: int) -> bytes:
    head = delivered, token.hop, token.next, ledger.top
    return encode_summary(_HEAD, *head, by_member=ledger.held)


def read_summary(summary: bytes, members: int) -> Summary:
    """A summary as `summarize` wrote it, or WireError."""
    head, held = decode_summary(_HEAD, summary, members)
    delivered, hop, next_, top = head
    if next_ >= members:
        raise WireError(Reason.MALFORMED, "a token that went to nobody")
    return Summary(delivered, hop, next_, top, held)


def items(ledger: Ledger, base: int) -> Sequence[Item]:
    """All that others may lack: everybody holds everything up to `base`."""
    places = ledger.places
    offered = [
        Item((MSG_ITEM, *uid), encode_packet(ledger.msgs[uid].packet))
        for uid in sorted(ledger.msgs)
        if places.get(uid, base + 1) > base
    ]
    for number in sorted(ledger.acks):
        if number > base:
            w = Writer()
            write_uid(w, ledger.uid(number))
            offered.append(Item((ACK_ITEM, number), w.done()))
    return offered


def absorb(ledger: Ledger, members: tuple[NodeId, ...], item: Item) -> Packet | None:
    """Take in what another offered; the packet, if it is one."""
    match item.key:
        case (0, sender, number) if sender < len(members):
            packet = decode_packet(item.body, 0)
            if packet.span.node != members[sender] or packet.destinations is not None:
                raise WireError(Reason.IMPLAUSIBLE, "a packet under the name of another sender")
            if not 0 < number <= I64_MAX:
                raise WireError(Reason.IMPLAUSIBLE, "a packet without a number")
            if sender == ledger.me and number >= ledger.expected[sender]:
                raise WireError(Reason.IMPLAUSIBLE, "a packet that this node never sent")
            ledger.store(Msg(sender, number, 0, packet))
            return packet
        case (1, number):
            r = Reader(item.body)
            uid = read_uid(r)
            r.done()
            ack = Ack(ledger.me, (uid,), number)
            if uid[0] >= len(members) or not number or ledger.contradicts(ack):
                raise WireError(Reason.IMPLAUSIBLE, "an order that nobody can have given")
            ledger.learn(ack)
            return None
        case _:
            raise WireError(Reason.MALFORMED, "not an item of this view")


class End:
    """The end of a view for the members who move on together, from what they exchanged alone."""

    def __init__(
        self,
        ledger: Ledger,
        view: ViewId,
        summaries: Mapping[int, Summary],
        obliged: frozenset[int],
    ) -> None:
        self._ledger = ledger
        self._view = view
        self._summaries = summaries
        self._present = frozenset(summaries)
        self._obliged = obliged
        self._places = ledger.places
        self._whole = ledger.ready
        """Up to here, all numbers are known and all packets here."""

    def conclude(self, delivered: int, *, sender_first: bool) -> Conclusion:
        line = max(summary.delivered for summary in self._summaries.values())
        line = min(line, self._whole)  # What somebody else delivered may be forged.
        regular = [self._numbered(number) for number in range(delivered + 1, line + 1)]
        left = self._left()
        if sender_first:
            late = self._known_to_senders(line)
        else:
            late = [self._numbered(number) for number in range(line + 1, self._whole + 1)]
            sent = left if self._doubtful else [uid for uid in left if uid in self._places]
            late += map(self._unsure, sent)
            left = [uid for uid in left if uid not in sent]
        own = [self._ledger.msgs[uid].packet for uid in left if uid[0] == self._ledger.me]
        return Conclusion(tuple(regular), tuple(late), tuple(own))

    def _left(self) -> list[Uid]:
        """Packets of those who are here, beyond what is whole: as they are numbered, each behind
        what its sender sent before."""
        places = self._places
        found = [
            (uid, places.get(uid, I64_MAX))
            for uid in sorted(self._ledger.msgs, reverse=True)
            if uid[0] in self._present and places.get(uid, I64_MAX) > self._whole
        ]
        ranked: list[tuple[int, Uid]] = []
        for uid, number in found:  # From the last of each sender to its first.
            if ranked and ranked[-1][1][0] == uid[0]:
                number = min(number, ranked[-1][0])
            ranked.append((number, uid))
        return [uid for _, uid in sorted(ranked)]

    @property
    def _doubtful(self) -> bool:
        """Whether a packet may have a number that nobody here knows of, or may have been
        delivered without one."""
        last = max(self._summaries.values(), key=lambda summary: summary.hop)
        top = max(summary.top for summary in self._summaries.values())
        beyond = sum(number > self._whole for number in self._ledger.acks)
        known = self._whole + beyond >= top
        return not (known and last.next in self._present and self._obliged <= self._present)

    def _known_to_senders(self, line: int) -> list[Deliver]:
        """In the order of the numbers: everything, as long as its senders hold it or are here;
        then what is of those who are here, and so had only what was delivered already as causes."""
        vectors = [summary.held for summary in self._summaries.values()]
        held = [max(numbers) for numbers in zip(*vectors, strict=True)]
        delivers = []
        whole = True
        for number in range(line + 1, self._whole + 1):
            sender, _ = self._ledger.uid(number)
            here = sender in self._present
            whole = whole and (here or held[sender] >= number)
            if whole or here:
                delivers.append(self._numbered(number))
        return delivers

    def _numbered(self, number: int) -> Deliver:
        return Deliver(self._ledger.known(number), self._view, (number, 0))

    def _unsure(self, uid: Uid) -> Deliver:
        number = self._places.get(uid)
        key = None if number is None else (number, 0)
        return Deliver(self._ledger.msgs[uid].packet, self._view, key)
