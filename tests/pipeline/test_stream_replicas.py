"""Journals as alternatives for one log, without Spark: columns, payloads, ranges and replicas."""

import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.pipeline.stream_logs import Node, numbered, record, rows_of, varied
from tests.unit.journal.logs import LOG, T1, T2, log_files, mark

from roundelay.core.log import Checkpoint, Place
from roundelay.pipeline.errors import PipelineError

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from roundelay.pipeline.stream import columns, payloads, replicas  # noqa: E402
from roundelay.pipeline.stream.options import sink_options, source_options  # noqa: E402
from roundelay.pipeline.stream.replicas import Offset, Replicas, offset_in  # noqa: E402
from roundelay.pipeline.stream.source import ranges  # noqa: E402

SCHEMA = pa.schema(
    [
        ("index", pa.int64()),
        ("term", pa.string()),
        ("sender", pa.string()),
        ("incarnation", pa.int64()),
        ("session", pa.string()),
        ("number", pa.int64()),
        ("stamp", pa.timestamp("us", "UTC")),
        ("payload", pa.binary()),
    ]
)
START = Offset("", 0, 0)
HERE = Offset(LOG.hex(), 0, 0)


@pytest.fixture(autouse=True)
def fresh_readers():
    yield
    for reader, _ in replicas._readers.values():
        reader.close()
    replicas._readers.clear()


def raw(values, indexes):
    return values


def read(paths, start, end, *, at=HERE, patience_s=0.0, skip=False):
    """All that is between these indexes."""
    found = Replicas(paths, at).packets(start, end, patience_s, skip=skip)
    return pa.Table.from_batches(columns.batches(found, SCHEMA, raw), SCHEMA).to_pylist()


def test_columns_are_what_the_journal_says_for_entries_of_all_kinds(tmp_path):
    node = Node(tmp_path)
    varied(node)
    expected = rows_of(tmp_path)
    assert len(expected) == 10
    for start in range(11):
        for end in range(start, 11):
            got = read([tmp_path], start, end)
            for row in got:
                row["stamp_us"] = int(row.pop("stamp").timestamp() * 1e6 + 0.5)
            assert got == expected[start:end]


@settings(max_examples=30, deadline=None)
@given(
    sizes=st.lists(st.lists(st.integers(0, 40), min_size=1, max_size=9), min_size=1, max_size=12),
    start=st.integers(0, 100),
    count=st.integers(0, 100),
    rows=st.integers(1, 20),
)
def test_packets_of_any_sizes_become_the_same_rows_in_batches_of_any_size(
    tmp_path_factory, sizes, start, count, rows
):
    path = tmp_path_factory.mktemp("journal")
    node = Node(path)
    for packet in sizes:
        node.add(record(node.length, [bytes([size]) * size for size in packet]))
    node.commit()
    flat = [bytes([size]) * size for packet in sizes for size in packet]
    start = min(start, len(flat))
    end = min(start + count, len(flat))
    before, columns.BATCH_ROWS = columns.BATCH_ROWS, rows
    try:
        got = read([path], start, end)
    finally:
        columns.BATCH_ROWS = before
    assert [row["payload"] for row in got] == flat[start:end]
    assert [row["index"] for row in got] == list(range(start, end))
    node.close()


@given(
    start=st.integers(0, 10**7),
    total=st.integers(0, 10**7),
    parts=st.integers(1, 64),
    most=st.integers(1000, 10**6),
)
def test_ranges_cover_each_entry_once_and_none_is_too_large(start, total, parts, most):
    options = replace(source_options({"path": "x"}), min_partitions=parts, max_per_partition=most)
    found = ranges(start, Offset("", 0, start + total), options)
    at = start
    for part in found:
        assert part.at.index == at < part.end <= at + most
        at = part.end
    assert at == start + total


def test_a_range_is_read_from_the_journal_that_is_left(tmp_path):
    a, b = Node(tmp_path / "a"), Node(tmp_path / "b")
    for node in (a, b):
        node.grow(4000)
    packets = Replicas([a.path, b.path], HERE).packets(0, 4000, 0, skip=False)
    got = [next(packets) for _ in range(3)]
    a.close()
    for path in log_files(a.path):
        path.write_bytes(path.read_bytes()[:64] + b"\xff" * 64)
    got += packets
    assert [p.index for p in got] == list(range(0, 4000, 10))
    assert all(p.count == 10 for p in got)


def test_a_journal_that_is_gone_or_of_another_log_is_passed_over(tmp_path):
    good, other = Node(tmp_path / "good"), Node(tmp_path / "other", b"X" * 16)
    good.grow(20)
    other.grow(50)
    paths = [tmp_path / "none", other.path, good.path]
    assert [row["index"] for row in read(paths, 0, 20)] == list(range(20))
    found = Replicas(paths, HERE)
    assert found.refresh()
    assert found.committed == 20
    assert set(found.why) == {tmp_path / "none", other.path}


