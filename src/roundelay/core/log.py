"""The replicated log as cores, drivers and journals see it: what it holds, and how far it got.

A log is a sequence of *marks* and *entries*. A mark begins a term, which is a primary view; entries
are numbered 0, 1, 2 ... over all terms, and their number is their *index*. Pure data.
"""

from typing import NamedTuple, TypeAlias

from roundelay.core.ids import NodeId, ViewId
from roundelay.core.value import value

LOG_ID_BYTES = 16
"""Size of the id of a log."""
NO_TERM = ViewId(0, "")
"""The term of a log without a mark."""
NAMED = 1 << 63
"""This bit is set in the ids of sessions that clients open by name, and in no others."""


class Place(NamedTuple):
    """A point in a log: behind the mark of `term`, behind all entries below `length`, and behind so
    many of the sessions opened at that length. Since no term has two marks, this says how many
    records there are before it. Places of logs of one generation are compared as tuples: the
    greater one is the better log."""

    term: ViewId = NO_TERM
    length: int = 0
    opened: int = 0
    """Records since the last entry, or since the mark, that open a session. They have no index, so
    without this number two logs of different content would be at one place."""

    def past(self, record: "LogRecord | Head") -> "Place":
        """The place behind a record that begins here."""
        if isinstance(record, Mark):
            return Place(record.term, record.base)
        if isinstance(record, Checkpoint):
            return self
        head = record.head if isinstance(record, Entries) else record
        if not head.count:
            return Place(head.term, head.index, self.opened + 1)
        return Place(head.term, head.index + head.count)


@value
class Head:
    """What is known of a record of entries without its body."""

    index: int
    """Of its first entry."""
    term: ViewId
    sender: NodeId
    incarnation: int
    session: int
    """Whose numbers these are: of one life of a node, or, with the bit `NAMED`, of a client."""
    number: int
    """Of the first entry within the session."""
    count: int
    """How many entries, with consecutive numbers. 0: no entry; the record opens the named session,
    and the body is its name."""
    stamp_us: int
    """What the wall clock of the sender showed."""
    crc: int
    """CRC-32 of the body."""


@value
class Entries:
    """Consecutive entries: a packet as it was delivered, or one large message put together."""

    head: Head
    body: bytes
    """The messages, in a form of `group.body`."""


@value
class Mark:
    """Begins a term."""

    term: ViewId
    base: int
    """The index of the first entry of the term."""
    voters: tuple[NodeId, ...]
    members: tuple[NodeId, ...]
    sessions: tuple[int, ...]
    """Of the members, in their order; 0 for a member without a journal."""
    generation: int
    log: bytes
    """The id of the log."""
    lossy: bool = False
    """Entries that were confirmed before this point may be gone: an operator began the generation
    from what was left of a lost majority."""
    opened: int = 0
    """Records that open a session between the last entry before this mark, or the mark before it,
    and this mark: the term before ended at `Place(its id, base, opened)`."""


class Session(NamedTuple):
    """What the log remembers of a session."""

    session: int
    number: int
    """The last number that has an index; -1 if none has."""
    at: int
    """The index of that number; of a session that was only opened, where it was opened."""


@value
class Checkpoint:
    """What a log amounts to at a place. A node writes one now and then, so that at a start it need
    not read what came before; a log whose beginning was removed starts with one."""

    place: Place
    digest: int
    """The running digest over all records before the place."""
    time_us: int
    """Log time: the greatest stamp so far."""
    sessions: tuple[Session, ...]
    """The one that was not used for the longest time first."""


LogRecord: TypeAlias = Entries | Mark | Checkpoint


@value
class KeptLog:
    """What a journal holds when its node starts."""

    log: bytes
    """The id of the log; empty if the journal is empty."""
    generation: int
    able: bool
    """Whether it holds everything that this node ever said it had stored."""
    first: int
    """Entries below this index were removed."""
    committed: int
    """So many entries were known to be committed, at least."""
    marks: tuple[Mark, ...]
    """The newest ones, at most `MARKS_KEPT`; with the last mark before `first`, if there is one."""
    checkpoint: Checkpoint
    """The newest below `committed`: what is before it will never be cut."""
    tail: tuple[Head | Mark, ...]
    """The records behind the checkpoint."""
    snapshot: int | None = None
    """The index of the newest snapshot of the application's state."""
    why: str = ""
    """For people: why the node is not able."""


EMPTY_LOG = KeptLog(b"", 0, False, 0, 0, (), Checkpoint(Place(), 0, 0, ()), ())
"""An empty journal. It cannot be told from a lost disk."""
MARKS_KEPT = 1024
"""Marks that a core keeps in memory."""


@value
class LogStatus:
    """What a driver, and whoever asks it, may know of the log of a core."""

    id: bytes
    generation: int
    first: int
    length: int
    """Entries that this node has, stored or not."""
    stored: int
    """Of these, entries that are stored as the policy wants it."""
    committed: int
    term: ViewId
    voters: tuple[NodeId, ...]
    """Of the present view; empty if it is not primary."""
    state: str
    """"closed": the view is not primary; "opening"; "open"."""
    condition: str
    """Of this node: "able", "not able", "filling" (it lacks entries and fetches them) or "behind"
    (its disk cannot keep up)."""
    waiting: int
    """Messages that were appended here and are not known to be committed."""
    waiting_bytes: int
    why: str
    """For people: what the log waits for; empty if for nothing."""
