"""A process that is told to end does so, whoever catches what that raises."""

import contextlib
import os
import signal

import pytest

from roundelay.pipeline.scratch import orderly_end


def told_to_end_where_somebody_catches_it() -> None:
    with orderly_end():
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
        with contextlib.suppress(SystemExit):
            os.kill(os.getpid(), signal.SIGTERM)
            signal.pause()


def test_who_is_told_to_end_ends_in_the_end():
    with pytest.raises(SystemExit) as ended:
        told_to_end_where_somebody_catches_it()
    assert ended.value.code == 128 + signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
