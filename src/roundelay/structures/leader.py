"""`Leader`: one node at a time leads, and all know which.

async with leader.hold("10.0.0.7:80") as term:
    ...                                          # term.number, term.lost

await leader.campaign(begin, end)                # calls `begin(term)` and `end(term)`

async for now in leader.follow():                # at every node
    print(now)
"""

from collections.abc import Callable
from typing import NamedTuple, NoReturn

from roundelay.core.ids import NodeId
from roundelay.structures.methods import read, stream, task
from roundelay.structures.turns import Claim, Hold, Turns
from roundelay.structures.watcher import Watcher


class Leadership(NamedTuple):
    """Who leads."""

    number: int
    """Of the election: 1, 2, 3 ..."""
    node: NodeId
    """The node that leads."""
    label: str
    """What the leader said of itself, such as its address."""
    token: int
    """The fencing token of its turn."""


class Leader(Turns):
    """A lock whose holder is known to all. Candidates `acquire` or `hold` it."""

    @read
    def leader(self) -> Leadership | None:
        """Who leads now."""
        return _leadership(self.granted)

    @task
    async def campaign(
        self,
        on_elected: Callable[[Hold], object],
        on_lost: Callable[[Hold], object] | None = None,
        label: str = "",
    ) -> NoReturn:
        """Be a candidate until this is cancelled or the node ends. `on_elected` is called when this
        node leads, and `on_lost` when it cannot be sure of that any more, or stops; both in the
        node's thread, which they must not keep: let them begin and end tasks. If one of them
        fails, the node gives up its term, and this raises what was raised."""
        while True:
            term = await self.acquire(label)
            try:
                try:
                    on_elected(term)
                    await term.until_lost()
                finally:
                    if on_lost is not None:
                        on_lost(term)
            finally:
                self.port.background(term.release)  # Else it would wait for itself.

    @stream
    def follow(self) -> Watcher[Leadership | None]:
        """Who leads now, and then each change as this node learns of it; None while nobody does.
        Of changes that follow each other faster than they are taken the last one comes."""
        seen: list[Leadership | None] = []

        def news(state: "Leader") -> list[Leadership | None] | None:
            found = [_leadership(state.granted)]
            return found if found != seen else None

        async def take() -> Leadership | None:
            seen[:] = await self.port.until(news)
            return seen[0]

        return Watcher(take)


def _leadership(granted: list[Claim]) -> Leadership | None:
    if not granted:
        return None
    claim = granted[0]
    return Leadership(claim.number, claim.node, claim.label, claim.token)
