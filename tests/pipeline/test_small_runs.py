"""Small runs: who reads which rows, and what is said of them."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from tests.unit.check.trial import recounted

from roundelay.check import Profile, check
from roundelay.check.profiles import Promise, Standing
from roundelay.pipeline.arrow import EVENT_FIELDS, to_arrays
from roundelay.pipeline.judge.small_runs import SmallRun, _dealt, _Group, _groups, _judge, _read
from roundelay.trace import mini
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import Row

PROFILE = Profile("T1 and O1", tuple(Promise(n, Standing.PROMISED) for n in ("T1", "O1")))


def small(run: str, rows: int, manifest: Manifest | None = None) -> SmallRun:
    return SmallRun(run, rows, manifest, PROFILE, ())


def batch(run: str, rows: list[Row]) -> Any:
    names = [name for name, _ in EVENT_FIELDS]
    arrays = [pa.array([run] * len(rows)), *to_arrays(rows)]
    return pa.RecordBatch.from_arrays(arrays, names=["run", *names])


def test_tasks_get_neighbours_and_none_is_left_out():
    runs = [small(f"r{number:02}", 10) for number in range(40)]
    odd = _Group("x", 0, frozenset(run.run for run in runs[1::2]))
    even = _Group("x", 1, frozenset(run.run for run in runs[::2]))
    bunches = list(_dealt(runs[::-1], [odd, even], 4))
    assert [run for bunch in bunches for run in bunch] == [*runs[1::2], *runs[::2]]
    assert 4 <= len(bunches) <= 6


def test_a_large_one_among_them_has_a_task_for_itself():
    bunches = list(_dealt([small("a", 10), small("b", 300_000), small("c", 10)], [], 1))
    assert [[run.run for run in bunch] for bunch in bunches] == [["a"], ["b"], ["c"]]


def test_a_run_is_read_from_wherever_its_rows_are(tmp_path: Path):
    _, rows = mini.parse("p!a p.a q.a p!b p.b q.b")
    for name, contents in {
        "one": [("a", rows[:2]), ("b", rows)],
        "two": [("a", rows[2:]), ("c", rows)],
    }.items():
        parts = [batch(run, some) for run, some in contents]
        with pq.ParquetWriter(tmp_path / name, parts[0].schema) as writer:
            for part in parts:
                writer.write_batch(part)
    groups = [group for name in ("one", "two") for group in _groups(tmp_path / name)]
    assert [sorted(group.runs) for group in groups] == [["a"], ["b"], ["a"], ["c"]]
    every = [(group.path, group.group) for group in groups]
    read = _read({"a", "c"}, every)
    assert {run: sum(p.num_rows for p in parts) for run, parts in read.items()} == {"a": 6, "c": 6}


def test_it_is_judged_as_the_local_checker_would_and_lost_rows_are_a_problem():
    manifest, rows = mini.parse("p!a p!b p.a q.b q.a p.b")
    manifest = recounted(manifest, rows)
    judged = _judge(small("a", len(rows), manifest), [batch("a", rows[:3]), batch("a", rows[3:])])
    assert judged.problems == []
    assert judged.report == check(rows, manifest, profile=PROFILE)
    assert judged.report["O1"].validity == "violated"
    lost = _judge(small("a", len(rows), manifest), [batch("a", rows[:-1])])
    assert "manifest counts" in lost.problems[0]
    assert lost.report["O1"].validity == "inconclusive"
