"""The reading side of a node: who reads events, and how the group goes on meanwhile.

An iterator holds no events. It can be dropped or cancelled at any moment, and the next reader goes
on at the next event. There is one reader at a time: a second one is refused while the first one
waits, and an earlier one is refused when it comes back while another task reads.

The reader looks at the socket now and then, so that a token never waits for an application that
is busy with what it got.
"""

import asyncio
import time
import weakref
from typing import Any

from roundelay.runtime.errors import QueueFullError
from roundelay.runtime.events import Arrival, Event
from roundelay.runtime.inbox import Inbox, charge, read_twice
from roundelay.runtime.node import Node
from roundelay.runtime.port import Port
from roundelay.runtime.settings import Settings

POLL_BYTES = 16_384
"""Bytes given to the application between two looks at the socket. Too small: the looks cost time;
too large: the group waits for the application."""
LOOK_S = 0.000_05
"""Least time between two looks at the socket, in seconds. Too small: a fast reader spends its time
on looks; too large: as `POLL_BYTES`."""
TURN_S = 0.010
"""How long a reader goes on before other tasks run, in seconds, while there is more to read. Too
small: every change of tasks costs time; too large: other tasks of the application wait."""
UNREAD_S = 5.0
"""How long a sender waits for a reader that reads nothing, in seconds; then QueueFullError says so.
Too small: senders fail while the reader is busy; too large: a program without one hangs for
long."""


class Reading:
    """The reading side of one group."""

    def __init__(self, node: Node, port: Port, settings: Settings) -> None:
        self.inbox: Inbox = node.deliveries.inbox
        self.limit_bytes = settings.backlog_bytes
        """Bytes that may be unread before senders have to wait for the reader."""
        self.who: object = None
        """The reader, or the last one: a task, or a thread of the blocking interface."""
        self.owner: weakref.ref[_Iterator] | None = None
        """The iterator that read last."""
        self._given = 0
        """Bytes given to the application since a look at the socket was last due."""
        self._reader_limit_bytes = settings.backlog_bytes + settings.queue_bytes
        """The same limit for the reader when it sends: it cannot wait for itself."""
        self._node = node
        self._port = port
        self._turn_ends = 0.0
        """When the reader has to let other tasks run, on the monotonic clock."""
        self._next_look = 0.0
        """Before that time it does not look at the socket again."""

    async def claim(self, iterator: "_Iterator") -> None:
        """Let this iterator read from now on, or raise ConfigError."""
        task = asyncio.current_task()
        other = None if self.owner is None else self.owner()
        if self.inbox.awaited:
            raise await read_twice()
        if iterator.task is not None and other is not None and other.reads_besides(task):
            raise await read_twice()
        iterator.task = self.who = task
        self.owner = iterator.me
        self._turn_ends = 0.0

    def look_due(self, given: int) -> bool:
        """Whether to look at the socket now; `given` more bytes were given to the application."""
        self._given += given
        if self._given < POLL_BYTES:
            return False
        self._given = 0
        return time.monotonic() >= self._next_look

    async def serve_group(self) -> None:
        """Read the socket, send what was accepted, and let other tasks run if it is time."""
        node = self._node
        if node.error is not None:
            return
        now = time.monotonic()
        self._next_look = now + LOOK_S
        self._port.poll(node)
        node.sending.flush()
        if now > self._turn_ends:
            self._turn_ends = now + TURN_S
            await asyncio.sleep(0)

    async def lend(self, who: object, most: int, most_bytes: int) -> list[Arrival]:
        """The arrivals that wait, at least one; none once the group is left. They go on counting
        as unread until the next call."""
        self.who = who
        while True:
            if lent := self.inbox.lend(most, most_bytes):
                return lent
            if not await self.inbox.ready():
                return []

    def must_wait(self, who: object) -> bool:
        """Whether `who` has to wait for the reader before it sends more; QueueFullError if it is
        the reader itself, and has far more unread than it may."""
        unread = self.inbox.bytes
        if unread <= self.limit_bytes:
            return False
        if who is None or who != self.who:
            return True
        if unread > self._reader_limit_bytes:
            raise self.full("read on before you send more")
        return False

    async def make_room(self, who: object) -> None:
        """Wait while `who` must wait; QueueFullError if nobody reads."""
        inbox, node = self.inbox, self._node
        popped, since = inbox.popped, time.monotonic()
        while self.must_wait(who) and node.error is None:
            now = time.monotonic()
            if inbox.popped != popped:
                popped, since = inbox.popped, now
            elif now - since > UNREAD_S:
                raise self.full("nobody reads them; read events, or call `ignore()`")
            await asyncio.sleep(node.stall_s)

    def full(self, advice: str) -> QueueFullError:
        """The error for a sender that cannot wait until less is unread."""
        size = self.inbox.bytes / 2**20
        return QueueFullError(f"{size:.1f} MB of messages wait to be read: {advice}")


class _Iterator:
    """A reader of one group; any number may be made, one after the other."""

    __slots__ = ("__weakref__", "_inbox", "_reading", "me", "task")

    def __init__(self, reading: Reading) -> None:
        self.me = weakref.ref(self)
        self.task: asyncio.Task[Any] | None = None
        """The task in which it began to read."""
        self._reading = reading
        self._inbox = reading.inbox

    def reads_besides(self, task: asyncio.Task[Any] | None) -> bool:
        """Whether this iterator seems to be in use by another task than that one."""
        return self.task is not None and self.task is not task and not self.task.done()


class Events(_Iterator):
    """Messages one by one, and views: what `async for event in group` runs through."""

    __slots__ = ()

    def __aiter__(self) -> "Events":
        return self

    async def __anext__(self) -> Event:
        for event in self._inbox.rest:
            return event
        return await self._next()

    async def _next(self) -> Event:
        reading, inbox = self._reading, self._inbox
        if reading.owner is not self.me:
            await reading.claim(self)
        if reading.look_due(inbox.opened_bytes):
            await reading.serve_group()
        while True:  # There is no await between finding an event and returning it.
            for event in inbox.rest:
                return event
            if not inbox.refill():
                if not await inbox.ready():
                    raise StopAsyncIteration
                reading.who = asyncio.current_task()


class Batches(_Iterator):
    """Messages as they travelled together, and views."""

    __slots__ = ("_given",)

    def __init__(self, reading: Reading) -> None:
        super().__init__(reading)
        self._given = 0
        """Bytes of the last arrival."""

    def __aiter__(self) -> "Batches":
        return self

    async def __anext__(self) -> Arrival:
        reading, inbox = self._reading, self._inbox
        if reading.owner is not self.me:
            await reading.claim(self)
        if reading.look_due(self._given):
            await reading.serve_group()
        while True:
            arrival = inbox.pop()
            if arrival is not None:
                self._given = charge(arrival)
                return arrival
            if not await inbox.ready():
                raise StopAsyncIteration
            reading.who = asyncio.current_task()
