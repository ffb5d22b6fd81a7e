"""Figures of a paper: series of points, as files for spreadsheets and as plots."""

import csv
import importlib.util
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

DASHES = ("-", "--", ":", "-.")
MARKERS = ("o", "s", "^", "D", "v")


@dataclass(frozen=True, slots=True)
class Point:
    """What was measured at one place: the mean over the seeds, the smallest and the largest."""

    x: float
    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Series:
    """One curve. Those of the same `subject` share a colour and a marker, of the same `variant`
    a dash."""

    subject: str
    variant: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure."""

    name: str
    """For files."""
    title: str
    x: str
    y: str
    series: tuple[Series, ...]
    log: bool = False
    """Whether the y axis is logarithmic."""


def point(x: float, values: Sequence[float]) -> Point:
    """From one value of each seed."""
    return Point(x, fmean(values), min(values), max(values))


def to_csv(figure: Figure) -> str:
    """A line for each point."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("subject", "variant", figure.x, figure.y, "min", "max"))
    for s in figure.series:
        writer.writerows((s.subject, s.variant, p.x, p.mean, p.low, p.high) for p in s.points)
    return out.getvalue()


def can_draw() -> bool:
    """Whether the library that draws plots is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def draw(figure: Figure, path: Path) -> None:
    """Write a plot, in the format that the name of the file ends in. The same figure gives the
    same file."""
    from matplotlib import style  # Optional, and slow to import.
    from matplotlib.figure import Figure as Canvas

    subjects = list(dict.fromkeys(series.subject for series in figure.series))
    variants = list(dict.fromkeys(series.variant for series in figure.series))
    with style.context(["tableau-colorblind10", {"svg.hashsalt": figure.name}]):
        canvas = Canvas(figsize=(9, 5), layout="constrained")
        axes = canvas.add_subplot()
        for series in figure.series:
            points, subject = series.points, subjects.index(series.subject)
            axes.errorbar(
                [p.x for p in points],
                [p.mean for p in points],
                # A mean may be off by a rounding error, and a length is not less than nothing.
                [
                    [max(0.0, p.mean - p.low) for p in points],
                    [max(0.0, p.high - p.mean) for p in points],
                ],
                label=f"{series.subject}, {series.variant}",
                color=f"C{subject}",
                marker=MARKERS[subject % len(MARKERS)],
                markersize=4,
                linestyle=DASHES[variants.index(series.variant) % len(DASHES)],
                capsize=2,
            )
        axes.set(title=figure.title, xlabel=figure.x, ylabel=figure.y)
        if figure.log:
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        canvas.legend(loc="outside right upper", fontsize="small")
        metadata = {"Date": None} if path.suffix == ".svg" else None
        canvas.savefig(path, metadata=metadata)
