"""`Locks`: any number of locks, by name; a lock exists while somebody holds it or waits for it.

async with locks.hold("backup") as hold:
    write(..., fencing_token=hold.token)
"""

from collections.abc import Mapping
from types import TracebackType

from roundelay.core.ids import NodeId
from roundelay.structures.machine import Machine
from roundelay.structures.methods import read, task, write
from roundelay.structures.turns import Claim, Hold, session_of


class Locks(Machine):
    """Each name is a lock as `Lock` is. Tokens grow over all of them."""

    lines: dict[str, list[Claim]]
    """The holder of each lock, and behind it those that wait."""
    last_token: int
    grant_count: int

    def __init__(self) -> None:
        self.lines = {}
        self.last_token = -1
        self.grant_count = 0

    @write
    def ask(self, name: str, handle: int, label: str = "", *, wait: bool = True) -> int | None:
        """The token, if the lock is free; else None, and the claim waits if it wants to. Asking
        again with the same handle changes nothing."""
        session = session_of(self)
        if (claim := self.claim(name, session, handle)) is not None:
            return claim.token if claim.number else None
        line = self.lines.get(name, [])
        if line and not wait:
            return None
        self.lines[name] = [*line, Claim(session, handle, self.now.sender, label)]
        self._grant(name)
        return None if line else self.last_token

    @write
    def give(self, name: str, handle: int) -> bool:
        """Give up the lock, or the wait for it. False if the session has neither any more."""
        claim = self.claim(name, session_of(self), handle)
        if claim is None:
            return False
        self._keep(name, [other for other in self.lines[name] if other is not claim])
        return True

    def on_term(self, sessions: Mapping[NodeId, int]) -> None:
        alive = frozenset(sessions.values()) - {0}
        for name in sorted(self.lines):  # In one order at all nodes, for tokens are granted.
            line = self.lines[name]
            kept = [claim for claim in line if claim.session in alive]
            if len(kept) < len(line):
                self._keep(name, kept)

    @read
    def holder(self, name: str) -> NodeId | None:
        """The node that has this lock."""
        line = self.lines.get(name)
        return line[0].node if line else None

    @read
    def holders(self) -> dict[str, NodeId]:
        """The locks that are held, and by which nodes."""
        return {name: line[0].node for name, line in sorted(self.lines.items())}

    @read
    def queue(self, name: str) -> list[NodeId]:
        """The nodes that wait for this lock, the next one first."""
        return [claim.node for claim in self.lines.get(name, [])[1:]]

    def claim(self, name: str, session: int, handle: int) -> Claim | None:
        """Of a state: the claim of this session with this handle."""
        for claim in self.lines.get(name, ()):
            if claim.handle == handle and claim.session == session:
                return claim
        return None

    def status(self) -> Mapping[str, object]:
        lines = sorted(self.lines.items())
        return {
            "held": len(lines),
            "waiting": sum(len(line) - 1 for _, line in lines),
            "holders": [f"{name}={line[0].node}" for name, line in lines],
            "token": self.last_token,
        }

    @task
    async def acquire(self, name: str, label: str = "", *, timeout_s: float | None = None) -> Hold:
        """Wait for a lock. TimeoutError after `timeout_s`: then it was not got, or given back."""
        handle = self.port.fresh()
        try:
            claim = await self.port.limited(self._claimed(name, handle, label), timeout_s)
        except BaseException:
            self.port.background(lambda: self.give(name, handle))
            raise
        return self._hold(name, handle, claim)

    @task
    async def try_acquire(self, name: str, label: str = "") -> Hold | None:
        """A lock if it is free, without waiting for others."""
        handle = self.port.fresh()
        try:
            await self.ask(name, handle, label, wait=False)
        except BaseException:
            self.port.background(lambda: self.give(name, handle))
            raise
        session = self.port.session
        claim = self.port.look(lambda state: state.claim(name, session, handle))
        return self._hold(name, handle, claim) if claim is not None and claim.number else None

    def hold(self, name: str, label: str = "", *, timeout_s: float | None = None) -> "HoldingOne":
        """For `async with` and `with`: a lock for the length of a block."""
        return HoldingOne(self, name, label, timeout_s)

    def _hold(self, name: str, handle: int, claim: Claim) -> Hold:
        session = self.port.session
        return Hold(
            self.port,
            claim,
            lambda state: state.claim(name, session, handle),
            lambda: self.give(name, handle),
        )

    async def _claimed(self, name: str, handle: int, label: str) -> Claim:
        session = self.port.session

        def settled(state: "Locks") -> Claim | str | None:
            claim = state.claim(name, session, handle)
            return "gone" if claim is None else claim if claim.number else None

        while True:
            await self.ask(name, handle, label)
            found = await self.port.until(settled)
            if isinstance(found, Claim):
                return found
            # A mark lacked this node, which has come back since: it asks again.

    # The rest is of the state.

    def _keep(self, name: str, line: list[Claim]) -> None:
        if not line:
            del self.lines[name]
            return
        self.lines[name] = line
        self._grant(name)

    def _grant(self, name: str) -> None:
        """Give the lock to the first in its line, unless it has it."""
        first = self.lines[name][0]
        if not first.number:
            self.last_token = max(self.now.index, self.last_token + 1)
            self.grant_count += 1
            self.lines[name][0] = first._replace(token=self.last_token, number=self.grant_count)


class HoldingOne:
    """`async with`, or `with` outside of asyncio: holds a lock for the length of a block."""

    def __init__(self, face: Locks, name: str, label: str, timeout_s: float | None) -> None:
        self._face = face
        self._name = name
        self._label = label
        self._timeout_s = timeout_s
        self._hold: Hold | None = None

    async def __aenter__(self) -> Hold:
        face = self._face
        self._hold = await face.acquire(self._name, self._label, timeout_s=self._timeout_s)
        return self._hold

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        assert self._hold is not None
        self._face.port.background(self._hold.release)  # As `Turns.hold` does.

    def __enter__(self) -> Hold:
        return self._face.port.run(self.__aenter__())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self._face.port.run(self.__aexit__(kind, error, where))
