"""A check on a standalone cluster that loses an executor.

In a module of its own, and meant for a process of its own: a process has one Spark session.
"""

import os
import signal
import threading
from dataclasses import replace
from pathlib import Path

from tests.patience import LIMIT_S, until
from tests.pipeline.conftest import write
from tests.unit.check.trial import corpus

from roundelay.check import PROPERTIES, check
from roundelay.pipeline.ingest.into_table import ingest
from roundelay.pipeline.judge.check import check as check_on_spark
from roundelay.pipeline.session import open_session
from roundelay.pipeline.standalone import executors, standalone

CASES = [case for case in corpus() if case.head[0] in ("O5", "D7", "O6", "S3", "M7", "D2")]


def kill_in_mid_job(spark, logs: Path, victim: int) -> None:
    until(spark.sparkContext.statusTracker().getActiveJobsIds, "a job")
    os.kill(victim, signal.SIGKILL)
    until(lambda: victim not in executors(logs), "the end of the executor")


Found = dict[str, list[str]]
"""By run: the verdicts."""


def lose_an_executor(home: str) -> tuple[Found, Found]:
    """What the local checker says of some traces, and what a cluster does."""
    tmp_path = Path(home)
    expected: Found = {}
    for case in CASES:
        manifest, rows = case.trace()
        manifest = replace(manifest, run=str(case))
        written = write(tmp_path / "in" / str(case), manifest, rows)
        report = check(rows, written, profile=list(PROPERTIES))
        expected[str(case)] = [str(verdict.validity) for verdict in report.verdicts]
    logs = (tmp_path / "logs").resolve()
    logs.mkdir()
    with standalone(logs) as url, open_session(url, short=True) as spark:
        table = ingest(spark, [tmp_path / "in"], tmp_path / "table").table
        victim = min(executors(logs))
        killer = threading.Thread(target=kill_in_mid_job, args=(spark, logs, victim))

        def meanwhile(done: int, total: int) -> None:
            """The last step is about to begin: the one that judges slices."""
            if done == total - 1:
                killer.start()

        reports = check_on_spark(
            spark, table, held=list(PROPERTIES), slice_rows=3, small_rows=0, progress=meanwhile
        )
        killer.join(LIMIT_S)
        assert victim not in executors(logs)
    return expected, {one.run: [str(v.validity) for v in one.report.verdicts] for one in reports}
