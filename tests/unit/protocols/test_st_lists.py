"""Lists of ST: they go in parts, the largest of them too."""

import pytest

from roundelay.protocols.st.lists import Collected, List, Listed, own_max, parts
from roundelay.protocols.st.messages import PARTS_MAX, ListPart, Name, StCodec


def longest(size: int) -> List:
    """The list of a member in a group in which everybody keeps what it may."""
    everybody = tuple(range(size))
    listed = tuple(
        Listed(Name(source, number), everybody, (number - 1,) * size, (1,) * size, True, False)
        for source in everybody
        for number in range(1, min(own_max(size), 64) + 1)
    )
    return List(0, 1, 9, (8,) * size, (8,) * size, (1,) * size, listed)


@pytest.mark.parametrize("size", [3, 20, 127])
def test_a_list_is_put_together_from_its_parts_in_any_order(size):
    made = longest(size)
    codec = StCodec()
    frames = [codec.encode(part) for part in parts(made)]
    assert len(frames) <= PARTS_MAX // 2 + 1
    assert max(len(body) for _, body in frames) < 1300
    collected = Collected(size, 0)
    arrived = [codec.decode(tag, body, 0) for tag, body in reversed(frames)]
    taken = [collected.take(part) for part in arrived if isinstance(part, ListPart)]
    assert taken == [False] * (len(frames) - 1) + [True]
    assert collected.lists == {1: made}


def test_larger_groups_keep_fewer_packets_each():
    kept = [own_max(size) for size in (2, 10, 50, 127)]
    assert kept == sorted(kept, reverse=True)
    assert kept[-1] >= 8
