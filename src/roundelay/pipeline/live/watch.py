"""Verdicts on groups that run: a streaming query gives the new pieces of their traces to judges.

Rows of a run are judged once no living node can write an earlier one. A node is waited for until it
stops, crashes, or writes nothing for `SILENT_S`. What a node that was given up writes later comes
too late: the run is then not judged any more, as any other order of its rows would convict nodes
that did nothing wrong.

    OUT/checkpoint        of the query
    OUT/state             what the judges knew after the latest batches
    OUT/verdicts.parquet  the verdicts so far, as `check` writes them
    OUT/measures.parquet  what the runs did in each batch
"""

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from roundelay.check import Verdict
from roundelay.core.value import value
from roundelay.pipeline.errors import PipelineError
from roundelay.pipeline.ingest.decode import OUT_SCHEMA, decode
from roundelay.pipeline.ingest.into_table import unit_of
from roundelay.pipeline.ingest.sources import Source
from roundelay.pipeline.ingest.table import POINTER, Table
from roundelay.pipeline.judge.verdict_table import VERDICT_COLUMNS, VERDICTS, ring_of
from roundelay.pipeline.live import measures, states
from roundelay.pipeline.live.follow import committed, start
from roundelay.pipeline.live.judge import RunJudge
from roundelay.pipeline.live.measures import MEASURES
from roundelay.pipeline.live.merge import WRITTEN
from roundelay.pipeline.live.source import positions, stream
from roundelay.pipeline.live.trails import (
    BEGIN,
    Position,
    Trail,
    position_after,
    steps,
    trails,
    written_at,
)
from roundelay.trace.manifest import Manifest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVERY_S = 2.0
"""Seconds between two batches. Shorter: more of the time goes into starting them; longer: a breach
is reported later."""

ROWS_MAX = 300_000
"""About how many rows one batch has at most. More: memory; fewer: it takes longer to catch up."""

TABLE_SILENT_S = 60.0
"""Seconds without a new part of a table after which all its rows are judged. Shorter than the time
between its parts: what comes later is too late; longer: the end of a run is judged later."""

RUNS_MAX = 16
"""Runs that are watched at the same time. More: memory, as each has a judge of its own."""

_PROVENANCE = ("source", "place", "reason")
"""Columns of what is decoded that say where a row was, or what is wrong with it."""

POLL_S = 0.5
"""Seconds between two looks for nodes that have fallen silent while nothing new comes."""


@value
class Batch:
    """What a batch was, for who watches."""

    number: int
    rows: int
    """Rows that came in it."""
    judged: int
    """Rows that were judged in it."""
    waiting: int
    """Rows that wait for nodes that may still write earlier ones."""
    left_out: int
    """Rows, and files, that made no sense."""
    seconds: float
    behind_s: float
    """How old the oldest row was that waited to be judged then, in seconds since it was written:
    also one of an earlier batch, and also if it waits on."""


class Watcher(Protocol):
    """Who is told what happens while groups are watched."""

    def begins(self, judge: RunJudge) -> None:
        """A run is judged from now on."""

    def violated(self, manifest: Manifest, verdict: Verdict) -> None:
        """A property broke."""

    def batch(self, batch: Batch) -> None:
        """A batch is over."""

    def note(self, sentence: str) -> None:
        """Something that a user can change."""


