"""Messages that the application appends to the log, until they are committed.

As messages of `send` do, they go to the core at once and leave with the next flush. The core keeps
them until they are committed, and sends them again in later views if need be.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from roundelay.core.contract import LogCore
from roundelay.core.contract import QueueFullError as CoreFullError
from roundelay.core.effects import Appended
from roundelay.core.log import NAMED, LogStatus
from roundelay.runtime.errors import (
    ClosedError,
    NotPrimaryError,
    QueueFullError,
    SendError,
    UncertainError,
)
from roundelay.runtime.events import Payload
from roundelay.runtime.instruments import Instruments
from roundelay.runtime.log.receipts import (
    RUN_MESSAGES,
    LogReceipt,
    LogReceipts,
    Run,
    SessionReceipt,
)
from roundelay.runtime.meter import FLUSHES_MAX, Histogram
from roundelay.runtime.sending import copied
from roundelay.runtime.waiters import Waiters

TURN_MESSAGES = 256
"""Messages of one call that are accepted in one turn of the event loop. More: the group waits for
this node meanwhile; fewer: turns cost more than what is done in them."""


class Appending:
    """Accepts what one node's application appends, and knows what became of it."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        core: LogCore[Any],
        instruments: Instruments,
        flush: Callable[[], None],
        wall_ns: Callable[[], int],
    ) -> None:
        """`flush` lets the core send what it accepted, and performs the effects."""
        self.receipts = LogReceipts()
        self.error: ClosedError | None = None
        self.flush_due = False
        """Whether messages were appended that leave in the next turn of the event loop."""
        self.is_open = False
        """Whether the log is open here: what `log.state` says, without asking."""
        self._loop = loop
        self._core = core
        self.put = core.append
        self.short = False
        """Whether the log is open and a flush is due: then an own message needs nothing but `put`,
        and a receipt of `run` if its number, which is noted as `newest`, is below `run_end`."""
        self.run = Run(0)
        self.newest = -1
        self.run_end = 0
        self._input_log = instruments.input_log
        self._flush = flush
        self._wall_ns = wall_ns
        self.stamp_us = 0
        """Of all messages of one flush: the clock need not be read for each."""
        self.commit_times = Histogram()
        """From a flush to the commit of its first message."""
        self._flushes: deque[tuple[int, float]] = deque(maxlen=FLUSHES_MAX)
        """Flushes whose first own message is not committed yet: its number, and when it was."""
        self._waiting = Waiters()
        """Tasks that wait for room, or for the log to open."""
        self.on_forgotten: Callable[[Appended], None] = lambda effect: None
        """Called when the log did not take own messages, since it has forgotten their session."""
        self._sessions: dict[int, dict[asyncio.Future[int], None]] = {}
        """Tasks that wait for a named session to be open."""

    @property
    def log(self) -> LogStatus:
        status = self._core.status.log
        assert status is not None, "a core with a journal has a log"
        return status

    @property
    def awaited(self) -> bool:
        """Whether a task of the application waits for the log."""
        return bool(self._waiting or self._sessions or self.receipts.waits)

    # Own messages

    def accept_now(self, payload: Payload) -> LogReceipt:
        """Accept a message for the log if it is open; else NotPrimaryError."""
        if not self.is_open and self.error is None:
            raise self.not_open()
        return self.accept(payload)

    def accept(self, payload: Payload, deadline: float | None = None) -> LogReceipt:
        """Accept a message for the log; QueueFullError if there is no room."""
        number = self._put(payload, None, None)
        self.short = self.is_open and self.flush_due and self._input_log is None
        return self.receipt(number, deadline)

    def receipt(self, number: int, deadline: float | None = None) -> LogReceipt:
        """The receipt of the next own message, which may be the first one of its run."""
        self._count()
        self.run = run = self.receipts.own(number)
        self.newest, self.run_end = number, run.first + RUN_MESSAGES
        return LogReceipt((run, number, deadline))

    def _count(self) -> None:
        """Note how many messages took the short cut."""
        run = self.run
        run.count = max(run.count, self.newest + 1 - run.first)

    def _put(self, payload: Payload, session: int | None, number: int | None) -> int:
        if self.error is not None:
            raise self.error
        first = not self.flush_due
        if first:
            self._schedule_flush()
        try:
            if type(payload) is not bytes:
                payload = copied(payload)
            given = self.put(payload, self.stamp_us, session, number)
        except CoreFullError as e:
            raise QueueFullError(f"{e}; use `await append`, which waits for room") from None
        except (ValueError, TypeError) as e:
            raise SendError(str(e)) from None
        if self._input_log is not None:
            self._input_log.append(payload, self.stamp_us, session, number)
        if first and session is None:
            self._flushes.append((given, self._loop.time()))
        return given

    def _schedule_flush(self) -> None:
        self.flush_due = True
        self.stamp_us = self._wall_ns() // 1000
        self._loop.call_soon(self.flush)

    def flush(self) -> None:
        """Let the core send what was accepted."""
        if self.flush_due and self.error is None:
            self.flush_due = self.short = False
            self._count()
            self._flush()

    def set_open(self, is_open: bool) -> None:
        self.is_open = is_open
        self.short = self.short and is_open

    def not_open(self) -> NotPrimaryError:
        log = self.log
        why = f": {log.why}" if log.why else ""
        return NotPrimaryError(f"nothing was sent, since no view is open here{why}")

    async def wait_until_open(self, deadline: float) -> None:
        """NotPrimaryError if the log does not open before the deadline."""
        while self.error is None and not self.is_open:
            if not await self._changed(deadline):
                raise self.not_open()
        if self.error is not None:
            raise self.error

    async def wait_for_room(self, deadline: float | None) -> None:
        """Wait until the queue has moved on; QueueFullError after the deadline."""
        if not await self._changed(deadline):
            raise QueueFullError(
                "nothing was sent, since the queue of appended messages had no room for it in time"
            )
        if self.error is not None:
            raise self.error

    async def _changed(self, deadline: float | None) -> bool:
        """Wait until something has changed; False if it was the time."""
        if self.error is not None:
            raise self.error
        try:
            async with asyncio.timeout_at(deadline):
                await self._waiting.wait()
        except TimeoutError:
            return False
        return True

    def wake_waiting(self) -> None:
        """There may be room in the queue, or the log may be open."""
        self._waiting.wake()

    # Messages of named sessions

    async def open_session(self, name: str, deadline: float | None) -> tuple[int, int]:
        """The id of that session and its last number, once it is in the log."""
        if deadline is not None:
            await self.wait_until_open(deadline)
        if self.error is not None:
            raise self.error
        if not self.flush_due:
            self._schedule_flush()
        stamp_us = self.stamp_us
        try:
            session = self._core.open_session(name, stamp_us)
        except CoreFullError as e:
            raise QueueFullError(str(e)) from None
        except (ValueError, TypeError) as e:
            raise SendError(str(e)) from None
        if self._input_log is not None:
            self._input_log.open_session(name, stamp_us)
        future: asyncio.Future[int] = self._loop.create_future()
        self._sessions.setdefault(session, {})[future] = None
        try:
            async with asyncio.timeout_at(deadline):
                return session, await future
        except TimeoutError:
            raise UncertainError(
                f"session {name!r} is not known to be open in time; open it again"
            ) from None
        finally:
            waiting = self._sessions.get(session, {})
            waiting.pop(future, None)
            if not waiting:
                self._sessions.pop(session, None)

    def accept_in(
        self, session: int, payload: Payload, number: int | None, deadline: float | None
    ) -> SessionReceipt:
        """Accept a message of a named session, which is open."""
        given = self._put(payload, session, number)
        return SessionReceipt((self.receipts.named(session, given), given, deadline))

    async def append_all(
        self, session: int, payloads: Sequence[bytes], first: int, deadline: float | None
    ) -> int | None:
        """Append these messages of a named session, which is open, under the numbers from `first`
        on; wait for room while the queue is full, and then until all are committed. The index of
        the last one, if the log remembers it."""
        run = self.receipts.span(session, first)
        try:
            for number, payload in enumerate(payloads, first):
                while True:
                    try:
                        self._put(payload, session, number)
                        break
                    except QueueFullError:
                        await self.wait_for_room(deadline)
                run.count += 1
                if not run.count % TURN_MESSAGES:
                    await asyncio.sleep(0)
            last = first + run.count - 1
            await SessionReceipt((run, last, deadline))
            return run.find(last)[1]
        finally:
            self.receipts.drop_span(session, run)

    # What became of them

    def on_appended(self, effect: Appended) -> None:
        if not effect.count:
            for future in self._sessions.pop(effect.session, ()):
                if not future.done():
                    future.set_result(effect.number)
        else:
            self._count()
            self.receipts.on_appended(effect)
            if not effect.session & NAMED:
                if effect.forgotten:
                    self.on_forgotten(effect)
                end, flushes = effect.number + effect.count, self._flushes
                while flushes and flushes[0][0] < end:
                    self.commit_times.add(self._loop.time() - flushes.popleft()[1])
        if self._waiting:
            self.wake_waiting()

    def last(self) -> Run | None:
        """The newest own messages, if they are not committed yet."""
        self._count()
        return self.receipts.last()

    def close(self, error: ClosedError) -> None:
        """Nothing more is appended; every task that waits is told `error`."""
        self.error = error
        self.flush_due = self.is_open = self.short = False
        self._count()
        self.receipts.fail(error)
        self.wake_waiting()
        for futures in self._sessions.values():
            for future in futures:
                if not future.done():
                    future.set_exception(error)
        self._sessions.clear()
