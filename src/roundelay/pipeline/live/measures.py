"""What a run does by the second, while it runs: rates, latencies, changes of view."""

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from roundelay.core.effects import Kind
from roundelay.trace.schema import LOWER_LAYER, REGULAR, Row

MEASURES = "measures.parquet"
"""The name of the table, in the output directory of `watch`."""

COLUMNS = pa.schema(
    [
        ("run", pa.string()),
        ("batch", pa.int64()),
        ("time_s", pa.float64()),
        ("rows", pa.int64()),
        ("rows_per_s", pa.float64()),
        ("deliveries_per_s", pa.float64()),
        ("latency_p50_ms", pa.float64()),
        ("latency_p90_ms", pa.float64()),
        ("latency_p99_ms", pa.float64()),
        ("views", pa.int64()),
        ("waiting", pa.int64()),
        ("behind_s", pa.float64()),
    ]
)
"""One row for each run and batch: when it was judged, in seconds since 1970; rows judged;
deliveries; from submission to delivery; regular views installed; rows that wait for slower nodes;
how old the oldest row was that waited to be judged."""

BATCHES_MAX = 1000
"""Rows of the table. More: it takes longer to write in each batch; fewer: it shows less."""

SENT_MAX = 50_000
"""Packets whose sending is remembered until they are delivered. Too few: latencies of a slow group
are not measured; more: memory."""


class Measures:
    """Counts what the rows of one run tell."""

    def __init__(self, *, one_clock: bool) -> None:
        """With `one_clock` all nodes are on one machine, so that their times can be compared; else
        only what nodes deliver of their own is timed."""
        self._one_clock = one_clock
        self._sent: OrderedDict[tuple[int | None, int | None, int | None], int] = OrderedDict()
        self._latencies: list[int] = []
        self._rows = self._deliveries = 0
        self._views: set[tuple[int | None, int | None]] = set()

    def append(self, row: Row) -> None:
        kind = row.kind
        self._rows += 1
        if kind in (Kind.SUBMIT, Kind.ORIGINATE):
            if row.layer != LOWER_LAYER:
                self._sent.setdefault(row[10:13], row.t_ns)
                if len(self._sent) > SENT_MAX:
                    self._sent.popitem(last=False)
        elif kind == Kind.DELIVER:
            if row.layer != LOWER_LAYER:
                self._deliveries += row.count
                sent = self._sent.get(row[10:13])
                if sent is not None and (self._one_clock or row.proc == row.m_src):
                    self._latencies.append(row.t_ns - sent)
        elif kind == Kind.INSTALL and row.c_kind == REGULAR:
            self._views.add((row.c_seq, row.c_rep))

    def take(self, seconds: float) -> dict[str, float | int | None]:
        """What was counted since the last time, so many seconds ago."""
        found = self._latencies
        p50, p90, p99 = np.percentile(found, (50, 90, 99)) / 1e6 if found else (None,) * 3
        measured = {
            "rows": self._rows,
            "rows_per_s": self._rows / seconds,
            "deliveries_per_s": self._deliveries / seconds,
            "latency_p50_ms": p50,
            "latency_p90_ms": p90,
            "latency_p99_ms": p99,
            "views": len(self._views),
        }
        self._latencies, self._views = [], set()
        self._rows = self._deliveries = 0
        return measured


def write(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Replace the table."""
    beside = path.with_suffix(".tmp")
    pq.write_table(pa.Table.from_pylist(list(rows), COLUMNS), beside)
    beside.replace(path)


def read(path: Path, batch: int) -> list[dict[str, Any]]:
    """What was measured up to a batch."""
    if not path.is_file():
        return []
    rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return [row for row in rows if row["batch"] <= batch]
