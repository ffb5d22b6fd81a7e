"""Figures 2 to 5 of [DTP97]: four measures over the size of the group."""

from collections.abc import Sequence

from roundelay.experiments.figures import Figure, Series, point
from roundelay.experiments.papers.dtp.claims import GAPS_MS, NAMES
from roundelay.experiments.papers.dtp.results import GAP_MS, Results
from roundelay.experiments.papers.dtp.runs import PROTOCOLS
from roundelay.experiments.results import Result


def figures_of(results: Sequence[Result]) -> tuple[Figure, ...]:
    """All four. ValueError if a run that one of them needs is not there."""
    r = Results(results)

    def curves(measure: str, *gaps_ms: float) -> tuple[Series, ...]:
        return tuple(
            Series(
                NAMES[protocol],
                f"1/lambda = {gap_ms:g} ms",
                tuple(point(n, r.of(measure, protocol, n, gap_ms)) for n in r.sizes),
            )
            for protocol in PROTOCOLS
            for gap_ms in gaps_ms
        )

    stability = curves("stability_ms", *GAPS_MS)
    held, delivery, extra = (curves(m, GAP_MS) for m in ("buffer", "delivery_ms", "overhead"))
    size = "group size"
    return (
        Figure("figure2", "Average stability time", size, "stability time (ms)", stability),
        Figure("figure3", "Average buffer size", size, "messages and ACKs at a member", held),
        Figure("figure4", "Average delivery time", size, "delivery time (ms)", delivery),
        Figure("figure5", "Average overhead", size, "overhead messages a message", extra, log=True),
    )
