"""The replicated log of one node: ties its parts together.

Above it are the driver's inputs, below it membership: it is told of views, of the log packets that
are delivered in them, and of frames of other nodes' logs. Its rules, and where they are kept:

    what must be stored before it is said         place
    OFFER: the entries that it counts             `_offer`
    READY: the adopted entries and the mark       `_tell_ready`
    ACK n: the entries below n; the standing      `_acknowledge`, after `_open`
    the first log packet: the standing            `_feed`, after `_open`

and after a freeze none of READY, ACK and REPLY leaves.
"""

from collections.abc import Sequence
from typing import Any

from roundelay.core.contract import Boot, Origin
from roundelay.core.effects import (
    CancelTimer,
    Effect,
    Fork,
    Install,
    Kind,
    LogChanged,
    Record,
    Refuse,
    Send,
    SetTimer,
    Suspect,
    Synced,
)
from roundelay.core.ids import NodeId, Packet, View
from roundelay.core.log import Checkpoint, LogStatus, Mark, Place
from roundelay.group.log.arrival import Arrival, Arrivals
from roundelay.group.log.commit import Commit
from roundelay.group.log.config import (
    ACK_TIMER,
    DONOR_TIMER,
    FETCH_TIMER,
    LOOK_TIMER,
    OFFER_TIMER,
    PROBE_TIMER,
    SILENT_TIMER,
    STORE_TIMER,
    YIELD_TIMER,
    LogConfig,
)
from roundelay.group.log.donor import Donor
from roundelay.group.log.ground import Ground, Queue
from roundelay.group.log.learner import Learner
from roundelay.group.log.messages import (
    CATCH_UP,
    Ack,
    Chunk,
    CutTo,
    Fetch,
    FetchSnapshot,
    LogMessage,
    Offer,
    Probe,
    Ready,
    Reply,
    TooFar,
)
from roundelay.group.log.opening import Opening
from roundelay.group.log.reads import Reads
from roundelay.group.log.sending import Sending
from roundelay.group.log.state import LogState, mark_digest
from roundelay.group.log.yielding import Yielding
from roundelay.group.packer import GroupConfig

_REPEAT_MAX_S = 1.0
"""Longest time between two transmissions of what a member has not shown to hold."""
_VIEW_TIMERS = (OFFER_TIMER, SILENT_TIMER, ACK_TIMER, PROBE_TIMER)


