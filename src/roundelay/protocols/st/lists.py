"""What members tell each other when an epoch ends, and the one order that follows from it.

When a member stops, it makes a list (PAK in the paper, which calls something smaller so): of all
packets that it sent, or that are for it, and that it does not know to be delivered everywhere, in
the order in which it heard them. Own packets that it never heard come last, without a place. A list
is never changed.

Theory of operation
===================

The *union order* of some lists is a linear order of their packets that respects

- each list: what a member heard first comes first;
- each source: what it sent first comes first;
- acknowledgments: a packet comes after those that its source had heard when it sent it;
- deliveries: what a member has delivered comes before whatever else is for it.

All members hear the channel in one order. A list is part of that order, sources and
acknowledgments agree with it, and the rule by which members deliver sees to it that nothing for a
member that is before a delivered packet on the channel can be missing. So the four kinds of
precedence never contradict each other. Where they leave a choice, the smaller name comes first:
whoever has the same lists comes to the same order.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import pairwise

from roundelay.core.value import value
from roundelay.protocols.st.messages import PART_BYTES, PARTS_MAX, ListPart, Name
from roundelay.wire.packet import MEMBERS_MAX
from roundelay.wire.primitives import I64_MAX, Reader, Reason, WireError, Writer

_HEAD = struct.Struct(">QQHI")
_LISTED = struct.Struct(">HQB")

_HEARD, _DELIVERED, _AGREED = 1, 2, 4

LISTED_MAX = 1 << 20
"""Most packets in a list, for a reader."""


@value
class Listed:
    """A packet on a list."""

    name: Name
    to: tuple[int, ...]
    """The members that it is for."""
    counts: tuple[int, ...]
    """By member: packets for that one which its source sent before ..."""
    ack: tuple[int, ...]
    """... and by source: what its source had heard then."""
    heard: bool
    """Whether it has a place on this list; an own packet may have none."""
    delivered: bool
    """Whether the member that made the list has delivered it ..."""
    agreed: bool = False
    """... or pre-acknowledged it at least."""


@value
class List:
    """What a member says about an epoch when it stops."""

    epoch: int
    member: int
    next: int
    """The number that its next packet will have."""
    counts: tuple[int, ...]
    """By member: how many packets for that one it sent."""
    got: tuple[int, ...]
    """By source: how many packets for this member it heard without a gap."""
    done: tuple[int, ...]
    """By source: packets for this member below this number are delivered."""
    listed: tuple[Listed, ...]


def own_max(size: int) -> int:
    """How many own packets a member of a group of so many may keep until all whom they are for have
    delivered them. If everybody does, a list has at most half as many parts as a list may have: the
    other half is for what a member has not heard to be delivered everywhere."""
    item = _LISTED.size + (size + 7) // 8 + 16 * size
    return max(1, PARTS_MAX * PART_BYTES // (2 * item * size))


def encode_list(made: List) -> bytes:
    w = Writer()
    size = len(made.counts)
    w.fields(_HEAD, made.epoch, made.next, size, len(made.listed))
    for count in (*made.counts, *made.got, *made.done):
        w.u64(count)
    for item in made.listed:
        flags = _HEARD * item.heard + _DELIVERED * item.delivered + _AGREED * item.agreed
        w.fields(_LISTED, *item.name, flags)
        bits = 0
        for member in item.to:
            bits |= 1 << member
        w.rest(bits.to_bytes((size + 7) // 8, "big"))
        for number in (*item.counts, *item.ack):
            w.u64(number)
    return w.done()


def decode_list(data: bytes, member: int) -> List:
    """The list of that member, or WireError."""
    r = Reader(data)
    epoch, next_, size, count = r.fields(_HEAD)
    _sane(size <= MEMBERS_MAX and member < size and count <= LISTED_MAX)
    _sane(epoch <= I64_MAX and 0 < next_ <= I64_MAX)
    counts, got, done = _vector(r, size), _vector(r, size), _vector(r, size)
    listed: list[Listed] = []
    for _ in range(count):
        source, number, flags = r.fields(_LISTED)
        _sane(source < size and 0 < number <= I64_MAX and flags < 2 * _AGREED)
        bits = int.from_bytes(r.take((size + 7) // 8), "big")
        _sane(bits >> size == 0)
        before, ack = _vector(r, size), _vector(r, size)
        to = tuple(place for place in range(size) if bits >> place & 1)
        heard, delivered = bool(flags & _HEARD), bool(flags & _DELIVERED)
        agreed = bool(flags & _AGREED)
        _sane(heard or source == member)
        listed.append(Listed(Name(source, number), to, before, ack, heard, delivered, agreed))
    r.done()
    names = [item.name for item in listed]
    _sane(len(set(names)) == len(names))
    return List(epoch, member, next_, counts, got, done, tuple(listed))


def parts(made: List, part_bytes: int = PART_BYTES) -> list[ListPart]:
    """The list in frames."""
    data = encode_list(made)
    pieces = [data[at : at + part_bytes] for at in range(0, len(data), part_bytes)]
    return [
        ListPart(made.epoch, made.member, part, len(pieces), piece)
        for part, piece in enumerate(pieces)
    ]


class Collected:
    """Lists of one epoch that arrive in parts."""

    def __init__(self, size: int, epoch: int) -> None:
        self.epoch = epoch
        self.lists: dict[int, List] = {}
        self._parts: dict[int, dict[int, bytes]] = {}
        self._counts: dict[int, int] = {}
        """By member: parts that its list has, as they are collected."""
        self._size = size

    @property
    def missing(self) -> tuple[int, ...]:
        """Members whose lists are not here."""
        return tuple(member for member in range(self._size) if member not in self.lists)

    def take(self, m: ListPart) -> bool:
        """Take in a part; whether a list is complete thereby. WireError for what is no list."""
        if m.member in self.lists or m.member >= self._size:
            return False
        found = self._parts.setdefault(m.member, {})
        if self._counts.setdefault(m.member, m.parts) != m.parts or (
            found.setdefault(m.part, m.data) != m.data
        ):
            del self._parts[m.member], self._counts[m.member]  # Nobody knows which was right.
            raise WireError(Reason.IMPLAUSIBLE, "lists that differ under one name")
        if len(found) < m.parts:
            return False
        del self._parts[m.member], self._counts[m.member]
        made = decode_list(b"".join(found[part] for part in range(m.parts)), m.member)
        if len(made.counts) != self._size or made.epoch != self.epoch:
            raise WireError(Reason.IMPLAUSIBLE, "a list of another group")
        self.lists[m.member] = made
        return True


def union_order(lists: Mapping[int, List]) -> list[Listed]:
    """All packets on these lists, in their one order. `heard` and `delivered` of what is returned
    mean nothing."""
    packets: dict[Name, Listed] = {}
    for member in sorted(lists):
        for item in lists[member].listed:
            packets.setdefault(item.name, item)
    after: dict[Name, list[Name]] = {name: [] for name in packets}
    before = dict.fromkeys(packets, 0)

    def put(first: Name, second: Name) -> None:
        after[first].append(second)
        before[second] += 1

    by_source: dict[int, list[Name]] = {}
    for name in sorted(packets):
        by_source.setdefault(name.source, []).append(name)
    for first, second in _pairs(by_source.values()):
        put(first, second)
    for made in lists.values():
        heard = [item.name for item in made.listed if item.heard]
        for first, second in _pairs([heard]):
            put(first, second)
    for item in packets.values():
        for source, names in by_source.items():
            if source != item.name.source:
                heard_of = _last_below(names, item.ack[source])
                if heard_of is not None:
                    put(heard_of, item.name)
    for member, made in lists.items():
        delivered = [item.name for item in made.listed if item.delivered]
        if delivered:
            over = set(delivered)
            for name, item in packets.items():
                if member in item.to and name not in over and name.number >= made.done[name.source]:
                    put(delivered[-1], name)
    return [packets[name] for name in _sorted(after, before)]


def _pairs(lines: Iterable[Sequence[Name]]) -> Iterable[tuple[Name, Name]]:
    for line in lines:
        yield from pairwise(line)


def _last_below(names: Sequence[Name], number: int) -> Name | None:
    """The last of a source's packets below a number."""
    low, high = 0, len(names)
    while low < high:
        middle = (low + high) // 2
        if names[middle].number < number:
            low = middle + 1
        else:
            high = middle
    return names[low - 1] if low else None


def _sorted(after: Mapping[Name, Sequence[Name]], before: dict[Name, int]) -> list[Name]:
    """All names, each after those that come before it, and the smallest first where there is a
    choice. A circle, which only a forged list can make, is broken at the smallest name."""
    ready = [name for name, count in before.items() if not count]
    heapify(ready)
    order: list[Name] = []
    left = dict(before)
    while left:
        if not ready:
            heappush(ready, min(left))
        name = heappop(ready)
        if left.pop(name, None) is None:
            continue
        order.append(name)
        for other in after[name]:
            if other in left:
                left[other] -= 1
                if not left[other]:
                    heappush(ready, other)
    return order


def _vector(r: Reader, size: int) -> tuple[int, ...]:
    return tuple(r.u64(I64_MAX) for _ in range(size))


def _sane(yes: object) -> None:
    if not yes:
        raise WireError(Reason.MALFORMED, "a list that makes no sense")
