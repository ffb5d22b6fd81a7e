"""Rows survive both formats, the hash does not see which it was, and the manifest comes last."""

import errno
import hashlib
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from tests.traces import NODES, rows

from roundelay.core.effects import Kind
from roundelay.trace import writer as writer_module
from roundelay.trace.manifest import Manifest, TraceError
from roundelay.trace.mini import parse
from roundelay.trace.parquet import arrow_schema
from roundelay.trace.reader import read
from roundelay.trace.schema import COLUMNS, SCHEMA_VERSION, Row
from roundelay.trace.writer import Format, Sink, Writer, canonical, fingerprint

TEXT = "p+V1{p,q}! q+V1{p,q} p!a/s{q}%x q?a q.a=7%x pX p^9 p~T2{p} end{p}{q}"
FORMATS: list[Format] = ["parquet", "jsonl"]


def write(directory: Path, rows: list[Row], format: Format, **options: int) -> Manifest:
    with Writer(directory, Manifest("r", NODES), format=format, **options) as trace:  # type: ignore[arg-type]
        for row in rows:
            trace.append(row)
        return trace.close()


@settings(deadline=None, max_examples=30)
@given(rows())
def test_rows_survive_both_formats(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Row]
) -> None:
    hashes = {fingerprint(rows)}
    for format in FORMATS:
        directory = tmp_path_factory.mktemp(format)
        hashes.add(write(directory, rows, format, batch_rows=4).sha256)
        if rows:
            trace = read(directory, verify=True)
            assert trace.rows == rows
            assert trace.problems == []
            assert [type(row.kind) for row in trace.rows] == [str] * len(rows)
            hashes.add(fingerprint(trace.rows))
    assert len(hashes) == 1


@pytest.mark.parametrize("format", FORMATS)
def test_a_trace_is_a_data_file_and_a_manifest(tmp_path: Path, format: Format) -> None:
    manifest, rows = parse(TEXT)
    with Writer(tmp_path / "deep" / "down", manifest, format=format) as trace:
        for row in rows:
            trace.append(row)
        assert not trace.manifest_path.exists()
        written = trace.close(bound_ns=5)
    files = sorted(path.name for path in (tmp_path / "deep" / "down").iterdir())
    assert files == ["manifest.json", f"trace.{format}"]
    assert written.rows == manifest.rows
    assert written.bound_ns == 5
    assert read(tmp_path / "deep" / "down").manifest == written


def test_the_hash_is_over_canonical_rows() -> None:
    _, rows = parse(TEXT)
    whole = hashlib.sha256(b"".join(canonical(row) for row in rows)).hexdigest()
    assert fingerprint(rows) == whole
    assert fingerprint(iter(rows)) == whole
    assert fingerprint(rows[::-1]) != whole


def test_canonical_is_a_json_array_of_the_columns() -> None:
    row = Row(Kind.DELIVER, 1, 0, 2, tag="\N{SNOWMAN}", dst=(0, 2), primary=True)
    text = canonical(row)
    assert text.endswith(b"],")
    assert b" " not in text
    values = dict(zip(COLUMNS, json.loads(text[:-1]), strict=True))
    assert values["kind"] == "deliver"
    assert values["tag"] == "\N{SNOWMAN}"
    assert values["dst"] == [0, 2]
    assert values["primary"] is True
    assert values["x"] is None


def test_the_hash_can_be_switched_off(tmp_path: Path) -> None:
    manifest, rows = parse(TEXT)
    with Writer(tmp_path, manifest, hashed=False) as trace:
        for row in rows:
            trace.append(row)
    assert trace.manifest.sha256 == ""
    assert read(tmp_path).problems == []


def test_a_batch_bounds_what_is_kept_in_memory(tmp_path: Path) -> None:
    with Writer(tmp_path, Manifest("r", NODES), format="jsonl", batch_rows=3) as trace:
        lengths = []
        for lseq in range(7):
            trace.append(Row("crash", 0, 0, lseq))
            lengths.append(len(trace.path.read_text().splitlines()))
        assert lengths == [0, 0, 3, 3, 3, 6, 6]
        trace.flush()
        assert len(trace.path.read_text().splitlines()) == 7
    assert trace.manifest.rows == {"0.0": 7}


