"""Groups for programs without asyncio: the same calls, which block.

    with roundelay.blocking.join("orders", node="a", peers=...) as group:
        group.send(b"hello").wait()
        for event in group:
            ...

The node runs in a thread of its own, so it keeps up with the group whatever the program does; only
a program that reads no events for long slows the group down. Calls may come from any thread. A call
that waits when the group is left raises ClosedError.

Theory of operation
===================

Every call is a coroutine in the node's thread. The thread ends when the group is left: from then on
no call is let in, and calls under way are cancelled, which raises ClosedError in their callers.
Events are handed over many at a time, into a queue that belongs to the group and not to a reader: a
reader may stop, or be interrupted by a signal, and nothing is lost.
"""

import asyncio
import concurrent.futures
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from functools import partial, wraps
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from roundelay.core.ids import NodeId, View
from roundelay.runtime import group as group_module
from roundelay.runtime import receipts
from roundelay.runtime.descriptors import exhausted, exhausted_error
from roundelay.runtime.errors import ClosedError, ConfigError, FailedError
from roundelay.runtime.events import Arrival, Event, Payload, Position
from roundelay.runtime.group import LEAVE_S, WAIT_S
from roundelay.runtime.inbox import Inbox
from roundelay.runtime.log import api as log_api
from roundelay.runtime.log import receipts as log_receipts
from roundelay.runtime.log.entries import EntryBatch, LogArrival, LogItem
from roundelay.runtime.log.reading import From

P = ParamSpec("P")
T = TypeVar("T")

TAKE_PACKETS = 64
"""Packets handed over by the node's thread at a time. Too small: every event waits for two changes
of threads; too large: much counts as unread although the program has it."""
CLOSE_S = 10.0
"""How long leaving waits for the node's thread to end, in seconds. The thread is a daemon: if it
takes longer, the program goes on without it."""


def _blocking(join: Callable[P, group_module.Group]) -> Callable[P, "Group"]:
    @wraps(join)
    def blocking_join(*args: P.args, **settings: P.kwargs) -> "Group":
        return Group(join(*args, **settings))

    blocking_join.__doc__ = "As `roundelay.join`, for `with join(...) as group`."
    return blocking_join


join = _blocking(group_module.join)
"""As `roundelay.join`, with the same settings, to be used as `with join(...) as group`."""


class Receipt:
    """Given for a message that was accepted."""

    def __init__(self, receipt: receipts.Receipt, owner: "Group") -> None:
        self.number = receipt.number
        """This node's messages counted from 0, per start."""
        self._receipt = receipt
        self._owner = owner

    @property
    def position(self) -> Position | None:
        """None until it is delivered here."""
        return self._receipt.position

    @property
    def view(self) -> View | None:
        """The view it was delivered in; None until it is."""
        return self._receipt.view

    def wait(self, timeout_s: float | None = None) -> Position:
        """The message's position, once it is delivered here; TimeoutError, or ClosedError."""
        position = self._receipt.position
        return position or self._owner._call(_awaited(self._receipt), timeout_s)

    def result(self, timeout_s: float | None = None) -> Position:
        """The same as `wait`, by the name that futures have for it."""
        return self.wait(timeout_s)

    def __repr__(self) -> str:
        return repr(self._receipt)


