"""Ingest, check and measure a few traces in one session."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from roundelay.pipeline.ingest.into_table import ingest, refuse_empty
from roundelay.pipeline.ingest.table import Table
from roundelay.pipeline.judge.check import check
from roundelay.pipeline.judge.run_check import RunReport
from roundelay.pipeline.judge.verdict_table import VERDICTS, write_verdicts
from roundelay.pipeline.measure.measure import Line, measure
from roundelay.pipeline.session import DEFAULT_MASTER, open_session

STEPS = 4


@dataclass(frozen=True, slots=True)
class Examination:
    """What came of it: the table, and the verdicts and measures of every run in it."""

    table: Table
    reports: list[RunReport]
    lines: list[Line]

    @property
    def ok(self) -> bool:
        return all(one.report.ok for one in self.reports)


def examine(
    traces: Sequence[str | Path],
    directory: str | Path,
    master: str = DEFAULT_MASTER,
    progress: Callable[[int, int], None] | None = None,
) -> Examination:
    """Put traces into the table in `directory`; judge and measure every run in it.

    Verdicts and measures are written beside the table. PipelineError says what a user can mend.
    """
    report = progress or (lambda done, total: None)
    report(0, STEPS)
    with open_session(master, short=True) as spark:
        report(1, STEPS)
        done = ingest(spark, traces, directory)
        refuse_empty(done)
        report(2, STEPS)
        reports = check(spark, done.table)
        write_verdicts(reports, Path(directory) / VERDICTS)
        report(3, STEPS)
        lines = measure(spark, done.table, Path(directory))
        report(4, STEPS)
        return Examination(done.table, reports, lines)
