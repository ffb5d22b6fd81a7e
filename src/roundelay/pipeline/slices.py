"""Slices: parts of a run so small that a task can hold one, and yet whole enough to judge.

A property that speaks of one message at a time needs, of all the rows about messages, only those of
that message: any split of a run by messages gives parts whose verdicts together are the verdict
on the run. Each part is given the run's *skeleton* as well, the few rows that are about no message:
views, crashes, faults and the end. The functions that judge are those of the local checker, so a
property means the same thing here and there.

    all     a run that fits into one slice, or what cannot be split
    m0 ...  messages, by a hash of their identity; rows that cover several are expanded
    p0 ...  packets: rows as they are, by the first message and the number of them
    k0 ...  assignments and confirmations of keys, by a hash of the key
    t0 ...  the token, by stretches of the total order; each begins with who held it last
    s       of a run too large for one piece, the messages in suspect blocks of keys: what fewer
            messages break, all of them break, so this can convict, though not acquit
    views   the skeleton alone
    life    the skeleton with the first and last row of every life of a node
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812

from roundelay.check import PROPERTIES, Model, Validity, Verdict, read_model
from roundelay.core.effects import Kind
from roundelay.pipeline.arrow import to_rows
from roundelay.pipeline.plan import COMMON, FRAMES, SLICE_ROWS, TOKENS, TWO_LAYERS, Plan
from roundelay.pipeline.spans import BLOCK_KEYS
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import COLUMNS, MESSAGE_KINDS, Row

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

SPLIT = ("m", "p", "k", "t")
"""Slices of which there are several."""

IDENTITY = {
    "m": ("m_src", "m_inc", "m_seq"),
    "p": ("m_src", "m_inc", "m_seq", "count"),
    "k": ("k0", "k1", "k2", "k3"),
}
"""What the rows of a slice have in common, by kind of slice."""

SKELETON = (
    *(Kind.INSTALL, Kind.FREEZE, Kind.CRASH, Kind.RECOVER),
    *(Kind.END, Kind.FAULT, Kind.SUSPECT),
)
NET = (Kind.SEND, Kind.ARRIVE, Kind.DROP, Kind.EXPIRE)

VERDICT_DDL = (
    "run string, slice string, property string, validity string, instances bigint, reason string, "
    "at bigint, witness string"
)


def judge(
    spark: "SparkSession",
    events: "DataFrame",
    plans: Sequence[Plan],
    slice_rows: int = SLICE_ROWS,
) -> "DataFrame":
    """Verdicts on slices, as `VERDICT_DDL` has them; to be put together by `together`."""
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
    if "all" in made:
        parts.append(_everything(rows, sliced))
    if "life" in made:
        parts.append(_lives(rows, sliced))
    parts += [_pieces(rows, sliced, slice_) for slice_ in IDENTITY if slice_ in made]
    if "t" in made:
        parts.append(_tokens(rows, sliced))
    if "s" in made:
        parts.append(_suspected(spark, rows, sliced, plans))
    if made != {"all"}:
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
    return whole.unionByName(told).groupBy("run", "slice").applyInArrow(_judge, VERDICT_DDL)


_LISTS = ("members", "dst", "voters")
_AS_PYTHON_HAS_IT = [
    f"array_join(cast({name} as array<string>), ',') as {name}" if name in _LISTS else f"`{name}`"
    for name in COLUMNS
]
"""What goes to Python. Lists go as words: Spark takes a time that grows with the square of their
number to make Arrow of them."""


def _orders(plan: Plan, slice_rows: int) -> Iterator[tuple[str, str, int, int, Any, Any]]:
    for slice_, names in plan.slices(slice_rows).items():
        frames = not plan.total or not FRAMES.isdisjoint(names)
        dropped = [*(() if frames else NET), *((Kind.TOKEN,) if TOKENS.isdisjoint(names) else ())]
        skip = [] if not TWO_LAYERS.isdisjoint(names) or slice_ == "p" else list(plan.skipped)
        pieces = _piece_count(plan, slice_, slice_rows)
        yield plan.run, slice_, pieces, plan.places, [kind.value for kind in dropped], skip


def _piece_count(plan: Plan, slice_: str, slice_rows: int) -> int:
    if slice_ not in SPLIT:
        return 1
    rows = plan.token_rows if slice_ == "t" else plan.message_rows
    return max(1, -(-rows // slice_rows))


def _contexts(plan: Plan, slice_rows: int) -> Iterator[tuple[str, str, str]]:
    """What a slice is told besides its rows; it makes a slice of what has no rows, too."""
    manifest = None if plan.manifest is None else plan.manifest.to_json()
    for slice_, names in plan.slices(slice_rows).items():
        context = json.dumps(
            {
                "manifest": manifest,
                "names": names,
                "layer": plan.layer,
                # T2 is about who wrote which rows, and must not see rows that nobody wrote.
                "processes": () if slice_ == "life" else plan.processes,
                "total": plan.total,
                "claims": plan.claims,
                "withheld": plan.withholds(slice_),
            }
        )
        pieces = _piece_count(plan, slice_, slice_rows)
        for number in range(pieces):
            yield plan.run, slice_ + (str(number) if slice_ in SPLIT else ""), context


def _kind_in(kinds: Sequence[Kind]) -> "Column":
    return F.col("kind").isin([kind.value for kind in kinds])


def _of(sliced: "DataFrame", slice_: str) -> "DataFrame":
    return sliced.where(F.col("slice") == slice_)


def _kept() -> "Column":
    """Rows of the layer that is judged. Views are common to all layers."""
    return F.col("m_src").isNull() | ~F.array_contains("skip", F.col("layer"))


def _everything(rows: "DataFrame", sliced: "DataFrame") -> "DataFrame":
    wanted = rows.join(_of(sliced, "all"), "run").where(_kept())
    return wanted.where(~F.array_contains("dropped", F.col("kind"))).select(
        "run", "slice", *COLUMNS
    )


def _pieces(rows: "DataFrame", sliced: "DataFrame", slice_: str) -> "DataFrame":
    """Rows by a hash of what they are about."""
    assigned = _kind_in([Kind.ORDER, Kind.CONFIRM]) & F.col("k2").isNotNull()
    about = _kind_in(sorted(MESSAGE_KINDS)) & F.col("m_seq").isNotNull()
    some = rows.where(assigned if slice_ == "k" else about)
    # What a row does not say is 0, as in the model.
    same = F.xxhash64(*(F.coalesce(F.col(name), F.lit(0)) for name in IDENTITY[slice_]))
    number = F.pmod(same, F.col("pieces"))
    return (
        (some if slice_ == "p" else expanded(some))
        .join(_of(sliced, slice_), "run")
        .where(_kept())
        .withColumn("slice", F.concat("slice", number.cast("string")))
        .select("run", "slice", *COLUMNS)
    )


def _tokens(rows: "DataFrame", sliced: "DataFrame") -> "DataFrame":
    """The token in stretches of the total order. Each has besides, of every ring that it tells of,
    the last time before that the token was acquired, and released after that: if nothing was wrong
    until then, this tells who held it."""
    acquired = F.col("tag") == "acquire"
    number = F.expr("cast(least(gseq * pieces div places, pieces - 1) as int)")
    tokens = (
        rows.where(_kind_in([Kind.TOKEN]))
        .join(_of(sliced, "t"), "run")
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
    spark: "SparkSession", rows: "DataFrame", sliced: "DataFrame", plans: Sequence[Plan]
) -> "DataFrame":
    blocks = [(plan.run, *block) for plan in plans for block in plan.suspects]
    wanted = spark.createDataFrame(blocks, "run string, k0 bigint, k1 bigint, block bigint")
    mine = _of(sliced, "s")
    delivered = expanded(rows.where(_kind_in([Kind.DELIVER])).join(mine, "run").where(_kept()))
    message = ["run", "m_src", "m_inc", "m_seq"]
    chosen = (
        delivered.withColumn("block", block_number())
        .join(F.broadcast(wanted), ["run", "k0", "k1", "block"])
        .select(*message)
        .distinct()
    )
    return delivered.join(chosen, message).select("run", "slice", *COLUMNS)


def block_number() -> "Column":
    """The block that a row's key is in, as `facts` counts them."""
    return F.expr(f"k2 div {BLOCK_KEYS} - if(k2 < 0 and k2 % {BLOCK_KEYS} != 0, 1, 0)")


