"""Traces that are not as they should be: an error in one sentence, or rows with their problems."""

import dataclasses
import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roundelay.trace import jsonl
from roundelay.trace.manifest import Manifest, TraceError
from roundelay.trace.mini import parse
from roundelay.trace.reader import PROBLEMS_MAX, Trace, iterate, read, read_text
from roundelay.trace.schema import ADDED, Row
from roundelay.trace.writer import Format, Writer

TEXT = "p+V1{p,q}! q+V1{p,q} p!a/s{q}%x q?a q.a=7%x pX p^9 p~T2{p} end{p}{q}"
MANIFEST, ROWS = parse(TEXT)
FORMATS: list[Format] = ["parquet", "jsonl"]


def write(directory: Path, format: Format, rows: list[Row] = ROWS, **options: Any) -> Path:
    """The data file of a trace of these rows."""
    with Writer(directory, MANIFEST, format=format, **options) as trace:
        for row in rows:
            trace.append(row)
    return trace.path


def refusal(path: Path) -> str:
    """The one sentence in which `path` is refused."""
    with pytest.raises(TraceError) as e:
        read(path)
    sentence = str(e.value)
    assert "\n" not in sentence
    assert ";" in sentence or ":" in sentence, "it does not say what to do next"
    with pytest.raises(TraceError):
        list(iterate(path))
    return sentence


def problem(path: Path, count: int = 1) -> str:
    """What is wrong with a trace that can be read, in the words of `count` sentences."""
    trace = read(path)
    assert len(trace.problems) == count, trace.problems
    assert not any("\n" in sentence for sentence in trace.problems)
    return "; ".join(trace.problems)


def edit_lines(path: Path, edit: Callable[[list[bytes]], list[bytes]]) -> None:
    path.write_bytes(b"".join(edit(path.read_bytes().splitlines(keepends=True))))


def edit_line(path: Path, number: int, **values: Any) -> None:
    """Change values of one line; the line still parses."""

    def edit(lines: list[bytes]) -> list[bytes]:
        line = json.loads(lines[number]) | values
        lines[number] = json.dumps(line).encode() + b"\n"
        return lines

    edit_lines(path, edit)


def edit_table(path: Path, edit: Callable[[pa.Table], pa.Table]) -> None:
    """Change a Parquet file as another tool might: it then no longer tells the sha256."""
    pq.write_table(edit(pq.read_table(path)), path)


def edit_manifest(directory: Path, **fields: Any) -> None:
    path = directory / "manifest.json"
    manifest = Manifest.from_json(path.read_text())
    path.write_text(dataclasses.replace(manifest, **fields).to_json())


# Where a trace is.


@pytest.mark.parametrize("format", FORMATS)
def test_a_trace_is_read_by_its_directory_file_or_manifest(tmp_path: Path, format: Format) -> None:
    path = write(tmp_path, format)
    for name in (tmp_path, path, tmp_path / "manifest.json", str(tmp_path)):
        trace = read(name)
        assert (trace.rows, trace.problems) == (ROWS, [])
        assert trace.manifest is not None
        assert trace.manifest.nodes == ("p", "q")


def test_a_text_in_the_mini_language(tmp_path: Path) -> None:
    for name in ("small.trace", "small.txt", "small"):
        (tmp_path / name).write_text(TEXT)
        assert read(tmp_path / name) == read_text(TEXT, "small")
    assert read_text(TEXT) == Trace(MANIFEST, ROWS, [])


def test_data_files_are_known_by_their_look_too(tmp_path: Path) -> None:
    for format in FORMATS:
        path = write(tmp_path / format, format)
        other = shutil.copy(path, path.with_suffix(".data"))
        path.unlink()
        assert read(other).rows == ROWS


def test_nothing_there(tmp_path: Path) -> None:
    assert "there is no trace at" in refusal(tmp_path / "nowhere")


