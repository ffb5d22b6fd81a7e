"""What `bench watch` judges is a run without a fault, and all of it is judged."""

from dataclasses import replace
from pathlib import Path

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
    fine = watch.Figures(5, 5, 1, 5, 5, 5, 1, 1, 0, 1, 1, 0, 0)
    assert fine.ok
    for change in ({"judged": 4}, {"left_out": 1}, {"violations": 1}):
        assert not replace(fine, **change).ok
