"""The section of traces: verdicts, measures, and what the runs looked like."""

import base64
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby

from roundelay.check import PROPERTIES
from roundelay.check.verdict import Validity
from roundelay.core.effects import Kind
from roundelay.draw import Window, svg
from roundelay.report.evidence import CheckedRun, Evidence, PropertyVerdict, witness_rows
from roundelay.report.html import element, folded, heading, paragraph, scrolled, table, text
from roundelay.report.plots import Bar, Plots
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import TRANSITIONAL, WORLD, Row

DETAILED_MAX = 6
"""Runs that are shown one by one, those with violations first; the table has all."""
BARS_MAX = 600
EVENTS_SHOWN = 80
"""Of a run without views and without violations."""
MEASURES_MAX = 2000
ABOUT = ("run", "protocol", "rules", "mode", "nodes", "resilience", "seed")
"""Columns of measures that are shown only where they differ; the overview has them all."""
PICTURED = "O5"
"""The violation that makes the best picture: two nodes, two messages, two orders."""

_VIEWS = (Kind.INSTALL, Kind.CRASH, Kind.RECOVER, Kind.FAULT, Kind.SUSPECT, Kind.END)

CHIPS = {
    Validity.OK: ("good", "✓ ok"),
    Validity.VIOLATED: ("bad", "✗ violated"),
    Validity.VACUOUS: ("open", "○ vacuous"),
    Validity.INCONCLUSIVE: ("open", "? inconclusive"),
    Validity.OUTSIDE: ("open", "- outside envelope"),
}


def section_of(evidence: Evidence, plots: Plots) -> list[str]:
    """What is below the heading."""
    parts = [_overview(evidence.runs)]
    if evidence.measures is not None and evidence.measures.num_rows:
        columns = evidence.measures.slice(0, MEASURES_MAX).to_pydict()
        shown = {n: c for n, c in columns.items() if n not in ABOUT or len(set(c)) > 1}
        rows = list(zip(*shown.values(), strict=True))
        parts += [heading(3, "Measures"), table("Measures", list(shown), rows)]
    worst = sorted(evidence.runs, key=lambda run: (not run.violated, run.name))[:DETAILED_MAX]
    for run in worst:
        parts += _run(run, plots)
    if more := len(evidence.runs) - len(worst):
        parts.append(paragraph(f"{more} more runs are in the table above."))
    return parts


def tally(runs: Sequence[CheckedRun]) -> Counter[str]:
    """Verdicts over all runs."""
    return Counter(judged.verdict for run in runs for judged in run.verdicts)


def _overview(runs: Sequence[CheckedRun]) -> str:
    head = ("run", "protocol", "nodes", "mode", "rows", *(str(v) for v in Validity), "problems")
    rows = []
    for run in runs:
        counts = tally([run])
        m = run.manifest
        about = ("-", "-", "-") if m is None else (m.protocol, len(m.nodes), m.mode)
        rows.append(
            (run.name, *about, run.row_count, *(counts[v] for v in Validity), len(run.problems))
        )
    return table("Runs and their verdicts", head, rows)


def _run(run: CheckedRun, plots: Plots) -> list[str]:
    parts = [heading(3, f"Run {run.name}")]
    if run.manifest is not None and "cell" in run.manifest.config:
        fields = run.manifest.config["cell"].items()
        told = ", ".join(f"{name} {value}" for name, value in fields)
        parts.append(paragraph(f"Seed {run.manifest.seed}: {told}.", "quiet"))
    parts += [paragraph(problem) for problem in run.problems]
    if run.verdicts:
        parts.append(_verdicts(run.verdicts))
    if run.manifest is not None and run.row_count:
        parts += _pictures(run, run.manifest, plots)
        parts.append(
            folded(
                "Manifest",
                scrolled("Manifest", element("pre", text(_pretty(asdict(run.manifest))))),
            )
        )
    return parts


def _verdicts(verdicts: Sequence[PropertyVerdict]) -> str:
    """Violations one by one, the others counted and to open."""
    bad = [judged for judged in verdicts if judged.violated]
    items = "".join(
        element(
            "li",
            element("span", text(CHIPS[Validity.VIOLATED][1]), class_="chip bad"),
            element(
                "div",
                element("strong", text(f"{j.name}: {_title(j.name)}")),
                paragraph(j.reason, "reason"),
            ),
        )
        for j in bad
    )
    counts = tally([CheckedRun("", None, 0, verdicts=list(verdicts))])
    told = ", ".join(f"{counts[v]} {v}" for v in Validity if counts[v])
    rows = [(j.name, _title(j.name), j.verdict, j.instances, j.reason) for j in verdicts]
    head = ("property", "says", "verdict", "instances", "reason")
    return (
        (element("ul", items, class_="claims") if bad else "")
        + paragraph(f"Verdicts: {told}.")
        + folded("All verdicts", table("Verdicts", head, rows))
    )


