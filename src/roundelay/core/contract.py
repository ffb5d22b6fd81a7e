"""The two contracts of Roundelay: Core (a whole stack, run by a driver) and Engine (one ordering
protocol, run by a stack).

Theory of operation
===================

A core is a deterministic state machine. Time enters as `expire`, chance never does, and each
input returns the effects that the driver is to perform. Two drivers run cores: the simulator's
host and the node of a real process. Both use the same inputs, those of `Core`, and no others, so
that what is simulated is what runs. `accept` and `flush` are two inputs because a real node takes
in many messages before it lets the core send; `receive_many` is one because a real node reads many
frames of one sender at a time.

Duties of the driver
--------------------
- Effects run in list order. A `Persist` is durable before any later effect runs.
- The core is never called from inside an effect, so a handler never meets half-changed state.
- `SetTimer` replaces a timer of the same name; a cancelled or replaced timer never expires.
- Every frame that reaches `receive` passed the wire's checks and the core's own codec. The node's
  own frames, looped back by the network, do not reach it, except on a channel that shows each
  sender its own frames in their place. Frames under its name of an earlier life, or of a namesake,
  never do.
- Waiting frames are handed over before an expired timer is. Frames that wait together and have the
  same origin may be handed over as one burst, in their order.
- Every `accept` that returned a number is followed by a `flush`, soon, unless the driver stops.
- Rows of the trace are written before what they tell of becomes visible: a `deliver` row before
  the application sees the message.

Duties of a core
----------------
- Every input returns a fresh list and leaves the core ready for any other input.
- The same inputs give the same effects, on every machine and under every hash seed: no clock, no
  randomness, no iteration over a set, no identity or hash of an object in a decision.
- A message that is well-formed but stale, foreign or repeated is an expected case: return early.
- No frame ends a core. What a peer claims is checked before any state changes: a claim that cannot
  be true (a number that nobody can have given, a name that is no member's, a packet that this node
  never sent under its name) is answered with `Refuse` and nothing else. An `assert` states what the
  code itself guarantees, whatever frames came before, and never what a peer claims.
- Forged frames that might be true may do harm in one view. They do none that outlasts it: whatever
  they make a view wait for in vain ends in a `Suspect`, and the next view starts afresh.
- Memory is bounded: every queue, window and table has a limit in the configuration.
- A core started as incarnation 1 or later opens with `Record(RECOVER)`.

The life of an engine
---------------------
An engine orders packets within one view at a time. The stack calls::

    start(view)                    fresh state for a view; also the first call ever
    submit / receive / expire      while the view lasts, in any order
    freeze()                       a view change is certain: deliver nothing from here on
    seal(summaries)                hand out what others of the old view may lack
    absorb(item) ...               take in what they handed out
    conclude(...)                  decide, from what was exchanged alone, what is delivered
    start(next view)

Duties of the stack: `submit` and `expire` come only between `start` and `freeze`, which cancels
the engine's timers; `receive` comes only with frames of the view that was started, from its
members, and never after `seal`. A view change may be begun again: `freeze`, `seal` and `absorb` may
then come again before one `conclude` ends the view. In a static group none of them ever comes.

Duties of an engine: every `Send`, `Deliver` and `Record` names the view that was started. After
`freeze` no delivery, no send and no timer; a late packet that still reaches `receive` is stored, no
more. `freeze` and `seal` may be repeated and answer for what is held by then, which includes what
was absorbed in an attempt that failed; `absorb` is idempotent, whatever such attempts came before.
`conclude` is a function of the summaries, the items and its arguments, so that all who move
together decide alike; an own packet that it neither delivers nor withdraws is lost, so it must do
one of the two for each. Messages of others are never withdrawn.

Timers of the engine and of membership share one set of names: an engine avoids those at the top of
`membership/config.py`.

Pulling packets
---------------
Messages of the application wait in the group layer, in an open packet, until the engine may send.
The engine is told by `submit()` that there is something and calls `outlet.pull()` when its rules
allow, at once or much later. A pulled packet belongs to the engine: it is to be originated. Nobody
tells it again in a later view what still waits: `start` looks for itself.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar, cast

from roundelay.core.effects import Deliver, Effect, Receipt, Record
from roundelay.core.ids import NodeId, Packet, Service, Terms, View, ViewId
from roundelay.core.log import Checkpoint, KeptLog, LogStatus
from roundelay.core.value import value

M = TypeVar("M")

SUMMARY_BYTES_MAX = 1024
"""Longest answer of `Engine.freeze`: one per member travels in a single Commit token."""


@value
class Origin:
    """Where a frame comes from, as its header says."""

    group: str
    node: NodeId
    incarnation: int
    view: ViewId | None
    """The view its `Send` named; None if it named none. A static group has one view, number 0 of
    its smallest member."""


@value
class Boot:
    """What a driver tells a core about the node it is to be."""

    group: str
    node: NodeId
    incarnation: int = 0
    """A number that no other life of the node has or had, whatever became of its disk and its
    clock. The order of two incarnations says nothing."""
    stored: bytes | None = None
    """Stable storage as found. It may be torn or foreign: check it before use."""
    wall_us: int = 0
    """The wall clock at this start, in microseconds: larger than at any start before. Only for
    numbers that must not repeat when storage cannot be trusted."""
    traced: bool = True
    """Whether anybody reads the records of packets; see `Outlet.traced`."""
    journal: KeptLog | None = None
    """What the journal holds; None for a node without a journal."""
    session: int = 0
    """Of this life, for what it appends: 63 bits of chance."""


class Codec(Protocol[M]):
    """Messages to bytes and back. One per engine, declared beside its messages."""

    tags: Mapping[int, str]
    """The name of each tag, as the trace shows it: MSG, ACK, TOKEN ..."""

    def encode(self, message: M) -> tuple[int, bytes]:
        """The message's tag and body."""
        ...

    def decode(self, tag: int, data: bytes, start: int) -> M:
        """The message whose body is `data[start:]`, or WireError: any bytes may come here."""
        ...


