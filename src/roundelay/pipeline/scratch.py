"""Directories that go away with the process."""

import atexit
import shutil
import tempfile
from pathlib import Path


def scratch(purpose: str) -> Path:
    """A new directory under the system's place for such."""
    directory = Path(tempfile.mkdtemp(prefix=f"roundelay-{purpose}-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory
