"""The verdicts of the local checker, on tables of any size.

1. `proofs.certify`: one pass over the table makes facts, and these prove what they can.
2. `traits`: another pass tells which kinds of rows each run has.
3. `slices`, `joins`, `completeness`: what is still open is judged by the functions of the local
   checker on parts of the run, proved by a join, or decided by how many rows there are.
4. The local checker's own `check.judge` draws the conclusions: which verdicts count, given the
   others.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from roundelay.check import Profile, Validity, Verdict
from roundelay.check.judge import resolve
from roundelay.pipeline.errors import PipelineError
from roundelay.pipeline.ingest.table import Table
from roundelay.pipeline.judge import completeness, joins
from roundelay.pipeline.judge.plan import SLICE_ROWS, WHOLE_ROWS_MAX, CheckPlan
from roundelay.pipeline.judge.run_check import NEVER, Judged, RunCheck, RunReport, holds
from roundelay.pipeline.judge.slice_verdicts import merge_verdicts, witness_rows
from roundelay.pipeline.judge.slices import judge_slices
from roundelay.pipeline.judge.traits import Traits, read_traits
from roundelay.pipeline.proofs.certify import certify
from roundelay.pipeline.proofs.stitch import RunProofs
from roundelay.trace.manifest import Manifest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STEPS = 3
Progress = Callable[[int, int], None]
Held = Profile | Sequence[str] | None
"""What runs are held to; None for what the manifest of each says."""


def check(
    spark: "SparkSession",
    table: Table,
    *,
    held: "Held | Callable[[Manifest | None], Held]" = None,
    slice_rows: int = SLICE_ROWS,
    whole_rows: int = WHOLE_ROWS_MAX,
    progress: Progress | None = None,
) -> list[RunReport]:
    """Judge every run of a table. A run of at most `whole_rows` rows about messages is judged in
    one piece where it has to be."""
    report = progress or (lambda done, total: None)
    events = table.events(spark)
    proofs = certify(spark, table)
    report(1, STEPS)
    traits = read_traits(events)
    report(2, STEPS)
    checks = [
        _run_check(table, run, proofs.get(run, RunProofs()), traits.get(run), held, whole_rows)
        for run in table.runs
    ]
    plans = [plan for one in checks if (plan := one.plan()) is not None]
    judged = _judged_on_slices(spark, events, plans, slice_rows)
    judged |= _proved_by_joins(events, checks)
    judged |= _decided_by_counts(events, checks)
    report(3, STEPS)
    return [one.report(judged) for one in checks]


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


def _proved_by_joins(events: "DataFrame", checks: Sequence[RunCheck]) -> Judged:
    """S5 and K4 of runs too large for one piece, where a join proves them."""
    claiming = [
        one.run for one in checks if one.asks("S5") and one.proofs.placed and "D2" in one.proved
    ]
    assigning = [one.run for one in checks if one.asks("K4") and one.total]
    proved = {
        **{(run, "S5"): n for run, n in joins.stable_prefix(events, claiming).items()},
        **{(run, "K4"): n for run, n in joins.caught_up(events, assigning).items()},
    }
    return {at: holds(at[1], instances) for at, instances in proved.items()}


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
    try:
        profile = resolve(held(manifest) if callable(held) else held, manifest)
    except ValueError as e:
        raise PipelineError(f"run {run}: {e} with --profile or --properties") from None
    return RunCheck(run, manifest, profile, problems, proofs, traits, whole_rows)
