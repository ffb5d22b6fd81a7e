"""Who must have a message when it is delivered or called stable: S1, S1d, S4, S6.

A process has a message once it sent, received or delivered it.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from roundelay.check import sentences as say
from roundelay.check.online.findings import DeliveryCheck, Findings, Tally
from roundelay.check.online.window import FORGOTTEN, OrderKey, PacketRecord
from roundelay.core.ids import Service
from roundelay.trace.schema import Row

if TYPE_CHECKING:
    from roundelay.check.online.views import Process


def _require(
    findings: Findings,
    tally: Tally,
    row: Row,
    record: PacketRecord,
    missing: int,
    claim: Callable[[str, str], str],
) -> None:
    """Report that these processes lack what the claim says they have, if there are any."""
    if not missing and record.memory != FORGOTTEN:
        return
    said = claim(findings.name(row.proc), findings.label(record.span))
    if record.memory == FORGOTTEN:
        findings.doubt(tally, f"{said}; that message is long forgotten")
    else:
        findings.report_breach(tally, f"{said}, {findings.names(missing)} did not so far", row)


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
            missing = owed & ~record.delivered
            _require(self.findings, self.s1d, row, record, missing, say.claims_delivered)
        elif row.level in (None, 1):
            self.s1.instances += row.count
            missing = owed & ~record.holders
            _require(self.findings, self.s1, row, record, missing, say.claims_received)


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
                self._resilience(row, place.mask, record)
        if row.svc == _SAFE:
            self.s4.instances += record.count
            missing = _owed(process, record) & ~record.holders
            _require(self.findings, self.s4, row, record, missing, say.delivers_safe)

    repeat = deliver

    def _resilience(self, row: Row, members: int, record: PacketRecord) -> None:
        """Fewer processes than needed have what is delivered."""
        who, what = self.findings.name(row.proc), self.findings.label(record.span)
        if record.memory == FORGOTTEN:
            self.findings.doubt(self.s6, f"{who} delivers {what}, which is long forgotten")
            return
        needed = min(self._needed, members.bit_count())
        having = self.findings.names(record.holders)
        reason = say.too_few(who, what, having, self._needed - 1, needed)
        self.findings.report_breach(self.s6, reason, row)


_SAFE = int(Service.SAFE)


def _owed(process: "Process", record: PacketRecord) -> int:
    """For whom a claim about a message speaks: the members of the view that the message is for."""
    return process.place.mask & record.dst
