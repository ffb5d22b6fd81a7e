"""The log as a source of real Spark: batch queries, streaming queries, and their checkpoints."""

import json
import shutil
from pathlib import Path

import pytest
from tests.patience import LIMIT_S, until
from tests.pipeline.stream_logs import Node, numbered, record, rows_of, varied
from tests.unit.journal.logs import T1, T2, log_files, mark

from roundelay.core.log import Checkpoint, Place

pytest.importorskip("pyspark")

from roundelay.pipeline import register


@pytest.fixture(scope="module")
def source(spark):
    register(spark)
    return spark


def reading(source, path, **options):
    reader = source.read.format("roundelay")
    for name, value in options.items():
        reader = reader.option(name, value)
    return reader.load(str(path))


def indexes(frame):
    return sorted(row["index"] for row in frame.select("index").collect())


class Streaming:
    """A query into files, which may be started again."""

    def __init__(self, source, tmp_path: Path, *paths: Path, **options: object) -> None:
        self._source = source
        self._paths = paths
        self._options = options
        self._out = tmp_path / "out"
        self._checkpoint = tmp_path / "checkpoint"

    def start(self, **trigger: object):
        reader = self._source.readStream.format("roundelay")
        for name, value in self._options.items():
            reader = reader.option(name, value)
        frame = reader.load(",".join(map(str, self._paths)))
        writer = frame.writeStream.format("parquet").option("path", str(self._out))
        writer = writer.option("checkpointLocation", str(self._checkpoint))
        return writer.trigger(**(trigger or {"availableNow": True})).start()

    def run(self) -> list[int]:
        """Read what is available now; how many rows each batch had."""
        query = self.start()
        assert query.awaitTermination(LIMIT_S)
        return [n for n in (json.loads(p.json)["numInputRows"] for p in query.recentProgress) if n]

    def rows(self) -> list[tuple[int, bytes]]:
        found = self._source.read.parquet(str(self._out)).select("index", "payload").collect()
        return sorted((row["index"], bytes(row["payload"])) for row in found)


def test_a_query_has_every_column_of_every_entry(source, tmp_path):
    varied(Node(tmp_path))
    got = [row.asDict() for row in reading(source, tmp_path).orderBy("index").collect()]
    for row in got:
        row["payload"] = bytes(row["payload"])
        row["stamp_us"] = row.pop("stamp").microsecond
    assert got == rows_of(tmp_path)


def test_a_query_takes_a_range_in_parts_and_only_the_columns_it_names(source, tmp_path):
    Node(tmp_path).grow(500)
    frame = reading(source, tmp_path, startingIndex=17, endingIndex=400, maxEntriesPerPartition=100)
    assert frame.rdd.getNumPartitions() == 4
    assert indexes(frame) == list(range(17, 400))
    few = source.read.format("roundelay").schema("payload binary, index bigint").load(str(tmp_path))
    assert few.columns == ["payload", "index"]
    assert bytes(few.where("index = 3").first()[0]) == b"entry 000003"


def test_an_empty_journal_is_an_empty_table(source, tmp_path):
    Node(tmp_path, begin=False)
    assert reading(source, tmp_path).count() == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"endingIndex": 21}, "the log has 20 committed entries so far"),
        ({"startingIndex": 21}, "startingIndex is 21, and the log has 20 committed entries so far"),
        ({"payload": "json"}, "need a schema; give it as payloadSchema"),
        ({"startingIndex": "x"}, "startingIndex is earliest, latest or a number"),
    ],
)
def test_wrong_options_are_told_in_a_sentence(source, tmp_path, options, words):
    Node(tmp_path).grow(20)
    with pytest.raises(Exception, match=words):
        reading(source, tmp_path, **options).count()


def test_a_journal_that_is_not_there_is_told_in_a_sentence(source, tmp_path):
    with pytest.raises(Exception, match="there is no journal in"):
        reading(source, tmp_path / "none").count()
    with pytest.raises(Exception, match="a log has no column 'colour'"):
        source.read.format("roundelay").schema("colour string").load(str(tmp_path)).count()


