"""`Queue`: work that is done once.

    await queue.put({"resize": "cat.png"})

    job = await queue.take()
    ...
    await job.done()

An item that was taken belongs to the session that took it, until it is done or given back. If the
session is lost it goes back to where it was in the queue, as a lock is released: at the first mark
without it. So work can be done twice, and whoever must not do that passes on `job.token`, which
grows each time the item is taken.
"""

import heapq
from collections.abc import Mapping
from typing import Any, Generic, NamedTuple, Self, TypeVar

from roundelay.core.ids import NodeId
from roundelay.structures.errors import Refused
from roundelay.structures.machine import Machine
from roundelay.structures.methods import read, task, write
from roundelay.structures.turns import session_of
from roundelay.structures.values import Value

V = TypeVar("V", bound=Value)

PRIORITY_MAX = 2**31
"""Greatest priority of an item, up or down."""


class Item(NamedTuple):
    """An item that waits or was taken."""

    priority: int
    id: int
    """The index at which it was put."""
    value: Any
    times: int = 0
    """How often it was taken."""


class Taker(NamedTuple):
    """Somebody who wants an item."""

    session: int
    handle: int
    node: NodeId


class Taken(NamedTuple):
    """An item and who has it."""

    item: Item
    taker: Taker
    token: int


class Queue(Machine, Generic[V]):
    """Items leave in the order of their priorities, smaller ones first, and among equals in the
    order in which they came; who wants one waits in the order of asking."""

    items: list[Item]
    """Those that nobody has: a heap while nodes work, in order in snapshots."""
    takers: list[Taker]
    """Those that wait; only while there are no items."""
    taken: dict[int, Taken]
    """By the id of the item."""
    last_token: int
    done_count: int

    def __init__(self) -> None:
        self.items = []
        self.takers = []
        self.taken = {}
        self.last_token = -1
        self.done_count = 0

    @write
    def put(self, value: V, priority: int = 0) -> int:
        """The id of the item: the index at which it was put."""
        if abs(priority) > PRIORITY_MAX:
            raise Refused(f"a priority is between -{PRIORITY_MAX} and {PRIORITY_MAX}")
        heapq.heappush(self.items, Item(priority, self.now.index, value))
        self._hand_out()
        return self.now.index

    @write
    def ask(self, handle: int, *, wait: bool = True) -> bool:
        """Take the next item, or wait for one. False if there is none. Asking again with the same
        handle changes nothing."""
        taker = Taker(session_of(self), handle, self.now.sender)
        if self.taken_by(taker.session, handle) is None and taker not in self.takers:
            if not self.items and not wait:
                return False
            self.takers.append(taker)
            self._hand_out()
        return self.taken_by(taker.session, handle) is not None

    @write
    def withdraw(self, handle: int) -> bool:
        """Want no item any more, and give back the one that was taken. False if there is
        neither."""
        session = session_of(self)
        before = len(self.takers)
        self.takers = [t for t in self.takers if (t.session, t.handle) != (session, handle)]
        found = self.taken_by(session, handle)
        if found is not None:
            self._give_back(found)
        return found is not None or len(self.takers) < before

    @write
    def finish(self, id: int, token: int) -> bool:
        """The item is done and gone. False if it was done already, or is not taken with this token
        any more: then somebody else does it, or has done it."""
        found = self.taken.get(id)
        if found is None or found.token != token:
            return False
        del self.taken[id]
        self.done_count += 1
        return True

    @write
    def give_back(self, id: int, token: int) -> bool:
        """Put the item back to its place in the queue. False if it is not taken with this token
        any more."""
        found = self.taken.get(id)
        if found is None or found.token != token:
            return False
        self._give_back(found)
        return True

    def on_term(self, sessions: Mapping[NodeId, int]) -> None:
        alive = frozenset(sessions.values()) - {0}
        self.takers = [taker for taker in self.takers if taker.session in alive]
        lost = [taken for taken in self.taken.values() if taken.taker.session not in alive]
        for taken in lost:
            heapq.heappush(self.items, taken.item)
            del self.taken[taken.item.id]
        self._hand_out()

    @read
    def size(self) -> int:
        """Items that nobody has taken."""
        return len(self.items)

    @read
    def in_work(self) -> int:
        """Items that were taken and are not done."""
        return len(self.taken)

    @read
    def peek(self) -> V | None:
        """The next item; None if there is none."""
        return self.items[0].value if self.items else None

    def taken_by(self, session: int, handle: int) -> Taken | None:
        """Of a state: what this session took with this handle."""
        for taken in self.taken.values():
            if taken.taker.handle == handle and taken.taker.session == session:
                return taken
        return None

    @task
    async def take(self, *, timeout_s: float | None = None) -> "Job[V]":
        """The next item, when there is one. TimeoutError after `timeout_s`."""
        handle = self.port.fresh()
        try:
            return await self.port.limited(self._took(handle), timeout_s)
        except BaseException:
            self.port.background(lambda: self.withdraw(handle))
            raise

    @task
    async def try_take(self) -> "Job[V] | None":
        """The next item; None if there is none."""
        handle, session = self.port.fresh(), self.port.session
        try:
            if not await self.ask(handle, wait=False):
                return None
        except BaseException:
            self.port.background(lambda: self.withdraw(handle))
            raise
        taken = self.port.look(lambda state: state.taken_by(session, handle))
        return None if taken is None else Job(self, taken)

    async def _took(self, handle: int) -> "Job[V]":
        session = self.port.session

        def settled(state: Self) -> Taken | str | None:
            if (taken := state.taken_by(session, handle)) is not None:
                return taken
            waits = any((t.session, t.handle) == (session, handle) for t in state.takers)
            return None if waits else "gone"

        while True:
            await self.ask(handle)
            found = await self.port.until(settled)
            if isinstance(found, Taken):
                return Job(self, found)
            # A mark lacked this node, which has come back since: it asks again.

    def snapshot(self) -> bytes:
        self.items = sorted(self.items)  # A heap too, which does not tell how it came about.
        state = super().snapshot()
        assert isinstance(state, bytes)
        return state

    def status(self) -> Mapping[str, object]:
        return {
            "size": len(self.items),
            "in work": len(self.taken),
            "takers": len(self.takers),
            "done": self.done_count,
        }

    def _hand_out(self) -> None:
        while self.items and self.takers:
            item = heapq.heappop(self.items)
            taker = self.takers.pop(0)
            self.last_token = max(self.now.index, self.last_token + 1)
            item = item._replace(times=item.times + 1)
            self.taken[item.id] = Taken(item, taker, self.last_token)

    def _give_back(self, taken: Taken) -> None:
        del self.taken[taken.item.id]
        heapq.heappush(self.items, taken.item)
        self._hand_out()


class Job(Generic[V]):
    """An item that this node took."""

    def __init__(self, face: Queue[V], taken: Taken) -> None:
        self._face = face
        self.port = face.port
        self.value: V = taken.item.value
        """What was put."""
        self.id = taken.item.id
        """No other item has it."""
        self.token = taken.token
        """Grows each time the item is taken."""
        self.times = taken.item.times
        """How often it was taken, this time included. An item that ends whoever takes it can be
        told by this."""

    @task
    async def done(self) -> bool:
        """The work is done. False if somebody else has it by now."""
        return await self._face.finish(self.id, self.token)

    @task
    async def give_back(self) -> bool:
        """Let somebody else do it. False if somebody else has it by now."""
        return await self._face.give_back(self.id, self.token)

    @property
    def lost(self) -> bool:
        """Whether this node cannot be sure to have it any more; as `Hold.lost`."""
        return not self.port.primary or self.port.look(self._is_lost)

    def _is_lost(self, state: Queue[V]) -> bool:
        found = state.taken.get(self.id)
        return found is None or found.token != self.token