def _skeletons(rows: "DataFrame", sliced: "DataFrame") -> "DataFrame":
    """The skeleton of a run, once for every slice but those that have it already."""
    number = F.explode(F.sequence(F.lit(0), F.col("pieces") - 1))
    split = F.col("slice").isin(*SPLIT)
    copies = (
        sliced.where(F.col("slice") != "all")
        .select("run", "slice", number.alias("number"))
        .withColumn(
            "slice",
            F.when(split, F.concat("slice", F.col("number").cast("string"))).otherwise(
                F.col("slice")
            ),
        )
        .select("run", "slice")
    )
    return (
        rows.where(_kind_in(SKELETON))
        .join(F.broadcast(copies), "run")
        .select("run", "slice", *COLUMNS)
    )


def _lives(rows: "DataFrame", sliced: "DataFrame") -> "DataFrame":
    """The first and last row of every life, unless they are of the skeleton."""
    whole = F.struct(*COLUMNS)
    ends = (
        rows.join(_of(sliced, "life").select("run"), "run")
        .where(F.col("kind") != Kind.DROP.value)
        .groupBy("run", "proc", "inc")
        .agg(F.min_by(whole, "lseq").alias("one"), F.max_by(whole, "lseq").alias("two"))
        .select("run", F.explode(F.array_distinct(F.array("one", "two"))).alias("row"))
    )
    return (
        ends.select("run", F.lit("life").alias("slice"), "row.*")
        .where(~_kind_in(SKELETON))
        .select("run", "slice", *COLUMNS)
    )


