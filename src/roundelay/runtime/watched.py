"""Rows of a node's trace that are made only while somebody watches it, in memory and bounded.

To make a row takes microseconds, and there are several for every frame. So only so many are made in
a tenth of a second; what is left out lies between whole stretches, which begin at the same times at
all nodes of a machine. Nothing is left out that follows a view or a suspicion, as long as it fits.
"""

import time
from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from roundelay.core.effects import Deliver, Kind, Record
from roundelay.core.ids import NodeId, View
from roundelay.runtime.tracing import MonotonicClock
from roundelay.trace.recorder import Recorder
from roundelay.trace.schema import Row
from roundelay.wire.endpoint import Endpoint
from roundelay.wire.frame import Frame

SLICE_NS = 100_000_000
"""The stretch of time for which rows are counted."""
SLICE_ROWS = 250
"""Rows that are made in one slice. Too small: a diagram under load shows little; too large: a node
under load pays more than two hundredths of a core for being watched."""
ROWS_MAX = 30_000
"""Rows that are kept, whatever `recent_s` says: some 15 MB."""
TEXT_BYTES_MAX = 4 * 1024 * 1024
"""Bytes of text in the rows that are kept; the other columns are numbers."""


class RecentRows:
    """The rows of the last seconds, and of each slice the first ones."""

    def __init__(self, keep_ns: int) -> None:
        self.full = False
        """Whether the present slice has its rows."""
        self.left_out = 0
        """Rows that were made but are in no slice; those never made are not counted."""
        self._keep_ns = keep_ns
        self._rows: deque[Row] = deque()
        self._text_bytes = 0
        self._slice = 0
        self._count = 0

    def append(self, row: Row) -> None:
        now = row.t_ns
        if now // SLICE_NS != self._slice:
            self._slice, self._count, self.full = now // SLICE_NS, 0, False
        self._count += 1
        if self._count >= SLICE_ROWS:
            self.full = True
            if self._count > SLICE_ROWS:
                self.left_out += 1
                return
        self._rows.append(row)
        self._text_bytes += len(row.x or "")
        rows = self._rows
        while (
            len(rows) > ROWS_MAX
            or rows[0].t_ns < now - self._keep_ns
            or self._text_bytes > TEXT_BYTES_MAX
        ):
            self._text_bytes -= len(rows.popleft().x or "")

    def make_room(self) -> None:
        """What follows counts as the first in its slice."""
        self._count, self.full = 0, False

    def forget(self) -> None:
        self._rows.clear()
        self._text_bytes = 0

    def near(self, at_ns: int, limit: int) -> list[Row]:
        """The rows nearest to a time, in order, and the last view that was entered before them."""
        rows: Sequence[Row] = list(self._rows)
        middle = bisect_left(rows, at_ns, key=lambda row: row.t_ns)
        first = max(0, min(middle - limit // 2, len(rows) - limit))
        chosen = list(rows[first : first + limit])
        entered = next((row for row in reversed(rows[:first]) if row.kind == Kind.INSTALL), None)
        return chosen if entered is None else [entered, *chosen]


@dataclass(frozen=True, slots=True)
class Subject:
    """Who is recorded."""

    names: tuple[NodeId, ...]
    """All nodes of the group, by their numbers."""
    node: NodeId
    incarnation: int
    machine: str
    """The machine whose clock the rows have."""


class WatchedTracing:
    """Stands where the trace of a node would be, while it is watched and has none."""

    check = None

    def __init__(self, subject: Subject, rows: RecentRows, view: View | None) -> None:
        numbers = {name: number for number, name in enumerate(subject.names)}
        clock = MonotonicClock()
        real = Recorder(rows.append, numbers, subject.node, subject.incarnation, clock)
        self.recorder = Sparing(real, rows)
        if view is not None:
            real.install(view)

    def arrive(self, frame: Frame[Any], endpoint: Endpoint[Any]) -> None:
        recorder = self.recorder
        if recorder.idle():
            return
        origin, tag = frame.origin, endpoint.codec.tags[frame.tag]
        recorder.real.lamport = endpoint.lamport
        recorder.real.arrive(origin.node, origin.incarnation, frame.number, tag, frame.size)

    def send(self, to: NodeId | None, tag: int, size: int, endpoint: Endpoint[Any]) -> None:
        recorder = self.recorder
        if recorder.idle():
            return
        recorder.real.lamport = endpoint.lamport
        recorder.real.send(to, endpoint.frame_number, endpoint.codec.tags[tag], size)

    def write_out(self) -> None:
        """Nothing is in a file."""

    save = close = write_out

    def status(self) -> None:
        """No trace is written."""


class Sparing:
    """A recorder that makes no rows while the present slice is full."""

    def __init__(self, real: Recorder, rows: RecentRows) -> None:
        self.real = real
        self._rows = rows
        self._until_ns = 0

    def idle(self) -> bool:
        """Whether rows would be thrown away; then none are made until the next slice."""
        if not self._rows.full:
            return False
        now = time.monotonic_ns()
        if not self._until_ns:
            self._until_ns = now - now % SLICE_NS + SLICE_NS
        if now < self._until_ns:
            return True
        self._open()
        return False

    def _open(self) -> None:
        """What the recorder knows of the last input is of before the gap."""
        self._until_ns = 0
        self._rows.make_room()
        self.real.forget_cause()
        self.real.forget_frame()

    def deliver(self, effect: Deliver) -> None:
        if not self.idle():
            self.real.deliver(effect)

    def record(self, record: Record) -> None:
        if not self.idle():
            self.real.record(record)

    def expire(self, timer: str) -> None:
        if not self.idle():
            self.real.expire(timer)

    def drop(self, reason: str) -> None:
        if not self.idle():
            self.real.drop(reason)

    def refuse(self, reason: str, why: str) -> None:
        if not self.idle():
            self.real.refuse(reason, why)

    def forget_frame(self) -> None:
        self.real.forget_frame()

    def install(self, view: View, *, able: bool = False) -> None:
        if self._rows.full:
            self._open()
        self.real.install(view, able=able)

    def suspect(self, members: tuple[NodeId, ...], reason: str) -> None:
        if self._rows.full:
            self._open()
        self.real.suspect(members, reason)
