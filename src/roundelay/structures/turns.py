"""`Turns`: who may go now, and who waits for it in which order. Locks, semaphores and leaders.

A claim belongs to a session, which is one life of a node, and has a *handle*, a number that the
node chose; so one node can hold and wait several times. A claim ends when its owner gives it up, or
at the first mark in the log whose sessions lack its own. Time ends nothing.

Each grant has a *token*: the index of the grant, or one more than the last token if that is
greater. (At a mark there is no entry whose index would be the grant's alone.) So tokens grow from
grant to grant, and a store that refuses what comes with a smaller token than the greatest it has
seen is safe from a holder that does not know yet that it lost its turn.
"""

from collections.abc import Callable, Coroutine, Mapping
from types import TracebackType
from typing import Any, NamedTuple, Self

from roundelay.core.ids import NodeId
from roundelay.core.log import NAMED
from roundelay.structures.errors import Refused
from roundelay.structures.machine import Machine
from roundelay.structures.methods import read, task, write
from roundelay.structures.port import Port


class Claim(NamedTuple):
    """Somebody who holds a turn or waits for one."""

    session: int
    handle: int
    node: NodeId
    label: str
    token: int = -1
    """Of the grant; -1 while it waits."""
    number: int = 0
    """The grants up to this one; 0 while it waits."""


class Turns(Machine):
    """Base class: at most `limit` claims hold a turn at once, in the order in which they came."""

    limit: int
    granted: list[Claim]
    waiting: list[Claim]
    last_token: int
    grant_count: int

    def __init__(self) -> None:
        self.limit = 1
        self.granted = []
        self.waiting = []
        self.last_token = -1
        self.grant_count = 0

    @write
    def ask(self, handle: int, label: str = "", *, wait: bool = True) -> int | None:
        """The token, if a turn is free; else None, and the claim waits if it wants to. Asking again
        with the same handle changes nothing."""
        session = session_of(self)
        if (claim := self.claim(session, handle)) is not None:
            return claim.token if claim.number else None
        claim = Claim(session, handle, self.now.sender, label)
        if len(self.granted) < self.limit and not self.waiting:
            return self._grant(claim).token
        if wait:
            self.waiting.append(claim)
        return None

    @write
    def give(self, handle: int) -> bool:
        """Give up a turn, or the wait for one. False if the session has neither any more."""
        session = session_of(self)
        before = len(self.granted) + len(self.waiting)
        self._keep(lambda claim: (claim.session, claim.handle) != (session, handle))
        return len(self.granted) + len(self.waiting) < before

    def on_term(self, sessions: Mapping[NodeId, int]) -> None:
        alive = frozenset(sessions.values()) - {0}
        self._keep(lambda claim: claim.session in alive)

    @read
    def holders(self) -> list[NodeId]:
        """The nodes that have a turn, the one that got it first before the others."""
        return [claim.node for claim in self.granted]

    @read
    def queue(self) -> list[NodeId]:
        """The nodes that wait, the next one first."""
        return [claim.node for claim in self.waiting]

    def claim(self, session: int, handle: int) -> Claim | None:
        """Of a state: the claim of this session with this handle."""
        for claim in (*self.granted, *self.waiting):
            if claim.handle == handle and claim.session == session:
                return claim
        return None

    def status(self) -> Mapping[str, object]:
        return {
            "holders": [claim.node for claim in self.granted],
            "waiting": len(self.waiting),
            "token": self.last_token,
        }

    @task
    async def acquire(self, label: str = "", *, timeout_s: float | None = None) -> "Hold":
        """Wait for a turn. TimeoutError after `timeout_s`: then it was not got, or given back."""
        handle = self.port.fresh()
        try:
            claim = await self.port.limited(self._claimed(handle, label), timeout_s)
        except BaseException:
            self.port.background(
                lambda: self.give(handle)
            )  # Behind the question, in the same session.
            raise
        return Hold(self.port, claim, self._claim_of(handle), lambda: self.give(handle))

    @task
    async def try_acquire(self, label: str = "") -> "Hold | None":
        """A turn if one is free, without waiting for others."""
        handle = self.port.fresh()
        try:
            token = await self.ask(handle, label, wait=False)
        except BaseException:
            self.port.background(lambda: self.give(handle))
            raise
        claim = self.port.look(lambda state: state.claim(self.port.session, handle))
        if token is None or claim is None:
            return None
        return Hold(self.port, claim, self._claim_of(handle), lambda: self.give(handle))

    def hold(self, label: str = "", *, timeout_s: float | None = None) -> "Holding":
        """For `async with` and `with`: a turn for the length of a block."""
        return Holding(self, label, timeout_s)

    def _claim_of(self, handle: int) -> "Callable[[Self], Claim | None]":
        session = self.port.session
        return lambda state: state.claim(session, handle)

    async def _claimed(self, handle: int, label: str) -> Claim:
        session = self.port.session

        def settled(state: Self) -> Claim | str | None:
            claim = state.claim(session, handle)
            return "gone" if claim is None else claim if claim.number else None

        while True:
            await self.ask(handle, label)
            found = await self.port.until(settled)
            if isinstance(found, Claim):
                return found
            # A mark lacked this node, which has come back since: it asks again.

    # The rest is of the state.

    def _keep(self, wanted: Callable[[Claim], bool]) -> None:
        self.granted = [claim for claim in self.granted if wanted(claim)]
        self.waiting = [claim for claim in self.waiting if wanted(claim)]
        self._fill()

    def _fill(self) -> None:
        while self.waiting and len(self.granted) < self.limit:
            self._grant(self.waiting.pop(0))

    def _grant(self, claim: Claim) -> Claim:
        self.last_token = max(self.now.index, self.last_token + 1)
        self.grant_count += 1
        claim = claim._replace(token=self.last_token, number=self.grant_count)
        self.granted.append(claim)
        return claim


