"""ATOM: orders what a FIFO multicast brings, by slots. One view, one member, no clock, no wire.

Theory of operation
===================

A *distribution* gives weights to the members of a view, and the weights give an endless list of
slot owners (`slots`). A sender tags each content with the newest distribution that it knows and
with a number that counts its contents in that distribution. Contents of one distribution are
ordered by slots: the k-th content of a member goes to the k-th slot that the member owns.
Distributions follow each other in the order of their numbers.

A slot whose owner has nothing here is waited for, unless the owner cannot fill it any more: its
tags never go back, so a content of the owner with a newer distribution proves that, and so does the
end of the view. Then the slot is skipped, at every member alike: whether a slot is filled depends
on what its owner sent and not on who looks.

The order moves on to the next distribution once every member has sent something newer, or the view
ends. A content may be a *dummy*: it fills one or more slots of its sender, and nothing is delivered
there.
"""

from collections import deque
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from roundelay.core.value import value
from roundelay.protocols.atop.slots import Owner, Weights, owners, valid

B = TypeVar("B")

COUNT_MAX = 4096
"""Most slots that one dummy may fill. Too small, and a member sends several dummies where one would
do; too large, and one forged dummy makes the others walk for long."""

DISTRIBUTION_MAX = 2**23 - 1
"""Largest number of a distribution: its number and a slot's together make an order key of 63 bits.
A view that has used them all keeps the last one."""

NUMBER_MAX = 2**40 - 1
"""Largest number of a slot, and of a content among its sender's, for the same reason."""

COVER_SLOTS_MAX = 1 << 14
"""Most slots that `owed` walks. Beyond it the walk goes on at the next call, with what waits
then."""

BLOCK_SLOTS = 64
"""Slots whose owners are computed together. Too few, and the order stops for it again and again;
too many, and a distribution that is soon left has them computed for nothing."""

Owners = Callable[[int, int, Weights], Owner]
"""Slot owners of a view and a distribution: `slots.owners`, replaceable in tests."""


@value
class Tag:
    """Where a content belongs in its sender's slots."""

    distribution: int
    """0 is the distribution that gives all members the same weight."""
    number: int
    """The first of the sender's slots in that distribution that it fills, counted from 0."""
    count: int = 1
    """How many slots it fills: more than 1 only for a dummy."""
    weights: Weights | None = None
    """Of the distribution; given with number 0 and left out otherwise, and for distribution 0."""

    def __str__(self) -> str:
        slots = f"{self.number}" if self.count == 1 else f"{self.number}+{self.count}"
        return f"d{self.distribution}#{slots}"


class Stamp(NamedTuple):
    """The place of a content in the order of its view."""

    distribution: int
    slot: int


_Pending = tuple[int, int, B | None]
"""A content that waits for its slots: its distribution, how many it fills, and its body, which a
dummy has not."""

_new = tuple.__new__
"""Makes a NamedTuple without a call of Python code: one is made for every body."""


