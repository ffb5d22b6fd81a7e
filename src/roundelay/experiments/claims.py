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


@dataclass(frozen=True, slots=True)
class Accepted:
    """The values with which a claim comes out; a missing end has no limit."""

    low: float | None = None
    high: float | None = None
    open: bool = False
    """Whether an end that stands alone, or the lower one of two, is not accepted itself."""
    why: str = ""
    """How the limits follow from what the paper says."""

    def __call__(self, value: float) -> bool:
        above = self.low is None or (value > self.low if self.open else value >= self.low)
        alone = self.open and self.low is None
        return above and (self.high is None or (value < self.high if alone else value <= self.high))

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            words = ("more than", "at least") if self.high is None else ("less than", "at most")
            end = self.low if self.high is None else self.high
            told = "anything" if end is None else f"{words[not self.open]} {_number(end)}"
        elif self.low == self.high:
            told = f"exactly {_number(self.low)}"
        elif self.open:
            told = f"more than {_number(self.low)}, at most {_number(self.high)}"
        else:
            told = f"{_number(self.low)} to {_number(self.high)}"
        return f"{told} ({self.why})" if self.why else told


def near(figure: float, share: float = ABOUT) -> Accepted:
    """Within this share of the figure."""
    words = {ABOUT: "within a quarter", NEARLY: "within a tenth"}
    why = "" if share == 0 else f"{words.get(share, f'within {share:.0%}')} of {_number(figure)}"
    return Accepted(figure - share * figure, figure + share * figure, why=why)


def above(limit: float) -> Accepted:
    return Accepted(low=limit, open=True)


def at_least(limit: float) -> Accepted:
    return Accepted(low=limit)


def below(limit: float) -> Accepted:
    return Accepted(high=limit, open=True)


def at_most(limit: float) -> Accepted:
    return Accepted(high=limit)


def between(low: float, high: float) -> Accepted:
    return Accepted(low, high)


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
    accepted: Accepted | None = None
    """With which values it comes out, if it could be judged by a value."""
    source: str = ""
    """Where it is made, if it is not made where the others are: `[BabayAmir16], abstract`."""

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
    """The claim whose figure was measured once with each seed. `holds` says whether it comes out
    with such a value; if it is `Accepted`, a report can tell why. `reason` says why if it does not
    come out, `note` what one must know even if it does."""
    mean = fmean(values)
    verdict = Outcome.COMES_OUT if holds(mean) else Outcome.DOES_NOT
    reason = note if verdict is Outcome.COMES_OUT else reason or note
    spread = min(values), max(values)
    accepted = holds if isinstance(holds, Accepted) else None
    return Claim(claim, parameters, paper, mean, spread, verdict, unit, reason, accepted=accepted)


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
            "accepted",
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
                c.accepted,
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
