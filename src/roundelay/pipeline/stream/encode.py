"""Rows as the payloads of entries, one entry for each; several rows for Arrow.

They are the column `payload`; or, of rows that have no such column, all columns as an object.
"""

import base64
import datetime
import decimal
import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from roundelay.pipeline.errors import PipelineError
from roundelay.runtime.control import BATCH_BYTES_MAX

PAYLOAD = "payload"


class Encoder:
    """Makes payloads from record batches of one schema; it travels to tasks."""

    def __init__(self, payload: str, schema: Any, rows_per_entry: int) -> None:
        """PipelineError if rows of this Arrow schema cannot become such payloads."""
        self._payload = payload
        self._whole = PAYLOAD not in schema.names
        self._rows_per_entry = rows_per_entry
        column = None if self._whole else schema.field(PAYLOAD).type
        if payload in ("binary", "utf8"):
            if column is None or not (pa.types.is_binary(column) or pa.types.is_string(column)):
                raise PipelineError(
                    f"payload={payload} needs a column named payload, of type binary or string; "
                    "make one, such as with to_json(struct('*')), or choose payload=json"
                )
        elif payload == "arrow" and column is not None and not pa.types.is_struct(column):
            raise PipelineError(
                f"payload=arrow needs a column payload of type struct, not {column}, or none"
            )

    def payloads(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Arrays of binary values, none of them null and none empty."""
        for batch in batches:
            if batch.num_rows:
                encoded = self._encoded(batch)
                longest = pc.max(pc.binary_length(encoded)).as_py()
                if longest > BATCH_BYTES_MAX:
                    raise PipelineError(
                        f"a row makes an entry of {longest} bytes, and {BATCH_BYTES_MAX} is the "
                        "most; write what is large elsewhere, and its place here"
                    )
                yield encoded

    def _encoded(self, batch: Any) -> Any:
        values: Any = None if self._whole else batch.column(PAYLOAD)
        if values is not None and values.null_count:
            raise PipelineError(
                "a row has null as its payload, which no entry can be; leave such rows out with "
                "where payload is not null"
            )
        if self._payload in ("binary", "utf8"):
            return values.cast(pa.binary())
        if self._payload == "json":
            found = batch.to_pylist() if values is None else values.to_pylist()
            return pa.array([_json(one) for one in found], pa.binary())
        rows = batch if values is None else pa.RecordBatch.from_struct_array(values)
        step = self._rows_per_entry
        starts = range(0, rows.num_rows, step)
        return pa.array([_arrow(rows.slice(start, step)) for start in starts], pa.binary())


def _json(document: object) -> bytes:
    try:
        text = json.dumps(
            document,
            default=_plain,
            separators=(",", ":"),
            ensure_ascii=False,
            allow_nan=False,
        )
    except ValueError:
        raise PipelineError(
            "a row has a number that is NaN or infinite, which JSON lacks; make it null or text"
        ) from None
    return text.encode()


def _plain(found: object) -> object:
    """What JSON lacks, as text."""
    if isinstance(found, datetime.datetime | datetime.date | datetime.time):
        return found.isoformat()
    if isinstance(found, bytes):
        return base64.b64encode(found).decode()
    if isinstance(found, decimal.Decimal | datetime.timedelta):
        return str(found)
    raise PipelineError(f"{type(found).__name__} has no JSON; write it as text")


def _arrow(rows: Any) -> bytes:
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, rows.schema) as writer:
        writer.write_batch(rows)
    data: bytes = out.getvalue().to_pybytes()
    return data