class Atom(Generic[B]):
    """The order of one view, as one member sees it. Members are numbered by their place."""

    def __init__(self, view: int, members: int, me: int, make_owners: Owners = owners) -> None:
        self.me = me
        self.members = members
        self.known: dict[int, Weights] = {0: (1,) * members}
        """Every distribution heard of, by its number."""
        self.newest = 0
        """The largest number of them."""
        self.distribution: int
        """The one whose contents are ordered now ..."""
        self.slot: int
        """... and its next slot."""
        self.skipped = 0
        """Slots skipped so far."""
        self.closing = False
        self._view = view
        self._make_owners = make_owners
        self._owners: list[int]
        """Owners of slots, each computed once, ..."""
        self._owners_from: int
        """... the slot with which they begin ..."""
        self._next: int
        """... and the owner of the next slot."""
        self._start_distribution(0)
        self._sending = (0, 0)
        """The distribution of the next own content, and its number there."""
        self._arrived = [(0, 0)] * members
        """By member: the distribution of its last content, and the number that follows it."""
        self._pending: list[deque[_Pending[B]]] = [deque() for _ in range(members)]
        self._used = [0] * members
        """By member: slots that its first content has filled, if it fills more than one."""
        self._heads = 0
        """Members of which something waits ..."""
        self._ready = 0
        """... and of those, how many have a first content of the present distribution."""
        self._bodies = 0
        """Contents with a body that wait in the present distribution ..."""
        self._later_bodies: dict[int, int] = {}
        """... and in later ones, by distribution ..."""
        self._bodies_of_others = 0
        """... and of all those, how many are of other members."""

    # Sending

    def stamp(self, count: int = 1) -> Tag:
        """The tag of the next own content, which must be sent."""
        distribution, number = self._sending
        if distribution != self.newest:
            distribution, number = self.newest, 0
        self._sending = (distribution, number + count)
        weights = self.known[distribution] if distribution and not number else None
        return Tag(distribution, number, count, weights)

    def learn(self, distribution: int, weights: Weights) -> bool:
        """Hear of a distribution; False if it cannot be one, or contradicts what was heard."""
        if not 0 < distribution <= DISTRIBUTION_MAX or not valid(weights, self.members):
            return False
        if self.known.setdefault(distribution, weights) != weights:
            return False
        self.newest = max(self.newest, distribution)
        return True

    @property
    def behind(self) -> bool:
        """Whether a distribution is known with which this member has sent nothing yet."""
        return self._sending[0] != self.newest

    # Ordering

    def plausible(self, sender: int, tag: Tag) -> bool:
        """Whether an honest member can send this tag behind all that arrived of it."""
        distribution, number = self._arrived[sender]
        if (
            tag.number == number
            and tag.distribution == distribution
            and tag.count == 1
            and tag.weights is None
            and (number or not distribution)
        ):
            return True  # As nearly all of them are; what follows would find the same.
        if not 1 <= tag.count <= COUNT_MAX:
            return False
        if tag.distribution != distribution:
            if tag.distribution < distribution or tag.number or tag.weights is None:
                return False
        elif tag.number != number:
            return False
        if (tag.weights is not None) != (tag.distribution > 0 and tag.number == 0):
            return False
        return tag.weights is None or (
            valid(tag.weights, self.members)
            and self.known.get(tag.distribution, tag.weights) == tag.weights
        )

    def arrive(self, sender: int, tag: Tag, body: B | None) -> list[tuple[B, Stamp]]:
        """Take in a sender's next content, whose tag is plausible; returns what is ordered now."""
        if tag.weights is not None:
            self.learn(tag.distribution, tag.weights)
        distribution = tag.distribution
        self._arrived[sender] = (distribution, tag.number + tag.count)
        if body is not None:
            if distribution == self.distribution:
                self._bodies += 1
            else:
                self._later_bodies[distribution] = self._later_bodies.get(distribution, 0) + 1
            if sender != self.me:
                self._bodies_of_others += 1
        queue = self._pending[sender]
        queue.append((distribution, tag.count, body))
        if len(queue) > 1:
            return []  # Whatever the order waits for, it is not a second content of this sender.
        self._heads += 1
        if distribution == self.distribution:
            self._ready += 1
        return self._order()

    def close(self) -> list[tuple[B, Stamp]]:
        """Nothing more arrives in this view: order all that waits."""
        self.closing = True
        return self._order()

    @property
    def waiting(self) -> int:
        """Contents with a body that wait for their slots."""
        return self._bodies + sum(self._later_bodies.values())

    @property
    def others_wait(self) -> bool:
        """Whether contents with a body of other members wait."""
        return self._bodies_of_others > 0

    def _order(self) -> list[tuple[B, Stamp]]:
        ordered: list[tuple[B, Stamp]] = []
        while self._heads:
            if not self._bodies and self._is_over():
                self._change()
                continue
            if not self._ready:
                break  # Somebody may still send what comes first.
            queue = self._pending[self._next]
            if queue and queue[0][0] == self.distribution:
                body = self._fill(self._next, queue)
                if body is not None:
                    ordered.append((body, _new(Stamp, (self.distribution, self.slot))))
            elif queue or self.closing:
                self.skipped += 1
            else:
                break  # The owner may still fill its slot.
            self._next_slot()
        return ordered

    def _next_slot(self) -> None:
        self.slot += 1
        at = self.slot - self._owners_from
        if at == len(self._owners):  # All of them are behind.
            self._owners_from, at = self.slot, 0
            self._owners = [*map(self._owner, range(self.slot, self.slot + BLOCK_SLOTS))]
        self._next = self._owners[at]

    def _fill(self, sender: int, queue: deque[_Pending[B]]) -> B | None:
        """Use a slot for a sender's first content; returns its body, if it has one."""
        _, count, body = queue[0]
        if count > 1:
            self._used[sender] += 1
            if self._used[sender] < count:
                return None  # A dummy: nothing else fills several slots.
            self._used[sender] = 0
        queue.popleft()
        if not queue:
            self._heads -= 1
            self._ready -= 1
        elif queue[0][0] != self.distribution:
            self._ready -= 1
        if body is not None:
            self._bodies -= 1
            if sender != self.me:
                self._bodies_of_others -= 1
        return body

    def _is_over(self) -> bool:
        """Whether nobody can send in the present distribution any more. Dummies of it that wait
        are of no use then."""
        if self.closing:
            return True
        return all(distribution > self.distribution for distribution, _ in self._arrived)

    def _change(self) -> None:
        """Go on to the next distribution that something waits for."""
        for sender, queue in enumerate(self._pending):
            while queue and queue[0][0] == self.distribution:
                queue.popleft()
                self._used[sender] = 0
        firsts = [queue[0][0] for queue in self._pending if queue]
        self._heads = len(firsts)
        if firsts:
            self._start_distribution(min(firsts))
            self._bodies = self._later_bodies.pop(self.distribution, 0)
        self._ready = firsts.count(self.distribution)

    def _start_distribution(self, distribution: int) -> None:
        self.distribution = distribution
        self.slot = 0
        self._owner = self._make_owners(self._view, distribution, self.known[distribution])
        self._owners = [*map(self._owner, range(BLOCK_SLOTS))]
        self._owners_from = 0
        self._next = self._owners[0]

    # Dummies

    def owed(self) -> int:
        """How many slots of this member stand before contents of others that wait now, and are not
        filled by what it has sent.

        A member that has not yet sent with the newest distribution owes one content, with which the
        others know that the slots it leaves behind are to be skipped.
        """
        if not self.others_wait:
            return 0
        distribution = self.distribution
        if self._arrived[self.me][0] > distribution:
            return 1 if self.behind else 0
        if self.behind:
            return 1
        left = [0] * self.members
        for sender, queue in enumerate(self._pending):
            slots = -self._used[sender]
            for of, count, body in queue:
                if of != distribution:
                    break
                slots += count
                if body is not None or sender == self.me:
                    left[sender] = slots
        mine, left[self.me] = left[self.me], 0
        others, owned = sum(left), 0
        owners, at = self._owners, self.slot - self._owners_from
        end, most = at + COVER_SLOTS_MAX, mine + COUNT_MAX
        while others and at < end and owned < most:
            if at == len(owners):
                slot = self._owners_from + at
                owners += map(self._owner, range(slot, slot + BLOCK_SLOTS))
            owner = owners[at]
            at += 1
            if owner == self.me:
                owned += 1
            elif left[owner]:
                left[owner] -= 1
                others -= 1
        return max(0, owned - mine)

    @property
    def asked_for(self) -> bool:
        """Whether the next slot is this member's, it has nothing on its way, and contents of others
        of the same distribution wait."""
        return (
            self._ready > 0
            and self.others_wait
            and not self._pending[self.me]
            and self._next == self.me
        )
