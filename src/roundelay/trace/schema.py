"""The trace schema: one row per event, the same columns in Parquet, JSON Lines and memory.

A node appears as a number, its index in the manifest's sorted list of names. Rows that belong to no
node (faults, the end of the run) are the world's, whose `proc` is -1. A row may cover `count`
consecutive messages of one sender, since a real node writes one row per packet; `m_seq` and `k3`
are those of the first message. `expand` makes one row per message. Rows of the replicated log are
of the layer `log`; what they have in m_* is no message of the ordering but the sender of an entry,
its incarnation, and the number of the entry within its session, which `obj` names.

    kind        written by     besides the common columns it fills
    submit      group layer    m_*, svc, dst, size
    originate   engine         m_*, svc, dst, digest, size, count
    receive     engine         m_*, digest, count, pkt, peer
    order       engine         m_*, count, k*, level
    confirm     engine         m_*, count, k*
    deliver     driver         m_*, svc, dst, digest, size, count, k*
    stable      engine         m_*, count, level
    withdraw    engine         m_*, count
    install     driver         c_* (the view entered), members, prev_c, primary, voters (of a
                               primary view), level: 1 if this node is able to vote
    gather      core           tag: why the node begins, or begins again, to agree on a next view
    freeze      core           k0, k1: the ring whose Commit token was accepted; c_*: the old view
    token       engine         tag: acquire, release; k0, k1: the view whose token it is
    crash       driver         tag: kill, power (unsynced writes are lost) or disk-lost, where the
                               node has a journal
    recover     core           k0: the ring sequence number read back from stable storage;
                               level: 1 if the node kept its standing, 0 if it lost it
    suspect     driver         members
    expire      driver         tag: the timer
    send        driver         tag: the message type; pkt; peer (none: everyone); size
    arrive      driver         tag, pkt, peer, size
    drop        driver, world  tag: the reason; pkt, peer
    append      core           obj: the session; m_*, count: who appends, the first number in it
    entry       core           idx: the index given to it; m_*, obj, count; k0, k1: the term;
                               digest: of the body of the whole record, which the row is about
    stored      core           idx: so many entries are on disk, as the policy wants it
    commit      core           idx: so many are known to be committed
    cut         core           idx: so many are left, after records were taken from the end
    caught      core           idx: the node has caught up: it has so many
    open        core           k0, k1: the view that is open; idx: its base; members: its voters;
                               tag lossy: no node was in that view, with whose mark an operator
                               began a generation of the log, and this log has the mark; tag
                               follows: the member, this node, is to join that generation, with a
                               log of `idx`
    snapshot    driver         idx: how many entries the state comes from; digest: of the state
    restore     driver, core   the same, of a state that the application was given; without a
                               digest: the log begins anew there, with a peer's checkpoint
    invoke      driver         obj, op, arg: an operation begins; level: 0 if any state will do
    reply       driver         obj, op, res: it is over; idx: as of so many entries; cause: the
                               lseq of its invoke
    fault       world          tag: what was done (`heal` ends the faults; `start` starts a real
                               node, for the first time too), x: its arguments
    end         world          members: one live connected component (a row for each); the run was
                               quiet when it was written
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from roundelay.core.effects import Kind

SCHEMA_VERSION = 3
"""Grows when a reader of the older version would misread a trace. We read all versions up to this
one."""

ADDED: Mapping[str, int] = {"voters": 2, "idx": 3, "obj": 3, "op": 3, "arg": 3, "res": 3}
"""By column: the version of the schema that added it."""

WORLD = -1
"""The `proc` of rows that belong to no node."""

LAYERS = ("net", "vs", "to", "app", "log")
"""Where an event happened: on the network, in a view-synchronous layer, in the ordering, in the
application, in the replicated log."""

LOWER_LAYER = "vs"
"""The layer of what goes into the link below an ordering engine and of what the link hands up. Its
rows tell of the same messages as those of the layers above: whoever counts messages leaves them
out. They are written where frames have rows."""

LOG_LAYER = "log"
"""The layer of rows of the replicated log."""

REGULAR, TRANSITIONAL = 0, 1
"""Values of `c_kind`."""


class Row(NamedTuple):
    """One event. Field order is column order."""

    kind: str
    proc: int
    """The node, as a number."""
    inc: int
    """The incarnation: which life of the node it is. The simulator counts 0, 1, 2 ...; a real node
    makes a number of 63 bits from the clock and random bits."""
    lseq: int
    """Counts the rows of (proc, inc) from 0. A missing number means that a row of the trace was
    lost."""
    gseq: int | None = None
    """The simulator's total order of events; none in traces of real nodes."""
    t_ns: int = 0
    """Virtual or monotonic time."""
    wall_ns: int | None = None
    lam: int = 0
    """The node's Lamport clock."""
    layer: str = "to"
    tag: str = ""
    m_src: int | None = None
    m_inc: int | None = None
    m_seq: int | None = None
    svc: int | None = None
    dst: tuple[int, ...] | None = None
    """Destinations; none means the whole view."""
    k0: int | None = None
    """Order key, compared lexicographically: k0, k1 are the view (seq, representative)."""
    k1: int | None = None
    k2: int | None = None
    k3: int | None = None
    level: int | None = None
    c_seq: int | None = None
    """The view the event happened in; on install rows the view entered."""
    c_rep: int | None = None
    c_kind: int | None = None
    members: tuple[int, ...] | None = None
    prev_c: tuple[int, int, int] | None = None
    """The view left (seq, rep, kind), on install rows."""
    primary: bool | None = None
    voters: tuple[int, ...] | None = None
    """The voters of a primary view, on install rows; none means its members."""
    digest: int | None = None
    """CRC-32 of the payload bytes of the row."""
    size: int | None = None
    count: int = 1  # type: ignore[assignment]  # A column; tuple.count has no use here.
    """Messages covered by the row."""
    pkt: int | None = None
    """Names one frame, the same wherever its copies arrive: see `frame_key`."""
    peer: int | None = None
    cause: int | None = None
    """The lseq of the input that caused this event."""
    x: str | None = None
    """More about the event, as JSON for people; no property reads it."""
    idx: int | None = None
    """An index in the replicated log, or a length of it."""
    obj: str | None = None
    """The session of an entry as 16 hexadecimal digits; of an operation, its object."""
    op: str | None = None
    """The name of an operation."""
    arg: int | None = None
    """A digest of its arguments."""
    res: int | None = None
    """A digest of its reply."""


