"""The loop of a sweep: waves out, rows in."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from roundelay.pipeline.sweep.store import Store
from roundelay.pipeline.sweep.waves import AT_ONCE, Wave, Waves
from roundelay.pipeline.sweep.work import ROW_DDL, Job, Row, from_table, run_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POLL_S = 0.5
"""How often the progress of the waves is read, in seconds."""

DIED = "its executor died while it ran, perhaps for lack of memory"
"""The error of a cell that took its executor with it."""

Report = Callable[[float, float, int], None]
"""Called with the cost that is done, the cost of all, and how many cells are done."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What was done."""

    cells: int
    waves: int
    seconds: float
    busy_s: float
    """What the cells took, one after the other."""
    cores: int
    """How many of them run at a time."""


def drive(spark: "SparkSession", store: Store, pending: Sequence[Job], report: Report) -> Summary:
    """Run these cells, and write down what comes of them."""
    start = time.monotonic()
    cores = _cores(spark)
    loop = _Loop(spark, store, Waves(pending, cores, store.next_wave), report)
    loop.run(sum(job.cost for job in pending))
    return Summary(len(pending), loop.done, time.monotonic() - start, loop.busy_s, cores)


class _Loop:
    def __init__(self, spark: "SparkSession", store: Store, waves: Waves, report: Report) -> None:
        self.done = 0
        """Waves written down."""
        self.busy_s = 0.0
        self._spark = spark
        self._store = store
        self._waves = waves
        self._report = report
        self._cost = 0.0
        self._cells = 0

    def run(self, total: float) -> None:
        """Until nothing is left; `total` is what it costs."""
        under_way: dict[Future[list[Row]], Wave] = {}
        threads = ThreadPoolExecutor(AT_ONCE)
        try:
            while self._waves or under_way:
                while self._waves and len(under_way) < AT_ONCE:
                    wave = self._waves.pop()
                    under_way[threads.submit(_run_wave, self._spark, wave)] = wave
                done, _ = wait(under_way, timeout=POLL_S, return_when=FIRST_COMPLETED)
                for future in done:
                    self._finish_wave(under_way.pop(future), future)
                partly = [_progress(self._spark, wave) for wave in under_way.values()]
                cost = self._cost + sum(cost for cost, _ in partly)
                self._report(cost, total, self._cells + sum(cells for _, cells in partly))
        finally:
            if under_way:  # Something went wrong, or somebody wants to stop.
                _cancel(self._spark)
            threads.shutdown(wait=True, cancel_futures=True)

    def _finish_wave(self, wave: Wave, future: "Future[list[Row]]") -> None:
        try:
            rows = future.result()
        except Exception:  # A task died, not a cell: whoever raised it is Spark.
            if not _alive(self._spark):
                raise
            if len(wave.jobs) > 1:
                self._waves.halve(wave)
                return
            rows = [Row(wave.jobs[0].name, {}, DIED, 0.0)]
        self._store.add_wave(wave.number, rows)
        self._waves.learn(wave.jobs, rows)
        self.done += 1
        self.busy_s += sum(row.seconds for row in rows)
        self._cost += wave.cost
        self._cells += len(rows)


def _run_wave(spark: "SparkSession", wave: Wave) -> list[Row]:
    """Run a wave; in a thread of its own."""
    context = _context(spark)
    if context is not None:
        context.setJobGroup(_group(wave), f"wave {wave.number}", interruptOnCancel=True)
    count = len(wave.tasks)
    numbers = spark.range(0, count, 1, count)
    done = numbers.mapInArrow(partial(run_tasks, tasks=wave.tasks), ROW_DDL)
    return from_table(done.toArrow())


def _progress(spark: "SparkSession", wave: Wave) -> tuple[float, int]:
    """About what is done of a wave: tasks begin in order, so the first ones."""
    context = _context(spark)
    if context is None:
        return 0.0, 0
    tracker = context.statusTracker()
    done = 0
    for number in tracker.getJobIdsForGroup(_group(wave)):
        job = tracker.getJobInfo(number)
        stages = [tracker.getStageInfo(stage) for stage in (job.stageIds if job else ())]
        done += sum(stage.numCompletedTasks for stage in stages if stage)
    over: list[Job] = [job for task in wave.tasks[:done] for job in task]
    return sum(job.cost for job in over), len(over)


def _group(wave: Wave) -> str:
    return f"roundelay-wave-{wave.number}"


def _context(spark: "SparkSession") -> Any:
    """The context of a session that has one; over Spark Connect there is none."""
    return spark.sparkContext if hasattr(spark, "_jsparkSession") else None


def _cores(spark: "SparkSession") -> int:
    context = _context(spark)
    if context is not None:
        return max(1, int(context.defaultParallelism))
    from pyspark.sql import functions as F  # noqa: N812

    return spark.range(10_000).select(F.spark_partition_id()).distinct().count()


def _alive(spark: "SparkSession") -> bool:
    """Whether a session can still do something."""
    try:
        return spark.range(1).count() == 1
    except Exception:  # Whatever it says, it cannot.
        return False


def _cancel(spark: "SparkSession") -> None:
    context = _context(spark)
    with suppress(Exception):  # There may be nobody left to tell.
        if context is not None:
            context.cancelAllJobs()
        else:
            spark.interruptAll()