def test_a_directory_without_a_trace(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("hello")
    assert "holds no trace" in refusal(tmp_path)


def test_a_directory_with_a_manifest_alone(tmp_path: Path) -> None:
    write(tmp_path, "jsonl").unlink()
    assert "a manifest but no data file" in refusal(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_of_someone_else(tmp_path: Path) -> None:
    write(tmp_path, "jsonl").chmod(0)
    assert "cannot be read" in refusal(tmp_path)


@pytest.mark.parametrize("name", ["trace.parquet", "trace.jsonl", "trace.txt", "trace.trace"])
def test_an_empty_file(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    assert "is empty" in refusal(tmp_path / name)


def test_a_text_of_comments_alone(tmp_path: Path) -> None:
    (tmp_path / "a.trace").write_text("# nothing yet\n")
    assert "holds no event" in refusal(tmp_path / "a.trace")


def test_a_text_that_is_no_trace(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("p!a\nDear reader")
    assert "a.txt, line 2, column 1: 'Dear' is not an event" in refusal(tmp_path / "a.txt")


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.parquet", "a"])
@pytest.mark.parametrize("garbage", [b"\xff\xfe\x00garbage\x80", b"\x00" * 5000, b"garbage\n" * 9])
def test_garbage(tmp_path: Path, name: str, garbage: bytes) -> None:
    (tmp_path / name).write_bytes(garbage)
    sentence = refusal(tmp_path / name)
    assert sentence.startswith(str(tmp_path / name))


# Parquet.


@pytest.mark.parametrize("keep", [1, 4, 11, 100, -1])
def test_parquet_cut_short(tmp_path: Path, keep: int) -> None:
    path = write(tmp_path, "parquet")
    path.write_bytes(path.read_bytes()[:keep])
    assert ("cut short" if keep != 1 else "not a Parquet") in refusal(tmp_path)


def test_a_writer_that_was_killed_leaves_unreadable_parquet(tmp_path: Path) -> None:
    trace = Writer(tmp_path, MANIFEST, format="parquet")
    for row in ROWS:
        trace.append(row)
    trace.flush()
    assert "cut short" in refusal(tmp_path)
    trace.abandon()
    assert "there is no manifest" in problem(tmp_path)


def test_two_parquet_ends_and_nothing_between(tmp_path: Path) -> None:
    (tmp_path / "trace.parquet").write_bytes(b"PAR1" + b"\x07" * 40 + b"PAR1")
    assert "is damaged" in refusal(tmp_path)


def damage(path: Path, row_group: int) -> None:
    """Flip the last byte of a column's pages."""
    column = pq.ParquetFile(path).metadata.row_group(row_group).column(2)
    content = bytearray(path.read_bytes())
    content[column.data_page_offset + column.total_compressed_size - 1] ^= 0xFF
    path.write_bytes(content)


def test_damaged_pages_are_noticed(tmp_path: Path) -> None:
    damage(write(tmp_path, "parquet"), row_group=0)
    assert "is damaged" in refusal(tmp_path)


def test_rows_before_the_damage_are_kept(tmp_path: Path) -> None:
    damage(write(tmp_path, "parquet", batch_rows=5), row_group=1)
    batches = iterate(tmp_path, batch_rows=5)
    assert [row for batch in batches for row in batch] == ROWS[:5]
    assert "is damaged" in batches.problems[0]


@settings(
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.floats(0, 1, exclude_max=True), st.integers(1, 255), st.sampled_from(FORMATS))
def test_a_flipped_byte_never_passes(
    tmp_path: Path, where: float, flip: int, format: Format
) -> None:
    path = write(tmp_path / format, format)
    content = bytearray(path.read_bytes())
    content[int(where * len(content))] ^= flip
    path.write_bytes(content)
    try:
        trace = read(path)
    except TraceError:
        return
    # What is left are bytes that mean nothing: statistics, spaces, names of the writing library.
    assert trace.problems or trace.rows == ROWS


def test_a_parquet_file_that_is_no_trace(tmp_path: Path) -> None:
    pq.write_table(pa.table({"kind": ["a"], "colour": ["red"]}), tmp_path / "trace.parquet")
    assert "lacks the columns proc, inc, lseq" in refusal(tmp_path)


def test_columns_missing_and_unknown(tmp_path: Path) -> None:
    path = write(tmp_path, "parquet", hashed=False)
    edit_table(
        path,
        lambda table: table.drop_columns(["svc", "tag"]).append_column(
            "mood", pa.array(["fine"] * len(ROWS))
        ),
    )
    sentences = problem(tmp_path, count=2)
    assert "lacks the columns tag, svc" in sentences
    assert "columns mood are unknown" in sentences
    assert read(tmp_path).rows == [row._replace(svc=None, tag="") for row in ROWS]


def test_rewritten_by_another_tool_the_rows_are_hashed(tmp_path: Path) -> None:
    path = write(tmp_path, "parquet")
    edit_table(path, lambda table: table)
    assert read(tmp_path).problems == []
    edit_table(path, lambda table: _set(table, "lam", pa.array([5] * len(ROWS), pa.int64())))
    assert "not those that were written" in problem(tmp_path)


def test_wider_types_are_narrowed(tmp_path: Path) -> None:
    path = write(tmp_path, "parquet")

    def widen(table: pa.Table) -> pa.Table:
        for name in ("proc", "inc", "svc", "c_rep", "k0"):
            table = _set(table, name, table[name].cast(pa.int64()))
        table = _set(table, "gseq", table["gseq"].cast(pa.float64()))
        table = _set(table, "kind", table["kind"].cast(pa.string()))
        table = _set(table, "members", table["members"].cast(pa.list_(pa.int64())))
        return _set(table, "level", table["level"].cast(pa.float64()))

    edit_table(path, widen)
    trace = read(tmp_path)
    assert (trace.rows, trace.problems) == (ROWS, [])
    assert [type(row.gseq) for row in trace.rows] == [int] * len(ROWS)


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("proc", pa.array(["p"] * len(ROWS))),
        ("kind", pa.array([3] * len(ROWS))),
        ("members", pa.array([3] * len(ROWS))),
        ("members", pa.array([["x"]] * len(ROWS))),
        ("prev_c", pa.array([3] * len(ROWS))),
        ("primary", pa.array(["yes"] * len(ROWS))),
        ("lseq", pa.array([0.5] * len(ROWS))),
        ("x", pa.array([b"\xff"] * len(ROWS))),
    ],
)
def test_a_column_of_another_type(tmp_path: Path, column: str, values: pa.Array) -> None:
    edit_table(write(tmp_path, "parquet"), lambda table: _set(table, column, values))
    assert "is no trace" in refusal(tmp_path) or "damaged" in refusal(tmp_path)


@pytest.mark.parametrize(
    ("column", "value", "type_"),
    [
        ("kind", "dance", pa.string()),
        ("kind", None, pa.string()),
        ("layer", "cake", pa.string()),
        ("proc", 70_000, pa.int64()),
        ("proc", None, pa.int16()),
        ("proc", 2, pa.int16()),
        ("proc", -2, pa.int16()),
        ("inc", -1, pa.int32()),
        ("inc", 1 << 63, pa.uint64()),
        ("lseq", -1, pa.int64()),
        ("m_src", 9, pa.int16()),
        ("m_seq", None, pa.int64()),
        ("svc", 4, pa.int8()),
        ("c_kind", 2, pa.int8()),
        ("c_rep", None, pa.int16()),
        ("count", 0, pa.int32()),
        ("dst", [0, 7], pa.list_(pa.int16())),
        ("dst", [0, None], pa.list_(pa.int16())),
        ("voters", [0, 7], pa.list_(pa.int16())),
        (
            "prev_c",
            {"seq": 1, "rep": 0, "kind": None},
            pa.struct([("seq", pa.int64()), ("rep", pa.int16()), ("kind", pa.int8())]),
        ),
        ("prev_c", {"seq": 1}, pa.struct([("seq", pa.int64())])),
    ],
)
def test_a_row_that_makes_no_sense_is_left_out(
    tmp_path: Path, column: str, value: Any, type_: pa.DataType
) -> None:
    """In both formats alike: the row of index 2 originates a message in a view."""
    for format in FORMATS:
        path = write(tmp_path / format, format)
        if format == "jsonl":
            edit_line(path, 2, **{column: value})
        else:
            values = pq.read_table(path)[column].to_pylist()
            if column == "prev_c" and value is not None:
                values = [None] * len(values)
            values[2] = value
            array = pa.array(values, type_)
            pq.write_table(_set(pq.read_table(path), column, array), path)
        trace = read(path)
        assert trace.rows in (ROWS[:2] + ROWS[3:], [_no_prev(r) for r in ROWS[:2] + ROWS[3:]])
        place = "line 3" if format == "jsonl" else "row 2"
        assert "1 row was left out" in trace.problems[0]
        assert f"in {place}: " in trace.problems[0]
        assert "rows of p, incarnation 0: 2 rows where the manifest counts 3" in trace.problems[1]


def _no_prev(row: Row) -> Row:
    return row._replace(prev_c=None)


@pytest.mark.parametrize(
    ("index", "column"), [(0, "members"), (0, "c_seq"), (4, "m_src"), (8, "members")]
)
def test_rows_without_what_their_kind_needs(tmp_path: Path, index: int, column: str) -> None:
    edit_line(write(tmp_path, "jsonl"), index, **{column: None})
    assert len(read(tmp_path).rows) == len(ROWS) - 1


def test_a_decision_may_order_nothing(tmp_path: Path) -> None:
    """The null decisions of NBTOP have a key and no message."""
    rows = [Row("order", 0, 0, 0, k0=1, k1=0, k2=7, k3=0)]
    write(tmp_path, "jsonl", rows)
    assert read(tmp_path).rows == rows


def test_a_newer_schema(tmp_path: Path) -> None:
    path = write(tmp_path, "parquet")
    edit_table(path, lambda table: table.replace_schema_metadata({"roundelay.schema": "4"}))
    assert "schema 4, this version reads up to 3; update" in refusal(tmp_path)
    write(tmp_path / "lines", "jsonl")
    edit_manifest(tmp_path / "lines", schema=4)
    assert "schema 4, this version reads up to 3; update" in refusal(tmp_path / "lines")


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("schema", [1, 2])
def test_a_trace_of_an_older_schema_is_read_as_it_was_written(
    tmp_path: Path, format: Format, schema: int
) -> None:
    """It lacks columns, and in the first one incarnations have 32 bits; its sha256 is over what it
    has."""
    path = write(tmp_path, format)
    lacking = [name for name, added in ADDED.items() if added > schema]
    assert ("voters" in lacking, "idx" in lacking) == (schema == 1, True)
    kept = [place for place, name in enumerate(Row._fields) if name not in lacking]
    lines = [json.dumps([row[place] for place in kept], separators=(",", ":")) for row in ROWS]
    sha256 = hashlib.sha256(",".join([*lines, ""]).encode()).hexdigest()
    edit_manifest(tmp_path, schema=schema, sha256=sha256)
    if format == "parquet":

        def older(table: pa.Table) -> pa.Table:
            for name in ("inc", "m_inc") if schema == 1 else ():
                table = _set(table, name, table[name].cast(pa.int32()))
            table = table.drop_columns(lacking)
            return table.replace_schema_metadata({"roundelay.schema": str(schema)})

        edit_table(path, older)
    for verify in (False, True):
        trace = read(tmp_path, verify=verify)
        assert trace.problems == []
        assert trace.rows == ROWS
    edit_manifest(tmp_path, schema=schema, sha256="0" * 64)
    assert "its rows are not those that were written" in problem(tmp_path)


def _set(table: pa.Table, name: str, values: Any) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), name, values)


