"""Order keys: O3f, O3i and O4 where messages are delivered, K1 where keys are assigned."""

from bisect import bisect_right
from collections import deque
from operator import itemgetter
from typing import TYPE_CHECKING

from roundelay.check import sentences as say
from roundelay.check.names import Span, key_within_view
from roundelay.check.online.findings import DeliveryCheck, Findings
from roundelay.check.online.window import OrderKey, PacketRecord
from roundelay.core.effects import Kind
from roundelay.trace.schema import Row

if TYPE_CHECKING:
    from roundelay.check.online.views import Process

RINGS_MAX = 4096
"""Views for which a book of keys remembers up to which key it has forgotten. Too few: O3i and K1
become inconclusive when a key of an older view appears; too many: memory."""

Claim = tuple[int, int, int, Span]
"""The first k3, past the last one, who claims, and for which messages."""

_FIRST = itemgetter(0)


class Ring:
    """The keys of one view."""

    __slots__ = ("claims", "floor", "name")

    def __init__(self, name: tuple[int, int]) -> None:
        self.name = name
        self.claims: dict[int, list[Claim]] = {}
        """By k2, in the order of k3."""
        self.floor: tuple[int, int] | None = None
        """The greatest k2 and k3 that are forgotten."""


def key_of(row: Row) -> OrderKey | None:
    """The key of a row's first message."""
    k2 = row.k2
    return None if k2 is None else (row.k0 or 0, row.k1 or 0, k2, row.k3 or 0)


