"""What it costs Spark to check deliveries: order, duplication, FIFO and virtual synchrony.

The trace is made up: five nodes in one view deliver the same messages, one of them crashes a little
before the end and lags behind when it does, and the others go on in the next view. It is written as
`ingest` would have left it, and judged in a session of its own.

Processor time is that of the Java process and its Python workers together, without starting them.
Workers end when they have been idle for a while, and nobody is told how long they ran: so everybody
is asked again and again while the check runs.
Memory is the largest resident size of the Java process. DuckDB runs the order check alone, on the
same files.
"""

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from roundelay.core.effects import Kind
from roundelay.pipeline.arrow import EVENT_FIELDS, to_arrays
from roundelay.pipeline.expressions import BLOCK_KEYS
from roundelay.pipeline.ingest.table import Table, TablePart
from roundelay.pipeline.proofs.certify import certify
from roundelay.pipeline.session import open_session
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import REGULAR, TRANSITIONAL, Row

NODES = 5
RUN = "bench"
FILE_ROWS = 2_000_000
GROUP_ROWS = 250_000
JUDGED = ("O3f", "O3i", "O4", "O5", "O6", "D2", "O1", "D7")
"""Order, duplication, FIFO, virtual synchrony."""

Report = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one check."""

    rows: int
    """Delivery rows."""
    table_mb: float
    cpu_s: float
    wall_s: float
    peak_mb: float
    """The largest resident size of Java, which may use 1 GB of heap and some more, and does not
    tidy up before it has to."""
    live_mb: float
    """What is in the heap after the check, once tidied up."""
    shuffle_mb: float
    shuffle_share: float
    proved: dict[str, int]
    """Properties that hold, with their instances."""
    duckdb_cpu_s: float | None
    """None if DuckDB is not installed."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a larger check would cost if each further row cost the same as so far."""

    rows: int
    cpu_s_per_million: float
    cpu_s: float
    shuffle_mb: float
    shuffle_share: float
    """Of the table."""
    live_mb_per_million: float
    """What each further million of rows adds to the heap after the check; about 0 if the memory of
    the driver does not grow with the rows."""
    live_mb: float
    peak_mb_per_million: float
    peak_mb: float


def outlook(costs: Sequence[Cost], rows: int) -> Outlook:
    """The lines that fit best through two costs or more, continued to so many rows."""
    x = np.array([cost.rows for cost in costs], float)

    def line(values: Sequence[float]) -> tuple[float, float]:
        slope, start = np.polyfit(x, np.array(values, float), 1)
        return float(slope), float(start + slope * rows)

    per_row, cpu_s = line([cost.cpu_s for cost in costs])
    _, shuffle_mb = line([cost.shuffle_mb for cost in costs])
    _, table_mb = line([cost.table_mb for cost in costs])
    live_per_row, live_mb = line([cost.live_mb for cost in costs])
    peak_per_row, peak_mb = line([cost.peak_mb for cost in costs])
    return Outlook(
        rows,
        cpu_s_per_million=per_row * 1e6,
        cpu_s=cpu_s,
        shuffle_mb=shuffle_mb,
        shuffle_share=shuffle_mb / table_mb,
        live_mb_per_million=live_per_row * 1e6,
        live_mb=live_mb,
        peak_mb_per_million=peak_per_row * 1e6,
        peak_mb=peak_mb,
    )


def measure(rows: int, directory: Path, master: str, report: Report) -> Cost:
    """Make a trace of so many delivery rows, check it, remove it."""
    directory.mkdir(parents=True, exist_ok=True)
    home = directory / f"bench-{rows}"
    try:
        table = write(home, rows, report)
        with open_session(master, memory="1g", short=True) as spark:
            spark.range(1).mapInArrow(_warm, "id bigint").collect()
            gateway: Any = spark.sparkContext._gateway
            java = gateway.proc.pid
            start = time.monotonic()
            with Meter(java) as meter:
                proved = certify(spark, table)[RUN].proved
            wall = time.monotonic() - start
            peak, live, shuffled = _peak_mb(java), _live_mb(gateway), _shuffled(spark)
        size = sum(file.stat().st_size for file in table.files())
        return Cost(
            rows=rows,
            table_mb=size / 1e6,
            cpu_s=meter.cpu_s,
            wall_s=wall,
            peak_mb=peak,
            live_mb=live,
            shuffle_mb=shuffled / 1e6,
            shuffle_share=shuffled / size,
            proved={name: proved[name] for name in JUDGED if name in proved},
            duckdb_cpu_s=duckdb_order(home),
        )
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _warm(batches: Iterator[Any]) -> Iterator[Any]:
    """Start the Python workers and let them import what they need."""
    import roundelay.pipeline.proofs.batch_facts  # noqa: F401

    yield from batches


