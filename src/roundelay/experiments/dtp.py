"""[DTP97], section 5: which runs there are, and the figures that come of them.

`dtp_runs` says what is modelled and how each measure is defined, `dtp_claims` what the paper says.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from roundelay.experiments.catalogue import Result
from roundelay.experiments.cells import Report, run_cells
from roundelay.experiments.claims import Findings
from roundelay.experiments.dtp_claims import (
    EVEN,
    GAPS_MS,
    NAMES,
    RIVALS,
    STATIONS,
    UNEVEN,
    claims_of,
)
from roundelay.experiments.dtp_results import GAP_MS, Results
from roundelay.experiments.dtp_runs import PROTOCOLS, Cell, run
from roundelay.experiments.figures import Figure, Series, point


@dataclass(frozen=True, slots=True)
class Lengths:
    """How much is measured."""

    seeds: int
    sizes: tuple[int, ...]
    """Of groups, from the smallest to the largest."""
    messages: int
    """Of each run."""
    totem_messages: int
    """Its token never rests, so that each costs as much as hundreds of the others'; and its
    figures hardly vary."""
    load_messages: int
    """Where the work of single members is counted, or everybody is always ready."""


QUICK = Lengths(3, (5, 10, 20, 40), messages=1000, totem_messages=150, load_messages=2000)
FULL = Lengths(
    3,
    (5, 10, 15, 20, 25, 30, 35, 40),
    messages=10_000,
    totem_messages=1000,
    load_messages=10_000,
)


def measure(*, full: bool, seeds: int, report: Report, jobs: int = 1) -> Findings:
    """Run everything, judge every claim, and put the figures together."""
    todo = cells(replace(FULL if full else QUICK, seeds=seeds))
    return findings_of(run_cells(run, todo, jobs=jobs, report=report))


def cells(lengths: Lengths) -> list[tuple[Cell, int]]:
    """Every run with every seed."""
    plain = [
        Cell(protocol, nodes, gap_ms, lengths.messages)
        for protocol in PROTOCOLS
        for gap_ms in GAPS_MS
        for nodes in lengths.sizes
    ]
    counted = [replace(cell, protocol=p) for cell in (EVEN, UNEVEN) for p in ("dtp", *RIVALS)]
    of_one_seed = [
        *(
            replace(c, messages=lengths.totem_messages) if c.protocol == "totem" else c
            for c in plain
        ),
        Cell("pinwheel", lengths.sizes[-1], GAPS_MS[0], lengths.messages, batch=1),
        *(replace(cell, messages=lengths.load_messages) for cell in (*counted, STATIONS)),
    ]
    return [(cell, seed) for seed in range(lengths.seeds) for cell in of_one_seed]


def findings_of(results: Sequence[Result]) -> Findings:
    """Claims and figures. ValueError if a run that one of them needs is not there."""
    r = Results(results)
    return Findings(claims_of(r), figures_of(r))


def figures_of(r: Results) -> tuple[Figure, ...]:
    """Figures 2 to 5."""

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