class Core(Protocol[M]):
    """A stack: what a driver runs. Each input returns its effects, in the order to run them."""

    @property
    def codec(self) -> Codec[M]: ...

    @property
    def status(self) -> "CoreStatus": ...

    def start(self) -> list[Effect[M]]: ...

    def accept(
        self,
        payload: bytes,
        service: Service = Service.AGREED,
        destinations: tuple[NodeId, ...] | None = None,
    ) -> int:
        """Queue a message of the application and return its number, counted from 0; nothing is
        sent before `flush`. `QueueFullError` if there is no room, ValueError or TypeError for a
        message that can never be sent; then nothing has changed."""
        ...

    def flush(self) -> list[Effect[M]]:
        """Record the messages accepted since the last flush, and let the engine send them."""
        ...

    def receive(self, origin: Origin, message: M) -> list[Effect[M]]: ...

    def receive_many(self, origin: Origin, messages: Sequence[M]) -> list[Effect[M]]:
        """As `receive` for each message in turn; for the frames of one burst, which have one
        origin. Effects that nobody can tell apart may come in another order."""
        ...

    def expire(self, timer: str) -> list[Effect[M]]: ...

    def leave(self) -> list[Effect[M]]:
        """Say goodbye; the driver stops the core afterwards."""
        ...


class LogCore(Core[M], Protocol[M]):
    """A core that keeps a replicated log: a node with a journal runs one. Besides the duties above:

    - `Store`, `Cut`, `Reset` and `StoreSnapshot` carry numbers that grow by one. The driver does
      them in order, in the background, and answers with `stored` for the last one that is done
      (all before it are done too), or with `unstored` if there was no room: then neither that one
      nor any later one up to the present was done, and the core will cut and fetch.
    - Entries that the application has not seen yet are handed to it when `Committed` says so.
    """

    def append(
        self,
        payload: bytes,
        stamp_us: int,
        session: int | None = None,
        number: int | None = None,
    ) -> int:
        """Queue a message for the log and return its number in its session: that of this life, or
        a named one that `open_session` has returned, where the caller may give the number, which
        is else the next. Nothing is sent before `flush`. Raises as `accept` does."""
        ...

    def open_session(self, name: str, stamp_us: int) -> int:
        """Open a named session, in order with what is appended before and after; its id, which
        depends on the name alone. `Appended` with count 0 tells when that is committed: `number`
        is then the last number of the session."""
        ...

    def sync(self, request: int) -> list[Effect[M]]:
        """Begin a linearizable read, which `Synced` answers."""
        ...

    def stored(self, number: int) -> list[Effect[M]]: ...

    def unstored(self, number: int) -> list[Effect[M]]: ...

    def loaded(self, request: int, records: Sequence[bytes] | None) -> list[Effect[M]]:
        """Answers `Load` with records as `wire.log_record` encodes them; None if they could not be
        read."""
        ...

    def snapshot_loaded(self, request: int, data: bytes | None, size: int) -> list[Effect[M]]:
        """Answers `LoadSnapshot`; `size` is that of the whole file. None if it is gone."""
        ...

    def held(self, first: int, snapshot: int | None) -> list[Effect[M]]:
        """Entries below `first` were removed from the journal; `snapshot` is the index of the
        newest snapshot."""
        ...

    def snapshot_state(self, index: int) -> Checkpoint:
        """What the header of a snapshot taken at `index` must hold. ValueError if that is not
        committed here, or too long ago."""
        ...


def submit(
    core: Core[M],
    payload: bytes,
    service: Service = Service.AGREED,
    destinations: tuple[NodeId, ...] | None = None,
) -> list[Effect[M]]:
    """Accept one message and flush at once; raises what `accept` raises."""
    core.accept(payload, service, destinations)
    return core.flush()


