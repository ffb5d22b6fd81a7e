"""The messages of the log among nodes; `codec` turns them into bytes and back.

All name the view that they belong to in their frame, and mean nothing in another one. All may come
twice, late, or never.
"""

from typing import TypeAlias

from roundelay.core.log import LOG_ID_BYTES, Place
from roundelay.core.value import value

FIRST_TAG = 96
"""Tags of the log's messages begin here."""
NO_LOG = bytes(LOG_ID_BYTES)
"""Stands on the wire for the id of an empty journal."""


@value
class Offer:
    """What the sender's log held as the view was installed; all of that is stored."""

    log: bytes
    """Its id; empty if the journal is empty."""
    generation: int
    place: Place
    digest: int
    first: int
    """Entries below this index were removed."""
    committed: int
    """So many entries are known there to be committed."""
    snapshot: int | None
    """The index of the newest snapshot there."""
    session: int
    """Of this life of the sender."""
    have: tuple[bool, ...]
    """Of which members the sender holds the offer, in the order of the members."""

    def __str__(self) -> str:
        return f"{self.place.length} entries up to term {self.place.term}"


@value
class Ready:
    """The sender holds the adopted log and the mark of this view, stored."""

    base: int
    have: tuple[bool, ...]
    """Of which members the sender holds the offer; and so needs none of them again."""
    ready: tuple[bool, ...]
    """Of which members the sender knows that they are ready."""

    def __str__(self) -> str:
        return f"at {self.base}"


@value
class Ack:
    """So much of its log the sender has stored in this view, and knows to be committed."""

    length: int
    committed: int

    def __str__(self) -> str:
        return f"{self.length} stored, {self.committed} committed"


@value
class Probe:
    """Asks how long the logs of the voters are."""

    number: int


@value
class Reply:
    """The length of the log of a voter, in an open view that it has not left."""

    number: int
    length: int


@value
class Fetch:
    """Asks a donor for what follows a place of the log: for the bytes of that stream from `offset`
    on, at most so many. The stream is the records, each as `wire.log_record` has them with its
    length (u32) before it; checkpoints, which are each node's own, are left out."""

    place: Place
    offset: int
    bytes_max: int
    number: int
    """Grows with every Fetch of this learner in this view; chunks repeat it."""


@value
class Chunk:
    """A part of what a Fetch asked for."""

    number: int
    """Of the Fetch that it answers."""
    place: Place
    """Where the stream begins; that of the Fetch unless `anew`."""
    offset: int
    """Of the first byte of `data` in the stream."""
    data: bytes
    end: bool
    """The stream ends behind this chunk for now: the donor's journal holds no more."""
    anew: bool
    """The donor no longer holds the place that was asked for: the stream begins with the checkpoint
    and the mark that the donor's journal begins with."""
    length: int
    """Of the donor's log, as this was sent ..."""
    ordinal: int
    """... behind so many log packets that were delivered in this view."""
    committed: int
    """So many entries the donor knows to be committed."""

    def __str__(self) -> str:
        return f"{len(self.data)} bytes from {self.offset} behind {self.place.length}"


@value
class CutTo:
    """Answers a Fetch whose place is not in the donor's log: the donor's greatest mark not above
    the one asked for, and where that term ends there."""

    number: int
    place: Place


@value
class TooFar:
    """Answers a Fetch whose place the donor no longer holds, if the learner needs a snapshot."""

    number: int
    first: int
    snapshot: int | None


@value
class FetchSnapshot:
    """Asks for bytes of the file of a snapshot."""

    number: int
    index: int
    offset: int
    bytes_max: int


@value
class SnapshotChunk:
    """A part of the file of a snapshot. With size 0 the donor has no such snapshot."""

    number: int
    index: int
    digest: int
    """Of the log at the snapshot's place: a transfer goes on only where it is the same."""
    size: int
    offset: int
    data: bytes


LogMessage: TypeAlias = (
    Offer
    | Ready
    | Ack
    | Probe
    | Reply
    | Fetch
    | Chunk
    | CutTo
    | TooFar
    | FetchSnapshot
    | SnapshotChunk
)
LOG_MESSAGES = frozenset(
    (Offer, Ready, Ack, Probe, Reply, Fetch, Chunk, CutTo, TooFar, FetchSnapshot, SnapshotChunk)
)
"""Faster to ask than a union: every frame does."""
CATCH_UP = frozenset((Fetch, Chunk, CutTo, TooFar, FetchSnapshot, SnapshotChunk))
"""Messages of learners and donors."""
