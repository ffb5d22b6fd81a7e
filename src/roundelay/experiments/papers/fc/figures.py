"""Figure 3 of [WangWu], delay over the size of a request, and what the text says of recovery."""

from collections.abc import Sequence

from roundelay.experiments.figures import Figure, Series, point
from roundelay.experiments.papers.fc.results import (
    HOPS_MS,
    NAMES,
    RULES,
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

    confirmation = tuple(
        Series(
            NAMES[rules],
            f"{word}, hop 1.5 ms",
            (point(5, r.of(measure, a_delay(rules, 1.5))),)
            if rules != "safe"
            else tuple(point(n, r.of(measure, a_delay(rules, 1.5, nodes=n))) for n in (3, 5, 7)),
        )
        for rules in RULES
        for word, measure in (
            ("mean", "confirmation_hops"),
            ("at most", "confirmation_most_hops"),
        )
    )
    failed = "members that crash together"
    return (
        Figure("delay", "Delay", "size of a request (B)", "delay (ms)", delay, log=True),
        Figure(
            "confirmation", "Decisions until one is confirmed", "members", "decisions", confirmation
        ),
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
