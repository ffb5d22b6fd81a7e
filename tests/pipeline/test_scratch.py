"""A process that is told to end does so, whoever catches what that raises."""

import os
import signal

import pytest

from roundelay.pipeline.scratch import orderly_end


def test_who_is_told_to_end_ends_also_where_somebody_catches_it():
    with pytest.raises(SystemExit) as ended, orderly_end():
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            signal.pause()
        except SystemExit:
            pass
    assert ended.value.code == 128 + signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
