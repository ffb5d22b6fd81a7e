"""In which order: O1 and O6."""

from collections import defaultdict
from typing import TYPE_CHECKING

from roundelay.check import sentences as say
from roundelay.check.names import Span
from roundelay.check.online.findings import DeliveryCheck, Findings
from roundelay.check.online.window import OrderKey, PacketRecord
from roundelay.core.effects import Kind
from roundelay.trace.schema import WORLD, Row

STATIC = (0, 0)
"""The rank of the one view of a static group."""

if TYPE_CHECKING:
    from roundelay.check.online.views import Configuration, Process


class Fifo(DeliveryCheck):
    """O1: messages of one sender are delivered in the order they were sent."""

    names = ("O1",)

    def __init__(self, findings: Findings) -> None:
        super().__init__(findings)
        (self.o1,) = self.tallies
        self._latest: defaultdict[int, dict[int, PacketRecord]] = defaultdict(dict)
        """By process and sender: what was delivered last."""

    def deliver(
        self, row: Row, process: "Process", record: PacketRecord, key: OrderKey | None
    ) -> None:
        latest_of = self._latest[process.number]
        span = record.span
        if span[0] == WORLD:
            return  # Nobody sent it; D1 says so.
        latest = latest_of.get(span[0])
        latest_of[span[0]] = record
        if latest is None:
            self.o1.instances += span[3] - 1
            return
        self.o1.instances += span[3]
        if latest.span > span:
            reason = say.later_first(
                self.findings.name(row.proc),
                self.findings.label(latest.span),
                self.findings.label(span),
                self.findings.name(span[0]),
            )
            earlier = self.findings.row(Kind.DELIVER, row.proc, latest.span)
            self.findings.report_breach(self.o1, reason, earlier, row)


class Agreement:
    """The order of one configuration's messages, as whoever came first at each place saw it.

    The list holds spans, and only its end is kept. A process stands before a span, or so many
    messages into it. One that stands before the part that is kept is `lost`.
    """

    __slots__ = ("at", "base", "gone", "inside", "lost", "spans")

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.base = 0
        """Spans that are no longer in the list."""
        self.gone = 0
        """Messages in them."""
        self.at: dict[int, int] = {}
        """By process: the span it stands at, counted from the very first."""
        self.inside: dict[int, int] = {}
        """Of processes inside a span: how many of its messages they delivered."""
        self.lost: dict[int, int] = {}
        """Of lost processes: how many messages they delivered in all."""

    def trim(self, keep: int) -> None:
        """Forget all but the last spans."""
        drop = len(self.spans) - keep
        for proc, at in [*self.at.items()]:
            here = at - self.base
            if here < drop:
                passed = sum(span[3] for span in self.spans[:here])
                self.lost[proc] = self.gone + passed + self.inside.pop(proc, 0)
                del self.at[proc]
        self.gone += sum(span[3] for span in self.spans[:drop])
        self.base += drop
        del self.spans[:drop]


class Prefix(DeliveryCheck):
    """O6: within a view, what processes delivered are beginnings of one sequence."""

    names = ("O6",)

    def __init__(self, findings: Findings, window: int) -> None:
        super().__init__(findings)
        (self.o6,) = self.tallies
        self._window = window
        self._adrift: set[int] = set()
        """Processes that delivered what may or may not have counted: where they stand nobody can
        tell any more."""

    def deliver(
        self, row: Row, process: "Process", record: PacketRecord, key: OrderKey | None
    ) -> None:
        place, proc = process.place, process.number
        order = place.agreement or self._begin(place)
        at = order.at.get(proc)
        if proc in self._adrift:
            return
        if at is not None and proc not in order.inside:
            here, spans = at - order.base, order.spans
            if here == len(spans):
                spans.append(record.span)
                order.at[proc] = at + 1
                if here >= 2 * self._window:
                    order.trim(self._window)
                return
            other = spans[here]
            if other is record.span or other == record.span:
                order.at[proc] = at + 1
                self.o6.instances += other[3]
                return
        if place.defined and (place.regular or place.mask & process.bit):
            self._compare(row, place, record.span)

    def unknown(self, proc: int, span: Span) -> None:
        super().unknown(proc, span)
        self._adrift.add(proc)

    def _begin(self, place: "Configuration") -> Agreement:
        order = place.agreement = Agreement()
        if place.lost:
            self.findings.doubt(self.o6, f"{place.name} was forgotten, and then delivered in")
        return order

    def _compare(self, row: Row, place: "Configuration", span: Span) -> None:
        """The same, message by message where spans are cut in different ways or are gone."""
        order, proc = place.agreement, row.proc
        assert order is not None
        src, inc, first, count = span
        end = first + count
        if proc not in order.at:
            passed = order.lost.pop(proc, 0)
            if passed + count < order.gone:
                order.lost[proc] = passed + count
                end = first  # None of it can be compared.
            else:
                order.at[proc] = order.base
            if passed < order.gone:
                who = self.findings.name(proc)
                reason = f"{who} delivers in {place.name} where the order is already forgotten"
                self.findings.doubt(self.o6, reason)
                first += order.gone - passed
        at, inside = order.at.get(proc, 0), order.inside.pop(proc, 0)
        while first < end:
            here = at - order.base
            if here == len(order.spans):
                order.spans.append((src, inc, first, end - first))
                at += 1
                break
            other = order.spans[here]
            step = min(end - first, other[3] - inside)
            self.o6.instances += step
            if (src, inc, first) != (other[0], other[1], other[2] + inside):
                index = 1 + order.gone + inside + sum(span[3] for span in order.spans[:here])
                there = (*other[:2], other[2] + inside, 1)
                self._differ(row, place, index, (src, inc, first, 1), there)
                return
            first += step
            inside += step
            if inside == other[3]:
                at, inside = at + 1, 0
        if proc in order.at:
            order.at[proc] = at
            if inside:
                order.inside[proc] = inside

    def _differ(
        self, row: Row, place: "Configuration", index: int, here: Span, there: Span
    ) -> None:
        other = self.findings.row(Kind.DELIVER, None, there, row)
        reason = say.two_at_one_index(
            index,
            "" if place.rank == STATIC else place.name,
            self.findings.label(there),
            say.SOMEBODY if other is None else self.findings.name(other.proc),
            self.findings.label(here),
            self.findings.name(row.proc),
        )
        self.findings.report_breach(self.o6, reason, other, row)
