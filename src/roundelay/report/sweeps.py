"""The section of a sweep: claims beside their figures, and all results to play with.

A paper's claims are judged here from the results, by the same function as `roundelay claims`.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from roundelay.experiments import claims as paper_claims
from roundelay.experiments import figures as paper_figures
from roundelay.experiments.claims import Claim, Findings, Outcome
from roundelay.experiments.registry import Paper, load_paper, paper_names
from roundelay.pipeline.sweep.store import Sweep
from roundelay.report.fields import MEASURED, in_words
from roundelay.report.gauge import gauge
from roundelay.report.html import element, folded, heading, paragraph, show, table, text
from roundelay.report.plots import Plots

ROWS_MAX = 2000
"""Results that are on the page; the CSV file has all."""
ERRORS_MAX = 50

JUDGED = (
    "A claim comes out if our value, the mean over the seeds, is within the limits that stand "
    f"beside it. They were fixed beforehand: about means within {paper_claims.ABOUT:.0%} of the "
    f"paper's value, nearly equal within {paper_claims.NEARLY:.0%}. Words in brackets are ours, "
    "where the paper says less."
)

CHIPS = {
    Outcome.COMES_OUT: ("good", "✓ comes out"),
    Outcome.DOES_NOT: ("bad", "✗ does not"),
    Outcome.UNDERIVABLE: ("open", "- cannot be derived"),
}


class SweepSection:
    """A sweep, its findings, and the files that go with them."""

    def __init__(self, sweep: Sweep) -> None:
        self.sweep = sweep
        self.findings: Findings | None = None
        self.paper: Paper | None = None
        self.unjudged = ""
        """Why the claims could not be judged, if so."""
        name = sweep.manifest["claims"]
        if name in paper_names():
            self.paper = load_paper(name)
            try:
                self.findings = self.paper.findings_of(sweep.results)
            except (ValueError, KeyError) as e:
                self.unjudged = f"The claims cannot be judged: {e}; finish the sweep first."

    @property
    def title(self) -> str:
        manifest = self.sweep.manifest
        return f"Sweep {manifest['plan']}{', quick' if manifest['quick'] else ''}"

    @property
    def tally(self) -> Counter[Outcome]:
        """How many claims came to which end."""
        return Counter(c.verdict for c in self.findings.claims) if self.findings else Counter()

    def files(self, directory: Path) -> dict[str, list[str]]:
        """Write CSV and PNG files; what was written, by what it is of."""
        written: dict[str, list[str]] = {}

        def write(of: str, name: str, content: str) -> None:
            (directory / name).write_text(content, encoding="utf-8")
            written.setdefault(of, []).append(f"{directory.name}/{name}")

        stem = Path(self.sweep.manifest["plan"]).stem
        if self.findings is not None:
            write("claims", f"{stem}-claims.csv", paper_claims.to_csv(self.findings.claims))
            for figure in self.findings.figures:
                name = f"{stem}-{figure.name}"
                write(figure.name, f"{name}.csv", paper_figures.to_csv(figure))
                if paper_figures.can_draw():
                    paper_figures.draw(figure, directory / f"{name}.png")
                    written[figure.name].append(f"{directory.name}/{name}.png")
        return written

    def html(self, plots: Plots, written: dict[str, list[str]]) -> list[str]:
        """What is below the heading."""
        parts = []
        if self.paper is not None:
            reference = self.paper.reference and f" {self.paper.reference}"
            parts.append(paragraph(f"{self.paper.about}.{reference}"))
        parts.append(paragraph(self._told()))
        if self.unjudged:
            parts.append(paragraph(self.unjudged))
        # A page begins with a picture: a figure of the paper, or all that was measured.
        figures = self.findings is not None and bool(self.findings.figures)
        parts += [] if figures else self._results(plots)
        if self.findings is not None and self.paper is not None:
            parts.append(paragraph(JUDGED))
            parts += _findings(self.findings, self.paper.about, plots, written)
        parts += self._results(plots) if figures else []
        if self.sweep.errors:
            rows = [(str(t.cell), t.seed, why) for t, why in self.sweep.errors[:ERRORS_MAX]]
            parts += [
                heading(3, f"{len(self.sweep.errors)} cells ended in an error"),
                table("Errors", ("cell", "seed", "error"), rows),
            ]
        return parts

    def _told(self) -> str:
        sweep = self.sweep
        seeds = len(sweep.manifest["seeds"])
        left = f", {sweep.missing} not yet" if sweep.missing else ""
        return (
            f"{len(sweep.results)} of {sweep.manifest['cells']} cells of the experiment "
            f"{sweep.manifest['experiment']} were run{left}, with {seeds} "
            f"seed{'s' * (seeds != 1)} each. A value is the mean over the seeds; its spread is "
            "the smallest and the largest. All of them are the simulator's."
        )

    def _results(self, plots: Plots) -> list[str]:
        rows = [_row(result.cell, result.seed, result.measures) for result in self.sweep.results]
        if not rows:
            return []
        cell = self.sweep.results[0].cell
        parameters = [name for name in asdict(cell) if name in rows[0]]
        measures = list(dict.fromkeys(n for row in rows for n in row if n not in parameters))
        measures.remove("seed")
        names = [*parameters, "seed", *measures]
        shown = [[row.get(name) for name in names] for row in rows[:ROWS_MAX]]
        more = f", the first {ROWS_MAX:,}" if len(rows) > ROWS_MAX else ""
        return [
            heading(3, "What was measured, over any parameter"),
            plots.explorer(rows[:ROWS_MAX], parameters, measures),
            folded(f"All results{more}", table("Results", [*map(in_words, names)], shown)),
        ]


def _findings(
    findings: Findings, paper: str, plots: Plots, written: dict[str, list[str]]
) -> list[str]:
    parts = []
    for figure in findings.figures:
        about = [claim for claim in findings.claims if claim.figure == figure.name]
        parts += [
            heading(3, f"{_named(figure.name)}: {figure.title}"),
            element(
                "div",
                plots.figure(figure, written.get(figure.name, ())),
                claim_list(about, f"{_key(paper)}, {_named(figure.name)}"),
                class_="beside",
            ),
        ]
    figures = {figure.name for figure in findings.figures}
    others = [claim for claim in findings.claims if claim.figure not in figures]
    if others:
        parts += [
            heading(3, "Claims of the text" if figures else "Claims"),
            claim_list(others, paper),
        ]
    return parts


def claim_list(claims: Sequence[Claim], source: str) -> str:
    """Claim by claim: what the paper says, and where; what came out, and what that means."""
    return element("ul", *(_claim(claim, source) for claim in claims), class_="claims")


def _claim(claim: Claim, source: str) -> str:
    kind, words = CHIPS[claim.verdict]
    unit = f" {claim.unit}" if claim.unit and not claim.unit.startswith("/") else claim.unit
    ours = "-" if claim.ours is None else f"{show(claim.ours)}{unit}"
    if claim.spread is not None:
        ours += f" ({show(claim.spread[0])} to {show(claim.spread[1])})"
    body = element(
        "div",
        element("strong", text(claim.claim)),
        paragraph(claim.parameters, "parameters"),
        element(
            "dl",
            *_fact(claim.source or source, claim.paper),
            *_fact("ours, with its spread", ours),
            *(() if claim.accepted is None else _fact("comes out with", str(claim.accepted))),
        ),
        gauge(claim),
        paragraph(claim.reason, "reason") if claim.reason else "",
    )
    return element("li", element("span", text(words), class_=f"chip {kind}"), body)


def _fact(name: str, value: str) -> tuple[str, str]:
    return element("dt", text(name)), element("dd", text(value))


def _key(paper: str) -> str:
    """`[DTP97]` of `[DTP97], section 5`."""
    return paper.partition(",")[0]


def _named(figure: str) -> str:
    """`figure2` as Figure 2."""
    word = figure.rstrip("0123456789")
    return f"{word.capitalize()} {figure[len(word) :]}".strip()


def _row(cell: Any, seed: int, measures: dict[str, float]) -> dict[str, Any]:
    """One result, flat; what is no number is null, since JSON has none."""
    fields = {k: v if not isinstance(v, tuple) else show(v) for k, v in asdict(cell).items()}
    found = {
        (f"{MEASURED}{name}" if name in fields else name): value if math.isfinite(value) else None
        for name, value in measures.items()
    }
    return {**fields, "seed": seed, **found}
