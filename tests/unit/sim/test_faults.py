"""Chance is drawn from the seed, recorded, and can be given back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundelay.sim.faults import PLAIN, Choices, Fate, Rates, copy_name

ALL = Rates(loss=0.2, duplicate=0.2, reorder=0.2, spike=0.1, corrupt=0.1)


def draw(choices: Choices, rates: Rates, count: int = 2000, jitter_ns: int = 0) -> list[Fate]:
    return [choices.fate(rates, jitter_ns, "a", 0, packet, "b") for packet in range(count)]


def test_rates_are_kept():
    fates = draw(Choices(3), ALL, 20_000)
    share = {
        "lost": sum(f.lost for f in fates),
        "copied": sum(f.copy_ns is not None for f in fates),
        "late": sum(f.delay_ns > 0 for f in fates),
        "flipped": sum(f.flip is not None for f in fates),
        "plain": sum(f == PLAIN for f in fates),
    }
    for name, expected in zip(share, (0.2, 0.2, 0.3, 0.1, 0.2), strict=True):
        assert abs(share[name] / 20_000 - expected) < 0.02, name


def test_the_same_seed_draws_the_same_and_another_does_not():
    assert draw(Choices(3), ALL) == draw(Choices(3), ALL)
    assert draw(Choices(3), ALL) != draw(Choices(4), ALL)


def test_recorded_choices_repeat_without_any_chance():
    first = Choices(3)
    fates = draw(first, ALL, jitter_ns=50)
    again = Choices(99, first.made)
    assert draw(again, Rates(), jitter_ns=50) == fates
    assert again.made == first.made


def test_a_choice_taken_out_goes_the_plain_way_and_moves_no_other():
    first = Choices(3)
    fates = draw(first, ALL)
    name, lost = next((k, i) for i, k in enumerate(first.made) if first.made[k] == "lost")
    packet = int(name.split("/")[1].split(">")[0])
    given = {k: v for k, v in first.made.items() if k != name}
    fewer = draw(Choices(3, given), ALL)
    assert fewer[packet] == PLAIN
    assert fewer[:packet] + fewer[packet + 1 :] == fates[:packet] + fates[packet + 1 :]
    assert lost >= 0


def test_a_forced_fate_comes_true_once():
    choices = Choices(0)
    choices.force("a/1>b", Fate(lost=True))
    assert [fate.lost for fate in draw(choices, Rates(), 3)] == [False, True, False]
    assert choices.made == {"a/1>b": "lost"}


def test_nothing_is_kept_when_nothing_is_recorded():
    choices = Choices(3, record=False)
    draw(choices, ALL)
    assert choices.made == {}


@given(
    st.builds(
        Fate,
        lost=st.booleans(),
        delay_ns=st.integers(0, 10**10),
        copy_ns=st.none() | st.integers(0, 10**10),
        flip=st.none() | st.integers(0, 10**6),
    )
)
def test_a_fate_reads_as_it_shows(fate):
    assert Fate.parse(str(fate)) == fate


def test_what_is_no_fate_is_refused():
    with pytest.raises(ValueError, match="write lost, delay=5ms"):
        Fate.parse("exploded")
    with pytest.raises(ValueError, match=r"add up to 1\.2"):
        Rates(loss=0.6, corrupt=0.6)


def test_copies_have_names_by_incarnation():
    assert copy_name("a", 0, 3, "b") == "a/3>b"
    assert copy_name("a", 2, 3, "b") == "a'2/3>b"


def test_a_fate_by_type_is_that_of_the_next_such_copy():
    choices = Choices(0)
    choices.force("a/DATA>b", Fate(lost=True), skip=2)
    choices.force("a/DATA>b", Fate(delay_ns=5))
    tags = ["TOKEN", "DATA", "DATA", "DATA", "DATA"]
    fates = [choices.fate(Rates(), 0, "a", 0, n, "b", tag) for n, tag in enumerate(tags)]
    assert [fate.lost for fate in fates] == [False, False, False, True, False]
    assert [fate.delay_ns for fate in fates] == [0, 5, 0, 0, 0]
    assert choices.made == {"a/1>b": "delay=5ns", "a/3>b": "lost"}


def test_healing_forgets_forced_fates_but_delays_of_single_frames():
    choices = Choices(0)
    choices.force("a/0>b", Fate(lost=True))
    choices.force("a/1>b", Fate(delay_ns=5))
    choices.force("a/DATA>b", Fate(lost=True))
    choices.heal()
    fates = [choices.fate(Rates(), 0, "a", 0, n, "b", "DATA") for n in range(3)]
    assert fates == [PLAIN, Fate(delay_ns=5), PLAIN]
