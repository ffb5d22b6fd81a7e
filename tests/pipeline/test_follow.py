"""What running nodes write goes into a table: each row once, as `ingest` would put it there."""

import shutil
from pathlib import Path

import pytest
from tests.pipeline.live_traces import parts, played

pytest.importorskip("pyspark")

from roundelay.pipeline.errors import plain
from roundelay.pipeline.ingest.into_table import ingest
from roundelay.pipeline.ingest.table import Table
from roundelay.pipeline.live.follow import CHECKPOINT, Added, follow
from roundelay.trace.schema import COLUMNS


class KilledError(Exception):
    """In the place of `kill -9`: nothing is tidied up."""


def rows(spark, home: Path) -> list[str]:
    frame = Table.open(home).events(spark).select("run", "source", *COLUMNS)
    return sorted(map(repr, (tuple(row) for row in frame.collect())))


def once(spark, source: Path, home: Path) -> list[Added]:
    batches: list[Added] = []
    follow(spark, [source], home, once=True, told=batches.append)
    return batches


def test_followed_and_ingested_are_the_same_table_also_after_kills(
    spark, live, tmp_path, monkeypatch
):
    """Two nodes write Parquet and one lines. The driver dies once before the rows are in the table,
    and once between that and the checkpoint."""
    manifest, all_rows = played()
    nodes = live(tmp_path / "in", manifest, {0: "parquet", 1: "parquet", 2: "jsonl"})
    home = tmp_path / "followed"
    first, second, third = parts(all_rows, 3)
    nodes.write(first)
    assert [added.rows for added in once(spark, tmp_path / "in", home)] == [len(first)]

    nodes.write(second, roll=False)
    nodes.write([], roll=True)
    with monkeypatch.context() as dying:

        def die(*_: object) -> None:
            raise KilledError

        dying.setattr(Table, "add", die)
        with pytest.raises(Exception, match="Killed"):
            once(spark, tmp_path / "in", home)
    with pytest.raises(Exception, match="Killed"):
        follow(spark, [tmp_path / "in"], home, once=True, told=die)
    (again,) = once(spark, tmp_path / "in", home)
    assert (again.rows, again.files) == (0, 0), "they are in the table already"

    nodes.write(third)
    assert [added.rows for added in once(spark, tmp_path / "in", home)] == [len(third)]
    assert Table.open(home).manifests["live"].rows is None
    nodes.close()
    assert once(spark, tmp_path / "in", home) == [], "only the manifests say more"
    assert ingest(spark, [tmp_path / "in"], home).part is None
    batch = ingest(spark, [tmp_path / "in"], tmp_path / "ingested").table
    assert rows(spark, home) == rows(spark, tmp_path / "ingested")
    assert len(rows(spark, home)) == len(all_rows)
    table = Table.open(home)
    assert table.manifests == batch.manifests
    assert (table.problems, batch.problems) == ({}, {})


def test_lines_are_in_the_table_once_whichever_way_they_come_in(spark, live, tmp_path):
    manifest, all_rows = played()
    nodes = live(tmp_path / "in", manifest, "jsonl")
    home = tmp_path / "table"
    mine = [row for row in all_rows if row.proc == 0]
    piece = tmp_path / "in" / "a-0.000000.jsonl"

    def grow(start: int, end: int, more: str = "") -> None:
        nodes.write(mine[start:end], roll=False)
        with piece.open("a") as file:
            file.write(more)

    grow(0, 20, more='{"kind"')
    ingest(spark, [tmp_path / "in"], home)
    piece.write_text(piece.read_text().removesuffix('{"kind"'))
    grow(20, 30)
    once(spark, tmp_path / "in", home)
    grow(30, 40)
    shutil.rmtree(home / CHECKPOINT)
    assert [added.rows for added in once(spark, tmp_path / "in", home)] == [10]
    grow(40, 50)
    ingest(spark, [tmp_path / "in"], home)
    assert len(rows(spark, home)) == len(set(rows(spark, home))) == 50
    assert Table.open(home).problems == {}
    nodes.close()
    ingest(spark, [tmp_path / "in"], home)
    assert Table.open(home).manifests["live"].rows == {"0.0": 50}
    # Another file in its place, which is longer.
    piece.write_text(piece.read_text().replace('"live"', '"life"') * 2)
    (tmp_path / "in" / "a-0.manifest.json").unlink()
    ingest(spark, [tmp_path / "in"], home)
    assert Table.open(home).rows == {"live": 50, "life": 100}


def test_a_checkpoint_whose_files_are_gone_is_told_in_a_sentence(spark, live, tmp_path):
    manifest, all_rows = played()
    nodes = live(tmp_path / "in", manifest)
    nodes.write(all_rows[:200])
    once(spark, tmp_path / "in", tmp_path / "table")
    nodes.close()
    for path in (tmp_path / "in").iterdir():
        path.unlink()
    with pytest.raises(Exception, match="is gone") as failed:
        once(spark, tmp_path / "in", tmp_path / "table")
    assert "is gone, of which a part was read; copy it back to where it was" in str(
        plain(failed.value)
    )
