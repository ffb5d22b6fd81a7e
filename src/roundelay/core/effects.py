"""What a core asks its driver to do: a closed union of small values.

    Send       a message for the wire          Install      the application enters a view
    Deliver    a packet for the application    Persist      state that must survive a crash
    SetTimer   arm or re-arm a named timer     CancelTimer  disarm it
    Record     a row for the trace             Suspect      engine to membership
    Receipt    own messages were delivered     Refuse       the frame just received is false
    Differ     a peer was set up otherwise

Of nodes with a replicated log:

    Store          records for the journal         Cut        take records away from its end
    Reset          begin the journal anew          Load       read records from it
    StoreSnapshot  a part of a peer's snapshot     LoadSnapshot  read a part of a snapshot
    Committed      so many entries are committed   Appended   own entries are, at these indexes
    Synced         a read may be answered          LogChanged the log opens or closes
    Fork           two logs contradict each other

A driver runs them in list order. `Suspect` is the one effect that usually stops inside the stack,
at the membership layer; in a static group it becomes a trace row and nothing more.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Generic, TypeAlias, TypeVar

from roundelay.core.ids import Key, NodeId, Packet, Span, Terms, View, ViewId
from roundelay.core.log import Checkpoint, Head, LogRecord, Mark, Place
from roundelay.core.value import value

M = TypeVar("M")


class Kind(StrEnum):
    """What an event is, in the trace and in every property that reads one."""

    SUBMIT = "submit"
    ORIGINATE = "originate"
    RECEIVE = "receive"
    ORDER = "order"
    CONFIRM = "confirm"
    DELIVER = "deliver"
    STABLE = "stable"
    INSTALL = "install"
    WITHDRAW = "withdraw"
    GATHER = "gather"
    FREEZE = "freeze"
    TOKEN = "token"
    CRASH = "crash"
    RECOVER = "recover"
    FAULT = "fault"
    END = "end"
    SEND = "send"
    ARRIVE = "arrive"
    DROP = "drop"
    EXPIRE = "expire"
    SUSPECT = "suspect"
    APPEND = "append"
    ENTRY = "entry"
    STORED = "stored"
    COMMIT = "commit"
    CUT = "cut"
    OPEN = "open"
    CAUGHT = "caught"
    SNAPSHOT = "snapshot"
    RESTORE = "restore"
    INVOKE = "invoke"
    REPLY = "reply"


@value
class Send(Generic[M]):
    """Put `message` on the wire, stamped with `view`; to everyone reachable when `to` is None."""

    message: M
    view: ViewId | None = None
    to: NodeId | None = None


@value
class Deliver:
    """Hand `packet` to the application. `view` is the view that ordered it, also when the
    delivery happens in a transitional view after it."""

    packet: Packet
    view: ViewId | None = None
    key: Key | None = None
    index: int | None = None
    """Place of its first message among those delivered in the view that the application is in,
    which may be a transitional one. Engines leave it None: the group layer alone knows how many
    messages went before."""
    payloads: tuple[bytes, ...] = ()
    """The messages, unpacked and put together; filled in by the group layer."""


@value
class Receipt:
    """Messages that this node submitted were delivered here, the first at this position.

    Messages that are not for this node have their receipt once all that they are for have them: the
    position is then how many were delivered here before. Of those alone an engine gives the receipt
    itself, and leaves the position to the group layer."""

    span: Span
    view: ViewId | None
    index: int = 0


@value
class Install:
    """The application leaves its view and enters this one."""

    view: View
    able: bool = False
    """Whether this node may vote on the next primary view."""
    why: str = ""
    """For people: why the view is not primary; empty if it is."""


@value
class SetTimer:
    """Call `expire(timer)` after `delay_s`, replacing a timer of the same name."""

    timer: str
    delay_s: float


@value
class CancelTimer:
    """Forget the timer; nothing happens if none of that name is armed."""

    timer: str


@value
class Persist:
    """Write `state` to stable storage, replacing what was there, before any later effect runs."""

    state: bytes


@value
class Record:
    """A fact for the trace that no other effect tells.

    Deliveries, views and frames are recorded by the driver from the effects themselves. The group
    layer adds `submit`, and an engine what only it knows: `originate` (first broadcast of a
    packet), `receive` (a copy arrived, duplicates too), `order`, `confirm`, `stable`, `withdraw`,
    `token`. Membership adds `recover`; `gather`, when it begins or begins again to agree on
    the next view; and `freeze` with the ring that is being formed as `view`: it accepted a Commit
    token, and nothing more is delivered in the old view.
    """

    kind: Kind
    subject: Packet | Span | None = None
    """The messages it is about. Give the packet where it is at hand: its digest is recorded too."""
    view: ViewId | None = None
    key: Key | None = None
    level: int | None = None
    """stable: 1 received by all, 2 delivered by all; order: 0 tentative, 1 final; recover: 1 if the
    node kept its standing, 0 if it lost it."""
    tag: str = ""
    """token: `acquire` or `release`; gather: why it begins; open: `lossy` or `follows`, where an
    operator has begun a generation of the log."""
    stable_seq: int | None = None
    """recover only: the ring sequence number that stable storage gave back."""
    layer: str = ""
    """The layer of the trace that the row belongs to; empty for the ordering layer. Rows of another
    layer, such as the link below an engine, are written only where frames have rows too."""
    detail: Mapping[str, object] | None = None
    """For people; no property reads it."""
    index: int | None = None
    """entry: the index of its first entry; stored, commit, cut, caught: a length of the log; open:
    the base of the term; restore: where a log that is begun anew with a checkpoint goes on."""
    head: Head | None = None
    """append, entry: the session, numbers and count; of an append, index and term mean nothing."""
    members: tuple[NodeId, ...] | None = None
    """open: the voters."""


@value
class Refuse:
    """The frame that was just received is well-formed and cannot be true: the core did nothing
    about it but this. The driver counts it among the frames that were dropped."""

    why: str
    """For people: what gives it away."""


@value
class Differ:
    """The frame that was just received tells that its sender was set up otherwise than this node.
    If the settings differ, the core did nothing about that frame but this and an answer."""

    node: NodeId
    terms: Terms
    """Those of the sender."""
    refused: bool
    """Whether the settings differ, and not only the lists of peers."""


@value
class Suspect:
    """These members (possibly none: just the view as a whole) do not answer; change the view."""

    members: tuple[NodeId, ...] = ()
    reason: str = ""


@value
class Store:
    """Append these records to the journal. Stores, cuts and resets are done in their order and in
    the background: later effects do not wait for them. Once all up to this one are done, and are
    durable as far as the policy wants, the driver says so with `stored(number)`. Without records it
    only asks to be told that."""

    number: int
    records: tuple[LogRecord, ...]


@value
class Cut:
    """Take away all records behind this place of the journal; durable before later records are."""

    number: int
    place: Place


@value
class Reset:
    """Drop the whole journal and begin it with these; `snapshot`, if given, is the index of the
    snapshot that the application's state comes from, which `StoreSnapshot` has brought."""

    number: int
    checkpoint: Checkpoint
    mark: Mark
    snapshot: int | None = None


