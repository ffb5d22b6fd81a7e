"""Members that append what they missed agree pairwise and have no common order: O5p cannot see
that, and O5 does."""

from .planted import planted
from .test_bugs import play, read, violated


def test_o5_sees_the_circle_that_o5p_misses():
    with planted("st_appends_on_arrival"):
        printed = play(read("st/st_g9_three_losses"), watched=False).printed
    for log in ("1: c a", "2: a b", "3: b c"):
        assert f"\n{log}\n" in printed
    assert "O5" in violated(printed)
    assert "O5p" not in violated(printed)