class CoreStatus(Protocol):
    """What a driver, and whoever asks it for its status, may know of a core. Reading it changes
    nothing."""

    @property
    def accepted(self) -> int:
        """Messages accepted so far: the number that the next one gets."""
        ...

    @property
    def waiting_packets(self) -> int:
        """Packets that the engine has yet to pull."""
        ...

    @property
    def incomplete_bytes(self) -> int:
        """Pieces of large messages that wait for the rest of their message."""
        ...

    @property
    def lives(self) -> Mapping[NodeId, int]:
        """The members of the present view and their incarnations; empty in a static group, which
        knows no incarnations."""
        ...

    @property
    def phase(self) -> str:
        """What membership does now: "operational", "gather", "commit" or "recovery"."""
        ...

    @property
    def gather(self) -> str:
        """Why membership last began to gather, for people; empty if it never did."""
        ...

    @property
    def terms(self) -> Terms:
        """The settings that this node tells its peers."""
        ...

    @property
    def log(self) -> LogStatus | None:
        """Of the replicated log; None without one."""
        ...


class QueueFullError(Exception):
    """The stack's queue is at its limit: submit again once something was delivered."""


class Outlet(Protocol):
    """The group layer as an engine sees it: packets that wait to be sent."""

    @property
    def waiting(self) -> int:
        """How many packets `pull` would give now."""
        ...

    @property
    def traced(self) -> bool:
        """Whether anybody reads `Record`s. Without, an engine may leave out those that it makes
        for every packet; it need not."""
        ...

    def pull(self) -> Packet | None:
        """The next packet to originate, or None."""
        ...


@value
class Item:
    """Something of an old view that is exchanged at a view change: a packet or evidence of order.

    Members may hold the same item; `key` identifies it, so that one copy is sent and not n. Two
    items of different bodies need different keys, or one of them is never sent.
    """

    key: tuple[int, ...]
    body: bytes


@value
class Conclusion:
    """How an old view ends, the same at all members that move on together."""

    regular: tuple[Deliver, ...] = ()
    """Delivered while still in the old view."""
    transitional: tuple[Deliver | Receipt, ...] = ()
    """Delivered in the transitional view: guarantees hold among its members only. And, of a
    selective engine, receipts of own packets that are not for this node: who is not here any more
    counts as having them."""
    withdrawn: tuple[Packet, ...] = ()
    """Own packets that nobody has delivered in the old view or ever will, to be sent again in the
    next. One that a member who is not here may have delivered is to be delivered instead."""
    records: tuple[Record, ...] = ()
    """What the end of the view brought to light; written before its deliveries."""


class Engine(Protocol[M]):
    """One ordering protocol. See the module docstring for the duties of both sides."""

    @property
    def codec(self) -> Codec[M]: ...

    @property
    def selective(self) -> bool:
        """Whether it delivers a packet to its destinations alone. Others are given packets for
        everybody only. One that is emits a `Receipt` for each own packet with messages that is not
        for this node, once all members that it is for have it."""
        ...

    def start(self, view: View) -> list[Effect[M]]:
        """Enter a regular view, this node among its members, and forget the one before."""
        ...

    def submit(self) -> list[Effect[M]]:
        """Packets wait in the outlet. Pull them now, or remember to when the rules allow."""
        ...

    def receive(self, origin: Origin, message: M) -> list[Effect[M]]: ...

    def expire(self, timer: str) -> list[Effect[M]]: ...

    def freeze(self) -> bytes:
        """Stop delivering and sum up what is held, in at most `SUMMARY_BYTES_MAX` bytes."""
        ...

    def seal(self, summaries: Mapping[NodeId, bytes]) -> Sequence[Item]:
        """Give what the other members that come from the old view may lack, by their summaries,
        which include one's own. WireError for a summary that makes no sense, and then nothing
        has changed."""
        ...

    def absorb(self, item: Item) -> list[Record]:
        """Take in an item of the old view that another member sealed; WireError for one that no
        member can have sealed, and then nothing has changed. The packet that it brings is recorded
        as received."""
        ...

    def conclude(
        self,
        summaries: Mapping[NodeId, bytes],
        transitional: View,
        obligations: tuple[NodeId, ...],
    ) -> Conclusion:
        """End the old view. `summaries` are those of the members of `transitional`, as `seal` has
        accepted them. They may promise what the exchange did not bring: then somebody forged a
        frame, and the view ends with what is here.

        `obligations` are members of the old view: those of `transitional`, and those who took part
        in an earlier attempt that somebody may have completed. All that they sealed was exchanged,
        and their messages must be delivered even behind a gap."""
        ...


class BurstEngine(Engine[M], Protocol[M]):
    """An engine that handles the frames of a burst together, because that is faster. Other engines
    are given them one by one."""

    def receive_many(self, origin: Origin, messages: Sequence[M]) -> list[Effect[M]]:
        """As `receive` for each of them, one after the other; only while the view lasts. Effects
        that nobody can tell apart may come in another order."""
        ...


def burst_engine(engine: Engine[M]) -> BurstEngine[M] | None:
    """The engine itself, if it handles bursts."""
    return cast("BurstEngine[M]", engine) if hasattr(engine, "receive_many") else None


class EngineFactory(Protocol):
    """How a stack makes its engine; engine modules export one as `engine`."""

    def __call__(self, node: NodeId, outlet: Outlet) -> Engine[Any]: ...
