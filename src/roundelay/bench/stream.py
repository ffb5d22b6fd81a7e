"""What it costs to read the ordered log into Spark, and to append to it from there.

The source is measured next to Parquet: the same rows, with all columns, in the same session and one
right after the other, after one run of each that does not count. The journal is written by the
journal's own code, in packets as a node would have delivered them.

The sink appends through one of three real nodes on this machine, which keep journals.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from roundelay.core.checksum import crc32
from roundelay.core.ids import ViewId
from roundelay.core.log import Entries, Head, LogRecord, Mark
from roundelay.group.body import pack
from roundelay.journal.journal import Journal
from roundelay.journal.policy import parse_policy
from roundelay.pipeline import register
from roundelay.pipeline.session import open_session
from roundelay.runtime.client import Client, ClientError
from roundelay.transport.address import free_addresses

NODES = ("a", "b", "c")
TERM = ViewId(1, "a")
LOG = bytes(range(16))
WAIT_S = 60.0
"""How long the nodes may take to open their log, in seconds."""

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Rates:
    """Of one measurement: medians over its rounds."""

    entries: int
    entry_bytes: int
    packet_bytes: int
    rounds: int
    source_entries_per_s: float
    """A batch query over all columns."""
    parquet_ratio: float
    """That, divided by the rate of the same rows from Parquet: the median of the rounds' ratios."""
    stream_entries_per_s: float
    """A streaming query with `stream_batch` entries per batch, without its first batch."""
    stream_batch: int
    sink_entries: int
    sink_entries_per_s: float
    """A streaming query into the log of three nodes: the median batch, without the first. 0 if it
    was not measured."""
    sink_fsync: str


def measure(
    entries: int,
    size: int,
    packet_bytes: int,
    rounds: int,
    stream_batch: int,
    sink_entries: int,
    fsync: str,
    master: str,
    report: Report,
) -> Rates:
    """Write a journal of so many entries, read it, append others to the log of real nodes."""
    with tempfile.TemporaryDirectory(prefix="roundelay-bench-") as name:
        home = Path(name)
        report("writing a journal")
        journal = write(home / "journal", entries, size, packet_bytes)
        with open_session(master, memory="2g") as spark:
            register(spark)
            report("reading it")
            source, ratio = _source(spark, journal, home / "parquet", entries, rounds)
            report("reading it as a stream")
            streamed = _stream(spark, journal, home, entries, stream_batch)
            appended = 0.0
            if sink_entries:
                report("appending")
                appended = _sink(spark, home, sink_entries, size, fsync)
        return Rates(
            *(entries, size, packet_bytes, rounds, source, ratio, streamed, stream_batch),
            *(sink_entries, appended, fsync),
        )


