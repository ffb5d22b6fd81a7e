"""The entries of a log as an application reads them: one by one, or in batches."""

from collections.abc import Iterator
from itertools import count, repeat
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from roundelay.core.ids import NodeId, ViewId
from roundelay.core.log import Entries, Head
from roundelay.group.body import unpack


class _Fields(NamedTuple):
    payload: bytes
    batch: "EntryBatch"
    offset: int


class Entry(tuple[bytes, "EntryBatch", int]):
    """One entry of the log: a value that never changes.

    It is a tuple, as `Message` is, because entries come by the million; but use its names. Two
    entries are equal if they have the same index, term and payload.
    """

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def payload(self) -> bytes:
            """What was appended."""

        @property
        def batch(self) -> "EntryBatch":
            """The entries that it travelled with."""

        @property
        def offset(self) -> int:
            """Its place in the batch."""

    else:  # Twice as fast as properties.
        payload, batch, offset = _Fields.payload, _Fields.batch, _Fields.offset

    @property
    def index(self) -> int:  # type: ignore[override]  # A tuple's method, of no use here.
        """Its number in the log, from 0; the same at all nodes, for ever."""
        return self.batch.index + self.offset

    @property
    def sender(self) -> NodeId:
        """The node that appended it."""
        return self.batch.head.sender

    @property
    def term(self) -> ViewId:
        """The primary view in which it got its index."""
        return self.batch.head.term

    @property
    def session(self) -> int:
        """Whose numbers the next property counts: of one life of a node, or of a client."""
        return self.batch.head.session

    @property
    def number(self) -> int:
        """Its number in its session."""
        return self.batch.number + self.offset

    @property
    def stamp_us(self) -> int:
        """What the clock of its sender showed, in microseconds since the epoch."""
        return self.batch.head.stamp_us

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Entry):
            return NotImplemented
        return self._value() == other._value()

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((self.index, self.term))

    def _value(self) -> tuple[object, ...]:
        return (self.index, self.term, self.sender, self.session, self.number, self.payload)

    def __repr__(self) -> str:
        return f"<Entry {self.index} from {self.sender}: {self.payload[:40]!r}>"


class EntryBatch:
    """Consecutive entries of one sender that travelled together; never none."""

    __slots__ = ("_skipped", "head", "payloads")

    def __init__(self, record: Entries, skip: int = 0) -> None:
        """Without the first `skip` entries, which were read already."""
        payloads = unpack(record.body, record.head.count)
        assert type(payloads) is tuple, "the log keeps large messages whole"
        self.head: Head = record.head
        self.payloads: tuple[bytes, ...] = payloads[skip:] if skip else payloads
        """What was appended, in this order."""
        self._skipped = skip

    @property
    def index(self) -> int:
        """Of the first entry."""
        return self.head.index + self._skipped

    @property
    def number(self) -> int:
        """Of the first entry, in its session."""
        return self.head.number + self._skipped

    @property
    def sender(self) -> NodeId:
        """The node that appended them."""
        return self.head.sender

    @property
    def term(self) -> ViewId:
        """Of the log: the view that placed them."""
        return self.head.term

    def __len__(self) -> int:
        return len(self.payloads)

    def __iter__(self) -> Iterator[Entry]:
        return map(Entry, zip(self.payloads, repeat(self), count(), strict=False))

    def __repr__(self) -> str:
        return f"<{len(self)} entries from {self.index} on, from {self.sender}>"


class Lossy(NamedTuple):
    """An operator began the log anew here, from what was left of a lost majority: entries that were
    confirmed before this point may be gone."""

    from_index: int
    """The first index of the new generation of the log."""
    generation: int
    """How often the log was begun anew."""


LogItem: TypeAlias = Entry | Lossy
"""What `async for item in group.log.read()` gives."""

LogArrival: TypeAlias = EntryBatch | Lossy
"""What `group.log.batches()` gives."""
