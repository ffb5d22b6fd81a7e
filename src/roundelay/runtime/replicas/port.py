"""The port of a machine at one running node: commands to its log, and tasks that wait for it.

The log's task applies entries, in the event loop, and gives them to `NodePort.apply`; whoever waits
for a reply or for a state is woken there. The state may be looked at from any thread, so a lock is
held while an entry is applied and while somebody looks.
"""

import asyncio
import concurrent.futures
import contextlib
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from typing import Any, Generic, TypeVar, cast

from roundelay.core.ids import NodeId
from roundelay.core.log import NAMED, Mark
from roundelay.runtime.errors import (
    ClosedError,
    ConfigError,
    NotPrimaryError,
    RoundelayError,
    UncertainError,
)
from roundelay.runtime.log.api import Log, Session
from roundelay.runtime.log.driver import LogDriver
from roundelay.runtime.log.entries import Entry
from roundelay.runtime.log.receipts import LogReceipt, SessionReceipt
from roundelay.structures.errors import GapError
from roundelay.structures.machine import Machine
from roundelay.structures.port import Call, Options
from roundelay.structures.replica import TICK, LogEntry, Replica, command_head

M = TypeVar("M", bound=Machine)
R = TypeVar("R")

TICK_S = 1.0
"""How often a node looks whether log time, or a mark, waits for an entry, in seconds. Too small:
ticks fill the log; too large: times to live end late, and locks of lost nodes are free late."""
LATE_TICKS = 3
"""So often a node looks for the tick of another before it appends one itself: the other may run no
machine. Too small: several nodes append ticks; too large: locks of lost nodes are free late."""
WATCH_MAX = 10_000
"""Changes that may wait for one watcher. Too small: bursts end watching; too large: a watcher that
never reads holds memory."""
NAME = ""
"""Of the only machine of a log."""


