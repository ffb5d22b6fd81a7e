"""A standalone cluster, and a check on it that loses an executor.

In a module of its own, and meant for a process of its own: a process has one Spark session.
"""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyspark
from tests.patience import LIMIT_S, until
from tests.pipeline.conftest import write
from tests.unit.check.trial import corpus

from roundelay.check import PROPERTIES, check
from roundelay.pipeline.ingest.into_table import ingest
from roundelay.pipeline.java import provide_java
from roundelay.pipeline.judge.check import check as check_on_spark
from roundelay.pipeline.session import open_session

CASES = [case for case in corpus() if case.head[0] in ("O5", "D7", "O6", "S3", "M7", "D2")]


def kill_in_mid_job(spark, logs: Path, victim: int) -> None:
    until(spark.sparkContext.statusTracker().getActiveJobsIds, "a job")
    os.kill(victim, signal.SIGKILL)
    until(lambda: victim not in executors(logs), "the end of the executor")


@contextmanager
def standalone(logs: Path) -> Iterator[str]:
    """A master and two workers, from the package that pip installed."""
    home = Path(pyspark.__file__).parent
    env = os.environ | {
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "JAVA_HOME": str(provide_java() and os.environ["JAVA_HOME"]),
        "PYSPARK_PYTHON": sys.executable,
    }
    env.pop("SPARK_CONF_DIR", None)  # They must say when they are ready.
    started: list[subprocess.Popen[bytes]] = []

    def start(role: str, pattern: str, *words: str) -> str:
        """A process of the cluster, and what it says when it is ready."""
        said = logs / f"{len(started)}.log"
        words = ("--host", "127.0.0.1", "--webui-port", "0", *words)
        with said.open("wb") as log:
            started.append(
                subprocess.Popen(
                    [home / "bin" / "spark-class", f"org.apache.spark.deploy.{role}", *words],
                    env=env,
                    cwd=logs,
                    stdout=log,
                    stderr=log,
                )
            )

        def ready() -> re.Match[str] | None:
            assert started[-1].poll() is None, said.read_text()
            return re.search(pattern, said.read_text())

        until(ready, f"{role} to start")
        found = ready()
        assert found is not None
        return found[0]

    try:
        url = start("master.Master", r"spark://127\.0\.0\.1:\d+", "--port", "0")
        for number in range(2):
            words = ("--cores", "1", "--memory", "1g", "-d", str(logs / f"worker{number}"), url)
            start("worker.Worker", "Successfully registered with master", *words)
        yield url
    finally:
        for child in reversed(started):
            child.terminate()
            child.wait()


def executors(logs: Path) -> set[int]:
    """Processes of executors of this cluster, which work below `logs`; others are left alone."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command, home = (entry / "cmdline").read_bytes(), (entry / "cwd").readlink()
            except OSError:
                continue
            if b"CoarseGrainedExecutorBackend" in command and home.is_relative_to(logs):
                found.add(int(entry.name))
    return found


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
            spark, table, held=list(PROPERTIES), slice_rows=3, progress=meanwhile
        )
        killer.join(LIMIT_S)
        assert victim not in executors(logs)
    return expected, {one.run: [str(v.validity) for v in one.report.verdicts] for one in reports}