def test_payloads_as_text_and_json(source, tmp_path):
    node = Node(tmp_path)
    node.add(record(0, [b'{"who":"ann","amount":5}', b'{"who":"bob"}', b"not"]))
    node.commit()
    text = reading(source, tmp_path, payload="utf8").orderBy("index")
    assert [row.payload for row in text.collect()][1:] == ['{"who":"bob"}', "not"]
    options = {"payload": "json", "payloadSchema": "who string, amount long"}
    with pytest.raises(Exception, match="the payload of entry 2 is no json"):
        reading(source, tmp_path, **options).collect()
    frame = reading(source, tmp_path, **options, payloadMode="permissive")
    assert [tuple(row) for row in frame.orderBy("index").select("payload.*").collect()] == [
        ("ann", 5),
        ("bob", None),
        (None, None),
    ]
    typed = "index bigint, payload struct<amount: int>"
    frame = source.read.format("roundelay").schema(typed).option("payload", "json")
    assert frame.option("endingIndex", 1).load(str(tmp_path)).first().payload.amount == 5


def test_a_stream_of_what_is_available_has_each_entry_once_in_batches_as_large_as_allowed(
    source, tmp_path
):
    node = Node(tmp_path / "a")
    node.grow(250)
    stream = Streaming(source, tmp_path, node.path, maxEntriesPerTrigger=100)
    assert stream.run() == [100, 100, 50]
    assert stream.run() == []
    node.grow(30)
    node.add(record(280, [b"not committed"]))
    assert stream.run() == [30]
    assert stream.rows() == list(enumerate(numbered(280)))


def test_a_stream_follows_a_growing_journal_and_goes_on_after_a_stop(source, tmp_path):
    node = Node(tmp_path / "a")
    node.grow(40)
    stream = Streaming(source, tmp_path, node.path)
    query = stream.start(processingTime="100 milliseconds")
    try:
        until(lambda: (tmp_path / "checkpoint" / "commits" / "0").exists(), "the first batch")
        node.grow(25)
        until(lambda: len(stream.rows()) == 65, "the entries that came later")
    finally:
        query.stop()
    node.grow(15)
    query = stream.start(processingTime="100 milliseconds")
    try:
        until(lambda: len(stream.rows()) == 80, "the entries that came meanwhile")
    finally:
        query.stop()
    assert stream.rows() == list(enumerate(numbered(80)))


def test_a_stream_may_begin_at_an_index_and_end_at_one(source, tmp_path):
    node = Node(tmp_path / "a")
    node.grow(50)
    stream = Streaming(source, tmp_path, node.path, startingIndex=20, endingIndex=33)
    assert stream.run() == [13]
    assert [index for index, _ in stream.rows()] == list(range(20, 33))


def test_a_stream_that_is_to_begin_at_what_there_is_not_yet_says_so_at_once(source, tmp_path):
    node = Node(tmp_path / "a")
    node.grow(50)
    fails(
        Streaming(source, tmp_path, node.path, startingIndex=51),
        "startingIndex is 51, and the log has 50 committed entries so far",
    )
    assert Streaming(source, tmp_path, node.path, startingIndex=50).run() == []


def test_another_journal_takes_the_place_of_one_that_died(source, tmp_path):
    a, b = Node(tmp_path / "a"), Node(tmp_path / "b")
    for node in (a, b):
        node.grow(60)
    stream = Streaming(source, tmp_path, a.path, b.path)
    query = stream.start(processingTime="100 milliseconds")
    try:
        until(lambda: (tmp_path / "checkpoint" / "commits" / "0").exists(), "the first batch")
        a.close()
        shutil.rmtree(a.path)
        b.grow(60)
        until(lambda: len(stream.rows()) == 120, "the entries of the other journal")
    finally:
        query.stop()
    assert stream.rows() == list(enumerate(numbered(120)))


def fails(stream: Streaming, words: str) -> None:
    with pytest.raises(Exception, match=words):
        stream.run()


