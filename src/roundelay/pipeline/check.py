"""The verdicts of the local checker, on tables of any size.

facts         one pass over the table: a few numbers for every batch of rows    `facts`
writers       is the trace all there                                            `writers`
certificates  what the numbers prove of deliveries                              `certify`
slices        everything else, judged in parts by the local properties          `slices`
joins         two properties of runs too large for one piece                    `joined`
conclusions   what counts, given the others                                     `check.checker`
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as F  # noqa: N812

from roundelay.check import PROPERTIES, Profile, Report, Validity, Verdict
from roundelay.check.checker import conclude, resolve
from roundelay.core.effects import Kind
from roundelay.pipeline import joined, slices, writers
from roundelay.pipeline.causes import Implied
from roundelay.pipeline.certify import certify
from roundelay.pipeline.errors import PipelineError
from roundelay.pipeline.plan import ALL_ROWS_MAX, SLICE_ROWS, SUSPECT, Plan, skipped_layers
from roundelay.pipeline.stitch import Stitched
from roundelay.pipeline.table import Table
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import WORLD, Row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

VERDICTS = "verdicts.parquet"
"""Beside the table."""

STEPS = 3
Progress = Callable[[int, int], None]
Held = Profile | Sequence[str] | None
"""What runs are held to; None for what the manifest of each says."""


@dataclass(frozen=True, slots=True)
class RunReport:
    """The verdicts on one run."""

    run: str
    manifest: Manifest | None
    problems: list[str]
    report: Report


def check(
    spark: "SparkSession",
    table: Table,
    *,
    held: "Held | Callable[[Manifest | None], Held]" = None,
    slice_rows: int = SLICE_ROWS,
    whole_rows: int = ALL_ROWS_MAX,
    progress: Progress | None = None,
) -> list[RunReport]:
    """Judge every run of a table. A run of at most `whole_rows` rows about messages is judged in
    one piece where it has to be."""
    tell = progress or (lambda done, total: None)
    events = table.events(spark)
    stitched = certify(spark, table)
    tell(1, STEPS)
    traits = _traits(events)
    tell(2, STEPS)
    cases = [
        _case(table, run, stitched.get(run, Stitched()), traits, held, whole_rows)
        for run in table.runs
    ]
    plans = [plan for case in cases if (plan := case.plan()) is not None]
    judged = _judge(spark, events, plans, slice_rows)
    judged |= _joined(events, cases)
    judged |= _gaps(events, cases)
    tell(3, STEPS)
    return [case.report(judged) for case in cases]


Judged = dict[tuple[str, str], Verdict]


def _joined(events: "DataFrame", cases: Sequence["_Case"]) -> Judged:
    """Of runs too large for one piece, what a join proves."""
    claiming = [
        case.run
        for case in cases
        if case.asks("S5") and case.stitched.placed and "D2" in case.proved
    ]
    assigning = [case.run for case in cases if case.asks("K4") and case.total]
    proved = {
        **{(run, "S5"): n for run, n in joined.stable_prefix(events, claiming).items()},
        **{(run, "K4"): n for run, n in joined.caught_up(events, assigning).items()},
    }
    return {at: _holds(at[1], instances) for at, instances in proved.items()}


def _gaps(events: "DataFrame", cases: Sequence["_Case"]) -> Judged:
    """T1 of every run that is held to it."""
    asked = [case for case in cases if case.held_to("T1")]
    wanted = {}
    for case in asked:
        broken = writers.fault(case.stitched.logs, case.manifest)
        if broken is not None:
            wanted[case.run] = broken.wants
    shown = writers.neighbours(events, wanted)
    return {
        (case.run, "T1"): writers.gap_free(
            case.stitched.logs, case.manifest, shown.get(case.run, ())
        )
        for case in asked
    }


def _holds(name: str, instances: int) -> Verdict:
    if not instances:
        return Verdict(name, Validity.VACUOUS, reason="its premise never occurred")
    return Verdict(name, Validity.OK, instances)


def _judge(
    spark: "SparkSession", events: "DataFrame", plans: Sequence[Plan], slice_rows: int
) -> Judged:
    if not plans:
        return {}
    found: Judged = {}
    for row in slices.together(slices.judge(spark, events, plans, slice_rows)).collect():
        validity, instances = Validity(row["validity"]), row["instances"]
        if validity in (Validity.OK, Validity.VACUOUS):
            validity = Validity.OK if instances else Validity.VACUOUS
        reason = "" if validity is Validity.OK else row["reason"]
        witness = slices.witness_rows(row["witness"])
        if validity is Validity.VACUOUS:
            reason = "its premise never occurred"
        found[row["run"], row["property"]] = Verdict(
            row["property"], validity, instances, witness, reason
        )
    return found


@dataclass(frozen=True, slots=True)
class _Traits:
    """What kind of rows a run has."""

    layers: tuple[str, ...]
    processes: tuple[int, ...]
    claims: bool
    token_rows: int
    rings: bool
    """Whether all of these name the ring of the token."""
    frames: bool
    """Whether any frame arrives."""


def _traits(events: "DataFrame") -> dict[str, _Traits]:
    """One pass, which keeps a few words of every run."""
    token = F.col("kind") == Kind.TOKEN.value
    above = F.col("m_src").isNotNull() & (F.col("kind") != Kind.SUBMIT.value)
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
        row["run"]: _Traits(
            tuple(sorted(row["layers"])),
            tuple(sorted(set(row["named"]) - {WORLD})),
            row["claims"] > 0,
            row["tokens"],
            not row["unnamed"],
            row["arrivals"] > 0,
        )
        for row in found.collect()
    }


@dataclass(frozen=True, slots=True)
class _Case:
    """One run on trial."""

    run: str
    manifest: Manifest | None
    profile: Profile
    problems: list[str]
    stitched: Stitched
    traits: _Traits | None
    whole_rows: int

    @property
    def total(self) -> bool:
        return not any(log.unplaced for log in self.stitched.logs)

    @property
    def message_rows(self) -> int:
        return sum(log.message_rows for log in self.stitched.logs)

    @property
    def proved(self) -> dict[str, int]:
        """By property, how often its premise occurred."""
        return self.stitched.proved if self._one_layer else {}

    @property
    def _one_layer(self) -> bool:
        """Whether the run is judged by all its rows; else the facts, which are about all of them,
        prove nothing."""
        if self.traits is None:
            return False
        skipped = skipped_layers(self.traits.layers, self.profile.layer)
        return skipped.isdisjoint(self.traits.layers)

    @property
    def _large(self) -> bool:
        return self.message_rows > self.whole_rows

    def held_to(self, name: str) -> bool:
        return any(entry.property == name for entry in self.profile.entries)

    def asks(self, name: str) -> bool:
        """Whether a property is asked for that is too much for one piece here."""
        return self.held_to(name) and self._large and self._one_layer

    @property
    def _implied(self) -> list[Implied]:
        """What may be concluded without judging it. A run that fits into one piece is judged."""
        return self.stitched.implied if self._large and self._one_layer else []

    def plan(self) -> Plan | None:
        """What is still open, if anything."""
        names = [e.property for e in self.profile.entries if e.property != "T1"]
        names += [name for name in self.profile.envelope if name not in names]
        needs = [need for one in self._implied for need in one.needs if one.property in names]
        names += [name for name in dict.fromkeys(needs) if name not in names and name in PROPERTIES]
        names = [name for name in names if name not in self.proved]
        if self.traits is None or not names:
            return None
        return Plan(
            self.run,
            self.manifest,
            tuple(names),
            self.profile.layer,
            self.message_rows,
            self.traits.token_rows,
            1 + max((log.last_place for log in self.stitched.logs), default=0),
            self.total,
            self.traits.layers,
            self._processes,
            self.traits.claims,
            self.traits.rings,
            self.traits.frames,
            self.whole_rows,
            tuple(self.stitched.suspects),
        )

    @property
    def _processes(self) -> tuple[int, ...]:
        assert self.traits is not None
        named = range(len(self.manifest.nodes)) if self.manifest is not None else ()
        return tuple(sorted({*named, *self.traits.processes}))

    @property
    def _parted(self) -> frozenset[str]:
        """Properties that were judged on suspects alone, which can convict and not acquit."""
        return SUSPECT if self._large else frozenset()

    def _concluded(self, judged: Judged) -> dict[str, int]:
        """What is proved, and what follows from that and from what was judged."""
        holds = dict(self.proved)
        for name, instances, needs in self._implied:
            if all(need in holds or _fine(judged.get((self.run, need))) for need in needs):
                holds.setdefault(name, instances)
        return holds

    def report(self, judged: Judged) -> RunReport:
        proved = self._concluded(judged)

        def verdict(name: str) -> Verdict:
            if name in proved:
                return _holds(name, proved[name])
            found = judged.get((self.run, name))
            if found is not None and not (name in self._parted and _innocent(found)):
                return found
            if self.traits is None:
                return Verdict(name, Validity.VACUOUS, reason="its premise never occurred")
            reason = (
                f"the run has {self.message_rows:,} rows about messages, and {name} can be judged "
                f"in one piece only, up to {self.whole_rows:,}"
            )
            return Verdict(name, Validity.INCONCLUSIVE, reason=reason)

        report = conclude(
            self.profile, self.manifest, verdict, total=self.total, problems=self.problems
        )
        return RunReport(self.run, self.manifest, self.problems, report)


def _innocent(verdict: Verdict) -> bool:
    return verdict.validity is not Validity.VIOLATED


def _fine(verdict: Verdict | None) -> bool:
    return verdict is not None and verdict.validity in (Validity.OK, Validity.VACUOUS)


def _case(
    table: Table,
    run: str,
    stitched: Stitched,
    traits: dict[str, _Traits],
    held: "Held | Callable[[Manifest | None], Held]",
    whole_rows: int,
) -> _Case:
    manifest = table.manifests.get(run)
    total = not any(log.unplaced for log in stitched.logs)
    said = writers.problems(stitched.logs, manifest, total=total)
    problems = [*table.problems.get(run, ()), *said]
    if not stitched.logs:
        problems.append(f"the run {run} holds no rows")
    try:
        profile = resolve(held(manifest) if callable(held) else held, manifest)
    except ValueError as e:
        raise PipelineError(f"run {run}: {e} with --profile or --properties") from None
    return _Case(run, manifest, profile, problems, stitched, traits.get(run), whole_rows)


def write_verdicts(reports: Sequence[RunReport], path: Path) -> None:
    """The verdict table: one row for each run and property."""
    columns: dict[str, list[Any]] = {name: [] for name in VERDICT_COLUMNS.names}
    for row in _verdict_rows(reports):
        for name, value in row.items():
            columns[name].append(value)
    beside = path.with_suffix(".tmp")
    pq.write_table(pa.Table.from_pydict(columns, VERDICT_COLUMNS), beside)
    beside.replace(path)


VERDICT_COLUMNS = pa.schema(
    [
        ("run", pa.string()),
        ("ring", pa.string()),
        ("property", pa.string()),
        ("standing", pa.string()),
        ("verdict", pa.string()),
        ("instances", pa.int64()),
        ("reason", pa.string()),
        ("witness", pa.list_(pa.string())),
    ]
)


def _verdict_rows(reports: Sequence[RunReport]) -> Iterator[dict[str, Any]]:
    for one in reports:
        for verdict, entry in zip(one.report.verdicts, one.report.profile.entries, strict=True):
            yield {
                "run": one.run,
                "ring": _ring(verdict.witness, one.manifest),
                "property": verdict.property,
                "standing": str(entry.standing),
                "verdict": str(verdict.validity),
                "instances": verdict.instances,
                "reason": verdict.reason,
                "witness": [f"{r.proc}.{r.inc}.{r.lseq}" for r in verdict.witness],
            }


def _ring(witness: Sequence[Row], manifest: Manifest | None) -> str | None:
    """The view that a witness is about, as seq.representative."""
    for row in witness:
        if row.c_seq is not None:
            rep = row.c_rep if row.c_rep is not None else 0
            return f"{row.c_seq}.{rep if manifest is None else manifest.name(rep)}"
    return None
