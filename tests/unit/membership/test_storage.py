"""Ring numbers that never come twice, and a standing that is whole or not there."""

import pytest

from roundelay.core.contract import Boot
from roundelay.core.ids import ViewId
from roundelay.membership.messages import Primary
from roundelay.membership.primary import Standing
from roundelay.membership.storage import WALL_US_MAX, pack, read_storage, unpack

LAST = Primary(ViewId(8, "a"), ("a", "b", "c"))
ATTEMPTS = (Primary(ViewId(12, "a"), ("a", "b")), Primary(ViewId(16, "c"), ("b", "c")))
WHOLE = pack(400, Standing(True, LAST, ATTEMPTS))


def test_storage_reads_as_it_was_written():
    found = unpack(WHOLE)
    assert found is not None
    seq, standing = found
    assert seq == 400
    assert (standing.able, standing.last, standing.attempts) == (True, LAST, ATTEMPTS)


@pytest.mark.parametrize("cut", range(len(WHOLE)))
def test_torn_storage_is_known_as_such(cut):
    assert unpack(WHOLE[:cut]) is None


def test_a_flipped_bit_is_noticed():
    for bit in range(len(WHOLE) * 8):
        damaged = bytearray(WHOLE)
        damaged[bit // 8] ^= 1 << bit % 8
        assert unpack(bytes(damaged)) is None


def test_a_node_counts_on_from_its_storage_or_in_doubt_from_the_clock():
    assert read_storage(Boot("g", "a")).seq == 0
    assert read_storage(Boot("g", "a", 3, WHOLE, 99)).seq == 400
    assert read_storage(Boot("g", "a", 3, None, 99)).seq == 4 * 99
    assert read_storage(Boot("g", "a", 0, b"garbage", 99)).seq == 4 * 99
    assert read_storage(Boot("g", "a", 3, None, 2**63)).seq == 4 * WALL_US_MAX


def test_only_whole_storage_gives_a_vote():
    assert read_storage(Boot("g", "a", 3, WHOLE)).standing.able
    assert read_storage(Boot("g", "a", 3, WHOLE)).kept
    for stored in (None, b"", WHOLE[:-1]):
        lost = read_storage(Boot("g", "a", 3, stored))
        assert not lost.kept
        assert (lost.standing.able, lost.standing.last, lost.standing.attempts) == (False, None, ())
