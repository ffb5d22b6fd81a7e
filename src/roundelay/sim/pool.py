"""Processes that work for a command: Ctrl-C is the command's to answer, not theirs."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context, resource_tracker
from multiprocessing.pool import Pool


@contextmanager
def workers(jobs: int) -> Iterator[Pool]:
    """A pool of so many fresh processes, which ends with the block, however that ends.

    A terminal sends Ctrl-C to all processes of a command. The signal is blocked while the pool is
    made, and processes inherit that: one that was interrupted while it starts would print a
    traceback. This process, whose other threads may get the signal all the same, only notes it, and
    is interrupted once the pool is there to be ended. Called from the main thread only.
    """
    noted: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, frame: noted.append(number))
    resource_tracker.ensure_running()  # Where it starts later, it ends the blocking below.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        pool = get_context("spawn").Pool(jobs)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        signal.signal(signal.SIGINT, handler)
    with pool:
        if noted:
            raise KeyboardInterrupt
        yield pool