# JSON Lines.


def test_the_last_line_cut(tmp_path: Path) -> None:
    path = write(tmp_path, "jsonl")
    path.write_bytes(path.read_bytes()[:-20])
    trace = read(tmp_path)
    assert trace.rows == ROWS[:-1]
    assert "its last line, 10, is cut" in " ".join(trace.problems)
    assert "rows of world, incarnation 0: 1 rows where the manifest counts 2" in trace.problems[-1]


def test_the_first_line_cut(tmp_path: Path) -> None:
    path = write(tmp_path, "jsonl")
    path.write_bytes(path.read_bytes()[:50])
    assert "holds no row of a trace (line 1: it is not JSON)" in refusal(tmp_path)


@pytest.mark.parametrize(
    "line",
    [
        b"\xff\xfe\n",
        b"[]\n",
        b"null\n",
        b"{}\n",
        b'{"kind": "crash"}\n',
        b"[" * 100_000 + b"\n",
        b'{"kind": "crash", "proc": 1e3, "inc": 0, "lseq": 0}\n',
        b'{"kind": "crash", "proc": true, "inc": 0, "lseq": 0}\n',
        b'{"kind": "crash", "proc": 0, "inc": 0, "lseq": 9223372036854775808}\n',
        b'{"kind": ["crash"], "proc": 0, "inc": 0, "lseq": 0}\n',
        b'{"kind": "crash", "proc": 0, "inc": 0, "lseq": 0, "run": 7}\n',
        b'{"kind": "crash", "proc": 0, "inc": 0, "lseq": 0, "prev_c": [1, 0, 0]}\n',
        b'{"kind": "crash", "proc": 0, "inc": 0, "lseq": 0, "members": {"0": 1}}\n',
        b'{"x": "' + b"a" * jsonl.LINE_BYTES_MAX * 2 + b'"}\n',
    ],
)
def test_a_line_that_is_no_row_is_left_out(tmp_path: Path, line: bytes) -> None:
    path = write(tmp_path, "jsonl")
    edit_lines(path, lambda lines: [*lines[:3], line, *lines[3:]])
    assert "1 row was left out as making no sense, the first in line 4: " in problem(tmp_path)
    assert read(tmp_path).rows == ROWS


