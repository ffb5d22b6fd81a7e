"""What a run showed so far: counts, first breaches with their witnesses, and doubts."""

from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from roundelay.check.names import Names, Span
from roundelay.check.verdict import Validity, Verdict
from roundelay.trace.schema import Row

WITNESS_ROWS = 4096
"""How many of the latest rows are kept, so that a breach can show those that prove it. If fewer, a
breach that reaches further back names its messages but shows fewer rows; more cost memory."""


class ViolationError(Exception):
    """A property broke, and the run was to stop at that."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(f"{verdict.property} is violated: {verdict.reason}")
        self.verdict = verdict


class Tally:
    """What is known of one property so far."""

    __slots__ = ("breach", "breaches", "closed", "doubt", "instances", "name", "watched")

    def __init__(self, name: str, watched: bool) -> None:
        self.name = name
        self.watched = watched
        """Whether anybody asked for it. If not, its check may still run, as checks of several
        properties share their state."""
        self.closed = not watched
        """Whether further rows can change nothing that anybody asked for."""
        self.instances = 0
        self.breach: Verdict | None = None
        """The first breach."""
        self.breaches = 0
        """How many breaches there were; the count ends when the tally is closed."""
        self.doubt = ""
        """Why it can no longer be certain; the first reason."""

    def verdict(self) -> Verdict:
        if self.breach is not None:
            return replace(self.breach, instances=self.instances)
        if self.doubt:
            return Verdict(self.name, Validity.INCONCLUSIVE, self.instances, reason=self.doubt)
        if not self.instances:
            return Verdict(self.name, Validity.VACUOUS, reason="its premise never occurred")
        return Verdict(self.name, Validity.OK, self.instances)


class Findings:
    """The tallies of all properties, and the rows that witnesses are made of."""

    def __init__(
        self,
        names: Sequence[str],
        properties: Collection[str],
        on_breach: Callable[[Verdict], None],
        on_close: Callable[[], None],
        breaches_max: int = 1,
    ) -> None:
        """`on_breach` is told of every breach. After `breaches_max` breaches of a property its
        tally is closed, and `on_close` is called: its check has nothing more to do."""
        self.recent: deque[Row] = deque(maxlen=WITNESS_ROWS)
        self.violations: list[Verdict] = []
        self.tallies: dict[str, Tally] = {}
        self.words = Names(names)
        self._properties = properties
        self._on_breach = on_breach
        self._on_close = on_close
        self._breaches_max = breaches_max

    def tally(self, name: str) -> Tally:
        """A new tally for a property; it stays closed unless somebody asked for the property."""
        tally = self.tallies[name] = Tally(name, name in self._properties)
        return tally

    def report_breach(self, tally: Tally, reason: str, *rows: Row | None) -> None:
        """Count a breach of a property; the first one becomes its verdict."""
        if tally.closed:
            return
        found = {row: None for row in rows if row is not None}
        witness = sorted(found, key=lambda row: row.gseq or 0)
        tally.instances = max(tally.instances, 1)
        verdict = Verdict(tally.name, Validity.VIOLATED, tally.instances, tuple(witness), reason)
        tally.breaches += 1
        if tally.breach is None:
            tally.breach = verdict
            self.violations.append(verdict)
        if tally.breaches >= self._breaches_max:
            tally.closed = True
            self._on_close()
        self._on_breach(verdict)

    def doubt(self, tally: Tally, reason: str) -> None:
        """Record that a property cannot be certain any more."""
        tally.doubt = tally.doubt or reason

    def row(self, kind: str, proc: int | None, span: Span, before: Row | None = None) -> Row | None:
        """The latest remembered row of this kind about the first message of `span`; of any
        process if `proc` is None. With `before`, a row other than that one."""
        src, inc, first, _ = span
        for row in reversed(self.recent):
            if (
                row.kind == kind
                and row.m_seq is not None
                and row.m_src == src
                and row.m_inc == inc
                and row.m_seq <= first < row.m_seq + row.count
                and proc in (None, row.proc)
                and (before is None or (row.proc, row.lseq) != (before.proc, before.lseq))
            ):
                return row
        return None

    def name(self, proc: int) -> str:
        return self.words.node(proc)

    def names(self, mask: int) -> str:
        """The processes whose bits are set."""
        return self.words.nodes(i for i in range(mask.bit_length()) if mask >> i & 1)

    def label(self, span: Span) -> str:
        return self.words.messages(span)


class DeliveryCheck:
    """A check of deliveries: what is the same in all of them."""

    names: tuple[str, ...] = ()

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.tallies = [findings.tally(name) for name in self.names]

    def unknown(self, proc: int, span: Span) -> None:
        """A process delivers what is so long forgotten that it may have delivered it before."""
        who, what = self.findings.name(proc), self.findings.label(span)
        for tally in self.tallies:
            self.findings.doubt(tally, f"{who} delivers {what}, which is long forgotten")
