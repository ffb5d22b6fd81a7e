"""The directory of a sweep.

    plan.toml                what was asked for, word for word
    sweep.json               what the sweep is: experiment, cells, version; `finished` at the end
    waves/00000.parquet ...  a row for each cell that is done; each file is there as a whole or not
    results/FIELD=VALUE/     the table: a row for each cell, parameters and measures as columns,
    results.csv              in the order of the plan. Made of the waves when all are there
    traces/FIELD=VALUE/CELL/ the trace of each cell, if the plan says so

The table says nothing of when, where and in which wave a cell was run, so it is the same, byte by
byte, however often the sweep was killed and started again.
"""

import csv
import fcntl
import hashlib
import io
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import roundelay
from roundelay.experiments.plan import PlanError, PlannedRun, SweepPlan, parse
from roundelay.experiments.results import Result
from roundelay.pipeline.errors import PipelineError
from roundelay.pipeline.sweep.work import Job, Row, from_table, job, to_batch

FORMAT = 1
MANIFEST = "sweep.json"
PLAN = "plan.toml"
WAVES = "waves"
RESULTS = "results"
TABLE = "results.csv"
TRACES = "traces"

_DECIDING = ("core", "wire", "membership", "links", "protocols", "group", "trace", "sim")
"""Packages whose code decides what comes of a cell, besides `experiments`."""


class Store:
    """A directory while a sweep is running. Use `open_store`."""

    def __init__(self, directory: Path, plan: SweepPlan, planned: Sequence[PlannedRun]) -> None:
        self.directory = directory
        self.plan = plan
        self._planned = planned
        self._jobs = [job(plan.experiment, one) for one in planned]
        self.rows: dict[str, Row] = {}
        """By the names of the cells: what is done."""
        self.next_wave = 0

    def prepare(self, *, again: bool) -> None:
        """Make the directory this plan's, or see that it is; read what is done. With `again`,
        begin anew."""
        if again:
            _remove(self.directory)
        held = read_manifest(self.directory)
        if held is not None:
            _refuse_other(self.directory, held, self._manifest())
        (self.directory / WAVES).mkdir(parents=True, exist_ok=True)
        _write(self.directory / PLAN, self.plan.text)
        self._write_manifest(finished=False)
        self.read()

    def read(self) -> None:
        """What the waves say."""
        known = {job.name for job in self._jobs}
        for path in sorted((self.directory / WAVES).glob("*.parquet")):
            rows = from_table(_read_wave(path))
            self.rows |= {row.cell: row for row in rows if row.cell in known}
            self.next_wave = int(path.stem) + 1

    def pending(self, *, retry: bool) -> list[Job]:
        """Cells that are not done; with `retry`, those that ended in an error too."""
        return [
            self._traced(job)
            for job in self._jobs
            if job.name not in self.rows or (retry and self.rows[job.name].error)
        ]

    def add(self, number: int, rows: Sequence[Row]) -> None:
        """Write down a wave."""
        path = self.directory / WAVES / f"{number:05}.parquet"
        beside = path.with_suffix(".tmp")
        pq.write_table(pa.Table.from_batches([to_batch(rows)]), beside)
        _settle(beside)
        os.replace(beside, path)
        self.rows |= {row.cell: row for row in rows}

    def finish(self) -> None:
        """Make the table."""
        table = self._table()
        first = table.column_names[0]
        home = self.directory / RESULTS
        beside = self.directory / f"{RESULTS}.tmp"
        for old in (beside, home):
            shutil.rmtree(old, ignore_errors=True)
        ds.write_dataset(
            table,
            beside,
            format="parquet",
            partitioning=ds.partitioning(pa.schema([table.schema.field(first)]), flavor="hive"),
            basename_template="part-{i}.parquet",
            use_threads=False,
            max_partitions=len(table) + 1,
        )
        beside.rename(home)
        _write(self.directory / TABLE, _csv(table))
        self._write_manifest(finished=True)

    def errors(self) -> list[tuple[PlannedRun, str]]:
        """Cells that ended in an error."""
        rows = ((planned, self.rows[job.name]) for planned, job in self.pairs())
        return [(planned, row.error) for planned, row in rows if row.error]

    def pairs(self) -> Iterator[tuple[PlannedRun, Job]]:
        return zip(self._planned, self._jobs, strict=True)

    def _table(self) -> pa.Table:
        names = list(self._jobs[0].fields)
        measures = list(dict.fromkeys(n for j in self._jobs for n in self.rows[j.name].measures))
        columns: dict[str, Any] = {n: [j.fields[n] for j in self._jobs] for n in names}
        columns["seed"] = [j.seed for j in self._jobs]
        for name in measures:
            values = [self.rows[j.name].measures.get(name) for j in self._jobs]
            # A parameter may have the name of a measure, as a rate that was asked for and reached.
            column = f"measured_{name}" if name in columns else name
            columns[column] = pa.array(values, pa.float64())
        columns["error"] = [self.rows[j.name].error for j in self._jobs]
        return pa.table(columns)

    def _traced(self, todo: Job) -> Job:
        if not self.plan.traces:
            return todo
        first, value = next(iter(todo.fields.items()))
        home = self.directory / TRACES / f"{first}={quote(str(value), safe='')}"
        return replace(todo, trace=str(home / todo.name))

    def _manifest(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "plan": self.plan.title,
            "plan_sha256": self.plan.sha256,
            "quick": self.plan.quick,
            "experiment": self.plan.experiment,
            "claims": self.plan.claims,
            "seeds": list(self.plan.seeds),
            "traces": self.plan.traces,
            "cells": len(self._planned),
            "revision": roundelay.__version__,
            "code": code_digest(),
        }

    def _write_manifest(self, *, finished: bool) -> None:
        errors = len(self.errors()) if finished else None
        document = self._manifest() | {"finished": finished, "errors": errors}
        _write(self.directory / MANIFEST, json.dumps(document, indent=2) + "\n")