class KeyBook:
    """Who has which key, for the last `size` claims. Of each view it knows up to which key claims
    may be forgotten."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._oldest: deque[tuple[Ring, int, Claim]] = deque()
        self._rings: dict[tuple[int, int], Ring] = {}
        self._forgotten: tuple[int, int] | None = None
        """The greatest view that is forgotten."""

    def claim(self, key: OrderKey, owner: int, span: Span) -> Claim | None:
        """Write a claim down. Returns an earlier one to one of these keys, for other messages or
        by another owner; that is found only if it is not forgotten: see `forgot`."""
        k0, k1, k2, k3 = key
        ring = self._rings.get((k0, k1)) or self._open((k0, k1))
        claim = k3, k3 + span[3], owner, span
        claims = ring.claims.get(k2)
        if claims is None:
            ring.claims[k2] = [claim]
        else:
            at = bisect_right(claims, k3, key=_FIRST)
            for other in claims[max(at - 1, 0) : at + 1]:
                if other[0] < claim[1] and k3 < other[1] and not _same(claim, other):
                    return other
            claims.insert(at, claim)
        self._oldest.append((ring, k2, claim))
        if len(self._oldest) > self._size:
            self._forget()
        return None

    def forgot(self, key: OrderKey) -> bool:
        """Whether a claim to this key may have been forgotten."""
        k0, k1, k2, k3 = key
        ring = self._rings.get((k0, k1))
        if ring is None:
            return self._forgotten is not None and (k0, k1) <= self._forgotten
        return ring.floor is not None and (k2, k3) <= ring.floor

    def _open(self, name: tuple[int, int]) -> Ring:
        ring = self._rings[name] = Ring(name)
        if len(self._rings) > RINGS_MAX:
            oldest = self._rings.pop(next(iter(self._rings)))
            if self._forgotten is None or oldest.name > self._forgotten:
                self._forgotten = oldest.name
        return ring

    def _forget(self) -> None:
        ring, k2, claim = self._oldest.popleft()
        claims = ring.claims[k2]
        if len(claims) == 1:
            del ring.claims[k2]
        else:
            claims.remove(claim)
        last = k2, claim[1] - 1
        if ring.floor is None or last > ring.floor:
            ring.floor = last


def _same(one: Claim, other: Claim) -> bool:
    """Whether both give each key they share to the same message, and by the same owner."""
    (first, _, owner, span), (other_first, _, other_owner, other_span) = one, other
    if owner != other_owner or span[:2] != other_span[:2]:
        return False
    return span[2] - first == other_span[2] - other_first


class Keys(DeliveryCheck):
    """O3f: all deliveries of a message carry one key. O3i: no two messages carry the same. O4:
    every process delivers in the order of the keys."""

    names = ("O3f", "O3i", "O4")

    def __init__(self, findings: Findings, window: int) -> None:
        super().__init__(findings)
        self.o3f, self.o3i, self.o4 = self.tallies
        self._book = KeyBook(window)
        self._latest: dict[int, tuple[OrderKey, Span]] = {}
        """By process: the key it delivered last, and the messages to which that key belongs."""

    def deliver(
        self, row: Row, process: "Process", record: PacketRecord, key: OrderKey | None
    ) -> None:
        if key is None:
            return
        proc, count = process.number, record.count
        latest = self._latest.get(proc)
        last = key if count == 1 else (*key[:3], key[3] + count - 1)
        self._latest[proc] = last, record.span
        if latest is None:
            self.o4.instances += count - 1
        else:
            self.o4.instances += count
            if latest[0] >= key:
                self._report_descent(row, record, latest, key)
        if self.o3f.closed and self.o3i.closed:
            return
        if record.key == key:
            self.o3f.instances += count
        else:
            self._change_key(row, record, key)

    def repeat(
        self, row: Row, process: "Process", record: PacketRecord, key: OrderKey | None
    ) -> None:
        if key is None:
            return
        if record.key == key:
            self.o3f.instances += record.count
        else:
            self._change_key(row, record, key)

    def _report_descent(
        self, row: Row, record: PacketRecord, latest: tuple[OrderKey, Span], key: OrderKey
    ) -> None:
        earlier = self.findings.row(Kind.DELIVER, row.proc, latest[1], row)
        delivery = self._delivery(row.proc, record.span, key)
        src, inc, first, count = latest[1]
        before = self.findings.label((src, inc, first + count - 1, 1))
        reason = say.key_goes_back(delivery, before, key_within_view(latest[0]))
        self.findings.report_breach(self.o4, reason, earlier, row)

    def _change_key(self, row: Row, record: PacketRecord, key: OrderKey) -> None:
        """The message has no key yet, or another one."""
        if record.key is None:
            if record.forgot():
                reason = f"the key of {self.findings.label(record.span)} is forgotten"
                self.findings.doubt(self.o3f, reason)
            record.key = key
        else:
            self.o3f.instances += record.count
            first = self.findings.row(Kind.DELIVER, None, record.span, row)
            reason = say.two_keys(
                self._delivery(None if first is None else first.proc, record.span, record.key),
                self._delivery(row.proc, record.span, key),
                self._ring(record.key),
                self._ring(key),
            )
            self.findings.report_breach(self.o3f, reason, first, row)
        self._claim_key(row, record, key)

    def _claim_key(self, row: Row, record: PacketRecord, key: OrderKey) -> None:
        self.o3i.instances += row.count
        if self._book.forgot(key):
            delivery = self._delivery(row.proc, record.span, key)
            reason = f"{delivery}, where earlier keys are already forgotten"
            self.findings.doubt(self.o3i, reason)
        other = self._book.claim(key, 0, record.span)
        if other is not None:
            first_key, _, _, span = other
            first = self.findings.row(Kind.DELIVER, None, span, row)
            earlier = self._delivery(
                None if first is None else first.proc, span, (*key[:3], first_key)
            )
            reason = say.one_key_for_two(earlier, self._delivery(row.proc, record.span, key))
            self.findings.report_breach(self.o3i, reason, first, row)

    def _delivery(self, proc: int | None, span: Span, key: OrderKey) -> str:
        who = say.SOMEBODY if proc is None else self.findings.name(proc)
        return say.delivers_at(who, self.findings.label(span), key_within_view(key))

    def _ring(self, key: OrderKey) -> str:
        """The view of a key."""
        return f"{key[0]}.{self.findings.name(key[1])}"


class Assigners:
    """K1: a key is assigned once, by one process, to one message."""

    names = ("K1",)

    def __init__(self, findings: Findings, window: int) -> None:
        self.findings = findings
        (self.k1,) = map(findings.tally, self.names)
        self._book = KeyBook(window)

    def order(self, row: Row) -> None:
        key = key_of(row)
        if key is None or row.m_seq is None:
            return
        self.k1.instances += row.count
        span = row.m_src or 0, row.m_inc or 0, row.m_seq, row.count
        if self._book.forgot(key):
            assigns = self._assigns(row.proc, key, span)
            self.findings.doubt(self.k1, f"{assigns}, where earlier keys are already forgotten")
        other = self._book.claim(key, row.proc, span)
        if other is not None:
            first_key, _, owner, taken = other
            assigned = self._assigns(owner, (*key[:3], first_key), taken)
            reason = f"{assigned}, {self._assigns(row.proc, key, span)}"
            first = self.findings.row(Kind.ORDER, owner, taken, row)
            self.findings.report_breach(self.k1, reason, first, row)

    def _assigns(self, proc: int, key: OrderKey, span: Span) -> str:
        shown = key_within_view(key)
        return say.assigns(self.findings.name(proc), shown, self.findings.label(span))
