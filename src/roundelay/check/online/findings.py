"""What a run showed so far: counts, first breaches with their witnesses, and doubts."""

from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from roundelay.check.verdict import Validity, Verdict
from roundelay.core.ids import life_mark
from roundelay.trace.schema import WORLD, Row

Span = tuple[int, int, int, int]
"""Consecutive messages of one sender: node, incarnation, number of the first, how many."""

WITNESS_ROWS = 4096
"""Rows remembered so that a breach can show them. A breach that reaches further back names its
messages all the same, and shows the rows that are left."""


class ViolationError(Exception):
    """A property broke, and the run was to stop at that."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(f"{verdict.property} is violated: {verdict.reason}")
        self.verdict = verdict


class Tally:
    """One property's account."""

    __slots__ = ("breach", "doubt", "instances", "name", "watched")

    def __init__(self, name: str, watched: bool) -> None:
        self.name = name
        self.watched = watched
        """Whether anybody asked for it; its check may run for the sake of a neighbour."""
        self.instances = 0
        self.breach: Verdict | None = None
        self.doubt = ""
        """Why it can no longer be certain; the first reason."""

    @property
    def closed(self) -> bool:
        """Whether further rows can change nothing that anybody asked for."""
        return self.breach is not None or not self.watched

    def verdict(self) -> Verdict:
        if self.breach is not None:
            return replace(self.breach, instances=self.instances)
        if self.doubt:
            return Verdict(self.name, Validity.INCONCLUSIVE, self.instances, reason=self.doubt)
        if not self.instances:
            return Verdict(self.name, Validity.VACUOUS, reason="its premise never occurred")
        return Verdict(self.name, Validity.OK, self.instances)


class Findings:
    """The accounts of all properties, and the rows that witnesses are made of."""

    def __init__(
        self,
        names: Sequence[str],
        properties: Collection[str],
        strict: bool,
        closed: Callable[[], None],
    ) -> None:
        """`closed` is called when a property broke: its check has nothing more to do."""
        self.recent: deque[Row] = deque(maxlen=WITNESS_ROWS)
        self.violations: list[Verdict] = []
        self.tallies: dict[str, Tally] = {}
        self._names = names
        self._properties = properties
        self._strict = strict
        self._closed = closed

    def tally(self, name: str) -> Tally:
        """The account of a property; nobody hears of it unless it was asked for."""
        tally = self.tallies[name] = Tally(name, name in self._properties)
        return tally

    def report_breach(self, tally: Tally, reason: str, *rows: Row | None) -> None:
        """Record the first breach of a property; later ones change nothing."""
        if tally.closed:
            return
        found = {row: None for row in rows if row is not None}
        witness = sorted(found, key=lambda row: row.gseq or 0)
        verdict = Verdict(
            tally.name, Validity.VIOLATED, max(tally.instances, 1), tuple(witness), reason
        )
        tally.instances = max(tally.instances, 1)
        tally.breach = verdict
        self.violations.append(verdict)
        self._closed()
        if self._strict:
            raise ViolationError(verdict)

    def doubt(self, tally: Tally, reason: str) -> None:
        """Record that a property cannot be certain any more."""
        tally.doubt = tally.doubt or reason

    def row(self, kind: str, proc: int | None, span: Span) -> Row | None:
        """The latest remembered row of this kind about the first message of `span`; of any
        process if `proc` is None."""
        src, inc, first, _ = span
        for row in reversed(self.recent):
            if (
                row.kind == kind
                and row.m_seq is not None
                and row.m_src == src
                and row.m_inc == inc
                and row.m_seq <= first < row.m_seq + row.count
                and proc in (None, row.proc)
            ):
                return row
        return None

    def name(self, proc: int) -> str:
        """A process as the user called it."""
        if proc == WORLD:
            return "the world"
        return self._names[proc] if 0 <= proc < len(self._names) else f"#{proc}"

    def names(self, mask: int) -> str:
        """The processes whose bits are set."""
        return ",".join(self.name(i) for i in range(mask.bit_length()) if mask >> i & 1)

    def label(self, span: Span) -> str:
        """Messages as people read them: sender, incarnation if not the first, numbers."""
        src, inc, first, count = span
        life = life_mark(inc)
        last = f"..{first + count - 1}" if count > 1 else ""
        return f"{self.name(src)}{life}:{first}{last}"


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
