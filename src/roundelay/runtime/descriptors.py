"""Open files: a process may have only so many, and a node needs some of them."""

import contextlib
import errno
import os
import resource

from roundelay.runtime.errors import StartError

NEEDED = 8
"""File descriptors that a node needs: its sockets, the files of its state directory, a trace, a
record, and one to answer `status`. Too small: a node starts and fails later; too large: it does not
start although it could."""


def check() -> None:
    """StartError if this process may not open as many files as a node needs."""
    with contextlib.ExitStack() as opened:
        try:
            for _ in range(NEEDED):
                opened.callback(os.close, os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
        except OSError as e:
            if not exhausted(e):
                raise
            raise exhausted_error() from None


def exhausted(error: OSError) -> bool:
    """Whether a call failed because no more files can be opened."""
    return error.errno in (errno.EMFILE, errno.ENFILE)


def exhausted_error() -> StartError:
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return StartError(
        f"this process may open too few files: a node needs {NEEDED} besides those that are open, "
        f"and the limit is {limit}; raise it, for example with: ulimit -n 1024"
    )
