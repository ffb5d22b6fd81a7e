"""M10: there is one primary component at a time, and it has one history."""

from roundelay.check import primary
from roundelay.check.online.findings import Findings
from roundelay.check.primary import Lineage
from roundelay.trace.schema import Row


class Primacy:
    """Follows the primary views as the offline checker does, and remembers the latest ones."""

    names = ("M10",)

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        (self.m10,) = map(findings.tally, self.names)
        self._lineage = Lineage(total=True, limit=primary.VIEWS_MAX)

    def install(self, row: Row) -> None:
        lineage = self._lineage
        breach = lineage.feed(row)
        self.m10.instances = max(lineage.count - 1, 0)
        if lineage.unsure:
            self.findings.doubt(self.m10, lineage.unsure)
        if breach is None:
            return
        reason = breach.sentence(self.findings.words)
        self.findings.report_breach(self.m10, reason, *breach.rows)

    def freeze(self, row: Row) -> None:
        self._lineage.feed(row)

    def open(self, row: Row) -> None:
        if primary.begins_generation(row):
            self._lineage.feed(row)

    crash = recover = freeze
