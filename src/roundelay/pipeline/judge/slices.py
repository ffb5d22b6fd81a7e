"""Slices: parts of a run that a task can hold, and on which a property can be judged.

A property that speaks of one message at a time needs, of all the rows about messages, only those of
that message: any split of a run by messages gives parts whose verdicts together are the verdict
on the run. Each part is given the run's *skeleton* as well, the few rows that are about no message:
views, crashes, faults and the end. The functions that judge are those of the local checker, so a
property means the same thing here and there.

`properties.Slice` lists the kinds of slices. Where a run has several slices of a kind, each has a
number behind its name: m0, m1 and so on.
"""

import json
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812

from roundelay.core.effects import Kind
from roundelay.pipeline.expressions import block_number, expanded
from roundelay.pipeline.judge import decisions, log_slices
from roundelay.pipeline.judge.plan import SLICE_ROWS, CheckPlan
from roundelay.pipeline.judge.slice_verdicts import VERDICT_DDL, judge_slice
from roundelay.pipeline.properties import (
    FRAMES,
    Slice,
    judged_also_on,
    judged_on,
    needs_lower_layer,
)
from roundelay.trace.schema import COLUMNS, MESSAGE_KINDS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

SPLIT = (
    *(Slice.MESSAGES, Slice.PACKETS, Slice.KEYS, Slice.DECISIONS, Slice.TOKENS),
    *(Slice.ENTRIES, Slice.SESSIONS),
)
"""Kinds of slices of which a run has several."""

IDENTITY = {
    Slice.MESSAGES: ("m_src", "m_inc", "m_seq"),
    Slice.PACKETS: ("m_src", "m_inc", "m_seq", "count"),
    Slice.KEYS: ("k0", "k1", "k2", "k3"),
}
"""What the rows of a slice have in common, by kind of slice."""

SKELETON = (
    *(Kind.INSTALL, Kind.FREEZE, Kind.CRASH, Kind.RECOVER),
    *(Kind.END, Kind.FAULT, Kind.SUSPECT),
)
NET = (Kind.SEND, Kind.ARRIVE, Kind.DROP, Kind.EXPIRE)


def judge_slices(
    spark: "SparkSession",
    events: "DataFrame",
    plans: Sequence[CheckPlan],
    slice_rows: int = SLICE_ROWS,
) -> "DataFrame":
    """Verdicts on slices, as `VERDICT_DDL` has them; to be put together by `merge_verdicts`."""
    orders = [order for plan in plans for order in _orders(plan, slice_rows)]
    sliced = spark.createDataFrame(
        orders,
        "run string, slice string, pieces int, places bigint, dropped array<string>, "
        "skip array<string>",
    )
    sliced = F.broadcast(sliced)
    rows = events.select("run", *COLUMNS)
    made = {order[1] for order in orders}
    parts = []
    if Slice.WHOLE in made:
        parts.append(_everything(rows, sliced))
    if Slice.LIVES in made:
        parts.append(_lives(rows, sliced))
    parts += [_pieces(rows, sliced, slice_) for slice_ in IDENTITY if slice_ in made]
    if Slice.DECISIONS in made:
        parts.append(_decisions(rows, sliced))
    if Slice.LOG in made:
        parts.append(log_slices.knowledge(rows.join(_of(sliced, Slice.LOG), "run")))
    for slice_ in (Slice.ENTRIES, Slice.SESSIONS):
        if slice_ in made:
            parts.append(log_slices.pieces(rows.join(_of(sliced, slice_), "run"), slice_))
    if Slice.LOSSES in made:
        parts.append(decisions.lost(rows.join(_of(sliced, Slice.LOSSES), "run")))
    if Slice.TOKENS in made:
        parts.append(_tokens(rows, sliced))
    if Slice.SUSPECTS in made:
        parts.append(_suspected(spark, rows, sliced, plans))
    if Slice.GAPS in made:
        parts.append(_around_gaps(spark, rows, sliced, plans))
    if made != {Slice.WHOLE}:
        parts.append(_skeletons(rows, sliced))
    whole = reduce(lambda one, other: one.unionByName(other), parts)
    contexts = spark.createDataFrame(
        [context for plan in plans for context in _contexts(plan, slice_rows)],
        "run string, slice string, context string",
    )
    whole = whole.selectExpr("run", "slice", *_AS_PYTHON_HAS_IT, "cast(null as string) as context")
    told = contexts.select(
        "run",
        "slice",
        *(F.lit(None).cast(type_).alias(name) for name, type_ in whole.dtypes[2:-1]),
        "context",
    )
    return whole.unionByName(told).groupBy("run", "slice").applyInArrow(judge_slice, VERDICT_DDL)


