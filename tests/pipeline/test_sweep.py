"""Sweeps on Spark, as a user starts them: killed, started again, and on a cluster.

What must come out is made here, cell by cell, in this process.
"""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.request import urlopen

import pyarrow.parquet as pq
import pytest
from tests.patience import LIMIT_S, until

from roundelay.experiments.plan import parse
from roundelay.pipeline.sweep import work
from roundelay.pipeline.sweep.store import open_store

pytest.importorskip("pyspark")
pytestmark = [pytest.mark.process, pytest.mark.slow]

PLAN = """seeds = 5
[[grid]]
protocol = ["fifo", "totem"]
messages = [60, 160]
loss = ["0%", "2%"]
"""
CELLS = 40


@pytest.fixture(scope="module")
def expected(tmp_path_factory) -> dict[str, bytes]:
    """The table of the plan, made by running each cell alone."""
    home = tmp_path_factory.mktemp("alone")
    with open_store(home, parse(PLAN, "plan.toml")) as held:
        held.add(0, [work.run(job) for job in held.pending(retry=False)])
        held.finish()
    return table(home)


def table(directory: Path) -> dict[str, bytes]:
    paths = [*directory.glob("results/**/*.parquet"), directory / "results.csv"]
    return {str(path.relative_to(directory)): path.read_bytes() for path in paths}


def start(directory: Path, master: str, *more: str) -> "subprocess.Popen[bytes]":
    directory.mkdir(exist_ok=True)
    path = directory / "plan.toml"
    path.write_text(PLAN)
    words = ["sweep", str(path), "-o", str(directory / "out"), "--master", master, "--json", *more]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SPARK_")}
    return subprocess.Popen(
        [sys.executable, "-m", "roundelay", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    )


def finish(process: "subprocess.Popen[bytes]") -> dict[str, object]:
    out, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, err.decode()
    document: dict[str, object] = json.loads(out)
    return document


def cells(path: Path) -> list[str]:
    names: list[str] = pq.read_table(path).column("cell").to_pylist()
    return names


def test_killed_in_the_middle_and_started_again_it_gives_the_same_table(tmp_path, expected):
    waves = tmp_path / "out" / "waves"
    process = start(tmp_path, "local[2]")
    until(lambda: process.poll() is not None or list(waves.glob("*.parquet")), "a wave")
    assert process.poll() is None, process.communicate()[1].decode()
    process.send_signal(signal.SIGKILL)
    process.wait()
    for stream in (process.stdout, process.stderr):
        assert stream is not None
        stream.close()
    before = {path: path.read_bytes() for path in waves.glob("*.parquet")}
    done = [name for path in before for name in cells(path)]
    assert 0 < len(done) < CELLS, "it was killed too late, or too early"
    assert not (tmp_path / "out" / "results.csv").exists()

    document = finish(start(tmp_path, "local[2]"))
    assert (document["cells"], document["known"]) == (CELLS, len(done))
    assert {path: path.read_bytes() for path in before} == before
    names = [name for path in waves.glob("*.parquet") for name in cells(path)]
    assert len(names) == len(set(names)) == CELLS, "a cell was run twice"
    assert table(tmp_path / "out") == expected


@pytest.fixture
def standalone(tmp_path) -> Iterator[str]:
    """A master and two workers on this machine, from the package that pip installed."""
    import pyspark

    from roundelay.pipeline.java import provide_java

    provide_java()
    home = Path(pyspark.__file__).parent
    here = "--host", "127.0.0.1"
    port, web, *others = free_ports(4)
    url = f"spark://127.0.0.1:{port}"
    words = [["master.Master", *here, "--port", f"{port}", "--webui-port", f"{web}"]]
    for other in others:
        place = ["--webui-port", f"{other}", "-d", str(tmp_path / f"worker-{other}"), url]
        words.append(["worker.Worker", *here, "--cores", "1", "--memory", "1g", *place])
    environment = os.environ | {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"}
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for daemon, *arguments in words:
            command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{daemon}"]
            quiet = subprocess.DEVNULL
            process = subprocess.Popen(
                [*command, *arguments], env=environment, stdout=quiet, stderr=quiet
            )
            processes.append(process)
        until(lambda: workers(web) == 2, "workers that found their master")
        yield url
    finally:
        for process in processes:
            process.kill()
            process.wait()


def free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def workers(web: int) -> int:
    """How many workers the master has, as its page says."""
    try:
        with urlopen(f"http://127.0.0.1:{web}/json/", timeout=10) as answer:
            return int(json.load(answer)["aliveworkers"])
    except (OSError, ValueError):
        return 0


def test_a_standalone_cluster_gives_the_same_table(tmp_path, standalone, expected):
    finish(start(tmp_path, standalone))
    assert table(tmp_path / "out") == expected
