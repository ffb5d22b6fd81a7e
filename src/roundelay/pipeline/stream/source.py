"""The log as rows: what Spark asks a batch reader and a stream reader, answered from journals.

The offset of a stream is the index of the next entry, with the log's id and its generation. The
latest one is the number of committed entries, so a row that was read is never taken back. Ranges
are read by tasks, from any of the journals.
"""

import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from roundelay.pipeline.errors import PipelineError
from roundelay.pipeline.stream import payloads
from roundelay.pipeline.stream.columns import TYPES, batches
from roundelay.pipeline.stream.options import PARTITION_ENTRIES_MIN, SourceOptions
from roundelay.pipeline.stream.replicas import (
    POLL_S,
    Offset,
    Replicas,
    offset_in,
    removed_error,
)

NOWHERE = Offset("", 0, 0)


class Range(InputPartition):
    """Consecutive entries for one task."""

    def __init__(self, at: Offset, end: int, place: int) -> None:
        self.at = at
        self.end = end
        self.place = place
        """Among the ranges that are read at the same time."""


def ranges(start: int, end: Offset, options: SourceOptions) -> list[Range]:
    """The entries from `start` up to `end`, divided among tasks evenly."""
    total = end.index - start
    if total <= 0:
        return []
    needed = -(-total // options.max_per_partition)
    parts = max(needed, min(options.min_partitions, max(1, total // PARTITION_ENTRIES_MIN)))
    bounds = [start + total * part // parts for part in range(parts + 1)]
    return [
        Range(Offset(end.log, end.generation, low), high, place)
        for place, (low, high) in enumerate(pairwise(bounds))
    ]


class _Reading:
    """What both readers do in tasks."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = to_arrow_schema(schema, timezone="UTC")
        for field in self._schema:
            if field.name not in TYPES:
                raise PipelineError(
                    f"a log has no column {field.name!r}; it has {', '.join(TYPES)}"
                )
        if "payload" in self._schema.names:
            payloads.check_type(options.payload, self._schema.field("payload").type)

    def rows(self, part: InputPartition) -> Iterator[Any]:
        if not isinstance(part, Range):
            return iter(())  # Spark's own, if there is nothing to be read.
        options = self._options
        replicas = Replicas(options.paths, part.at, part.place)
        decode = payloads.decoder(
            options.payload,
            self._schema.field("payload").type if "payload" in self._schema.names else None,
            permissive=options.permissive,
        )
        packets = replicas.packets(
            part.at.index, part.end, options.patience_s, skip=not options.fail_on_data_loss
        )
        return batches(packets, self._schema, decode)


def _first(replicas: Replicas, options: SourceOptions) -> int:
    """Where a query begins that has read nothing yet."""
    first = replicas.first or 0
    if options.starting is None:
        return first
    if options.starting < 0:
        return replicas.committed
    if options.starting > replicas.committed:
        raise PipelineError(
            f"startingIndex is {options.starting}, and the log has {replicas.committed} committed "
            "entries so far; begin at latest, or wait"
        )
    if options.starting < first and options.fail_on_data_loss:
        raise removed_error(options.starting, first)
    return max(options.starting, first)


def _look(options: SourceOptions, at: Offset) -> Replicas:
    """The journals; PipelineError if none can be read."""
    replicas = Replicas(options.paths, at)
    _refresh(replicas)
    return replicas


def _refresh(replicas: Replicas) -> None:
    if not replicas.refresh():
        raise PipelineError(f"no journal can be read ({replicas.reasons()})")


class LogReader(DataSourceReader):
    """A part of the log, as it is when the query begins."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._reading = _Reading(options, schema)

    def partitions(self) -> list[InputPartition]:
        options = self._options
        replicas = _look(options, NOWHERE)
        end = replicas.committed
        if options.ending is not None:
            if options.ending > end:
                raise PipelineError(
                    f"endingIndex is {options.ending}, and the log has {end} committed entries so "
                    "far; leave it out, or wait"
                )
            end = options.ending
        start = _first(replicas, options)
        return [*ranges(start, Offset(replicas.log, replicas.generation, end), options)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return self._reading.rows(partition)


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The log as it grows."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._reading = _Reading(options, schema)
        self._target: int | None = None
        """Of a query that is to read what is available now."""
        self._replicas: Replicas | None = None
        self._log: str | None = None

    # On the driver

    def initialOffset(self) -> dict[str, object]:  # noqa: N802  # Spark's names.
        replicas = self._looked(NOWHERE)
        start = _first(replicas, self._options)
        return Offset(replicas.log, replicas.generation, start).document()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        most = self._options.max_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._target = _look(self._options, NOWHERE).committed

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, object]:  # noqa: N802
        at = offset_in(start)
        replicas = self._looked(at)
        self._check(at, replicas)
        end = replicas.committed
        for most in (self._options.ending, self._target):
            end = end if most is None else min(end, most)
        if isinstance(limit, ReadMaxRows):
            end = min(end, at.index + limit.max_rows)
        return Offset(replicas.log, replicas.generation, max(end, at.index)).document()

    def reportLatestOffset(self) -> dict[str, object] | None:  # noqa: N802
        found = self._replicas
        if found is None:
            return None
        return Offset(found.log, found.generation, found.committed).document()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return ranges(offset_in(start).index, offset_in(end), self._options)

    def _looked(self, at: Offset) -> Replicas:
        if self._replicas is None or self._log != at.log:
            self._replicas, self._log = Replicas(self._options.paths, at), at.log
        self._replicas.at = at
        _refresh(self._replicas)
        return self._replicas

    def _check(self, at: Offset, replicas: Replicas) -> None:
        """PipelineError if the journals do not continue what was read up to `at`."""
        options = self._options
        deadline = time.monotonic() + options.patience_s
        while replicas.committed < at.index and time.monotonic() < deadline:
            time.sleep(POLL_S)
            _refresh(replicas)
        if replicas.committed < at.index:
            raise PipelineError(
                f"the query has read the log up to entry {at.index}, and the journals have "
                f"{replicas.committed} committed entries: they are an older state, or nodes still "
                "catch up. Name the journal of a node that has more, or start the query with a new "
                "checkpoint"
            )
        if not options.fail_on_data_loss:
            return
        if replicas.first is not None and replicas.first > at.index:
            raise removed_error(at.index, replicas.first)
        if at.log and replicas.generation > at.generation:
            raise PipelineError(
                f"an operator began generation {replicas.generation} of the log from what a lost "
                f"majority had left, so entries that were confirmed after entry {at.index} may be "
                "gone; go on with failOnDataLoss=false, or start the query with a new checkpoint"
            )

    # In tasks

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return self._reading.rows(partition)
