"""What kinds of rows a run has: it decides which slices are made of it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from roundelay.core.effects import Kind
from roundelay.trace.schema import LOG_LAYER, WORLD

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Traits:
    """What kind of rows a run has."""

    layers: tuple[str, ...]
    processes: tuple[int, ...]
    claims: bool
    token_rows: int
    rings: bool
    """Whether all of these name the ring of the token."""
    frames: bool
    """Whether any frame arrives."""


def read_traits(events: "DataFrame") -> dict[str, Traits]:
    """One pass, which keeps a few words of every run."""
    token = F.col("kind") == Kind.TOKEN.value
    above = F.col("m_src").isNotNull() & (F.col("kind") != Kind.SUBMIT.value)
    above &= F.col("layer") != LOG_LAYER
    named = F.concat(
        F.array("proc"),
        F.coalesce("members", F.array().cast("array<smallint>")),
        F.coalesce("dst", F.array().cast("array<smallint>")),
    )
    few = events.groupBy("run", "proc", "members", "dst").agg(
        F.collect_set(F.when(above, F.col("layer"))).alias("layers"),
        F.count_if(F.col("kind") == Kind.STABLE.value).alias("claims"),
        F.count_if(token).alias("tokens"),
        F.count_if(token & F.col("k0").isNull()).alias("unnamed"),
        F.count_if(F.col("kind") == Kind.ARRIVE.value).alias("arrivals"),
    )
    found = (
        few.withColumn("named", named)
        .groupBy("run")
        .agg(
            F.array_distinct(F.flatten(F.collect_list("layers"))).alias("layers"),
            F.array_distinct(F.flatten(F.collect_set("named"))).alias("named"),
            *(F.sum(name).alias(name) for name in ("claims", "tokens", "unnamed", "arrivals")),
        )
    )
    return {
        row["run"]: Traits(
            tuple(sorted(row["layers"])),
            tuple(sorted(set(row["named"]) - {WORLD})),
            row["claims"] > 0,
            row["tokens"],
            not row["unnamed"],
            row["arrivals"] > 0,
        )
        for row in found.collect()
    }
