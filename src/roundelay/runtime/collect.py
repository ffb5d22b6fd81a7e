"""Joins the traces of the nodes of one run to one trace.

Each life of a node wrote a file of its own. A life that was killed left no `crash` row, and a
manifest without a count of rows; the row is added here. If its last rows may be lost, the joint
manifest says so under `ended`, and the checker knows that rows are missing. A file that cannot be
read is left out, and counts as a life of which all rows are missing.

The program that ran the nodes knows what was done to them, and when the run ended: those are the
rows of the world. What nodes did after the end, while they were stopped one by one, is not part of
the run.
"""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

from roundelay.core.effects import Kind
from roundelay.runtime.tracing import MonotonicClock
from roundelay.trace import reader
from roundelay.trace.manifest import Manifest, TraceError
from roundelay.trace.recorder import Recorder
from roundelay.trace.schema import WORLD, Row
from roundelay.trace.writer import SUFFIXES, Format, Writer, life_of, manifest_name

Progress = Callable[[int, int], None]
Warn = Callable[[str], None]
"""Called with a sentence for each thing that is missing."""

_UNCOUNTED = ("there is no manifest", "the manifest does not count")
"""How problems of the reader begin that every trace of a killed node has."""


@dataclass(frozen=True, slots=True)
class _Life:
    """The trace of one life of a node."""

    path: Path
    manifest: Manifest | None
    rows: list[Row]
    problem: str
    """Why rows may be missing; completes "the trace of node b ends early, ..."."""

    @property
    def whole(self) -> bool:
        """Whether the node was stopped in good order, and its trace closed."""
        return self.manifest is not None and self.manifest.rows is not None and not self.problem


def collect(
    traces: str | Path,
    output: str | Path,
    world: Sequence[Row] = (),
    *,
    bound_ns: int | None = None,
    format: Format = "auto",
    warn: Warn | None = None,
    progress: Progress | None = None,
) -> Manifest:
    """Join the traces of a directory; TraceError if there is nothing to read.

    `world` are rows of a `world_recorder`. Nodes that are alive in its `end` rows did not crash.
    `progress` hears how many steps of how many are done: every file is read and then written.
    """
    tell = progress or (lambda done, total: None)
    directory = Path(traces)
    found = _found(directory, tell)
    lives = [life for life in found if life.rows]
    ends = [row for row in world if row.kind == Kind.END]
    alive = {proc for row in ends for proc in row.members or ()}
    end_ns = min((row.t_ns for row in ends), default=None)
    manifest = _manifest(directory, found)
    last = {proc: life.rows[-1].inc for proc, life in _last(lives).items()}
    with Writer(
        output,
        dataclasses.replace(
            manifest,
            rows=None,
            sha256="",
            bound_ns=bound_ns,
            ended=_ended(found, manifest, end_ns, warn or (lambda sentence: None)),
        ),
        format=format,
    ) as writer:
        for done, life in enumerate(lives, len(found)):
            tell(done, len(found) + len(lives))
            for row in _life(life, last, alive, end_ns, manifest):
                writer.append(row)
        for row in world:
            writer.append(row)
    return writer.manifest


def quiet_end(traces: str | Path) -> list[Row]:
    """The rows of the world for a run that was quiet when its nodes were stopped in good order: the
    run ends just before the first of them stopped. Nodes that were killed before are not alive at
    that end."""
    directory = Path(traces)
    found = _found(directory)
    lives = [life for life in found if life.rows]
    manifest = _manifest(directory, found)
    stopped = {proc: life.rows[-1] for proc, life in _last(lives).items() if life.whole}
    if not stopped:
        raise TraceError(f"no node of {directory} was stopped in good order at the end")
    rows: list[Row] = []
    world_recorder(rows, manifest.nodes).end(tuple(manifest.nodes[proc] for proc in stopped))
    end_ns = min(row.t_ns for row in stopped.values()) - 1
    return [row._replace(t_ns=end_ns) for row in rows]


def world_recorder(rows: list[Row], nodes: Sequence[str]) -> Recorder:
    """A recorder for what is done to a run of these nodes, on the clock that they use too."""
    numbers = {node: number for number, node in enumerate(sorted(nodes))}
    return Recorder(rows.append, {**numbers, "": WORLD}, "", 0, MonotonicClock())


def _last(lives: Sequence[_Life]) -> dict[int, _Life]:
    """The last life of every node, by its clock: incarnations have no order."""
    return {life.rows[-1].proc: life for life in sorted(lives, key=lambda life: life.rows[-1].t_ns)}


def _found(directory: Path, tell: Progress = lambda done, total: None) -> list[_Life]:
    """Every life that left a file; TraceError if none has a row."""
    try:
        files = sorted(path for path in directory.iterdir() if path.suffix in SUFFIXES)
    except OSError:
        files = []
    lives = {(life_of(path.stem), path.suffix): path for path in reversed(files)}
    found: list[_Life] = []
    for path in sorted(lives.values()):  # The first piece leads to the others.
        tell(len(found), 2 * len(lives))
        found.append(_read(path))
    if not any(life.rows for life in found):
        what = "holds no trace" if not files else f"holds no trace that can be read ({_why(found)})"
        raise TraceError(f"{directory} {what}; name the directory that nodes wrote to")
    return found