def test_blank_lines_are_nothing(tmp_path: Path) -> None:
    edit_lines(write(tmp_path, "jsonl"), lambda lines: [b"\n", *lines, b"  \n"])
    assert read(tmp_path).problems == []


def test_lines_may_be_written_by_hand(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(
        '{"kind": "crash", "proc": 0, "inc": 0, "lseq": 0, "tag": null}'
    )
    assert read(tmp_path / "a.jsonl").rows == [Row("crash", 0, 0, 0)]
    assert "there is no manifest" in problem(tmp_path)


def test_an_unknown_key(tmp_path: Path) -> None:
    edit_line(write(tmp_path, "jsonl"), 3, mood="fine")
    assert "columns mood are unknown" in problem(tmp_path)
    assert read(tmp_path).rows == ROWS


def test_a_changed_value_is_noticed(tmp_path: Path) -> None:
    edit_line(write(tmp_path, "jsonl"), 3, t_ns=1)
    assert "not those that were written" in problem(tmp_path)


# Lost and repeated rows.


@pytest.mark.parametrize("format", FORMATS)
def test_a_row_lost_in_the_middle(tmp_path: Path, format: Format) -> None:
    write(tmp_path, format, ROWS[:3] + ROWS[4:])
    edit_manifest(tmp_path, rows=MANIFEST.rows)
    assert (
        "rows of q, incarnation 0: 2 rows where the manifest counts 3, 1 missing from lseq 1"
        in problem(tmp_path)
    )


def test_rows_lost_at_the_end(tmp_path: Path) -> None:
    write(tmp_path, "parquet", ROWS[:-2])
    edit_manifest(tmp_path, rows=MANIFEST.rows)
    assert "rows of world, incarnation 0: 0 rows where the manifest counts 2" in problem(tmp_path)


def test_a_hole_shows_also_without_a_manifest(tmp_path: Path) -> None:
    write(tmp_path, "jsonl", ROWS[:3] + ROWS[4:])
    (tmp_path / "manifest.json").unlink()
    assert "rows of 1, incarnation 0: 1 missing from lseq 1 on" in problem(tmp_path, count=2)


def test_more_rows_than_were_written(tmp_path: Path) -> None:
    write(tmp_path, "jsonl")
    edit_manifest(tmp_path, rows={"0.0": 3, "0.1": 2})
    assert "3 rows where the manifest counts 0" in problem(tmp_path, count=2)


def test_a_file_that_is_there_twice(tmp_path: Path) -> None:
    path = write(tmp_path, "jsonl")
    shutil.copy(path, tmp_path / "copy.jsonl")
    assert "repeated or out of order (is a file there twice?)" in problem(tmp_path, count=4)


def test_a_trace_in_both_formats_at_once(tmp_path: Path) -> None:
    other = write(tmp_path / "other", "parquet")
    write(tmp_path, "jsonl")
    shutil.copy(other, tmp_path)
    assert "is a file there twice?" in problem(tmp_path, count=4)


def test_many_nodes_that_lack_rows_are_summed_up(tmp_path: Path) -> None:
    write(tmp_path, "jsonl", [Row("crash", 0, inc, 1) for inc in range(100)])
    assert f"and {100 - PROBLEMS_MAX} more" in problem(tmp_path, count=PROBLEMS_MAX + 1)


def test_rows_are_put_in_order(tmp_path: Path) -> None:
    write(tmp_path, "jsonl", ROWS[::-1])
    trace = read(tmp_path)
    assert (trace.rows, trace.problems) == (ROWS, [])
    local = [row._replace(gseq=None) for row in ROWS[::-1]]
    write(tmp_path, "jsonl", local)
    trace = read(tmp_path)
    assert trace.problems == []
    assert trace.rows == sorted(local, key=lambda row: (row.proc, row.inc, row.lseq))


def test_a_stream_cannot_put_rows_in_order(tmp_path: Path) -> None:
    write(tmp_path, "jsonl", ROWS[::-1])
    stream = iterate(tmp_path)
    assert [row for batch in stream for row in batch] == ROWS[::-1]
    assert any("out of order" in sentence for sentence in stream.problems)


# Manifests.


@pytest.mark.parametrize("format", FORMATS)
def test_no_manifest(tmp_path: Path, format: Format) -> None:
    path = write(tmp_path, format)
    (tmp_path / "manifest.json").unlink()
    assert "there is no manifest" in problem(tmp_path)
    assert read(path).manifest is None
    assert read(path).rows == ROWS


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b'{"run": 1}'])
def test_a_damaged_manifest(tmp_path: Path, content: bytes) -> None:
    write(tmp_path, "jsonl")
    (tmp_path / "manifest.json").write_bytes(content)
    assert "manifest.json: the manifest" in refusal(tmp_path)
    assert "restore" in refusal(tmp_path)


