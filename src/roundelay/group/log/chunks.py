"""The stream of bytes that a donor sends and a learner reads.

A stream carries the records of a log, each with its length before it, or the file of a snapshot. It
travels in chunks, which may be lost, come twice, or overtake each other.
"""

import struct
from collections import deque
from collections.abc import Sequence

from roundelay.core.ids import ViewId
from roundelay.core.log import Place
from roundelay.wire.log_record import (
    checkpoint_place,
    decode_record,
    entries_end,
    is_checkpoint,
    is_mark,
)
from roundelay.wire.primitives import Reason, WireError

_SIZE = struct.Struct(">I")
SIZE_BYTES = _SIZE.size
"""What a record takes in the stream besides its own bytes."""
_PLACE_WITHIN_BYTES = 128
"""The place of a checkpoint is within so many bytes."""
_OVERTAKEN_MAX = 3
"""So many chunks may overtake one. If more come without it, it was lost."""


class Intake:
    """Puts the chunks of one stream in order."""

    def __init__(self, start: int, early_bytes_max: int) -> None:
        self.received = start
        """All bytes of the stream below this one have come, and were given out."""
        self._early: dict[int, bytes] = {}
        self._early_bytes = 0
        self._early_bytes_max = early_bytes_max
        self._overtaking = 0

    @property
    def lost(self) -> bool:
        """Whether a chunk is missing that will hardly come any more."""
        return self._overtaking > _OVERTAKEN_MAX

    @property
    def early_bytes(self) -> int:
        """Bytes that are kept until those before them come."""
        return self._early_bytes

    def take(self, offset: int, data: bytes) -> bytes:
        """Take in a chunk, and give out what of the stream is in order now; nothing if this one
        came before, or if one before it is missing."""
        received = self.received
        if offset > received:
            self._keep(offset, data)
            return b""
        if offset < received:
            data = data[received - offset :]
        if not data:
            return b""
        self.received += len(data)
        self._overtaking = 0
        return self._with_early(data) if self._early else data

    def _keep(self, offset: int, data: bytes) -> None:
        self._overtaking += 1
        more = len(data) - len(self._early.get(offset, b""))
        if more > 0 and self._early_bytes + more <= self._early_bytes_max:
            self._early[offset] = data
            self._early_bytes += more

    def _with_early(self, data: bytes) -> bytes:
        parts = [data]
        for offset in sorted(self._early):
            if offset > self.received:
                break
            early = self._early.pop(offset)
            self._early_bytes -= len(early)
            fresh = early[self.received - offset :]
            parts.append(fresh)
            self.received += len(fresh)
        return b"".join(parts)


class RecordReader:
    """Takes records out of a stream. A record that is not complete stays here when its stream
    ends, so that the next stream can begin within it."""

    def __init__(self, record_bytes_max: int) -> None:
        self._most = record_bytes_max
        self.held = 0
        """Bytes of a record that is not complete, its length included."""
        self._parts: list[bytes] = []
        self._need = _SIZE.size

    def feed(self, data: bytes) -> list[bytes]:
        """The records that these bytes complete. WireError for a record that is too large."""
        records = []
        at, end = 0, len(data)
        if self._parts:
            at = min(self._need - self.held, end)
            self._parts.append(data[:at])
            self.held += at
            if self.held < self._need:
                return []
            whole = b"".join(self._parts)
            if self.held == _SIZE.size:
                self._need += self._size_at(whole, 0)
                self._parts = [whole]
                return self.feed(data[at:]) if at < end else []
            records.append(whole[_SIZE.size :])
        need = _SIZE.size
        while end - at >= _SIZE.size:
            need = _SIZE.size + self._size_at(data, at)
            if end - at < need:
                break
            records.append(data[at + _SIZE.size : at + need])
            at += need
            need = _SIZE.size
        self._parts = [data[at:]] if at < end else []
        self.held = end - at
        self._need = need
        return records

    def _size_at(self, data: bytes, at: int) -> int:
        size: int = _SIZE.unpack_from(data, at)[0]
        if not 0 < size <= self._most:
            raise WireError(Reason.MALFORMED, f"a record of {size} bytes")
        return size

    @property
    def checkpoint(self) -> Place | None:
        """If a part of a checkpoint is here: its place, or `Place()` if not even that has come."""
        if self.held <= _SIZE.size:
            return Place() if self.held else None
        data = b"".join(self._parts)[_SIZE.size : _SIZE.size + _PLACE_WITHIN_BYTES]
        if not is_checkpoint(data):
            return None
        try:
            return checkpoint_place(data)
        except WireError:
            return Place()

    def clear(self) -> None:
        """Forget the record that is not complete."""
        self._parts = []
        self.held = 0
        self._need = _SIZE.size


class Outflow:
    """Pieces of a stream that wait to be sent: records with their lengths, or parts of a file."""

    def __init__(self) -> None:
        self.bytes = 0
        """What waits."""
        self._pieces: deque[bytes] = deque()
        self._at = 0
        """Of the first piece, so much was sent."""

    def add(self, piece: bytes) -> None:
        """Add a piece of the stream."""
        self._pieces.append(piece)
        self.bytes += len(piece)

    def add_records(self, records: Sequence[bytes], *, begins: bool = False) -> None:
        """Add records, but no checkpoint, except the first record if the log `begins` with it."""
        pieces = self._pieces
        for record in records:
            if not is_checkpoint(record) or begins:
                size = len(record)
                pieces.append(_SIZE.pack(size))
                pieces.append(record)
                self.bytes += _SIZE.size + size
            begins = False

    def skip(self, most: int) -> int:
        """Forget so many bytes, or all, if there are fewer; how many."""
        size = min(most, self.bytes)
        left = size
        while left:
            first = len(self._pieces[0]) - self._at
            if first > left:
                self._at += left
                break
            self._pieces.popleft()
            self._at = 0
            left -= first
        self.bytes -= size
        return size

    def take(self, most: int) -> bytes:
        """The next bytes, which leave."""
        pieces, at = self._pieces, self._at
        size = left = min(most, self.bytes)
        parts: list[bytes] = []
        while left:
            piece = pieces[0]
            first = len(piece) - at
            if first > left:
                parts.append(piece[at : at + left])
                at += left
                break
            parts.append(piece[at:] if at else piece)
            pieces.popleft()
            at = 0
            left -= first
        self._at = at
        self.bytes -= size
        return parts[0] if len(parts) == 1 else b"".join(parts)


def place_behind(place: Place, records: Sequence[bytes]) -> Place:
    """The place behind records that begin at `place`. Of most of them nothing is read."""
    opened = 0
    for record in reversed(records):
        if is_checkpoint(record):
            continue
        if is_mark(record):
            behind = place.past(decode_record(record))
            return behind._replace(opened=opened)
        end = entries_end(record)
        if end is not None:
            return Place(_term_of(place, records), end, opened)
        opened += 1
    return place._replace(opened=place.opened + opened)


def _term_of(place: Place, records: Sequence[bytes]) -> ViewId:
    """The term at the end of these records."""
    for record in reversed(records):
        if is_mark(record):
            return place.past(decode_record(record)).term
    return place.term
