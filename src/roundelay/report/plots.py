"""Plots as data for the script of the page, and the elements that they are drawn into."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from roundelay.experiments.figures import Figure
from roundelay.report.html import element, folded, table, text

Moment = tuple[float, float]
"""A time, and a value."""


@dataclass
class Plots:
    """All plots of a page."""

    data: list[dict[str, Any]] = field(default_factory=list)
    _numbers: Any = field(default_factory=lambda: count(1))

    def figure(self, figure: Figure, files: Sequence[str] = ()) -> str:
        """A figure of a paper, with its numbers to open below."""
        subjects = list(dict.fromkeys(s.subject for s in figure.series))
        variants = list(dict.fromkeys(s.variant for s in figure.series))
        series = [
            {
                "name": f"{s.subject}, {s.variant}" if len(variants) > 1 else s.subject,
                "colour": subjects.index(s.subject),
                "dash": variants.index(s.variant),
                "x": [p.x for p in s.points],
                "y": [p.mean for p in s.points],
                "low": [p.low for p in s.points],
                "high": [p.high for p in s.points],
            }
            for s in figure.series
        ]
        rows = [
            (s.subject, s.variant, p.x, p.mean, p.low, p.high)
            for s in figure.series
            for p in s.points
        ]
        ident = self._add({"kind": "curves", "x": figure.x, "log": figure.log, "series": series})
        scale = ", logarithmic" if figure.log else ""
        return _frame(
            ident,
            f"{figure.title}: {figure.y} over {figure.x}; the table below holds the numbers",
            f"{figure.y}{scale}",
            folded(
                "Numbers of this figure",
                table(figure.title, ("subject", "variant", figure.x, "mean", "min", "max"), rows),
            ),
            _files(files),
        )

    def timeline(self, label: str, bars: Sequence["Bar"], unit: str) -> str:
        """Which view each node was in, over time."""
        # In order of time, so that views that follow each other differ in colour.
        names = list(dict.fromkeys(b.name for b in sorted(bars, key=lambda bar: bar.start)))
        rows = list(dict.fromkeys(bar.row for bar in bars))
        drawn = [
            {
                "row": bar.row,
                "start": bar.start,
                "length": bar.end - bar.start,
                "name": bar.name,
                "colour": names.index(bar.name),
                "passing": bar.transitional,
                "told": bar.told,
            }
            for bar in bars
        ]
        ident = self._add({"kind": "timeline", "x": f"time ({unit})", "rows": rows, "bars": drawn})
        cells = [(bar.row, bar.told, bar.start, bar.end) for bar in bars]
        return _frame(
            ident,
            f"{label}; the table below holds the same",
            "views of each node; striped: transitional",
            folded(
                "Numbers of this timeline",
                table(label, ("node", "view", f"from ({unit})", f"to ({unit})"), cells),
            ),
            keys=False,
        )

    def lines(self, label: str, x: str, y: str, lines: Mapping[str, Sequence[Moment]]) -> str:
        """Something over time, one line for each name."""
        series = [
            {
                "name": name,
                "colour": number,
                "dash": number,
                "x": [moment[0] for moment in moments],
                "y": [moment[1] for moment in moments],
            }
            for number, (name, moments) in enumerate(lines.items())
        ]
        ident = self._add({"kind": "lines", "x": x, "log": False, "series": series})
        rows = [(name, *moment) for name, moments in lines.items() for moment in moments]
        numbers = folded("Numbers of this plot", table(label, ("of", x, y), rows))
        return _frame(ident, f"{label}; the table below holds the same", y, numbers)

    def explorer(
        self, rows: Sequence[Mapping[str, Any]], parameters: Sequence[str], measures: Sequence[str]
    ) -> str:
        """A plot of any measure over any parameter, for the reader to choose."""
        varied = [name for name in parameters if len({str(row[name]) for row in rows}) > 1]
        varied = varied or list(parameters[:1])
        numbers = [n for n in varied if all(_is_number(row[n]) for row in rows)]
        x = (numbers or varied)[0]
        by = next((name for name in varied if name != x), "")
        ident = self._add({"kind": "explorer", "x": x, "log": False, "series": [], "table": rows})
        controls = element(
            "div",
            _select(ident, "y", "Measure", measures, measures[0]),
            _select(ident, "x", "over", varied, x),
            _select(ident, "by", "one curve for each", ["", *varied], by),
            class_="controls",
        )
        return controls + _frame(
            ident,
            "The chosen measure over the chosen parameter; the CSV file beside holds the numbers",
            "",
        )

    def _add(self, plot: dict[str, Any]) -> str:
        ident = f"plot{next(self._numbers)}"
        self.data.append({"id": ident, **plot})
        return ident


@dataclass(frozen=True, slots=True)
class Bar:
    """A node in a view, from and to."""

    row: str
    name: str
    told: str
    start: float
    end: float
    transitional: bool


def _frame(ident: str, label: str, axis: str, *below: str, keys: bool = True) -> str:
    boxes = element("fieldset", "<legend>Show</legend>", id=f"{ident}-keys") if keys else ""
    reset = element("button", "Whole range again", type="button", id=f"{ident}-reset")
    return element(
        "figure",
        element("p", text(axis), class_="axis", id=f"{ident}-axis"),
        element("div", id=ident, class_="plot", role="img", aria_label=label),
        boxes,
        element("div", reset, class_="controls"),
        *below,
    )


def _files(names: Sequence[str]) -> str:
    if not names:
        return ""
    links = (element("a", text(name.rpartition("/")[2]), href=name) for name in names)
    return element("p", "Beside this file: ", ", ".join(links), class_="quiet")


def _select(ident: str, word: str, label: str, options: Sequence[str], chosen: str) -> str:
    items = "".join(
        element("option", text(o or "nothing"), value=o, selected="" if o == chosen else None)
        for o in options
    )
    return element("label", text(f"{label} "), element("select", items, id=f"{ident}-{word}"))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
