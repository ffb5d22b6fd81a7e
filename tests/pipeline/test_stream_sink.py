"""Streams of real Spark into the log of a real node, and what is repeated after a crash."""

import shutil
import tempfile
from pathlib import Path

import pytest
from tests.patience import LIMIT_S
from tests.pipeline.stream_logs import Node, numbered, record

import roundelay.blocking
from roundelay.journal.reader import Batch, Reader
from roundelay.transport.address import free_addresses

pytest.importorskip("pyspark")

from roundelay.pipeline import register
from roundelay.pipeline.stream import staging

QUEUE_BYTES = 1 << 20
"""As few as a node can have."""


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    """A node that is a group by itself, the same for all tests: how many entries it had, and where
    its control socket and its journal are."""
    home = tmp_path_factory.mktemp("node")
    with tempfile.TemporaryDirectory(prefix="rd") as short:  # Paths of sockets must be short.
        control = Path(short) / "s"
        peers = free_addresses("a")
        with roundelay.blocking.join(
            "g",
            node="a",
            peers=peers,
            journal=home,
            control=control,
            timeout_s=0.1,
            queue_bytes=QUEUE_BYTES,
        ) as group:
            group.log.caught_up(LIMIT_S)
            yield group, control, home / "g"


class Appending:
    """A query from a journal into the log of the node, which may be started again."""

    def __init__(self, spark, tmp_path: Path, node, **options: object) -> None:
        register(spark)
        self.spark = spark
        self.group, self.control, self.journal = node
        self.before = self.group.log.sync()
        self.options = {"control": self.control, "staging": tmp_path / "staging", **options}
        self.home = tmp_path

    def run(self, frame=None) -> list[bytes]:
        """What the query has appended so far, once it has read what there is."""
        if frame is None:
            reader = self.spark.readStream.format("roundelay")
            frame = reader.option("maxEntriesPerTrigger", 40).option("maxEntriesPerPartition", 15)
            frame = frame.load(str(self.home / "rows")).select("payload")
        writer = frame.writeStream.format("roundelay")
        for name, value in self.options.items():
            writer = writer.option(name, str(value))
        writer = writer.option("checkpointLocation", str(self.home / "checkpoint"))
        query = writer.trigger(availableNow=True).start()
        assert query.awaitTermination(LIMIT_S)
        end = self.group.log.sync()
        reader = Reader(self.journal)
        try:
            while reader.refresh() < end:
                pass
            found: list[bytes] = []
            for batch in reader.read(self.before, end):
                assert isinstance(batch, Batch)
                found += batch.payloads
            return found
        finally:
            reader.close()

    def forget(self, batch: int) -> None:
        """As if the driver had died before Spark noted that this batch and later ones are done."""
        for kind in ("commits", "offsets"):
            for path in (self.home / "checkpoint" / kind).iterdir():
                number = path.name.strip(".").partition(".")[0]
                if int(number) >= batch + (kind == "offsets"):
                    path.unlink()


def test_rows_are_appended_in_order_and_once_although_batches_are_repeated(spark, tmp_path, node):
    rows = Node(tmp_path / "rows")
    rows.grow(100)
    query = Appending(spark, tmp_path, node)
    assert query.run() == numbered(100)
    query.forget(2)
    assert query.run() == numbered(100)
    rows.grow(30)
    assert query.run() == numbered(130)
    assert query.run() == numbered(130)
    left = [p for p in (tmp_path / "staging").glob("*/*") if p.is_dir()]
    assert len(left) == 1, "only the newest batch is kept"


def test_a_batch_that_was_fixed_before_the_crash_is_that_batch_afterwards(spark, tmp_path, node):
    """The rows come out differently the second time, and there are more of them."""
    rows = Node(tmp_path / "rows")
    rows.add(record(0, [b"first", b"second"]))
    rows.commit()
    query = Appending(spark, tmp_path, node)
    assert query.run() == [b"first", b"second"]
    query.forget(0)
    other = "explode(array(payload, cast('another' as binary), payload)) as payload"
    reader = spark.readStream.format("roundelay").option("minPartitions", 1)
    frame = reader.load(str(tmp_path / "rows")).selectExpr(other)
    assert query.run(frame) == [b"first", b"second"]