def test_json_lines_leave_nulls_out(tmp_path: Path) -> None:
    write(tmp_path, [Row("crash", 0, 0, 0, prev_c=(4, 1, 0))], "jsonl")
    assert json.loads((tmp_path / "trace.jsonl").read_text()) == {
        "run": "r",
        "kind": "crash",
        "proc": 0,
        "inc": 0,
        "lseq": 0,
        "t_ns": 0,
        "lam": 0,
        "layer": "to",
        "tag": "",
        "prev_c": {"seq": 4, "rep": 1, "kind": 0},
        "count": 1,
    }


def test_parquet_has_the_types_of_the_schema(tmp_path: Path) -> None:
    manifest, rows = parse(TEXT)
    with Writer(tmp_path, manifest, format="parquet") as trace:
        for row in rows:
            trace.append(row)
    schema = pq.read_schema(trace.path)
    assert schema.equals(arrow_schema())
    assert schema.names == ["run", *COLUMNS]
    assert schema.metadata[b"roundelay.schema"] == str(SCHEMA_VERSION).encode()
    assert schema.field("proc").type == pa.int16()
    assert schema.field("inc").type == schema.field("m_inc").type == pa.int64()
    assert schema.field("members").type == pa.list_(pa.int16())
    assert set(pq.read_table(trace.path)["run"].to_pylist()) == {"mini"}


def test_a_new_trace_replaces_the_old_one_of_either_format(tmp_path: Path) -> None:
    write(tmp_path, [Row("crash", 0, 0, 0)], "jsonl")
    trace = Writer(tmp_path, Manifest("r", NODES), format="parquet")
    trace.abandon()
    assert [path.name for path in tmp_path.iterdir()] == ["trace.parquet"]


def test_writers_of_different_names_share_a_directory(tmp_path: Path) -> None:
    for proc, name in enumerate(NODES):
        with Writer(tmp_path, Manifest("r", NODES), name=name, format=FORMATS[proc % 2]) as trace:
            trace.append(Row("crash", proc, 0, 0))
    trace_read = read(tmp_path)
    assert [row.proc for row in trace_read.rows] == [0, 1, 2]
    assert trace_read.problems == []
    assert trace_read.manifest is not None
    assert trace_read.manifest.rows == {"0.0": 1, "1.0": 1, "2.0": 1}


def test_a_block_that_fails_leaves_no_manifest(tmp_path: Path) -> None:
    def run() -> None:
        with Writer(tmp_path, Manifest("r", NODES), format="jsonl") as trace:
            trace.append(Row("crash", 0, 0, 0))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run()
    cut = read(tmp_path)
    assert len(cut.rows) == 1
    assert "no manifest" in cut.problems[0]


def append_all(trace: Writer, count: int) -> None:
    for lseq in range(count):
        trace.append(Row("crash", 0, 0, lseq))


class SmallDisk(io.BytesIO):
    """A file on a disk that is nearly full."""

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self.capacity = capacity

    def write(self, data: Any, /) -> int:
        if self.tell() + len(data) > self.capacity:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(data)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("capacity", [0, 4, 500, 3000])
def test_a_full_disk_is_one_sentence(
    tmp_path: Path, format: Format, capacity: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "_create", lambda path: SmallDisk(capacity))

    def run() -> None:
        with Writer(tmp_path, Manifest("r", NODES), format=format, batch_rows=10) as trace:
            append_all(trace, 40)

    sentence = r"cannot write the trace to .*: .*No space left on device.*another directory"
    with pytest.raises(TraceError, match=sentence):
        run()
    # Parquet begins with four bytes: on the smallest disk there was no writer to say anything.
    if format == "parquet" and capacity < 4:
        assert not (tmp_path / "manifest.json").exists()
    else:
        manifest = Manifest.from_json((tmp_path / "manifest.json").read_text())
        assert manifest.ended == {"0.0": "its disk was full"}


def test_what_a_full_disk_left_is_whole_batches_and_the_reader_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "_create", lambda path: NearlyFull(path, 1500))
    trace = Writer(tmp_path, Manifest("r", NODES), format="jsonl", batch_rows=10, name="b")
    with pytest.raises(TraceError, match="No space left"):
        append_all(trace, 40)
    trace.abandon()
    left = read(tmp_path)
    assert len(left.rows) == 10  # The second batch was half written.
    assert left.problems == ["the trace of node a ends early, its disk was full"]
    assert left.manifest is not None
    assert left.manifest.rows == {"0.0": 10}


