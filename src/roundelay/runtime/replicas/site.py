"""The machines of one running node: they follow its log together, and share what goes to it.

The log's task applies entries, in the event loop, and gives them to `Site.apply`; whoever waits for
a reply or for a state is woken there. States may be looked at from any thread, so a lock is held
while an entry is applied and while somebody looks.
"""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from roundelay.core.effects import Appended
from roundelay.core.ids import NodeId
from roundelay.core.log import NAMED, Mark
from roundelay.runtime.errors import (
    ClosedError,
    ConfigError,
    NotPrimaryError,
    QueueFullError,
    RoundelayError,
    UncertainError,
    VersionError,
)
from roundelay.runtime.log.api import Log, Session
from roundelay.runtime.log.driver import LogDriver
from roundelay.runtime.log.entries import Entry, EntryBatch
from roundelay.runtime.log.receipts import LogReceipt, SessionReceipt, session_forgotten
from roundelay.structures.arguments import Arguments, read_reply
from roundelay.structures.machine import Machine
from roundelay.structures.port import Options, Placed
from roundelay.structures.replica import TICK, Issued, LogEntry, Replica, Run, announcement

if TYPE_CHECKING:
    from roundelay.runtime.replicas.port import NodePort

M = TypeVar("M", bound=Machine)
R = TypeVar("R")

TICK_S = 1.0
"""How often a node looks whether log time, or a mark, waits for an entry, in seconds. Too small:
ticks fill the log; too large: times to live end late, and locks of lost nodes are free late."""
LATE_TICKS = 3
"""So often a node looks for the tick of another before it appends one itself: the other may run no
machine. Too small: several nodes append ticks; too large: locks of lost nodes are free late, and
times to live end late where such a node is the first by name."""
ANNOUNCE_S = 2.0
"""How long a write of a new version waits for others to tell theirs, in seconds. Too small: a node
that has just come back is not asked; too large: nodes that run no machine delay such writes."""

Runner = Callable[[Coroutine[Any, Any, Any]], Any]


class Limit:
    """The time that a call may take, for all together that it waits for."""

    def __init__(self, timeout_s: float | None) -> None:
        self.at = None if timeout_s is None else asyncio.get_running_loop().time() + timeout_s
        """When it ends, on the clock of the event loop."""

    @property
    def left_s(self) -> float | None:
        """None: without end."""
        at = self.at
        return None if at is None else max(0.0, at - asyncio.get_running_loop().time())


