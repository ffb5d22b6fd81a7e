"""How a view ends under the safe rules: what members tell each other, and what they make of it.

Theory of operation
===================

Members that move on together tell each other where their chains end, what they have confirmed and
delivered, and which requests they have; then they exchange what one of them lacks. Of their chains,
the one whose last decision is of the latest epoch, and the longest of those, is the best. If a
majority of the old view is here, it contains all that was confirmed anywhere, for the same reason
for which a new epoch may extend it.

Up to the largest number that one of them has confirmed, everything is delivered in the old view, in
the order and with the keys that everybody else has: a confirmed decision is the same everywhere.
That ends early at a safe packet that nobody here has delivered, since whoever is not here may lack
it, or at a request that nobody here has.

The rest is delivered in the transitional view, without keys: first the rest of the chain, then what
those who are here have sent and the chain does not order, by sender and number. Another side of a
partition may order the same requests otherwise, so only those who move on together agree on that
order. Nothing is ever withdrawn: another side may have delivered it.

A request on the chain that nobody here has is passed over, with all behind it that was sent by
members who are not here: its sender is not, or it would have brought the request along, and others
may have delivered the request before they sent theirs.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence

from roundelay.core.contract import Conclusion, Item
from roundelay.core.effects import Deliver
from roundelay.core.ids import NodeId, Packet, Service, ViewId
from roundelay.core.value import value
from roundelay.protocols.fc.chain import Chain
from roundelay.protocols.fc.messages import (
    Dec,
    DecisionId,
    Epoch,
    Req,
    read_decision,
    write_decision,
)
from roundelay.protocols.fc.requests import Requests
from roundelay.wire.packet import decode_packet, encode_packet
from roundelay.wire.primitives import I64_MAX, Reader, Reason, WireError, Writer
from roundelay.wire.summaries import decode_summary, encode_summary

_HEAD = struct.Struct(">QQHHQQ")

REQUEST_ITEM = 0
DECISION_ITEM = 1
"""The first part of an item's key; after it the request, or the decision."""


@value
class Summary:
    """What a member brings along."""

    tip: DecisionId
    """The end of its chain."""
    confirmed: int
    delivered: int
    """Packets."""
    arrived: tuple[int, ...]
    """By sender: the number up to which it has all requests."""


def summarize(chain: Chain, confirmed: int, delivered: int, requests: Requests) -> bytes:
    """The chain is first led as far as what was exchanged before allows."""
    chain.climb(confirmed)
    tip = chain.tip.id
    head = tip.number, *tip.epoch, tip.maker, confirmed, delivered
    return encode_summary(_HEAD, *head, by_member=requests.arrived)


def read_summary(summary: bytes, members: int) -> Summary:
    """A summary as `summarize` wrote it, or WireError."""
    head, arrived = decode_summary(_HEAD, summary, members)
    number, counter, regenerator, maker, confirmed, delivered = head
    if max(regenerator, maker) >= members or max(number, counter, confirmed, delivered) > I64_MAX:
        raise WireError(Reason.MALFORMED, "a chain that ends nowhere")
    tip = DecisionId(number, Epoch(counter, regenerator), maker)
    return Summary(tip, confirmed, delivered, arrived)


def items(chain: Chain, requests: Requests, summaries: Mapping[int, Summary]) -> Sequence[Item]:
    """All that others may lack. Chains other than the best one are of no use to anybody."""
    offered: list[Item] = []
    for sender, bodies in enumerate(requests.bodies):
        least = min(summary.arrived[sender] for summary in summaries.values())
        offered += (
            Item((REQUEST_ITEM, sender, number), encode_packet(bodies[number]))
            for number in sorted(bodies)
            if number > least
        )
    if chain.tip.id.epoch == best_tip(summaries).epoch:
        least = min(summary.confirmed for summary in summaries.values())
        for decision in chain.since(least + 1, chain.number):
            w = Writer()
            write_decision(w, decision)
            offered.append(Item((DECISION_ITEM, decision.number, *decision.epoch), w.done()))
    return offered