class ReplicatedLog:
    """One node's part in the log of its group."""

    def __init__(
        self,
        boot: Boot,
        ground: Ground,
        queue: Queue,
        config: LogConfig | None = None,
        group: GroupConfig | None = None,
    ) -> None:
        self.config = config = config or LogConfig()
        group = group or GroupConfig()
        self.out: list[Effect[Any]] = []
        self.state = LogState(boot, config, self.out)
        self.sending = Sending(boot, config, group, self.out)
        self.reads = Reads()
        self.arrivals = Arrivals(group.message_bytes_max)
        self.learner = Learner(self.state, config, self.out)
        self.donor = Donor(self.state, self.learner, config, self.out)
        self.yielding = Yielding(config, self.out)
        self.opening: Opening | None = None
        self.suspicion: Suspect | None = None
        """Membership is to change the view."""
        self.state.on_entries = self.sending.note_entries
        self.state.on_cut = self.sending.cut
        self._node = boot.node
        self._group = boot.group
        self._session = boot.session
        self._traced = boot.traced
        self._ground = ground
        self._queue = queue
        self._view: View | None = None
        """The regular view that the application is in."""
        self._why = "the node has just started"
        self._waiting: list[Arrival] | None = []
        """Log packets of the view that came before it was known which log it goes on with."""
        self._waiting_bytes = 0
        self._mark: Mark | None = None
        """The mark of the view, once a log is adopted."""
        self._filled = self._joined = self._caught = False
        """What was told of the learner."""
        self.fed = False
        """Packets were queued, which the engine has yet to be told of."""
        self.told = False
        """Something came, since `settle`, that may make something possible."""
        self._said_ready = False
        self._moved = False
        """The view is open, and this node is ready and has noted that."""
        self._commit: Commit | None = None
        self._acks: dict[NodeId, Ack] = {}
        """Acknowledgments that came before the view was open here."""
        self._acked = Place()
        self._repeat_s = config.repeat_s
        self._early: list[tuple[Origin, LogMessage]] = []
        self._tell_who_is_followed()

    def _tell_who_is_followed(self) -> None:
        """A row of the generation that an operator lets this node join: only an operator tells a
        node with a vote of an open view whose mark is not in its log."""
        state, view = self.state, self._ground.last_open
        if state.log and state.able and view is not None and view > state.term:
            index, me = state.length, (self._node,)
            self.out.append(Record(Kind.OPEN, view=view, index=index, members=me, tag="follows"))

    # What the application asks for

    def open_session(self, name: str, stamp_us: int) -> int:
        return self.sending.open_session(name, stamp_us)

    def record(self) -> None:
        """Rows of what was appended since the last call."""
        self.sending.record()

    def sync(self, request: int) -> None:
        if len(self.reads) < self.config.reads_max:
            self.reads.add(request)
        else:
            self.out.append(Synced(request, None))

    def held(self, first: int, snapshot: int | None) -> None:
        """The journal holds no entries below `first` any more; this is the newest snapshot."""
        self.state.first = max(self.state.first, min(first, self.state.committed))
        self.state.snapshot = snapshot

    def snapshot_state(self, index: int) -> Checkpoint:
        return self.state.at(index)

    # The journal

    def stored(self, number: int) -> None:
        self.state.on_stored(number)
        self.learner.on_stored(number)

    def unstored(self, number: int) -> None:
        self.state.on_unstored(number)
        self.learner.on_unstored(number)

    def loaded(self, request: int, records: Sequence[bytes] | None) -> None:
        self.donor.loaded(request, records)

    def snapshot_loaded(self, request: int, data: bytes | None, size: int) -> None:
        self.donor.snapshot_loaded(request, data, size)

    # Views

    def withdraw(self) -> None:
        """A view is about to be installed: what the engine never pulled is taken back."""
        for packet in self._queue.drop_log_packets():
            self.out.append(Record(Kind.WITHDRAW, packet))

    def enter(self, install: Install) -> None:
        """The application enters a view."""
        self.told = True
        view = install.view
        self._close()
        if view.transitional:
            return
        self._view, self._why = view, install.why
        self.arrivals.forget()
        self.sending.take_back()
        early, self._early = self._early, []
        if view.primary:
            self.opening = Opening(self._node, view, self._ground.journals)
            self._repeat_s = self.config.repeat_s
            self.donor.begin(view.id)
            self.out.append(SetTimer(SILENT_TIMER, self.config.offer_s))
            for origin, message in early:
                if origin.view == view.id:
                    self.receive(origin, message)
        self.out.append(LogChanged())

    def _close(self) -> None:
        """The regular view is over."""
        if self.opening is not None:
            self.out += map(CancelTimer, _VIEW_TIMERS)
            self.reads.close()
            self.learner.abandon()
            self.donor.abandon()
            self.yielding.close()
            self.out.append(LogChanged())
        self._view = None
        self.opening = None
        self._commit = None
        self._acks.clear()
        self._acked = Place()
        self._mark = None
        self._waiting = []
        self._waiting_bytes = 0
        self._filled = self._joined = self._caught = self._said_ready = self._moved = False
        self._why = "the view is about to change"

    def keep_early(self, origin: Origin, message: LogMessage) -> None:
        """Keep a frame of the view that is being formed, until it is installed here too."""
        if self._early and self._early[0][0].view != origin.view:
            self._early.clear()
        if len(self._early) < self.config.early_frames_max:
            self._early.append((origin, message))

    # Deliveries

    def deliver(self, packet: Packet) -> None:
        """A log packet was delivered in the regular view. In the transitional one that follows it
        gets no index, and neither does one of a view that is not primary."""
        self.told = True
        opening = self.opening
        if self._view is None or opening is None:
            return
        arrival = self.arrivals.read(packet)
        if arrival is None:
            return
        if not opening.is_open:
            opening.is_open = True  # Its sender knows that: it sends none before.
            self._open()
        if self._waiting is None:
            self._live(arrival)
            return
        self._waiting.append(arrival)
        self._waiting_bytes += arrival.size
        if self._waiting_bytes > self.config.live_window_bytes:
            self.suspicion = Suspect(opening.missing, "it offers no log, and the others go on")

    def _live(self, arrival: Arrival) -> None:
        """Add a log packet to the log, or let it wait for what the log lacks before it."""
        joined = self.learner.joined
        self.yielding.live_bytes += arrival.size
        self.yielding.live_entries += arrival.count
        if self.learner.live(arrival) is None and joined and self.learner.joined:
            self.sending.note_duplicate(arrival, self.state.sessions, self.state.place)

    # Frames of other nodes

    def receive(self, origin: Origin, message: LogMessage) -> None:
        """A frame of a member of the present view, sent in it."""
        opening = self.opening
        if opening is None:
            return
        kind = type(message)
        if kind is Ack:
            self._on_ack(origin.node, message)  # type: ignore[arg-type]
            return
        self.told = True
        if kind in CATCH_UP:
            self._on_catch_up(origin.node, message)
        elif kind is Probe:
            self._on_probe(origin.node, message)  # type: ignore[arg-type]
        elif kind is Reply:
            self._on_reply(origin.node, message)  # type: ignore[arg-type]
        elif kind is Offer:
            self._on_offer(opening, origin.node, message)  # type: ignore[arg-type]
        elif kind is Ready:
            self._on_ready(opening, origin.node, message)  # type: ignore[arg-type]

    def _on_catch_up(self, node: NodeId, m: LogMessage) -> None:
        if isinstance(m, Chunk | CutTo | TooFar):
            self.learner.receive(node, m)
        elif isinstance(m, Fetch | FetchSnapshot):
            self.donor.receive(node, m)

    def _on_offer(self, opening: Opening, node: NodeId, m: Offer) -> None:
        if node == self._node or (why := opening.offer(node, m)):
            self.out.append(Refuse(why if node != self._node else "our own offer, by another"))
            return
        if not m.have[opening.view.members.index(self._node)]:
            self._send_offer(node)

    def _on_ready(self, opening: Opening, node: NodeId, m: Ready) -> None:
        if node == self._node or (why := opening.note_ready(node, m)):
            self.out.append(Refuse(why if node != self._node else "we are not ready, say others"))
            return
        self.learner.add_donor(node)
        if self._said_ready and not m.ready[opening.view.members.index(self._node)]:
            self._send_ready(node)

    # Opening

    def _offer(self) -> None:
        """Offer what is stored. All of the log is, unless the disk is full."""
        opening, state = self.opening, self.state
        if opening is None or self._node in opening.offers or self._ground.frozen:
            return
        if not (state.idle or state.lacks_room):
            return
        place = state.place if state.idle else state.stored
        digest = state.digest_at(place)
        if digest is None:
            return
        begun = place != Place()
        offer = Offer(
            state.log if begun else b"",
            state.generation if begun else 0,
            place,
            digest,
            min(state.first, place.length),
            min(state.committed, place.length),
            state.snapshot,
            self._session,
            opening.have,
        )
        why = opening.offer(self._node, offer)
        assert not why, f"our own offer cannot be true: {why}"
        self._send_offer()
        self.out.append(SetTimer(OFFER_TIMER, self._repeat_s))

    def _send_offer(self, to: NodeId | None = None) -> None:
        opening = self.opening
        assert opening is not None
        own = opening.offers.get(self._node)
        if own is None or self._ground.frozen:
            return
        offer = Offer(
            own.log,
            own.generation,
            own.place,
            own.digest,
            own.first,
            own.committed,
            own.snapshot,
            own.session,
            opening.have,
        )
        self._send(offer, to)

    @property
    def _never_open(self) -> bool:
        """Whether this node never found a view open in which its log was kept, and so has never
        acknowledged anything of it."""
        opened, marks = self._ground.last_open, self.state.marks
        never = opened is None or (bool(marks) and opened < marks[0].term)
        return never and not self.state.committed and not self.state.first

    def _adopt(self) -> None:
        """With the offers of all: find the log that the view goes on with, and go there."""
        opening, state = self.opening, self.state
        if opening is None or opening.adopted is not None or opening.missing:
            return
        adopted = opening.adopt(self._ground.able_members)
        for node, base in [*opening.ready.items()]:
            if base != adopted.place.length:
                del opening.ready[node]
        foreign = bool(state.log) and state.log != adopted.log
        if foreign and self._never_open and state.can_cut(Place()):
            state.cut(Place())  # It was founded in a view that never opened; another one did.
        elif foreign or self._node in adopted.contradicts:
            others = [n for n in opening.journals if n != self._node]
            self._fork(f"the logs of {self._node} and of {', '.join(others)} contradict each other")
            return
        if adopted.contradicts and not adopted.log:
            return
        if state.place > adopted.place and state.generation == adopted.generation:
            # More is here than was offered, because the disk is full: marks of views that nobody
            # offers, or a tail. What this log shares with the adopted one goes on.
            end = state.end_of(adopted.place.term)
            shared = None if end is None else min(end, adopted.place)
            if shared is None or not state.can_cut(shared):
                self._fork("what is committed here is not in the log of the others")
                return
            state.cut(shared)
        donors = tuple([node for node in adopted.donors if node != self._node])
        self._mark = opening.mark(self._group)
        self.learner.begin(adopted.place, self._mark, donors)
        for node in opening.ready:
            if node != self._node:
                self.learner.add_donor(node)
        waiting, self._waiting = self._waiting or [], None
        for arrival in waiting:
            self._live(arrival)

    def _watch_learner(self) -> None:
        """Note when the log becomes the adopted one, and when it catches up with the order."""
        learner, state, mark = self.learner, self.state, self._mark
        if mark is None:
            return
        if learner.filled and not self._filled:
            self._filled = True
            assert self.opening is not None, "filled in no view"
            assert self.opening.adopted is not None, "filled, and nobody knows with what"
            digest = mark_digest(self.opening.adopted.digest, mark)
            # None: the donor has removed the adopted log, and this one begins behind its mark.
            if state.digest_at(Place(mark.term, mark.base)) not in (digest, None):
                self._fork(f"this log and the adopted one differ before entry {mark.base}")
        if learner.stuck:
            learner.stuck = False
            self.suspicion = Suspect((), "what was delivered is on nobody's disk")
        if learner.joined != self._joined:
            self._joined = learner.joined
            if self._joined and self._moved:
                self.sending.settle(state.sessions, state.place)
            self._caught = False
            self.out.append(LogChanged())

    @property
    def _ready(self) -> bool:
        """Whether the adopted log and the mark of this view are stored."""
        view = self._view
        return view is not None and self.opening is not None and self.state.stored.term == view.id

    def _tell_ready(self) -> None:
        opening = self.opening
        if opening is None or self._said_ready or not self._ready or self._ground.frozen:
            return
        assert opening.adopted is not None, "ready without a base"
        self._said_ready = True
        opening.ready[self._node] = opening.adopted.place.length
        self._repeat_s = self.config.repeat_s
        self._send_ready()
        self.out.append(SetTimer(OFFER_TIMER, self._repeat_s))

    def _send_ready(self, to: NodeId | None = None) -> None:
        opening = self.opening
        assert opening is not None, "ready in no view"
        assert opening.adopted is not None, "ready without a base"
        if not self._ground.frozen:
            base = opening.adopted.place.length
            self._send(Ready(base, opening.have, opening.known_ready), to)

    def _open(self) -> None:
        """Once a majority of the voters is ready, the view is open. A member that is ready too
        notes that, on its disk, and only then sends and acknowledges."""
        opening = self.opening
        if opening is None or self._view is None:
            return
        opening.is_open = opening.is_open or opening.quorum
        if not opening.is_open or opening.adopted is None:
            return
        view, base = opening.view, opening.adopted.place.length
        if self._commit is None:
            self._commit = Commit(view, base)
            self.reads.open(view.voters)
            for node, ack in self._acks.items():
                self._commit.acknowledge(node, ack.length, ack.opened)
            self._acks.clear()
            self.out.append(LogChanged())
        if self._moved or not self._ready:
            return
        self._moved = True
        self.out += self._ground.note_open(view)
        self.out.append(Record(Kind.OPEN, view=view.id, index=base, members=view.voters))
        self.sending.compare(self.state.sessions, self.state.place)
        self.out.append(LogChanged())

    # Sending and committing

    @property
    def _may_feed(self) -> bool:
        """Whether what was appended may be ordered now: not while this node's disk is far behind,
        or all members together may order more than any of them can store."""
        if not self._moved or self._ground.frozen or self.yielding.holds:
            return False
        return 2 * self.state.waiting_bytes < self.config.unsynced_bytes

    def _feed(self) -> None:
        """Give the engine what was appended, a few packets at a time."""
        if not self.sending.unfed or not self._may_feed:
            return
        while self.sending.unfed and self._queue.log_packets < self.config.feed_packets:
            self.yielding.fed(self.sending.feed(self._queue.enqueue))
            self.fed = True
            if self.yielding.holds:
                return

    def refill(self) -> None:
        """The engine has pulled a log packet."""
        self.told = True
        self._feed()

    @property
    def waiting(self) -> int:
        """Packets that could be fed."""
        return self.sending.unfed if self._may_feed else 0

    def _acknowledge(self, *, again: bool = False) -> None:
        """Tell how much is stored, once the view is open and that is noted."""
        commit, state = self._commit, self.state
        if not self._moved or commit is None or self._ground.frozen:
            return
        place = state.stored
        assert place.term == commit.place.term, "stored what is not of this term"
        if place > self._acked:
            self._acked = place
            commit.acknowledge(self._node, place.length, place.opened)
        elif not again:
            return
        self.yielding.note(self._node, place.length)
        self._send(Ack(place.length, place.opened, min(state.committed, place.length)))
        self.out.append(SetTimer(ACK_TIMER, self.config.ack_s))

    def _on_ack(self, node: NodeId, m: Ack) -> None:
        commit = self._commit
        if commit is None:
            self._acks[node] = m
            return
        repeated = commit.is_repeated(node, m)
        if commit.acknowledge(node, m.length, m.opened):
            self.told = True
        self.yielding.note(node, m.length)
        self.yielding.watch()
        if repeated and self._moved and m.committed < self.state.committed:
            stored = self.state.stored
            if not self._ground.frozen and stored.term == commit.place.term:
                committed = min(self.state.committed, stored.length)
                self._send(Ack(stored.length, stored.opened, committed), node)

    def _tell_caught_up(self) -> None:
        if self._moved and self._joined and not self._caught:
            self._caught = True
            self.out.append(Record(Kind.CAUGHT, index=self.state.length))

    def _show(self) -> None:
        """Show what is committed, as far as it is here: once the log is the adopted one."""
        commit, state = self._commit, self.state
        if commit is None or state.place.term != commit.place.term:
            return
        state.show_committed(commit.place.length)
        self.sending.commit(min(commit.place, state.place), state.sessions)
        for read, length in self.reads.pop(state.committed):
            self.out.append(Synced(read, length))

    # Reads

    def _probe(self) -> bool:
        """Ask for the lengths of logs if reads wait for that; whether that was done."""
        if self._commit is None or self._ground.frozen or not self.reads.begin():
            return False
        self._ask()
        return True

    def _ask(self) -> None:
        number = self.reads.number
        if self._answers:
            self.reads.answer(self._node, number, self.state.length)
        if self.reads.probing:
            self._send(Probe(number))
            self.out.append(SetTimer(PROBE_TIMER, self.config.probe_s))

    @property
    def _answers(self) -> bool:
        """Whether this node may answer probes."""
        return self._moved and not self._ground.frozen

    def _on_probe(self, node: NodeId, m: Probe) -> None:
        if self._answers:
            self._send(Reply(m.number, self.state.length), node)

    def _on_reply(self, node: NodeId, m: Reply) -> None:
        if self.reads.answer(node, m.number, m.length):
            self.out.append(CancelTimer(PROBE_TIMER))

    # Timers

    def expire(self, timer: str) -> None:
        if timer == STORE_TIMER:
            self.state.retry()
        elif timer == DONOR_TIMER:
            self.donor.expire(timer)
        elif timer == FETCH_TIMER:
            self.learner.expire(timer)
        elif timer in (LOOK_TIMER, YIELD_TIMER):
            self.yielding.expire(timer)
        elif self.opening is not None and not self._ground.frozen:
            self._on_view_timer(self.opening, timer)

    def _on_view_timer(self, opening: Opening, timer: str) -> None:
        if timer == OFFER_TIMER:
            self._repeat(opening)
        elif timer == SILENT_TIMER:
            self._on_silent(opening)
        elif timer == ACK_TIMER:
            commit = self._commit
            if commit is not None and commit.place < self.state.place:
                self._acknowledge(again=True)
        elif timer == PROBE_TIMER and self.reads.probing and self._commit is not None:
            self._ask()

    def _repeat(self, opening: Opening) -> None:
        """Tell again what a member has not shown to know."""
        told = opening.offered and not opening.missing
        if not told:
            self._send_offer()
        if self._said_ready and not opening.readiness_is_known:
            self._send_ready()
            told = False
        if not told:
            self._repeat_s = min(2 * self._repeat_s, _REPEAT_MAX_S)
            self.out.append(SetTimer(OFFER_TIMER, self._repeat_s))

    def _on_silent(self, opening: Opening) -> None:
        """A member has offered nothing for too long. If it is we, others will notice."""
        if opening.is_open:
            return
        if opening.missing and self._node not in opening.missing:
            self.suspicion = Suspect(opening.missing, "it offers no log: its disk may hang")
        elif opening.contested:
            self.suspicion = Suspect((), "offers of logs contradict each other")
        else:
            self.out.append(SetTimer(SILENT_TIMER, self.config.offer_s))

    # At the end of every input

    def settle(self) -> list[Effect[Any]]:
        """Do whatever has become possible; the effects of the input."""
        self.told = False
        if not self._moved:
            self._offer()
            self._adopt()
        self._watch_learner()
        self.state.flush()
        if not self._moved:
            self._tell_ready()
            self._open()
        if self._moved:
            self._tell_caught_up()
            self._acknowledge()
        self._show()
        if self._probe():
            self._show()
        self._feed()
        return self.pop()

    def pop(self) -> list[Effect[Any]]:
        """The effects so far, which are the driver's from now on."""
        out = self.out.copy()
        self.out.clear()
        return out

    def _send(self, message: LogMessage, to: NodeId | None = None) -> None:
        assert self._view is not None
        self.out.append(Send(message, self._view.id, to))

    def _fork(self, why: str) -> None:
        self.out.append(Fork(why))

    # For whoever looks

    def status(self) -> LogStatus:
        state, opening = self.state, self.opening
        voters: tuple[NodeId, ...] = ()
        if opening is None:
            what, why = "closed", self._why
        else:
            what = "open" if self._commit is not None else "opening"
            why, voters = ("" if what == "open" else opening.why), opening.view.voters
        if opening is not None and self.learner.behind:
            condition = "behind"
        elif opening is not None and self._mark is not None and not self._joined:
            condition = "filling"
        else:
            condition = "able" if self._ground.able else "not able"
        return LogStatus(
            state.log,
            state.generation,
            state.first,
            state.length,
            state.stored.length,
            state.committed,
            state.term,
            voters,
            what,
            condition,
            self.sending.messages,
            self.sending.bytes,
            why,
        )
