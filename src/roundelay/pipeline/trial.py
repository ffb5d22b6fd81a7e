"""All of it for a few traces: ingest, check, measure, in one session."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from roundelay.pipeline.check import VERDICTS, RunReport, check, write_verdicts
from roundelay.pipeline.ingest import ingest, refuse_empty
from roundelay.pipeline.measure import Line, measure
from roundelay.pipeline.session import DEFAULT_MASTER, open_session
from roundelay.pipeline.table import Table

STEPS = 4


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of it."""

    table: Table
    reports: list[RunReport]
    lines: list[Line]

    @property
    def ok(self) -> bool:
        return all(one.report.ok for one in self.reports)


def trial(
    traces: Sequence[str | Path],
    directory: str | Path,
    master: str = DEFAULT_MASTER,
    progress: Callable[[int, int], None] | None = None,
) -> Trial:
    """Put traces into the table in `directory`; judge and measure every run in it.

    Verdicts and measures are written beside the table. PipelineError says what a user can mend.
    """
    tell = progress or (lambda done, total: None)
    tell(0, STEPS)
    with open_session(master, short=True) as spark:
        tell(1, STEPS)
        done = ingest(spark, traces, directory)
        refuse_empty(done)
        tell(2, STEPS)
        reports = check(spark, done.table)
        write_verdicts(reports, Path(directory) / VERDICTS)
        tell(3, STEPS)
        lines = measure(spark, done.table, Path(directory))
        tell(4, STEPS)
        return Trial(done.table, reports, lines)
