"""A process that is told to end does so, whoever catches what that raises."""

import contextlib
import os
import signal

import pytest

from roundelay.pipeline.signals import orderly_end, same_interrupts


def told_to_end_where_somebody_catches_it(number: signal.Signals) -> None:
    with orderly_end(), contextlib.suppress(SystemExit):
        os.kill(os.getpid(), number)
        signal.pause()


@pytest.fixture
def ordinary_handlers():
    """Those of a process in which nobody has replaced any; pytest's own are put back."""
    before = {n: signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT)}
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("ordinary_handlers")
def test_a_process_that_is_terminated_exits():
    with pytest.raises(SystemExit) as ended:
        told_to_end_where_somebody_catches_it(signal.SIGTERM)
    assert ended.value.code == 128 + signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.mark.usefixtures("ordinary_handlers")
def test_a_process_that_is_interrupted_knows_it():
    with pytest.raises(KeyboardInterrupt):
        told_to_end_where_somebody_catches_it(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("ordinary_handlers")
def test_an_exit_of_its_own_is_left_alone():
    with pytest.raises(SystemExit) as ended, orderly_end():
        raise SystemExit(3)
    assert ended.value.code == 3


@pytest.mark.usefixtures("ordinary_handlers")
def test_a_handler_of_somebody_else_is_left_alone():
    heard: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    with orderly_end():
        os.kill(os.getpid(), signal.SIGTERM)
    assert heard == [signal.SIGTERM]


@pytest.mark.usefixtures("ordinary_handlers")
def test_a_handler_that_is_replaced_meanwhile_is_put_back():
    with same_interrupts():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
