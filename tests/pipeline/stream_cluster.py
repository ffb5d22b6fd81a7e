"""A standalone cluster that reads the log as a stream and loses an executor.

In a module of its own, and meant for a process of its own: a process has one Spark session.
"""

import os
import signal
from pathlib import Path

from tests.patience import LIMIT_S, until
from tests.pipeline.cluster import executors, standalone
from tests.pipeline.stream_logs import Node

from roundelay.pipeline import register
from roundelay.pipeline.session import open_session

ENTRIES = 400


def lose_an_executor(home: str) -> list[tuple[int, bytes]]:
    """What a streaming query wrote: index and payload."""
    tmp_path = Path(home)
    node = Node(tmp_path / "journal")
    node.grow(ENTRIES)
    node.close()
    logs = (tmp_path / "logs").resolve()
    logs.mkdir()
    with standalone(logs) as url, open_session(url, short=True) as spark:
        register(spark)
        reader = spark.readStream.format("roundelay").option("maxEntriesPerTrigger", 40)
        frame = reader.option("maxEntriesPerPartition", 10).load(str(node.path))
        writer = frame.writeStream.format("parquet").option("path", str(tmp_path / "out"))
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.trigger(availableNow=True).start()
        until(lambda: (tmp_path / "checkpoint" / "commits" / "0").exists(), "the first batch")
        victim = min(executors(logs))
        os.kill(victim, signal.SIGKILL)
        assert query.awaitTermination(int(LIMIT_S))
        assert victim not in executors(logs)
        found = spark.read.parquet(str(tmp_path / "out")).select("index", "payload").collect()
        return sorted((row[0], bytes(row[1])) for row in found)