def expanded(rows: "DataFrame") -> "DataFrame":
    """One row per message, as `schema.expand` makes them."""
    several = F.col("count") > 1
    offset = F.explode(F.sequence(F.lit(0), F.col("count") - 1))
    changed = {
        "m_seq": F.col("m_seq") + F.col("offset"),
        "k3": F.col("k3") + F.col("offset"),
        "digest": F.when(~several, F.col("digest")),
        "size": F.when(~several, F.col("size")),
        "count": F.lit(1),
    }
    more = rows.where(several & F.col("m_seq").isNotNull()).select("*", offset.alias("offset"))
    single = rows.where(~several | F.col("m_seq").isNull())
    return more.withColumns(changed).drop("offset").unionByName(single)


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


def _judge(key: tuple[Any, ...], table: Any) -> Any:
    """Judge one slice."""
    run, slice_ = (part.as_py() for part in key)
    told = table.column("context").drop_null().to_pylist()
    if not told:
        return _verdicts(run, slice_, [])
    context = json.loads(told[0])
    rows = to_rows(table.filter(pc.is_null(table.column("context"))))
    rows.sort(key=lambda row: (row.proc, row.inc, row.lseq, row.m_seq or 0))
    return _verdicts(run, slice_, judge_rows(rows, context))


def judge_rows(rows: list[Row], context: Mapping[str, Any]) -> list[Verdict]:
    """The verdicts on the rows of a slice."""
    manifest = context["manifest"] and Manifest.from_json(context["manifest"])
    present = rows + _roll_call(context)
    model = read_model(present, manifest, layer=context["layer"])
    model.withheld = context["withheld"]
    claimed = any(row.kind == Kind.STABLE for row in rows)
    found = []
    for name in context["names"]:
        judged = model
        if name == "L4" and context["claims"] and not claimed:
            judged = read_model([*present, _claim(context)], manifest, layer=context["layer"])
            judged.withheld = model.withheld
        judged.guessed = False
        try:
            found.append(_unless_guessed(PROPERTIES[name].verdict_on(judged), judged))
        except Exception as e:  # A check that fails has shown nothing, whatever the failure.
            found.append(_failed(name, e))
    return found


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


def together(judged: "DataFrame") -> "DataFrame":
    """The verdicts on slices put together: one row for each run and property."""
    worst = F.struct(
        F.when(F.col("validity") == "violated", 0)
        .when(F.col("validity") == "inconclusive", 1)
        .otherwise(2),
        F.col("at"),
        F.col("slice"),
    )
    common = F.col("property").isin(sorted(COMMON))
    first = Window.partitionBy("run", "property").orderBy("worst")
    return (
        judged.withColumn("worst", worst)
        .withColumn("place", F.row_number().over(first))
        .groupBy("run", "property")
        .agg(
            F.when(F.first(common), F.max("instances"))
            .otherwise(F.sum("instances"))
            .alias("instances"),
            *(
                F.max(F.when(F.col("place") == 1, F.col(name))).alias(name)
                for name in ("validity", "reason", "witness")
            ),
        )
    )
