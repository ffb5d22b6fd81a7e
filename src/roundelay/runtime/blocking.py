"""Groups for programs without asyncio: the same calls, which block.

    with roundelay.blocking.join("orders", node="a", peers=...) as group:
        group.send(b"hello").wait()
        for event in group:
            ...

The node runs in a thread of its own, so it keeps up with the group whatever the program does; only
a program that reads no events for long slows the group down. Calls may come from any thread.
"""

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator
from types import TracebackType
from typing import Any, Self, TypeVar

from roundelay.core.ids import NodeId, View
from roundelay.runtime import group as group_module
from roundelay.runtime import receipts
from roundelay.runtime.descriptors import exhausted, exhausted_error
from roundelay.runtime.errors import ClosedError, ConfigError
from roundelay.runtime.events import Arrival, Batch, Event, Position

T = TypeVar("T")

TAKE_PACKETS = 64
"""Taken from the node's thread at a time."""
CLOSE_S = 10.0
"""For the thread to end."""


def join(group: str, **settings: Any) -> "Group":
    """As `roundelay.join`, for `with join(...) as group`."""
    return Group(group_module.join(group, **settings))


class Receipt:
    """Given for a message that was accepted."""

    def __init__(self, receipt: receipts.Receipt, owner: "Group") -> None:
        self.number = receipt.number
        self._receipt = receipt
        self._owner = owner

    def wait(self, timeout_s: float | None = None) -> Position:
        """The message's position, once it is delivered here; TimeoutError, or ClosedError."""
        position = self._receipt.position
        return position or self._owner._call(_awaited(self._receipt), timeout_s)


class Group:
    """A group that is used from ordinary threads."""

    def __init__(self, inner: group_module.Group) -> None:
        self._inner = inner
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if self._loop is not None:
            raise ConfigError("this group was joined already; make another with join(...)")
        try:
            self._loop = asyncio.new_event_loop()
        except OSError as e:
            if not exhausted(e):
                raise
            raise exhausted_error() from None
        name = f"roundelay {self._inner.settings.node}"
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()
        try:
            self._call(self._inner.start())
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            timeout_s = 0.0 if kind is not None else group_module.LEAVE_S
            self._call(self._inner.leave(timeout_s))
        finally:
            self._stop()

    def send(
        self, payload: bytes, *, safe: bool = False, to: Iterable[NodeId] | None = None
    ) -> Receipt:
        """Send a message, after waiting for room in the queue if need be."""
        return Receipt(self._call(self._inner.send(payload, safe=safe, to=to)), self)

    def batches(self) -> Iterator[Arrival]:
        """What arrives: messages as they travelled together, and views; until the group is left."""
        while taken := self._call(self._inner.take(TAKE_PACKETS)):
            yield from taken

    def __iter__(self) -> Iterator[Event]:
        """Messages one by one, and views."""
        for arrival in self.batches():
            if isinstance(arrival, Batch):
                yield from arrival
            else:
                yield arrival

    @property
    def view(self) -> View:
        return self._inner.view

    def wait_for(
        self,
        members: Iterable[NodeId] | None = None,
        *,
        primary: bool = False,
        timeout_s: float = 30.0,
    ) -> View:
        """Wait for a view with these members, by default all peers; TimeoutError after a while."""
        return self._call(
            self._inner.wait_for(members, primary=primary, timeout_s=timeout_s), timeout_s + 1
        )

    def leave(self) -> None:
        """Wait until this node's messages are delivered, then stop."""
        self._call(self._inner.leave())

    def status(self) -> dict[str, Any]:
        """What `roundelay status` shows."""
        return self._call(_called(self._inner.status))

    def _call(self, work: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
        """Run `work` in the node's thread and wait for it."""
        if self._loop is None:
            work.close()
            raise ClosedError("the group is not joined; use `with join(...) as group`")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(timeout_s)
        except concurrent.futures.CancelledError:
            raise ClosedError("the group was left") from None
        except TimeoutError:
            future.cancel()
            raise

    def _stop(self) -> None:
        loop, thread = self._loop, self._thread
        self._loop = None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(CLOSE_S)
            if not thread.is_alive():
                loop.close()


async def _awaited(receipt: receipts.Receipt) -> Position:
    return await receipt


async def _called(function: Callable[[], T]) -> T:
    return function()
