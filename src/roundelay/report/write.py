"""`write_report`: everything that is in a directory, as one page."""

import importlib.util
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from roundelay.check.verdict import Validity
from roundelay.experiments.claims import Outcome
from roundelay.pipeline.errors import PipelineError
from roundelay.pipeline.sweep.store import MANIFEST, Sweep, read_sweep
from roundelay.report import evidence, runs
from roundelay.report.html import element, folded, page, paragraph, scrolled, section, text
from roundelay.report.plots import Plots
from roundelay.report.sweeps import SweepSection
from roundelay.trace.extras import install

TRACES_MAX = 12
"""Traces that are read where they were not ingested."""


VERDICTS = {
    Validity.OK: "promises held",
    Validity.VIOLATED: "promises violated",
    Validity.VACUOUS: "vacuous: never put to the test",
    Validity.INCONCLUSIVE: "inconclusive: the trace cannot tell",
    Validity.OUTSIDE: "outside the envelope: not promised here",
}
"""What the number of each verdict counts."""


@dataclass
class Written:
    """What a report is about, and where it is."""

    path: Path
    files: list[str] = field(default_factory=list)
    """Beside it."""
    claims: Counter[Outcome] = field(default_factory=Counter)
    verdicts: Counter[str] = field(default_factory=Counter)
    skipped: list[str] = field(default_factory=list)
    """Why something that is there is left out, in a sentence each."""


def write_report(
    directory: str | Path, out: str | Path, progress: Callable[[int, int], None] | None = None
) -> Written:
    """Write a page about a sweep's directory, an ingested table, traces, or a directory that holds
    any of them; PNG and CSV files go beside it, into `NAME-files`. `progress` hears how many of
    them are done, and of how many. PipelineError if there is nothing to report, or a library is
    missing."""
    if importlib.util.find_spec("plotly") is None:
        raise PipelineError(
            f"a report needs a plotting library; install it with: {install('report')}"
        )
    directory, out = Path(directory), Path(out)
    if not directory.is_dir():
        raise PipelineError(f"there is no directory {directory}; name that of a sweep or a table")
    found = evidence.find(directory)
    if not found:
        raise PipelineError(
            f"there is neither a sweep nor a table nor a trace in {directory}; make one with: "
            "roundelay sweep papers/totem --quick"
        )
    page_ = _Page(out, directory.resolve().name)
    tell = progress or (lambda done, total: None)
    total = len(found.sweeps) + len(found.tables) + 1
    try:
        page_.beside.mkdir(parents=True, exist_ok=True)
        for done, place in enumerate(found.sweeps):
            tell(done, total)
            page_.add_sweep(place)
        tables: list[evidence.Evidence] = []
        for done, place in enumerate(found.tables, len(found.sweeps)):
            tell(done, total)
            try:
                known = evidence.of_table(place)
                page_.add_runs(f"Runs in {place.name}", known)
                tables.append(known)
            except evidence.BrokenError as e:
                page_.add_skipped(f"Runs in {place.name}", str(e))
        tell(total - 1, total)
        if traces := evidence.not_in(tables, found.traces):
            some = traces[:TRACES_MAX]
            title = f"Traces, {len(some)} of {len(traces)}"
            page_.add_runs(title, evidence.of_traces(some, directory.name))
        out.write_text(page_.html(), encoding="utf-8")
    except OSError as e:
        raise PipelineError(
            f"cannot write {out}: {e.strerror}; choose another place with -o"
        ) from None
    return page_.written


class _Page:
    """The page while it is being made."""

    def __init__(self, out: Path, place: str) -> None:
        self.written = Written(out)
        self.beside = out.with_name(f"{out.stem}-files")
        self._place = place
        self._plots = Plots()
        self._parts: dict[str, str] = {}
        self._titles: list[str] = []
        self._dates: list[datetime] = []
        """When the sweeps and the real runs on the page were begun."""

    def add_sweep(self, place: Path) -> None:
        sweep = read_sweep(place)
        assert sweep is not None, "there was one a moment ago"
        self._dates.append(datetime.fromtimestamp((place / MANIFEST).stat().st_mtime))
        part = SweepSection(sweep)
        files = part.files(self.beside)
        self.written.files += [name for names in files.values() for name in names]
        self.written.claims += part.tally
        self._add(part.title, *part.html(self._plots, files), _manifest(sweep))

    def add_runs(self, title: str, known: evidence.Evidence) -> None:
        if len(known.runs) == 1:
            title = f"Run {known.runs[0].name}"
        self._dates += [run.began for run in known.runs if run.began is not None]
        content = runs.section_of(known, self._plots)
        self.written.verdicts += runs.tally(known.runs)
        self._add(title, *content)

    def add_skipped(self, title: str, reason: str) -> None:
        self.written.skipped.append(reason)
        self._add(title, paragraph(f"Left out: {reason}."))

    def html(self) -> str:
        return page(self._title(), _lead(self.written), self._parts, self._plots.data)

    def _title(self) -> str:
        """What the page is about, and of when."""
        what = self._titles[0] if len(self._titles) == 1 else f"Report on {self._place}"
        days = sorted({date.date() for date in self._dates})
        told = [f"{day.day} {day:%B %Y}" for day in days]
        when = told[0] if len(told) == 1 else f"{told[0]} to {told[-1]}" if told else ""
        return f"{what}, {when}" if when else what

    def _add(self, title: str, *content: str) -> None:
        self._titles.append(title)
        anchor = f"part{len(self._parts) + 1}"
        self._parts[f"{anchor}|{title}"] = section(title, anchor, *content)


def _manifest(sweep: Sweep) -> str:
    shown = element("pre", text(json.dumps(sweep.manifest, indent=2)))
    return folded("Manifest of the sweep", scrolled("Manifest", shown))


def _lead(written: Written) -> str:
    """The summary: how many of what. Only what is there has a colour, and bad news alone that of an
    alarm."""
    tiles = [
        *(
            (kind, written.claims[outcome], f"claims {told}")
            for outcome, kind, told in (
                (Outcome.COMES_OUT, "good", "come out"),
                (Outcome.DOES_NOT, "bad", "do not come out"),
                (Outcome.UNDERIVABLE, "open", "cannot be derived"),
            )
            if written.claims
        ),
        *(
            (runs.CHIPS[validity][0], written.verdicts[validity], told)
            for validity, told in VERDICTS.items()
            if written.verdicts[validity] or (written.verdicts and validity is Validity.VIOLATED)
        ),
    ]
    items = (
        element("li", f"<b>{count}</b> {text(what)}", class_=kind if count else "none")
        for kind, count, what in tiles
    )
    summary = element("ul", *items, class_="tiles") if tiles else ""
    return summary + paragraph(
        "Figures can be zoomed by dragging; the numbers of each are in the table below it.", "quiet"
    )
