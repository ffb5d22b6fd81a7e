"""What one member knows of the packets of an epoch: what it heard, and what others have."""

from collections import deque
from collections.abc import Sequence

from roundelay.core.ids import Packet
from roundelay.protocols.st.lists import List, Listed
from roundelay.protocols.st.messages import Name, Transmission

AHEAD_MAX = 1 << 31
"""How far the numbers of a header may be apart."""


class Entry:
    """A packet that this member sent, or that is for it."""

    __slots__ = ("ack", "agreed", "counts", "delivered", "name", "packet", "place", "to")

    def __init__(
        self,
        name: Name,
        to: tuple[int, ...],
        counts: tuple[int, ...],
        ack: tuple[int, ...],
        packet: Packet,
    ) -> None:
        self.name = name
        self.to = to
        """The members that it is for."""
        self.counts = counts
        """By member: packets for that one which its source sent before."""
        self.ack = ack
        """What its source had heard when it sent it."""
        self.packet = packet
        self.place = 0
        """When it was heard, by the count of transmissions; 0 if it was not."""
        self.agreed = False
        """Whether it is pre-acknowledged here."""
        self.delivered = False


class Logs:
    """The logs of one member in one epoch."""

    def __init__(self, size: int, me: int, epoch: int) -> None:
        self.size = size
        self.me = me
        self.epoch = epoch
        self.next = 1
        """The number of the next own packet."""
        self.sent = [0] * size
        """By member: own packets for it."""
        self.expected = [1] * size
        """By source: the number of the packet that is expected next."""
        self.got = [0] * size
        """By source: packets for this member that were heard without a gap."""
        self.seen = [1] * size
        """By source: what somebody expects next; more than is expected here, if this member has
        missed something, be it for it or not."""
        self.acks: list[tuple[int, ...]] = [(1,) * size for _ in range(size)]
        """By member, what it last said: `ack` ..."""
        self.packs = list(self.acks)
        """... `pack` ..."""
        self.dones = list(self.acks)
        """... and `done`."""
        self.clock = 0
        """Transmissions that were heard."""
        self.heard_at = [0] * size
        """By member: when it was last heard without a gap."""
        self.accepted: deque[Entry] = deque()
        """Packets for this member, in the order in which they were heard ..."""
        self.agreed: deque[Entry] = deque()
        """... and before them those that all their destinations are known to have."""
        self.known: dict[Name, Entry] = {}
        """Own packets and those for this member, as long as one of their destinations may not have
        delivered them."""
        self.kept = 0
        """How many of them are own ones."""
        self._open: list[deque[int]] = [deque() for _ in range(size)]
        """By source: numbers of accepted packets."""
        self._undone: list[deque[int]] = [deque() for _ in range(size)]
        """By source: numbers of packets for this member that are not delivered."""

    @classmethod
    def after(cls, before: "Logs", lists: dict[int, List]) -> "Logs":
        """The next epoch, in which all packets of the last one are delivered."""
        logs = cls(before.size, before.me, before.epoch + 1)
        numbers = [
            lists[member].next if member in lists else before.expected[member]
            for member in range(before.size)
        ]
        logs.next = before.next
        logs.sent = before.sent
        logs.expected = list(numbers)
        logs.seen = list(numbers)
        logs.got = [
            lists[member].counts[before.me] if member in lists else before.got[member]
            for member in range(before.size)
        ]
        logs.acks = [tuple(numbers)] * before.size
        logs.packs = list(logs.acks)
        logs.dones = list(logs.acks)
        logs.clock = before.clock
        return logs

    @property
    def waiting(self) -> int:
        """Packets that are here and not delivered."""
        return len(self.accepted) + len(self.agreed)

    def least(self) -> int:
        """The first own packet that somebody may not have heard. What this member last said of
        itself may be older than what it has heard of itself."""
        me = self.me
        least = self.expected[me]
        for member, ack in enumerate(self.acks):
            if ack[me] < least and member != me:
                least = ack[me]
        return least

    def pack(self) -> tuple[int, ...]:
        """By source: packets for this member below this number are pre-acknowledged here."""
        return tuple(map(_first, self._open, self.expected))

    def done(self) -> tuple[int, ...]:
        """By source: packets for this member below this number are delivered here."""
        return tuple(map(_first, self._undone, self.expected))

    def make(self, to: tuple[int, ...], packet: Packet) -> Name:
        """Give an own packet its number."""
        name = Name(self.me, self.next)
        self.known[name] = Entry(name, to, tuple(self.sent), tuple(self.expected), packet)
        self.kept += 1
        return name

    def count(self, to: tuple[int, ...]) -> None:
        """An own packet for these members was sent."""
        self.next += 1
        for member in to:
            self.sent[member] += 1

    def note(self, t: Transmission) -> None:
        """Learn from a header what its source has."""
        source, seen = t.source, self.seen
        self.acks[source], self.packs[source], self.dones[source] = t.ack, t.pack, t.done
        for member, number in enumerate(t.ack):
            if number > seen[member]:
                seen[member] = number

    def too_far(self, t: Transmission) -> bool:
        """Whether its number is so far ahead that headers cannot tell what is missing before it."""
        source = t.source
        return t.number - _first(self._undone[source], self.expected[source]) > AHEAD_MAX

    def goes_back(self, t: Transmission) -> bool:
        """Whether its source would take back what it said before."""
        source = t.source
        return (
            any(map(int.__lt__, t.ack, self.acks[source]))
            or any(map(int.__lt__, t.pack, self.packs[source]))
            or any(map(int.__lt__, t.done, self.dones[source]))
        )

    def hear(self, t: Transmission, to: tuple[int, ...]) -> bool:
        """Take in a transmission that is heard now; False if a packet for this member was missed
        before it. Then nothing moves on, except that the packet has its place."""
        source, me = t.source, self.me
        self.clock += 1
        whole = t.counts[me] <= self.got[source]
        if whole:
            self.heard_at[source] = self.clock
            after = t.number + (t.packet is not None)
            if after > self.expected[source]:
                self.expected[source] = after
            if self.seen[source] < self.expected[source]:
                self.seen[source] = self.expected[source]
        if t.packet is not None and (me in to or source == me):
            self._accept(t, to, whole=whole)
        return whole

    def _accept(self, t: Transmission, to: tuple[int, ...], *, whole: bool) -> None:
        assert t.packet is not None
        name = Name(t.source, t.number)
        entry = self.known.get(name)
        if entry is None:
            entry = self.known[name] = Entry(name, to, t.counts, t.ack, t.packet)
        if entry.place:
            return
        entry.place = self.clock
        if self.me not in to:
            return
        self.accepted.append(entry)
        self._open[t.source].append(t.number)
        self._undone[t.source].append(t.number)
        if whole:
            self.got[t.source] += 1

    @property
    def gap(self) -> tuple[int, ...]:
        """Sources of which somebody has heard more than this member."""
        if self.seen == self.expected:
            return ()
        pairs = enumerate(zip(self.seen, self.expected, strict=True))
        return tuple(source for source, (seen, expected) in pairs if expected < seen)

    def agree(self) -> list[Entry]:
        """Pre-acknowledge, in order: packets of which all members have said that they have them,
        and with them whatever else their sources sent before, as far as it is for them. Those whom
        a packet is not for must say so too: else it could be delivered before another one of its
        source that somebody has missed, and if the view ends then, neither order is right."""
        found: list[Entry] = []
        accepted, acks, me = self.accepted, self.acks, self.me
        while accepted:
            entry = accepted[0]
            source, number = entry.name
            if number >= self.expected[source]:
                break  # Behind a gap.
            if _lacking(acks, source, number, me):
                break
            accepted.popleft()
            self._open[source].popleft()
            entry.agreed = True
            self.agreed.append(entry)
            found.append(entry)
        return found

    def deliverable(self) -> list[Entry]:
        """Acknowledge, in order: packets that all members have pre-acknowledged, with whatever
        their sources sent before, and after which every member was heard without a gap."""
        found: list[Entry] = []
        agreed, packs, me = self.agreed, self.packs, self.me
        cut = min(self.heard_at) if self.size > 1 else self.clock + 1
        while agreed:
            entry = agreed[0]
            source, number = entry.name
            if entry.place >= cut:
                break
            if _lacking(packs, source, number, me):
                break
            agreed.popleft()
            self.deliver(entry)
            found.append(entry)
        return found

    def deliver(self, entry: Entry) -> None:
        entry.delivered = True
        self._undone[entry.name.source].remove(entry.name.number)

    def forget(self) -> None:
        """Forget packets that all their destinations are known to have delivered."""
        dones, me = self.dones, self.me
        own = self.done()
        gone = [
            name
            for name, entry in self.known.items()
            if all((own if k == me else dones[k])[name.source] > name.number for k in entry.to)
            and (entry.delivered or me not in entry.to)
        ]
        for name in gone:
            del self.known[name]
            self.kept -= name.source == me

    def stop(self) -> List:
        """The list that this member makes of the epoch."""
        self.forget()
        placed = sorted(
            (entry for entry in self.known.values() if entry.place), key=lambda e: e.place
        )
        unheard = sorted(
            (entry for entry in self.known.values() if not entry.place), key=lambda e: e.name
        )
        return List(
            self.epoch,
            self.me,
            self.next,
            tuple(self.sent),
            tuple(self.got),
            self.done(),
            tuple(
                Listed(e.name, e.to, e.counts, e.ack, bool(e.place), e.delivered, e.agreed)
                for e in (*placed, *unheard)
            ),
        )


def _first(numbers: deque[int], expected: int) -> int:
    """The first of these numbers; what is behind a gap does not count."""
    return numbers[0] if numbers and numbers[0] < expected else expected


def _lacking(told: Sequence[tuple[int, ...]], source: int, number: int, me: int) -> bool:
    """Whether a member other than `me` has not told yet that it has this packet."""
    for member, first in enumerate(told):  # noqa: SIM110  Not any(): every frame asks this.
        if first[source] <= number and member != me:
            return True
    return False
