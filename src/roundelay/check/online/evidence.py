"""Who must have a message when it is delivered or called stable: S1, S1d, S4, S6.

A process has a message once it sent, received or delivered it.
"""

from typing import TYPE_CHECKING

from roundelay.check.online.findings import DeliveryCheck, Findings, Tally
from roundelay.check.online.window import FORGOTTEN, Entry, OrderKey
from roundelay.core.ids import Service
from roundelay.trace.schema import Row

if TYPE_CHECKING:
    from roundelay.check.online.views import Process


def _demand(
    findings: Findings, tally: Tally, row: Row, entry: Entry, missing: int, says: str
) -> None:
    """Judge that these processes lack what they must have."""
    if not missing and entry.memory != FORGOTTEN:
        return
    reason = f"{findings.name(row.proc)} {says} {findings.label(entry.span)}"
    if entry.memory == FORGOTTEN:
        findings.doubt(tally, f"{reason}, which is long forgotten")
    else:
        findings.convict(tally, f"{reason}, but {findings.names(missing)} did not", row)


class Stability:
    """S1: what is called stable was received by all; S1d, on level 2: was delivered by all."""

    names = ("S1", "S1d")

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.s1, self.s1d = map(findings.tally, self.names)

    def stable(self, row: Row, process: "Process", entry: Entry) -> None:
        owed = _owed(process, entry)
        if row.level == 2:
            self.s1d.instances += row.count
            says = "claims that all have delivered"
            _demand(self.findings, self.s1d, row, entry, owed & ~entry.delivered, says)
        elif row.level in (None, 1):
            self.s1.instances += row.count
            says = "claims that all have received"
            _demand(self.findings, self.s1, row, entry, owed & ~entry.holders, says)


class DeliveryEvidence(DeliveryCheck):
    """S4: a safe message is delivered when all members of the view have it. S6: any message is
    delivered when F processes besides one have it, or all of a smaller view; a transitional view
    promises nothing."""

    names = ("S4", "S6")

    def __init__(self, findings: Findings, resilience: int | None) -> None:
        super().__init__(findings)
        self.s4, self.s6 = self.tallies
        self._needed = 0 if resilience is None else resilience + 1
        if resilience is None:
            findings.doubt(self.s6, "nobody told the resilience F of the run")

    def deliver(self, row: Row, process: "Process", entry: Entry, key: OrderKey | None) -> None:
        place = process.place
        if not place.defined:
            return
        if place.regular:
            self.s6.instances += entry.count
            having = entry.holders.bit_count()
            if having < self._needed and having < place.mask.bit_count():
                says = f"takes it that {self._needed} processes received"
                _demand(self.findings, self.s6, row, entry, place.mask & ~entry.holders, says)
        if row.svc == _SAFE:
            self.s4.instances += entry.count
            says = "takes it that all have received the safe"
            _demand(
                self.findings, self.s4, row, entry, _owed(process, entry) & ~entry.holders, says
            )

    repeat = deliver


_SAFE = int(Service.SAFE)


def _owed(process: "Process", entry: Entry) -> int:
    """For whom a claim about a message speaks: the members of the view that the message is for."""
    return process.place.mask & entry.dst
