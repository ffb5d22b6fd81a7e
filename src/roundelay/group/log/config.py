"""Times and limits of the replicated log."""

from roundelay.core.value import value

TIMER = "log "
"""The names of all timers of the log begin with this; no engine may use such names."""
OFFER_TIMER = TIMER + "offer"
"""Offers and readiness are told again."""
SILENT_TIMER = TIMER + "silent"
"""A member has offered nothing for too long."""
ACK_TIMER = TIMER + "ack"
PROBE_TIMER = TIMER + "probe"
STORE_TIMER = TIMER + "store"
"""The journal had no room: it is tried again."""
FETCH_TIMER = TIMER + "fetch"
"""The learner's."""
DONOR_TIMER = TIMER + "donor"
"""The donor may send more."""
LOOK_TIMER = TIMER + "look"
"""It is looked whether members that catch up come nearer."""
YIELD_TIMER = TIMER + "yield"
"""More of this node may be ordered, while a part is held back for those that catch up."""


@value
class LogConfig:
    """Times in seconds, sizes in bytes."""

    offer_s: float = 2.0
    """A member that offers nothing for so long after a view was installed is suspected: its disk
    hangs. Too small: a slow disk costs the group a view at each view change; too large: a disk that
    hangs keeps all from appending for as long."""
    repeat_s: float = 0.020
    """Between two transmissions of an offer, or of a member's readiness, that others have not shown
    to hold. Too small: needless frames while a disk syncs; too large: a lost frame delays the
    opening of a view."""
    ack_s: float = 0.030
    """Between two acknowledgments while something is not committed. Too small: needless frames; too
    large: after a lost acknowledgment a commit comes late."""
    probe_s: float = 0.030
    """Between two transmissions of a probe that a majority has not answered. Too small: needless
    frames; too large: after a lost frame a read comes late."""
    store_retry_s: float = 0.500
    """From a store for which the journal had no room until it is tried again. Too small: a full
    disk is asked without end; too large: the node lags although there is room again."""
    queue_bytes: int = 64 * 1024 * 1024
    """Bytes of messages that were appended and are not known to be committed, before `append`
    refuses more. Too small: one sync cannot cover what arrives during the one before; too large: a
    node that is cut off fills its memory."""
    queue_messages: int = 1_000_000
    """Such messages, likewise: it bounds the memory that many small messages take."""
    feed_packets: int = 2
    """Packets of appended messages that wait for the engine, besides those it has pulled. Too
    small: the engine finds none between two of them; too large: packets are closed before they are
    full, and a view change withdraws more."""
    unsynced_bytes: int = 64 * 1024 * 1024
    """Bytes of records that may wait for the disk. A node whose disk lets more wait drops what is
    delivered from then on, and fetches it later; from half of it on it lets nothing of its own be
    ordered. Too small, which is less than twice what an engine has in flight: a short stall of a
    disk makes a node fetch; too large: memory."""
    live_window_bytes: int = 64 * 1024 * 1024
    """Bytes of log packets that a learner keeps while it fetches what came before them. Too small:
    a learner never catches up with a busy group; too large: memory."""
    fetch_window_bytes: int = 1024 * 1024
    """Bytes that a learner asks for at once. Too small: the round trip bounds the rate; too large:
    more to send again after a loss, and memory."""
    fetch_s: float = 0.100
    """Without a chunk for so long, a learner asks again; after three times it asks another donor.
    Too small: chunks come twice; too large: a lost chunk or a dead donor delays the learner."""
    chunk_bytes: int = 1024
    """Largest part of a record, or of several, in one frame. It must fit a datagram with its
    headers: 1024 suits Ethernet, 60,000 the loopback interface."""
    burst_bytes: int = 64 * 1024
    """Bytes of chunks that a donor sends at once, or so many as it may send in `burst_s`, if that
    is more. Too small: timers; too large: receive buffers overflow."""
    burst_s: float = 0.002
    """As above. Timers of real nodes are a millisecond late, so with shorter bursts a donor would
    not reach its rate."""
    catchup_bytes_per_s: int = 64 * 1024 * 1024
    """Of each donor, while log packets flow. Too small: a learner takes long, or is outrun for
    ever; too large: the group's own traffic suffers."""
    idle_bytes_per_s: int = 512 * 1024 * 1024
    """The same while none flow."""
    yield_share_max: float = 0.8
    """The most of what a node appends that it holds back while a member that catches up does not
    come nearer. 0: nothing is held back, and a member may be outrun for ever; near 1: a member with
    a slow disk makes the group slow until it is given up."""
    yield_step: float = 0.05
    """More of that is held back at each look. Too small: a member takes long; too large: more is
    held back than it needs."""
    yield_look_s: float = 1.0
    """From one look at members that catch up to the next. Too short: chance decides whether they
    come nearer; too long: they take long."""
    yield_nearer_s: float = 60.0
    """A member that would have caught up in so long, at the rate of the last look, comes nearer.
    Too short: more is held back than is needed; too long: it takes as long."""
    yield_vain_max: int = 60
    """Looks at which the most is held back and a member does not come nearer; then it is waited for
    no more. Too few: an effort for nothing; too many: a slow disk holds up the group."""
    record_bytes_max: int = 72 * 1024 * 1024
    """The largest record that a learner takes: more than the largest message, and more than the
    table of sessions. Too small: a learner stops at a record that all others have; too large:
    memory, for a false donor."""
    load_bytes: int = 512 * 1024
    """Bytes that a donor reads from its journal at once. Too small: many reads; too large: memory,
    for each learner that it serves."""
    snapshot_part_bytes: int = 256 * 1024
    """Bytes of a snapshot that a learner writes, or a donor reads, at once. As above."""
    checkpoint_bytes: int = 8 * 1024 * 1024
    """Bytes of log from one checkpoint to the next. Too small: checkpoints, which hold the table of
    sessions, fill the disk; too large: a start reads as much."""
    sessions_max: int = 65_536
    """Sessions that the log remembers; all nodes need the same. Too small: clients that come back
    late are refused; too large: memory, and large checkpoints."""
    undo_records: int = 65_536
    """Records behind the committed ones, or near the end, that can be taken away without reading
    the journal. What is not settled is always kept. Too small: a snapshot must be taken at once;
    too large: memory."""
    reads_max: int = 100_000
    """Reads that may wait. Too small: bursts of reads are refused; too large: memory."""
    early_frames_max: int = 1024
    """Frames of the log of a view that are kept until that view is installed here too. Frames
    beyond that are lost, and come again."""
    application: bool = False
    """Whether an application's state belongs to the log: then a node that is too far back needs a
    snapshot, and cannot begin in the middle."""
