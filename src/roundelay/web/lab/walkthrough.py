"""Walkthroughs: a run of a scenario as a document that a page can show step by step.

The run is played once, from its beginning to its end, and everything that the page shows is in the
document: to step backwards is to show an earlier step. Diagrams are drawn on demand from the rows,
which stay behind.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from roundelay import draw
from roundelay.check import PROPERTIES, Standing, Validity, check
from roundelay.core.effects import Kind
from roundelay.draw.clock import clock_of
from roundelay.draw.wording import Wording
from roundelay.sim.scenario import ScenarioError, parse
from roundelay.sim.units import show_ns
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import LOWER_LAYER, WORLD, Row
from roundelay.web.lab.errors import LaboratoryError
from roundelay.web.lab.steps import Flight, Step, SteppingRunner, sent_words

DIAGRAM_EVENTS = 44
"""How many events a diagram of a step shows. Fewer: a frame's way is not to be seen; more: the page
is longer than a screen."""
WITNESS_AROUND = 6
"""How many events a diagram of a violation shows before and after each event of the witness."""

_LOSSES = {
    "loss": "is lost",
    "lost": "is lost",
    "cut": "is lost: the link is cut",
    "down": "is lost: {to} is down",
    "overrun": "is lost: the buffer of {to} is full",
}
"""By the reason of the simulator: what becomes of a copy of a frame."""

_TOKEN = {"acquire": "gets the token", "release": "passes the token on"}

_NOTABLE: Mapping[str, str] = {
    Kind.DELIVER: "deliver",
    Kind.INSTALL: "view",
    Kind.SUSPECT: "fault",
    Kind.CRASH: "fault",
    Kind.RECOVER: "fault",
    Kind.FAULT: "fault",
    Kind.DROP: "loss",
    Kind.SUBMIT: "submit",
}
"""By kind of row: what a reader may want to jump to."""


@dataclass(frozen=True, slots=True)
class Walkthrough:
    """A scenario that was played."""

    document: dict[str, Any]
    """What the page is given: see `docs/laboratory.md`."""
    rows: tuple[Row, ...]
    manifest: Manifest
    step_rows: tuple[tuple[int, ...], ...]
    """By step: the indices of its rows."""
    witnesses: dict[str, tuple[tuple[Row, ...], str]]
    """By violated property: its witness, and the sentence that tells of it."""

    def diagram(self, step: int) -> str:
        """The space-time diagram around a step, whose own events stand out, as SVG."""
        if not 0 <= step < len(self.step_rows):
            raise LaboratoryError(
                f"this run has no step {step + 1}; it has {len(self.step_rows)} steps"
            )
        own = [self.rows[i] for i in self.step_rows[step]]
        window = draw.Window(limit=DIAGRAM_EVENTS, marked_as="step")
        title = f"Step {step + 1} and what is near it"
        return draw.svg(self.rows, self.manifest, witness=own, title=title, window=window)

    def witness(self, name: str) -> str:
        """The diagram of a violated property, as SVG."""
        if name not in self.witnesses:
            raise LaboratoryError(f"{name} is not violated in this run")
        rows, reason = self.witnesses[name]
        window = draw.Window(around=WITNESS_AROUND)
        title = f"{name}: {PROPERTIES[name].title}"
        return draw.svg(
            self.rows, self.manifest, witness=rows, reason=reason, title=title, window=window
        )


def walk(name: str, text: str) -> Walkthrough:
    """Play a scenario; LaboratoryError if it cannot be played."""
    runner = SteppingRunner()
    try:
        for block in parse(text):
            runner.play(block)
        runner.finish()
    except ScenarioError as e:
        raise LaboratoryError(str(e)) from None
    if not runner.has_world:
        raise LaboratoryError("there are no nodes; write a command like: nodes a b c")
    rows, manifest = tuple(runner.rows), runner.manifest(name)
    return _Writer(name, text, runner, rows, manifest).walkthrough()


class _Writer:
    """Writes the document of a run."""

    def __init__(
        self,
        name: str,
        text: str,
        runner: SteppingRunner,
        rows: tuple[Row, ...],
        manifest: Manifest,
    ) -> None:
        self._name = name
        self._text = text
        self._runner = runner
        self._rows = rows
        self._manifest = manifest
        self._wording = Wording(manifest, rows, clock_of(rows))
        self._index = {(row.proc, row.inc, row.lseq): i for i, row in enumerate(rows)}

    def walkthrough(self) -> Walkthrough:
        runner = self._runner
        steps = [self._step(step) for step in runner.steps]
        violated, others, witnesses = self._verdicts(steps)
        document = {
            "name": self._name,
            "engine": self._manifest.protocol,
            "rules": self._manifest.rules,
            "mode": self._manifest.mode,
            "seed": runner.seed,
            "nodes": list(self._manifest.nodes),
            "text": self._text.splitlines(),
            "steps": steps,
            "frames": [
                {"from": f.sender, "to": f.to, "tag": f.tag, "text": sent_words(f), "size": f.size}
                for f in runner.frames
            ],
            "flights": [[f.frame, f.to, f.sent, f.ended, f.fate] for f in runner.flights],
            "violated": violated,
            "others": others,
            "note": self._note(),
        }
        step_rows = tuple(tuple(step.rows) for step in runner.steps)
        return Walkthrough(document, self._rows, self._manifest, step_rows, witnesses)

    def _note(self) -> str:
        if self._runner.complete:
            return ""
        last = show_ns(self._runner.steps[-1].t_ns)
        return (
            f"This run is long: its first {len(self._runner.steps)} steps are shown, up to {last} "
            "of virtual time. The verdicts are on the whole run."
        )

    # Steps

    def _step(self, step: Step) -> dict[str, Any]:
        root = self._rows[step.rows[0]]
        begins = root.proc != WORLD and root.lseq == 0
        starts = begins and root.kind not in (Kind.ARRIVE, Kind.EXPIRE, Kind.SUBMIT)
        said = f"{step.node} starts" if starts else self._said(step, root)
        rest = step.rows if starts else step.rows[1:]
        frames = iter(step.sent)
        document: dict[str, Any] = {
            "at": show_ns(step.t_ns),
            "line": step.line,
            "command": step.command,
            "node": step.node,
            "kind": "start" if starts else root.kind,
            "said": said,
            "then": list(self._consequences(rest, frames)),
        }
        notable = sorted({_NOTABLE[k] for i in step.rows if (k := self._rows[i].kind) in _NOTABLE})
        if notable:
            document["notable"] = notable
        if step.flight is not None:
            document["flight"] = step.flight
        if step.changes:
            document["changes"] = step.changes
        if step.cuts is not None:
            document["cuts"] = step.cuts
        return document

    def _said(self, step: Step, root: Row) -> str:
        """Why a step happens."""
        wording = self._wording
        node = step.node
        flight = None if step.flight is None else self._runner.flights[step.flight]
        match root.kind:
            case Kind.ARRIVE:
                return f"{node} gets {root.tag} from {wording.node(root.peer)}"
            case Kind.DROP if root.proc == WORLD:
                return self._loss(root, flight)
            case Kind.DROP:
                whose = "" if root.peer is None else f" of {wording.node(root.peer)}"
                return f"{node} refuses a frame{whose}: {root.tag.replace('_', ' ')}"
            case Kind.FAULT:
                return step.command or wording.headline(root)
            case Kind.END:
                return f"the run is declared quiet; connected: {wording.group(root.members)}"
            case _:
                return self._sentence(root)

    def _loss(self, root: Row, flight: Flight | None) -> str:
        to = self._wording.node(root.peer)
        how = _LOSSES.get(root.tag, f"is lost: {root.tag}").format(to=to)
        if flight is None:
            return f"a frame to {to} {how}"
        frame = self._runner.frames[flight.frame]
        return f"{frame.tag} of {frame.sender} to {to} {how}"

    def _consequences(self, rows: list[int], frames: Iterator[int]) -> Iterator[dict[str, str]]:
        for i in rows:
            row = self._rows[i]
            if row.layer == LOWER_LAYER:
                continue  # The layer below the engine tells of the same messages.
            if row.kind == Kind.SEND:
                yield {"kind": "send", "said": sent_words(self._runner.frames[next(frames)])}
            elif row.kind == Kind.DROP and row.proc == WORLD:
                to = self._wording.node(row.peer)
                how = _LOSSES.get(row.tag, f"is lost: {row.tag}").format(to=to)
                yield {"kind": "drop", "said": f"the copy for {to} {how}"}
            else:
                yield {"kind": row.kind, "said": self._sentence(row)}

    def _sentence(self, row: Row) -> str:
        """The words of the diagrams, and what a message says."""
        if row.kind == Kind.TOKEN and row.tag in _TOKEN:
            return f"{self._wording.node(row.proc)} {_TOKEN[row.tag]}"
        sentence = self._wording.sentence(row)
        if row.kind in (Kind.SUBMIT, Kind.DELIVER) and row.m_src is not None:
            first = row.m_seq or 0
            said = [
                text
                for number in range(first, first + min(row.count, 4))
                if (text := self._runner.texts.get((row.m_src, row.m_inc or 0, number)))
            ]
            if said:
                sentence += f": {', '.join(said)}{' …' if row.count > 4 else ''}"
        return sentence

    # Verdicts

    def _verdicts(
        self, steps: list[dict[str, Any]]
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]], dict[str, tuple[tuple[Row, ...], str]]]:
        """The verdicts on broken promises, the others, and the witnesses of the former."""
        report = check(self._rows, self._manifest)
        violated: list[dict[str, Any]] = []
        others: list[dict[str, Any]] = []
        witnesses: dict[str, tuple[tuple[Row, ...], str]] = {}
        for verdict, entry in zip(report.verdicts, report.profile.entries, strict=True):
            if entry.standing is Standing.OPTIONAL:
                continue
            name = verdict.property
            told: dict[str, Any] = {
                "property": name,
                "title": PROPERTIES[name].title,
                "verdict": str(verdict.validity),
                "reason": verdict.reason,
            }
            if verdict.validity is not Validity.VIOLATED:
                others.append(told)
                continue
            witnesses[name] = verdict.witness, verdict.reason
            violated.append(told | {"witness": list(self._places(verdict.witness, steps))})
        return violated, others, witnesses

    def _places(
        self, witness: tuple[Row, ...], steps: list[dict[str, Any]]
    ) -> Iterator[dict[str, Any]]:
        """Where in the steps the rows of a witness are; no step if it is beyond the last one."""
        for row in witness:
            i = self._index.get((row.proc, row.inc, row.lseq))
            step = None if i is None else self._runner.step_of_row.get(i)
            node = "" if row.proc == WORLD else self._manifest.nodes[row.proc]
            said = self._sentence(row)
            if step is not None and said not in (then["said"] for then in steps[step]["then"]):
                said = steps[step]["said"]
            yield {"step": step, "node": node, "said": said}
