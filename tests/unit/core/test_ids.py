"""Names of lives and of messages, as people read them."""

from roundelay.core.ids import Span, life_mark


def test_a_life_is_shown_in_a_few_characters():
    assert life_mark(0) == ""
    assert life_mark(3) == "'3"
    real = 1_731_000_000_000 << 21 | 12_345
    assert life_mark(real) == "'009ix"
    assert str(Span("c", real, 0, 3)) == "c'009ix:0..2"
