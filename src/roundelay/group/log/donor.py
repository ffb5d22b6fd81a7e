"""The donor: serves members that lack a part of the log.

For each learner it keeps a cursor, and what was read from the journal ahead of it. Nothing
of what was sent is kept: a learner that misses something asks anew.

All learners together are sent so many bytes per second. While log packets flow this is little, so
that the group's own traffic does not suffer; while none do, as much as can be read.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any

from roundelay.core.effects import CancelTimer, Effect, Load, LoadSnapshot, Refuse, Send, SetTimer
from roundelay.core.ids import NodeId, ViewId
from roundelay.core.log import NO_TERM, Place
from roundelay.group.log.chunks import Outflow, place_behind
from roundelay.group.log.config import DONOR_TIMER, LogConfig
from roundelay.group.log.learner import Learner
from roundelay.group.log.messages import Chunk, CutTo, Fetch, FetchSnapshot, TooFar
from roundelay.group.log.state import LogState
from roundelay.wire.log_record import checkpoint_place, is_checkpoint
from roundelay.wire.primitives import Reason, WireError
from roundelay.wire.snapshot_file import (
    END_BYTES,
    TERM_WITHIN_BYTES,
    decode_end,
    term_in_head,
)

_CALM_BURSTS = 256
"""So many bursts without a new log packet, and none flow any more."""


_NOWHERE = Place()


class _Cursor:
    """What one learner is sent."""

    def __init__(
        self,
        learner: NodeId,
        number: int,
        place: Place,
        offset: int,
        begun: Place = _NOWHERE,
        snapshot: int | None = None,
    ) -> None:
        self.learner = learner
        self.number = number
        self.place = place
        """Behind the records that were read."""
        self.snapshot = snapshot
        """The index of the snapshot whose file is sent; None for the log."""
        self.sent = offset
        """The stream was sent up to this byte."""
        self.skip = 0 if snapshot is not None else offset
        """The learner has so many bytes of what is read next ..."""
        self.begun = begun
        """... which begin with the checkpoint at this place, if it is one."""
        self.limit = offset
        """The stream may be sent up to this byte."""
        self.outflow = Outflow()
        """What was read."""
        self.read = offset
        """Of a snapshot: the file was read up to here."""
        self.request: int | None = None
        """Being read."""
        self.reads = 0
        """So often records were read."""
        self.ended = False
        """All was read."""
        self.points: deque[tuple[int, Place, int]] = deque()
        """Places that the stream comes by before this byte, and how many log packets of this view
        made the log up to there."""
        self.done = False
        """All was sent."""

    @property
    def ready(self) -> bool:
        """Whether something is to be sent, and may be."""
        if self.outflow.bytes:
            return self.sent < self.limit
        return self.ended and not self.done

    def wants(self, bytes_max: int) -> bool:
        """Whether it is time to read on: no more than this waits, and some of it may be sent."""
        if self.ended or self.request is not None or self.outflow.bytes > bytes_max:
            return False
        return not self.outflow.bytes or self.sent < self.limit


class _Introduction:
    """What is to be said of the newest snapshot, which is read from its file first."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.request: int | None = None
        self.size = 0
        self.term: ViewId | None = None
        self.digest: int | None = None
        self.waiting: dict[NodeId, int] = {}
        """Learners that it is to be told to, and the numbers of their streams."""


