"""The sending side of a node: messages that the application gives, until they are delivered here.

A message is accepted by the core at once, and leaves in the next turn of the event loop, together
with all that was accepted until then: one *flush*. When the core's queue is full, senders wait for
room.

Of an application whose messages come one at a time, a message need not wait for the turn: nothing
will join it. It is flushed at once if the last flush had one message only. If another one follows
in the same turn after all, that guess was wrong, and the next flushes wait again.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any, Protocol

from roundelay.core.contract import Core
from roundelay.core.contract import QueueFullError as CoreFullError
from roundelay.core.effects import Receipt
from roundelay.core.ids import NodeId, Service, View
from roundelay.runtime.errors import ClosedError, QueueFullError, SendError
from roundelay.runtime.events import Payload, Position
from roundelay.runtime.instruments import Instruments
from roundelay.runtime.receipts import Receipts
from roundelay.runtime.waiters import Waiters


class Put(Protocol):
    """Gives a message to the core and returns its number."""

    def __call__(
        self,
        payload: bytes,
        service: Service = Service.AGREED,
        destinations: tuple[NodeId, ...] | None = None,
    ) -> int: ...


class Sending:
    """Accepts the messages of one node's application, and knows which were delivered here."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        core: Core[Any],
        instruments: Instruments,
        flush_core: Callable[[], None],
        *,
        with_log: bool = False,
    ) -> None:
        """`flush_core` lets the core send what it accepted, and performs the effects. `with_log`
        says that messages for the log get numbers too, and have no receipts here."""
        self.receipts = Receipts()
        plain = instruments.input_log is None and not with_log
        self.put: Put = core.accept if plain else self._put_noted
        """The core's `accept`. Callers flush afterwards, or know that a flush is due."""
        self.flush_due = False
        """Whether messages were accepted that leave in the next turn of the event loop."""
        self.error: ClosedError | None = None
        """Why nothing can be sent any more; None while the node runs."""
        self._loop = loop
        self._core = core
        self._meter = instruments.meter
        self._input_log = instruments.input_log
        self._flush_core = flush_core
        self._flush_from = 0
        """The number of the first message that was accepted since the last flush."""
        self._single = False
        """Whether the last flush of a whole turn had a single message."""
        self._hurried = False
        """Whether a message of this turn was flushed at once."""
        self._sent_until = 0 if with_log else None
        """Own messages that are not for the log have numbers below this one; None if they are all
        that the core has accepted."""
        self._delivered_until = 0
        """Own messages below this number were delivered here."""
        self._waiting = Waiters()
        """Tasks that wait for room in the core's queue."""

    def accept(
        self,
        payload: Payload,
        service: Service = Service.AGREED,
        destinations: tuple[NodeId, ...] | None = None,
    ) -> int:
        """Accept a message and return its number; it leaves in the next turn of the event loop."""
        try:
            if type(payload) is not bytes:
                payload = copied(payload)
            number = self.put(payload, service, destinations)
        except CoreFullError as e:
            raise QueueFullError(f"{e}; use `await send`, which waits for room") from None
        except (ValueError, TypeError) as e:
            raise SendError(str(e)) from None
        if not self.flush_due:
            self._schedule_flush(number)
        return number

    def _schedule_flush(self, number: int) -> None:
        """The message of this number is the first one since the last flush."""
        if self.error is not None:
            raise self.error
        if self._hurried:
            self._single = False
        self.flush_due = True
        self._flush_from = number
        self._loop.call_soon(self._end_turn)

    def hurry(self) -> None:
        """Let a message leave at once, if it is alone in this turn so far, and likely stays so."""
        if self._single and not self._hurried and self.flush_due:
            self._hurried = True
            self.flush()

    def _end_turn(self) -> None:
        """In the next turn of the event loop after one in which a message was accepted."""
        if self.flush_due:
            alone = self._core.status.accepted - self._flush_from == 1
            self._single = alone and not self._hurried
            self.flush()
        self._hurried = False

    def _put_noted(
        self,
        payload: bytes,
        service: Service = Service.AGREED,
        destinations: tuple[NodeId, ...] | None = None,
    ) -> int:
        number = self._core.accept(payload, service, destinations)
        if self._sent_until is not None:
            self._sent_until = number + 1
        if self._input_log is not None:
            self._input_log.accept(payload, service, destinations)
        return number

    def flush(self) -> None:
        """Let the core send what was accepted."""
        if self.flush_due and self.error is None:
            self.flush_due = False
            self._meter.flushed(self._flush_from, time.monotonic())
            self._flush_core()

    @property
    def awaited(self) -> bool:
        """Whether a task of the application waits for room or for a receipt."""
        return bool(self._waiting or self.receipts.awaited)

    async def wait_for_room(self) -> None:
        """Wait until the queue has moved on, or raise what ended the node."""
        if self.error is None:
            await self._waiting.wait()
        if self.error is not None:
            raise self.error

    async def wait_until_delivered(self) -> None:
        """Wait until everything accepted so far is delivered here."""
        end = self._sent_until
        if end is None:
            end = self._core.status.accepted
        if end > self._delivered_until:
            await self.receipts.give(end - 1)

    def wake_waiting(self) -> None:
        """There may be room in the queue."""
        self._waiting.wake()

    def resolve(self, effect: Receipt, view: View | None) -> None:
        """Own messages were delivered in `view`: their receipts, where somebody has one, get their
        positions."""
        assert effect.view is not None, "a receipt for what no view ordered"
        assert view is not None, "a receipt before the first view"
        self.receipts.resolve(effect.span, Position(effect.view, effect.index), view)

    def on_delivered(self, end: int) -> None:
        """Own messages below the number `end` were delivered here. Messages that are for other
        nodes only may come later than messages that were sent after them."""
        self._delivered_until = end = max(end, self._delivered_until)
        self._meter.own_delivered(end, time.monotonic())
        if self._waiting:
            self.wake_waiting()

    def close(self, error: ClosedError) -> None:
        """No more messages leave; every task that waits is told `error`."""
        self.error = error
        self.flush_due = False
        self.receipts.fail(error)
        self.wake_waiting()


def copied(payload: object) -> bytes:
    """The bytes of a message as they are now: the sender may change a bytearray afterwards."""
    try:
        return memoryview(payload).tobytes()  # type: ignore[arg-type]  # Or it is refused.
    except TypeError:
        kind = type(payload).__name__
        raise TypeError(f"a message is bytes, not {kind}; encode it first") from None