# The trace.


def write(home: Path, rows: int, report: Report) -> Table:
    """A table of so many delivery rows, give or take those that the lagging node lacks."""
    part = home / "part=bench"
    data = part / "bad=0" / "shard=0"
    data.mkdir(parents=True)
    each = rows // NODES
    done = 0
    for node in range(NODES):
        for number, batches in enumerate(_files(node, each)):
            name = data / f"part-{node}-{number}.parquet"
            with pq.ParquetWriter(name, _SCHEMA, compression="zstd") as writer:
                for batch in batches:
                    writer.write_batch(batch)
                    done += batch.num_rows
                    report(done, rows)
    manifest = Manifest(RUN, tuple("abcde"), protocol="totem", mode="views")
    return Table(home).add(TablePart(part.name, {}, (manifest.to_json(),), {}, {RUN: rows}))


_SCHEMA = pa.schema(
    [
        ("run", pa.string()),
        ("source", pa.string()),
        ("place", pa.string()),
        ("reason", pa.string()),
        *EVENT_FIELDS,
    ]
)
ALL, FEWER = tuple(range(NODES)), tuple(range(NODES - 1))
FIRST, PASSING, SECOND = (4, 0, REGULAR), (6, 0, TRANSITIONAL), (8, 0, REGULAR)


def _files(node: int, each: int) -> Iterator[Iterator[Any]]:
    """The rows of a node, file by file and batch by batch."""
    crash = each * 4 // 5
    stretches = [(FIRST, ALL, 0, crash)]
    if node == NODES - 1:
        stretches = [(FIRST, ALL, 0, crash - 1000)]
    else:
        stretches += [(PASSING, FEWER, crash, crash + 10), (SECOND, FEWER, crash + 10, each)]
    lseq = 0
    for view, members, start, end in stretches:
        yield iter([_install(node, lseq, view, members)])
        lseq += 1
        for first in range(start, end, FILE_ROWS):
            last = min(end, first + FILE_ROWS)
            yield _batches(node, lseq - first, view, first, last)
            lseq += last - first
    if node == NODES - 1:
        yield iter([_batch_of([Row(Kind.CRASH, node, 0, lseq, gseq=lseq * NODES + node)])])


def _install(node: int, lseq: int, view: tuple[int, int, int], members: tuple[int, ...]) -> Any:
    seq, rep, kind = view
    gseq = lseq * NODES + node
    row = Row(Kind.INSTALL, node, 0, lseq, gseq=gseq, c_seq=seq, c_rep=rep, c_kind=kind)
    return _batch_of([row._replace(members=members, primary=kind == REGULAR)])


def _batch_of(rows: list[Row]) -> Any:
    words = [pa.array([word] * len(rows), pa.string()) for word in (RUN, "bench", None, None)]
    return pa.RecordBatch.from_arrays([*words, *to_arrays(rows)], schema=_SCHEMA)


def _batches(
    node: int, shift: int, view: tuple[int, int, int], first: int, last: int
) -> Iterator[Any]:
    for start in range(first, last, GROUP_ROWS):
        yield _deliveries(node, shift, view, np.arange(start, min(last, start + GROUP_ROWS)))


