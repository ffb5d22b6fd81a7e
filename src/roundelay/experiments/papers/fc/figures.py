"""Figure 3 of [WangWu], delay over the size of a request, and what the text says of recovery."""

from collections.abc import Sequence

from roundelay.experiments.figures import Figure, Series, point
from roundelay.experiments.papers.fc.results import (
    HOPS_MS,
    NAMES,
    Results,
    a_delay,
    a_recovery,
    hop,
)
from roundelay.experiments.results import Result


def figures_of(results: Sequence[Result]) -> tuple[Figure, ...]:
    """All of them. ValueError if a run that one of them needs is not there."""
    r = Results(results)
    delay = tuple(
        Series(
            name,
            hop(hop_ms),
            tuple(point(s, r.of("delay_ms", a_delay(rules, hop_ms, s))) for s in r.sizes(hop_ms)),
        )
        for rules, name in NAMES.items()
        for hop_ms in HOPS_MS
    )

    def recovery(measure: str) -> tuple[Series, ...]:
        return tuple(
            Series(
                name,
                hop(hop_ms),
                tuple(point(n, r.of(measure, a_recovery(rules, hop_ms, n))) for n in (1, 2)),
            )
            for rules, name in NAMES.items()
            for hop_ms in HOPS_MS
        )

    failed = "members that crash together"
    return (
        Figure("delay", "Delay", "size of a request (B)", "delay (ms)", delay, log=True),
        Figure("crash", "Recovery from the crash", failed, "ms", recovery("crash_ms")),
        Figure(
            "expiry",
            "Recovery from the expiry of the timer",
            failed,
            "ms",
            recovery("expiry_ms"),
            log=True,
        ),
    )
