"""`Watcher`: what happens to a machine, one by one."""

from collections.abc import Callable, Coroutine
from typing import Any, Generic, Self, TypeVar

from roundelay.structures.port import Port

R = TypeVar("R")


def _nothing() -> None:
    pass


class Watcher(Generic[R]):
    """What happens from the call on that made it, for `async for` and `anext`. Who waits for the
    next one may give up and wait again: nothing is lost."""

    def __init__(
        self, take: Callable[[], Coroutine[Any, Any, R]], close: Callable[[], None] = _nothing
    ) -> None:
        """`take` waits for the next one, and `close` ends it."""
        self.take = take
        self.close = close
        """It is watched no longer; what forgets the watcher does the same."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> R:
        return await self.take()


class BlockingWatcher(Generic[R]):
    """The same for `for` and `next`, in threads outside of the event loop."""

    def __init__(self, port: Port, watcher: Watcher[R]) -> None:
        self._port = port
        self._watcher = watcher

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> R:
        return self._port.run(self._watcher.take())

    def close(self) -> None:
        """It is watched no longer; what forgets the watcher does the same."""
        self._watcher.close()