def test_a_manifest_without_counts(tmp_path: Path) -> None:
    write(tmp_path, "jsonl")
    edit_manifest(tmp_path, rows=None)
    assert "does not count the rows" in problem(tmp_path)


@pytest.mark.parametrize("format", FORMATS)
def test_a_manifest_of_another_run(tmp_path: Path, format: Format) -> None:
    write(tmp_path, format)
    edit_manifest(tmp_path, run="other")
    assert "rows of run 'mini' but the manifest is of run 'other'; keep one run" in refusal(
        tmp_path
    )


def test_a_manifest_of_another_run_of_the_same_name(tmp_path: Path) -> None:
    """Same counts, same names: only the hash tells."""
    for format in FORMATS:
        directory = tmp_path / format
        write(directory, format, [row._replace(t_ns=row.t_ns + 1) for row in ROWS])
        other = (directory / "manifest.json").read_bytes()
        write(directory, format)
        (directory / "manifest.json").write_bytes(other)
        assert "not those that were written" in problem(directory)


def test_rows_of_two_runs(tmp_path: Path) -> None:
    path = write(tmp_path, "jsonl")
    (tmp_path / "manifest.json").unlink()
    edit_line(path, 5, run="other")
    assert "has rows of run 'other' but other rows are of run 'mini'" in refusal(tmp_path)


