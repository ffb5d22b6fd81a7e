"""A trace in pieces: whole files that can be read while the rest is written."""

import dataclasses
import errno
import os
from pathlib import Path

import pytest

from roundelay.runtime.collect import collect
from roundelay.trace import writer as writer_module
from roundelay.trace.manifest import Manifest, TraceError
from roundelay.trace.pieces import PieceWriter
from roundelay.trace.reader import read
from roundelay.trace.schema import Row
from roundelay.trace.writer import Format

MANIFEST = Manifest(run="r", nodes=("a", "b"))
FORMATS: list[Format] = ["parquet", "jsonl"]
LOST = "as its node was killed"


def row(number: int) -> Row:
    return Row("token", 0, 7, number, tag="acquire", lam=number)


def write(directory: Path, format: Format, *batches: range, close: bool = True) -> PieceWriter:
    """A life of node a, with a roll behind each batch."""
    writer = PieceWriter(directory, MANIFEST, name="a-7", unclosed={"0.7": LOST}, format=format)
    for batch in batches:
        for number in batch:
            writer.append(row(number))
        writer.roll()
    if close:
        writer.close()
    return writer


def manifest(directory: Path) -> Manifest:
    return Manifest.from_json((directory / "a-7.manifest.json").read_text())


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


@pytest.mark.parametrize("format", FORMATS)
def test_pieces_together_are_the_trace(tmp_path: Path, format: Format) -> None:
    write(tmp_path, format, range(3), range(3, 5))
    found = read(tmp_path)
    assert (found.rows, found.problems) == ([row(n) for n in range(5)], [])
    pieces = [f"a-7.{number:06}.{format}" for number in range(2)]
    assert names(tmp_path) == [*pieces, "a-7.manifest.json"]
    assert manifest(tmp_path).rows == {"0.7": 5}
    assert read(tmp_path / pieces[1]) == found


@pytest.mark.parametrize("format", FORMATS)
def test_a_piece_can_be_read_as_soon_as_the_manifest_counts_it(
    tmp_path: Path, format: Format
) -> None:
    writer = write(tmp_path, format, range(3), close=False)
    writer.append(row(3))
    assert (manifest(tmp_path).pieces, manifest(tmp_path).rows) == (1, None)
    assert manifest(tmp_path).ended == {"0.7": LOST}
    assert read(tmp_path).rows == [row(n) for n in range(3)]
    writer.roll()
    assert manifest(tmp_path).pieces == 2
    assert read(tmp_path).rows == [row(n) for n in range(4)]
    writer.close()
    assert (manifest(tmp_path).pieces, manifest(tmp_path).ended) == (2, {})


def test_the_last_piece_is_counted_by_the_manifest_that_counts_all_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who reads the piece before that would not look at the manifest again."""
    writer = write(tmp_path, "parquet", range(3), close=False)
    written: list[Manifest] = []
    monkeypatch.setattr(writer, "_write_manifest", written.append)
    writer.append(row(3))
    writer.close()
    assert [(one.pieces, one.rows) for one in written] == [(2, {"0.7": 4})]


def test_what_a_killed_writer_flushed_can_be_read_from_lines_and_not_from_parquet(
    tmp_path: Path,
) -> None:
    for format, there in (("jsonl", 4), ("parquet", 3)):
        directory = tmp_path / format
        writer = write(directory, format, range(3), close=False)  # type: ignore[arg-type]
        writer.append(row(3))
        writer.flush()
        found = read(directory)
        assert found.rows == [row(n) for n in range(there)]
        assert found.problems[0] == f"the trace of node a ends early, {LOST}"
        writer.close()


def test_no_piece_is_empty(tmp_path: Path) -> None:
    writer = write(tmp_path, "jsonl", range(2), range(0), range(0), close=False)
    assert names(tmp_path) == ["a-7.000000.jsonl", "a-7.000001.jsonl.new", "a-7.manifest.json"]
    writer.close()
    assert names(tmp_path) == ["a-7.000000.jsonl", "a-7.manifest.json"]


def test_a_piece_that_is_gone_is_noticed(tmp_path: Path) -> None:
    write(tmp_path, "parquet", range(2), range(2, 4), range(4, 6))
    (tmp_path / "a-7.000001.parquet").unlink()
    assert read(tmp_path).problems == [
        "rows of a, incarnation 7: 4 rows where the manifest counts 6, 2 missing from lseq 2 on"
    ]


def test_collect_joins_the_pieces_of_each_life(tmp_path: Path) -> None:
    write(tmp_path / "in", "parquet", range(2), range(2, 4))
    other = dataclasses.replace(MANIFEST)
    with PieceWriter(tmp_path / "in", other, name="b-9", unclosed={}) as writer:
        writer.append(Row("token", 1, 9, 0, tag="acquire"))
    joined = collect(tmp_path / "in", tmp_path / "out")
    assert joined.rows == {"0.7": 5, "1.9": 2}  # With a crash each.
    assert joined.pieces == 0
    assert not read(tmp_path / "out").problems


@pytest.mark.parametrize("format", FORMATS)
def test_after_a_full_disk_the_whole_pieces_are_left_and_the_manifest_says_why(
    tmp_path: Path, format: Format, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = write(tmp_path, format, range(3), close=False)

    def full(path: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(writer_module, "_create", full)
    writer.append(row(3))
    with pytest.raises(TraceError, match="No space left on device"):
        writer.roll()
    writer.abandon()
    found = read(tmp_path)
    assert found.rows == [row(n) for n in range(4)]
    assert found.problems == ["the trace of node a ends early, its disk was full"]
