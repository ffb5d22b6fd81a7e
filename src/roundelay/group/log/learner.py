"""The learner: fetches what this node lacks of the log, until it goes on as everybody.

A view adopts the best log. A member that lacks a part of it asks one donor for the stream of
records behind its own last one, and stores what comes. When it has all of the adopted log, it adds
the mark of the view: it is *filled*. Log packets that are delivered meanwhile wait in the window.
When nothing is missing between the log and the window, the learner takes in the window: it has
*joined*, and each log packet goes straight into the log.

How it knows that nothing is missing: log packets of the view are counted, alike at all members.
Behind its mark, the log is what the first 0 of them made of it; and of some later places a donor
tells of how many packets the log up to there is made.

A node whose disk falls behind stops storing. Then it is a learner again, in the middle of the view.

Nothing is lost when a donor dies, a view ends or chunks get lost: what came is in the log, and the
next request begins behind it.
"""

from bisect import bisect_right
from operator import itemgetter
from typing import Any

from roundelay.core.effects import CancelTimer, Effect, Fork, Refuse, Send, SetTimer
from roundelay.core.ids import NodeId
from roundelay.core.log import Checkpoint, Entries, Mark, Place
from roundelay.group.log.arrival import Arrival
from roundelay.group.log.chunks import SIZE_BYTES, Intake, RecordReader
from roundelay.group.log.config import FETCH_TIMER, LogConfig
from roundelay.group.log.messages import Chunk, CutTo, Fetch, FetchSnapshot, TooFar
from roundelay.group.log.snapshots import Transfer, fits
from roundelay.group.log.state import LogState
from roundelay.group.log.window import LiveWindow
from roundelay.wire.log_record import decode_record
from roundelay.wire.primitives import WireError

_TRIES = 3
"""So often a donor is asked in vain before another one is."""
_STEPS = 4
"""A learner asks for more each time that this part of its window has come."""

_POINT_EVERY = 16
"""After so many log packets a node notes where its log ends."""
_POINTS_MAX = 8192
"""It keeps so many of these notes: more packets than may wait for a disk, if they are of a size
that many packets have."""


class _FalseError(Exception):
    """What a donor sent cannot be true."""


