"""A sweep on Spark next to a plain pool of processes, on the same cells.

The pool is given the cells dearest first, one at a time: what anybody would write who has one
machine, and no wish to stop and go on. Its processes are started anew for each round, as are
Spark's; the session itself is started once, and told of apart.
"""

import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from roundelay.experiments.plan import SweepPlan, parse
from roundelay.pipeline.session import open_session
from roundelay.pipeline.sweep.drive import drive
from roundelay.pipeline.sweep.store import open_store
from roundelay.pipeline.sweep.work import Row, job, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SMALLEST, LARGEST = 30, 3000
"""Messages of a cell; most are small, a few are large."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Medians over the rounds."""

    cells: int
    cores: int
    work_s: float
    """What the cells of a round took, one after the other, in the pool."""
    pool_s: float
    sweep_s: float
    start_s: float
    """Starting the session, which is not in `sweep_s`."""
    same: bool
    """Whether both gave the same results."""

    @property
    def ratio(self) -> float:
        """The sweep's throughput, of the pool's."""
        return self.pool_s / self.sweep_s


def uneven(cells: int) -> SweepPlan:
    """A plan of so many cells, whose costs differ by a factor of a hundred."""
    random = Random("roundelay/bench/sweep")
    grids = []
    for number in range(cells):
        messages = round(SMALLEST * (LARGEST / SMALLEST) ** random.random())
        protocol = ("totem", "fifo")[number % 2]
        # No two are the same, or only one of them would be run.
        fields = f'protocol = "{protocol}"\nmessages = {messages}\nsize_bytes = {number + 1}\n'
        grids.append(f"[[grid]]\n{fields}")
    return parse("\n".join(grids), "bench")


def compare(cells: int, cores: int, rounds: int, report: Callable[[int, int], None]) -> Figures:
    """Run the same cells both ways, in turns."""
    plan = uneven(cells)
    begin = time.perf_counter()
    with open_session(f"local[{cores}]", short=True) as spark:
        start_s = time.perf_counter() - begin
        pools, sweeps, work, same = [], [], [], True
        for done in range(rounds):
            report(2 * done, 2 * rounds)
            pool_s, there = _pool(plan, cores)
            report(2 * done + 1, 2 * rounds)
            sweep_s, here = _sweep(spark, plan)
            same &= there.keys() == here.keys() and all(
                there[name].measures == here[name].measures for name in there
            )
            pools.append(pool_s)
            sweeps.append(sweep_s)
            work.append(sum(row.seconds for row in there.values()))
    return Figures(
        len(plan.runs()), cores, median(work), median(pools), median(sweeps), start_s, same
    )


def _pool(plan: SweepPlan, cores: int) -> tuple[float, dict[str, Row]]:
    begin = time.perf_counter()
    jobs = [job(plan.experiment, planned) for planned in plan.runs()]
    jobs.sort(key=lambda job: -job.cost)
    with ProcessPoolExecutor(cores, mp_context=get_context("spawn")) as pool:
        rows = {row.cell: row for row in pool.map(run, jobs)}
    return time.perf_counter() - begin, rows


def _sweep(spark: "SparkSession", plan: SweepPlan) -> tuple[float, dict[str, Row]]:
    begin = time.perf_counter()
    with TemporaryDirectory() as home, open_store(Path(home), plan) as store:
        drive(spark, store, store.pending(retry=False), lambda done, total, cells: None)
        store.finish()
        return time.perf_counter() - begin, store.rows
