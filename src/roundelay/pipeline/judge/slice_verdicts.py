"""Judging a slice with the functions of the local checker, and putting verdicts together."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812

from roundelay.check import PROPERTIES, Model, Validity, Verdict, read_model
from roundelay.check.checker import no_collection
from roundelay.core.effects import Kind
from roundelay.pipeline.arrow import to_rows
from roundelay.pipeline.properties import BELOW, COUNTED_ONCE
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import COLUMNS, LOWER_LAYER, Row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

VERDICT_DDL = (
    "run string, slice string, property string, validity string, instances bigint, reason string, "
    "at bigint, witness string"
)


ASK_FOR_CLAIMS = ("S7", "L4")
"""Properties that say nothing of a run in which nobody ever claims stability."""


def judge_slice(key: tuple[Any, ...], table: Any) -> Any:
    """Judge one slice."""
    run, slice_ = (part.as_py() for part in key)
    told = table.column("context").drop_null().to_pylist()
    if not told:
        return _verdicts(run, slice_, [])
    context = json.loads(told[0])
    rows = to_rows(table.filter(pc.is_null(table.column("context"))))
    rows.sort(key=lambda row: (row.proc, row.inc, row.lseq, row.m_seq or 0))
    with no_collection():
        return _verdicts(run, slice_, judge_rows(rows, context))


def judge_rows(rows: list[Row], context: Mapping[str, Any]) -> list[Verdict]:
    """The verdicts on the rows of a slice."""
    manifest = context["manifest"] and Manifest.from_json(context["manifest"])
    present = rows + _roll_call(context)
    layers = frozenset(context["skipped"])
    model = read_model(present, manifest, layer=context["layer"], skipped=layers)
    model.withheld = context["withheld"]
    below: Model | None = None
    claimed = any(row.kind == Kind.STABLE for row in rows)
    found = []
    for name in context["names"]:
        judged = model
        if name in ASK_FOR_CLAIMS and context["claims"] and not claimed:
            claims = [*present, _claim(context)]
            judged = read_model(claims, manifest, layer=context["layer"], skipped=layers)
            judged.withheld = model.withheld
        elif name.startswith(BELOW):
            below = below or _model_below(present, manifest, withheld=model.withheld)
            judged = below
        judged.guessed = False
        try:
            verdict = PROPERTIES[name.removeprefix(BELOW)].verdict_on(judged)
            counted = 0 if name in context["counted elsewhere"] else verdict.instances
            verdict = replace(verdict, property=name, instances=counted)
            found.append(_unless_guessed(verdict, judged))
        except Exception as e:  # A check that fails has shown nothing, whatever the failure.
            found.append(_failed(name, e))
    return found


def _model_below(rows: list[Row], manifest: Manifest | None, *, withheld: bool) -> Model:
    """The model of the layer below the ordering, of which there may be no row."""
    own = [row for row in rows if row.m_src is None or row.layer == LOWER_LAYER]
    model = read_model(own, manifest, layer=LOWER_LAYER, skipped=frozenset())
    model.withheld = withheld
    return model


def _unless_guessed(verdict: Verdict, model: Model) -> Verdict:
    """A verdict that holds whatever the frames say that are not in the slice."""
    if verdict.validity is not Validity.OK or not model.guessed:
        return verdict
    return replace(verdict, validity=Validity.INCONCLUSIVE, reason=NO_FRAMES)


NO_FRAMES = (
    "only frames could tell what came first at different nodes, and the run is too large to be "
    "judged in one piece with them"
)


def _failed(name: str, error: Exception) -> Verdict:
    said = f"the check itself failed: {type(error).__name__}: {error}"
    return Verdict(name, Validity.INCONCLUSIVE, reason=said)


def _roll_call(context: Mapping[str, Any]) -> list[Row]:
    """Rows that say nothing but that their process exists, and whether events have an order."""
    gseq = -1 if context["total"] else None
    return [Row(Kind.EXPIRE, proc, 0, -1, gseq=gseq) for proc in context["processes"]]


def _claim(context: Mapping[str, Any]) -> Row:
    """A claim about no message that was ever sent: somebody in this run does claim stability."""
    gseq = -1 if context["total"] else None
    proc = context["processes"][0]
    return Row(Kind.STABLE, proc, 0, -1, gseq=gseq, m_src=-1, m_inc=0, m_seq=-1, level=0)


def _verdicts(run: str, slice_: str, verdicts: Sequence[Verdict]) -> Any:
    """Verdicts as a table of `VERDICT_DDL`."""
    columns: list[list[Any]] = [[] for _ in range(8)]
    for v in verdicts:
        first = v.witness[0] if v.witness else None
        at = 0 if first is None else (first.t_ns if first.gseq is None else first.gseq)
        witness = json.dumps([list(row) for row in v.witness]) if v.witness else None
        values = (run, slice_, v.property, str(v.validity), v.instances, v.reason, at, witness)
        for column, value in zip(columns, values, strict=True):
            column.append(value)
    types = [pa.string()] * 4 + [pa.int64(), pa.string(), pa.int64(), pa.string()]
    names = ["run", "slice", "property", "validity", "instances", "reason", "at", "witness"]
    arrays = [pa.array(c, type_) for c, type_ in zip(columns, types, strict=True)]
    return pa.Table.from_arrays(arrays, names=names)


def witness_rows(text: str | None) -> tuple[Row, ...]:
    """The rows of a witness that a slice wrote down."""
    rows = []
    for values in json.loads(text) if text else ():
        fields = dict(zip(COLUMNS, values, strict=True))
        for name in ("dst", "members", "voters", "prev_c"):
            if fields[name] is not None:
                fields[name] = tuple(fields[name])
        rows.append(Row(**fields))
    return tuple(rows)


def merge_verdicts(judged: "DataFrame") -> "DataFrame":
    """The verdicts on slices put together: one row for each run and property."""
    worst = F.struct(
        F.when(F.col("validity") == "violated", 0)
        .when(F.col("validity") == "inconclusive", 1)
        .otherwise(2),
        F.col("at"),
        F.col("slice"),
    )
    counted_once = F.col("property").isin(sorted(COUNTED_ONCE))
    first = Window.partitionBy("run", "property").orderBy("worst")
    return (
        judged.withColumn("worst", worst)
        .withColumn("place", F.row_number().over(first))
        .groupBy("run", "property")
        .agg(
            F.when(F.first(counted_once), F.max("instances"))
            .otherwise(F.sum("instances"))
            .alias("instances"),
            *(
                F.max(F.when(F.col("place") == 1, F.col(name))).alias(name)
                for name in ("validity", "reason", "witness")
            ),
        )
    )