COLUMNS: Mapping[str, str] = {
    "kind": "word",
    "proc": "int16",
    "inc": "int64",
    "lseq": "int64",
    "gseq": "int64",
    "t_ns": "int64",
    "wall_ns": "int64",
    "lam": "int64",
    "layer": "word",
    "tag": "word",
    "m_src": "int16",
    "m_inc": "int64",
    "m_seq": "int64",
    "svc": "int8",
    "dst": "list<int16>",
    "k0": "int64",
    "k1": "int64",
    "k2": "int64",
    "k3": "int64",
    "level": "int8",
    "c_seq": "int64",
    "c_rep": "int16",
    "c_kind": "int8",
    "members": "list<int16>",
    "prev_c": "view",
    "primary": "bool",
    "voters": "list<int16>",
    "digest": "int64",
    "size": "int32",
    "count": "int32",
    "pkt": "int64",
    "peer": "int16",
    "cause": "int64",
    "x": "string",
    "idx": "int64",
    "obj": "word",
    "op": "word",
    "arg": "int64",
    "res": "int64",
}
"""The type of each column on disk, in column order; files have a column `run`, a word, besides.

A `word` is a string of few values (a dictionary in Arrow), a `view` is (seq: int64, rep: int16,
kind: int8).
"""

INT64_MAX = (1 << 63) - 1
"""The largest number of any column."""

NULLABLE = frozenset(name for name in COLUMNS if Row._field_defaults.get(name, "required") is None)
"""Columns that may be null. The others must be there, or take the default that `Row` gives."""


def frame_key(node: int, inc: int, number: int) -> int:
    """The `pkt` of a node's frame of that number, in 63 bits.

    It holds the 19 low bits of the incarnation, which are random in real nodes: two lives of a node
    have keys in common with a probability of one in half a million. Node numbers are below 1024.
    """
    return (node & 0x3FF) << 53 | (inc & 0x7_FFFF) << 34 | (number & 0x3_FFFF_FFFF)


def expand(rows: Iterable[Row]) -> Iterator[Row]:
    """One row per message: a row of count n becomes n rows, which share their lseq and gseq.

    The digest and the size of such a row cover all its messages, so the single rows have none.
    Rows of the log stay as they are: a record of several entries is one thing on every disk.
    """
    for row in rows:
        if row.count == 1 or row.m_seq is None or row.layer == LOG_LAYER:
            yield row
            continue
        for i in range(row.count):
            yield row._replace(
                m_seq=row.m_seq + i,
                k3=None if row.k3 is None else row.k3 + i,
                digest=None,
                size=None,
                count=1,
            )


MESSAGE_KINDS = frozenset(
    {
        Kind.SUBMIT,
        Kind.ORIGINATE,
        Kind.RECEIVE,
        Kind.ORDER,
        Kind.CONFIRM,
        Kind.DELIVER,
        Kind.STABLE,
        Kind.WITHDRAW,
    }
)
"""Kinds whose rows are about messages."""

ENTRY_KINDS = frozenset({Kind.APPEND, Kind.ENTRY})
"""Kinds whose rows are about entries of the log: m_* and `obj` name them."""

INDEX_KINDS = frozenset(
    {
        Kind.ENTRY,
        Kind.STORED,
        Kind.COMMIT,
        Kind.CUT,
        Kind.CAUGHT,
        Kind.OPEN,
        Kind.SNAPSHOT,
        Kind.RESTORE,
    }
)
"""Kinds whose rows have an index or length of the log."""

LOG_KINDS = ENTRY_KINDS | INDEX_KINDS
"""Kinds whose rows are of the layer `log`."""
