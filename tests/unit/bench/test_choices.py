"""Choices that bytes decide, and inputs made of inputs."""

from random import Random

import pytest

from roundelay.bench.fuzz.choices import LOAD_BYTES, Choices, another


def drawn(data: bytes) -> list[object]:
    choices = Choices(data)
    return [
        choices.random(),
        choices.randrange(10),
        choices.randrange(5, 8),
        choices.randrange(200_000),
        choices.randint(1, 3),
        choices.choice("abcd"),
        choices.sample(range(50), 3),
        choices.randbytes(4),
        choices.randbytes(100),
    ]


def test_equal_bytes_make_equal_choices():
    data = Random(1).randbytes(40)
    assert drawn(data) == drawn(data)
    assert drawn(data[:5]) == drawn(data[:5]), "also after the last byte"


def test_a_byte_changes_the_choice_it_decides_and_no_other():
    before = drawn(bytes(40))
    after = drawn(bytes([0, 7, *bytes(38)]))
    assert before[1] == 0
    assert after[1] == 7
    assert before[:1] + before[2:] == after[:1] + after[2:]


def test_choices_take_no_more_bytes_than_they_need():
    choices = Choices(bytes([255, 1, 2, 3, 4, 9, 9, 5]))
    assert choices.randrange(1) == 0
    assert choices.choice(["only"]) == "only"
    assert choices.random() == 255 / 256
    assert choices.randrange(1000) == 0x0102 % 1000
    assert choices.randbytes(2) == bytes([3, 4])
    assert len(choices.randbytes(1500)) == 1500, "two bytes, whatever the length"
    assert not choices.spent
    assert choices.randrange(256) == 5
    assert choices.spent


@pytest.mark.parametrize("data", [b"", b"\xff" * 3, b"\x00" * 300, Random(2).randbytes(300)])
def test_choices_keep_to_their_ranges_also_when_the_bytes_are_spent(data):
    choices = Choices(data)
    for _ in range(200):
        assert 0 <= choices.random() < 1
        assert 3 <= choices.randrange(3, 7) < 7
        assert 1 <= choices.randint(1, 2) <= 2
        assert choices.choice((1, 2)) in (1, 2)
    assert choices.spent
    assert len({choices.randrange(256) for _ in range(50)}) > 10, "it is not one number for ever"


def test_nothing_can_be_chosen_from_nothing():
    choices = Choices(b"12")
    with pytest.raises((IndexError, ZeroDivisionError)):
        choices.choice(())


def test_inputs_are_made_in_four_ways():
    data = bytes(500)
    made = [another(data, 600, seed, lambda data, size_max: b"changed") for seed in range(200)]
    assert made == [another(data, 600, seed, lambda *_: b"changed") for seed in range(200)]
    assert all(len(other) <= 600 for other in made)
    rest = data[LOAD_BYTES:]
    loads = [other for other in made if other != data and other[LOAD_BYTES:] == rest]
    begins = [other for other in made if other[:20] == data[:20] and other != data]
    for way in (made.count(b"changed"), len(loads), len(begins)):
        assert 20 < way < 80
    assert len(made) - made.count(b"changed") - len(loads) - len(begins) > 20, "new ones"
    assert another(b"", 1, 5, lambda *_: b"")[1:] == b"", "however little there is"