def test_of_journals_with_two_logs_the_first_one_says_which_is_meant(tmp_path):
    good, other = Node(tmp_path / "good"), Node(tmp_path / "other", b"X" * 16)
    good.grow(20)
    other.grow(50)
    found = Replicas([good.path, other.path], START)
    assert found.refresh()
    assert (found.log, found.committed) == (LOG.hex(), 20)
    assert "it holds the log" in found.why[other.path]


def test_entries_that_are_not_known_to_be_committed_there_are_not_read_there(tmp_path):
    """One journal ends with entries of an old term that never were committed."""
    stray, good = Node(tmp_path / "stray"), Node(tmp_path / "good")
    stray.grow(10)
    stray.add(record(10, [b"never committed"] * 10))
    good.grow(10)
    good.add(mark(T2, 10), record(10, [b"committed"] * 10, T2))
    good.commit()
    got = read([stray.path, good.path], 0, 20)
    assert [row["payload"] for row in got[10:]] == [b"committed"] * 10
    with pytest.raises(PipelineError, match="it has 10 committed entries so far"):
        read([stray.path], 0, 20)


def test_a_journal_that_is_behind_is_waited_for(tmp_path, monkeypatch):
    node = Node(tmp_path)
    node.grow(10)
    waited = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        node.grow(5)

    monkeypatch.setattr(time, "sleep", sleep)
    assert len(read([tmp_path], 0, 20, patience_s=30)) == 20
    assert len(waited) == 2


def retired(path: Path) -> Node:
    """A journal whose beginning was removed."""
    node = Node(path)
    for _ in range(6):
        node.grow(400)
        node.add(Checkpoint(Place(T1, node.length), 1, 1, ()))
    node.close()
    names = log_files(path)
    for name in names[: len(names) // 2]:
        name.unlink()
    return node


def test_entries_that_were_removed_are_an_error_or_left_out_on_demand(tmp_path):
    retired(tmp_path)
    found = Replicas([tmp_path], HERE)
    found.refresh()
    first = found.first
    assert first is not None
    assert 0 < first < 2400
    with pytest.raises(PipelineError, match=r"entry 0 was removed.*begin at.*failOnDataLoss"):
        read([tmp_path], 0, 2400)
    assert [row["index"] for row in read([tmp_path], 0, 2400, skip=True)] == [*range(first, 2400)]
    assert read([tmp_path], 0, first - 1, skip=True) == []


def test_a_journal_that_still_has_them_is_preferred_to_leaving_them_out(tmp_path):
    retired(tmp_path / "a")
    whole = Node(tmp_path / "b")
    whole.grow(2400)
    paths = [tmp_path / "a", whole.path]
    assert len(read(paths, 0, 2400, skip=True)) == 2400


def test_a_journal_that_stays_behind_hides_neither_what_was_removed_nor_what_is_there(tmp_path):
    retired(tmp_path / "a")
    stale = Node(tmp_path / "b")
    stale.grow(10)
    paths = [tmp_path / "a", stale.path]
    with pytest.raises(PipelineError, match=r"entry 20 was removed.*so far.*retain_bytes"):
        read(paths, 20, 2400)
    first = read(paths[:1], 20, 2400, skip=True)[0]["index"]
    assert first > 20
    assert [row["index"] for row in read(paths, 20, 2400, skip=True)] == [*range(first, 2400)]


def test_a_copy_that_takes_the_place_of_a_journal_is_read_afresh(tmp_path):
    node = Node(tmp_path / "a")
    node.grow(50)
    node.close()
    shutil.copytree(node.path, tmp_path / "old")
    node = Node(tmp_path / "a")
    node.grow(50, each=5)
    assert len(read([node.path], 0, 100)) == 100
    node.close()
    shutil.rmtree(node.path)
    shutil.copytree(tmp_path / "old", node.path)
    node = Node(tmp_path / "a")
    node.add(record(50, [b"never committed"] * 50))
    with pytest.raises(PipelineError, match="it has 50 committed entries so far"):
        read([node.path], 0, 100)
    node.commit()
    assert len(read([node.path], 0, 100)) == 100


def test_an_older_generation_serves_nothing_of_a_newer_one(tmp_path):
    old, new = Node(tmp_path / "old"), Node(tmp_path / "new")
    for node in (old, new):
        node.grow(10)
    old.add(record(10, [b"given up"] * 10))
    old.commit()
    new.add(mark(T2, 10, 1, lossy=True), record(10, [b"new"] * 10, T2))
    new.commit()
    got = read([old.path, new.path], 0, 20, at=Offset(LOG.hex(), 1, 0))
    assert [row["payload"] for row in got] == [*numbered(10), *[b"new"] * 10]
    # What was read of the old generation does not continue in the new one.
    with pytest.raises(PipelineError, match="new checkpoint"):
        Replicas([new.path], Offset(LOG.hex(), 0, 15)).refresh()


def test_the_directory_of_the_journal_stands_for_its_only_group(tmp_path):
    node = Node(tmp_path / "a" / "orders")
    node.grow(10)
    assert len(read([tmp_path / "a"], 0, 10)) == 10
    shutil.copytree(node.path, tmp_path / "b" / "orders")
    shutil.copytree(node.path, tmp_path / "b" / "other")
    with pytest.raises(PipelineError, match="several groups; name one of orders, other"):
        Replicas([tmp_path / "b"], HERE).refresh()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "no journal is named"),
        ({"path": " , "}, "no journal is named"),
        ({"paths": "[1"}, "no journal is named"),
        ({"path": "x", "startingIndex": "first"}, "startingIndex is earliest, latest or a number"),
        ({"path": "x", "endingIndex": "-3"}, "endingIndex is latest or a number"),
        ({"path": "x", "maxEntriesPerTrigger": "0"}, "maxEntriesPerTrigger is a number from 1"),
        ({"path": "x", "failOnDataLoss": "no"}, "failOnDataLoss is true or false"),
        ({"path": "x", "payload": "xml"}, "payload is binary or utf8 or json or arrow"),
        ({"path": "x", "payloadSchema": "a int"}, "payloadSchema is for payloads"),
        ({"path": "x", "patienceSeconds": "nan"}, "patienceSeconds is a number of seconds"),
    ],
)
def test_options_that_make_no_sense_are_refused_in_words(options, words):
    with pytest.raises(PipelineError, match=words):
        source_options(options)


