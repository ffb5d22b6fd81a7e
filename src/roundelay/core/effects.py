"""What a core asks its driver to do: a closed union of small values.

    Send       a message for the wire          Install      the application enters a view
    Deliver    a packet for the application    Persist      state that must survive a crash
    SetTimer   arm or re-arm a named timer     CancelTimer  disarm it
    Record     a row for the trace             Suspect      engine to membership
    Receipt    own messages were delivered     Refuse       the frame just received is false
    Differ     a peer was set up otherwise

A driver runs them in list order. `Suspect` is the one effect that usually stops inside the stack,
at the membership layer; in a static group it becomes a trace row and nothing more.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Generic, TypeAlias, TypeVar

from roundelay.core.ids import Key, NodeId, Packet, Span, Terms, View, ViewId
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
    """token: `acquire` or `release`; gather: why it begins."""
    stable_seq: int | None = None
    """recover only: the ring sequence number that stable storage gave back."""
    detail: Mapping[str, object] | None = None
    """For people; no property reads it."""


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
)