def _pictures(run: CheckedRun, manifest: Manifest, plots: Plots) -> list[str]:
    rows = run.rows()
    parts = []
    bars = view_bars(rows, manifest)
    if bars:
        parts += [
            heading(4, "Views over time"),
            plots.timeline(f"Views of run {run.name} over time", bars[:BARS_MAX], "s"),
        ]
    if run.held:
        parts += [heading(4, "Messages held"), _held(run, manifest, plots)]
    if run.small:
        parts.append(_diagram(run, rows, manifest, views=bool(bars)))
    else:
        parts.append(
            paragraph(
                f"The run has {run.row_count:,} rows, too many for a diagram here; "
                "roundelay draw shows a part of a trace.",
                "quiet",
            )
        )
    return parts


def _diagram(run: CheckedRun, rows: list[Row], manifest: Manifest, *, views: bool) -> str:
    """A violation if there is one, else the views, else the beginning."""
    shown = sorted((j for j in run.violated if j.witness), key=lambda j: j.name != PICTURED)
    judged = shown[0] if shown else None
    witness: list[Row] = []
    reason = ""
    if judged is not None:
        title = f"What {judged.name} looks like"
        witness, reason = witness_rows(run, judged), f"{judged.name}: {judged.reason}"
        window = Window(around=25)
    elif views:
        title = "Views and faults"
        window = Window(hide=tuple(kind for kind in Kind if kind not in _VIEWS))
    else:
        title = "How it begins"
        window = Window(limit=EVENTS_SHOWN)
    picture = svg(rows, manifest, witness=witness, reason=reason, title=title, window=window)
    encoded = base64.b64encode(picture.encode()).decode()
    image = f'<img alt="{text(f"Space-time diagram of run {run.name}: {title}. {reason}")}" '
    image += f'src="data:image/svg+xml;base64,{encoded}">'
    return heading(4, title) + scrolled(f"Space-time diagram of run {run.name}", image)


def _held(run: CheckedRun, manifest: Manifest, plots: Plots) -> str:
    """Over time, by node: what each has and does not know to be stable."""
    origin = min(moment.t_ns for moment in run.held)
    lines: dict[str, list[tuple[float, float]]] = {}
    for moment in sorted(run.held, key=lambda m: (m.proc, m.t_ns)):
        at_s = (moment.t_ns - origin) / 1e9
        lines.setdefault(manifest.name(moment.proc), []).append((at_s, moment.messages))
    return plots.lines(
        f"Messages that nodes of run {run.name} hold", "time (s)", "messages held", lines
    )


def view_bars(rows: Sequence[Row], manifest: Manifest) -> list[Bar]:
    """Which view each node was in, and from when to when, in seconds."""
    if not any(row.kind == Kind.INSTALL for row in rows):
        return []
    origin = min(row.t_ns for row in rows)
    last = max(row.t_ns for row in rows)
    kept = [r for r in rows if r.proc != WORLD and r.kind in (Kind.INSTALL, Kind.CRASH)]
    kept.sort(key=lambda r: (r.proc, r.inc, r.lseq))
    bars = []
    for (proc, inc), group in groupby(kept, key=lambda r: (r.proc, r.inc)):
        events = list(group)
        node = manifest.name(proc)
        for row, after in zip(events, [*events[1:], None], strict=True):
            if row.kind == Kind.CRASH:
                continue
            end = last if after is None else after.t_ns
            name = f"{row.c_seq}.{manifest.name(row.c_rep or 0)}"
            passing = row.c_kind == TRANSITIONAL
            members = ", ".join(manifest.name(m) for m in row.members or ())
            told = f"{name}{' transitional' if passing else ''}: {members}"
            told += f" (incarnation {inc} of {node})" if inc else ""
            start_s, end_s = (row.t_ns - origin) / 1e9, (end - origin) / 1e9
            bars.append(Bar(node, name, told, start_s, end_s, passing))
    return bars


def _title(name: str) -> str:
    known = PROPERTIES.get(name)
    return known.title if known is not None else ""


def _pretty(value: object) -> str:
    return json.dumps(value, indent=2, sort_keys=True, default=str)
