"""Slices of the replicated log.

What is known to be committed, and what was cut, goes into all of them, but only as far as it makes
a difference: between two rows that take entries away, a life of a node only adds entries, so that
the greatest of its commits there tells what all of them tell.
"""

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812

from roundelay.core.effects import Kind
from roundelay.pipeline.properties import Slice
from roundelay.trace.schema import COLUMNS, ENTRY_KINDS, LOG_KINDS, LOG_LAYER

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

BLOCK_INDEXES = 4096
"""Indexes of the log in one block. Rows that reach over an end of a block are told in both blocks:
smaller blocks have more of these, larger ones spread a log over fewer slices."""


def _kind_in(*kinds: Kind) -> "Column":
    return F.col("kind").isin([kind.value for kind in kinds])


def knowledge(rows: "DataFrame") -> "DataFrame":
    """What goes into the slice LOG; `rows` have the columns of `slices` besides."""
    told = rows.where(
        _kind_in(*(LOG_KINDS - ENTRY_KINDS)) | _kind_in(Kind.INVOKE, Kind.REPLY)
    ).select("run", "slice", *COLUMNS)
    last = (
        rows.where(_kind_in(Kind.ENTRY))
        .groupBy("run", "slice", "proc", "inc")
        .agg(F.max_by(F.struct(*COLUMNS), F.struct("lseq", "m_seq")).alias("row"))
    )
    return told.unionByName(last.select("run", "slice", "row.*").select("run", "slice", *COLUMNS))


def pieces(rows: "DataFrame", slice_: Slice) -> "DataFrame":
    """What goes into slices of entries, or of sessions; `rows` have the columns of `slices`
    besides."""
    if slice_ is Slice.ENTRIES:
        some = _in_blocks(rows.where(_kind_in(Kind.ENTRY)))
    else:
        same = F.pmod(F.xxhash64("obj"), F.col("pieces"))
        some = rows.where(_kind_in(*ENTRY_KINDS)).withColumn("number", same)
    every = F.explode(F.sequence(F.lit(0), F.col("pieces") - 1))
    marks = _marks(rows).withColumn("number", every)
    columns = ("run", "slice", "number", *COLUMNS)
    whole = some.select(*columns).unionByName(marks.select(*columns))
    named = whole.withColumn("slice", F.concat("slice", F.col("number").cast("string")))
    return named.select("run", "slice", *COLUMNS)


def _in_blocks(rows: "DataFrame") -> "DataFrame":
    """Rows in the blocks that they reach into, of each row the part that is there."""
    end = F.col("idx") + F.col("count")
    blocks = F.expr(f"sequence(idx div {BLOCK_INDEXES}, (idx + count - 1) div {BLOCK_INDEXES})")
    first = F.greatest(F.col("idx"), F.col("block") * BLOCK_INDEXES)
    beyond = F.least(end, (F.col("block") + 1) * BLOCK_INDEXES)
    return (
        rows.withColumn("block", F.explode(blocks))
        .withColumn("first", first)
        .withColumn("beyond", beyond)
        .withColumn("m_seq", F.col("m_seq") + F.col("first") - F.col("idx"))
        .withColumn("count", (F.col("beyond") - F.col("first")).cast("int"))
        .withColumn("idx", F.col("first"))
        .withColumn("number", F.pmod(F.xxhash64("block"), F.col("pieces")))
    )


def _marks(rows: "DataFrame") -> "DataFrame":
    """Rows that say what is committed, and what was taken away."""
    life = Window.partitionBy("run", "proc", "inc").orderBy("lseq")
    away = _kind_in(Kind.CUT, Kind.RESTORE)
    stretch = F.count_if(away).over(life)
    told = (
        rows.where(
            (F.col("layer") == LOG_LAYER) & _kind_in(Kind.CUT, Kind.RESTORE, Kind.OPEN, Kind.COMMIT)
        )
        .unionByName(_replaced(rows))
        .withColumn("stretch", stretch)
    )
    within = Window.partitionBy("run", "proc", "inc", "stretch", "kind").orderBy(
        F.col("idx").desc(), F.col("lseq")
    )
    best = told.withColumn("place", F.row_number().over(within))
    return best.where(~_kind_in(Kind.COMMIT) | (F.col("place") == 1))


def _replaced(rows: "DataFrame") -> "DataFrame":
    """Where an entry has an index that the node had given already, as after a restart that lost the
    end of its log: a row `cut` just before it, since not every slice has that entry."""
    node = Window.partitionBy("run", "proc").orderBy("inc", "lseq")
    before = F.lag(F.col("idx") + F.col("count")).over(node)
    entries = rows.where(_kind_in(Kind.ENTRY)).withColumn("before", before)
    nothing = {
        name: F.lit(None).cast(type_)
        for name, type_ in rows.dtypes
        if name in ("m_src", "m_inc", "m_seq", "k0", "k1", "digest", "obj")
    }
    return (
        entries.where(F.col("idx") < F.col("before"))
        .drop("before")
        .withColumns(
            {
                **nothing,
                "kind": F.lit(Kind.CUT.value),
                "count": F.lit(1),
                "lseq": F.col("lseq") - 1,
                "gseq": F.col("gseq") - 1,
            }
        )
    )