def test_two_runs_in_one_directory(tmp_path: Path) -> None:
    for name in ("a", "b"):
        with Writer(tmp_path, dataclasses.replace(MANIFEST, run=name), name=name) as trace:
            trace.append(ROWS[0])
    assert "manifests of several runs" in refusal(tmp_path)


# Several files.


def write_nodes(directory: Path) -> None:
    """As real nodes do: a file and a manifest of its own for each."""
    for proc, name in ((-1, "world"), (0, "p"), (1, "q")):
        with Writer(directory, MANIFEST, name=name, format="jsonl") as trace:
            for row in ROWS:
                if row.proc == proc:
                    trace.append(row)


def test_a_file_per_node(tmp_path: Path) -> None:
    write_nodes(tmp_path)
    trace = read(tmp_path)
    assert (trace.rows, trace.problems) == (ROWS, [])
    assert trace.manifest is not None
    assert trace.manifest.rows == MANIFEST.rows
    alone = read(tmp_path / "p.jsonl")
    assert (alone.rows, alone.problems) == ([row for row in ROWS if row.proc == 0], [])


@pytest.mark.parametrize("content", [b"", b"\x00garbage"])
def test_one_damaged_file_among_others(tmp_path: Path, content: bytes) -> None:
    write_nodes(tmp_path)
    (tmp_path / "q.jsonl").write_bytes(content)
    trace = read(tmp_path)
    assert trace.rows == [row for row in ROWS if row.proc != 1]
    assert "q.jsonl" in " ".join(trace.problems)
    assert "rows of q, incarnation 0: 0 rows where the manifest counts 3" in trace.problems[-1]


