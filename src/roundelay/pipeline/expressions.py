"""Spark expressions over the columns of the table that several steps need."""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from roundelay.core.effects import Kind
from roundelay.trace.schema import LOWER_LAYER

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

BLOCK_KEYS = 2048
"""Keys of one ring that are compared as one block, by the number k2. Larger blocks mean fewer
facts, and more messages to compare one by one where a single key of a block differs."""


def block_number(keys: int = BLOCK_KEYS) -> "Column":
    """The block that a row's key is in, of so many numbers; by default as `proofs.batch_facts`
    counts them."""
    return F.expr(f"k2 div {keys} - if(k2 < 0 and k2 % {keys} != 0, 1, 0)")


EXPANDED = ("digest", "size")
"""Columns that `expanded` needs besides those that its caller uses."""


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


def without_lower_layer(rows: "DataFrame") -> "DataFrame":
    """The rows but those of the layer below the ordering, which tell of the same messages again."""
    return rows.where(F.col("m_src").isNull() | (F.col("layer") != LOWER_LAYER))


def of_kind(kind: Kind) -> "Column":
    """Whether a row is of this kind."""
    return F.col("kind") == kind.value
