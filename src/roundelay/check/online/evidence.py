"""Who must have a message when it is delivered or called stable: S1, S1d, S4, S6.

A process has a message once it sent, received or delivered it.
"""

from typing import TYPE_CHECKING

from roundelay.check.online.findings import DeliveryCheck, Findings, Tally
from roundelay.check.online.window import FORGOTTEN, OrderKey, PacketRecord
from roundelay.core.ids import Service
from roundelay.trace.schema import Row

if TYPE_CHECKING:
    from roundelay.check.online.views import Process


def _require(
    findings: Findings, tally: Tally, row: Row, record: PacketRecord, missing: int, says: str
) -> None:
    """Judge that these processes lack what they must have."""
    if not missing and record.memory != FORGOTTEN:
        return
    reason = f"{findings.name(row.proc)} {says} {findings.label(record.span)}"
    if record.memory == FORGOTTEN:
        findings.doubt(tally, f"{reason}, which is long forgotten")
    else:
        findings.report_breach(tally, f"{reason}, but {findings.names(missing)} did not", row)


class Stability:
    """S1: what is called stable was received by all; S1d, on level 2: was delivered by all."""

    names = ("S1", "S1d")
    reads_holders = True

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.s1, self.s1d = map(findings.tally, self.names)

    def stable(self, row: Row, process: "Process", record: PacketRecord) -> None:
        owed = _owed(process, record)
        if row.level == 2:
            self.s1d.instances += row.count
            says = "claims that all have delivered"
            _require(self.findings, self.s1d, row, record, owed & ~record.delivered, says)
        elif row.level in (None, 1):
            self.s1.instances += row.count
            says = "claims that all have received"
            _require(self.findings, self.s1, row, record, owed & ~record.holders, says)


class DeliveryEvidence(DeliveryCheck):
    """S4: a safe message is delivered when all members of the view have it. S6: any message is
    delivered when F processes besides one have it, or all of a smaller view; a transitional view
    promises nothing."""

    names = ("S4", "S6")
    reads_holders = True

    def __init__(self, findings: Findings, resilience: int | None) -> None:
        super().__init__(findings)
        self.s4, self.s6 = self.tallies
        self._needed = 0 if resilience is None else resilience + 1
        if resilience is None:
            findings.doubt(self.s6, "nobody told the resilience F of the run")

    def deliver(
        self, row: Row, process: "Process", record: PacketRecord, key: OrderKey | None
    ) -> None:
        place = process.place
        if not place.defined:
            return
        if place.regular:
            self.s6.instances += record.count
            having = record.holders.bit_count()
            if having < self._needed and having < place.mask.bit_count():
                says = f"takes it that {self._needed} processes received"
                _require(self.findings, self.s6, row, record, place.mask & ~record.holders, says)
        if row.svc == _SAFE:
            self.s4.instances += record.count
            says = "takes it that all have received the safe"
            _require(
                self.findings, self.s4, row, record, _owed(process, record) & ~record.holders, says
            )

    repeat = deliver


_SAFE = int(Service.SAFE)


def _owed(process: "Process", record: PacketRecord) -> int:
    """For whom a claim about a message speaks: the members of the view that the message is for."""
    return process.place.mask & record.dst