class Watch:
    """The judges of all runs, batch by batch."""

    def __init__(
        self,
        paths: Sequence[str],
        home: Path,
        watcher: Watcher,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._paths = paths
        self._home = home
        self._watcher = watcher
        self._clock = clock
        self._lock = threading.Lock()  # Spark calls `batch` in a thread of its own.
        self._number = -1
        """The batch after which this is what is known."""
        self._begin()

    def _begin(self) -> None:
        self.judges: dict[str, RunJudge] = {}
        self._read: dict[str, Position] = {}
        self._measured: list[dict[str, Any]] = []
        self._noted: set[str] = set()
        self._last = self._clock()
        """When the batch before was judged."""

    @property
    def violated(self) -> bool:
        return any(judge.violated for judge in self.judges.values())

    def resume(self, number: int) -> None:
        """Know what was known after the last batch that the query is through with; -1 if there is
        none. If nothing is new, no batch comes that would do so."""
        with self._lock:
            self._go_to(number)

    def batch(self, sources: list[Source], number: int) -> None:
        """The next batch; or the last one again."""
        with self._lock:
            self._go_to(number - 1)
            began = self._clock()
            rows, left_out = self._rows(sources)
            for source in sources:
                trail, position = position_after(source)
                self._read[trail] = position
            found = trails(self._paths)
            self._note(found.values())
            for run in pc.unique(rows.column("run")).to_pylist():
                judge = self._judge_of(run, found.values())
                if judge is not None:
                    judge.add(rows.filter(pc.equal(rows.column("run"), run)), self._now(found))
            judged, behind_s = self._judge(found, number)
            self._number = number
            self._save()
            self._watcher.batch(
                Batch(
                    number,
                    int(rows.num_rows),
                    judged,
                    sum(judge.waiting for judge in self.judges.values()),
                    left_out,
                    self._clock() - began,
                    behind_s,
                )
            )

    def idle(self) -> None:
        """Nothing new may have come for a while: go on without those who fell silent."""
        with self._lock:
            if any(judge.waiting for judge in self.judges.values()):
                found = trails(self._paths)
                if self._unread(found):
                    return  # A batch comes, and may tell of those who seem to be silent.
                if _table_of(found) is None:
                    self._judge(found, None)
                elif self._clock() - self._last >= TABLE_SILENT_S:
                    self._judge({}, None)

    def end(self) -> None:
        """Nothing will come any more: judge all there is."""
        with self._lock:
            self._judge({}, None)

    def _rows(self, sources: Sequence[Source]) -> tuple[Any, int]:
        """The rows of some files, and how many were left out."""
        # Here and not in tasks: judging takes ten times as long, and is done here too.
        good, left_out = [_EVENTS.empty_table()], 0
        for source in sources:
            if Path(source.path).name == POINTER:
                rows, written = _of_parts(source)
            else:
                written = written_at(source.path)
                read = pa.Table.from_batches(decode(unit_of(source).text()), OUT_SCHEMA)
                rows = read.filter(pc.is_null(read.column("reason")))
                left_out += read.num_rows - rows.num_rows
                rows = rows.drop_columns(list(_PROVENANCE))
            good.append(rows.append_column(WRITTEN, pa.repeat(written, rows.num_rows)))
        return pa.concat_tables(good, promote_options="default"), left_out

    def _judge_of(self, run: str, found: Iterable[Trail]) -> RunJudge | None:
        judge = self.judges.get(run)
        if judge is None:
            manifests = [t.manifest for t in found if t.manifest and t.manifest.run == run]
            if not manifests or not manifests[0].protocol:
                self._tell(f"run {run} is not judged, as no manifest says which protocol it has")
                return None
            if len(self.judges) >= RUNS_MAX:
                raise PipelineError(
                    f"there are more than {RUNS_MAX} runs; name the directory of one group, or "
                    "judge them with: roundelay check"
                )
            clocks = {manifest.machine for manifest in manifests}
            judge = _made(manifests[0], one_clock=len(clocks) == 1 and "" not in clocks)
            self.judges[run] = judge
            self._watcher.begins(judge)
        return judge

    def _judge(self, found: Mapping[str, Trail], number: int | None) -> tuple[int, float]:
        """Judge what can be judged; how many rows that were, and how far behind this was. `number`
        is that of the batch in which this is; None if it is in none."""
        now = self._now(found)
        table = _table_of(found)
        unread = self._unread(found)
        judged, most_behind_s = 0, 0.0
        for run, judge in self.judges.items():
            oldest = judge.oldest
            mine = [t for t in found.values() if t.manifest and t.manifest.run == run]
            late = table is not None and table.name in unread
            awaited = [t for t in mine if late or t.name in unread or judge.awaits(t, now)]
            for trail in mine:
                if trail not in awaited and trail.writer is not None:
                    judge.give_up(trail.writer, trail.manifest)
            writers = {trail.writer for trail in awaited}
            judged += judge.judge(writers, now, one_behind=table is not None)
            behind_s = 0.0 if oldest is None else time.time() - oldest
            most_behind_s = max(most_behind_s, behind_s)
            if number is not None:
                self._measured.append(
                    {
                        **judge.measures.take(max(self._clock() - self._last, 1e-3)),
                        "run": run,
                        "batch": number,
                        "time_s": time.time(),
                        "waiting": judge.waiting,
                        "behind_s": behind_s,
                    }
                )
            for verdict in judge.news:
                self._watcher.violated(judge.manifest, verdict)
            judge.news.clear()
            for sentence in judge.doubts:
                self._tell(f"run {run} is judged only in part: {sentence}")
            judge.doubts.clear()
        if number is not None:
            self._last = self._clock()
        del self._measured[: -measures.BATCHES_MAX]
        self._write()
        return judged, most_behind_s

    def _unread(self, found: Mapping[str, Trail]) -> set[str]:
        """The trails that have something new."""
        return {
            step.trail
            for step in steps(found, self._read)
            if step.source.end is None or step.source.end > step.source.start
        }

    def _now(self, found: Mapping[str, Trail]) -> float:
        """The time by which nodes are silent: of a table, when its last part that was read was
        made, since its parts may come seldom."""
        table = _table_of(found)
        if table is None or table.table is None:
            return self._clock()
        parts = table.table.parts[: self._read.get(table.name, BEGIN)[0]]
        return written_at(table.table.directory / parts[-1].name) if parts else 0.0

    def _note(self, found: Iterable[Trail]) -> None:
        for trail in found:
            if not trail.whole and trail.name.endswith(".parquet") and Path(trail.name).is_file():
                self._tell(
                    f"{trail.name} cannot be read before its node stops; start nodes with "
                    "trace_roll_s"
                )

    def _tell(self, sentence: str) -> None:
        if sentence not in self._noted:
            self._noted.add(sentence)
            self._watcher.note(sentence)

    # On disk

    def _write(self) -> None:
        rows = [
            {
                "run": run,
                "ring": ring_of(verdict.witness, judge.manifest),
                "property": verdict.property,
                "standing": str(judge.profile.standing(verdict.property)),
                "verdict": str(verdict.validity),
                "instances": verdict.instances,
                "reason": verdict.reason,
                "witness": [f"{row.proc}.{row.inc}.{row.lseq}" for row in verdict.witness],
            }
            for run, judge in self.judges.items()
            for verdict in judge.verdicts()
        ]
        path = self._home / VERDICTS
        beside = path.with_suffix(".tmp")
        pq.write_table(pa.Table.from_pylist(rows, VERDICT_COLUMNS), beside)
        beside.replace(path)
        measures.write(self._measured, self._home / MEASURES)

    def _save(self) -> None:
        document = {
            "read": self._read,
            "runs": [judge.save() for judge in self.judges.values()],
        }
        waiting = [judge.merge.waiting for judge in self.judges.values()]
        states.save(self._home / "state", self._number, document, waiting)

    def _go_to(self, number: int) -> None:
        """Know what was known after a batch; before any, nothing."""
        if number == self._number:
            return
        self._begin()
        self._number = number
        if number < 0:
            return
        document, waiting = states.load(self._home / "state", number)
        self._read = positions(document["read"])
        self._measured = measures.read(self._home / MEASURES, number)
        for state, rows in zip(document["runs"], waiting, strict=True):
            manifest = Manifest.from_json(state["manifest"])
            judge = _made(manifest, one_clock=state["one_clock"])
            try:
                judge.load(state, rows)
            except ValueError as e:
                raise PipelineError(
                    f"the state in {self._home} cannot be used: {e}; begin again with a new output "
                    "directory"
                ) from None
            self.judges[judge.manifest.run] = judge
            self._watcher.begins(judge)


def watch(
    spark: "SparkSession",
    paths: Sequence[str | Path],
    home: Path,
    watcher: Watcher,
    *,
    every_s: float = EVERY_S,
    once: bool = False,
    first: bool = False,
    rows_max: int = ROWS_MAX,
) -> bool:
    """Judge what nodes write below `paths`, until this process is told to end; with `once` what is
    there now, and with `first` until a property breaks. Returns whether one broke."""
    _table_of(trails(paths))  # Fails early if there is no such directory.
    home.mkdir(parents=True, exist_ok=True)
    places = [str(Path(path).resolve()) for path in paths]
    watch = Watch(places, home, watcher)
    checkpoint = home / "checkpoint"
    watch.resume(committed(checkpoint))
    query = start(
        stream(spark, places, rows_max), watch.batch, checkpoint, None if once else every_s
    )
    try:
        while not query.awaitTermination(POLL_S):
            watch.idle()
            if first and watch.violated:
                return True
        if once:
            watch.end()
    finally:
        query.stop()
    return watch.violated


def _table_of(found: Mapping[str, Trail]) -> Trail | None:
    """The table that is watched; None if directories are. PipelineError if both are."""
    tables = [trail for trail in found.values() if trail.table is not None]
    names = {Path(trail.name).name for trail in found.values() if trail.whole or trail.grows}
    if len(tables) > 1 or (tables and names - {POINTER}):
        raise PipelineError("name one table, or directories that nodes write to, and not both")
    return tables[0] if tables else None


def _made(manifest: Manifest, *, one_clock: bool) -> RunJudge:
    try:
        return RunJudge(manifest, one_clock=one_clock)
    except ValueError as e:
        raise PipelineError(f"run {manifest.run} cannot be judged: {e}") from None


_EVENTS = pa.schema([field for field in OUT_SCHEMA if field.name not in _PROVENANCE])


def _of_parts(source: Source) -> tuple[Any, float]:
    """The rows of some parts of a table, and when the last of them was made."""
    table = Table.load(Path(source.path).parent)
    some = Table(table.directory, table.parts[source.start : source.end])
    read = [pq.read_table(file, columns=_EVENTS.names, partitioning=None) for file in some.files()]
    rows = pa.concat_tables([_EVENTS.empty_table(), *(rows.cast(_EVENTS) for rows in read)])
    return rows, written_at(table.directory / some.parts[-1].name)
