"""Executors in processes of their own: they get our package from us, and may be killed."""

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyspark
import pytest
from tests.unit.check.trial import corpus

from roundelay.check import PROPERTIES, check
from roundelay.pipeline.check import check as check_on_spark
from roundelay.pipeline.ingest import ingest
from roundelay.pipeline.java import provide_java
from roundelay.pipeline.session import open_session

from .conftest import write, write_text

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(600)]

LIMIT_S = 200
"""For anything that is waited for."""

FINE = "p!a q?a p.a=1 q.a=1 q!b p?b q.b=2 p.b=2 end{p,q}"
WRONG = "p!a q!b p?b q?a p.a p.b q.b q.a end{p,q}"


def without_java(directory: Path) -> dict[str, str]:
    """An environment whose PATH has everything but Java, and from where nobody can import us."""
    tools = directory / "tools"
    tools.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for tool in Path(place).iterdir() if Path(place).is_dir() else ():
            if tool.name != "java" and not (tools / tool.name).exists():
                (tools / tool.name).symlink_to(tool)
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "JAVA_", "PYTHON"))}
    return clean | {"PATH": str(tools)}


def roundelay(
    *words: str | Path, env: dict[str, str] | None = None, cwd: Path | None = None
) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "roundelay", *map(str, words)],
        env=env,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout + done.stderr


def test_executors_of_their_own_get_our_package_and_java_is_brought_along(tmp_path):
    env = without_java(tmp_path)
    assert shutil.which("java", path=env["PATH"]) is None
    write_text(tmp_path / "in" / "fine", FINE, "fine", protocol="template")
    write_text(tmp_path / "in" / "wrong", WRONG, "wrong", protocol="template")
    master = "local-cluster[2,1,1024]"
    code, said = roundelay("check", tmp_path / "in", "--master", master, env=env, cwd=tmp_path)
    assert code == 1, said
    assert "2 runs, by their gravest verdict" in said
    assert "O5   violated" in said
    assert "witness of O5" in said
    assert (tmp_path / "witness.svg").read_text().startswith("<svg")


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
        deadline = time.monotonic() + LIMIT_S
        while (found := re.search(pattern, said.read_text())) is None:
            assert started[-1].poll() is None, said.read_text()
            assert time.monotonic() < deadline
            time.sleep(0.1)
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


def executors() -> set[int]:
    """Processes of executors on this machine."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if b"CoarseGrainedExecutorBackend" in command:
                found.add(int(entry.name))
    return found


def test_a_standalone_cluster_loses_an_executor_in_mid_job(tmp_path):
    """The verdicts are those that one machine gives, though an executor is killed meanwhile."""
    expected = {}
    for case in CASES:
        manifest, rows = case.trace()
        manifest = replace(manifest, run=str(case))
        written = write(tmp_path / "in" / str(case), manifest, rows)
        report = check(rows, written, profile=list(PROPERTIES))
        expected[str(case)] = [str(verdict.validity) for verdict in report.verdicts]
    (tmp_path / "logs").mkdir()
    before = executors()
    with standalone(tmp_path / "logs") as url, open_session(url, short=True) as spark:
        table = ingest(spark, [tmp_path / "in"], tmp_path / "table").table
        victim = min(executors() - before)
        killer = threading.Thread(target=kill_in_mid_job, args=(spark, victim))

        def meanwhile(done: int, total: int) -> None:
            """The last step is about to begin: the one that judges slices."""
            if done == total - 1:
                killer.start()

        reports = check_on_spark(
            spark, table, held=list(PROPERTIES), slice_rows=3, progress=meanwhile
        )
        killer.join(LIMIT_S)
        assert victim not in executors()
    found = {one.run: [str(v.validity) for v in one.report.verdicts] for one in reports}
    assert found == expected


CASES = [case for case in corpus() if case.head[0] in ("O5", "D7", "O6", "S3", "M7", "D2")]


def kill_in_mid_job(spark, victim: int) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not spark.sparkContext.statusTracker().getActiveJobsIds():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(victim, signal.SIGKILL)
    while victim in executors() and time.monotonic() < deadline:
        time.sleep(0.05)
