"""Too few open files are told as such."""

import errno
import os

import pytest

from roundelay.runtime import descriptors
from roundelay.runtime.errors import StartError


def test_what_was_tried_is_closed_again():
    descriptors.check()
    lowest = os.open(os.devnull, os.O_RDONLY)
    os.close(lowest)
    descriptors.check()
    again = os.open(os.devnull, os.O_RDONLY)
    os.close(again)
    assert lowest == again


@pytest.mark.parametrize("told", [errno.EMFILE, errno.ENFILE])
def test_a_sentence_says_what_to_do(monkeypatch, told):
    real, left = os.open, [descriptors.NEEDED - 1]

    def scarce(*args: object) -> int:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(told, "Too many open files")
        return real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", scarce)
    with pytest.raises(StartError, match=r"needs 8 besides .* the limit is \d+; raise it"):
        descriptors.check()


def test_other_failures_are_not_called_so(monkeypatch):
    def broken(*_: object) -> int:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "open", broken)
    with pytest.raises(OSError, match="Input/output"):
        descriptors.check()
