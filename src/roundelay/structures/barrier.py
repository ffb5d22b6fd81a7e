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
    """Somebody who waits at a barrier."""

    session: int
    handle: int
    node: NodeId


class Barrier(Machine):
    """When as many have come as were to come all go on together, and it begins anew. Whoever is
    lost while it waits, as locks are, has not come."""

    here: list[Arrival]
    parties: int
    round: int

    def __init__(self) -> None:
        self.here = []
        self.parties = 0
        self.round = 0

    @write
    def arrive(self, handle: int, parties: int) -> int:
        """The round in which this one waits; it is over when `round` is greater. Whoever comes
        with another number of parties than those who wait already is refused."""
        if parties < 1:
            raise Refused("at least one has to come")
        arrival = Arrival(session_of(self), handle, self.now.sender)
        if self.here and parties != self.parties:
            raise Refused(f"those who wait here are waiting for {self.parties}, not {parties}")
        waits_in = self.round
        if arrival not in self.here:
            self.parties = parties
            self.here.append(arrival)
            if len(self.here) >= parties:
                self.here = []
                self.round += 1
        return waits_in

    @write
    def leave(self, handle: int) -> bool:
        """Wait no longer. False if the barrier has opened, or nobody waits here by that handle."""
        session, before = session_of(self), len(self.here)
        self.here = [a for a in self.here if (a.session, a.handle) != (session, handle)]
        return len(self.here) < before

    def on_term(self, sessions: Mapping[NodeId, int]) -> None:
        alive = frozenset(sessions.values()) - {0}
        self.here = [arrival for arrival in self.here if arrival.session in alive]

    @read
    def waiting(self) -> list[NodeId]:
        """The nodes that wait."""
        return [arrival.node for arrival in self.here]

    @task
    async def wait(self, parties: int, *, timeout_s: float | None = None) -> int:
        """The number of the round, when `parties` have come. TimeoutError after `timeout_s`: then
        this one has not come."""
        handle = self.port.fresh()
        try:
            return await self.port.limited(self._arrived(handle, parties), timeout_s)
        except BaseException:
            self.port.background(lambda: self.leave(handle))
            raise

    async def _arrived(self, handle: int, parties: int) -> int:
        session = self.port.session
        while True:
            waits_in = await self.arrive(handle, parties)

            def settled(state: "Barrier", waits_in: int = waits_in) -> str | None:
                if state.round > waits_in:
                    return "open"
                waits = any((a.session, a.handle) == (session, handle) for a in state.here)
                return None if waits else "gone"

            if await self.port.until(settled) == "open":
                return waits_in
            # A mark lacked this node, which has come back since: it arrives again.

    def status(self) -> Mapping[str, object]:
        return {"waiting": len(self.here), "parties": self.parties, "round": self.round}