@contextmanager
def open_store(directory: Path, plan: SweepPlan, *, again: bool = False) -> Iterator[Store]:
    """The store of a sweep, for one process at a time."""
    directory = directory.resolve()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = (directory / ".lock").open("w")
    except OSError as e:
        raise PipelineError(
            f"cannot write to {directory}: {e.strerror}; choose another place with -o DIR"
        ) from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise PipelineError(
                f"another sweep is at work in {directory}; wait for it, or choose another place "
                "with -o DIR"
            ) from None
        store = Store(directory, plan, plan.runs())
        store.prepare(again=again)
        yield store


def read_manifest(directory: Path) -> dict[str, Any] | None:
    """What `sweep.json` says; None if there is none."""
    try:
        document = json.loads((directory / MANIFEST).read_text())
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        raise PipelineError(
            f"{directory / MANIFEST} cannot be read; begin again with another -o DIR"
        ) from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise PipelineError(
            f"{directory} holds a sweep of another version; begin again with another -o DIR"
        )
    return document


@dataclass(frozen=True, slots=True)
class Sweep:
    """A sweep as it stands in its directory, for those who read it."""

    manifest: dict[str, Any]
    results: list[Result]
    """In the order of the plan."""
    errors: list[tuple[PlannedRun, str]]
    missing: int
    """Cells that are not done."""


def read_sweep(directory: Path) -> Sweep | None:
    """The sweep in a directory, done or not; None if there is none."""
    manifest = read_manifest(directory)
    if manifest is None:
        return None
    try:
        plan = parse((directory / PLAN).read_text(), manifest["plan"], quick=manifest["quick"])
    except PlanError as e:
        raise PipelineError(str(e)) from None
    store = Store(directory, plan, plan.runs())
    store.read()
    rows = [(planned, store.rows.get(job.name)) for planned, job in store.pairs()]
    return Sweep(
        manifest,
        [Result(*planned, row.measures) for planned, row in rows if row and not row.error],
        [(planned, row.error) for planned, row in rows if row and row.error],
        sum(row is None for _, row in rows),
    )


def code_digest() -> str:
    """Of all the code that decides what comes of a cell: results of other code are not the same."""
    package = Path(roundelay.__file__).parent
    digest = hashlib.sha256()
    for name in (*_DECIDING, "experiments"):
        for path in sorted((package / name).rglob("*.py")):
            digest.update(str(path.relative_to(package)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _refuse_other(directory: Path, held: dict[str, Any], wanted: dict[str, Any]) -> None:
    if held.get("experiment") != wanted["experiment"] or held.get("traces") != wanted["traces"]:
        raise PipelineError(
            f"{directory} holds a sweep of {held.get('plan')}, which is another experiment; choose "
            "another place with -o DIR"
        )
    if held.get("code") != wanted["code"]:
        raise PipelineError(
            f"{directory} holds results of another version of the code; choose another place with "
            "-o DIR, or run all of it anew with --again"
        )


def _remove(directory: Path) -> None:
    """Whatever an earlier sweep left; nothing else."""
    for name in (WAVES, RESULTS, f"{RESULTS}.tmp", TRACES):
        shutil.rmtree(directory / name, ignore_errors=True)
    for name in (MANIFEST, PLAN, TABLE):
        (directory / name).unlink(missing_ok=True)


def _read_wave(path: Path) -> pa.Table:
    try:
        return pq.read_table(path)
    except (pa.ArrowException, OSError):
        raise PipelineError(
            f"{path} is damaged; delete it, and its cells are run once more"
        ) from None


def _csv(table: pa.Table) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.column_names)
    for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
        writer.writerow([" ".join(map(str, v)) if isinstance(v, list) else v for v in row])
    return out.getvalue()


def _write(path: Path, text: str) -> None:
    """As a whole or not at all, also if the machine stops."""
    beside = path.with_suffix(".tmp")
    beside.write_text(text, encoding="utf-8")
    _settle(beside)
    os.replace(beside, path)


def _settle(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
