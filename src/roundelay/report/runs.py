"""The section of traces: verdicts, measures, and what the runs looked like."""

import base64
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

from roundelay.check import PROPERTIES
from roundelay.check.verdict import Validity
from roundelay.core.effects import Kind
from roundelay.draw import Place, Window, svg
from roundelay.report.evidence import CheckedRun, Evidence, witness_rows
from roundelay.report.html import element, folded, heading, paragraph, scrolled, table, text
from roundelay.report.measures import measures_table
from roundelay.report.plots import Plots
from roundelay.report.story import Fault, Story
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import Row

DETAILED_MAX = 6
"""Runs that are shown one by one, those with violations first; the table has all."""
BARS_MAX = 600
FAULTS_MAX = 60
"""Faults that are marked and told of."""
PICTURED_FAULTS_MAX = 12
"""Those of them that have a diagram."""
AROUND_FAULT = 15
"""Events before and after a fault, and before and after the views that followed."""
CLOCK = (
    "Times are seconds since the trace begins, as in its diagrams and on the console of the demo."
)
EVENTS_SHOWN = 80
"""Of a run without views and without violations."""
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
    measures = []
    if evidence.measures is not None and evidence.measures.num_rows:
        measures = [heading(3, "Measures"), measures_table(evidence.measures)]
    if len(evidence.runs) == 1:  # The heading is that of the run.
        return [*_run(evidence.runs[0], plots, 3), *measures, _manifest(evidence.runs[0])]
    worst = sorted(evidence.runs, key=lambda run: (not run.violated, run.name))[:DETAILED_MAX]
    parts = [_overview(evidence.runs), *measures]
    for run in worst:
        parts += [heading(3, f"Run {run.name}"), *_run(run, plots, 4), _manifest(run)]
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


def _run(run: CheckedRun, plots: Plots, level: int) -> list[str]:
    """What is below the heading of a run; its own headings have this level."""
    parts = []
    if run.manifest is not None:
        parts.append(paragraph(_about(run, run.manifest)))
        if "cell" in run.manifest.config:
            fields = run.manifest.config["cell"].items()
            told = ", ".join(f"{name} {value}" for name, value in fields)
            parts.append(paragraph(f"Seed {run.manifest.seed}: {told}.", "quiet"))
    parts += [paragraph(problem) for problem in run.problems]
    verdicts = [heading(level, "Verdicts"), _verdicts(run)] if run.verdicts else []
    if run.violated:
        parts += verdicts
    if run.manifest is not None and run.row_count:
        parts += _pictures(run, run.manifest, plots, level)
    return parts if run.violated else [*parts, *verdicts]


def _about(run: CheckedRun, manifest: Manifest) -> str:
    """Who ran what, and when, in a sentence."""
    nodes = f"{len(manifest.nodes)} nodes ({' '.join(manifest.nodes)})"
    rules = f", {manifest.rules} rules" if manifest.rules != "safe" else ""
    engine = f" of engine {manifest.protocol}{rules}" if manifest.protocol else ""
    if run.began is not None:
        how = f"as real processes on {run.began:%d %B %Y, %H:%M %Z}".replace("on 0", "on ")
    else:
        how = f"in the simulator{'' if manifest.seed is None else f', seed {manifest.seed}'}"
    return f"{nodes}{engine}, {how}; {run.row_count:,} events."


def _manifest(run: CheckedRun) -> str:
    if run.manifest is None:
        return ""
    shown = element("pre", text(_pretty(asdict(run.manifest))))
    return folded("Manifest", scrolled(f"Manifest of run {run.name}", shown))


def _verdicts(run: CheckedRun) -> str:
    """Violations one by one, the others counted and to open."""
    verdicts = run.verdicts
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
        for j in run.violated
    )
    counts = tally([run])
    told = ", ".join(f"{counts[v]} {v}" for v in Validity if counts[v])
    rows = [(j.name, _title(j.name), j.verdict, j.instances, j.reason) for j in verdicts]
    head = ("property", "says", "verdict", "instances", "reason")
    return (
        (element("ul", items, class_="claims") if run.violated else "")
        + paragraph(f"Verdicts: {told}.")
        + folded("All verdicts", table(f"Verdicts of run {run.name}", head, rows))
    )


