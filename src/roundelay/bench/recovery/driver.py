"""The driver that is killed: `python -m roundelay.bench.recovery.driver JOB`, JOB being JSON.

It says `started` when both queries run. With `rest` it reads and appends what there is, first one
and then the other, and says which files the table consists of, as JSON.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from random import sample
from typing import TYPE_CHECKING, Any

from roundelay.pipeline import register
from roundelay.pipeline.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EVERY = "100 milliseconds"
"""How often a query looks for more."""


@dataclass(frozen=True, slots=True)
class Job:
    """What a driver is told."""

    master: str
    journals: str
    """Of the nodes whose log is read, with commas in between."""
    controls: str
    """Their control sockets."""
    rows: str
    """The journal of another log: its payloads are appended."""
    table: str
    staging: str
    per_batch: int
    """Rows that are appended in one batch."""
    rest: bool

    def text(self) -> str:
        return json.dumps(asdict(self))


def checkpoint(place: str) -> str:
    """Where the query that writes to this place notes how far it is."""
    return f"{place}-checkpoint"


def _read(spark: "SparkSession", journals: str, per_batch: int) -> "DataFrame":
    reader = spark.readStream.format("roundelay").option("minPartitions", 2)
    return reader.option("maxEntriesPerTrigger", per_batch).load(journals)


def _shuffled(batches: Iterator[Any]) -> Iterator[Any]:
    """The rows, in another order whenever a batch is repeated."""
    for batch in batches:
        yield batch.take(sample(range(batch.num_rows), batch.num_rows))


def drive(job: Job) -> None:
    trigger: dict[str, Any] = {"availableNow": True} if job.rest else {"processingTime": EVERY}
    with open_session(job.master, short=True) as spark:
        register(spark)
        sink = (
            _read(spark, job.rows, job.per_batch)
            .select("payload")
            .repartition(2)
            .mapInArrow(_shuffled, "payload binary")
            .writeStream.format("roundelay")
            .option("control", job.controls)
            .option("staging", job.staging)
            .option("checkpointLocation", checkpoint(job.staging))
            .trigger(**trigger)
            .start()
        )
        if job.rest:  # So that the table gets what is appended now.
            sink.awaitTermination()
        table = (
            _read(spark, job.journals, 40 * job.per_batch)
            .writeStream.format("parquet")
            .option("path", job.table)
            .option("checkpointLocation", checkpoint(job.table))
            .trigger(**trigger)
            .start()
        )
        if not job.rest:
            _say("started")
        table.awaitTermination()
        _say(json.dumps(spark.read.parquet(job.table).inputFiles()))


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    drive(Job(**json.loads(sys.argv[1])))
