"""`Barrier`: nodes wait for each other.

await barrier.wait(3)        # returns when three have come
"""

from collections.abc import Mapping
from typing import NamedTuple

from roundelay.core.ids import NodeId
from roundelay.structures.errors import Refused
from roundelay.structures.machine import Machine
from roundelay.structures.methods import read, task, write
from roundelay.structures.turns import session_of


class Arrival(NamedTuple):
    """Somebody who waits at a barrier, or has passed it."""

    session: int
    handle: int
    node: NodeId
    round: int
    """The round in which it waits, or passed."""


class Barrier(Machine):
    """When as many have come as were to come all go on together, and it begins anew. Whoever is
    lost while it waits, as locks are, has not come."""

    here: list[Arrival]
    passed: list[Arrival]
    """Those that were counted when it opened, until they have seen that and leave. Whether the
    round is over tells nobody that it passed: it may have been lost before that."""
    parties: int
    round: int

    def __init__(self) -> None:
        self.here = []
        self.passed = []
        self.parties = 0
        self.round = 0

    @write
    def arrive(self, handle: int, parties: int) -> int:
        """The round in which this one waits, or passed. Whoever comes with another number of
        parties than those who wait already is refused; asking again with the same handle changes
        nothing."""
        if parties < 1:
            raise Refused("at least one has to come")
        session = session_of(self)
        if (arrival := self.arrival(session, handle)) is not None:
            return arrival.round
        if self.here and parties != self.parties:
            raise Refused(f"those who wait here are waiting for {self.parties}, not {parties}")
        arrival = Arrival(session, handle, self.now.sender, self.round)
        self.parties = parties
        self.here.append(arrival)
        if len(self.here) >= parties:
            self.passed += self.here
            self.here = []
            self.round += 1
        return arrival.round

    @write
    def leave(self, handle: int) -> bool:
        """Wait no longer, or have seen that the barrier opened. False if it was not waiting."""
        session, before = session_of(self), len(self.here)
        self.here = [a for a in self.here if (a.session, a.handle) != (session, handle)]
        self.passed = [a for a in self.passed if (a.session, a.handle) != (session, handle)]
        return len(self.here) < before

    def on_term(self, sessions: Mapping[NodeId, int]) -> None:
        alive = frozenset(sessions.values()) - {0}
        self.here = [arrival for arrival in self.here if arrival.session in alive]
        self.passed = [arrival for arrival in self.passed if arrival.session in alive]

    @read
    def waiting(self) -> list[NodeId]:
        """The nodes that wait."""
        return [arrival.node for arrival in self.here]

    def arrival(self, session: int, handle: int) -> Arrival | None:
        """Of a state: the arrival of this session with this handle."""
        for arrival in (*self.here, *self.passed):
            if arrival.handle == handle and arrival.session == session:
                return arrival
        return None

    @task
    async def wait(self, parties: int, *, timeout_s: float | None = None) -> int:
        """The number of the round, when `parties` have come. TimeoutError after `timeout_s`: then
        this one has not come, unless the last of the others came at that moment."""
        handle = self.port.fresh()
        try:
            return await self.port.limited(self._arrived(handle, parties), timeout_s)
        finally:
            self.port.background(lambda: self.leave(handle))

    async def _arrived(self, handle: int, parties: int) -> int:
        session = self.port.session

        def settled(state: "Barrier") -> Arrival | str | None:
            arrival = state.arrival(session, handle)
            return "gone" if arrival is None else arrival if arrival in state.passed else None

        while True:
            await self.arrive(handle, parties)
            found = await self.port.until(settled)
            if isinstance(found, Arrival):
                return found.round
            # A mark lacked this node, which has come back since: it arrives again.

    def status(self) -> Mapping[str, object]:
        return {"waiting": len(self.here), "parties": self.parties, "round": self.round}
