"""Trails as a stream of Spark: a row for each piece of a trace, or for some lines of it.

The rows only name what is new; whoever gets them reads it, as `ingest` does. The offset of the
stream says of each trail how far it was read.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from roundelay.pipeline.live.trails import Position, Positions, after, between, check, steps, trails

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMAT = "roundelay-trace"
DDL = "path string, `start` bigint, `end` bigint"

_Row = tuple[str, int, int | None]


class TraceFiles(DataSource):
    """The files of traces that nodes write. Option `paths`: a JSON list of their directories;
    `rowsPerTrigger`: about how many rows one batch has at most."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return DDL

    def streamReader(self, schema: StructType) -> "TraceReader":  # noqa: N802  # Spark's names.
        return TraceReader(self.options)


class _Files(InputPartition):
    """All of a batch: these are few rows."""

    def __init__(self, rows: Sequence[_Row]) -> None:
        self.rows = rows


class TraceReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """What is new in some directories."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._paths = json.loads(options["paths"])
        self._rows_max = int(options["rowsPerTrigger"])
        self._until: Positions | None = None
        """Of a query that is to read what is there now."""

    def initialOffset(self) -> dict[str, object]:  # noqa: N802  # Spark's names.
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self._rows_max)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._until = after({}, steps(trails(self._paths), {}))

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, object]:  # noqa: N802
        read = positions(start)
        found = trails(self._paths)
        check(self._paths, found, read)
        rows_max = None if isinstance(limit, ReadAllAvailable) else self._rows_max
        return {**after(read, steps(found, read, self._until, rows_max))}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        found = between(positions(start), positions(end))
        return [_Files([(source.path, source.start, source.end) for source in found])]

    def read(self, partition: InputPartition) -> Iterator[_Row]:
        return iter(partition.rows if isinstance(partition, _Files) else ())


def positions(offset: Mapping[str, Any]) -> dict[str, Position]:
    """The offset of a stream, as it comes back from JSON."""
    return {name: (int(pieces), int(size)) for name, (pieces, size) in offset.items()}


def stream(spark: "SparkSession", paths: Sequence[str], rows_max: int) -> "DataFrame":
    """What is new in these directories, about so many rows of traces in a batch."""
    registration: Any = spark.dataSource
    registration.register(TraceFiles)
    reader = spark.readStream.format(FORMAT).option("paths", json.dumps(paths))
    return reader.option("rowsPerTrigger", str(rows_max)).load()
