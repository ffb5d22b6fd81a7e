"""Rows in compact form: nothing of them is lost, in memory or in a file."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from tests.traces import NODES, rows

from roundelay.trace.compact import NONE, NUMBERS, Batch, Compactor
from roundelay.trace.manifest import Manifest, TraceError
from roundelay.trace.pieces import PieceWriter
from roundelay.trace.reader import read
from roundelay.trace.schema import NULLABLE, Row
from roundelay.trace.writer import Format, Writer

FORMATS: list[Format] = ["parquet", "jsonl"]


def compact(rows: list[Row]) -> Batch:
    compactor = Compactor()
    for row in rows:
        compactor.append(row)
    return compactor.take()


def deliveries(count: int) -> list[Row]:
    return [Row("deliver", 0, 7, n, m_src=1, m_inc=0, m_seq=n, k2=5 * n) for n in range(count)]


@settings(deadline=None, max_examples=50)
@given(rows())
def test_rows_come_back_as_they_were(rows: list[Row]) -> None:
    batch = compact(rows)
    assert batch.rows() == rows
    assert batch.size == len(rows)
    if rows:
        assert batch.writers() == Counter((row.proc, row.inc) for row in rows)


@settings(deadline=None, max_examples=25)
@given(rows().filter(bool))
def test_a_file_has_the_same_content_whichever_way_rows_take(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Row]
) -> None:
    for format in FORMATS:
        plain, packed = (tmp_path_factory.mktemp(format) for _ in range(2))
        with Writer(plain, Manifest("r", NODES), format=format) as trace:
            for row in rows:
                trace.append(row)
        with Writer(packed, Manifest("r", NODES), format=format) as trace:
            trace.write(compact(rows[:4]))
            trace.write(compact(rows[4:]))
        one, other = read(plain, verify=True), read(packed, verify=True)
        assert (one.manifest, one.rows) == (other.manifest, other.rows)
        assert one.problems == other.problems == []
        if format == "parquet":
            tables = [pq.read_table(path / "trace.parquet") for path in (plain, packed)]
            assert tables[0].combine_chunks().equals(tables[1].combine_chunks())


def test_rows_that_differ_in_numbers_share_a_pattern() -> None:
    batch = compact(deliveries(100))
    assert len(batch.patterns) == 1
    assert set(NUMBERS) - NULLABLE == {"lseq", "t_ns", "lam", "count"}


def test_a_batch_has_patterns_of_its_own() -> None:
    compactor = Compactor()
    for lseq, kind in enumerate(("crash", "deliver")):
        compactor.append(Row(kind, 0, 0, lseq))
        batch = compactor.take()
        assert [pattern[0] for pattern in batch.patterns] == [kind]
    assert compactor.take().size == 0


@pytest.mark.parametrize("number", [NONE, NONE + 1, -1, 0, (1 << 63) - 1])
def test_every_number_of_64_bits_has_a_place(tmp_path: Path, number: int) -> None:
    made = [Row("stable", 0, 0, 0, m_seq=number), Row("stable", 0, 0, 1)]
    assert compact(made).rows() == made
    with Writer(tmp_path, Manifest("r", NODES), format="parquet") as trace:
        trace.write(compact(made))
    assert pq.read_table(tmp_path / "trace.parquet")["m_seq"].to_pylist() == [number, None]


@pytest.mark.parametrize(
    "row",
    [
        Row("stable", 0, 0, 0, m_seq=1 << 63),
        Row("stable", 0, 0, 0, size=1 << 31),
        Row("stable", 1 << 15, 0, 0),
        Row("stable", 0, 0, 0, dst=(1 << 15,)),
        Row("stable", 0, 0, 0, level=128),
    ],
)
def test_what_no_column_holds_is_an_error_of_the_trace(tmp_path: Path, row: Row) -> None:
    trace = Writer(tmp_path, Manifest("r", NODES), format="parquet")
    with pytest.raises(TraceError, match="does not fit the column"):
        trace.write(compact([row]))
    trace.abandon()


def test_batches_and_rows_keep_their_order(tmp_path: Path) -> None:
    made = deliveries(5)
    with Writer(tmp_path, Manifest("r", NODES), format="parquet") as trace:
        trace.append(made[0])
        trace.write(compact(made[1:3]))
        trace.append(made[3])
        trace.write(compact(made[4:]))
    assert read(tmp_path).rows == made
    assert trace.manifest.rows == {"0.7": 5}


@pytest.mark.parametrize("format", FORMATS)
def test_pieces_hold_batches(tmp_path: Path, format: Format) -> None:
    made = deliveries(5)
    name, unclosed = "a-7", {"0.7": "early"}
    writer = PieceWriter(
        tmp_path, Manifest("r", NODES), name=name, unclosed=unclosed, format=format
    )
    writer.write(compact(made[:3]))
    writer.roll()
    assert read(tmp_path).rows == made[:3]
    writer.write(compact(made[3:]))
    writer.close()
    assert (read(tmp_path).rows, read(tmp_path).problems) == (made, [])
    assert writer.manifest.pieces == 2


def test_a_hash_is_left_out_where_the_file_has_checksums(tmp_path: Path) -> None:
    for format in FORMATS:
        directory = tmp_path / format
        with Writer(directory, Manifest("r", NODES), format=format, hashed=None) as trace:
            trace.write(compact(deliveries(3)))
        assert bool(trace.manifest.sha256) == (format == "jsonl")
        assert read(directory).problems == []


def test_nothing_large_is_imported_when_a_batch_is_written(tmp_path: Path) -> None:
    """A busy node would stop for the half second that pandas takes."""
    code = (
        "import sys\n"
        "from roundelay.trace.compact import trial\n"
        "from roundelay.trace.manifest import Manifest\n"
        "from roundelay.trace.writer import Writer\n"
        f"trace = Writer({str(tmp_path)!r}, Manifest('r', ('a',)), format='parquet')\n"
        "before = set(sys.modules)\n"
        "trace.write(trial())\n"
        "trace.close()\n"
        "assert set(sys.modules) == before, set(sys.modules) - before\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
