"""Plots as data for the script of the page, and the elements that they are drawn into."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from roundelay.experiments.figures import Figure
from roundelay.report.fields import in_words
from roundelay.report.html import element, folded, table, text
from roundelay.report.story import Bar, Fault, State

Moment = tuple[float, float]
"""A time, and a value."""
EVERY = "*"
"""The choice of one curve for each combination of the parameters that are not the x axis."""
USUAL = ("nodes", "rate_per_s")
"""Parameters that people expect on an x axis."""
POINTS_TELLING = 8
CURVES_TELLING = 6
"""More of either make a plot no better to begin with."""
CURVES_MAX = 8
"""More curves cannot be told apart."""


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

    def timeline(
        self,
        label: str,
        bars: Sequence[Bar],
        faults: Sequence[Fault],
        held: Mapping[str, Sequence[Moment]],
    ) -> str:
        """Who was in which view, what was done to them, and what they held, over one time axis."""
        rows = list(dict.fromkeys(bar.row for bar in bars))
        drawn = [
            {
                "row": bar.row,
                "start": bar.start,
                "length": bar.end - bar.start,
                "name": bar.name,
                "colour": bar.colour,
                "state": bar.state,
                "told": bar.told,
            }
            for bar in bars
        ]
        marks = [{"number": f.number, "at": f.at_s, "told": f.short} for f in faults]
        ident = self._add(
            {
                "kind": "timeline",
                "x": "time (s)",
                "log": False,
                "rows": rows,
                "bars": drawn,
                "faults": marks,
                "series": _series(held),
            }
        )
        cells = [(bar.row, bar.told, bar.start, bar.end) for bar in bars]
        moments = [(name, *moment) for name, moments in held.items() for moment in moments]
        numbers = [table(label, ("node", "state", "from (s)", "to (s)"), cells)]
        if moments:
            numbers.append(
                table(f"{label}: messages held", ("node", "time (s)", "messages held"), moments)
            )
        return _frame(
            ident,
            f"{label}; the tables below hold the same",
            "",
            folded("Numbers of this picture", *numbers),
            above=_legend({bar.state for bar in bars}, faults=bool(faults)),
            keys="Messages held, by node" if held else "",
            height=f"{6 + 2.6 * len(rows) + (11 if held else 0):.1f}rem",
        )

    def lines(self, label: str, x: str, y: str, lines: Mapping[str, Sequence[Moment]]) -> str:
        """Something over time, one line for each name."""
        ident = self._add({"kind": "lines", "x": x, "log": False, "series": _series(lines)})
        rows = [(name, *moment) for name, moments in lines.items() for moment in moments]
        numbers = folded("Numbers of this plot", table(label, ("of", x, y), rows))
        return _frame(ident, f"{label}; the table below holds the same", y, numbers)

    def explorer(
        self, rows: Sequence[Mapping[str, Any]], parameters: Sequence[str], measures: Sequence[str]
    ) -> str:
        """A plot of any measure over any parameter, for the reader to choose. It opens with the
        measure and the parameter that give the most to see."""
        varied = [name for name in parameters if len({str(row[name]) for row in rows}) > 1]
        varied = varied or list(parameters[:1])
        y, x = _telling(rows, varied, measures)
        words = {name: in_words(name) for name in (*varied, *measures)}
        ident = self._add(
            {
                "kind": "explorer",
                "x": x,
                "log": False,
                "series": [],
                "table": rows,
                "varied": varied,
                "words": words,
            }
        )
        by = {EVERY: "every other parameter", **{name: words[name] for name in varied}, "": "-"}
        controls = element(
            "div",
            _select(ident, "y", "Measure", {name: words[name] for name in measures}, y),
            _select(ident, "x", "over", {name: words[name] for name in varied}, x),
            _select(
                ident, "by", "one curve for each value of", by, _telling_curves(rows, varied, y, x)
            ),
            class_="controls",
        )
        return controls + _frame(
            ident,
            "The chosen measure over the chosen parameter; the CSV file beside holds the numbers",
            "measure",
        )

    def _add(self, plot: dict[str, Any]) -> str:
        ident = f"plot{next(self._numbers)}"
        self.data.append({"id": ident, **plot})
        return ident


LOOKS = {
    State.PRIMARY: "primary view",
    State.OTHER: "view, not primary",
    State.TRANSITIONAL: "transitional view",
    State.DOWN: "down",
    State.PAUSED: "paused",
}


def _legend(states: Collection[State], *, faults: bool) -> str:
    """What the bars of a timeline mean."""
    items = [(state.value, word) for state, word in LOOKS.items() if state in states]
    items += [("fault", "what was done")] if faults else []
    swatches = (
        element("li", element("span", class_=f"swatch {look}", aria_hidden="true"), text(word))
        for look, word in items
    )
    return element("ul", *swatches, class_="legend")


def _series(lines: Mapping[str, Sequence[Moment]]) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "colour": number,
            "dash": number,
            "x": [moment[0] for moment in moments],
            "y": [moment[1] for moment in moments],
        }
        for number, (name, moments) in enumerate(lines.items())
    ]


def _frame(
    ident: str,
    label: str,
    axis: str,
    *below: str,
    above: str = "",
    keys: str = "Show",
    height: str | None = None,
) -> str:
    short = None if keys == "Show" else "short"
    legend = element("legend", text(keys))
    boxes = element("fieldset", legend, id=f"{ident}-keys", class_=short) if keys else ""
    reset = element("button", "Whole range again", type="button", id=f"{ident}-reset")
    style = f"height: {height}" if height else None
    return element(
        "figure",
        above,
        element("p", text(axis), class_="axis", id=f"{ident}-axis") if axis else "",
        element("div", id=ident, class_="plot", role="img", aria_label=label, style=style),
        boxes,
        element("div", reset, class_="controls"),
        *below,
    )


def _files(names: Sequence[str]) -> str:
    if not names:
        return ""
    links = (element("a", text(name.rpartition("/")[2]), href=name) for name in names)
    return element("p", "Beside this file: ", ", ".join(links), class_="quiet")


def _telling(
    rows: Sequence[Mapping[str, Any]], varied: Sequence[str], measures: Sequence[str]
) -> tuple[str, str]:
    """The measure and the parameter to begin with: a latency that has curves, or else the plot
    with the most points and curves, within reason."""

    def worth(choice: tuple[str, str]) -> tuple[bool, int, bool]:
        y, x = choice
        known = [row for row in rows if row.get(y) is not None]
        if not all(_is_number(row[x]) for row in known):
            return False, 0, False
        others = [name for name in varied if name != x]
        points = len({row[x] for row in known})
        curves = len({tuple(str(row[name]) for name in others) for row in known})
        telling = 0 if points < 2 else min(points, POINTS_TELLING) * min(curves, CURVES_TELLING)
        return "latency" in y and telling > 2, telling, x in USUAL

    return max(((y, x) for y in measures for x in varied), key=worth)


def _telling_curves(
    rows: Sequence[Mapping[str, Any]], varied: Sequence[str], y: str, x: str
) -> str:
    """What tells the curves apart to begin with: every parameter if that makes few of them, or else
    the first one that makes some."""
    known = [row for row in rows if row.get(y) is not None]
    others = [name for name in varied if name != x]
    if len({tuple(str(row[name]) for name in others) for row in known}) <= CURVES_MAX:
        return EVERY
    some = (n for n in others if 2 <= len({str(row[n]) for row in known}) <= CURVES_MAX)
    return next(some, "")


def _select(ident: str, word: str, label: str, options: Mapping[str, str], chosen: str) -> str:
    items = "".join(
        element("option", text(told), value=name, selected="" if name == chosen else None)
        for name, told in options.items()
    )
    return element("label", text(f"{label} "), element("select", items, id=f"{ident}-{word}"))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
