"""Linearizable reads: which length of the log a read that begins now must have seen.

One probe of the core answers all reads that waited when it began. Reads that come while it is under
way share the next one: a probe that began before a read did would tell too little.
"""

import asyncio
from collections.abc import Callable

from roundelay.core.effects import Synced
from roundelay.runtime.errors import ClosedError


class Syncs:
    """The reads of one node that wait for an answer."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        ask: Callable[[int], None],
        is_open: Callable[[], bool],
    ) -> None:
        """`ask` gives the core a read of this number; while the log is not open, reads wait."""
        self._loop = loop
        self._ask = ask
        self._is_open = is_open
        self._request = 0
        """The number of the last probe."""
        self._asked: list[asyncio.Future[int]] = []
        """Those whom the probe under way answers."""
        self._next: dict[asyncio.Future[int], None] = {}
        """Those who came later, in their order."""
        self._due = False
        self._error: ClosedError | None = None

    @property
    def waits(self) -> bool:
        return bool(self._asked or self._next)

    async def sync(self) -> int:
        """The length that the log had at some moment of this call, as far as anybody could know."""
        if self._error is not None:
            raise self._error
        future: asyncio.Future[int] = self._loop.create_future()
        self._next[future] = None
        self.on_changed()
        try:
            return await future
        finally:
            self._next.pop(future, None)  # It gave up, perhaps, and no view may ever open.

    def _schedule(self) -> None:
        """Ask in the next turn of the loop: those who come in this one share the probe."""
        self._due = True
        self._loop.call_soon(self._begin)

    def _begin(self) -> None:
        self._due = False
        waiting = [future for future in self._next if not future.done()]
        if waiting and not self._asked and self._error is None and self._is_open():
            self._asked, self._next = waiting, {}
            self._request += 1
            self._ask(self._request)

    def on_synced(self, effect: Synced) -> None:
        if effect.request != self._request:
            return
        asked, self._asked = self._asked, []
        if effect.length is None:
            # The log was closed meanwhile: ask again.
            self._next = dict.fromkeys(f for f in asked if not f.done()) | self._next
        else:
            for future in asked:
                if not future.done():
                    future.set_result(effect.length)
        self.on_changed()

    def on_changed(self) -> None:
        """The log may be open now."""
        if self._next and not self._asked and not self._due:
            self._schedule()

    def close(self, error: ClosedError) -> None:
        self._error = error
        for future in (*self._asked, *self._next):
            if not future.done():
                future.set_exception(error)
        self._asked, self._next = [], {}
