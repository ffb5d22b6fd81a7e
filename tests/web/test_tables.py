"""Verdicts and measures, as the page gets them."""

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from roundelay.web import tables
from roundelay.web.asked import AskedWrongError
from roundelay.web.tables import MEASURES, VERDICTS, read


def verdict(name: str, said: str, **more: Any) -> dict[str, Any]:
    told = {"run": "r", "ring": None, "property": name, "standing": "promised", "verdict": said}
    return {**told, "instances": 3, "reason": "", "witness": ["0.1.2"], **more}


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    pq.write_table(pa.Table.from_pylist(rows), path)


def test_what_is_broken_comes_first_with_what_it_says(tmp_path):
    said = [verdict("T1", "ok"), verdict("O5", "violated"), verdict("T2", "vacuous")]
    write(tmp_path / VERDICTS, said)
    told = read(tmp_path)
    assert [row["property"] for row in told["verdicts"]] == ["O5", "T2", "T1"]
    assert told["verdicts"][0]["title"]
    assert told["counts"]["violated"] == told["counts"]["ok"] == 1
    assert told["measures"] == []


def test_many_verdicts_are_cut_and_none_that_is_broken(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "ROWS_MAX", 2)
    write(tmp_path / VERDICTS, [verdict("T1", "ok")] * 4 + [verdict("T2", "violated")])
    told = read(tmp_path)
    assert [row["verdict"] for row in told["verdicts"]] == ["violated", "ok"]
    assert told["left_out"] == 3
    assert told["counts"]["ok"] == 4


def test_measures_say_what_they_are(tmp_path):
    write(tmp_path / MEASURES, [{"run": "r", "measure": "own", "mean": float("nan"), "p50": 1.5}])
    (row,) = read(tmp_path)["measures"]
    assert "its own sender" in row["about"]
    assert "mean" not in row
    assert row["p50"] == 1.5


def test_live_measures_are_the_newest(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "ROWS_MAX", 2)
    write(tmp_path / MEASURES, [{"run": "r", "batch": n, "time_s": float(n)} for n in range(5)])
    told = read(tmp_path)
    assert told["live"]
    assert [row["batch"] for row in told["measures"]] == [3, 4]


def test_every_measure_of_the_pipeline_is_explained():
    text = (Path(__file__).parents[2] / "docs" / "pipeline.md").read_text()
    section = text[text.index("## Measure") :]
    for name in tables.ABOUT:
        assert f"`{name}`" in section, name


def test_a_damaged_file_is_told_of_in_a_sentence(tmp_path):
    (tmp_path / VERDICTS).write_bytes(b"this is no Parquet")
    with pytest.raises(AskedWrongError, match=r"verdicts\.parquet cannot be read"):
        read(tmp_path)


def test_a_file_that_is_replaced_is_read_again(tmp_path):
    before = tables._version(tmp_path)
    write(tmp_path / VERDICTS, [verdict("T1", "ok")])
    written = tables._version(tmp_path)
    assert before != written
    assert tables._version(tmp_path) == written
    os.utime(tmp_path / VERDICTS, ns=(1, 1))
    assert tables._version(tmp_path) != written