class NodePort(Generic[M]):
    """A machine at a node. It is the state machine of the node's log, and the port of its faces."""

    def __init__(self, make: Callable[[], M], node: NodeId) -> None:
        self._make = make
        self._node = node
        self._replica = Replica({NAME: make()})
        self._head = command_head(NAME)
        self.machine: M = cast("M", self._replica.machines[NAME])
        self.lock = threading.RLock()
        self._log: Log | None = None
        self._driver: LogDriver | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._error: ClosedError | None = None
        self._session = 0
        self._fresh = 0
        self._members: Callable[[], tuple[NodeId, ...]] = lambda: ()
        self._runner: Callable[[Coroutine[Any, Any, Any]], Any] | None = None
        self._replies: dict[tuple[int, int], asyncio.Future[bytes | None]] = {}
        """Commands whose replies somebody waits for, by session and number."""
        self._committed: dict[tuple[int, int], int] = {}
        """The indexes of those that are committed and not applied here yet."""
        self._sessions: dict[str, Session] = {}
        self._conditions: list[tuple[Callable[[Any], Any], asyncio.Future[Any]]] = []
        self._watchers: list[_Watcher] = []
        self._tasks: set[asyncio.Task[Any]] = set()
        self._ticking: asyncio.TimerHandle | None = None
        self._late_ticks = 0
        """How often this node has looked for an entry of this term in vain."""

    # As the log's state machine

    def apply(self, entry: Entry) -> None:
        """The next entry of the log."""
        batch = entry.batch
        head, offset = batch.head, entry.offset
        number = batch.number + offset
        given = LogEntry(
            batch.index + offset,
            entry.payload,
            head.term,
            head.sender,
            head.session,
            number,
            head.stamp_us,
        )
        with self.lock:
            reply = self._replica.apply(given)
        if self._replies:
            waiting = self._replies.pop((head.session, number), None)
            if waiting is not None and not waiting.done():
                waiting.set_result(reply)
        if self._conditions:
            self._wake()

    def on_mark(self, mark: Mark) -> None:
        """The next term of the log."""
        with self.lock:
            self._replica.begin_term(mark.term, dict(zip(mark.members, mark.sessions, strict=True)))
        self._wake()

    def snapshot(self) -> Iterable[bytes]:
        """The state. Called in a thread, while nothing is applied."""
        return self._replica.snapshot()

    def restore(self, chunks: Iterable[bytes]) -> None:
        """Take over a state. Called in a thread, while nothing is applied."""
        fresh = Replica({NAME: self._make()})
        fresh.restore(chunks)
        with self.lock:
            self._replica = fresh
            self.machine = cast("M", fresh.machines[NAME])
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._after_restore)

    def _after_restore(self) -> None:
        for watcher in self._watchers:
            watcher.miss()
        if self._watchers:
            vars(self.machine)["told"] = self._tell
        for key, index in self._committed.items():
            if index < self._replica.index and (reply := self._replies.get(key)) is not None:
                reply.set_result(None)  # It is in the snapshot; its reply is not.
        self._wake()

    def status(self) -> dict[str, object]:
        """What the node shows of its machine."""
        with self.lock:
            told = dict(self.machine.status())
        kind = type(self.machine).__name__
        return {"kind": kind, **told, "watchers": len(self._watchers)}

    # The life of the port

    def open(
        self,
        log: Log,
        members: Callable[[], tuple[NodeId, ...]],
        runner: Callable[[Coroutine[Any, Any, Any]], Any] | None = None,
    ) -> None:
        """The node runs. `members` are those of its view; `runner` runs a coroutine in the node's
        thread for others that wait."""
        driver = log.driver
        self._log, self._driver, self._members, self._runner = log, driver, members, runner
        self._session = driver.session
        self._loop = asyncio.get_running_loop()
        driver.on_changed = self._on_changed
        self._ticking = self._loop.call_later(TICK_S, self._tick)

    def close(self, error: ClosedError) -> None:
        """The node has ended: whoever waits is told `error`."""
        self._error = error
        if self._ticking is not None:
            self._ticking.cancel()
        for _, future in self._conditions:
            _fail(future, error)
        for future in self._replies.values():
            _fail(future, error)
        self._conditions, self._replies = [], {}
        for watcher in self._watchers:
            watcher.end()
        for task in self._tasks:
            task.cancel()

    def _on_changed(self) -> None:
        """The log has opened or closed."""
        self._wake()
        if self._new_term() and self._error is None and self._loop is not None:
            self._loop.call_soon(self._append_tick)

    def _tick(self) -> None:
        assert self._loop is not None
        self._ticking = self._loop.call_later(TICK_S, self._tick)
        self._late_ticks = self._late_ticks + 1 if self._new_term() else 0
        if self._late_ticks or self._replica.due_us() is not None:
            self._append_tick()

    def _new_term(self) -> bool:
        """Whether the mark of this term has no entry behind it yet, and so is not shown to the
        machine."""
        return (
            self.primary
            and self._driver is not None
            and self._driver.status.term != self._replica.term
        )

    def _append_tick(self) -> None:
        """Append a tick, if this node is the one that does it."""
        log = self._log
        if log is None or not self.primary:
            return
        present = [node for node in log.voters if node in self._members()]
        ours = not present or self._node == min(present)
        if ours or self._late_ticks >= LATE_TICKS:
            with contextlib.suppress(RoundelayError):  # What fails now is tried again.
                log.append_nowait(TICK)

    # As the port of faces

    @property
    def node(self) -> NodeId:
        return self._node

    @property
    def session(self) -> int:
        return self._session

    @property
    def index(self) -> int:
        return self._replica.index

    @property
    def primary(self) -> bool:
        return self._error is None and self._log is not None and self._log.primary

    @property
    def _the_log(self) -> Log:
        if self._error is not None:
            raise self._error
        if self._log is None:
            raise ConfigError("the group is not joined yet; use `async with replicate(...) as ...`")
        return self._log

    def fresh(self) -> int:
        self._fresh += 1
        return self._fresh

    async def write(self, call: Call) -> bytes:
        options = call.options
        if options.session is not None:
            return await self._write_once(call)
        log, payload = self._the_log, self._head + call.command
        receipt = await log.append(payload, options.timeout_s)
        index, reply = await self._settled(receipt, self._session)
        if reply is None:
            raise _no_reply(index)
        return reply

    async def _settled(
        self, receipt: LogReceipt | SessionReceipt, session: int
    ) -> tuple[int | None, bytes | None]:
        """The index of a command and its reply, if it was applied here meanwhile."""
        assert self._loop is not None
        key = (session, receipt.number)
        reply = self._replies.get(key)
        if reply is None:
            reply = self._replies[key] = self._loop.create_future()
        index: int | None = -1
        try:
            index = await receipt
            if index is not None and index >= self._replica.index:
                self._committed[key] = index
                return index, await (asyncio.shield(reply) if session & NAMED else reply)
        finally:
            # Of a named session another caller may wait for the same command.
            if not session & NAMED or index != -1:
                self._replies.pop(key, None)
                self._committed.pop(key, None)
        return index, reply.result() if reply.done() else None

    async def _write_once(self, call: Call) -> bytes:
        name, number = call.options.session, call.options.number
        assert name is not None
        session = self._sessions.get(name)
        if session is None:
            session = await self._the_log.session(name, call.options.timeout_s)
            self._sessions[name] = session
        payload = self._head + call.command
        receipt = await session.append(payload, number, call.options.timeout_s)
        index, reply = await self._settled(receipt, session.id)
        if reply is not None:
            return reply
        kept = self._replica.kept(session.id)
        if kept is None or kept.number != receipt.number or kept.reply is None:
            raise _no_reply(index)
        return kept.reply

    async def _applied(self, index: int) -> None:
        """Wait until the entry is in the state."""
        if self._replica.index <= index:
            await self.until(lambda _: True if self._replica.index > index else None)

    async def sync(self, options: Options) -> None:
        try:
            length = await self._the_log.sync(options.timeout_s)
        except TimeoutError as e:
            raise NotPrimaryError(f"the state may be old: {e}") from None
        await self._applied(length - 1)

    def look(self, run: Callable[[Any], R]) -> R:
        with self.lock:
            return run(self.machine)

    async def until(self, ready: Callable[[Any], R | None]) -> R:
        if self._error is not None:
            raise self._error
        found = self.look(ready)
        if found is not None:
            return found
        assert self._loop is not None
        future: asyncio.Future[R] = self._loop.create_future()
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
                found = self.look(ready)
            except Exception as e:  # Of the application's function: it is told.
                future.set_exception(e)
                continue
            if found is None:
                self._conditions.append((ready, future))
            else:
                future.set_result(found)

    async def limited(self, work: Coroutine[Any, Any, R], timeout_s: float | None) -> R:
        async with asyncio.timeout(timeout_s):
            return await work

    def background(self, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        if self._error is not None or self._loop is None or self._loop.is_closed():
            return
        task = self._loop.create_task(_quiet(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def changes(self) -> AsyncIterator[object]:
        watcher = _Watcher()
        self._watchers.append(watcher)
        vars(self.machine)["told"] = self._tell
        try:
            while self._error is None:
                while watcher.waiting:
                    yield watcher.waiting.popleft()
                if watcher.missed:
                    raise GapError(
                        "changes were missed: more came than may wait, or the state was taken from "
                        "a snapshot; read what is there, then watch again"
                    )
                watcher.more.clear()
                await watcher.more.wait()
        finally:
            self._watchers.remove(watcher)
            if not self._watchers:
                vars(self.machine).pop("told", None)

    def _tell(self, change: object) -> None:
        for watcher in self._watchers:
            watcher.tell(change)

    def run(self, work: Coroutine[Any, Any, R]) -> R:
        loop = self._loop
        if loop is None or self._error is not None:
            work.close()
            raise self._error or ConfigError("the group is not joined yet")
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if running is loop:
            work.close()
            raise ConfigError("`wait` would stop the event loop; use `await` here")
        if self._runner is not None:
            done: R = self._runner(work)
            return done
        future = asyncio.run_coroutine_threadsafe(work, loop)
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise self._error or ClosedError("the group was left") from None
        except BaseException:
            future.cancel()  # A signal interrupted it.
            raise


class _Watcher:
    """The changes that wait for one who watches."""

    def __init__(self) -> None:
        self.waiting: deque[object] = deque()
        self.missed = False
        self.more = asyncio.Event()

    def tell(self, change: object) -> None:
        if len(self.waiting) >= WATCH_MAX:
            self.missed = True
        elif not self.missed:
            self.waiting.append(change)
        self.more.set()

    def miss(self) -> None:
        self.missed = True
        self.more.set()

    def end(self) -> None:
        self.more.set()


async def _quiet(work: Callable[[], Coroutine[Any, Any, object]]) -> None:
    with contextlib.suppress(Exception):
        await work()


def _fail(future: "asyncio.Future[Any]", error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
        future.exception()  # Nobody may wait for it any more.


def _no_reply(index: int | None) -> UncertainError:
    where = "" if index is None else f" at index {index}"
    return UncertainError(
        f"the command is in the log{where} and was done, but its reply is not known here any more"
    )
