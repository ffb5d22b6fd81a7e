"""The newest log packets of a view, in memory."""

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.group.log.hosts import arrival

from roundelay.group.log.window import LiveWindow


@given(st.integers(0, 5), st.lists(st.integers(1, 400), max_size=30), st.integers(0, 40))
def test_a_window_is_joined_only_without_a_gap(begin: int, sizes: list[int], ordinal: int) -> None:
    window = LiveWindow(2_000, begin)
    pushed = [arrival(n, size=size) for n, size in enumerate(sizes, begin + 1)]
    for one in pushed:
        window.push(one)
        assert window.bytes <= 2_000
    kept = len(window)
    assert window.last == begin + len(sizes)
    first = window.last - kept + 1
    assert window.follows(ordinal) == (first - 1 <= ordinal <= window.last)
    if window.follows(ordinal):
        window.drop(ordinal)
        left = [window.pop().number for _ in range(len(window))]
        assert left == list(range(ordinal + 1, window.last + 1))
        assert window.bytes == 0


def test_the_newest_ones_stay() -> None:
    window = LiveWindow(10_000)
    for number in range(1, 200):
        window.push(arrival(number, size=100))
    assert 10 < len(window) < 50
    assert window.pop().number == 200 - len(window) - 1
