"""Directories that go away when they are done with, at the latest with the process."""

import atexit
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

_made: list[Path] = []


def scratch(purpose: str) -> Path:
    """A new directory under the system's place for such."""
    directory = Path(tempfile.mkdtemp(prefix=f"roundelay-{purpose}-"))
    if not _made:
        atexit.register(clear)
    _made.append(directory)
    return directory


def clear() -> None:
    """Remove all that there is."""
    while _made:
        shutil.rmtree(_made.pop(), ignore_errors=True)


@contextmanager
def orderly_end() -> Iterator[None]:
    """Within this, a process that is told to end (SIGTERM) does so as if it came to its end."""
    mine = threading.current_thread() is threading.main_thread()
    if not mine or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    told: list[int] = []

    def end(number: int, _frame: FrameType | None) -> None:
        told.append(number)
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if told:  # Somebody between here and there caught it, as finalizers do.
        raise SystemExit(128 + told[0])
