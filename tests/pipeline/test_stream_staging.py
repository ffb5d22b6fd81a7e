"""What tasks leave for the sink's driver, and rows as payloads; without Spark."""

import datetime
import decimal
import json
import socket
import time
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundelay.pipeline.errors import PipelineError
from roundelay.runtime.client import ClientError
from roundelay.runtime.control import BATCH_BYTES_MAX

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from pyspark import TaskContext  # noqa: E402
from pyspark.sql.types import BinaryType, StructField, StructType  # noqa: E402

from roundelay.pipeline.stream import sink, staging  # noqa: E402
from roundelay.pipeline.stream.encode import Encoder  # noqa: E402
from roundelay.pipeline.stream.options import sink_options  # noqa: E402


def array(*payloads):
    return pa.array(payloads, pa.binary())


def batch(*parts):
    return staging.Batch(parts, "")


def contents(directory, parts, entries_max=100, bytes_max=1000):
    got: list[bytes] = []
    for chunk in staging.chunks(directory, parts, entries_max, bytes_max):
        assert chunk.first == len(got)
        at = 0
        for start in range(0, len(chunk.sizes), 4):
            size = int.from_bytes(chunk.sizes[start : start + 4])
            got.append(bytes(chunk.payloads[at : at + size]))
            at += size
        assert at == len(chunk.payloads)
    return got


@given(
    arrays=st.lists(st.lists(st.binary(max_size=20), max_size=6), max_size=5),
    entries_max=st.integers(1, 8),
    bytes_max=st.integers(1, 40),
)
def test_chunks_are_the_payloads_in_order_and_none_is_too_large(
    tmp_path_factory, arrays, entries_max, bytes_max
):
    directory = tmp_path_factory.mktemp("batch")
    part = staging.write_part(directory, 0, [array(*some) for some in arrays])
    flat = [payload for some in arrays for payload in some]
    assert (part.entries, part.bytes) == (len(flat), sum(map(len, flat)))
    assert contents(directory, [part], entries_max, bytes_max) == flat
    for chunk in staging.chunks(directory, [part], entries_max, bytes_max):
        assert len(chunk.sizes) <= 4 * entries_max
        assert len(chunk.payloads) <= bytes_max or len(chunk.sizes) == 4


def test_a_slice_of_an_array_is_written_as_that_slice(tmp_path):
    part = staging.write_part(tmp_path, 0, [array(b"a", b"bb", b"ccc").slice(1, 1)])
    assert contents(tmp_path, [part]) == [b"bb"]
    assert part.bytes == 2


def test_a_batch_that_was_fixed_stays_what_it_is_whatever_is_repeated(tmp_path):
    first = staging.write_part(tmp_path, 0, [array(b"first")])
    second = staging.write_part(tmp_path, 0, [array(b"other", b"rows")])
    assert staging.fix(tmp_path, batch(first)) == batch(first)
    assert staging.fix(tmp_path, batch(second)) == batch(first)
    staging.remove_parts(tmp_path, [first, second])
    assert contents(tmp_path, staging.fix(tmp_path, batch()).parts) == [b"first"]
    assert not (tmp_path / second.name).exists()


def test_a_task_of_a_driver_that_was_started_again_replaces_no_file(tmp_path):
    """Spark counts attempts from 0 in each application."""
    part = staging.write_part(tmp_path, 0, [array(b"x", b"y")])
    assert staging.fix(tmp_path, batch(part)) == batch(part)
    staging.write_part(tmp_path, 0, [array(b"y", b"x")])  # The driver had died.
    assert contents(tmp_path, staging.fix(tmp_path, batch()).parts) == [b"x", b"y"]


def test_a_manifest_that_cannot_be_read_is_not_taken_for_none(tmp_path):
    (tmp_path / staging.MANIFEST).write_text("{")
    with pytest.raises(PipelineError, match="do not remove it"):
        staging.fix(tmp_path, batch())


