"""Worker processes of a command. Only the command itself handles Ctrl-C."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context, resource_tracker
from multiprocessing.pool import Pool


@contextmanager
def workers(jobs: int) -> Iterator[Pool]:
    """A pool of `jobs` new processes, which ends with the block, also if the block raises.

    A terminal sends Ctrl-C to all processes of a command, and a worker that is interrupted while it
    starts prints a traceback. So the signal is blocked while the pool is made, and the workers
    inherit that. Other threads of this process may still get the signal: it is noted, and raised as
    KeyboardInterrupt once the pool exists and can be ended. Call this from the main thread only.
    """
    noted: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, frame: noted.append(number))
    # If the tracker started later, it would unblock the signal for the workers behind it.
    resource_tracker.ensure_running()
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