class Hold:
    """A turn that this node got."""

    def __init__(
        self,
        port: Port,
        claim: Claim,
        find: Callable[[Any], Claim | None],
        give: Callable[[], Coroutine[Any, Any, bool]],
    ) -> None:
        """`find` looks for the claim in a state, and `give` gives it up."""
        self.port = port
        self._find = find
        self._give = give
        self.token = claim.token
        """Give it to whatever the turn protects, which refuses smaller ones than it has seen."""
        self.number = claim.number
        """How many turns were granted up to this one."""

    @property
    def lost(self) -> bool:
        """Whether this node cannot be sure of its turn any more: the log has given it up, or the
        log is not open here, and so may have given it up elsewhere. Of a log that opens again with
        this node the turn is still held."""
        return not self.port.primary or self.port.look(self._is_lost)

    @task
    async def until_lost(self) -> None:
        """Wait for `lost`."""
        await self.port.until(lambda state: True if self.lost else None)

    @task
    async def release(self) -> bool:
        """Give the turn to the next. False if it was lost before."""
        return await self._give()

    def _is_lost(self, state: Any) -> bool:
        claim = self._find(state)
        return claim is None or claim.token != self.token


class Holding:
    """`async with`, or `with` outside of asyncio: holds a turn for the length of a block."""

    def __init__(self, face: Turns, label: str, timeout_s: float | None) -> None:
        self._face = face
        self._label = label
        self._timeout_s = timeout_s
        self._hold: Hold | None = None

    async def __aenter__(self) -> Hold:
        self._hold = await self._face.acquire(self._label, timeout_s=self._timeout_s)
        return self._hold

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        assert self._hold is not None
        # Not waited for: at the end of a block in a minority nobody should have to wait for a
        # majority, and the next claim of this node stands behind it anyway.
        self._face.port.background(self._hold.release)

    def __enter__(self) -> Hold:
        return self._face.port.run(self.__aenter__())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self._face.port.run(self.__aexit__(kind, error, where))


def session_of(machine: Machine) -> int:
    """In a write: the session to which a claim belongs."""
    session = machine.now.session
    if session & NAMED:
        raise Refused("a named session holds nothing, for it never ends: ask without one")
    return session
