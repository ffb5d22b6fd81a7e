"""Rates and percentiles of the last seconds, from what a node told again and again."""

from collections.abc import Sequence
from typing import Any

from roundelay.runtime.meter import BOUNDS_MS

Told = Sequence[tuple[float, dict[str, Any]]]
"""Status documents of one node, with the times in seconds when they came, oldest first."""

RATE_S = 1.5
"""Rates are of about so many seconds. Less: they jump; more: they lag behind."""


def rates(told: Told) -> dict[str, float]:
    """What happened per second lately; empty if too little was told."""
    if len(told) < 2:
        return {}
    now, last = told[-1]
    then, first = next(
        (one for one in reversed(told) if now - one[0] >= RATE_S),
        told[0],
    )
    span_s = max(now - then, 1e-6)

    def rate(*way: str) -> float:
        return round(max(0, _at(last, way) - _at(first, way)) / span_s, 1)

    received = rate("counters", "packets_received")
    delivered = rate("counters", "packets_delivered") - rate("counters", "packets_own")
    return {
        "messages_per_s": rate("counters", "messages_delivered"),
        "bytes_per_s": rate("counters", "bytes_delivered"),
        "frames_per_s": rate("counters", "frames_sent"),
        "visits_per_s": rate("rotation", "count"),
        "repeats_per_s": round(max(0.0, received - delivered), 1),
        "drops_per_s": round(max(0, _drops(last) - _drops(first)) / span_s, 1),
    }


def durations(told: Told, name: str) -> dict[str, float | None]:
    """Mean and percentiles of a histogram, of what was counted in the last seconds."""
    nothing: dict[str, float | None] = {"mean_ms": None, "p50_ms": None, "p99_ms": None}
    if not told:
        return nothing
    first, last = told[0][1][name], told[-1][1][name]
    if len(told) == 1:
        first = {"counts": [0] * len(last["counts"]), "count": 0, "mean_ms": None}
    counts = [b - a for a, b in zip(first["counts"], last["counts"], strict=True)]
    total = sum(counts)
    if total <= 0:
        return nothing
    sums = [(one["mean_ms"] or 0.0) * one["count"] for one in (first, last)]
    mean = max(0.0, sums[1] - sums[0]) / total
    return {
        "mean_ms": round(mean, 2),
        "p50_ms": _quantile(counts, 0.5),
        "p99_ms": _quantile(counts, 0.99),
    }


def dropped(told: Told) -> dict[str, dict[str, float]]:
    """Drops by reason: all since the start, and how many lately."""
    if not told:
        return {}
    first, last = told[0][1]["drops"], told[-1][1]["drops"]
    return {
        reason: {"count": count, "lately": max(0, count - first.get(reason, 0))}
        for reason, count in last.items()
        if count
    }


def lately(told: Told, counter: str) -> int:
    """By how much a counter has grown in the last seconds."""
    if not told:
        return 0
    first, last = told[0][1], told[-1][1]
    return max(0, int(last["counters"][counter]) - int(first["counters"][counter]))


def _drops(status: dict[str, Any]) -> int:
    """Probes are drops by name only: nodes search for those that are away."""
    return sum(count for reason, count in status["drops"].items() if reason != "probe")


def _at(status: dict[str, Any], way: Sequence[str]) -> float:
    found: Any = status
    for name in way:
        found = found[name]
    return float(found)


def _quantile(counts: Sequence[int], share: float) -> float:
    """The upper bound of the bucket that this share of all ends in."""
    rank, seen = share * sum(counts), 0
    for bound, count in zip(BOUNDS_MS, counts, strict=False):
        seen += count
        if seen and seen >= rank:
            return float(bound)
    return float(BOUNDS_MS[-1])