def write(path: Path, entries: int, size: int, packet_bytes: int) -> Path:
    """The journal of a node that was sent so many entries by two senders."""
    each = max(1, packet_bytes // size)
    journal = Journal(path, "bench", "a", parse_policy("off"))
    sessions = (5, 6)
    journal.append([Mark(TERM, 0, ("a", "b"), ("a", "b"), sessions, 0, LOG)])
    filler = os.urandom(size)
    index, numbers = 0, [0, 0]
    while index < entries:
        records: list[LogRecord] = []
        for turn in range(64):
            count = min(each, entries - index)
            if not count:
                break
            sender = turn % 2
            body = pack([b"%012d" % (index + n) + filler[12:] for n in range(count)])
            head = Head(
                *(index, TERM, NODES[sender], 7, sessions[sender], numbers[sender], count),
                *(1_700_000_000_000_000 + index, crc32(body)),
            )
            records.append(Entries(head, body))
            numbers[sender] += count
            index += count
        journal.append(records)
        journal.committed = index
    journal.note()
    journal.close()
    return path


def _source(
    spark: Any, journal: Path, parquet: Path, entries: int, rounds: int
) -> tuple[float, float]:
    log = spark.read.format("roundelay").load(str(journal))
    log.write.parquet(str(parquet))
    copy = spark.read.parquet(str(parquet))
    _consume(log)
    _consume(copy)
    rates, ratios = [], []
    for turn in range(rounds):
        if turn % 2:
            other, own = _consume(copy), _consume(log)
        else:
            own, other = _consume(log), _consume(copy)
        rates.append(entries / own)
        ratios.append(other / own)
    shutil.rmtree(parquet)
    return median(rates), median(ratios)


def _consume(frame: Any) -> float:
    """Seconds for all rows and columns."""
    start = time.monotonic()
    frame.write.format("noop").mode("overwrite").save()
    return time.monotonic() - start


def _stream(spark: Any, journal: Path, home: Path, entries: int, batch: int) -> float:
    query = (
        spark.readStream.format("roundelay")
        .option("maxEntriesPerTrigger", str(batch))
        .load(str(journal))
        .writeStream.format("noop")
        .option("checkpointLocation", str(home / "checkpoint-stream"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return _rate(query)


def _rate(query: Any) -> float:
    """Rows per second of the median batch; the first one is left out if there are others."""
    found = [json.loads(p.json) for p in query.recentProgress]
    batches = [p for p in found if p["numInputRows"]]
    times = [
        p["numInputRows"] / (p["durationMs"]["triggerExecution"] / 1e3)
        for p in batches[1:] or batches
    ]
    return median(times) if times else 0.0


def _sink(spark: Any, home: Path, entries: int, size: int, fsync: str) -> float:
    journal = write(home / "rows", entries, size, 60_000)
    with Group(home, fsync) as group:
        query = (
            spark.readStream.format("roundelay")
            .option("maxEntriesPerTrigger", str(max(1, entries // 4)))
            .load(str(journal))
            .select("payload")
            .writeStream.format("roundelay")
            .option("control", str(group.control("a")))
            .option("staging", str(home / "staging"))
            .option("checkpointLocation", str(home / "checkpoint-sink"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        committed = group.committed("a")
        if committed != entries:
            raise RuntimeError(f"the log has {committed} entries, not {entries}")
        return _rate(query)


class Group:
    """Three nodes with journals, as processes; a context manager that leaves none behind."""

    def __init__(self, home: Path, fsync: str) -> None:
        self._sockets = Path(tempfile.mkdtemp(prefix="rd"))  # Paths of sockets must be short.
        self._home = home
        self._fsync = fsync
        self._peers = [f"--peer={node}={at}" for node, at in free_addresses(NODES).items()]
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, node: str) -> None:
        """Start a node, or start it again."""
        with (self._home / f"node-{node}.log").open("ab") as log:
            self._processes[node] = subprocess.Popen(
                [
                    *(sys.executable, "-m", "roundelay", "node", "--group", "bench"),
                    *("--node", node, *self._peers, "--journal", str(self.journal(node))),
                    *("--fsync", self._fsync, "--control", str(self.control(node))),
                ],
                stdout=subprocess.DEVNULL,
                stderr=log,
            )

    def kill(self, node: str) -> None:
        """At once, as if its machine had stopped."""
        self._processes[node].kill()
        self._processes[node].wait()

    def control(self, node: str) -> Path:
        return self._sockets / node

    def journal(self, node: str) -> Path:
        return self._home / f"node-{node}"

    def committed(self, node: str) -> int:
        return int(self._log(node)["committed"])

    def _log(self, node: str) -> dict[str, Any]:
        with Client(self.control(node)) as client:
            found: dict[str, Any] = client.ask(do="status")["log"]
            return found

    def __enter__(self) -> "Group":
        try:
            for node in NODES:
                self.start(node)
            self.wait_open()
        except BaseException:
            self.__exit__()
            raise
        return self

    def wait_open(self) -> None:
        """Until all of them have the log open; RuntimeError if that takes too long."""
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            try:
                if all(self._log(node)["state"] == "open" for node in NODES):
                    return
            except ClientError:
                pass
            time.sleep(0.1)
        raise RuntimeError(f"the nodes did not open their log; see {self._home}")

    def __exit__(self, *_: object) -> None:
        for process in self._processes.values():
            process.send_signal(signal.SIGTERM)
        for process in self._processes.values():
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self._sockets, ignore_errors=True)
