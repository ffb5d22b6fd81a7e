"""What is delivered, to whom and in which view: D1, D2, D3, D9, D11."""

from typing import TYPE_CHECKING

from roundelay.check import sentences as say
from roundelay.check.names import Span
from roundelay.check.online.findings import DeliveryCheck, Findings
from roundelay.check.online.window import EVERYONE, WHOLE, OrderKey, PacketRecord
from roundelay.core.effects import Kind
from roundelay.trace.schema import Row

if TYPE_CHECKING:
    from roundelay.check.online.views import Process


class Integrity(DeliveryCheck):
    """D1: what is delivered was sent before. D2: nobody delivers a message twice, also not in two
    lives. D9: it is delivered only where it was addressed to. D11: it is delivered as it was sent;
    a digest is of all messages of a row, so that only rows of the same messages are compared."""

    names = ("D1", "D2", "D9", "D11")

    def __init__(self, findings: Findings) -> None:
        super().__init__(findings)
        self.d1, self.d2, self.d9, self.d11 = self.tallies

    def deliver(
        self, row: Row, process: "Process", record: PacketRecord, key: OrderKey | None
    ) -> None:
        count = record.count
        self.d1.instances += count
        self.d2.instances += count
        if record.origin is None and not self.d1.closed:
            reason = say.unsent(*self._named(row, record), later=None)
            self.findings.report_breach(self.d1, reason, row)
        if record.dst != EVERYONE:
            self._address(row, process, record)
        if row.digest is not None and row.digest == record.digest:
            self.d11.instances += 1
        else:
            self._compare(row, record)

    def repeat(
        self, row: Row, process: "Process", record: PacketRecord, key: OrderKey | None
    ) -> None:
        self.d2.instances += record.count
        if record.dst != EVERYONE:
            self._address(row, process, record)
        self._compare(row, record)
        earlier = self.findings.row(Kind.DELIVER, row.proc, record.span, row)
        lives = earlier is not None and earlier.inc != row.inc
        who, _, what = self._named(row, record)
        reason = say.delivered_twice(who, what, lives=lives)
        self.findings.report_breach(self.d2, reason, earlier, row)

    def cut(self, row: Row, head: PacketRecord | None) -> None:
        """Its pieces had no digest: that of the whole is compared here."""
        if row.digest is None or (head is not None and head.count == row.count):
            return
        first = row.m_src or 0, row.m_inc or 0, row.m_seq or 0, row.count
        digest = None if head is None or head.whole is None else head.whole.get(row.count)
        if digest is not None:
            self.d11.instances += 1
            if digest != row.digest:
                self._corrupt(row, first)
        elif head is None or head.memory != WHOLE:
            reason = f"the content of {self.findings.label(first)} is forgotten"
            self.findings.doubt(self.d11, reason)

    def _address(self, row: Row, process: "Process", record: PacketRecord) -> None:
        self.d9.instances += record.count
        if not record.dst & process.bit:
            who, _, what = self._named(row, record)
            sent = self.findings.row(Kind.ORIGINATE, None, record.span)
            reason = say.not_addressed(who, what, self.findings.names(record.dst))
            self.findings.report_breach(self.d9, reason, sent, row)

    def _compare(self, row: Row, record: PacketRecord) -> None:
        """Compare digests, if there are two."""
        if row.digest is None:
            return
        if record.digest is not None:
            self.d11.instances += 1
            if row.digest != record.digest:
                self._corrupt(row, record.span)
        elif record.memory != WHOLE and record.origin is not None:
            reason = f"the content of {self.findings.label(record.span)} is forgotten"
            self.findings.doubt(self.d11, reason)

    def _corrupt(self, row: Row, span: Span) -> None:
        who, what = self.findings.name(row.proc), self.findings.label(span)
        sent = self.findings.row(Kind.ORIGINATE, None, span)
        sender = say.SOMEBODY if sent is None else self.findings.name(sent.proc)
        reason = say.other_bytes(who, what, sender)
        self.findings.report_breach(self.d11, reason, sent, row)

    def _named(self, row: Row, record: PacketRecord) -> tuple[str, str, str]:
        """Who does what with which messages."""
        return self.findings.name(row.proc), "delivers", self.findings.label(record.span)


class SameView(DeliveryCheck):
    """D3: all who deliver a message do so in one regular view, or in a transitional view after it.

    A message that was taken back and sent again is another sending: members of the old view that
    were cut off may deliver the first sending, each sending in its own view.
    """

    names = ("D3",)

    def __init__(self, findings: Findings) -> None:
        super().__init__(findings)
        (self.d3,) = self.tallies

    def deliver(
        self, row: Row, process: "Process", record: PacketRecord, key: OrderKey | None
    ) -> None:
        if record.delivered:
            self.d3.instances += record.count
        here = process.regular
        if record.view is here:
            return
        if record.earlier is not None and here in record.earlier:
            there = record.earlier[here]
            record.earlier[here] = there or here
        else:
            there = record.view
            record.view = there or here
        if record.memory != WHOLE and record.delivered and there is not here:
            what = self.findings.label(record.span)
            self.findings.doubt(self.d3, f"in which view {what} was sent or delivered is forgotten")
        elif there is not None and not there.same(here):
            first = self.findings.row(Kind.DELIVER, None, record.span, row)
            reason = say.two_places(
                say.SOMEBODY if first is None else self.findings.name(first.proc),
                self.findings.label(record.span),
                there.name,
                self.findings.name(row.proc),
                here.name,
            )
            self.findings.report_breach(self.d3, reason, first, row)

    repeat = deliver