@value
class Load:
    """Read records from the journal, the first one the one that follows this place, at most so many
    bytes but at least one record, and give them to `loaded(request, ...)`. If that place is no more
    in the journal, they begin with the checkpoint and the mark that the journal begins with."""

    request: int
    place: Place
    bytes_max: int


@value
class StoreSnapshot:
    """Write a part of a peer's snapshot; parts come in their order, and `stored(number)` follows
    each. After the last one the driver checks the whole: if it is damaged it is dropped and
    `unstored(number)` follows instead."""

    number: int
    index: int
    offset: int
    data: bytes
    last: bool


@value
class LoadSnapshot:
    """Read a part of the file of the snapshot at this index, for `snapshot_loaded(request, ..)`."""

    request: int
    index: int
    offset: int
    bytes_max: int


@value
class Committed:
    """All entries below `length` are committed: the application may see them."""

    length: int


@value
class Appended:
    """What this node appended is committed: so many messages of this session from `number` on, the
    first at `index`. None: they had been committed before, and where is not remembered."""

    session: int
    number: int
    count: int
    index: int | None
    forgotten: bool = False
    """The session was forgotten: this will get no index any more. It may have one already; whoever
    repeats it in a session that is opened anew under the same name may have it twice."""


@value
class Synced:
    """The read of this number may be answered once all below `length` was applied, which is
    committed here. None: the log was closed meanwhile, ask again."""

    request: int
    length: int | None


@value
class LogChanged:
    """The log opens, closes, or this node's part in it changes; `CoreStatus.log` tells how."""


@value
class Fork:
    """This log and that of a peer contradict each other, or what is committed here: the node must
    stop."""

    why: str


Effect: TypeAlias = (
    Send[M]
    | Deliver
    | Receipt
    | Install
    | SetTimer
    | CancelTimer
    | Persist
    | Record
    | Refuse
    | Differ
    | Suspect
    | Store
    | Cut
    | Reset
    | Load
    | StoreSnapshot
    | LoadSnapshot
    | Committed
    | Appended
    | Synced
    | LogChanged
    | Fork
)
