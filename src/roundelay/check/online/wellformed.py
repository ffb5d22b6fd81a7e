"""Whether the trace itself can be trusted: T1 to T4."""

from collections import defaultdict
from typing import TYPE_CHECKING

from roundelay.check import sentences as say
from roundelay.check.online.findings import Findings
from roundelay.check.online.window import FORGOTTEN, WHOLE, PacketRecord
from roundelay.core.effects import Kind
from roundelay.trace.schema import Row

if TYPE_CHECKING:
    from roundelay.check.online.views import Process


class WriterLog:
    """Where one process is in the writing of its rows."""

    __slots__ = ("crash", "following", "inc")

    def __init__(self) -> None:
        self.inc: int | None = None
        """The life it is in, or was in until it crashed; None before its first row."""
        self.following = 0
        """Number of its next row."""
        self.crash: Row | None = None
        """Why it is down."""


class Logs:
    """T1: rows of a life are numbered 0, 1, 2 ... T2: a process does nothing while it is down.

    Unlike every other check this one sees all rows, frames and timers too. The rows of a real node,
    which have no gseq, may begin with a recovery: whoever killed its earlier life wrote no row.
    """

    names = ("T1", "T2")

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.t1, self.t2 = map(findings.tally, self.names)
        self._logs: defaultdict[int, WriterLog] = defaultdict(WriterLog)

    def append(self, row: Row) -> None:
        log = self._logs[row.proc]
        if row.lseq == log.following and row.inc == log.inc and log.crash is None:
            log.following += 1
        else:
            self._unexpected(row, log)

    def crash(self, row: Row) -> None:
        self._logs[row.proc].crash = row

    def recover(self, row: Row) -> None:
        log = self._logs[row.proc]
        who = self.findings.name(row.proc)
        if log.crash is None and row.gseq is None:
            pass
        elif log.crash is None:
            self.findings.report_breach(self.t2, say.never_crashed(who), row)
        elif row.inc <= log.crash.inc:
            self.findings.report_breach(self.t2, say.same_life(who, row.inc), log.crash, row)
        log.crash = None

    def _unexpected(self, row: Row, log: WriterLog) -> None:
        """A row that begins a life, or one that is out of its place."""
        who = self.findings.name(row.proc)
        if log.inc is None:
            self.t2.instances += 1
        elif row.kind in (Kind.RECOVER, Kind.DROP):
            pass  # A frame that is lost at a node that is down is the network's doing.
        elif log.crash is not None:
            self.findings.report_breach(self.t2, say.row_while_down(who, row.kind), log.crash, row)
        elif row.inc != log.inc:
            self.findings.report_breach(self.t2, say.life_changes(who, log.inc, row.inc), row)
        if row.inc != log.inc:
            self.t1.instances += 1
            log.inc, log.following = row.inc, 0
        if row.lseq != log.following:
            reason = say.row_missing(say.log_of(who, row.inc), row.lseq, log.following)
            self.findings.report_breach(self.t1, reason, row)
        log.following = row.lseq + 1


class Sendings:
    """T3: a message is sent once, or withdrawn before it is sent again in another view."""

    names = ("T3",)

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        (self.t3,) = map(findings.tally, self.names)

    def originate(self, row: Row, process: "Process", record: PacketRecord) -> None:
        self.t3.instances += 1
        if record.origin is None and record.memory != FORGOTTEN:
            return
        who, what = self.findings.name(row.proc), self.findings.label(record.span)
        first = self.findings.row(Kind.ORIGINATE, record.origin, record.span, row)
        if record.origin is not None and record.origin != row.proc:
            reason = say.sent_by_two(who, what, self.findings.name(record.origin))
            self.findings.report_breach(self.t3, reason, first, row)
        elif record.memory != WHOLE:
            reason = f"{who} sends {what} again, long after the window let go of it"
            self.findings.doubt(self.t3, reason)
        elif not record.withdrawn:
            self.findings.report_breach(self.t3, say.sent_twice(who, what), first, row)
        elif record.sent_in is not None and record.sent_in.same(process.regular):
            reason = say.sent_twice_in(who, what, process.regular.name)
            self.findings.report_breach(self.t3, reason, first, row)


class Receipts:
    """T4: nothing is received before it was sent."""

    names = ("T4",)
    reads_holders = True

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        (self.t4,) = map(findings.tally, self.names)

    def receive(self, row: Row, process: "Process", record: PacketRecord) -> None:
        self.t4.instances += row.count
        if record.origin is not None:
            return
        who, what = self.findings.name(row.proc), self.findings.label(record.span)
        if record.memory == FORGOTTEN:
            self.findings.doubt(self.t4, f"{who} receives {what}, which is long forgotten")
        else:
            reason = say.unsent(who, "receives", what, later=None)
            self.findings.report_breach(self.t4, reason, row)