class Learner:
    """One for each node; `begin` and `abandon` begin and end its work in a view. Effects go to
    `out`."""

    def __init__(self, state: LogState, config: LogConfig, out: list[Effect[Any]]) -> None:
        self._state = state
        self._config = config
        self._out = out
        self.filled = False
        """The log holds the adopted log and the mark of this view, stored or not."""
        self.joined = False
        """Nothing is missing: log packets go straight into the log."""
        self.reflected: int | None = None
        """The log is what so many log packets of this view made of it; None if not known."""
        self.delivered = 0
        """Log packets of this view that were delivered."""
        self.stuck = False
        """Packets that were delivered are on nobody's disk: all were behind, and dropped them. Only
        another view helps, after which their senders send them again."""
        self._empty: set[NodeId] = set()
        """Donors that had nothing more, and lack packets themselves."""
        self._mark: Mark | None = None
        self._points: list[tuple[Place, int]] = []
        """Where the log of this view ended behind some of its log packets, and how many they were.
        In order; a few of the newest ones."""
        self._point: tuple[Place, int] | None = None
        """One of a donor's, that the stream comes by."""
        self._target = Place()
        self._donors: list[NodeId] = []
        self._window = LiveWindow(config.live_window_bytes)
        self._reader = RecordReader(config.record_bytes_max)
        self._checkpoint: Checkpoint | None = None
        """The stream began with it: the donor no longer holds what was before it."""
        self._checkpoint_bytes = 0
        """What it took in the stream."""
        self._partial_at: Place | None = None
        """Where the record begins of which `_reader` holds a part; None if that is not known."""
        self._own_mark = False
        """This node has added the mark of the view, and the stream may bring it yet."""
        self._transfer: Transfer | None = None
        self._offered_by: NodeId | None = None
        """The donor that is known to have the snapshot which is being transferred."""
        self._intake: Intake | None = None
        """Of the present stream; None if none is asked for."""
        self._number = 0
        """Of the present stream."""
        self._start = Place()
        """Where it begins."""
        self._limit = 0
        """It was asked for up to this byte."""
        self._end: tuple[int, bool] | None = None
        """The byte that it ends at, and whether the donor lacks nothing, once it has told that."""
        self._begin = 0
        """The byte that it began with."""
        self._fetch_bytes = config.fetch_window_bytes
        self._tries = 0
        self._progress = False

    # What the log layer says

    def begin(self, target: Place, mark: Mark, donors: tuple[NodeId, ...]) -> None:
        """A view has adopted the log that ends at `target`, and these members hold it. The learner
        adds the mark of the view once all of that is here, and not before."""
        self.abandon()
        self._target, self._mark, self._donors = target, mark, list(donors)
        self._window = LiveWindow(self._config.live_window_bytes)
        transfer = self._transfer
        if self._state.place == target:
            self._fill()
        elif transfer is not None and transfer.stored:
            self._install(transfer)
        else:
            self._ask()

    def abandon(self) -> None:
        """The view ends. What came is kept."""
        self._stop()
        self.filled = self.joined = False
        self.reflected = None
        self.delivered = 0
        self._points.clear()
        self._point = None
        self.stuck = False
        self._empty.clear()
        self._mark = self._offered_by = None
        self._donors = []
        self._tries = 0
        self._fetch_bytes = self._config.fetch_window_bytes

    def add_donor(self, node: NodeId) -> None:
        """This member has become ready: it can be asked too."""
        if self._mark is None or node in self._donors:
            return
        self._donors.append(node)
        if self._intake is None and not self.joined:
            self._go_on()

    def live(self, arrival: Arrival) -> Entries | None:
        """The next log packet of the view was delivered: it goes into the log, or waits until what
        comes before it is there. Returns what was added to the log for it."""
        self.delivered += 1
        if self.joined:
            if not self._state.full:
                self.reflected = self.delivered
                entries = self._state.take(arrival)
                if not self.delivered % _POINT_EVERY:
                    self._note_point()
                return entries
            # The disk is behind. From here on packets wait, and may have to be fetched.
            assert self.reflected is not None, "a log that joined has no gap"
            self.joined = False
            self._window = LiveWindow(self._config.live_window_bytes, self.reflected)
        self._window.push(arrival)
        if self.reflected == self.delivered:
            self._join()  # The log was ahead of what is delivered here.
        return None

    def point_within(self, begin: Place, end: Place) -> tuple[Place, int] | None:
        """The last place behind `begin`, and not behind `end`, of which it is known how many log
        packets of this view made the log up to there; and how many."""
        state = self._state
        if self.joined and end == state.place:
            return end, self.delivered
        at = bisect_right(self._points, end, key=itemgetter(0))
        point = self._points[at - 1] if at else None
        return point if point is not None and point[0] > begin else None

    def _note_point(self) -> None:
        assert self.reflected is not None, "a log that joined has no gap"
        points = self._points
        points.append((self._state.place, self.reflected))
        if len(points) > _POINTS_MAX:
            del points[: _POINTS_MAX // 2]

    @property
    def behind(self) -> bool:
        """Whether this node lacks nothing but room on its disk, or what it dropped for that."""
        return self.filled and not self.joined

    def on_stored(self, number: int) -> None:
        """The journal has done everything up to this number."""
        transfer = self._transfer
        if transfer is not None and transfer.last_number is not None:
            if number >= transfer.last_number:
                transfer.stored = True
                if self._mark is not None:
                    self._install(transfer)
        elif self._mark is not None and not self.joined and self._room:
            self._go_on()

    def on_unstored(self, number: int) -> None:
        """The journal had no room for this, nor for what it was asked for later; or a snapshot that
        came is damaged. A snapshot begins anew."""
        if self._transfer is not None:
            self._transfer = self._offered_by = None
            if self._mark is not None:
                self._stop()
                self._wait()

    def expire(self, timer: str) -> None:
        """Some time has gone by. If nothing came the donor is asked again, and after a few times
        another one."""
        if self._mark is None or self.joined:
            return
        writing = self._transfer is not None and self._transfer.complete
        if self._progress or writing or not self._room:
            self._progress = False
            self._wait()
            return
        if self._join():
            return
        self.stuck = self.filled and self._empty.issuperset(self._donors)
        self._tries += 1
        if self._tries == _TRIES - 1 and self._begun() != Place():
            self._forget_part()  # The log of a donor begins elsewhere by now.
        if self._tries % _TRIES == 0 and self._intake is not None:
            self._turn_to_next()  # One that had no more has made room for the next already.
        self._slow_down()
        self._ask()

    def receive(self, origin: NodeId, message: Chunk | CutTo | TooFar) -> None:
        """What a donor answers. Answers of an earlier stream, and of others than the present donor,
        mean nothing."""
        if self._intake is None or origin != self._donors[0] or message.number != self._number:
            return
        try:
            if isinstance(message, Chunk):
                self._on_chunk(message)
            elif isinstance(message, CutTo):
                self._on_cut(message.place)
            else:
                self._on_too_far(message)
        except (_FalseError, WireError) as e:
            self._emit(Refuse(str(e)))
            # A part of it may be in this node's hands.
            self._forget_part()
            self._transfer = None
            self._turn_to_next()
            self._stop()
            self._wait()

    # Asking

    @property
    def _room(self) -> bool:
        """Whether more may wait for the disk."""
        return self._state.waiting_bytes <= self._config.unsynced_bytes // 2

    def _go_on(self) -> None:
        """Join if nothing is missing; else fetch."""
        if not self._join():
            if self._intake is None:
                self._ask()
            else:
                self._widen()

    def _ask(self) -> None:
        """Begin a stream behind what is here."""
        self._stop()
        self._wait()
        if not self._donors or not self._room:
            return
        self._number += 1
        self._start = self._state.place
        if self._partial_at != self._start or self._begun() is None:
            self._forget_part()
        offset = self._reader.held + self._checkpoint_bytes
        transfer = self._transfer
        if transfer is not None:
            if transfer.complete:
                return  # It is being written.
            if self._offered_by == self._donors[0]:
                offset = transfer.received
        self._intake = Intake(offset, self._fetch_bytes)
        self._begin = offset
        self._let_come(offset)

    def _let_come(self, received: int) -> None:
        """Tell the donor up to where it may send."""
        self._limit = limit = received + self._fetch_bytes
        number, transfer = self._number, self._transfer
        fetch: Fetch | FetchSnapshot
        if transfer is None or self._offered_by != self._donors[0]:
            fetch = Fetch(number, self._start, received, limit, self._begun() or Place())
        else:
            fetch = FetchSnapshot(number, transfer.offer.index, received, limit)
        assert self._mark is not None, "only in a view"
        self._emit(Send(fetch, self._mark.term, self._donors[0]))

    def _widen(self) -> None:
        """Ask for more, if enough of what was asked for has come."""
        intake = self._intake
        if intake is None or self._end is not None or not self._room:
            return
        if self._limit - intake.received <= self._fetch_bytes - self._fetch_bytes // _STEPS:
            self._let_come(intake.received)

    def _stop(self) -> None:
        """Expect nothing more of the present stream."""
        if self._mark is not None:
            self._emit(CancelTimer(FETCH_TIMER))
        self._intake = self._end = None
        self._progress = False

    def _forget_part(self) -> None:
        """Forget the record that came in part, and the checkpoint before it."""
        self._reader.clear()
        self._checkpoint = None
        self._checkpoint_bytes = 0

    def _begun(self) -> Place | None:
        """The checkpoint that what is here of the stream begins with; None if that is not known
        yet, so that no other stream can go on with it."""
        if self._checkpoint is not None:
            return self._checkpoint.place
        place = self._reader.checkpoint
        if place is None:
            return Place()
        return None if place == Place() else place

    def _wait(self) -> None:
        self._emit(SetTimer(FETCH_TIMER, self._config.fetch_s))

    def _turn_to_next(self) -> None:
        self._offered_by = None
        if self._donors:
            self._donors.append(self._donors.pop(0))

    def _slow_down(self) -> None:
        """Chunks were lost: ask for fewer at once. In the end for so few that no more can overtake
        one than `Intake` lets: where a network delays each frame by chance, nothing else helps."""
        config = self._config
        least = min(4 * config.chunk_bytes, config.fetch_window_bytes // 16)
        least = max(least, config.chunk_bytes)
        self._fetch_bytes = max(least, self._fetch_bytes // 2)

    # What comes

    def _on_chunk(self, chunk: Chunk) -> None:
        intake = self._intake
        assert intake is not None, "a stream was asked for"
        offset, data = chunk.offset, chunk.data
        if offset + len(data) > self._limit:
            raise _FalseError("a chunk that was not asked for")
        if chunk.end:
            self._end = offset + len(data), chunk.whole
        fresh = intake.take(offset, data)
        if not fresh and intake.lost:
            self._slow_down()
            self._ask()
            return
        if chunk.ordinal is not None and offset <= intake.received:
            assert self._mark is not None, "only in a view"
            self._point = Place(self._mark.term, chunk.length, chunk.opened), chunk.ordinal
            self._pass_point()
        if self._intake is not intake:
            return
        if fresh:
            self._empty.clear()
            self._progress = True
            self._tries = 0
            if self._offered_by is not None:
                assert self._transfer is not None, "a donor has offered it"
                self._transfer.feed(fresh, self._state)
            else:
                self._transfer = None  # This donor can do without.
                self._take_records(self._reader.feed(fresh))
                self._state.show_committed(chunk.committed)
        if self._intake is not intake:
            return  # All is here.
        if self._end is not None and intake.received >= self._end[0]:
            self._on_end(self._end[1])
        else:
            self._grow()
            self._widen()

    def _grow(self) -> None:
        most = self._config.fetch_window_bytes
        if self._fetch_bytes < most:
            self._fetch_bytes = min(most, self._fetch_bytes + self._config.chunk_bytes)

    def _on_end(self, whole: bool) -> None:
        """The donor has no more for now."""
        if self._offered_by is not None:
            self._intake = None
            return  # The journal checks the whole.
        came = self._intake is not None and self._intake.received > self._begin
        self._progress = False
        self._intake = None
        if self.reflected is not None and self.reflected > self.delivered:
            return  # Joins when as much was delivered here.
        if not whole:
            # The donor itself is not as far as this node must come: ask another one, later.
            self._empty.add(self._donors[0])
            self._turn_to_next()
        elif came:
            self._ask()  # By now the donor may have stored more.

    def _pass_point(self) -> None:
        """Join if the log ends where a donor knows how much of the view it is made of."""
        point = self._point
        if point is not None and self.filled and self._state.place == point[0]:
            self.reflected = point[1]
            self._point = None
            self._join()

    def _take_records(self, records: list[bytes]) -> None:
        for data in records:
            record = decode_record(data)
            if isinstance(record, Entries):
                self._take_entries(record)
            elif isinstance(record, Mark):
                self._take_mark(record)
            else:
                self._take_checkpoint(record)
                self._checkpoint_bytes = len(data) + SIZE_BYTES
            if self.joined:
                return
        self._partial_at = None if self._own_mark else self._state.place

    def _take_entries(self, entries: Entries) -> None:
        state, head = self._state, entries.head
        if self._checkpoint is not None:
            raise _FalseError("a log that begins without a mark")
        if head.term != state.place.term or head.index != state.place.length:
            raise _FalseError("entries that do not follow")
        if not self.filled:
            end = state.place.past(head)
            if end > self._target or end.length > self._target.length:
                raise _FalseError("more than the adopted log")
        self.reflected = None
        state.append(entries)
        if self._point is not None:
            self._pass_point()
        self._fill_if_whole()

    def _take_mark(self, mark: Mark) -> None:
        state, place = self._state, self._state.place
        begun, self._checkpoint = self._checkpoint, None
        self._checkpoint_bytes = 0
        if begun is not None:
            self._begin_at(begun, mark)
        elif mark == state.last_mark() and place == Place(mark.term, mark.base):
            self._own_mark = False
            return  # This node has added the mark of the view itself.
        elif self.filled or mark.term > self._target.term:
            raise _FalseError("a mark that is not of the adopted log")
        elif mark.term <= place.term or (mark.base, mark.opened) != (place.length, place.opened):
            raise _FalseError("a mark that does not follow")
        elif not self._of_this_log(mark) or state.place.past(mark) > self._target:
            raise _FalseError("a mark of another log")
        else:
            state.append(mark)
        self._fill_if_whole()

    def _of_this_log(self, mark: Mark) -> bool:
        assert self._mark is not None, "only in a view"
        mine = self._mark
        return mark.log == mine.log and self._state.generation <= mark.generation <= mine.generation

    def _take_checkpoint(self, checkpoint: Checkpoint) -> None:
        begins = self._checkpoint is None and self._state.place == self._start
        if not begins or self._config.application:
            raise _FalseError("a checkpoint that was not asked for")
        self._checkpoint = checkpoint

    def _begin_at(self, checkpoint: Checkpoint, mark: Mark, snapshot: int | None = None) -> None:
        """Begin the log anew, at a place that the donor still holds."""
        state, place = self._state, checkpoint.place
        if not fits(checkpoint, mark) or not self._of_this_log(mark):
            raise _FalseError("a checkpoint of another log")
        inside = mark == self._mark
        if not (inside or place <= self._target):
            raise _FalseError("a checkpoint behind the adopted log")
        if place.length < max(state.committed, state.settled) or place <= state.place:
            raise _FalseError("a checkpoint before what is here")
        state.reset(checkpoint, mark, snapshot)
        if inside:
            # By now the donor has removed the adopted log, and more.
            self.filled = True
            self.reflected = 0 if place == Place(mark.term, mark.base) else None

    # Too far apart

    def _on_cut(self, place: Place) -> None:
        """The donor does not have the end of this log: it was never committed."""
        state = self._state
        sure = state.place.term == self._target.term and state.place <= self._target
        if self.filled or sure or place > self._target:
            raise _FalseError("a cut of the adopted log")
        mine = state.end_of(place.term)
        if mine is None or min(mine, place) >= state.place:
            raise _FalseError("a cut that cuts nothing")
        to = min(mine, place)
        if not state.can_cut(to) or to.length < state.settled:
            committed = max(state.committed, state.settled)
            why = (
                f"the adopted log differs from entry {to.length} on, and {committed} are committed"
            )
            self._stop()
            self._emit(Fork(why))
            return
        self._forget_part()
        state.cut(to)
        self._tries = 0
        self._fill_if_whole()
        if not self.filled:
            self._ask()

    def _on_too_far(self, offer: TooFar) -> None:
        """The donor does not hold what this log lacks, and offers a snapshot instead."""
        state = self._state
        if not self._config.application or offer.index <= state.committed:
            raise _FalseError("a snapshot that was not asked for")
        inside = offer.mark == self._mark
        if not (inside or (self._of_this_log(offer.mark) and offer.index <= self._target.length)):
            raise _FalseError("a snapshot of another log")
        if self._transfer is None or not self._transfer.continues(offer):
            self._transfer = Transfer(offer, self._config.snapshot_part_bytes)
        self._forget_part()
        self._offered_by = self._donors[0]
        self._ask()

    def _install(self, transfer: Transfer) -> None:
        """The whole snapshot is written: the log goes on behind it."""
        self._transfer = self._offered_by = None
        try:
            self._begin_at(transfer.checkpoint, transfer.offer.mark, transfer.offer.index)
        except _FalseError as e:
            self._emit(Refuse(str(e)))
            self._turn_to_next()
        self._fill_if_whole()
        if not self.joined:
            self._ask()

    # All is here

    def _fill_if_whole(self) -> None:
        if not self.filled and self._state.place == self._target:
            self._fill()

    def _fill(self) -> None:
        assert self._mark is not None, "only in a view"
        self._state.append(self._mark)
        self.filled = self._own_mark = True
        self.reflected = 0
        if not self._join() and self._intake is None:
            self._ask()

    def _join(self) -> bool:
        """Take in the window, if nothing is missing before it."""
        state, window = self._state, self._window
        if not self.filled or self.reflected is None or not window.follows(self.reflected):
            return False
        window.drop(self.reflected)
        while len(window):
            if state.full:
                # The rest follows as the disk keeps up.
                self._stop()
                self._wait()
                return True
            self.reflected += 1
            state.take(window.pop())
            if not self.reflected % _POINT_EVERY:
                self._note_point()
        self.joined = True
        self._stop()
        self._forget_part()
        self._transfer = self._offered_by = None
        return True

    def _emit(self, effect: Effect[Any]) -> None:
        self._out.append(effect)