def best_tip(summaries: Mapping[int, Summary]) -> DecisionId:
    """The end of the best chain that somebody brings along."""
    tips = (summary.tip for summary in summaries.values())
    return max(tips, key=lambda tip: (tip.epoch, tip.number, tip.maker))


def unpack(item: Item, members: tuple[NodeId, ...]) -> Dec | Req:
    """What another offered, or WireError."""
    match item.key:
        case (0, sender, number) if sender < len(members):
            packet = decode_packet(item.body, 0)
            if packet.span.node != members[sender] or packet.destinations is not None:
                raise WireError(Reason.IMPLAUSIBLE, "a request under the name of another sender")
            if not 0 < number <= I64_MAX:
                raise WireError(Reason.IMPLAUSIBLE, "a request without a number")
            return Req(sender, number, packet)
        case (1, number, counter, regenerator):
            r = Reader(item.body)
            decision = read_decision(r)
            r.done()
            if (decision.number, *decision.epoch) != (number, counter, regenerator):
                raise WireError(Reason.IMPLAUSIBLE, "a decision under the name of another")
            return decision
        case _:
            raise WireError(Reason.MALFORMED, "not an item of this view")


class End:
    """The end of a view for the members who move on together, from what they exchanged alone."""

    def __init__(
        self,
        chain: Chain,
        requests: Requests,
        view: ViewId,
        summaries: Mapping[int, Summary],
        obliged: frozenset[int],
    ) -> None:
        self._chain = chain
        self._requests = requests
        self._view = view
        self._summaries = summaries
        self._obliged = obliged

    def conclude(self, delivered: int, confirmed: int) -> Conclusion:
        chain = self._chain
        if (path := chain.path(best_tip(self._summaries))) is not None:
            for decision in path:
                if decision.number <= confirmed or not chain.fits(decision):
                    break  # Somebody forged it.
                chain.put(decision)
        line = max(confirmed, *(summary.confirmed for summary in self._summaries.values()))
        certain = max(delivered, *(summary.delivered for summary in self._summaries.values()))
        regular: list[Deliver] = []
        late: list[Deliver] = []
        broken: set[int] = set()
        """Senders of requests that nobody here has."""
        over = False
        """Whether what comes now is not certain to be in the old view of everybody."""
        for place, number, sender, index, packet in self._ordered():
            if place <= delivered:
                continue
            if packet is None:
                over = True
                broken.add(sender)
                continue
            safe = packet.service is Service.SAFE and place > certain
            over = over or number > line or safe
            if not over:
                regular.append(Deliver(packet, self._view, (number, index)))
            elif not broken or (sender in self._obliged and sender not in broken):
                late.append(Deliver(packet, self._view))
        for sender in sorted(self._obliged - broken):
            late += self._unordered(sender)
        return Conclusion(tuple(regular), tuple(late))

    def _ordered(self) -> Iterator[tuple[int, int, int, int, Packet | None]]:
        """What the chain orders and everybody may not hold: its place, the number of its decision,
        its sender, its index in the decision, and the packet, if somebody here has it."""
        chain, bodies = self._chain, self._requests.bodies
        place = chain.at(chain.floor).packets
        for decision in chain.since(chain.floor + 1, chain.number):
            index = 0
            for sender, first, count in decision.runs:
                for request in range(first, first + count):
                    packet = bodies[sender].get(request)
                    place += 1
                    yield place, decision.number, sender, index, packet
                    index += 1 if packet is None else packet.span.count or 1

    def _unordered(self, sender: int) -> Iterator[Deliver]:
        """What a member sent and the chain does not order, up to a gap."""
        number = self._chain.tip.ordered[sender] + 1
        while (packet := self._requests.bodies[sender].get(number)) is not None:
            yield Deliver(packet, self._view)
            number += 1
