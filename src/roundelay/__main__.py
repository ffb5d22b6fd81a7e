"""`python -m roundelay` is the `roundelay` command, and this is where both begin."""

import os
import signal
import sys
from types import FrameType


def run() -> int:
    """The command. Ctrl-C ends it in one line, also while its modules are still being loaded."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:  # not where a shell started us with SIGINT ignored
        signal.signal(signal.SIGINT, _end)

    from roundelay.cli import main

    return main(loaded=lambda: signal.signal(signal.SIGINT, handler))


def _end(number: int, frame: FrameType | None) -> None:
    """End at once: a KeyboardInterrupt in the middle of an import would become a RuntimeError in
    the body of a class, and would be lost in a callback of the import system."""
    os.write(sys.stderr.fileno(), b"interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    sys.exit(run())
