"""What was appended here and is not known to be committed.

Messages of one session that follow each other share a *parcel*, which becomes one log packet, or
the pieces of a large one. A parcel keeps its session and numbers until it is committed. While a
view is open here, parcels are fed to the packer, which gives them message numbers of this life as
any other packet. A view change takes all of them back; when the next view opens, those that the
adopted log lacks go again, in their order. A receiver knows by session and number what it has
already.

The rules of numbers are in `state`: here it is only noted where in the log a parcel ended up.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

from roundelay.core.contract import Boot, QueueFullError
from roundelay.core.effects import Appended, Effect, Kind, Record
from roundelay.core.ids import is_name
from roundelay.core.log import NO_TERM, Head, Place
from roundelay.group.body import (
    MESSAGE_OVERHEAD_BYTES,
    PIECE_OVERHEAD_BYTES,
    checksum,
    pack,
    pack_piece,
)
from roundelay.group.log.arrival import (
    LOG_OVERHEAD_BYTES,
    MESSAGES,
    OPENING,
    Arrival,
    named_session,
    wrap,
)
from roundelay.group.log.config import LogConfig
from roundelay.group.log.sessions import SessionTable
from roundelay.group.packer import GroupConfig

Feed = Callable[[list[bytes], int], None]
"""Puts the bodies of packets into the packer; the last one completes so many messages."""


class Parcel:
    """Consecutive messages of one session, or the opening of one."""

    __slots__ = (
        "end",
        "messages",
        "name",
        "number",
        "session",
        "size",
        "skipped",
        "stamp",
        "was_fed",
    )

    def __init__(self, session: int, number: int, stamp_us: int, name: str = "") -> None:
        self.session = session
        self.number = number
        self.stamp = stamp_us
        self.name = name
        """Of the session that it opens; empty if it brings messages."""
        self.messages: list[bytes] = []
        self.size = 0
        self.end: Place | None = None
        """Where the log continued behind it; None while it is not in the log."""
        self.was_fed = False
        """It was sent once, and may be in some log as it was then: nothing may be added."""
        self.skipped: int | None = 0
        """So many of its messages had been in the log before; None: all of them, and where is not
        remembered."""

    @property
    def count(self) -> int:
        return len(self.messages)


class Sending:
    """The parcels of one node, in the order in which they were appended."""

    def __init__(
        self, boot: Boot, config: LogConfig, group: GroupConfig, out: list[Effect[Any]]
    ) -> None:
        self._node, self._incarnation = boot.node, boot.incarnation
        self._traced = boot.traced
        self._config = config
        self._packet_messages = group.packet_messages
        self._message_bytes_max = group.message_bytes_max
        self._room = group.packet_bytes - LOG_OVERHEAD_BYTES - 1
        """Bytes of messages in a packet, what each costs besides its payload included."""
        self._piece = group.packet_bytes - LOG_OVERHEAD_BYTES - PIECE_OVERHEAD_BYTES
        self.own = boot.session
        self._next: dict[int, int] = {boot.session: 0}
        """The number that a session's next message gets if nobody gives one."""
        self._parcels: deque[Parcel] = deque()
        self._unfed: deque[Parcel] = deque()
        """Those to be fed, in order."""
        self._unfed_packets = 0
        self._tail: Parcel | None = None
        """The last parcel, while own messages are added to it without further ado: see `_close`."""
        self._content: list[bytes] = []
        """Its messages ..."""
        self._content_first = 0
        """... the number of the first ..."""
        self._content_known = 0
        """... and how many of them are counted already."""
        self._room_left = -1
        """Bytes of the largest message that fits it; -1 if there is no such parcel."""
        self._room_first = -1
        """The same before anything was added."""
        self._slots = 0
        """How many messages it may hold."""
        self._away: deque[Parcel] = deque()
        """Those that were fed, and are not in the log yet, in order."""
        self._unrecorded: list[tuple[Parcel, int]] = []
        """Parcels with messages that no row tells of yet, and from which one on."""
        self._bytes = 0
        self._messages = 0
        """Of all parcels, but for what was added to the last one."""
        self._out = out

    # Appending

    def append(
        self,
        payload: bytes,
        stamp_us: int,
        session: int | None = None,
        number: int | None = None,
    ) -> int:
        """Queue a message and return its number."""
        if (
            session is None
            and number is None
            and type(payload) is bytes
            and (room := self._room_left - len(payload)) >= 0
            and len(content := self._content) < self._slots
        ):
            # A short cut for the usual case, which may come by the million.
            content.append(payload)
            self._room_left = room - MESSAGE_OVERHEAD_BYTES
            return self._content_first + len(content) - 1
        return self._append(payload, stamp_us, session, number)

    def _append(
        self, payload: bytes, stamp_us: int, session: int | None, number: int | None
    ) -> int:
        self._close()
        if type(payload) is not bytes:
            kind = type(payload).__name__
            raise TypeError(f"an entry is of type bytes, not {kind}; encode or copy it first")
        size = len(payload)
        if size > self._message_bytes_max:
            raise ValueError(f"an entry of {size} bytes; the limit is {self._message_bytes_max}")
        if session is None:
            session = self.own
        following = self._next.get(session)
        if following is None:
            raise ValueError("a named session is opened before it is used")
        if number is None:
            number = following
        elif session == self.own:
            raise ValueError("only messages of named sessions are numbered by their client")
        elif not 0 <= number < 2**62:
            raise ValueError(f"a number from 0 to 2**62 - 1, not {number}")
        self._make_room(size)
        parcel = self._parcel_for(session, number, size, stamp_us)
        if self._traced and (not self._unrecorded or self._unrecorded[-1][0] is not parcel):
            self._unrecorded.append((parcel, len(parcel.messages)))
        fresh = not parcel.messages
        parcel.messages.append(payload)
        parcel.size += size + MESSAGE_OVERHEAD_BYTES
        if fresh:
            self._unfed_packets += self._packets_of(parcel)
        self._bytes += size
        self._messages += 1
        self._next[session] = max(following, number + 1)
        if session == self.own and not self._traced and parcel.size <= self._room:
            self._continue(parcel)
        return number

    def _continue(self, parcel: Parcel) -> None:
        """The next own messages go into this parcel, as far as it and the queue have room."""
        config, count = self._config, parcel.count
        self._tail, self._content = parcel, parcel.messages
        self._content_first, self._content_known = parcel.number, count
        room = min(self._room - parcel.size, config.queue_bytes - self._bytes)
        self._room_left = self._room_first = room - MESSAGE_OVERHEAD_BYTES
        self._slots = min(self._packet_messages, count + config.queue_messages - self._messages)

    def _close(self) -> None:
        """Count the messages that were added to the last parcel since `_continue`."""
        parcel = self._tail
        if parcel is None:
            return
        added = len(parcel.messages) - self._content_known
        spent = self._room_first - self._room_left
        parcel.size += spent
        self._bytes += spent - added * MESSAGE_OVERHEAD_BYTES
        self._messages += added
        self._next[self.own] = parcel.number + parcel.count
        self._tail = None
        self._content = []
        self._room_left = -1

    @property
    def messages(self) -> int:
        """Messages that are not known to be committed, and openings of sessions."""
        if self._tail is None:
            return self._messages
        return self._messages + len(self._content) - self._content_known

    @property
    def bytes(self) -> int:
        """Of these messages."""
        if self._tail is None:
            return self._bytes
        added = len(self._content) - self._content_known
        return self._bytes + self._room_first - self._room_left - added * MESSAGE_OVERHEAD_BYTES

    def _make_room(self, size: int) -> None:
        config = self._config
        if self._messages >= config.queue_messages or (
            self._bytes and self._bytes + size > config.queue_bytes
        ):
            raise QueueFullError(
                f"{self._messages} messages, {self._bytes} bytes wait for a commit"
            )

    def _parcel_for(self, session: int, number: int, size: int, stamp_us: int) -> Parcel:
        """The parcel that a message goes into: the last one, if it follows there and fits."""
        if self._unfed:
            last = self._unfed[-1]
            if (
                last.session == session
                and not (last.name or last.was_fed)
                and last.number + len(last.messages) == number
                and last.size + size + MESSAGE_OVERHEAD_BYTES <= self._room
                and len(last.messages) < self._packet_messages
            ):
                return last
        parcel = Parcel(session, number, stamp_us)
        self._parcels.append(parcel)
        self._unfed.append(parcel)
        return parcel

    def open_session(self, name: str, stamp_us: int) -> int:
        """Queue the opening of a named session; its id."""
        if not is_name(name):
            raise ValueError(f"{name!r} cannot be the name of a session")
        self._close()
        self._make_room(0)
        session = named_session(name)
        self._next.setdefault(session, 0)
        if len(self._next) > self._config.sessions_max:
            oldest = next(key for key in self._next if key not in (self.own, session))
            del self._next[oldest]
        parcel = Parcel(session, 0, stamp_us, name)
        self._parcels.append(parcel)
        self._unfed.append(parcel)
        self._unfed_packets += 1
        self._messages += 1
        return session

    def record(self) -> None:
        """Rows of the messages that were appended since the last call."""
        for parcel, start in self._unrecorded:
            count = len(parcel.messages) - start
            number = parcel.number + start
            head = Head(
                0,
                NO_TERM,
                self._node,
                self._incarnation,
                parcel.session,
                number,
                count,
                parcel.stamp,
                0,
            )
            self._out.append(Record(Kind.APPEND, head=head))
        self._unrecorded.clear()

    # Feeding

    @property
    def unfed(self) -> int:
        """Packets that wait to be fed."""
        return self._unfed_packets

    def _packets_of(self, parcel: Parcel) -> int:
        return 1 if parcel.size <= self._room else -(-len(parcel.messages[0]) // self._piece)

    def feed(self, feed: Feed) -> int:
        """Feed the next parcel; its bytes."""
        parcel = self._unfed.popleft()
        if parcel is self._tail:
            self._close()
        self._unfed_packets -= self._packets_of(parcel)
        parcel.was_fed = True
        self._away.append(parcel)
        session, number, stamp = parcel.session, parcel.number, parcel.stamp
        if parcel.name:
            feed([wrap(OPENING, session, number, stamp, parcel.name.encode())], 1)
        elif parcel.size <= self._room:
            feed([wrap(MESSAGES, session, number, stamp, pack(parcel.messages))], parcel.count)
        else:
            (payload,) = parcel.messages
            pieces, crc = -(-len(payload) // self._piece), checksum(payload)
            bodies = [
                wrap(
                    MESSAGES,
                    session,
                    number,
                    stamp,
                    pack_piece(payload, i, pieces, self._piece, crc),
                )
                for i in range(pieces)
            ]
            feed(bodies, 1)
        return parcel.size

    def take_back(self) -> None:
        """The view ended: nothing is with the packer or the engine any more."""
        self._close()
        self._unfed = deque(parcel for parcel in self._parcels if parcel.end is None)
        self._unfed_packets = sum(map(self._packets_of, self._unfed))
        self._away.clear()

    def compare(self, sessions: SessionTable, place: Place) -> None:
        """A view opened, and this is the table of the adopted log, which ends at `place`: what is
        in it need not go again."""
        for parcel in self._parcels:
            if parcel.end is None:
                self._compare(parcel, sessions, place)
        self.take_back()

    def settle(self, sessions: SessionTable, place: Place) -> None:
        """The log of this node jumped to `place`: what was delivered meanwhile was not seen."""
        for parcel in self._away:
            self._compare(parcel, sessions, place)
        self._away = deque(parcel for parcel in self._away if parcel.end is None)

    def _compare(self, parcel: Parcel, sessions: SessionTable, place: Place) -> None:
        used = sessions.get(parcel.session)
        if used is not None and (parcel.name or used.number >= parcel.number + parcel.count - 1):
            parcel.end, parcel.skipped = place, None

    # What became of parcels

    def note_entries(self, head: Head, end: Place) -> None:
        """Entries came into the log, which continues at `end`; they may be ours."""
        if head.sender != self._node or head.incarnation != self._incarnation:
            return
        last = head.number + head.count
        for parcels in (self._away, self._unfed):
            for parcel in parcels:
                if parcel.session != head.session or bool(parcel.name) == bool(head.count):
                    continue
                if head.count and parcel.number + parcel.count != last:
                    continue
                parcel.end, parcel.skipped = end, max(0, head.number - parcel.number)
                _take_out(parcels, parcel)
                if parcels is self._unfed:
                    self._unfed_packets -= self._packets_of(parcel)
                return

    def note_duplicate(self, arrival: Arrival, sessions: SessionTable, place: Place) -> None:
        """An own packet was delivered that brought nothing new to the log, which ends at `place`:
        it was there before, or its session was forgotten."""
        if arrival.sender != self._node or arrival.incarnation != self._incarnation:
            return
        for parcel in self._away:
            if parcel.session != arrival.session or parcel.number != arrival.number:
                continue
            if bool(parcel.name) == bool(arrival.count):
                continue
            used = sessions.get(parcel.session)
            if used is None:
                self._forget(parcel)
            elif parcel.name or used.number >= parcel.number + parcel.count - 1:
                parcel.end, parcel.skipped = place, None
            else:
                return  # What came before it was lost with an old view: it goes again.
            _take_out(self._away, parcel)
            return

    def cut(self, place: Place) -> None:
        """The log was cut to this place: what was behind it has to go again."""
        for parcel in self._parcels:
            if parcel.end is not None and parcel.end > place:
                parcel.end, parcel.skipped = None, 0

    def _forget(self, parcel: Parcel) -> None:
        self._out.append(
            Appended(parcel.session, parcel.number, parcel.count, None, forgotten=True)
        )
        if self._traced:
            head = Head(
                0,
                NO_TERM,
                self._node,
                self._incarnation,
                parcel.session,
                parcel.number,
                parcel.count,
                parcel.stamp,
                0,
            )
            self._out.append(Record(Kind.APPEND, head=head, tag="forgotten"))
        self._parcels.remove(parcel)
        self._drop(parcel)

    def commit(self, place: Place, sessions: SessionTable) -> None:
        """Everything before this place is committed: tell of the parcels there, in order."""
        parcels = self._parcels
        while parcels and (end := parcels[0].end) is not None and end <= place:
            parcel = parcels.popleft()
            self._drop(parcel)
            self._tell(parcel, end, sessions)

    def _tell(self, parcel: Parcel, end: Place, sessions: SessionTable) -> None:
        session, number, count = parcel.session, parcel.number, parcel.count
        used = sessions.get(session)
        if parcel.name:
            number = -1 if used is None else used.number
            self._next[session] = max(self._next.get(session, 0), number + 1)
            self._out.append(Appended(session, number, 0, end.length))
            return
        if parcel.skipped is None:
            index = None
            if used is not None and used.number == number + count - 1:
                # Only one that has no message after it is remembered, and if it is alone.
                index = used.at if count == 1 else None
            self._out.append(Appended(session, number, count, index))
            return
        if parcel.skipped:
            self._out.append(Appended(session, number, parcel.skipped, None))
        rest = count - parcel.skipped
        self._out.append(Appended(session, number + parcel.skipped, rest, end.length - rest))

    def _drop(self, parcel: Parcel) -> None:
        if parcel.name:
            self._messages -= 1
        else:
            self._messages -= parcel.count
            self._bytes -= parcel.size - parcel.count * MESSAGE_OVERHEAD_BYTES


def _take_out(parcels: deque[Parcel], parcel: Parcel) -> None:
    if parcels[0] is parcel:
        parcels.popleft()  # As nearly always: they come back in the order in which they went.
    else:
        parcels.remove(parcel)