def test_a_checkpoint_that_was_put_back_by_one_batch_is_refused(spark, tmp_path, node):
    """The next batch has the number of the one that is in the log, and other rows."""
    rows = Node(tmp_path / "rows")
    rows.grow(10)
    query = Appending(spark, tmp_path, node)
    assert query.run() == numbered(10)
    shutil.copytree(tmp_path / "checkpoint", tmp_path / "kept")
    rows.grow(10)
    assert query.run() == numbered(20)
    shutil.rmtree(tmp_path / "checkpoint")
    (tmp_path / "kept").rename(tmp_path / "checkpoint")
    with pytest.raises(Exception, match="has planned it anew: the checkpoint was put back"):
        query.run()  # As many rows, and even the same ones: it cannot know that.


def test_a_query_whose_node_dies_goes_on_through_the_next_one_and_else_fails(spark, tmp_path, node):
    Node(tmp_path / "rows").grow(20)
    query = Appending(spark, tmp_path, node, timeoutSeconds=0.5)
    query.options["control"] = tmp_path / "none"
    with pytest.raises(Exception, match=r"nothing more is appended \(no node answers at"):
        query.run()
    (named,) = (tmp_path / "staging").glob("*/0")
    left = staging.fixed(named)
    assert left is not None
    assert left.parts, "aborting removes nothing that the manifest names"
    assert list(named.glob("*.arrow"))
    query.options["control"] = f"{tmp_path / 'none'},{query.control}"
    query.options["timeoutSeconds"] = 60
    assert query.run() == numbered(20)


@pytest.mark.parametrize("payload", ["json", "arrow"])
def test_rows_without_a_payload_are_read_back(spark, tmp_path, node, payload):
    Node(tmp_path / "rows").grow(5)
    query = Appending(spark, tmp_path, node, payload=payload, rowsPerEntry=2)
    reader = spark.readStream.format("roundelay").load(str(tmp_path / "rows"))
    entries = query.run(reader.selectExpr("index", "string(payload) as text"))
    assert len(entries) == {"json": 5, "arrow": 3}[payload]
    back = spark.read.format("roundelay").option("payload", payload)
    back = back.option("payloadSchema", "text string, index int")
    back = back.option("startingIndex", query.before).load(str(node[2])).orderBy("index")
    rows = back.select("payload.*") if payload == "json" else back.selectExpr("inline(payload)")
    got = [tuple(row) for row in rows.collect()]
    assert got == [(text.decode(), n) for n, text in enumerate(numbered(5))]


def test_a_batch_is_appended_as_fast_as_the_group_has_room_for_it(spark, tmp_path, node):
    Node(tmp_path / "rows").grow(40)
    query = Appending(spark, tmp_path, node)
    reader = spark.readStream.format("roundelay").load(str(tmp_path / "rows"))
    got = query.run(reader.selectExpr("cast(repeat(string(payload), 9000) as binary) payload"))
    assert sum(map(len, got)) > 4 * QUEUE_BYTES
    assert got == [text * 9000 for text in numbered(40)]


def test_a_table_that_changes_is_refused(spark, tmp_path, node):
    Node(tmp_path / "rows").grow(3)
    query = Appending(spark, tmp_path, node)
    reader = spark.readStream.format("roundelay").load(str(tmp_path / "rows"))
    writer = reader.groupBy("sender").count().writeStream.outputMode("complete")
    writer = writer.format("roundelay").option("staging", str(tmp_path / "staging"))
    writer = writer.option("checkpointLocation", str(tmp_path / "other"))
    with pytest.raises(Exception, match="a log is only appended to"):
        writer.trigger(availableNow=True).start().awaitTermination(LIMIT_S)
    shutil.rmtree(tmp_path / "other")
    assert query.run(reader.selectExpr("payload").where("index < 0")) == []
