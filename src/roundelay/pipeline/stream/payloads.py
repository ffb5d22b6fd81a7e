"""Payloads as text, JSON or Arrow.

    utf8    text
    json    one value of the type that the schema names, as an object for a struct
    arrow   a stream of Arrow's IPC format, which may hold several rows: a list of structs

What cannot be decoded is an error that names the first such entry; or null, if it is wanted so.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from roundelay.pipeline.errors import PipelineError

Whole = Callable[[Any, Any], Any]
"""Decodes an array of binary values to an array of a type; raises ArrowInvalid if any is wrong."""


def column_type(payload: str, schema: str) -> str:
    """What Spark calls the type of the column, if the user has named none."""
    if payload in ("json", "arrow") and not schema:
        raise PipelineError(
            f"payloads that are {payload} need a schema; give it as payloadSchema, such as "
            "'who string, amount long'"
        )
    return {
        "binary": "BINARY",
        "utf8": "STRING",
        "json": f"STRUCT<{schema}>",
        "arrow": f"ARRAY<STRUCT<{schema}>>",
    }[payload]


def check_type(payload: str, wanted: Any) -> None:
    """PipelineError if payloads cannot become a column of this Arrow type."""
    fits = {
        "binary": pa.types.is_binary(wanted),
        "utf8": pa.types.is_string(wanted),
        "json": pa.types.is_struct(wanted),
        "arrow": pa.types.is_list(wanted) and pa.types.is_struct(wanted.value_type),
    }
    if not fits[payload]:
        raise PipelineError(
            f'payload="{payload}" cannot give a column of type {wanted}; choose another payload, '
            "or leave the schema out"
        )


def decoder(payload: str, wanted: Any, *, permissive: bool) -> Callable[[Any, Any], Any]:
    """A function of binary values and the indexes of their entries."""
    if payload == "binary":
        return lambda values, indexes: values
    whole: Whole = {"utf8": _text, "json": _json, "arrow": _arrow}[payload]
    return partial(_decode, payload, whole, wanted, permissive)


def _decode(
    payload: str, whole: Whole, wanted: Any, permissive: bool, values: Any, indexes: Any
) -> Any:
    try:
        return whole(values, wanted)
    except (pa.ArrowException, ValueError, TypeError, NotImplementedError):
        pass
    parts = []  # One by one, to find what is wrong.
    for row in range(len(values)):
        try:
            parts.append(whole(values[row : row + 1], wanted))
        except (pa.ArrowException, ValueError, TypeError, NotImplementedError) as e:
            if not permissive:
                raise PipelineError(
                    f"the payload of entry {indexes[row]} is no {payload} of type {wanted} ({e}); "
                    "read it as it is without the option payload, or have null in its place with "
                    "payloadMode=permissive"
                ) from None
            parts.append(pa.nulls(1, wanted))
    return pa.concat_arrays(parts)


def _text(values: Any, wanted: Any) -> Any:
    return values.cast(wanted)


def _json(values: Any, wanted: Any) -> Any:
    """One object in each value. They are parsed as the lines of one text: if there are as many
    objects as values, and each line begins and ends like one, then each is one."""
    from pyarrow import json

    bare = pc.utf8_trim_whitespace(values.cast(pa.string())).cast(pa.binary())
    lines = pc.replace_substring(bare, b"\n", b" ")
    objects = pc.and_(pc.starts_with(lines, b"{"), pc.ends_with(lines, b"}"))
    if not pc.all(objects, min_count=0).as_py():
        raise ValueError("it is no JSON object")
    ended = pc.binary_join_element_wise(lines, b"", b"\n")
    start, end = ended.offset, ended.offset + len(ended)
    offsets, data = ended.buffers()[1:]
    bounds = memoryview(offsets).cast("i")
    text = data.slice(bounds[start], bounds[end] - bounds[start])
    options = json.ParseOptions(
        explicit_schema=pa.schema(list(wanted)), unexpected_field_behavior="ignore"
    )
    reading = json.ReadOptions(use_threads=False, block_size=max(1 << 20, text.size + 1))
    table = json.read_json(pa.BufferReader(text), reading, options)
    if len(table) != len(values):
        raise ValueError("it is not one JSON object")
    made = table.combine_chunks().to_struct_array()
    return pa.concat_arrays(made.chunks).cast(wanted) if made.num_chunks else pa.nulls(0, wanted)


def _arrow(values: Any, wanted: Any) -> Any:
    rows = pa.schema(list(wanted.value_type))
    tables, ends = [], [0]
    for value in values:
        with pa.ipc.open_stream(value.as_buffer()) as stream:
            table = stream.read_all().select(rows.names).cast(rows)
        tables.append(table)
        ends.append(ends[-1] + len(table))
    joined = pa.concat_tables(tables).combine_chunks().to_struct_array()
    type_ = wanted.value_type
    structs = pa.concat_arrays(joined.chunks) if joined.num_chunks else pa.nulls(0, type_)
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), structs, type=wanted)
