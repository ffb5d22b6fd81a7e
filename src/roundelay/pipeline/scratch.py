"""Directories that go away when they are done with, at the latest with the process."""

import atexit
import shutil
import tempfile
from pathlib import Path

_made: list[Path] = []


def scratch(purpose: str) -> Path:
    """A new directory in the system's place for temporary files."""
    directory = Path(tempfile.mkdtemp(prefix=f"roundelay-{purpose}-"))
    if not _made:
        atexit.register(clear)
    _made.append(directory)
    return directory


def clear() -> None:
    """Remove every directory that was made."""
    while _made:
        shutil.rmtree(_made.pop(), ignore_errors=True)
