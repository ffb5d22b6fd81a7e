"""A Spark Connect server, from the package that pip installed.

In a module of its own, and meant for a process of its own: a process has one Spark session.
"""

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any

import pyspark
from tests.patience import LIMIT_S, until
from tests.pipeline.processes import die_with_parent

from roundelay import Entry
from roundelay.blocking import join
from roundelay.pipeline import register
from roundelay.pipeline.examine import examine
from roundelay.pipeline.java import provide_java
from roundelay.pipeline.session import open_session
from roundelay.transport.address import free_addresses

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


@contextmanager
def connect_server(home: Path) -> Iterator[str]:
    """Its URL. It runs in `home`, and its Python workers have nothing of ours."""
    package = Path(pyspark.__file__).parent
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    provide_java()
    env = os.environ | {
        "SPARK_HOME": str(package),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
    }
    env.pop("PYTHONPATH", None)
    settings = {
        "spark.connect.grpc.binding.port": str(port),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
    }
    words = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    said = home / "server.log"
    with said.open("wb") as log:
        server = subprocess.Popen(
            [
                *(package / "bin" / "spark-submit", "--class", SERVER, "--master", "local[2]"),
                *("--driver-memory", "1g", *words, "spark-internal"),
            ],
            cwd=home,
            env=env,
            stdout=log,
            stderr=log,
            preexec_fn=die_with_parent,
        )

    def answers() -> bool:
        assert server.poll() is None, said.read_text()
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return True
        return False

    try:
        until(answers, "a server that answers")
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


def try_all(home: str) -> tuple[dict[str, list[str]], set[str], list[bytes]]:
    """By run, what is violated in the traces in `home`/in; which runs were measured; and what the
    log of a node has, once the log in `home`/log was appended to it."""
    (Path(home) / "server").mkdir()
    with connect_server(Path(home) / "server") as url:
        done = examine([Path(home) / "in"], Path(home) / "table", url)
        with open_session(url) as spark:
            appended = _append(spark, Path(home))
    violated = {one.run: [v.property for v in one.report.violated] for one in done.reports}
    return violated, {line.run for line in done.lines}, appended


def _append(spark: Any, home: Path) -> list[bytes]:
    register(spark)
    peers = free_addresses("a")
    with tempfile.TemporaryDirectory(prefix="rd") as short:  # Paths of sockets must be short.
        control = Path(short) / "s"
        with join("g", node="a", peers=peers, journal=home / "node", control=control) as group:
            group.log.caught_up(LIMIT_S)
            writer = (
                spark.readStream.format("roundelay")
                .load(str(home / "log"))
                .writeStream.format("roundelay")
                .option("control", str(control))
                .option("staging", str(home / "staging"))
                .option("checkpointLocation", str(home / "checkpoint"))
            )
            query = writer.trigger(availableNow=True).start()
            assert query.awaitTermination(LIMIT_S)
            found = islice(group.log.read(0), group.log.sync())
            return [entry.payload for entry in found if isinstance(entry, Entry)]
