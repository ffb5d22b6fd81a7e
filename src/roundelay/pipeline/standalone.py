"""A standalone cluster of Spark on this machine, from the package that pip installed.

The package has no scripts that start one. A master and workers are Java processes; a worker starts
an executor, another Java process, for each session, and a new one when it dies.
"""

import ctypes
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from roundelay.pipeline.errors import PipelineError
from roundelay.pipeline.java import provide_java

START_S = 600.0
"""How long a master or a worker may take to be ready, in seconds. They take about five; with less
than a busy machine needs, a cluster is given up that would have come."""
LOOK_S = 0.05
"""How often is looked whether it is, in seconds."""
END_S = 30.0
"""How long one may take to end after it was told to, in seconds, before it is killed."""


@contextmanager
def standalone(directory: Path, workers: int = 2) -> Iterator[str]:
    """A master and workers of one core and 1 GB each, for as long as this is open; the URL of the
    master. Their logs, and what executors leave, go to `directory`."""
    import pyspark

    provide_java()
    home = Path(pyspark.__file__).parent
    env = os.environ | {
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
    }
    env.pop("SPARK_CONF_DIR", None)  # It may silence them, and they must say when they are ready.
    started: list[subprocess.Popen[bytes]] = []

    def start(role: str, pattern: str, *words: str) -> str:
        """One more process, and what it says when it is ready."""
        said = directory / f"{len(started)}.log"
        command = [
            *(str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{role}"),
            *("--host", "127.0.0.1", "--webui-port", "0", *words),
        ]
        with said.open("wb") as log:
            started.append(
                subprocess.Popen(
                    command, env=env, cwd=directory, stdout=log, stderr=log, preexec_fn=_end_with_us
                )
            )
        return _ready(started[-1], said, pattern)

    try:
        url = start("master.Master", r"spark://127\.0\.0\.1:\d+", "--port", "0")
        for number in range(workers):
            words = ("--cores", "1", "--memory", "1g", "-d", str(directory / f"worker{number}"))
            start("worker.Worker", "Successfully registered with master", *words, url)
        yield url
    finally:
        _end(started[::-1])


def _end_with_us() -> None:
    """Called in a new process: the kernel kills it when the thread ends that started it, so that
    a cluster does not outlive a command that is killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


PR_SET_PDEATHSIG = 1
"""What Linux calls this."""


def _ready(process: "subprocess.Popen[bytes]", said: Path, pattern: str) -> str:
    limit = time.monotonic() + START_S
    while (found := re.search(pattern, said.read_text(errors="replace"))) is None:
        if process.poll() is not None or time.monotonic() > limit:
            lines = said.read_text(errors="replace").strip().splitlines() or ["nothing was said"]
            raise PipelineError(f"a cluster on this machine did not start ({lines[-1]})")
        time.sleep(LOOK_S)
    return found[0]


def _end(processes: "Sequence[subprocess.Popen[bytes]]") -> None:
    for process in processes:
        process.terminate()
    for process in processes:
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def executors(directory: Path) -> set[int]:
    """Process ids of the executors of the cluster that has this directory."""
    home = directory.resolve()
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command, place = (entry / "cmdline").read_bytes(), (entry / "cwd").readlink()
            except OSError:
                continue  # It ended meanwhile, or is not ours.
            if b"CoarseGrainedExecutorBackend" in command and place.is_relative_to(home):
                found.add(int(entry.name))
    return found