class Group:
    """A group that is used from ordinary threads."""

    def __init__(self, inner: group_module.Group) -> None:
        self._inner = inner
        self._loop: asyncio.AbstractEventLoop | None = None
        """None before the group is joined and after it is left."""
        self._gate = threading.Lock()
        """Held while a call begins, and while the thread is told to end: so no call begins in a
        thread that has ended."""
        self._thread: threading.Thread | None = None
        self._over: asyncio.Event | None = None
        self._queue = Inbox()
        """Events that were handed over and not read yet."""
        self._reading = threading.Lock()
        """Held while a reader pops from that queue."""
        self._log: Log | None = None

    def __enter__(self) -> Self:
        if self._thread is not None:
            raise ConfigError("this group was joined already; make another with join(...)")
        try:
            loop = asyncio.new_event_loop()
        except OSError as e:
            if not exhausted(e):
                raise
            raise exhausted_error() from None
        runs = threading.Event()
        self._thread = threading.Thread(
            target=partial(self._run_loop, loop, runs),
            name=f"roundelay {self._inner.settings.node}",
            daemon=True,
        )
        self._thread.start()
        runs.wait()
        try:
            self._call(self._inner.start())
        except BaseException:
            self._stop()
            self._thread = None  # It may be tried again.
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self._call(self._inner.leave(0.0 if kind is not None else LEAVE_S))
        finally:
            self._stop()

    def _run_loop(self, loop: asyncio.AbstractEventLoop, runs: threading.Event) -> None:
        """What the thread runs; at its end it cancels the calls that are left."""
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(self._live(runs))

    async def _live(self, runs: threading.Event) -> None:
        """Wait for the end. Calls come as tasks next to this one."""
        self._over = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        runs.set()
        await self._over.wait()

    def _stop(self) -> None:
        with self._gate:
            loop, over, self._loop = self._loop, self._over, None
            if loop is not None and over is not None:
                loop.call_soon_threadsafe(over.set)
        if self._thread is not None:
            self._thread.join(CLOSE_S)

    # Sending

    def send(
        self, payload: Payload, *, safe: bool = False, to: Iterable[NodeId] | None = None
    ) -> Receipt:
        """Send a message, after waiting for room in the queue if need be."""
        who = threading.get_ident()
        return Receipt(self._call(self._inner._send(who, payload, safe, to)), self)

    def send_nowait(
        self, payload: Payload, *, safe: bool = False, to: Iterable[NodeId] | None = None
    ) -> int:
        """As `send`, without waiting for room: QueueFullError if there is none. Returns the
        message's number."""
        who = threading.get_ident()
        return self._run(partial(self._inner._send_nowait, who, payload, safe, to))

    # Receiving

    def __iter__(self) -> Iterator[Event]:
        """Messages one by one, and views, until the group is left. Reading can stop and begin
        again at any time; one thread reads at a time."""
        return _Events(self)

    def batches(self) -> Iterator[Arrival]:
        """What arrives: messages as they travelled together, and views; until the group is left.
        A batch that was given is read."""
        return _Batches(self)

    def ignore(self) -> None:
        """Throw away what arrives from now on: for nodes that only send."""
        self._run(self._inner.ignore)
        self._queue.ignore()

    def _more(self) -> bool:
        """Wait until there is something in the queue; False once the group is left."""
        if self._thread is None:
            raise ConfigError("the group is not joined yet; use `with join(...) as group`")
        try:
            return self._call(self._fetch(threading.get_ident()))
        except FailedError:
            raise
        except ClosedError:
            return False

    async def _fetch(self, who: int) -> bool:
        # Put into the queue here: the calling thread may be interrupted before this returns.
        for arrival in (taken := await self._inner._take(who, TAKE_PACKETS)):
            self._queue.put(arrival)
        return bool(taken)

    # The log

    @property
    def log(self) -> "Log":
        """What was appended, in one order, for ever; ConfigError without a `journal`."""
        if self._log is None:
            self._run(lambda: self._inner.log)  # It says why there is none.
            self._log = Log(self)
        return self._log

    # Views

    @property
    def view(self) -> View:
        """The view this node is in; the events of it may still wait to be read."""
        return self._inner.view

    def wait_for(
        self,
        members: Iterable[NodeId] | None = None,
        *,
        primary: bool = False,
        timeout_s: float = WAIT_S,
    ) -> View:
        """Wait for a view with these members, by default all peers; TimeoutError after
        `timeout_s`, by default 30 s."""
        return self._call(self._inner.wait_for(members, primary=primary, timeout_s=timeout_s))

    def wait_for_view(self, fits: Callable[[View], bool], *, timeout_s: float = WAIT_S) -> View:
        """Wait for a view of which `fits` is true; it is called in the node's thread."""
        return self._call(self._inner.wait_for_view(fits, timeout_s=timeout_s))

    def leave(self) -> None:
        """Wait until this node's messages are delivered, then stop."""
        self._call(self._inner.leave())

    def wait_closed(self, timeout_s: float | None = None) -> ClosedError:
        """Wait until the group is left, or ends by a failure; returns why."""
        return self._call(self._inner.wait_closed(), timeout_s)

    def status(self) -> dict[str, Any]:
        """What `roundelay status` shows."""
        return self._run(self._inner.status)

    def reload_key(self) -> dict[str, Any]:
        """Read the key file again, and use what it holds from now on: see `roundelay.Group`."""
        return self._run(self._inner.reload_key)

    # Calls

    def _run(self, function: Callable[[], T]) -> T:
        """Call `function` in the node's thread."""
        return self._call(_called(function))

    def _call(self, work: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
        """Run `work` in the node's thread and wait for it."""
        with self._gate:
            if self._loop is None:
                work.close()
                raise ClosedError(
                    "the group is not joined: it was left, or not entered with "
                    "`with join(...) as group`"
                )
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(timeout_s)
        except concurrent.futures.CancelledError:
            raise ClosedError(f"group {self._inner.settings.group!r} was left") from None
        except BaseException:
            future.cancel()  # It took too long, or a signal interrupted it.
            raise


class LogReceipt:
    """Given for a message that was appended."""

    def __init__(self, receipt: log_receipts.LogReceipt, owner: Group) -> None:
        self.number = receipt.number
        """This node's appended messages counted from 0, per start."""
        self._receipt = receipt
        self._owner = owner

    @property
    def committed(self) -> bool:
        """Whether the message is in the log for ever, and known to be here."""
        return self._receipt.committed

    @property
    def index(self) -> int | None:
        """Its index in the log; None while it is not committed."""
        return self._receipt.index

    def wait(self, timeout_s: float | None = None) -> int:
        """Its index, once it is committed; TimeoutError, UncertainError or ClosedError."""
        index = self._receipt.index
        return self._owner._call(_awaited(self._receipt), timeout_s) if index is None else index

    def result(self, timeout_s: float | None = None) -> int:
        """The same as `wait`, by the name that futures have for it."""
        return self.wait(timeout_s)

    def __repr__(self) -> str:
        return repr(self._receipt)


class SessionReceipt:
    """Given for a message that was appended in a named session."""

    def __init__(self, receipt: log_receipts.SessionReceipt, owner: Group) -> None:
        self.number = receipt.number
        """Its number in the session."""
        self._receipt = receipt
        self._owner = owner

    @property
    def committed(self) -> bool:
        """Whether the message is in the log for ever, and known to be here."""
        return self._receipt.committed

    @property
    def index(self) -> int | None:
        """Its index in the log, if it is committed and that is known."""
        return self._receipt.index

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Its index, once it is committed; None if it was so long before that nobody remembers
        where. TimeoutError, UncertainError, SessionForgottenError or ClosedError."""
        return self._owner._call(_awaited(self._receipt), timeout_s)

    def __repr__(self) -> str:
        return repr(self._receipt)


class Log:
    """The log of a group that is used from ordinary threads; see `roundelay.Log`."""

    def __init__(self, owner: Group) -> None:
        self._owner = owner
        self._inner = owner._inner.log

    def append(self, payload: Payload, timeout_s: float | None = None) -> LogReceipt:
        """Append a message, after waiting for room in the queue if need be."""
        return LogReceipt(self._owner._call(self._inner.append(payload, timeout_s)), self._owner)

    def append_nowait(self, payload: Payload) -> LogReceipt:
        """As `append`, without waiting: NotPrimaryError or QueueFullError instead."""
        inner = self._owner._run(lambda: self._inner.append_nowait(payload))
        return LogReceipt(inner, self._owner)

    def session(self, name: str, timeout_s: float | None = None) -> "Session":
        """Open the session of this name, or open it again, here or at another node."""
        return Session(self._owner._call(self._inner.session(name, timeout_s)), self._owner)

    def read(self, from_index: From = None) -> Iterator[LogItem]:
        """Entries one by one, from this index on, until the group is left."""
        for arrival in self.batches(from_index):
            if isinstance(arrival, EntryBatch):
                yield from arrival
            else:
                yield arrival

    def batches(self, from_index: From = None) -> Iterator[LogArrival]:
        """The same, as the entries travelled: much faster."""
        return _LogBatches(self._owner, from_index)

    def sync(self, timeout_s: float | None = None) -> int:
        """A length of the log that is at least as great as any committed before this call."""
        return self._owner._call(self._inner.sync(timeout_s))

    def caught_up(self, timeout_s: float | None = None) -> int:
        """Wait until this node has all that was committed before this call."""
        return self._owner._call(self._inner.caught_up(timeout_s))

    def snapshot(self) -> int:
        """Store the state of the machine now; up to which index it goes. LogError if it cannot be,
        as the disk is full."""
        return self._owner._call(self._inner.snapshot())

    @property
    def id(self) -> str:
        """Names this log among all others; empty until the first view has opened."""
        return self._owner._run(lambda: self._inner.id)

    @property
    def generation(self) -> int:
        """How often an operator gave up a lost majority."""
        return self._owner._run(lambda: self._inner.generation)

    @property
    def first(self) -> int:
        """The first entry that this node holds."""
        return self._inner.first

    @property
    def committed(self) -> int:
        """How many entries are known here to be committed."""
        return self._inner.committed

    @property
    def primary(self) -> bool:
        """Whether a view is open here."""
        return self._owner._run(lambda: self._inner.primary)

    @property
    def voters(self) -> tuple[NodeId, ...]:
        """Whose disks count in the present view; none if it is not primary."""
        return self._owner._run(lambda: self._inner.voters)

    @property
    def state(self) -> str:
        """`open`, `opening` or, while the view is not primary, `closed`."""
        return self._owner._run(lambda: self._inner.state)

    @property
    def condition(self) -> str:
        """Of this node: `able`, `not able`, `filling` or `behind`."""
        return self._owner._run(lambda: self._inner.condition)

    @property
    def why(self) -> str:
        """What the log waits for, in words; empty if for nothing."""
        return self._owner._run(lambda: self._inner.why)


class Session:
    """A named session: what is appended in it is numbered, and in the log once."""

    def __init__(self, inner: log_api.Session, owner: Group) -> None:
        self.name, self.id, self.last = inner.name, inner.id, inner.last
        self._inner = inner
        self._owner = owner

    def append(
        self, payload: Payload, number: int | None = None, timeout_s: float | None = None
    ) -> SessionReceipt:
        """Append a message under this number, by default the next one."""
        inner = self._owner._call(self._inner.append(payload, number, timeout_s))
        return SessionReceipt(inner, self._owner)

    def append_all(
        self, payloads: Sequence[bytes], first: int, timeout_s: float | None = None
    ) -> int | None:
        """Append many messages under the numbers from `first` on, and return once all of them are
        committed: the index of the last one, or None if nobody remembers where it is."""
        return self._owner._call(self._inner.append_all(payloads, first, timeout_s))


class _LogBatches:
    """Runs through the entries of a log, as they travelled."""

    def __init__(self, owner: Group, from_index: From) -> None:
        self._owner = owner
        self._queue: deque[LogArrival] = deque()
        self._reader = owner._run(lambda: owner._inner.log._reader(from_index))

    def __iter__(self) -> "_LogBatches":
        return self

    def __next__(self) -> LogArrival:
        while not self._queue:
            try:
                self._queue.extend(self._owner._call(self._reader.take(TAKE_PACKETS)))
            except StopAsyncIteration:
                raise StopIteration from None
            except FailedError:
                raise
            except ClosedError:
                raise StopIteration from None
        return self._queue.popleft()


class _Events:
    """Runs through the messages and views of a group, one by one."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self._queue = group._queue

    def __iter__(self) -> "_Events":
        return self

    def __next__(self) -> Event:
        for event in self._queue.rest:
            return event
        while True:
            with self._group._reading:
                for event in self._queue.rest:
                    return event
                if self._queue.refill():
                    continue
            if not self._group._more():
                raise StopIteration


class _Batches:
    """Runs through what arrives at a group, as it travelled."""

    def __init__(self, group: Group) -> None:
        self._group = group

    def __iter__(self) -> "_Batches":
        return self

    def __next__(self) -> Arrival:
        while True:
            with self._group._reading:
                arrival = self._group._queue.pop()
            if arrival is not None:
                return arrival
            if not self._group._more():
                raise StopIteration


async def _awaited(receipt: Awaitable[T]) -> T:
    return await receipt


async def _called(function: Callable[[], T]) -> T:
    return function()
