"""The traces of the nodes of one run, put together as one trace.

Each life of a node wrote a file of its own. One that was killed left no manifest and no `crash`
row; the row is added here. Whoever ran the nodes knows what was done to them, and when all was
quiet: those are the rows of the world. What nodes did after the end, as they were stopped one by
one, is not part of the run.
"""

import dataclasses
from collections.abc import Sequence
from functools import reduce
from pathlib import Path

from roundelay.core.effects import Kind
from roundelay.runtime.tracing import MonotonicClock
from roundelay.trace import reader
from roundelay.trace.manifest import Manifest, TraceError
from roundelay.trace.recorder import Recorder
from roundelay.trace.schema import WORLD, Row
from roundelay.trace.writer import SUFFIXES, Format, Writer, manifest_name


def collect(
    traces: str | Path,
    output: str | Path,
    world: Sequence[Row] = (),
    *,
    bound_ns: int | None = None,
    format: Format = "auto",
) -> Manifest:
    """Put the traces of a directory together; TraceError if there is nothing to read.

    `world` are rows of a `world_recorder`. Whoever is alive in its `end` rows did not crash.
    """
    directory = Path(traces)
    lives = _lives(directory)
    ends = [row for row in world if row.kind == Kind.END]
    alive = {proc for row in ends for proc in row.members or ()}
    end_ns = min((row.t_ns for row in ends), default=None)
    manifest = _manifest(directory, lives)
    last = {life.rows[-1].proc: life.rows[-1].inc for life in sorted(lives, key=_began)}
    machines = {life.manifest.machine for life in lives if life.manifest is not None}
    machine = manifest.machine if len(machines) == 1 else ""
    with Writer(
        output,
        dataclasses.replace(manifest, rows=None, sha256="", bound_ns=bound_ns, machine=machine),
        format=format,
    ) as writer:
        for life in lives:
            for row in _life(life, last, alive, end_ns):
                writer.append(row)
        for row in world:
            writer.append(row)
    return writer.manifest


def quiet_end(traces: str | Path) -> list[Row]:
    """The rows of a world that was quiet when its nodes were stopped in good order: they end the
    run just before the first of them stopped. Whoever was killed before is not among them."""
    directory = Path(traces)
    lives = _lives(directory)
    manifest = _manifest(directory, lives)
    final = {life.rows[-1].proc: life for life in sorted(lives, key=_began)}
    stopped = {
        proc: life.rows[-1]
        for proc, life in final.items()
        if life.manifest is not None and not life.manifest.ended
    }
    if not stopped:
        raise TraceError(f"no node of {directory} was stopped in good order at the end")
    rows: list[Row] = []
    world_recorder(rows, manifest.nodes).end(tuple(manifest.nodes[proc] for proc in stopped))
    end_ns = min(row.t_ns for row in stopped.values()) - 1
    return [row._replace(t_ns=end_ns) for row in rows]


def world_recorder(rows: list[Row], nodes: Sequence[str]) -> Recorder:
    """Writes what is done to a run of these nodes, on the clock that they use too."""
    numbers = {node: number for number, node in enumerate(sorted(nodes))}
    return Recorder(rows.append, {**numbers, "": WORLD}, "", 0, MonotonicClock())


def _lives(directory: Path) -> list[reader.Trace]:
    """Every life that wrote anything."""
    files = sorted(path for path in directory.glob("*") if path.suffix in SUFFIXES)
    lives = [life for life in map(_read, files) if life.rows]
    if not lives:
        raise TraceError(f"{directory} holds no trace; name the directory that nodes wrote to")
    return lives


def _began(life: reader.Trace) -> int:
    """When a life began: the order of incarnations says nothing."""
    return life.rows[0].t_ns


def _manifest(directory: Path, lives: Sequence[reader.Trace]) -> Manifest:
    """What the manifests of all lives say together."""
    told = [life.manifest for life in lives if life.manifest is not None]
    if not told:
        raise TraceError(
            f"no trace in {directory} has a manifest; stop at least one node in good order"
        )
    whole = reduce(Manifest.joined, told)
    return dataclasses.replace(whole, machine="", machines=whole.clocks())


def _read(path: Path) -> reader.Trace:
    """One life; of a killed one as much as there is."""
    trace = reader.read(path)
    own = (path.parent / manifest_name(path.stem)).is_file()
    return trace if own else dataclasses.replace(trace, manifest=None)


def _life(
    life: reader.Trace, last: dict[int, int], alive: set[int], end_ns: int | None
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
        )
        rows.append(crash)
    return rows