class Donor:
    """One for each node. Effects go to `out`."""

    def __init__(
        self, state: LogState, learner: Learner, config: LogConfig, out: list[Effect[Any]]
    ) -> None:
        self._state = state
        self._learner = learner
        self._config = config
        self._out = out
        self._view: ViewId | None = None
        self._cursors: dict[NodeId, _Cursor] = {}
        self._turns: deque[NodeId] = deque()
        """Whose turn it is to be sent something."""
        self._request = 0
        self._introduction: _Introduction | None = None
        self._seen = 0
        """Log packets of this view before the last burst."""
        self._calm = _CALM_BURSTS
        """Bursts since a log packet came."""
        self._budget = 0
        """Bytes that may be sent before the timer expires, if it is armed."""
        self._armed = False

    # What the log layer says

    def begin(self, view: ViewId) -> None:
        """A view begins; its members may ask."""
        self.abandon()
        self._view = view
        self._seen = 0
        self._calm = _CALM_BURSTS

    def abandon(self) -> None:
        """The view ends: learners ask anew in the next one."""
        if self._armed:
            self._emit(CancelTimer(DONOR_TIMER))
            self._armed = False
        self._cursors.clear()
        self._turns.clear()
        self._introduction = None
        self._view = None

    def receive(self, origin: NodeId, message: Fetch | FetchSnapshot) -> None:
        """A member of the view asks."""
        if self._view is None:
            return
        cursor = self._cursors.get(origin)
        if cursor is not None and message.number <= cursor.number:
            if message.number == cursor.number and message.limit > cursor.limit:
                cursor.limit = message.limit
                self._read_on(cursor)
                self._pump()
            return
        self._drop(origin)
        number, offset = message.number, message.offset
        if isinstance(message, FetchSnapshot):
            cursor = _Cursor(origin, number, _NOWHERE, offset, snapshot=message.index)
            self._serve(message, cursor)
        else:
            self._on_fetch(origin, message)

    def loaded(self, request: int, records: Sequence[bytes] | None) -> None:
        """The journal has read records."""
        cursor = self._reading(request)
        if cursor is None:
            return
        cursor.request = None
        if records is None:
            self._drop(cursor.learner)  # It asks again, maybe somebody else.
            return
        begin = cursor.place
        if not self._take_in(cursor, records):
            return
        cursor.reads += 1
        cursor.skip -= cursor.outflow.skip(cursor.skip)
        if not records or cursor.place == self._state.place:
            if cursor.skip:
                self._drop(cursor.learner)  # It cannot have that much.
                return
            cursor.ended = True
        point = self._learner.point_within(begin, cursor.place)
        if point is None and cursor.ended:
            point = self._learner.point_within(_NOWHERE, cursor.place)
        if point is not None:
            cursor.points.append((cursor.sent + cursor.outflow.bytes, *point))
        self._read_on(cursor)
        self._pump()

    def snapshot_loaded(self, request: int, data: bytes | None, size: int) -> None:
        """The journal has read a part of a snapshot; `size` is that of its file."""
        introduction = self._introduction
        if introduction is not None and introduction.request == request:
            introduction.request = None
            self._introduce(introduction, data, size)
            return
        cursor = self._reading(request)
        if cursor is None:
            return
        cursor.request = None
        if not data:
            self._drop(cursor.learner)
            self._offer_snapshot(cursor.learner, cursor.number)
            return
        cursor.outflow.add(data)
        cursor.read += len(data)
        cursor.ended = cursor.read >= size
        self._read_on(cursor)
        self._pump()

    def expire(self, timer: str) -> None:
        """More may be sent."""
        self._armed = False
        self._pump()

    # Where a learner begins

    def _on_fetch(self, origin: NodeId, fetch: Fetch) -> None:
        state, place = self._state, fetch.place
        end = state.end_of(place.term)
        if end is None:
            self._serve_beginning(origin, fetch)
        elif end.term != place.term or place > end:
            self._emit(Send(CutTo(fetch.number, end), self._view, origin))
        elif not self._begins_before(place):
            self._emit(Refuse(f"a term that ends at {place.length}, before it began"))
        elif place.length < state.first:
            self._serve_beginning(origin, fetch)
        else:
            cursor = _Cursor(origin, fetch.number, place, fetch.offset, fetch.begun)
            self._serve(fetch, cursor)

    def _begins_before(self, place: Place) -> bool:
        if place.term == NO_TERM:
            return place == Place()
        base = next((m.base for m in reversed(self._state.marks) if m.term == place.term), 0)
        return base <= place.length

    def _serve_beginning(self, origin: NodeId, fetch: Fetch) -> None:
        """What follows the learner's log was removed here."""
        if self._config.application:
            self._offer_snapshot(origin, fetch.number)
        else:
            cursor = _Cursor(origin, fetch.number, fetch.place, fetch.offset, fetch.begun)
            self._serve(fetch, cursor)

    def _serve(self, message: Fetch | FetchSnapshot, cursor: _Cursor) -> None:
        cursor.limit = message.limit
        self._cursors[cursor.learner] = cursor
        self._turns.append(cursor.learner)
        self._read_on(cursor)

    def _drop(self, learner: NodeId) -> None:
        if self._cursors.pop(learner, None) is not None:
            self._turns.remove(learner)

    # Reading

    def _read_on(self, cursor: _Cursor) -> None:
        config = self._config
        if not cursor.wants(config.load_bytes if cursor.snapshot is None else 0):
            return
        self._request += 1
        cursor.request = self._request
        if cursor.snapshot is not None:
            size = config.snapshot_part_bytes
            self._emit(LoadSnapshot(self._request, cursor.snapshot, cursor.read, size))
            return
        self._state.flush()
        self._emit(Load(self._request, cursor.place, config.load_bytes))

    def _reading(self, request: int) -> _Cursor | None:
        for cursor in self._cursors.values():
            if cursor.request == request:
                return cursor
        return None  # Of a stream that has ended.

    def _take_in(self, cursor: _Cursor, records: Sequence[bytes]) -> bool:
        """Add records to what is to be sent, if the stream can go on with them."""
        begins = _NOWHERE
        if records and is_checkpoint(records[0]):
            place = checkpoint_place(records[0])
            if place != cursor.place:
                begins = place  # The journal no longer holds what was asked for.
        learner = cursor.learner
        if begins != _NOWHERE and (cursor.reads or self._config.application):
            self._drop(learner)
            if self._config.application:
                self._offer_snapshot(learner, cursor.number)
            return False
        if not cursor.reads and cursor.begun != begins and cursor.skip:
            self._drop(learner)  # It has a part of something else, and will ask for the whole.
            return False
        if begins != _NOWHERE:
            cursor.place = place_behind(begins, records[2:])
        else:
            cursor.place = place_behind(cursor.place, records)
        cursor.outflow.add_records(records, begins=begins != _NOWHERE)
        return True

    # Sending

    def _pump(self) -> None:
        """Send what may be sent now, to one learner after the other."""
        if not self._armed:
            self._budget = self._burst_bytes()
        burst, waiting = self._budget, len(self._turns)
        while self._budget > 0 and waiting > 0:
            cursor = self._cursors[self._turns[0]]
            self._turns.rotate(-1)
            if cursor.ready:
                waiting = len(self._turns)
                self._send_chunk(cursor)
                self._read_on(cursor)
            else:
                waiting -= 1
        if self._budget < burst and not self._armed:
            self._armed = True
            self._emit(SetTimer(DONOR_TIMER, burst / self._rate))

    @property
    def _rate(self) -> int:
        config = self._config
        busy = self._calm < _CALM_BURSTS
        return config.catchup_bytes_per_s if busy else config.idle_bytes_per_s

    def _burst_bytes(self) -> int:
        """What may be sent at once; looks first whether log packets flow."""
        delivered = self._learner.delivered
        self._calm = 0 if delivered != self._seen else min(_CALM_BURSTS, self._calm + 1)
        self._seen = delivered
        return max(self._config.burst_bytes, int(self._rate * self._config.burst_s))

    def _send_chunk(self, cursor: _Cursor) -> None:
        """Send one chunk."""
        data = cursor.outflow.take(min(self._config.chunk_bytes, cursor.limit - cursor.sent))
        end = cursor.ended and not cursor.outflow.bytes
        number, sent, whole = cursor.number, cursor.sent, self._learner.joined
        cursor.sent += len(data)
        committed = self._state.committed if cursor.snapshot is None else 0
        points = cursor.points
        while len(points) > 1 and points[0][0] <= sent:
            points.popleft()
        if points:
            _, place, ordinal = points[0]
            length, opened = place.length, place.opened
            chunk = Chunk(
                number, sent, data, end, whole, ordinal, length, opened, committed=committed
            )
        else:
            chunk = Chunk(number, sent, data, end, whole, committed=committed)
        self._budget -= max(len(data), 64)
        self._emit(Send(chunk, self._view, cursor.learner))
        if end:
            cursor.done = True  # What comes later is asked for anew, under a larger number.

    # Snapshots

    def _offer_snapshot(self, learner: NodeId, number: int) -> None:
        """Tell a learner of the newest snapshot. If there is none it will ask another donor."""
        index = self._state.snapshot
        if index is None:
            return
        introduction = self._introduction
        if introduction is None or introduction.index != index:
            introduction = self._introduction = _Introduction(index)
        introduction.waiting[learner] = number
        if introduction.request is None:
            self._introduce_on(introduction)

    def _introduce(self, introduction: _Introduction, data: bytes | None, size: int) -> None:
        """A part of the file has come: its beginning, or its end."""
        try:
            if data is None:
                raise WireError(Reason.MALFORMED, "gone")
            if introduction.term is None:
                introduction.term, introduction.size = term_in_head(data), size
            else:
                introduction.digest = int.from_bytes(decode_end(data)[1][:8])
        except WireError:
            self._introduction = None  # It is gone or damaged; learners ask again.
            return
        self._introduce_on(introduction)

    def _introduce_on(self, introduction: _Introduction) -> None:
        index, size = introduction.index, introduction.size
        if introduction.digest is None:
            self._request += 1
            introduction.request = self._request
            if introduction.term is None:
                self._emit(LoadSnapshot(self._request, index, 0, TERM_WITHIN_BYTES))
            else:
                self._emit(LoadSnapshot(self._request, index, size - END_BYTES, END_BYTES))
            return
        marks = self._state.marks
        mark = next((mark for mark in reversed(marks) if mark.term == introduction.term), None)
        if mark is not None:
            for learner, number in introduction.waiting.items():
                offer = TooFar(number, index, size, introduction.digest, mark)
                self._emit(Send(offer, self._view, learner))
        introduction.waiting.clear()

    def _emit(self, effect: Effect[Any]) -> None:
        self._out.append(effect)
