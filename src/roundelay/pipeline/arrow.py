"""Rows of a trace as Arrow batches and back, for the tasks that run Python.

Spark has no dictionaries and no columns that may not be null, so its schema of the table is the
trace's with plain words.
"""

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from roundelay.core.effects import Kind
from roundelay.core.ids import Service
from roundelay.trace.schema import (
    COLUMNS,
    ENTRY_KINDS,
    INDEX_KINDS,
    LAYERS,
    MESSAGE_KINDS,
    REGULAR,
    TRANSITIONAL,
    WORLD,
    Row,
)

_ARROW = {
    "word": pa.string(),
    "string": pa.string(),
    "bool": pa.bool_(),
    "list<int16>": pa.list_(pa.int16()),
    "view": pa.struct([("seq", pa.int64()), ("rep", pa.int16()), ("kind", pa.int8())]),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
}
_SPARK = {
    "word": "string",
    "string": "string",
    "bool": "boolean",
    "list<int16>": "array<smallint>",
    "view": "struct<seq: bigint, rep: smallint, kind: tinyint>",
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
}

EVENT_FIELDS = tuple((name, _ARROW[type_]) for name, type_ in COLUMNS.items())
EVENT_DDL = ", ".join(f"`{name}` {_SPARK[type_]}" for name, type_ in COLUMNS.items())
"""The columns of `Row`, in its order, as Arrow and as Spark write types."""


def to_arrays(rows: Sequence[Row]) -> list[Any]:
    """One array per column of `Row`."""
    arrays = []
    for place, (name, type_) in enumerate(EVENT_FIELDS):
        values = list(map(itemgetter(place), rows))
        if COLUMNS[name] == "view":
            values = [v and dict(zip(("seq", "rep", "kind"), v, strict=True)) for v in values]
        arrays.append(pa.array(values, type_))
    return arrays


def to_rows(table: Any) -> list[Row]:
    """The rows of a table or batch that has the columns of `Row` among others.

    Columns that it lacks are empty. Lists may be words, their numbers with commas in between.
    """
    count = table.num_rows
    columns: list[list[Any]] = []
    for name, type_ in COLUMNS.items():
        if name not in table.schema.names:
            columns.append([Row._field_defaults.get(name)] * count)
            continue
        values = table.column(name).to_pylist()
        if type_ == "list<int16>":
            values = [None if v is None else _numbers(v) for v in values]
        elif type_ == "view":
            values = [v and (v["seq"], v["rep"], v["kind"]) for v in values]
        columns.append(values)
    return list(map(Row._make, zip(*columns, strict=True)))


def collected_rows(collected: Sequence[Any]) -> list[Row]:
    """Rows that Spark collected with all columns of a trace."""
    dicts = [row.asDict(recursive=True) for row in collected]
    return to_rows(pa.Table.from_pydict({name: [d[name] for d in dicts] for name in COLUMNS}))


def _numbers(value: str | list[int]) -> tuple[int, ...]:
    if isinstance(value, str):
        return tuple(map(int, value.split(","))) if value else ()
    return tuple(value)


def doubtful(batch: Any, node_count: int) -> Any:
    """Which rows of a batch, typed already, `intake.fault` might object to: a boolean array.

    It may name a good row, never miss a bad one; `fault` itself has the last word and the reason.
    """
    column = {name: batch.column(name) for name, _ in EVENT_FIELDS}
    has = {name: pc.is_valid(column[name]) for name in column}
    kind = column["kind"]

    def one_of(name: str, words: Iterable[object]) -> Any:
        values = pa.array([getattr(w, "value", w) for w in words], column[name].type)
        return pc.is_in(column[name], value_set=values)

    def within(name: str, low: int, high: int) -> Any:
        return pc.and_(
            pc.greater_equal(column[name], low), pc.less(column[name], pa.scalar(high, pa.int64()))
        )

    def kinds(*among: Kind) -> Any:
        return pc.is_in(kind, value_set=pa.array([k.value for k in among]))

    needs_message = kinds(*(MESSAGE_KINDS - {Kind.ORDER, Kind.CONFIRM}), *ENTRY_KINDS)
    placed = kinds(Kind.INSTALL, Kind.END, Kind.OPEN)
    indexed = kinds(*INDEX_KINDS)
    named = kinds(*ENTRY_KINDS, Kind.INVOKE, Kind.REPLY)
    index_sound = pc.fill_null(pc.greater_equal(column["idx"], 0), False)
    whole = pc.and_(has["m_src"], pc.and_(has["m_inc"], has["m_seq"]))
    none = pc.invert(pc.or_(has["m_src"], pc.or_(has["m_inc"], has["m_seq"])))
    no_view = pc.invert(pc.or_(has["c_seq"], pc.or_(has["c_rep"], has["c_kind"])))
    view = pc.and_(pc.and_(has["c_seq"], has["c_rep"]), one_of("c_kind", (REGULAR, TRANSITIONAL)))
    good = [
        one_of("kind", Kind),
        one_of("layer", LAYERS),
        within("proc", WORLD, node_count),
        pc.greater_equal(column["inc"], 0),
        pc.greater_equal(column["lseq"], 0),
        pc.greater_equal(column["count"], 1),
        pc.or_(whole, pc.and_(none, pc.invert(needs_message))),
        pc.or_(pc.invert(has["m_src"]), pc.fill_null(within("m_src", WORLD, node_count), False)),
        pc.or_(pc.invert(has["svc"]), one_of("svc", [s.value for s in Service])),
        pc.or_(view, pc.and_(no_view, pc.invert(pc.equal(kind, Kind.INSTALL.value)))),
        pc.or_(has["members"], pc.invert(placed)),
        pc.if_else(has["idx"], index_sound, pc.invert(indexed)),
        pc.or_(has["obj"], pc.invert(named)),
        pc.invert(has["prev_c"]),
        pc.invert(has["members"]),
        pc.invert(has["dst"]),
        pc.invert(has["voters"]),
    ]
    sound = good[0]
    for condition in good[1:]:
        sound = pc.and_(sound, pc.fill_null(condition, False))
    return pc.invert(pc.fill_null(sound, False))