def _deliveries(node: int, shift: int, view: tuple[int, int, int], place: Any) -> Any:
    """Deliveries number `place` of the run: senders take turns, seven messages each."""
    turn, number = np.divmod(place, 7)
    round_, sender = np.divmod(turn, NODES - 1)
    ring = FIRST if view[2] == TRANSITIONAL else view
    lseq = place + shift
    known: dict[str, Any] = {
        "proc": node,
        "inc": 0,
        "lseq": lseq,
        "gseq": lseq * NODES + node,
        "t_ns": lseq * 10_000 + node,
        "lam": lseq,
        "m_src": sender,
        "m_inc": 0,
        "m_seq": round_ * 7 + number,
        "svc": 2,
        "k0": ring[0],
        "k1": ring[1],
        "k2": place + 1,
        "k3": 0,
        "c_seq": view[0],
        "c_rep": view[1],
        "c_kind": view[2],
        "digest": place * 2654435761 % 2**32,
        "size": 100,
        "count": 1,
    }
    words = {"run": RUN, "source": "bench", "kind": str(Kind.DELIVER), "layer": "to", "tag": ""}
    arrays = []
    for name, type_ in zip(_SCHEMA.names, _SCHEMA.types, strict=True):
        if name in words:
            arrays.append(pa.array([words[name]] * len(place), type_))
        elif name in known:
            arrays.append(pa.array(np.broadcast_to(known[name], len(place)), type_, safe=False))
        else:
            arrays.append(pa.nulls(len(place), type_))
    return pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)


# The peer, and the meters.


def duckdb_order(home: Path) -> float | None:
    """Processor seconds of the order check by blocks in DuckDB; None if it is not there."""
    try:
        import duckdb
    except ImportError:
        return None
    files = home / "*" / "*" / "*" / "*.parquet"
    start = time.process_time()
    with duckdb.connect() as database:
        database.execute("SET threads = 2")
        database.execute(
            f"""
            SELECT count(*) FROM (
              SELECT k0, k1, block FROM (
                SELECT proc, k0, k1, k2 // {BLOCK_KEYS} AS block, count(*) AS messages,
                       bit_xor(hash(k2, k3, m_src, m_inc, m_seq)) AS print
                FROM read_parquet('{files}') WHERE kind = 'deliver' GROUP BY ALL)
              GROUP BY ALL
              HAVING count(DISTINCT messages) > 1 OR count(DISTINCT print) > 1)
            """
        ).fetchall()
    return time.process_time() - start


class Meter:
    """Processor seconds of a process and all below it, of those that end meanwhile as well."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._before = _ticks_below(root)
        self._spent: dict[_Process, int] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self.sample()

    def sample(self) -> None:
        """Ask everybody how long they have run so far."""
        self._spent |= _ticks_below(self._root)

    def _watch(self) -> None:
        while not self._over.wait(SAMPLE_S):
            self.sample()

    @property
    def cpu_s(self) -> float:
        spent = sum(ticks - self._before.get(who, 0) for who, ticks in self._spent.items())
        return spent / os.sysconf("SC_CLK_TCK")


SAMPLE_S = 0.25

_Process = tuple[int, int]
"""Its number and when it began: numbers come back."""


def _ticks_below(root: int) -> dict[_Process, int]:
    """How long a process and all below it have run."""
    parents: dict[int, int] = {}
    spent: dict[int, tuple[_Process, int]] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # It ended meanwhile.
        pid = int(entry.name)
        parents[pid] = int(fields[1])
        spent[pid] = (pid, int(fields[19])), int(fields[11]) + int(fields[12])
    found = {}
    for pid, (who, ticks) in spent.items():
        above = pid
        while above not in (0, root):
            above = parents.get(above, 0)
        if above == root:
            found[who] = ticks
    return found


def _peak_mb(pid: int) -> float:
    """The largest resident size of a process so far."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1000
    return 0.0


def _live_mb(gateway: Any) -> float:
    runtime = gateway.jvm.java.lang.Runtime.getRuntime()
    runtime.gc()
    return float(runtime.totalMemory() - runtime.freeMemory()) / 1e6


def _shuffled(spark: Any) -> int:
    """Bytes written to shuffles so far."""
    context = spark.sparkContext
    store = context._jsc.sc().statusStore()
    quantiles = context._gateway.new_array(context._jvm.double, 0)
    nothing = context._jvm.java.util.ArrayList()
    stages = store.stageList(nothing, False, False, quantiles, nothing)
    return sum(stages.apply(i).shuffleWriteBytes() for i in range(stages.size()))
