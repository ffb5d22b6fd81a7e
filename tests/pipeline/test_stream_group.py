"""The log of three real nodes in real Spark, while nodes and the query's driver are killed: each
entry is in the table once, in order; each row that a query appends is in the log once."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.patience import until
from tests.pipeline.stream_logs import Node, numbered, rows_of
from tests.process.log_cluster import LogCluster

pytest.importorskip("pyspark")

pytestmark = [pytest.mark.process, pytest.mark.slow]

ROWS = 3000

DRIVER = """
import sys
from roundelay.pipeline import register
from roundelay.pipeline.session import start
told = __import__("json").loads(sys.argv[1])
spark = start("local[2]", short=True)
register(spark)
trigger = told["trigger"]
def read(path, most):
    reader = spark.readStream.format("roundelay").option("minPartitions", 2)
    return reader.option("maxEntriesPerTrigger", most).load(path)
sink = (
    read(told["rows"], told["most"]).select("payload").writeStream.format("roundelay")
    .option("control", told["control"]).option("staging", told["staging"])
    .option("checkpointLocation", told["staging"] + "-checkpoint").trigger(**trigger).start()
)
if "availableNow" in trigger:  # Then the table has what the sink appended.
    sink.awaitTermination()
table = (
    read(told["journals"], 2000).writeStream.format("parquet").option("path", told["table"])
    .option("checkpointLocation", told["table"] + "-checkpoint").trigger(**trigger).start()
)
print("started", flush=True)
table.awaitTermination()
print("ended", flush=True)
"""


class Driver:
    """A process with both queries, and the Java process behind it."""

    def __init__(self, told: dict[str, Any], log: Path) -> None:
        self.log = log
        with log.open("ab") as said:
            self._process = subprocess.Popen(
                [sys.executable, "-c", DRIVER, json.dumps(told)],
                stdout=subprocess.PIPE,
                stderr=said,
                start_new_session=True,
            )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"started\n", log.read_text()

    def alive(self) -> bool:
        return self._process.poll() is None

    def finish(self) -> None:
        """Of one that does what there is to do."""
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ended\n", self.log.read_text()

    def kill(self) -> None:
        """It and all that it started."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def commits(path: str) -> int:
    """How many batches Spark has noted as done."""
    return len([p for p in Path(path + "-checkpoint", "commits").glob("*") if p.name.isdecimal()])


def table_of(spark: Any, path: str) -> list[tuple[int, str, int, bytes]]:
    """What the query has written; Spark leaves out what came from batches that were not done."""
    found = spark.read.parquet(path).select("index", "session", "number", "payload").collect()
    return sorted((*row[:3], bytes(row[3])) for row in found)


def test_every_entry_and_every_row_once_although_nodes_and_the_driver_are_killed(spark, tmp_path):
    rows = Node(tmp_path / "rows")
    rows.grow(ROWS, each=100)
    rows.close()
    with LogCluster(tmp_path, "abc", rate=100) as cluster:
        cluster.start()
        cluster.open()
        told: dict[str, Any] = {
            "rows": str(rows.path),
            "journals": ",".join(str(cluster.journal(node)) for node in cluster.nodes),
            "table": str(tmp_path / "table"),
            "control": ",".join(str(cluster.control(node)) for node in cluster.nodes),
            "staging": str(tmp_path / "staging"),
            "most": 50,
            "trigger": {"processingTime": "100 milliseconds"},
        }
        driver = Driver(told, tmp_path / "log-driver")

        def both_go_on() -> None:
            before = [commits(told[name]) for name in ("table", "staging")]

            def gone_on() -> bool:
                assert driver.alive(), driver.log.read_text()
                now = [commits(told[name]) for name in ("table", "staging")]
                return now[0] >= before[0] + 2 and now[1] >= min(before[1] + 2, ROWS // 50)

            until(gone_on, "batches of both queries")

        try:
            both_go_on()
            for victim in ("a", "b"):
                cluster.kill(victim)
                both_go_on()
                driver.kill()
                cluster.start(victim)
                driver = Driver(told, driver.log)
                both_go_on()
                cluster.open()
            driver.kill()
            cluster.stop_load()
            driver = Driver(told | {"most": 1000, "trigger": {"availableNow": True}}, driver.log)
            driver.finish()
        finally:
            driver.kill()
        cluster.stop_load()
        for node in cluster.nodes:
            cluster.stop(node)
        held = {node: rows_of(cluster.journal(node) / "g") for node in cluster.nodes}
    assert held["a"] == held["b"] == held["c"]
    expected = [(e["index"], e["session"], e["number"], e["payload"]) for e in held["a"]]
    assert table_of(spark, told["table"]) == expected
    appended = [payload for *_, payload in expected if payload.startswith(b"entry ")]
    assert sorted(appended) == numbered(ROWS)
    assert len(expected) > ROWS + 100