def _pictures(run: CheckedRun, manifest: Manifest, plots: Plots, level: int) -> list[str]:
    rows = run.rows()
    story = Story(rows, manifest)
    faults = story.faults()[:FAULTS_MAX]
    parts = []
    if story.has_views:
        bars = story.bars()[:BARS_MAX]
        label = f"What happened in run {run.name}: views of each node over time"
        parts += [
            heading(level, "What happened"),
            paragraph(CLOCK, "quiet") if run.began is not None else "",
            plots.timeline(label, bars, faults, _held(run, story)),
        ]
    elif run.held:
        label = f"Messages that nodes of run {run.name} hold"
        held = _held(run, story)
        parts += [
            heading(level, "Messages held"),
            plots.lines(label, "time (s)", "messages held", held),
        ]
    if faults:
        parts += [heading(level, "What was done, and what followed"), _done(run, faults)]
    if run.small:
        parts += _diagrams(run, story, faults, level)
    else:
        parts.append(
            paragraph(
                f"The run has {run.row_count:,} rows, too many for a diagram here; roundelay draw "
                "TRACE --around fault:1 draws a fault and what followed.",
                "quiet",
            )
        )
    return parts


def _done(run: CheckedRun, faults: Sequence[Fault]) -> str:
    rows = [
        (
            fault.number,
            fault.at_s,
            fault.told,
            "; ".join(fault.followed) or "no new view",
        )
        for fault in faults
    ]
    label = f"What was done in run {run.name}, and what followed"
    return table(label, ("fault", "at (s)", "what was done", "views after it"), rows)


def _diagrams(run: CheckedRun, story: Story, faults: Sequence[Fault], level: int) -> list[str]:
    """A violation if there is one; each fault; else the views, else the beginning."""
    shown = sorted((j for j in run.violated if j.witness), key=lambda j: j.name != PICTURED)
    parts = []
    if shown:
        judged = shown[0]
        title = f"What {judged.name} looks like"
        reason = f"{judged.name}: {judged.reason}"
        witness = witness_rows(run, judged)
        picture = _diagram(run, story, title, Window(around=25), witness, reason)
        parts += [heading(level, title), picture]
    for fault in faults[:PICTURED_FAULTS_MAX]:
        title = f"{fault.number}: {fault.told}, and what followed"
        window = Window(at=Place(f"fault:{fault.number}"), around=AROUND_FAULT)
        parts.append(folded(f"Diagram of fault {title}", _diagram(run, story, title, window)))
    if shown or faults:
        return parts
    if story.has_views:
        title = "Views"
        window = Window(hide=tuple(kind for kind in Kind if kind not in _VIEWS))
    else:
        title = "How it begins"
        window = Window(limit=EVENTS_SHOWN)
    return [heading(level, title), _diagram(run, story, title, window)]


def _diagram(
    run: CheckedRun,
    story: Story,
    title: str,
    window: Window,
    witness: Sequence[Row] = (),
    reason: str = "",
) -> str:
    picture = svg(
        story.rows, story.manifest, witness=witness, reason=reason, title=title, window=window
    )
    encoded = base64.b64encode(picture.encode()).decode()
    image = f'<img alt="{text(f"Space-time diagram of run {run.name}: {title}. {reason}")}" '
    image += f'src="data:image/svg+xml;base64,{encoded}">'
    return scrolled(f"Space-time diagram of run {run.name}: {title}", image)


def _held(run: CheckedRun, story: Story) -> dict[str, list[tuple[float, float]]]:
    """Over time, by node: what each has and does not know to be stable."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for moment in sorted(run.held, key=lambda m: (m.proc, m.t_ns)):
        at_s = story.seconds(moment.t_ns)
        lines.setdefault(story.manifest.name(moment.proc), []).append((at_s, moment.messages))
    return lines


def _title(name: str) -> str:
    known = PROPERTIES.get(name)
    return known.title if known is not None else ""


def _pretty(value: object) -> str:
    return json.dumps(value, indent=2, sort_keys=True, default=str)