def test_one_file_missing(tmp_path: Path) -> None:
    write_nodes(tmp_path)
    (tmp_path / "q.jsonl").unlink()
    assert "rows of q, incarnation 0: 0 rows where the manifest counts 3" in problem(tmp_path)


def test_a_node_that_was_killed(tmp_path: Path) -> None:
    """It leaves its file without a manifest, which shows as rows that nobody counted."""
    write_nodes(tmp_path)
    (tmp_path / "q.manifest.json").unlink()
    assert "rows of q, incarnation 0: 3 rows where the manifest counts 0" in problem(tmp_path)


def test_parquet_parts_as_spark_writes_them(tmp_path: Path) -> None:
    path = write(tmp_path / "plain", "parquet")
    (tmp_path / "trace.parquet").mkdir()
    (tmp_path / "trace.parquet" / "_SUCCESS").touch()
    shutil.copy(path, tmp_path / "trace.parquet" / "part-00000.zstd.parquet")
    shutil.copy(path.parent / "manifest.json", tmp_path)
    assert read(tmp_path) == read(path)


# Streams.


@pytest.mark.parametrize("format", FORMATS)
def test_a_stream_comes_in_bounded_batches(tmp_path: Path, format: Format) -> None:
    write(tmp_path, format, batch_rows=4)
    stream = iterate(tmp_path, batch_rows=3)
    assert stream.manifest is not None
    batches = list(stream)
    assert [row for batch in batches for row in batch] == ROWS
    assert max(map(len, batches)) <= 3
    assert stream.problems == []


def test_a_text_streams_too(tmp_path: Path) -> None:
    (tmp_path / "a.trace").write_text(TEXT)
    assert [len(batch) for batch in iterate(tmp_path / "a.trace", batch_rows=4)] == [4, 4, 2]


def test_no_rows_at_all(tmp_path: Path) -> None:
    write(tmp_path, "parquet", [])
    assert "holds no rows" in problem(tmp_path)
