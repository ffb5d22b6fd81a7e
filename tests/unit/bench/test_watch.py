"""What `bench watch` judges is a run without a fault, and all of it is judged."""

from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from roundelay.bench import watch
from roundelay.check import Validity, check
from roundelay.trace.reader import read


def test_its_traces_are_right_and_come_in_pieces(tmp_path: Path) -> None:
    pieces = watch._write(tmp_path / "made", 600, 3)
    assert pieces == 3
    assert len(list((tmp_path / "made").glob("*.parquet"))) == 9
    found = read(tmp_path / "made")
    assert len(found.rows) == 1803
    assert not found.problems
    report = check(found.rows, found.manifest)
    assert not report.violated
    assert report["O4"].validity is Validity.OK
    assert watch._alone(tmp_path / "made", tmp_path / "out") > 0


def test_a_row_that_was_not_judged_makes_it_fail() -> None:
    fine = watch.Figures(5, 5, 1, 5, 5, 5, 1, 1, 0, 1, 1, 1, 0, 0)
    assert fine.ok
    for change in ({"judged": 4}, {"left_out": 1}, {"violations": 1}, {"planted": 1}):
        assert not replace(fine, **change).ok


def test_what_is_planted_is_in_the_pieces_of_that_second(tmp_path: Path) -> None:
    watch._write(tmp_path, 600, 3, plant=1)
    found = read(tmp_path)
    assert len(found.rows) == watch._total(600, 3, 1) == 1804
    (broken,) = check(found.rows, found.manifest, profile=["T1", "D1", "D2", "O4"]).violated
    assert broken.property == "D2"
    first, second = broken.witness
    times = pq.read_table(next(tmp_path.glob("a-1.000001.parquet"))).column("lseq").to_pylist()
    assert {first.lseq, second.lseq} <= set(times)


def test_a_breach_is_told_so_many_batches_after_it_was_there(tmp_path: Path) -> None:
    told = watch._Told(tmp_path)
    told.ended = [1.0, 3.0, 5.0, 7.0]
    fine = watch.Figures(5, 5, 1, 5, 5, 5, 1, 1, 0, 1, 1, 1, 0, 1)
    assert watch._told_of(fine, told, 2.0).told_batches is None
    told.violations.append((4.5, 2))
    late = watch._told_of(fine, told, 2.0)
    assert (late.told_s, late.told_batches, late.ok) == (2.5, 2, True)
