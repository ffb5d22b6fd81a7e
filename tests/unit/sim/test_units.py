"""Quantities as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundelay.sim.units import (
    duration_ns,
    per_second,
    rate_bps,
    share,
    show_ns,
    size_bytes,
)


def test_units_are_read():
    assert duration_ns("100us") == 100_000
    assert duration_ns("1.5ms") == 1_500_000
    assert rate_bps("10Mbit") == 10_000_000
    assert size_bytes("500") == size_bytes("500B") == 500
    assert size_bytes("2KB") == 2048
    assert share("5%") == share("0.05")
    assert per_second("1000/s") == 1000.0


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (duration_ns, "5"),
        (duration_ns, "5 ms"),
        (duration_ns, "-5ms"),
        (rate_bps, "10Mb"),
        (size_bytes, "1 KB"),
        (share, "120%"),
        (share, "much"),
        (per_second, "1000"),
        (per_second, "0/s"),
    ],
)
def test_what_has_no_unit_is_refused_with_an_example(read, text):
    with pytest.raises(ValueError, match="like"):
        read(text)


@given(st.integers(0, 10**13))
def test_a_time_reads_as_it_shows(ns):
    shown = show_ns(ns)
    assert (0 if shown == "0s" else duration_ns(shown)) == ns