def test_a_file_that_is_missing_or_short_is_told(tmp_path):
    part = staging.write_part(tmp_path, 0, [array(b"a")])
    with pytest.raises(PipelineError, match="has 1 rows, not 2"):
        contents(tmp_path, [staging.Part(part.name, 2, 1)])
    (tmp_path / part.name).unlink()
    with pytest.raises(PipelineError, match="must share the directory"):
        contents(tmp_path, [part])


def test_a_task_that_fails_leaves_nothing(tmp_path):
    def failing():
        yield array(b"a")
        raise RuntimeError("the query failed")

    with pytest.raises(RuntimeError):
        staging.write_part(tmp_path, 0, failing())
    assert not list(tmp_path.iterdir())


def encoded(payload, batch, rows=2):
    encoder = Encoder(payload, batch.schema, rows)
    return [value.as_py() for a in encoder.payloads(iter([batch])) for value in a]


def test_rows_become_payloads():
    batch = pa.RecordBatch.from_pydict({"payload": pa.array(["a", "b"]), "x": [1, 2]})
    assert encoded("binary", batch) == [b"a", b"b"]
    assert encoded("json", batch) == [b'"a"', b'"b"']
    day = datetime.datetime(2026, 5, 1, tzinfo=datetime.UTC)
    columns = {"n": [1], "t": [day], "d": [decimal.Decimal("1.50")], "b": [b"\xff"]}
    (made,) = encoded("json", pa.RecordBatch.from_pydict(columns))
    assert json.loads(made) == {"n": 1, "t": "2026-05-01T00:00:00+00:00", "d": "1.50", "b": "/w=="}
    rows = pa.RecordBatch.from_pydict({"n": [1, 2, 3]})
    tables = [pa.ipc.open_stream(made).read_all() for made in encoded("arrow", rows)]
    assert [table["n"].to_pylist() for table in tables] == [[1, 2], [3]]


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_numbers_that_json_lacks_are_refused(wrong):
    with pytest.raises(PipelineError, match=r"NaN or infinite"):
        encoded("json", pa.RecordBatch.from_pydict({"x": [{"y": [1.0, wrong]}]}))


@pytest.mark.parametrize("payload", ["binary", "utf8"])
def test_rows_that_cannot_be_payloads_are_refused(payload):
    with pytest.raises(PipelineError, match="needs a column named payload"):
        encoded(payload, pa.RecordBatch.from_pydict({"payload": [1]}))
    with pytest.raises(PipelineError, match="needs a column named payload"):
        encoded(payload, pa.RecordBatch.from_pydict({"x": ["a"]}))
    with pytest.raises(PipelineError, match="a row has null as its payload"):
        encoded(payload, pa.RecordBatch.from_pydict({"payload": ["a", None]}))
    with pytest.raises(PipelineError, match="is the most"):
        encoded(payload, pa.RecordBatch.from_pydict({"payload": ["a" * (BATCH_BYTES_MAX + 1)]}))


class Fake:
    """A node that says no so many times."""

    failures = 0
    kind = ""
    heard: list[tuple[str, str, int]] = []  # noqa: RUF012  # Of all clients together.

    def __init__(self, path):
        self.path = path

    def append_all(self, session, first, sizes, payloads, timeout_s, answer_s):
        self.heard.append((str(self.path), session, first))
        if len(self.heard) <= self.failures:
            raise ClientError("the node went away", self.kind)

    def __exit__(self, *_):
        pass


def appender(monkeypatch, failures, timeout):
    monkeypatch.setattr(sink, "Client", Fake)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    monkeypatch.setattr(Fake, "failures", failures)
    monkeypatch.setattr(Fake, "heard", [])
    options = {"staging": "s", "control": "/x,/y", "timeoutSeconds": timeout}
    return sink.Appender(sink_options(options), "query")


def test_another_node_is_asked_when_one_went_away_and_is_kept(monkeypatch):
    made = appender(monkeypatch, 1, "60")
    chunk = staging.Chunk(0, b"\0\0\0\1", memoryview(b"a"))
    made.append(5, chunk)
    made.append(6, chunk)
    assert Fake.heard == [("/x", "query", 5), ("/y", "query", 5), ("/y", "query", 6)]


