"""The messages of the log among nodes; `codec` turns them into bytes and back.

All name the view that they belong to in their frame, and mean nothing in another one. All may come
twice, late, or never.
"""

from typing import TypeAlias

from roundelay.core.log import LOG_ID_BYTES, Mark, Place
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
    opened: int
    """Sessions opened since: see `Place`."""
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
    """Asks a donor for what follows a place of the log, as a stream of bytes: the records, each as
    `wire.log_record` has them with its length (u32) before it. Checkpoints, which are each node's
    own, are left out."""

    number: int
    """Of the stream. A larger one ends the stream that the donor sends; the same one again only
    moves the limit."""
    place: Place
    """Where the stream begins."""
    offset: int
    """The stream is sent from this byte on: the learner has those before it."""
    limit: int
    """And up to this byte, for now."""
    begun: Place = Place()
    """The bytes that the learner has begin with the checkpoint at this place, at which the log of a
    donor began that did not hold the place asked for any more."""

    def __str__(self) -> str:
        return f"#{self.number} {self.offset}..{self.limit} behind {self.place.length}"


@value
class FetchSnapshot:
    """Asks for bytes of the file of a snapshot."""

    number: int
    """Of the stream, as in a Fetch."""
    index: int
    offset: int
    limit: int

    def __str__(self) -> str:
        return f"#{self.number} {self.offset}..{self.limit} of snapshot {self.index}"


@value
class Chunk:
    """A part of the stream that was asked for."""

    number: int
    """Of the stream."""
    offset: int
    """Of the first byte of `data` in the stream, or in the file of the snapshot."""
    data: bytes
    end: bool = False
    """The stream ends behind this chunk: the donor's disk holds no more for now. The learner asks
    anew for what comes later."""
    whole: bool = False
    """The donor itself lacks no log packet of this view."""
    ordinal: int | None = None
    """If not None: what the first so many log packets of this view made of the log ends ..."""
    length: int = 0
    """... at this length ..."""
    opened: int = 0
    """... and behind so many sessions opened there. The stream comes by that place, if it is not
    behind it already."""
    committed: int = 0
    """So many entries the donor knows to be committed."""

    def __str__(self) -> str:
        end = " end" if self.end else ""
        return f"#{self.number} {len(self.data)} bytes from {self.offset}{end}"


@value
class CutTo:
    """Answers a Fetch whose place is not in the donor's log: the donor's greatest mark not above
    the one asked for, and where that term ends there."""

    number: int
    place: Place


@value
class TooFar:
    """Answers a Fetch whose place the donor no longer holds, if the learner needs a snapshot; and a
    fetch of a snapshot that the donor does not hold."""

    number: int
    index: int
    """Of the donor's newest snapshot."""
    size: int
    """Of its file."""
    digest: int
    """How its file ends: a transfer goes on at another donor only if this is the same."""
    mark: Mark
    """Of the term that the snapshot was taken in."""


LogMessage: TypeAlias = (
    Offer | Ready | Ack | Probe | Reply | Fetch | Chunk | CutTo | TooFar | FetchSnapshot
)
LOG_MESSAGES = frozenset(
    (Offer, Ready, Ack, Probe, Reply, Fetch, Chunk, CutTo, TooFar, FetchSnapshot)
)
"""Faster to ask than a union: every frame does."""
CATCH_UP = frozenset((Fetch, Chunk, CutTo, TooFar, FetchSnapshot))
"""Messages of learners and donors."""
