"""A process that is told to end while Spark works for it ends Spark too.

SIGTERM alone would end Python without running a `finally`. SIGINT would raise KeyboardInterrupt,
which py4j prints with a traceback wherever it waits for Java. Within `orderly_end` both raise
SystemExit, which passes through py4j in silence; at its end SIGINT is a KeyboardInterrupt again.
"""

import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

Handler = Callable[[int, FrameType | None], Any] | signal.Handlers

_ORDINARY: Mapping[signal.Signals, Handler] = {
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGINT: signal.default_int_handler,
}
"""The signals that end a process, with the handlers that nobody has replaced."""


@contextmanager
def orderly_end() -> Iterator[None]:
    """Within this, a process that is told to end leaves by an exception.

    A signal that somebody else handles is left to them, and so are all signals if this is not the
    main thread, which alone may handle any.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []

    def end(number: int, _frame: FrameType | None) -> None:
        received.append(number)
        raise SystemExit(128 + number)

    ours = [n for n, ordinary in _ORDINARY.items() if signal.getsignal(n) is ordinary]
    for number in ours:
        signal.signal(number, end)
    try:
        yield
    except SystemExit:
        if not received:
            raise
    finally:
        for number in ours:
            signal.signal(number, _ORDINARY[number])
    # Even if somebody in between caught the exception, as finalizers do.
    if received:
        if received[0] == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + received[0])


@contextmanager
def same_interrupts() -> Iterator[None]:
    """Put back the handler of SIGINT that was there before: Spark replaces it by one of its own,
    which talks to Java while another talk with Java may be under way."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
