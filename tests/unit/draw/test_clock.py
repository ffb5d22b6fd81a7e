"""Times for people."""

import pytest

from roundelay.draw.clock import Clock, clock_of, parse_time, span
from roundelay.trace.schema import Row

from . import stories


@pytest.mark.parametrize(
    ("text", "ns"),
    [("250us", 250_000), ("250 \u00b5s", 250_000), ("12.5ms", 12_500_000), ("3s", 3 * 10**9),
     ("7ns", 7), (".5s", 500_000_000)],
)  # fmt: skip
def test_times_are_read(text: str, ns: int) -> None:
    assert parse_time(text) == ns


@pytest.mark.parametrize("text", ["", "12", "ms", "12 parsecs", "1e3s", "nan s"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time; write it like"):
        parse_time(text)


def test_ticks_have_one_unit() -> None:
    clock = Clock(unit="ms")
    assert [clock.tick(t) for t in (0, 15_000, 203_080_000)] == ["0 ms", "0.015 ms", "203.08 ms"]
    assert clock.exact(203_080_001) == "203.080001 ms"


def test_pauses_have_few_digits() -> None:
    spans = [span(n) for n in (7, 1_500, 200_123_456, 3 * 10**9, 10**13)]
    assert spans == ["7 ns", "1.5 \u00b5s", "200 ms", "3 s", "10000 s"]


def test_real_nodes_count_from_the_first_event() -> None:
    clock = clock_of([Row("submit", 0, 0, 0, t_ns=10**15), Row("submit", 0, 0, 1, t_ns=10**15 + 5)])
    assert clock.tick(10**15) == "0 \u00b5s"


def test_a_written_trace_has_no_clock() -> None:
    _, rows = stories.written("p!a q?a")
    assert clock_of(rows).stepped