def test_the_sink_gives_up_in_words_when_no_node_takes_it(monkeypatch):
    made = appender(monkeypatch, 10**6, "0.1")
    with pytest.raises(PipelineError, match=r"\(the node went away\).*start the query again"):
        made.append(5, staging.Chunk(0, b"\0\0\0\1", memoryview(b"a")))


def test_nodes_that_are_stopped_hold_the_sink_up_no_longer_than_it_was_told(tmp_path):
    with socket.socket(socket.AF_UNIX) as stopped:
        stopped.bind(str(tmp_path / "s"))
        stopped.listen()
        given = {"staging": "s", "control": str(tmp_path / "s"), "timeoutSeconds": "0.3"}
        made = sink.Appender(sink_options(given), "query")
        start = time.monotonic()
        with pytest.raises(PipelineError, match="did not answer within"):
            made.append(5, staging.Chunk(0, b"\0\0\0\1", memoryview(b"a")))
        assert time.monotonic() - start < 10


def test_what_every_node_would_refuse_is_told_at_once(monkeypatch):
    made = appender(monkeypatch, 1, "60")
    monkeypatch.setattr(Fake, "kind", "SessionForgottenError")
    with pytest.raises(PipelineError, match="cannot be appended: the node went away"):
        made.append(5, staging.Chunk(0, b"\0\0\0\1", memoryview(b"a")))
    assert len(Fake.heard) == 1


