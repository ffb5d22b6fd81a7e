"""Appends the rows of a streaming query to the log, each once.

Tasks leave payloads in files. When Spark commits a batch, the driver fixes which files are the
batch, and appends them through a node on its machine: in the session that has the query's id, under
the numbers batch * 2^32 + place. A batch that is repeated, after whatever crash, repeats numbers,
and the log takes no number twice. So Spark's "at least once" becomes once. Whether a batch is
repeated, or a new one that an older checkpoint gave its number, shows in what Spark noted of it
before it ran.

The query is as slow as the group: a batch is done when all of it is committed.
"""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from roundelay.pipeline.errors import PipelineError
from roundelay.pipeline.stream import staging
from roundelay.pipeline.stream.encode import Encoder
from roundelay.pipeline.stream.options import SinkOptions
from roundelay.pipeline.stream.staging import Batch, Chunk, Part
from roundelay.runtime.client import Client, ClientError, find_control

BATCH_NUMBERS = 1 << 32
"""Numbers of one batch."""
CHUNK_ENTRIES = 16_384
"""Entries of one request. More: what is repeated after a node died is more; fewer: the query waits
for the disks of the group more often."""
CHUNK_BYTES = 4 << 20
"""Bytes of one request, if it is not for one entry alone."""
TRY_S = 10.0
"""How long a node may try the first request, in seconds, before another is asked; then twice as
long. One that does not answer at all is given twice that. Too short: a busy group gets the same
entries again and again; too long: a node that is cut off from the others holds up the query."""
PAUSE_S = 0.2
"""Between two attempts, in seconds. Shorter: a node that starts is asked in vain many times;
longer: the query goes on later than it could."""

FINAL = ("SendError", "SessionForgottenError", "ConfigError")
"""What another node would answer in the same way."""


class Staged(WriterCommitMessage):
    """What a task has left."""

    def __init__(self, session: str, batch: int, partition: int, part: Part | None) -> None:
        self.session = session
        self.batch = batch
        self.partition = partition
        self.part = part
        """None if the partition was empty."""


class LogWriter(DataSourceStreamArrowWriter):
    """Writes the batches of one query."""

    def __init__(self, options: SinkOptions, schema: StructType, overwrite: bool) -> None:
        if overwrite:
            raise PipelineError("a log is only appended to; use outputMode append or update")
        self._options = options
        self._encoder = Encoder(
            options.payload, to_arrow_schema(schema, timezone="UTC"), options.rows_per_entry
        )

    # In tasks

    def write(self, iterator: Iterator[object]) -> Staged:
        context = TaskContext.get()
        assert context is not None
        query = context.getLocalProperty("sql.streaming.queryId")
        batch = context.getLocalProperty("streaming.sql.batchId")
        if query is None or batch is None:
            raise PipelineError(
                "Spark does not tell which query and batch a task is of; use a newer Spark, or a "
                "classic session"
            )
        session = self._options.session or query
        payloads = self._encoder.payloads(iterator)
        first = next(payloads, None)
        part = None
        if first is not None:
            part = staging.write_part(
                staging.batch_directory(self._options.staging, session, int(batch)),
                context.partitionId(),
                _chain(first, payloads),
            )
        return Staged(session, int(batch), context.partitionId(), part)

    # On the driver

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803  # Spark's name.
        told = [message for message in messages if isinstance(message, Staged)]
        if not told:
            return
        options, session = self._options, told[0].session
        newest = staging.newest(options.staging, session)
        if newest is not None and newest > batchId:
            raise _put_back(
                f"batch {newest} of session {session} is in the log, and this is batch {batchId}"
            )
        directory = staging.batch_directory(options.staging, session, batchId)
        staged = sorted(told, key=lambda message: message.partition)
        parts = tuple(message.part for message in staged if message.part is not None)
        batch = Batch(parts, staging.noted_offsets(options.checkpoint, batchId))
        known = staging.fix(directory, batch)
        self._check_repeated(known, batch, f"batch {batchId} of session {session} is in the log")
        appender = Appender(options, session)
        try:
            numbers = batchId * BATCH_NUMBERS
            for chunk in staging.chunks(directory, known.parts, CHUNK_ENTRIES, CHUNK_BYTES):
                appender.append(numbers + chunk.first, chunk)
        finally:
            appender.close()
        staging.remove_before(options.staging, session, batchId)

    def _check_repeated(self, known: Batch, batch: Batch, there: str) -> None:
        """PipelineError if `batch` is not a repetition of `known`, which has its number."""
        if known.offsets and batch.offsets:
            if known.offsets != batch.offsets:
                raise _put_back(f"{there}, and Spark has planned it anew")
        elif known.entries != batch.entries and self._options.payload != "arrow":
            # How many entries rows make as Arrow depends on how Spark divides them.
            raise _put_back(
                f"{there} and has {known.entries} entries, and the one that is to be appended has "
                f"{batch.entries}"
            )

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        for message in messages:
            if isinstance(message, Staged) and message.part is not None:
                directory = staging.batch_directory(self._options.staging, message.session, batchId)
                staging.remove_parts(directory, [message.part])


def _put_back(found: str) -> PipelineError:
    return PipelineError(
        f"{found}: the checkpoint was put back to an older state, or another query had this "
        "session. Rows that are new would be taken for old ones; start the query with a new "
        "checkpoint, and a new session if you name it"
    )


def _chain(first: object, rest: Iterator[object]) -> Iterator[object]:
    yield first
    yield from rest


class Appender:
    """Appends through one node after the other until one confirms."""

    def __init__(self, options: SinkOptions, session: str) -> None:
        self._options = options
        self._session = session
        self._client: Client | None = None
        self._turn = 0
        """Which control socket is used."""

    def append(self, first: int, chunk: Chunk) -> None:
        """Return once all are committed; PipelineError if that takes too long."""
        deadline = time.monotonic() + self._options.append_s
        try_s = TRY_S
        while True:
            left = max(PAUSE_S, deadline - time.monotonic())
            try:
                client = self._client or Client(self._control())
                self._client = client
                limits = min(try_s, left), min(2 * try_s, left)
                client.append_all(self._session, first, chunk.sizes, chunk.payloads, *limits)
                return
            except ClientError as e:
                why = str(e)
                if e.kind in FINAL:
                    raise PipelineError(f"the batch cannot be appended: {why}") from None
            self.close()
            self._turn += 1
            if not self._turn % max(1, len(self._options.controls)):
                try_s *= 2
            if time.monotonic() + PAUSE_S >= deadline:
                raise PipelineError(
                    f"nothing more is appended ({why}); see that a node runs here, and its log is "
                    "open, and start the query again: it repeats the batch, and no entry is twice "
                    "in the log"
                )
            time.sleep(PAUSE_S)

    def close(self) -> None:
        if self._client is not None:
            self._client.__exit__(None, None, None)
            self._client = None

    def _control(self) -> Path:
        options = self._options
        if options.controls:
            return options.controls[self._turn % len(options.controls)]
        return find_control(options.group, options.node)