def test_paths_mean_the_same_in_executors_which_run_elsewhere(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    given = {"paths": '["a", "/b"]', "staging": "s", "control": "c", "checkpointLocation": "at"}
    assert source_options(given).paths == (tmp_path / "a", Path("/b"))
    found = sink_options(given)
    assert (found.staging, found.controls) == (tmp_path / "s", (tmp_path / "c",))
    assert found.checkpoint == tmp_path / "at"


def test_the_sink_wants_a_directory_for_what_waits():
    with pytest.raises(PipelineError, match="needs the option staging"):
        sink_options({"control": "x"})
    found = sink_options({"staging": "s", "control": "/x, /y"})
    assert found.controls == (Path("/x"), Path("/y"))


@pytest.mark.parametrize(
    "document", [{}, {"log": 3, "generation": 0, "index": 0}, {"log": "", "index": 1}, {"a": 1}]
)
def test_a_checkpoint_of_another_source_is_refused(document):
    with pytest.raises(PipelineError, match="checkpoint is of another source"):
        offset_in(document)


PERSON = pa.struct([("who", pa.string()), ("amount", pa.int64())])
GOOD = [b'{"who":"ann","amount":1}', b' {"amount":\n 2, "more": [3]}\n', b"{}"]
BAD = [b"", b"{", b"[]", b'{"amount":"x"}', b'{"who":"a"}{"who":"b"}', b'{"who":"}', b"\xff"]


@pytest.mark.parametrize("bad", BAD)
def test_json_is_read_object_by_object_whatever_lies_next_to_it(bad):
    values = pa.array([GOOD[0], bad, *GOOD[1:]], pa.binary())
    decode = payloads.decoder("json", PERSON, permissive=True)
    good = [
        {"who": "ann", "amount": 1},
        {"who": None, "amount": 2},
        {"who": None, "amount": None},
    ]
    assert decode(pa.array(GOOD, pa.binary()), [0, 1, 2]).to_pylist() == good
    assert decode(values, range(4)).to_pylist() == [good[0], None, *good[1:]]
    strict = payloads.decoder("json", PERSON, permissive=False)
    with pytest.raises(PipelineError, match="payload of entry 41 is no json"):
        strict(values, [40, 41, 42, 43])


@example([b"", b"{}{}"])
@given(st.lists(st.binary(max_size=12) | st.sampled_from([*GOOD, *BAD]), min_size=1, max_size=6))
def test_what_json_gives_for_a_payload_does_not_depend_on_the_others(values):
    decode = payloads.decoder("json", PERSON, permissive=True)

    def decoded(some):
        return decode(pa.array(some, pa.binary()), range(len(some))).to_pylist()

    assert decoded(values) == [decoded([one])[0] for one in values]


def test_text_and_arrow(tmp_path):
    text = payloads.decoder("utf8", pa.string(), permissive=True)
    assert text(pa.array([b"a", b"\xff", b""], pa.binary()), range(3)).to_pylist() == [
        "a",
        None,
        "",
    ]
    out = pa.BufferOutputStream()
    table = pa.table({"amount": pa.array([1, 2], pa.int32()), "who": ["a", "b"], "x": [1, 2]})
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    stream = out.getvalue().to_pybytes()
    arrow = payloads.decoder("arrow", pa.list_(PERSON), permissive=True)
    expected = [{"who": "a", "amount": 1}, {"who": "b", "amount": 2}]
    got = arrow(pa.array([stream, b"no", stream], pa.binary()), range(3))
    assert got.to_pylist() == [expected, None, expected]