class Taking:
    """A node that takes each number of a session once; `dies_after` requests the driver does."""

    log: dict[tuple[str, int], bytes] = {}  # noqa: RUF012  # Of all clients together.
    left = 0

    def __init__(self, path):
        pass

    def append_all(self, session, first, sizes, payloads, timeout_s, answer_s):
        if not Taking.left:
            raise KeyboardInterrupt  # Nothing more is done in this life.
        Taking.left -= 1
        at = 0
        for place in range(len(sizes) // 4):
            size = int.from_bytes(sizes[4 * place : 4 * place + 4])
            self.log.setdefault((session, first + place), bytes(payloads[at : at + size]))
            at += size

    def __exit__(self, *_):
        pass


def staged(home, partition, *payloads, batch=3):
    """What a task leaves; nothing for a partition without rows."""
    part = None
    if payloads:
        directory = staging.batch_directory(home, "query", batch)
        part = staging.write_part(directory, partition, [array(*payloads)])
    return sink.Staged("query", batch, partition, part)


def writer_with(tmp_path, **options):
    given = {"staging": str(tmp_path), "control": "x", **options}
    schema = StructType([StructField("payload", BinaryType())])
    return sink.LogWriter(sink_options(given), schema, False)


@pytest.fixture
def writer(monkeypatch, tmp_path):
    """The driver's side of a sink that appends two entries at a time."""
    monkeypatch.setattr(sink, "Client", Taking)
    monkeypatch.setattr(sink, "CHUNK_ENTRIES", 2)
    monkeypatch.setattr(Taking, "log", {})
    monkeypatch.setattr(Taking, "left", 10**6)
    return writer_with(tmp_path)


@pytest.mark.parametrize("requests", [0, 1, 2])
def test_a_driver_that_dies_between_the_manifest_and_the_end_appends_the_rest(
    writer, monkeypatch, tmp_path, requests
):
    """The tasks of the repetition leave other files, with the rows in another order."""
    monkeypatch.setattr(Taking, "left", requests)
    with pytest.raises(KeyboardInterrupt):
        writer.commit([staged(tmp_path, 1, b"c", b"d", b"e"), staged(tmp_path, 0, b"a")], 3)
    assert len(Taking.log) == [0, 1, 3][requests]
    monkeypatch.setattr(Taking, "left", 10**6)
    writer.commit([staged(tmp_path, 0, b"e", b"a"), staged(tmp_path, 1, b"d", b"c")], 3)
    first = 3 * sink.BATCH_NUMBERS
    assert Taking.log == {("query", first + n): bytes([c]) for n, c in enumerate(b"acde")}


PUT_BACK = "the checkpoint was put back to an older state"


def test_a_checkpoint_that_was_put_back_is_refused(writer, tmp_path):
    writer.commit([staged(tmp_path, 0, b"a")], 3)
    with pytest.raises(PipelineError, match=rf"batch 3 .*is in the log.*is batch 2.*{PUT_BACK}"):
        writer.commit([staged(tmp_path, 0, b"b", batch=2)], 2)
    assert len(Taking.log) == 1


def test_it_is_refused_too_if_the_last_batch_was_empty(writer, tmp_path):
    writer.commit([staged(tmp_path, 0, b"a", b"b", batch=5)], 5)
    writer.commit([staged(tmp_path, 0, batch=6)], 6)
    with pytest.raises(PipelineError, match=PUT_BACK):
        writer.commit([staged(tmp_path, 0, b"c", b"d", batch=5)], 5)
    assert len(Taking.log) == 2


@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
def test_a_batch_that_spark_has_planned_anew_is_not_the_one_in_the_log(writer, tmp_path, scheme):
    """It has as many rows; only what Spark notes of a batch before it runs is another."""
    noted = tmp_path / "checkpoint" / "offsets" / "3"
    noted.parent.mkdir(parents=True)
    noted.write_text("v1\n{}\n7")
    writer = writer_with(tmp_path, checkpointLocation=f"{scheme}{tmp_path / 'checkpoint'}")
    writer.commit([staged(tmp_path, 0, b"a", b"b")], 3)
    writer.commit([staged(tmp_path, 0, b"other", b"rows", b"come out")], 3)  # Repeated.
    noted.write_text("v1\n{}\n8")
    with pytest.raises(PipelineError, match=rf"batch 3 .*has planned it anew.*{PUT_BACK}"):
        writer.commit([staged(tmp_path, 0, b"c", b"d")], 3)
    assert list(Taking.log.values()) == [b"a", b"b"]


def test_where_the_checkpoint_cannot_be_read_another_number_of_rows_is_refused(writer, tmp_path):
    for place in ("s3a://bucket/checkpoint", str(tmp_path / "none")):
        writer = writer_with(tmp_path / "staging", checkpointLocation=place)
        writer.commit([staged(tmp_path / "staging", 0, b"a", b"b")], 3)
        writer.commit([staged(tmp_path / "staging", 0, b"b", b"a")], 3)
        with pytest.raises(PipelineError, match=rf"batch 3 .*has 2 entries.*has 3.*{PUT_BACK}"):
            writer.commit([staged(tmp_path / "staging", 0, b"a", b"b", b"c")], 3)
    assert len(Taking.log) == 2


def context_of(monkeypatch, query):
    """What Spark tells the tasks of a query."""
    told = {"sql.streaming.queryId": query, "streaming.sql.batchId": "0"}
    context = SimpleNamespace(getLocalProperty=told.get, partitionId=lambda: 0)
    monkeypatch.setattr(TaskContext, "get", lambda: context)


def rows_of(*payloads):
    return pa.RecordBatch.from_arrays([array(*payloads)], ["payload"])


def test_a_task_that_is_not_told_its_query_leaves_nothing(monkeypatch, writer, tmp_path):
    context_of(monkeypatch, None)
    with pytest.raises(PipelineError, match="which query and batch a task is of"):
        writer.write(iter([rows_of(b"a")]))
    assert not list(tmp_path.iterdir())


def test_a_new_query_that_takes_the_session_of_another_is_refused(monkeypatch, writer, tmp_path):
    """Its batches begin at 0 again, and the log has entries of that session with their numbers."""
    writer = writer_with(tmp_path, session="../us")

    def left_by(query, *payloads):
        context_of(monkeypatch, query)
        return writer.write(iter([rows_of(*payloads)]))

    writer.commit([left_by("one", b"a", b"b")], 0)
    with pytest.raises(PipelineError, match=r"batch 0 .*session \.\./us is in the log"):
        writer.commit([left_by("other", b"c")], 0)
    assert Taking.log == {("../us", 0): b"a", ("../us", 1): b"b"}
