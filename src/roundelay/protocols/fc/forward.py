"""Algorithm 1 of the paper: a decision is confirmed by the first one behind it that is free of
conflict. Two decisions of one number, by different makers, are in conflict."""

from roundelay.protocols.fc.messages import Dec


class ForwardConfirmation:
    """The queue of one member, which confirms one number after the other.

    The paper asks that the place in the queue before the first decision without conflict is
    filled. Then a member that crashes before it decides would block all others for ever, so an
    empty place counts as well."""

    def __init__(self, k: int) -> None:
        self.k = k
        self.value = 1
        """The number that is to be confirmed next."""
        self.queue: dict[int, Dec] = {}
        """Decisions with that number: the first one that came, as 1, and others by how many places
        behind its maker theirs is on the ring."""
        self.free: Dec | None = None
        """The first decision without conflict, while the one that it confirms is not here."""
        self._later: list[Dec] = []
        """Decisions whose turn has not come."""

    def see(self, decision: Dec) -> list[Dec]:
        """A decision came. Those that are confirmed thereby, in order."""
        confirmed: list[Dec] = []
        self._later.append(decision)
        while True:
            begun = bool(self.queue)
            chosen = self._step()
            if chosen is not None:
                confirmed.append(chosen)
            elif begun or not self.queue:
                return confirmed

    def _step(self) -> Dec | None:
        """Go through what came, and confirm one decision if that is possible."""
        waiting, self._later = self._later, []
        for i, decision in enumerate(waiting):
            chosen = self._consider(decision)
            if chosen is not None:
                self._later += waiting[i + 1 :]
                return chosen
        return None

    def _consider(self, d: Dec) -> Dec | None:
        if not self.queue:
            if d.number == self.value:
                self.queue = {1: d}
            elif d.number > self.value:
                self._later.append(d)
            return None
        if d.number > self.value + 1 or (self.free is not None and d.number > self.value):
            self._later.append(d)
            return None
        behind = self._behind(d)
        if d.number < self.value or not 1 <= behind <= self.k + 1:
            return None
        if d.number == self.value:
            self.queue[behind + 1] = d
        else:
            self.free = d
        return self._choose()

    def _choose(self) -> Dec | None:
        """The decision that is confirmed, and the queue begins anew; None if it is not here."""
        free = self.free
        if free is None:
            return None
        behind = self._behind(free)
        chosen = self.queue.get(1 if behind == 1 or free.evolved else behind)
        if chosen is not None:
            self.queue = {1: free}
            self.free = None
            self.value += 1
        return chosen

    def _behind(self, d: Dec) -> int:
        """How many places on the ring the maker of a decision is behind that of the first one."""
        first = self.queue[1]
        ring = first.ring
        if d.maker not in ring:
            return 0
        return (ring.index(d.maker) - ring.index(first.maker)) % len(ring)
