"""The checksum is zlib's, whoever computes it: nodes with and without the extra must agree."""

import importlib
import sys
import zlib

import pytest

from roundelay.core import checksum


@pytest.fixture
def without_isal(monkeypatch):
    """The module as it is where the extra is not installed."""
    monkeypatch.setitem(sys.modules, "isal.isal_zlib", None)
    yield importlib.reload(checksum)
    monkeypatch.undo()
    importlib.reload(checksum)


def test_it_is_the_fast_one_where_that_is_installed():
    pytest.importorskip("isal")
    assert checksum.SOURCE == "ISA-L"


def test_without_the_extra_it_is_zlib(without_isal):
    assert without_isal.SOURCE == "zlib"
    assert without_isal.crc32 is zlib.crc32


@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 63, 64, 255, 1400, 60_000])
@pytest.mark.parametrize("start", [0, 0xFFFF_FFFF, 12345])
def test_both_compute_the_same_sum(size, start):
    data = bytes(i * 7 % 256 for i in range(size))
    assert checksum.crc32(data, start) == zlib.crc32(data, start)
    assert checksum.crc32(memoryview(data)[1:]) == zlib.crc32(data[1:])
