"""A recorder for real nodes: it writes the same rows as `Recorder`, in compact form.

The first row of each pattern is made by `Recorder` itself. What it is about is remembered with its
pattern, and of the rows about the same that follow only the numbers are packed.
"""

import struct
from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol, TypeVar

from roundelay.core.checksum import crc32
from roundelay.core.effects import Deliver, Kind, Record
from roundelay.core.ids import NodeId, Packet, Span, View
from roundelay.trace.compact import NONE, Batch, Compactor, pack
from roundelay.trace.recorder import DIGESTED, Append, Clock, Recorder
from roundelay.trace.schema import Row

_RECEIVE = Kind.RECEIVE
_USUAL = frozenset(
    {Kind.ORIGINATE, Kind.RECEIVE, Kind.ORDER, Kind.CONFIRM, Kind.STABLE, Kind.WITHDRAW}
)
"""Kinds of records that come for every packet."""
_NO_KEY = (NONE, NONE)

T = TypeVar("T")


class QuickClock(Clock, Protocol):
    """A clock that is read for every row."""

    def read(self) -> int:
        """The same as `now`, in less time."""
        ...


class CompactRecorder(Recorder):
    """Gathers the rows of one node in one incarnation. `full` is called once there are
    `batch_rows` of them, and has to `take` them.

    `also` is given every row as soon as it is made. Then each is made as `Recorder` does, and the
    recorder is no faster.
    """

    def __init__(
        self,
        full: Callable[[], None],
        batch_rows: int,
        numbers: Mapping[NodeId, int],
        node: NodeId,
        incarnation: int,
        clock: QuickClock,
        *,
        net: bool = True,
        also: Append | None = None,
    ) -> None:
        self._alone: Append = self._append_whole
        """Takes whole rows, if nobody else does."""
        append = self._alone if also is None else partial(_both, self._alone, also)
        super().__init__(append, numbers, node, incarnation, clock, net=net)
        self._now = clock.read
        self._full = full
        self._batch_rows = batch_rows
        self._compactor = Compactor()
        self._packed = self._compactor.packed
        self._patterns: dict[object, int] = {}
        """The patterns of the rows in this batch and view, by what they are about."""

    def take(self) -> Batch:
        """The rows since the last batch."""
        batch = self._compactor.take()
        self._packed = self._compactor.packed
        self._patterns = {}
        return batch

    # The next two are called for every packet, and so they are written to be fast.

    def deliver(self, effect: Deliver) -> None:
        packet, view, key = effect.packet, effect.view, effect.key
        node, incarnation, first, count = packet.span
        about = (node, incarnation, packet.service, packet.destinations, view, key is None)
        pattern = self._patterns.get(about)
        if pattern is None or not count or self._append is not self._alone:
            self._begin(about if count else None, super().deliver, effect)
            return
        body, packed, lseq = packet.body, self._packed, self._lseq
        k2, k3 = _NO_KEY if key is None else key
        size, cause = len(body) or NONE, self._cause
        if cause is None:
            cause = NONE
        digest, now, lam = crc32(body), self._now(), self.lamport
        try:
            row = pack(
                pattern, lseq, now, lam, first, k2, k3, digest, size, count, NONE, cause, NONE
            )
        except struct.error:  # A number that 64 bits cannot hold.
            super().deliver(effect)
            return
        packed.append(row)
        self._lseq = lseq + 1
        if len(packed) >= self._batch_rows:
            self._full()

    def record(self, record: Record) -> None:
        kind, subject, view, key = record.kind, record.subject, record.view, record.key
        digest = size = pkt = NONE
        service = dst = peer = None
        if type(subject) is Packet:
            node, incarnation, first, count = subject.span
            service, dst, body = subject.service, subject.destinations, subject.body
            size = len(body) or NONE
            if kind in DIGESTED:
                digest = crc32(body)
        elif type(subject) is Span:
            node, incarnation, first, count = subject
        else:
            super().record(record)
            return
        if kind is _RECEIVE and self._arrived is not None:
            frame, peer = self._frame_arrived()
            pkt = NONE if frame is None else frame
        about = (kind, node, incarnation, service, dst, view, key is None, record.level, peer)
        pattern = self._patterns.get(about)
        if pattern is None or not count or record.layer or self._append is not self._alone:
            usual = kind in _USUAL and count and not record.layer
            self._begin(about if usual else None, super().record, record)
            return
        packed, lseq, cause = self._packed, self._lseq, self._cause
        k2, k3 = _NO_KEY if key is None else key
        if cause is None:
            cause = NONE
        now, lam = self._now(), self.lamport
        try:
            row = pack(
                pattern, lseq, now, lam, first, k2, k3, digest, size, count, pkt, cause, NONE
            )
        except struct.error:
            super().record(record)
            return
        packed.append(row)
        self._lseq = lseq + 1
        if len(packed) >= self._batch_rows:
            self._full()

    def install(self, view: View, *, able: bool = False) -> None:
        super().install(view, able=able)
        self._patterns = {}

    def _append_whole(self, row: Row) -> None:
        self._compactor.append(row)
        if len(self._packed) >= self._batch_rows:
            self._full()

    def _begin(self, about: object, make: Callable[[T], None], effect: T) -> None:
        """Make a row as `Recorder` does. Its pattern is that of all rows about the same, unless
        `about` is None."""
        before = self._lseq
        make(effect)
        pattern = self._compactor.plain
        if about is not None and pattern is not None and self._lseq > before:
            self._patterns[about] = pattern


def _both(first: Append, second: Append, row: Row) -> None:
    first(row)
    second(row)