def test_a_journal_that_was_put_back_behind_the_checkpoint_is_refused(source, tmp_path):
    node = Node(tmp_path / "a")
    node.grow(50)
    node.close()
    shutil.copytree(node.path, tmp_path / "old")
    node = Node(tmp_path / "a")
    node.grow(50)
    stream = Streaming(source, tmp_path, node.path, patienceSeconds=0.2)
    assert stream.run() == [100]
    node.close()
    shutil.rmtree(node.path)
    shutil.copytree(tmp_path / "old", node.path)
    fails(stream, "has read the log up to entry 100, and the journals have 50 committed")
    # With other entries up to there it would be another history, but none that was committed: so
    # it goes on as soon as the journal has caught up.
    node = Node(tmp_path / "a")
    node.grow(60)
    assert stream.run() == [10]
    assert stream.rows() == list(enumerate(numbered(110)))


def test_a_journal_of_another_log_is_refused(source, tmp_path):
    node = Node(tmp_path / "a")
    node.grow(10)
    stream = Streaming(source, tmp_path, node.path)
    stream.run()
    node.close()
    shutil.rmtree(node.path)
    Node(tmp_path / "a", b"X" * 16).grow(20)
    fails(stream, "new checkpoint")


def test_entries_that_were_retired_are_an_error_that_says_what_to_do(source, tmp_path):
    node = Node(tmp_path / "a")
    node.grow(100)
    lossy = Streaming(source, tmp_path, node.path, failOnDataLoss="false")
    strict = Streaming(source, tmp_path, node.path)
    assert strict.run() == [100]
    node.grow(3000)
    node.close()
    names = log_files(node.path)
    for name in names[:-2]:
        name.unlink()
    first = int(names[-2].name.split(".")[0])
    assert first > 100
    fails(strict, f"entry 100 was removed from the journals, which begin at {first}.*retain_bytes")
    lossy.run()
    assert [index for index, _ in lossy.rows()] == [*range(100), *range(first, 3100)]


def test_a_node_that_was_restored_from_a_snapshot_serves_what_it_has(source, tmp_path):
    """Its journal begins in the middle of the log."""
    whole, restored = Node(tmp_path / "a"), Node(tmp_path / "b")
    whole.grow(300)
    restored.journal.reset(Checkpoint(Place(T1, 200), 77, 9, ()), mark())
    restored.length = 200
    restored.grow(100)
    alone = Streaming(source, tmp_path / "alone", restored.path)
    assert alone.run() == [100]  # From the first entry that there is.
    asked = Streaming(source, tmp_path / "asked", restored.path, startingIndex=120)
    fails(asked, "entry 120 was removed from the journals, which begin at 200.*name a journal")
    both = Streaming(source, tmp_path, restored.path, whole.path, maxEntriesPerTrigger=120)
    assert both.run() == [120, 120, 60]
    whole.close()
    shutil.rmtree(whole.path)
    restored.grow(50)
    assert both.run() == [50]
    assert both.rows() == list(enumerate(numbered(350)))


def test_a_checkpoint_that_was_put_back_reads_again_what_came_after_it(source, tmp_path):
    node = Node(tmp_path / "a")
    node.grow(50)
    stream = Streaming(source, tmp_path, node.path, maxEntriesPerTrigger=30)
    assert stream.run() == [30, 20]
    shutil.copytree(tmp_path / "checkpoint", tmp_path / "kept")
    node.grow(40)
    assert stream.run() == [30, 10]
    shutil.rmtree(tmp_path / "checkpoint")
    (tmp_path / "kept").rename(tmp_path / "checkpoint")
    shutil.rmtree(tmp_path / "out")
    node.grow(10)
    assert stream.run() == [30, 20]  # From entry 50 on.


def test_a_new_generation_stops_a_stream_that_must_not_lose_anything(source, tmp_path):
    node = Node(tmp_path / "a")
    node.grow(20)
    strict = Streaming(source, tmp_path, node.path)
    lossy = Streaming(source, tmp_path, node.path, failOnDataLoss="false")
    assert strict.run() == [20]
    node.add(mark(T2, 20, 1, lossy=True), record(20, [b"new"], T2))
    node.commit()
    fails(strict, "an operator began generation 1 of the log")
    assert lossy.run() == [1]
    assert lossy.rows()[-1] == (20, b"new")
    assert strict.run() == []  # It was read, and the checkpoint is of the new generation.
