"""The verdicts of the local checker, on tables of any size.

1. `small_runs`: a run of a few hundred thousand rows is judged by one task, and that is all.
2. `proofs.certify`: one pass over the others makes facts, and these prove what they can.
3. `traits`: another pass tells which kinds of rows each run has.
4. `slices`, `joins`, `completeness`: what is still open is judged by the functions of the local
   checker on parts of the run, proved by a join, or decided by how many rows there are.
5. The local checker's own `check.checker` draws the conclusions: which verdicts count, given the
   others.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from roundelay.check import Profile, Validity, Verdict
from roundelay.check.checker import resolve
from roundelay.pipeline.errors import PipelineError
from roundelay.pipeline.ingest.table import Table
from roundelay.pipeline.judge import completeness, joins
from roundelay.pipeline.judge.plan import SLICE_ROWS, WHOLE_ROWS_MAX, CheckPlan
from roundelay.pipeline.judge.run_check import NEVER, Judged, RunCheck, RunReport, holds
from roundelay.pipeline.judge.slice_verdicts import merge_verdicts, witness_rows
from roundelay.pipeline.judge.slices import judge_slices
from roundelay.pipeline.judge.small_runs import SMALL_ROWS_MAX, SmallRun, judge_small
from roundelay.pipeline.judge.traits import Traits, read_traits
from roundelay.pipeline.proofs.accused import Message
from roundelay.pipeline.proofs.certify import certify
from roundelay.pipeline.proofs.stitch import RunProofs
from roundelay.trace.manifest import Manifest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STEPS = 4
Progress = Callable[[int, int], None]
"""Called with how many of the steps are done, and of how many."""
Held = Profile | Sequence[str] | None
"""The profile or the properties that runs are held to; None for what the manifest of each says."""


def check(
    spark: "SparkSession",
    table: Table,
    *,
    held: "Held | Callable[[Manifest | None], Held]" = None,
    slice_rows: int = SLICE_ROWS,
    whole_rows: int = WHOLE_ROWS_MAX,
    small_rows: int = SMALL_ROWS_MAX,
    progress: Progress | None = None,
) -> list[RunReport]:
    """Judge every run of a table. A run of at most `small_rows` rows is judged as it stands; of
    others, one of at most `whole_rows` rows about messages in one piece where it has to be."""
    report = progress or (lambda done, total: None)
    counted = table.rows
    small = [
        _small_run(table, run, counted[run], held)
        for run in table.runs
        if 0 < counted[run] <= small_rows
    ]
    judgements = judge_small(spark, table.files(), small)
    reports = {one.run: RunReport(one.run, one.manifest, *judgements[one.run]) for one in small}
    report(1, STEPS)
    large = _Large(spark, table, [run for run in table.runs if run not in reports])
    proofs, traits = large.look(lambda done: report(1 + done, STEPS))
    checks = [
        _run_check(table, run, proofs.get(run, RunProofs()), traits.get(run), held, whole_rows)
        for run in large.runs
    ]
    judged = large.judge(checks, slice_rows)
    report(STEPS, STEPS)
    reports |= {one.run: one.report(judged) for one in checks}
    return [reports[run] for run in table.runs]


@dataclass(frozen=True, slots=True)
class _Large:
    """The runs that no task can judge alone, and those that have no row."""

    spark: "SparkSession"
    table: Table
    runs: list[str]

    @property
    def _there(self) -> list[str]:
        return [run for run in self.runs if self.table.rows[run]]

    @property
    def _only(self) -> list[str] | None:
        """Those that have rows, if others have rows as well."""
        there = self._there
        return None if len(there) == len(self.table.rows) else there

    def _events(self) -> "DataFrame":
        events = self.table.events(self.spark)
        only = self._only
        return events if only is None else events.where(F.col("run").isin(only))

    def look(self, report: Callable[[int], None]) -> tuple[dict[str, RunProofs], dict[str, Traits]]:
        """What is proved of them, and what rows they have."""
        if not self._there:
            return {}, {}
        proofs = certify(self.spark, self.table, self._only)
        report(1)
        traits = read_traits(self._events())
        report(2)
        return proofs, traits

    def judge(self, checks: Sequence[RunCheck], slice_rows: int) -> Judged:
        """What is judged, joined and counted of them."""
        if not self._there:
            return {}
        events = self._events()
        judged, accused = _compared_by_joins(events, checks)
        found = [one.plan(judged, accused.get(one.run, ())) for one in checks]
        plans = [plan for plan in found if plan is not None]
        check_of = {one.run: one for one in checks}
        for at, verdict in _judged_on_slices(self.spark, events, plans, slice_rows).items():
            if check_of[at[0]].decides(verdict):
                judged[at] = verdict
        judged |= _decided_by_counts(events, checks)
        return judged


def _judged_on_slices(
    spark: "SparkSession", events: "DataFrame", plans: Sequence[CheckPlan], slice_rows: int
) -> Judged:
    """What is open, judged on parts of the runs."""
    if not plans:
        return {}
    found: Judged = {}
    for row in merge_verdicts(judge_slices(spark, events, plans, slice_rows)).collect():
        validity, instances = Validity(row["validity"]), row["instances"]
        if validity in (Validity.OK, Validity.VACUOUS):
            validity = Validity.OK if instances else Validity.VACUOUS
        reason = "" if validity is Validity.OK else row["reason"]
        witness = witness_rows(row["witness"])
        if validity is Validity.VACUOUS:
            reason = NEVER
        found[row["run"], row["property"]] = Verdict(
            row["property"], validity, instances, witness, reason
        )
    return found


def _compared_by_joins(
    events: "DataFrame", checks: Sequence[RunCheck]
) -> tuple[Judged, dict[str, list[Message]]]:
    """S5 and K4 of runs too large for one piece, where a join proves them; and of other runs the
    messages that break them."""
    claiming = [
        one.run for one in checks if one.asks("S5") and one.proofs.placed and "D2" in one.proved
    ]
    assigning = [one.run for one in checks if one.asks("K4") and one.total]
    judged: Judged = {}
    accused: dict[str, list[Message]] = {}
    for name, said in (
        ("S5", joins.stable_prefix(events, claiming)),
        ("K4", joins.caught_up(events, assigning)),
    ):
        judged |= {(run, name): holds(name, instances) for run, instances in said.keep.items()}
        for run, messages in said.accused.items():
            accused.setdefault(run, []).extend(messages)
    return judged, accused


def _decided_by_counts(events: "DataFrame", checks: Sequence[RunCheck]) -> Judged:
    """T1 of every run that is held to it."""
    asked = [one for one in checks if one.held_to("T1")]
    wanted = {}
    for one in asked:
        broken = completeness.fault(one.proofs.logs, one.manifest)
        if broken is not None:
            wanted[one.run] = broken.wants
    shown = completeness.neighbours(events, wanted)
    return {
        (one.run, "T1"): completeness.gap_free(
            one.proofs.logs, one.manifest, shown.get(one.run, ())
        )
        for one in asked
    }


def _small_run(
    table: Table, run: str, rows: int, held: "Held | Callable[[Manifest | None], Held]"
) -> SmallRun:
    manifest = table.manifests.get(run)
    profile = _profile(run, manifest, held)
    return SmallRun(run, rows, manifest, profile, tuple(table.problems.get(run, ())))


def _profile(
    run: str, manifest: Manifest | None, held: "Held | Callable[[Manifest | None], Held]"
) -> Profile:
    try:
        return resolve(held(manifest) if callable(held) else held, manifest)
    except ValueError as e:
        raise PipelineError(f"run {run}: {e} with --profile or --properties") from None


def _run_check(
    table: Table,
    run: str,
    proofs: RunProofs,
    traits: Traits | None,
    held: "Held | Callable[[Manifest | None], Held]",
    whole_rows: int,
) -> RunCheck:
    manifest = table.manifests.get(run)
    total = not any(log.unplaced for log in proofs.logs)
    lacking = completeness.problems(proofs.logs, manifest, total=total)
    problems = [*table.problems.get(run, ()), *lacking]
    if not proofs.logs:
        problems.append(f"the run {run} holds no rows")
    profile = _profile(run, manifest, held)
    return RunCheck(run, manifest, profile, problems, proofs, traits, whole_rows)