def test_a_disk_without_room_for_a_manifest_leaves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "_create", lambda path: NearlyFull(path, 1500))
    monkeypatch.setattr(Path, "write_text", _no_space)
    trace = Writer(tmp_path, Manifest("r", NODES), format="jsonl", batch_rows=10)
    with pytest.raises(TraceError, match="No space left"):
        append_all(trace, 40)
    trace.abandon()
    assert not trace.manifest_path.exists()
    assert "there is no manifest" in read(tmp_path).problems[0]


def _no_space(*_: Any, **__: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


class NearlyFull(io.FileIO):
    """A real file on a disk with room for so many bytes."""

    def __init__(self, path: Path, capacity: int) -> None:
        super().__init__(path, "wb")
        self.capacity = capacity

    def write(self, data: Any, /) -> int:
        room = max(0, self.capacity - self.tell())
        super().write(data[:room])
        if room < len(data):
            _no_space()
        return len(data)


def test_after_a_failure_nothing_more_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = SmallDisk(500)
    monkeypatch.setattr(writer_module, "_create", lambda path: disk)
    trace = Writer(tmp_path, Manifest("r", NODES), format="jsonl", batch_rows=10)
    with pytest.raises(TraceError):
        append_all(trace, 10)
    disk.capacity = 10**6
    with pytest.raises(TraceError, match="No space left"):
        trace.flush()
    with pytest.raises(TraceError, match="No space left"):
        trace.close()
    trace.abandon()
    assert Manifest.from_json(trace.manifest_path.read_text()).rows == {}


def test_a_directory_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(TraceError, match=r"cannot write the trace to .*another directory"):
        Writer(tmp_path / "file" / "trace", Manifest("r", NODES))


@pytest.mark.parametrize(
    "row",
    [
        Row("crash", 1 << 15, 0, 0),
        Row("crash", 0, 1 << 63, 0),
        Row("crash", 0, 0, 0, x="\ud800"),
        Row("crash", 0, 0, 0, members=(1 << 15,)),
    ],
)
def test_a_row_that_does_not_fit_is_named_by_its_column(tmp_path: Path, row: Row) -> None:
    trace = Writer(tmp_path, Manifest("r", NODES), format="parquet")
    trace.append(row)
    with pytest.raises(TraceError, match=r"does not fit the column (proc|inc|x|members)"):
        trace.close()
    trace.abandon()
    assert not trace.manifest_path.exists()


def test_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "earlier", [Row("crash", 0, 0, 0)], "parquet")
    monkeypatch.delattr("roundelay.trace.parquet")
    monkeypatch.setitem(sys.modules, "roundelay.trace.parquet", None)
    with pytest.raises(TraceError, match=r"pip install '.*\[trace\]'"):
        Writer(tmp_path, Manifest("r", NODES), format="parquet")
    with pytest.raises(TraceError, match=r"pip install '.*\[trace\]'"):
        read(tmp_path / "earlier")
    with Writer(tmp_path, Manifest("r", NODES), format="auto") as trace:
        trace.append(Row("crash", 0, 0, 0))
    assert trace.path.suffix == ".jsonl"
    assert read(tmp_path).problems == []


def test_a_trace_of_json_lines_needs_no_pyarrow() -> None:
    code = "import sys, roundelay.trace.reader; print('pyarrow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_list_is_a_sink_too(tmp_path: Path) -> None:
    rows: list[Row] = []
    with Writer(tmp_path, Manifest("r", NODES)) as trace:
        sinks: list[Sink] = [rows, trace]
        for sink in sinks:
            sink.append(Row("crash", 0, 0, 0))
    assert read(tmp_path).rows == rows


def test_a_manifest_from_the_start_says_what_is_lost_until_the_trace_is_closed(tmp_path):
    manifest = Manifest("run", NODES)
    writer = Writer(tmp_path, manifest, format="jsonl", unclosed={"0.0": "as it was killed"})
    writer.append(Row(Kind.TOKEN, 0, 0, 0, tag="acquire"))
    writer.flush()
    assert read(tmp_path).problems == [
        "the trace of node a ends early, as it was killed",
        "the manifest does not count the rows, so some may be missing at the end",
    ]
    writer.close()
    assert read(tmp_path).problems == []
    written = Manifest.from_json((tmp_path / "manifest.json").read_text())
    assert written.ended == {}
    assert written.rows == {"0.0": 1}