class Site:
    """The state machine of a node's log: all machines that the node runs."""

    def __init__(self, node: NodeId) -> None:
        self.node = node
        self.replica = Replica({})
        self.lock = threading.RLock()
        self.loop: asyncio.AbstractEventLoop | None = None
        self.error: ClosedError | None = None
        """Why the node has ended."""
        self.session = 0
        self._fresh = 0
        self.runner: Runner | None = None
        """Runs a coroutine in the node's thread, for others that wait."""
        self._makes: dict[str, Callable[[], Machine]] = {}
        self._ports: dict[str, NodePort[Any]] = {}
        self._log: Log | None = None
        self._driver: LogDriver | None = None
        self._members: Callable[[], tuple[NodeId, ...]] = lambda: ()
        self._issued: dict[int, Issued] = {}
        """Commands of this node's session whose replies somebody waits for, by their numbers."""
        self._replies: dict[tuple[int, int], asyncio.Future[bytes | None]] = {}
        """The same of named sessions, by session and number."""
        self._callers: dict[tuple[int, int], int] = {}
        """How many wait for each."""
        self._committed: dict[tuple[int, int], int] = {}
        """The indexes of those that are committed and not applied here yet."""
        self._sessions: dict[str, Session] = {}
        self._conditions: list[tuple[Callable[[], Any], asyncio.Future[Any]]] = []
        self._tasks: set[asyncio.Task[Any]] = set()
        self._ticking: asyncio.TimerHandle | None = None
        self._late_ticks = 0
        """How often this node has looked for an entry in vain, while a mark or log time waited for
        one."""
        self._ticked = 0
        """Entries that were applied when it last looked."""

    def add(self, name: str, make: Callable[[], M], port: "NodePort[M]") -> M:
        """Have a machine of this name too; before the node runs. Returns its state."""
        if self.loop is not None:
            raise ConfigError("the node runs already; add machines before it is started")
        if name in self._makes:
            raise ConfigError(f"there is a machine {name!r} already; give each its own name")
        made = make()
        if not isinstance(made, Machine):
            raise ConfigError(f"{make!r} makes no Machine; give a class of roundelay.Machine")
        try:
            self.replica = Replica({**self.replica.machines, name: made})
        except ValueError as e:
            raise ConfigError(str(e)) from None
        self._makes[name] = make
        self._ports[name] = port
        return made

    # As the log's state machine

    def apply_all(self, batch: EntryBatch) -> None:
        """The next entries of the log."""
        if batch.head.session & NAMED:
            for entry in batch:
                self.apply(entry)
            return
        head = batch.head
        run = Run(
            batch.index,
            batch.payloads,
            head.term,
            head.sender,
            head.session,
            batch.number,
            head.stamp_us,
        )
        issued = self._issued if self._issued and head.session == self.session else None
        after = self._wake if self._conditions else None
        with self.lock:
            answers = self.replica.apply_all(run, issued, after)
        for (_, _, _, (future, _, placed)), index, reply, error in answers:
            if future.done():
                continue  # Nobody waits any more.
            if error is None:
                future.set_result(Placed(reply, index) if placed else reply)
            else:
                future.set_exception(error)

    def apply(self, entry: Entry) -> None:
        """The next entry of the log, if it is of a named session: of each the last reply is kept,
        as bytes."""
        given = LogEntry(
            entry.index,
            entry.payload,
            entry.term,
            entry.sender,
            entry.session,
            entry.number,
            entry.stamp_us,
        )
        with self.lock:
            reply = self.replica.apply(given)
        waiting = self._replies.pop((given.session, given.number), None)
        if waiting is not None and not waiting.done():
            waiting.set_result(reply)
        self._wake()

    def on_mark(self, mark: Mark) -> None:
        """The next term of the log."""
        with self.lock:
            self.replica.begin_term(mark.term, dict(zip(mark.members, mark.sessions, strict=True)))
        self._wake()
        if self.loop is not None:
            self.loop.call_soon(self._announce)

    def snapshot(self) -> Iterable[bytes]:
        """The states. Called in a thread, while nothing is applied."""
        return self.replica.snapshot()

    def restore(self, chunks: Iterable[bytes]) -> None:
        """Take over states. Called in a thread, while nothing is applied."""
        fresh = Replica({name: make() for name, make in self._makes.items()})
        fresh.restore(chunks)
        with self.lock:
            self.replica = fresh
            for name, port in self._ports.items():
                port.machine = fresh.machines[name]
        if self.loop is not None:
            self.loop.call_soon_threadsafe(self._after_restore)

    def _after_restore(self) -> None:
        for port in self._ports.values():
            port.miss()
        for key, index in self._committed.items():
            reply = self._replies.get(key)
            if index < self.replica.index and reply is not None and not reply.done():
                reply.set_result(None)  # It is in the snapshot; its reply is not.
        for _, _, _, (future, receipt, _) in [*self._issued.values()]:
            self.background(partial(self._settle, receipt, future))
        self._wake()

    def machine_status(self) -> dict[str, Mapping[str, object]]:
        """What the node shows of its machines, by their names."""
        with self.lock:
            return {name: port.status() for name, port in self._ports.items()}

    # The life of the site

    def open(
        self,
        log: Log,
        members: Callable[[], tuple[NodeId, ...]],
        runner: Runner | None = None,
    ) -> None:
        """The node runs. `members` are those of its view; `runner` runs a coroutine in the node's
        thread for others that wait."""
        driver = log.driver
        self._log, self._driver, self._members, self.runner = log, driver, members, runner
        self.session = driver.session
        self.loop = asyncio.get_running_loop()
        driver.on_changed = self._on_changed
        driver.appending.on_forgotten = self._on_forgotten
        self._ticking = self.loop.call_later(TICK_S, self._tick)

    def close(self, error: ClosedError) -> None:
        """The node has ended: whoever waits is told `error`."""
        self.error = error
        if self._ticking is not None:
            self._ticking.cancel()
        for _, condition in self._conditions:
            _fail(condition, error)
        for future in self._replies.values():
            _fail(future, error)
        for _, _, _, (future, _, _) in self._issued.values():
            _fail(future, error)
        self._conditions, self._replies, self._issued = [], {}, {}
        for port in self._ports.values():
            port.end()
        for task in self._tasks:
            task.cancel()

    def _on_changed(self) -> None:
        """The log has opened or closed."""
        self._wake()
        if self._new_term() and self.error is None and self.loop is not None:
            self.loop.call_soon(self._append_tick)

    def _tick(self) -> None:
        assert self.loop is not None
        self._ticking = self.loop.call_later(TICK_S, self._tick)
        new_term, due = self._new_term(), self.replica.due_us() is not None
        late = new_term or (due and self.replica.index == self._ticked)
        self._late_ticks = self._late_ticks + 1 if late else 0
        self._ticked = self.replica.index
        if new_term or due:
            self._append_tick()
        self._announce()

    def _new_term(self) -> bool:
        """Whether the mark of this term has no entry behind it yet, and so is not shown to the
        machines."""
        return (
            self.primary
            and self._driver is not None
            and self._driver.status.term != self.replica.term
        )

    def _append_tick(self) -> None:
        """Append a tick, if this node is the one that does it."""
        log = self._log
        if log is None or not self.primary:
            return
        present = [node for node in log.voters if node in self._members()]
        ours = not present or self.node == min(present)
        if ours or self._late_ticks >= LATE_TICKS:
            self._append(TICK)

    def _announce(self) -> None:
        """Tell all which versions of the machines this node runs, unless they were told."""
        if self.primary and not self._new_term() and not self.replica.announced(self.session):
            self._append(announcement(self.replica.versions()))

    def _append(self, payload: bytes) -> None:
        """Append what nobody waits for; what fails now is tried again by `_tick`."""
        assert self._log is not None
        with contextlib.suppress(RoundelayError):
            self._log.append_nowait(payload)

    # For the ports

    @property
    def primary(self) -> bool:
        return self.error is None and self._log is not None and self._log.primary

    @property
    def log(self) -> Log:
        """ClosedError or ConfigError if the node does not run."""
        if self.error is not None:
            raise self.error
        if self._log is None:
            raise ConfigError("the group is not joined yet; use `async with` to join it")
        return self._log

    def fresh(self) -> int:
        """A number that this life of the node never used before."""
        self._fresh += 1
        return self._fresh

    def issue(
        self, name: str, method: Arguments, given: tuple[Any, ...], payload: bytes
    ) -> "asyncio.Future[Any] | None":
        """Append a command with simple arguments without waiting; its reply. None if nothing was
        appended, since no view is open or there is no room."""
        log, loop = self._log, self.loop
        if log is None or loop is None or self.error is not None:
            return None
        try:
            receipt = log.append_nowait(payload)
        except (NotPrimaryError, QueueFullError):
            return None
        future: asyncio.Future[Any] = loop.create_future()
        self._issued[receipt.number] = (name, method, given, (future, receipt, False))
        return future

    async def write(
        self, name: str, method: Arguments, payload: bytes, limit: Limit, *, placed: bool
    ) -> Any:
        """Append a command, once that is possible; its reply."""
        receipt = await self.log.append(payload, limit.left_s)
        assert self.loop is not None
        future: asyncio.Future[Any] = self.loop.create_future()
        self._issued[receipt.number] = (name, method, None, (future, receipt, placed))
        try:
            index = await receipt
            async with _in_time(limit, index):
                return await future
        except BaseException:
            self._issued.pop(receipt.number, None)
            raise

    async def _settle(self, receipt: LogReceipt, future: "asyncio.Future[Any]") -> None:
        """The state was replaced: if a command is in the new one, its reply is not known."""
        try:
            index: int | None = await receipt
        except RoundelayError as e:
            _fail(future, e)
            return
        if index is None or index < self.replica.index:
            self._issued.pop(receipt.number, None)
            _fail(future, _no_reply(index))

    def _on_forgotten(self, effect: Appended) -> None:
        """The log has forgotten this node's session, and did not take these commands."""
        for number in range(effect.number, effect.number + effect.count):
            issued = self._issued.pop(number, None)
            if issued is not None:
                _fail(issued[3][0], session_forgotten())

    async def settled(
        self, receipt: SessionReceipt, session: int, limit: Limit
    ) -> tuple[int | None, bytes | None]:
        """The index of a command of a named session and its reply, if it was applied here
        meanwhile."""
        assert self.loop is not None
        key = (session, receipt.number)
        reply = self._replies.get(key)
        if reply is None:
            reply = self._replies[key] = self.loop.create_future()
        self._callers[key] = self._callers.get(key, 0) + 1
        try:
            index = await receipt
            if index is None or index < self.replica.index:
                return index, reply.result() if reply.done() else None
            self._committed[key] = index
            async with _in_time(limit, index):
                return index, await asyncio.shield(reply)
        finally:
            self._callers[key] -= 1
            if not self._callers[key]:  # Else another caller waits for the same command.
                for known in (self._callers, self._replies, self._committed):
                    known.pop(key, None)

    async def write_once(
        self, method: Arguments, payload: bytes, options: Options, limit: Limit
    ) -> Any:
        """Append a command of a named session; its reply."""
        name = options.session
        assert name is not None
        session = self._sessions.get(name)
        if session is None:
            session = await self.log.session(name, limit.left_s)
            self._sessions[name] = session
        receipt = await session.append(payload, options.number, limit.left_s)
        index, reply = await self.settled(receipt, session.id, limit)
        if reply is None or index is None:
            kept = self.replica.kept(session.id)
            if kept is None or kept.number != receipt.number or kept.reply is None:
                raise _no_reply(index)
            index, reply = kept.index, kept.reply
        found = read_reply(method, reply, index)
        return Placed(found, index) if options.placed else found

    async def applied(self, index: int) -> None:
        """Wait until the entry is in the states."""
        if self.replica.index <= index:
            await self.until(lambda: True if self.replica.index > index else None)

    async def may_send(self, name: str, method: Arguments, limit: Limit) -> None:
        """VersionError if a member of the group runs a machine that does not know this version of
        a method: at the command it would stop. Nodes that were together with this one for less
        than `ANNOUNCE_S` and have not told their versions are waited for, for half of the time at
        most: some nodes run no machine, and never tell."""
        left_s = limit.left_s
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(
                ANNOUNCE_S if left_s is None else min(ANNOUNCE_S, left_s / 2)
            ):
                await self.until(lambda: self.replica.all_announced() or None)
        for node, known in self.replica.known_versions(name):
            if known < method.version:
                raise VersionError(
                    f"nothing was sent: {node} runs version {known} of the machine, and "
                    f"{method.method!r} is of version {method.version}, at which it would stop; "
                    f"upgrade {node} first"
                )

    async def until(self, ready: Callable[[], R | None]) -> R:
        """What `ready` returns as soon as it is not None."""
        if self.error is not None:
            raise self.error
        found = ready()
        if found is not None:
            return found
        assert self.loop is not None
        future: asyncio.Future[R] = self.loop.create_future()
        condition = (ready, future)
        self._conditions.append(condition)
        try:
            return await future
        finally:
            if condition in self._conditions:
                self._conditions.remove(condition)

    def _wake(self) -> None:
        """Ask the conditions of all who wait."""
        if not self._conditions:
            return
        waiting, self._conditions = self._conditions, []
        for ready, future in waiting:
            if future.done():
                continue
            try:
                found = ready()
            except Exception as e:  # Of the application's function: it is told.
                future.set_exception(e)
                continue
            if found is None:
                self._conditions.append((ready, future))
            else:
                future.set_result(found)

    def background(self, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """See `structures.port.Port`."""
        if self.error is not None or self.loop is None or self.loop.is_closed():
            return
        task = self.loop.create_task(_quiet(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _quiet(work: Callable[[], Coroutine[Any, Any, object]]) -> None:
    with contextlib.suppress(Exception):
        await work()


def _fail(future: "asyncio.Future[Any]", error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
        future.exception()  # Nobody may wait for it any more.


@contextlib.asynccontextmanager
async def _in_time(limit: Limit, index: int) -> AsyncIterator[None]:
    """Wait for the reply of a command that is committed, and no longer."""
    try:
        async with asyncio.timeout_at(limit.at):
            yield
    except TimeoutError:
        raise UncertainError(
            f"the command is in the log at index {index}, and was not done here in time: its reply "
            "is not known"
        ) from None


def _no_reply(index: int | None) -> UncertainError:
    where = "" if index is None else f" at index {index}"
    return UncertainError(
        f"the command is in the log{where} and was done, but its reply is not known here any more"
    )