_LISTS = ("members", "dst", "voters")
_AS_PYTHON_HAS_IT = [
    f"array_join(cast({name} as array<string>), ',') as {name}" if name in _LISTS else f"`{name}`"
    for name in COLUMNS
]
"""What goes to Python. Lists go as words: Spark takes a time that grows with the square of their
number to make Arrow of them."""


def _orders(plan: CheckPlan, slice_rows: int) -> Iterator[tuple[str, str, int, int, Any, Any]]:
    for slice_, names in plan.slices(slice_rows).items():
        tokens = judged_on(Slice.TOKENS)
        frames = not plan.total or not FRAMES.isdisjoint(names)
        dropped = [*(() if frames else NET), *((Kind.TOKEN,) if tokens.isdisjoint(names) else ())]
        skip = set() if any(map(needs_lower_layer, names)) else set(plan.skipped)
        skip -= {"net"} if slice_ is Slice.PACKETS else set()  # E6 is about the network too.
        pieces = _piece_count(plan, slice_, slice_rows)
        yield plan.run, slice_.value, pieces, plan.places, [kind.value for kind in dropped], [*skip]


def _piece_count(plan: CheckPlan, slice_: Slice, slice_rows: int) -> int:
    if slice_ not in SPLIT:
        return 1
    rows = plan.token_rows if slice_ is Slice.TOKENS else plan.message_rows
    return max(1, -(-rows // slice_rows))


def _contexts(plan: CheckPlan, slice_rows: int) -> Iterator[tuple[str, str, str]]:
    """What a slice is told besides its rows; it makes a slice of what has no rows, too."""
    manifest = None if plan.manifest is None else plan.manifest.to_json()
    for slice_, names in plan.slices(slice_rows).items():
        context = json.dumps(
            {
                "manifest": manifest,
                "names": names,
                "counted elsewhere": sorted(judged_also_on(slice_)),
                "layer": plan.layer,
                "skipped": sorted(plan.skipped),
                # T2 is about who wrote which rows, and must not see rows that nobody wrote.
                "processes": () if slice_ is Slice.LIVES else plan.processes,
                "total": plan.total,
                "claims": plan.claims,
                "withheld": plan.withholds(slice_),
            }
        )
        pieces = _piece_count(plan, slice_, slice_rows)
        for number in range(pieces):
            yield plan.run, slice_.value + (str(number) if slice_ in SPLIT else ""), context


def _kind_in(kinds: Sequence[Kind]) -> "Column":
    return F.col("kind").isin([kind.value for kind in kinds])


def _of(sliced: "DataFrame", slice_: Slice) -> "DataFrame":
    return sliced.where(F.col("slice") == slice_.value)


def _kept() -> "Column":
    """Rows of the layer that is judged. Views are common to all layers."""
    return F.col("m_src").isNull() | ~F.array_contains("skip", F.col("layer"))


def _everything(rows: "DataFrame", sliced: "DataFrame") -> "DataFrame":
    wanted = rows.join(_of(sliced, Slice.WHOLE), "run").where(_kept())
    return wanted.where(~F.array_contains("dropped", F.col("kind"))).select(
        "run", "slice", *COLUMNS
    )


def _pieces(rows: "DataFrame", sliced: "DataFrame", slice_: Slice) -> "DataFrame":
    """Rows by a hash of what they are about."""
    about = _kind_in(sorted(MESSAGE_KINDS)) & F.col("m_seq").isNotNull()
    some = rows.where(_assigned() if slice_ is Slice.KEYS else about)
    # What a row does not say is 0, as in the model.
    same = F.xxhash64(*(F.coalesce(F.col(name), F.lit(0)) for name in IDENTITY[slice_]))
    number = F.pmod(same, F.col("pieces"))
    return (
        (some if slice_ is Slice.PACKETS else expanded(some))
        .join(_of(sliced, slice_), "run")
        .where(_kept())
        .withColumn("slice", F.concat("slice", number.cast("string")))
        .select("run", "slice", *COLUMNS)
    )


def _assigned() -> "Column":
    """Rows that decide or confirm a place in the order."""
    return _kind_in([Kind.ORDER, Kind.CONFIRM]) & F.col("k2").isNotNull()


def _decisions(rows: "DataFrame", sliced: "DataFrame") -> "DataFrame":
    some = rows.where(_assigned()).join(_of(sliced, Slice.DECISIONS), "run")
    return decisions.in_blocks(some.where(_kept()))


def _tokens(rows: "DataFrame", sliced: "DataFrame") -> "DataFrame":
    """The token in stretches of the total order. Each has besides, of every ring that it tells of,
    the last time before that the token was acquired, and released after that: if nothing was wrong
    until then, this tells who held it."""
    acquired = F.col("tag") == "acquire"
    number = F.expr("cast(least(gseq * pieces div places, pieces - 1) as int)")
    tokens = (
        rows.where(_kind_in([Kind.TOKEN]))
        .join(_of(sliced, Slice.TOKENS), "run")
        .withColumn("number", number)
    )
    ends = tokens.groupBy("run", "k0", "k1", "number", "proc").agg(
        F.max(F.when(acquired, F.col("gseq"))).alias("acquired"),
        F.max(F.when(~acquired, F.col("gseq"))).alias("released"),
    )
    carried = ends.groupBy("run", "k0", "k1").applyInArrow(
        _carried, "run string, gseq bigint, number int"
    )
    copies = tokens.drop("number").join(F.broadcast(carried), ["run", "gseq"])
    return (
        tokens.unionByName(copies)
        .withColumn("slice", F.concat("slice", F.col("number").cast("string")))
        .select("run", "slice", *COLUMNS)
    )


def _suspected(
    spark: "SparkSession", rows: "DataFrame", sliced: "DataFrame", plans: Sequence[CheckPlan]
) -> "DataFrame":
    """All rows about messages that have keys in certain blocks, or are accused otherwise."""
    blocks = [(plan.run, *block) for plan in plans for block in plan.suspects]
    wanted = spark.createDataFrame(blocks, _BLOCKS)
    named = [(plan.run, *message) for plan in plans for message in plan.accused]
    message = ["run", "m_src", "m_inc", "m_seq"]
    accused = spark.createDataFrame(named, "run string, m_src smallint, m_inc bigint, m_seq bigint")
    mine = _of(sliced, Slice.SUSPECTS)
    about = rows.where(_kind_in(sorted(MESSAGE_KINDS)) & F.col("m_seq").isNotNull())
    told = about.join(mine, "run").where(_kept())
    delivered = told.where(_kind_in([Kind.DELIVER]) & F.col("k2").isNotNull())
    chosen = (
        expanded(delivered.withColumn("block", block_number()).join(F.broadcast(wanted), _BLOCK))
        .select(*message)
        .unionByName(accused)
        .distinct()
    )
    return expanded(told).join(chosen, message).select("run", "slice", *COLUMNS)


_BLOCK = ["run", "k0", "k1", "block"]
_BLOCKS = "run string, k0 bigint, k1 bigint, block bigint"


def _around_gaps(
    spark: "SparkSession", rows: "DataFrame", sliced: "DataFrame", plans: Sequence[CheckPlan]
) -> "DataFrame":
    """Whatever has a key in certain blocks, which are side by side."""
    blocks = [(plan.run, *block) for plan in plans for block in plan.gap]
    wanted = F.broadcast(spark.createDataFrame(blocks, _BLOCKS))
    keyed = rows.where(_kind_in([Kind.ORDER, Kind.CONFIRM, Kind.DELIVER]) & F.col("k2").isNotNull())
    # What a row does not say is 0, as in the model.
    ring = {"r0": F.coalesce("k0", F.lit(0)), "r1": F.coalesce("k1", F.lit(0))}
    near = wanted.withColumnsRenamed({"k0": "r0", "k1": "r1"})
    return expanded(
        keyed.join(_of(sliced, Slice.GAPS), "run")
        .where(_kept())
        .withColumns({**ring, "block": block_number()})
        .join(near, ["run", "r0", "r1", "block"])
    ).select("run", "slice", *COLUMNS)


def _skeletons(rows: "DataFrame", sliced: "DataFrame") -> "DataFrame":
    """The skeleton of a run, once for every slice but those that have it already."""
    number = F.explode(F.sequence(F.lit(0), F.col("pieces") - 1))
    split = F.col("slice").isin([kind.value for kind in SPLIT])
    copies = (
        sliced.where(F.col("slice") != Slice.WHOLE.value)
        .select("run", "slice", number.alias("number"))
        .withColumn(
            "slice",
            F.when(split, F.concat("slice", F.col("number").cast("string"))).otherwise(
                F.col("slice")
            ),
        )
        .select("run", "slice")
    )
    # Of the log, views have only where operators began generations of it.
    begun = _kind_in([Kind.OPEN]) & (F.col("tag") != "")
    return (
        rows.where(_kind_in(SKELETON) | begun)
        .join(F.broadcast(copies), "run")
        .where(_kind_in(SKELETON) | (F.col("slice") == Slice.VIEWS.value))
        .select("run", "slice", *COLUMNS)
    )


def _lives(rows: "DataFrame", sliced: "DataFrame") -> "DataFrame":
    """The first and last row of every life, unless they are of the skeleton."""
    whole = F.struct(*COLUMNS)
    ends = (
        rows.join(_of(sliced, Slice.LIVES).select("run"), "run")
        .where(F.col("kind") != Kind.DROP.value)
        .groupBy("run", "proc", "inc")
        .agg(F.min_by(whole, "lseq").alias("one"), F.max_by(whole, "lseq").alias("two"))
        .select("run", F.explode(F.array_distinct(F.array("one", "two"))).alias("row"))
    )
    return (
        ends.select("run", F.lit(Slice.LIVES.value).alias("slice"), "row.*")
        .where(~_kind_in(SKELETON))
        .select("run", "slice", *COLUMNS)
    )


# What runs in a task.


def _carried(key: tuple[Any, ...], table: Any) -> Any:
    """Which rows of one ring's token are told again in later stretches."""
    places: list[int] = []
    numbers: list[int] = []
    holder: dict[str, Any] | None = None
    ends = sorted(table.to_pylist(), key=lambda end: end["number"])
    for number, group in groupby(ends, key=lambda end: end["number"]):
        if holder is not None:
            rows = [holder["acquired"], *filter(None, [holder["released"]])]
            places += rows
            numbers += [number] * len(rows)
        for end in group:
            if end["acquired"] is not None and (
                holder is None or end["acquired"] > holder["acquired"]
            ):
                holder = end
            elif holder is not None and end["proc"] == holder["proc"]:
                holder = holder | {"released": end["released"]}
        if holder is not None and (holder["released"] or 0) < holder["acquired"]:
            holder = holder | {"released": None}
    run = [key[0].as_py()] * len(places)
    types = [("run", pa.string()), ("gseq", pa.int64()), ("number", pa.int32())]
    return pa.Table.from_arrays(
        [pa.array(v, type_) for v, (_, type_) in zip((run, places, numbers), types, strict=True)],
        schema=pa.schema(types),
    )