def _why(found: Sequence[_Life]) -> str:
    return next((life.problem for life in found if life.problem), "all files are empty")


def _manifest(directory: Path, found: Sequence[_Life]) -> Manifest:
    """The joint manifest of all lives."""
    manifests = [life.manifest for life in found if life.manifest is not None]
    if not manifests:
        raise TraceError(
            f"no trace in {directory} has a manifest; stop at least one node in good order"
        )
    for manifest in manifests[1:]:
        if (manifest.run, manifest.nodes) != (manifests[0].run, manifests[0].nodes):
            raise TraceError(
                f"{directory} holds traces of several runs or groups ({manifests[0].run!r}, "
                f"{manifest.run!r}); keep one run in a directory"
            )
    whole = reduce(Manifest.joined, manifests)
    machines = dict(whole.clocks())
    for life in found:  # One that was killed counts no rows, so its manifest names no writer.
        if life.manifest is not None and life.manifest.machine and life.rows:
            machines[f"{life.rows[-1].proc}.{life.rows[-1].inc}"] = life.manifest.machine
    return dataclasses.replace(whole, machine="", machines=machines)


def _read(path: Path) -> _Life:
    """One life; of a killed one as many rows as can be read."""
    try:
        manifest = _own_manifest(path)
        trace = reader.read(path, bare=manifest is None)
    except TraceError as e:
        return _Life(path, *_bare(path), _because(path, str(e)))
    if manifest is None:
        unknown = f"{path} has no manifest, so nobody knows whether it is all there"
        return _Life(path, None, trace.rows, _because(path, unknown))
    known = (*_UNCOUNTED, *manifest.cut_short())
    serious = [problem for problem in trace.problems if not problem.startswith(known)]
    if manifest.rows is None and not manifest.ended:
        # The node wrote each row before its effect left, so half a row has had no effect.
        serious = [problem for problem in serious if "its last line" not in problem]
    reasons = [*manifest.ended.values(), *(_because(path, problem) for problem in serious)]
    return _Life(path, manifest, trace.rows, reasons[0] if reasons else "")


def _own_manifest(path: Path) -> Manifest | None:
    """The manifest beside the file, if there is one; TraceError if it is damaged."""
    beside = path.parent / manifest_name(life_of(path.stem))
    try:
        return Manifest.from_json(beside.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as e:
        raise TraceError(f"{beside} cannot be read ({e})") from None
    except TraceError as e:
        raise TraceError(f"{beside}: {e}") from None


def _bare(path: Path) -> tuple[Manifest | None, list[Row]]:
    """The manifest and the rows, whichever of the two can be read."""
    manifest, rows = None, []
    try:
        manifest = _own_manifest(path)
    except TraceError:
        try:
            rows = reader.read(path, bare=True).rows
        except TraceError:
            rows = []
    return manifest, rows


def _because(path: Path, sentence: str) -> str:
    return "as " + sentence.replace(f"{path.parent}/", "")


def _ended(
    found: Sequence[_Life], manifest: Manifest, end_ns: int | None, warn: Warn
) -> dict[str, str]:
    """The lives of which rows before the end may be missing, as `proc.inc`, and why."""
    ended: dict[str, str] = {}
    for life in found:
        if not life.problem:
            continue
        if end_ns is not None and life.rows and life.rows[-1].t_ns > end_ns and life.manifest:
            continue  # It went on after the end: the rows that are lost came later.
        writer = _writer(life, manifest)
        if writer is None:
            warn(f"{life.path} is no trace of this run and was left out, {life.problem}")
            continue
        ended[writer] = life.problem
        warn(dataclasses.replace(manifest, ended={writer: life.problem}).cut_short()[0])
    return ended


def _writer(life: _Life, manifest: Manifest) -> str | None:
    """Which life it is, as "proc.inc": by its rows, or by the name of its file."""
    if life.rows:
        return f"{life.rows[-1].proc}.{life.rows[-1].inc}"
    node, _, incarnation = life_of(life.path.stem).rpartition("-")
    if node in manifest.nodes and incarnation.isascii() and incarnation.isdigit():
        return f"{manifest.nodes.index(node)}.{int(incarnation)}"
    return None


def _life(
    life: _Life, last: dict[int, int], alive: set[int], end_ns: int | None, manifest: Manifest
) -> list[Row]:
    rows = [row for row in life.rows if end_ns is None or row.t_ns <= end_ns]
    if not rows:
        return []
    final = rows[-1]
    survived = final.proc in alive and last[final.proc] == final.inc
    if not survived and final.kind != Kind.CRASH:
        crash = Row(
            Kind.CRASH,
            final.proc,
            final.inc,
            final.lseq + 1,
            t_ns=final.t_ns,
            lam=final.lam,
            c_seq=final.c_seq,
            c_rep=final.c_rep,
            c_kind=final.c_kind,
            tag="kill" if manifest.fsync else "",
        )
        rows.append(crash)
    return rows
