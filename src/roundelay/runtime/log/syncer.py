"""The thread that syncs a journal while its writer goes on: for the policy `interval`.

A sync of a busy disk takes tens of milliseconds, and with this policy nobody waits for it. So the
writer only says that it is time.
"""

import queue
import threading
import time
from collections.abc import Callable

BEHIND_BYTES = 64 * 1024 * 1024
"""So much may be written while one sync is under way; then the writer waits for it. Too small: a
disk that stalls for a moment holds up what could be written; too large: more is lost when all
machines lose their power at once."""


class Syncer:
    """One sync at a time, in a thread of its own."""

    def __init__(
        self,
        sync: Callable[[], None],
        done: Callable[[float], None],
        name: str,
    ) -> None:
        """`done` is called in the thread after each sync, with its seconds."""
        self.failed: Exception | None = None
        """What went wrong; known before `wait` returns."""
        self._sync = sync
        self._done = done
        self._asked: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._idle = threading.Event()
        self._idle.set()
        self._thread = threading.Thread(target=self._run, name=f"syncs {name}", daemon=True)
        self._thread.start()

    @property
    def busy(self) -> bool:
        """Whether a sync is under way."""
        return not self._idle.is_set()

    def begin(self) -> None:
        """Sync what was written up to now; not while it is busy."""
        assert not self.busy, "one sync at a time"
        self._idle.clear()
        self._asked.put(True)

    def wait(self) -> None:
        """Wait until no sync is under way."""
        self._idle.wait()

    def stop(self) -> None:
        """End the thread, once it is idle."""
        self._asked.put(False)
        self._thread.join()

    def _run(self) -> None:
        while self._asked.get():
            began = time.monotonic()
            try:
                self._sync()
            except Exception as e:
                self.failed = e
            self._idle.set()
            self._done(time.monotonic() - began)
