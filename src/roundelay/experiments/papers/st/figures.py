"""Figures 8, 9 and 10 of [TachikawaTakizawa], by formula and by simulation."""

from collections.abc import Sequence

from roundelay.experiments.figures import Figure, Series, point
from roundelay.experiments.papers.st.results import (
    FIGURE_9_LOSS,
    KINDS,
    LOSSES,
    Results,
    drawn,
    formulas,
    of_engine,
)
from roundelay.experiments.results import Result

ENGINE_LOSSES = (0.005, 0.01)
"""f, in runs of the engine."""

SCHEMES = {"selective": "missed_share", "go-back-n": "goback_share"}
"""How retransmission is called, and its measure."""


def figures_of(results: Sequence[Result]) -> tuple[Figure, ...]:
    """All of them. ValueError if a run that one of them needs is not there."""
    r = Results(results)
    y = "messages sent again / messages"
    return (
        Figure("figure8", "Messages sent again, over f", "f", y, tuple(_figure_8(r)), log=True),
        Figure("figure9", "Messages sent again, over d/n", "d/n", y, tuple(_figure_9(r)), log=True),
        Figure("figure10", "Time to recover", "f", "C/D", tuple(_figure_10(r)), log=True),
    )


def formula(scheme: str, loss_share: float, to_share: float) -> float:
    """What (1) or (2) gives, divided by L."""
    given = formulas(loss_share, to_share)
    return given.selective if scheme == "selective" else given.go_back


def _figure_8(r: Results) -> list[Series]:
    found = []
    for to, kind in KINDS.items():
        for scheme, measure in SCHEMES.items():
            name = f"{kind}, {scheme}"
            found += [
                Series(name, "formula", tuple(point(f, [formula(scheme, f, to)]) for f in LOSSES)),
                Series(
                    name,
                    "simulated",
                    tuple(point(f, r.of(measure, drawn(f, to))) for f in LOSSES),
                ),
                Series(
                    name,
                    "simulated, each destination loses f",
                    tuple(point(f, r.of(measure, drawn(f, to, thinned=False))) for f in LOSSES),
                ),
            ]
        again = tuple(point(f, r.of("again_share", of_engine(f, to))) for f in ENGINE_LOSSES)
        found.append(Series(f"{kind}, selective", "the engine", again))
    return found


def _figure_9(r: Results) -> list[Series]:
    f = FIGURE_9_LOSS
    found = []
    for scheme, measure in SCHEMES.items():
        found += [
            Series(
                scheme, "formula", tuple(point(to, [formula(scheme, f, to)]) for to in r.shares)
            ),
            Series(
                scheme,
                "simulated",
                tuple(point(to, r.of(measure, drawn(f, to))) for to in r.shares),
            ),
            Series(
                scheme,
                "simulated, each destination loses f",
                tuple(point(to, r.of(measure, drawn(f, to, thinned=False))) for to in r.shares),
            ),
        ]
    linked = tuple(point(to, r.of("linked_share", drawn(f, to))) for to in r.shares)
    return [*found, Series("go-back-n", "simulated, only what is linked", linked)]


def _figure_10(r: Results) -> list[Series]:
    found = []
    for to, kind in KINDS.items():
        by_formula = tuple(point(f, [formulas(f, to).cost]) for f in LOSSES)
        simulated = tuple(point(f, r.of("recovery_share", drawn(f, to))) for f in LOSSES)
        found += [Series(kind, "formula", by_formula), Series(kind, "simulated", simulated)]
    return found
