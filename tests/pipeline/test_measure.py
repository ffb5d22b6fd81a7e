"""Measures of runs whose figures are known beforehand."""

import csv
from collections import Counter
from dataclasses import replace
from typing import Any

import pyarrow.parquet as pq
import pytest

from roundelay.cli.measure import described
from roundelay.pipeline.ingest.into_table import ingest
from roundelay.pipeline.measure.measure import measure
from roundelay.pipeline.measure.words import MEANINGS
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import WORLD, Row

from .conftest import write

pytestmark = pytest.mark.slow

MS = 1_000_000
RUN = Manifest("known", ("p", "q"), protocol="totem", mode="views", seed=5)


def trace() -> list[Row]:
    """p sends twice; q is slower; q crashes and p goes on alone after 30 ms."""
    view: dict[str, Any] = {"c_seq": 4, "c_rep": 0, "c_kind": 0}
    alone: dict[str, Any] = {"c_seq": 8, "c_rep": 0, "c_kind": 0}

    def about(seq: int) -> dict[str, Any]:
        return {"m_src": 0, "m_inc": 0, "m_seq": seq}

    rows = [
        Row("install", 0, 0, 0, t_ns=0, members=(0, 1), **view),
        Row("install", 1, 0, 0, t_ns=0, members=(0, 1), **view),
        Row("submit", 0, 0, 1, t_ns=10 * MS, layer="app", count=1, **about(0), **view),
        Row("originate", 0, 0, 2, t_ns=11 * MS, count=2, size=20, **about(0), **view),
        Row("order", 0, 0, 3, t_ns=13 * MS, count=2, level=1, k2=1, k3=0, **about(0), **view),
        Row("send", 0, 0, 4, t_ns=13 * MS, pkt=1, size=60, tag="DATA", **view),
        Row("deliver", 0, 0, 5, t_ns=20 * MS, count=2, size=20, k2=1, k3=0, **about(0), **view),
        Row("receive", 1, 0, 1, t_ns=15 * MS, count=2, **about(0), **view),
        Row("deliver", 1, 0, 2, t_ns=40 * MS, count=2, size=20, k2=1, k3=0, **about(0), **view),
        Row("stable", 0, 0, 6, t_ns=50 * MS, count=2, level=1, **about(0), **view),
        Row("stable", 1, 0, 3, t_ns=60 * MS, count=2, level=1, **about(0), **view),
        Row("crash", 1, 0, 4, t_ns=70 * MS, **view),
        Row("install", 0, 0, 7, t_ns=100 * MS, members=(0,), **alone),
        Row("originate", 0, 0, 8, t_ns=101 * MS, size=10, **about(2), **alone),
        Row("send", 0, 0, 9, t_ns=101 * MS, pkt=2, size=30, tag="DATA", **alone),
        Row("deliver", 0, 0, 10, t_ns=102 * MS, size=10, k2=2, k3=0, **about(2), **alone),
        Row("recover", 1, 1, 0, t_ns=120 * MS),
        Row("install", 1, 1, 1, t_ns=150 * MS, members=(1,), **(alone | {"c_rep": 1})),
        Row("end", WORLD, 0, 0, t_ns=200 * MS, members=(0, 1)),
    ]
    rows = [row._replace(k0=4, k1=0) if row.k2 is not None else row for row in rows]
    return [row._replace(gseq=place) for place, row in enumerate(rows)]


def test_measures_come_out_as_they_were_made(spark, tmp_path):
    write(tmp_path / "in", RUN, trace())
    table = ingest(spark, [tmp_path / "in"], tmp_path / "out").table
    lines = measure(spark, table, tmp_path / "out")
    found = {line.measure: line for line in lines}
    assert found.keys() <= MEANINGS.keys()
    assert "how long a sender waits" in " ".join(" ".join(described(lines)).split())
    # The first message has a submission; the others begin when they are sent.
    assert found["delivery"].count == 5
    assert found["delivery"].max == 30.0
    assert found["delivery"].mean == pytest.approx((10 + 9 + 30 + 29 + 1) / 5)
    assert found["own"].mean == pytest.approx((10 + 9 + 1) / 3)
    assert (found["order"].count, found["order"].p50) == (2, 2.0)
    assert found["stability"].mean == pytest.approx((50 + 49) / 2)
    assert found["outage"].mean == pytest.approx(102 - 20)
    assert (found["view change"].count, found["view change"].mean) == (1, 30.0)
    assert (found["recovery"].count, found["recovery"].mean) == (1, 30.0)
    assert found["frames"].mean == pytest.approx(2 / 3)
    assert found["bytes"].mean == pytest.approx(90 / 30)
    assert found["fairness of ordering"].mean == pytest.approx(0.5)

    with (tmp_path / "out" / "measures.csv").open() as file:
        rows = {row["measure"]: row for row in csv.DictReader(file)}
    assert rows["delivery"]["protocol"] == "totem"
    assert rows["delivery"]["seed"] == "5"
    assert float(rows["delivery"]["max"]) == 30.0
    assert pq.read_table(tmp_path / "out" / "measures.parquet").num_rows == len(found)

    held = spark.read.parquet(str(tmp_path / "out" / "occupancy")).orderBy("t_ns").collect()
    assert [row["messages"] for row in held if row["proc"] == 0] == [2, 0, 1]
    assert [row["messages"] for row in held if row["proc"] == 1] == [2, 0]


def test_runs_are_told_apart(spark, tmp_path):
    write(tmp_path / "in" / "one", RUN, trace())
    slow = [row._replace(t_ns=row.t_ns * 2) for row in trace()]
    write(tmp_path / "in" / "two", replace(RUN, run="slow"), slow)
    table = ingest(spark, [tmp_path / "in"], tmp_path / "out").table
    lines = measure(spark, table, tmp_path / "out")
    most = {line.run: line.max for line in lines if line.measure == "delivery"}
    assert most == {"known": 30.0, "slow": 60.0}


def test_what_a_view_leaves_behind_is_let_go(spark, tmp_path):
    """p and q hold a message that nobody claims stable: q until it crashes, p until its next
    regular view."""
    rows = [row for row in trace() if row.kind != "stable"]
    write(tmp_path / "in", RUN, renumbered(rows))
    table = ingest(spark, [tmp_path / "in"], tmp_path / "out").table
    measure(spark, table, tmp_path / "out")
    held = spark.read.parquet(str(tmp_path / "out" / "occupancy")).orderBy("t_ns").collect()
    assert [row["messages"] for row in held if row["proc"] == 0] == [2, 1]
    assert [row["messages"] for row in held if row["proc"] == 1] == [2, 0]


def renumbered(rows: list[Row]) -> list[Row]:
    """Without a gap in what each node wrote."""
    counts: Counter[tuple[int, int]] = Counter()
    found = []
    for row in rows:
        found.append(row._replace(lseq=counts[row.proc, row.inc]))
        counts[row.proc, row.inc] += 1
    return found
