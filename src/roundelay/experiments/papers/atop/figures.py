"""Latency, dummies and variance over the period of the slow senders.

The paper tells the first in words, and draws deliveries of one run over time where the third sums
them up.
"""

from collections.abc import Sequence

from roundelay.experiments.figures import Figure, Series, point
from roundelay.experiments.papers.atop.results import (
    ALL_ACK,
    CAUSAL,
    COVER,
    COVER_BEFORE,
    DEMAND,
    NAMES,
    NULLS,
    RESTLESS,
    SWITCH,
    WRITTEN,
    WRITTEN_BEFORE,
    Results,
)
from roundelay.experiments.papers.atop.runs import Cell
from roundelay.experiments.results import Result

SILENT = (CAUSAL, ALL_ACK, WRITTEN, RESTLESS, WRITTEN_BEFORE)
"""Runs without dummies ..."""
SPOKEN = (COVER, COVER_BEFORE, DEMAND, SWITCH, NULLS)
"""... and with them."""


def figures_of(results: Sequence[Result]) -> tuple[Figure, ...]:
    """All three. ValueError if a run that one of them needs is not there."""
    r = Results(results)

    def curves(measure: str, *kinds: Cell) -> tuple[Series, ...]:
        return tuple(
            Series(
                NAMES[kind],
                "no dummies" if kind in SILENT else "with dummies",
                tuple(point(period_s, r.of(measure, kind, period_s)) for period_s in r.periods_s),
            )
            for kind in kinds
        )

    latency = curves("latency_ms", *SILENT, *SPOKEN)
    sent = curves("dummies_per_message", *SPOKEN)
    uneven = curves("delivery_variance", CAUSAL, ALL_ACK, WRITTEN, COVER)
    x = "period of the slow senders (s)"
    tick = "variance of messages in 100 ms"
    return (
        Figure("latency", "Mean latency", x, "latency (ms)", latency, log=True),
        Figure("dummies", "Frames without a message", x, "dummies a message", sent),
        Figure("variance", "Deliveries of a sender at 10/s", x, tick, uneven, log=True),
    )
