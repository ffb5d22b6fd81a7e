"""A claim of a paper next to what was measured, and tables of them.

A figure is the mean over the seeds, and its spread the smallest and the largest of them. How near
is near enough is fixed here, before anything is measured, and not claim by claim.
"""

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from statistics import fmean

from roundelay.experiments.figures import Figure

ABOUT = 0.25
"""A figure is `about` the paper's if it is within this share of it."""
NEARLY = 0.10
"""The same for what the paper calls nearly equal."""


class Outcome(StrEnum):
    """What became of a claim."""

    COMES_OUT = "comes out"
    DOES_NOT = "does not"
    UNDERIVABLE = "cannot be derived"


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim, and what was found."""

    claim: str
    parameters: str
    paper: str
    """The paper's figure, as it puts it."""
    ours: float | None
    """The mean over the seeds, in `unit`."""
    spread: tuple[float, float] | None
    """The smallest and the largest of the seeds."""
    verdict: Outcome
    unit: str = ""
    reason: str = ""
    """Why it does not come out, or cannot; or what one must know if it does."""
    figure: str = ""
    """Name of the figure it is about, if it is about one."""

    def __post_init__(self) -> None:
        if self.verdict is not Outcome.COMES_OUT and not self.reason:
            raise ValueError(f"{self.claim}: why?")


@dataclass(frozen=True, slots=True)
class Findings:
    """What comes of a paper."""

    claims: list[Claim]
    figures: tuple[Figure, ...] = ()


def judge(
    claim: str,
    parameters: str,
    paper: str,
    values: Sequence[float],
    holds: Callable[[float], bool],
    *,
    unit: str = "",
    reason: str = "",
    note: str = "",
) -> Claim:
    """The claim whose figure was measured once with each seed. `reason` says why if it does not
    come out, `note` what one must know even if it does."""
    mean = fmean(values)
    verdict = Outcome.COMES_OUT if holds(mean) else Outcome.DOES_NOT
    reason = note if verdict is Outcome.COMES_OUT else reason or note
    return Claim(claim, parameters, paper, mean, (min(values), max(values)), verdict, unit, reason)


def near(figure: float, share: float = ABOUT) -> Callable[[float], bool]:
    """Whether a value is within this share of the figure."""
    return lambda value: abs(value - figure) <= share * figure


def table(claims: Sequence[Claim]) -> str:
    """The claims in aligned columns, each reason on a line of its own."""
    head = ("claim", "parameters", "paper", "ours", "min..max", "verdict")
    cells = [head, *(_cells(claim) for claim in claims)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    lines = []
    for row, claim in zip(cells, [None, *claims], strict=True):
        padded = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        lines.append("  ".join(padded).rstrip())
        if claim is not None and claim.reason:
            lines.append(f"    {claim.reason}")
    return "\n".join(lines)


def documents(claims: Sequence[Claim]) -> list[dict[str, object]]:
    """The claims for JSON."""
    return [asdict(claim) for claim in claims]


def to_csv(claims: Sequence[Claim]) -> str:
    """The claims as a file for spreadsheets; the spread has two columns."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        (
            "claim",
            "parameters",
            "paper",
            "ours",
            "unit",
            "min",
            "max",
            "verdict",
            "reason",
            "figure",
        )
    )
    for c in claims:
        low, high = c.spread or (None, None)
        writer.writerow(
            (
                c.claim,
                c.parameters,
                c.paper,
                c.ours,
                c.unit,
                low,
                high,
                c.verdict,
                c.reason,
                c.figure,
            )
        )
    return out.getvalue()


def _cells(c: Claim) -> tuple[str, ...]:
    unit = c.unit if not c.unit or c.unit.startswith("/") else f" {c.unit}"
    ours = "-" if c.ours is None else f"{_number(c.ours)}{unit}"
    spread = "-" if c.spread is None else "..".join(_number(value) for value in c.spread)
    return c.claim, c.parameters, c.paper, ours, spread, c.verdict


def _number(value: float) -> str:
    """Three digits that mean something; whole numbers from a hundred on."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
