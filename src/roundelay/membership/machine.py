"""Membership: takes every input, changes from phase to phase, and installs views.

The docstring of the package tells how it works; numbers with § refer to [Totem95], where `ring_id`
is my_ring_id.

Deviations from the paper besides those of `gather` and `recovery`: the engine of the old view goes
on, timers and all, until a Commit token is accepted; a member may say that it leaves; and idle
rings show that they are there.
"""

from collections.abc import Mapping, Sequence
from typing import Any, assert_never

from roundelay.core.contract import Boot, Engine, Origin
from roundelay.core.effects import Effect, Install, Kind, Record, Send, SetTimer, Suspect
from roundelay.core.ids import NodeId, Terms, View, ViewId
from roundelay.membership.config import (
    CAUGHT_UP,
    CONSENSUS,
    FORGIVE,
    JOIN,
    LOSS,
    MERGE,
    RETRANSMIT,
    SETTLE,
    TIMERS,
    MembershipConfig,
)
from roundelay.membership.engine_guard import EngineGuard
from roundelay.membership.forming import Forming
from roundelay.membership.gather import Gather
from roundelay.membership.messages import (
    MESSAGES,
    NO_TERMS,
    Commit,
    Installed,
    Join,
    Leave,
    Merge,
    Message,
    RingItem,
    RingToken,
)
from roundelay.membership.phase import LIVE, SEALED, GatherReason, Phase
from roundelay.membership.primary import able_members
from roundelay.membership.proposal import Proposal
from roundelay.membership.recovery import Recovery, Step
from roundelay.membership.state import State

_LOSSES = {
    Phase.GATHER: GatherReason.COMMIT_MISSING,
    Phase.COMMIT: GatherReason.COMMIT_LOST,
    Phase.RECOVERY: GatherReason.RING_STUCK,
}
"""By phase: what it means that the timer LOSS ran out."""


class Membership:
    """The membership of one node, and the engine that runs in its views."""

    def __init__(
        self,
        boot: Boot,
        founders: tuple[NodeId, ...],
        engine: Engine[Any],
        config: MembershipConfig | None = None,
        terms: Terms = NO_TERMS,
    ) -> None:
        self.config = config or MembershipConfig()
        self.guard = EngineGuard(engine)
        self.gather = Gather(state := State(boot, founders, self.config, terms))
        self.forming = Forming(state, self.guard)
        self.waiting = False
        """A view is installed and its engine has yet to be started: see `begin`."""
        self._state = state

    # For whoever looks at a node

    @property
    def node(self) -> NodeId:
        return self._state.node

    @property
    def terms(self) -> Terms:
        return self._state.terms

    @property
    def phase(self) -> Phase:
        return self._state.phase

    @property
    def gather_reason(self) -> GatherReason:
        """Why the last Gather began."""
        return self._state.gather_reason

    @property
    def view(self) -> View:
        return self._state.view

    @property
    def lives(self) -> Mapping[NodeId, int]:
        """The incarnation of each member of the view."""
        return self._state.lives

    @property
    def ring_id(self) -> ViewId:
        """The newest ring whose Commit token was accepted."""
        return self._state.ring_id

    @property
    def obligation(self) -> tuple[NodeId, ...]:
        """Whose messages a peer that installed before may have delivered behind a gap."""
        return self._state.obligation

    @property
    def proposal(self) -> Proposal:
        return self.gather.proposal

    @property
    def recovery(self) -> Recovery | None:
        """Of the ring being formed; after installation, until its token has retired."""
        return self.forming.recovery

    @property
    def frozen(self) -> bool:
        """Whether the view is about to end: nothing may be said in it any more."""
        return not self.waiting and self.guard.hold is not LIVE

    @property
    def able(self) -> bool:
        """Whether this node has a vote."""
        return self._state.standing.able

    @property
    def last_open(self) -> ViewId | None:
        """The last primary view that this node knows to have begun."""
        last = self._state.standing.last
        return None if last is None else last.id

    @property
    def journals(self) -> tuple[NodeId, ...]:
        """The members of the view that keep the replicated log."""
        return self._state.journals

    @property
    def able_members(self) -> tuple[NodeId, ...]:
        """The members of the view that brought a vote into it."""
        return self._state.able_members

    # Of the replicated log

    def note_open(self, view: View) -> list[Effect[Any]]:
        """A primary view is open, and this node holds the log in it; that view may just be over."""
        state = self._state
        state.standing.open(view.id, view.voters)
        state.persist()
        if state.node not in view.voters and view.id == state.view.id and not self.frozen:
            state.emit(SetTimer(CAUGHT_UP, self.config.caught_up_s))
        return state.drain()

    def suspect(self, suspicion: Suspect) -> list[Effect[Any]]:
        """The log cannot go on in this view."""
        if self.phase is Phase.OPERATIONAL:
            self._accuse(suspicion, GatherReason.ENGINE_SUSPECTS)
        return self._state.drain()

    def includes(self, origin: Origin) -> bool:
        """Whether a frame was sent in the view by its member."""
        return self._state.is_of_view(origin)

    # Inputs

    def start(self) -> list[Effect[Any]]:
        self._state.start()
        self._gather(GatherReason.STARTED)
        return self._state.drain()

    def submit(self) -> list[Effect[Any]]:
        """Packets wait."""
        return self._pass_on(self.guard.engine.submit()) if self.guard.hold is LIVE else []

    def receive(self, origin: Origin, message: Any) -> list[Effect[Any]]:
        state = self._state
        if type(message) in MESSAGES:
            self._on_message(origin, message)
        elif origin.view == state.view.id and state.lives.get(origin.node) == origin.incarnation:
            if self.guard.hold is not SEALED:
                return self._pass_on(self.guard.engine.receive(origin, message))
        elif self.forming.includes(origin):
            self.forming.keep_early(origin, message)  # Of a peer that has installed already.
        else:
            self._on_stranger(origin)
        return state.drain()

    def receive_many(self, origin: Origin, messages: Sequence[Any]) -> list[Effect[Any]] | None:
        """As `receive` for each of them, where all go to an engine that takes them at once; None,
        and nothing done, where they have to be given one by one."""
        state, guard = self._state, self.guard
        if (
            guard.burst_engine is not None
            and guard.hold is LIVE
            and origin.view == state.view.id
            and state.lives.get(origin.node) == origin.incarnation
            and MESSAGES.isdisjoint(map(type, messages))
        ):
            return self._pass_on(guard.burst_engine.receive_many(origin, messages))
        return None

    def expire(self, timer: str) -> list[Effect[Any]]:
        if self.guard.pop_timer(timer):
            return self._pass_on(self.guard.engine.expire(timer))
        outsiders = self.gather.outsiders
        if timer == JOIN:
            self.gather.send_next_join()
        elif timer == CONSENSUS:
            self._on_consensus_timer()
        elif timer == LOSS:
            self._on_loss()
        elif timer == RETRANSMIT:
            self.forming.retransmit()
        elif timer == MERGE:
            self._on_merge_timer()
        elif timer == SETTLE:
            outsiders.rejections.settling = False
            self._send_merge()
        elif timer == FORGIVE:
            outsiders.forgive(self.view.members)
        elif timer == CAUGHT_UP:
            suspicion = Suspect((), f"{self.node} has caught up, and may vote from now on")
            self._accuse(suspicion, GatherReason.CAUGHT_UP)
        else:
            outsiders.end_pause(timer)
        return self._state.drain()

    def leave(self) -> list[Effect[Any]]:
        """Tell the others that this node is about to stop; it must, after this."""
        self._state.emit(Send(Leave(), self.view.id))
        return self._state.drain()

    def begin(self) -> list[Effect[Any]]:
        """Start the engine of a new view: when `waiting`, once its installation was noted."""
        self._start_engine()
        return self._state.drain()

    # Frames

    def _on_message(self, origin: Origin, m: Message) -> None:
        match m:
            case RingToken():
                self._follow(self.forming.on_ring_token(origin, m))
            case RingItem():
                self.forming.on_ring_item(origin, m)
            case Join():
                if self._has_our_settings(origin, m):
                    self._on_join(origin, m)
            case Commit():
                self._on_commit(m)
            case Merge():
                if self._has_our_settings(origin, m) and origin.view != self.ring_id:
                    self._on_stranger(origin)
            case Installed():
                self.forming.on_installed(origin)
            case Leave():
                self._on_leave(origin)
            case _:
                assert_never(m)

    def _has_our_settings(self, origin: Origin, m: Join | Merge) -> bool:
        """Whether a frame is of a node with our settings; no other ever gets into a view."""
        agreement = self.gather.outsiders.agreement
        agrees, effects = agreement.compare(origin, m, self.view.id)
        self._state.out += effects
        if not agrees and self.phase is Phase.GATHER and self.proposal.exclude(origin.node):
            self._gather(GatherReason.SETTINGS_DIFFER)
        return agrees

    def _on_stranger(self, origin: Origin) -> None:
        if self.gather.hear_stranger(origin, forming=self.recovery is not None):
            self._gather(GatherReason.STRANGER_HEARD)

    def _on_join(self, origin: Origin, m: Join) -> None:
        if not self._state.believes(m.ring_seq):
            return
        if self.phase in (Phase.COMMIT, Phase.RECOVERY):
            if not self.forming.is_abandoned_by(origin.node, m):
                return
            self._gather(GatherReason.RING_ABANDONED)  # Before the Join is looked at.
        heard = self.gather.hear_join(origin, m, forming=self.recovery is not None)
        if heard.reason is not None:
            self._gather(heard.reason)
        if heard.agrees and self.phase is Phase.GATHER:
            self.proposal.agreed.add(origin.node)
            self._check_consensus()

    def _on_commit(self, m: Commit) -> None:
        match self.phase:
            case Phase.GATHER:
                if self.forming.is_expected(m, self.proposal.members):
                    self._accept_commit(m)
            case Phase.COMMIT | Phase.RECOVERY:
                self._follow(self.forming.on_commit(m))
            case Phase.OPERATIONAL:
                pass  # A copy that was delayed.

    def _on_leave(self, origin: Origin) -> None:
        """A companion stops, which its silence would tell later. A ring that is being formed
        finds out by itself."""
        if not self._state.is_of_view(origin) or origin.node in self.proposal.fails:
            return  # Of an earlier view or incarnation, or known already.
        if self.phase in (Phase.OPERATIONAL, Phase.GATHER) and origin.node != self.node:
            self._state.emit(Suspect((origin.node,), "it leaves"))
            self.proposal.give_up((origin.node,))
            self._gather(GatherReason.MEMBER_LEAVES)

    # Gather and Commit

    def _gather(self, reason: GatherReason) -> None:
        """§6.2: begin, or begin again, to agree on who is there."""
        state = self._state
        state.phase = Phase.GATHER
        state.gather_reason = reason
        state.emit(Record(Kind.GATHER, tag=reason))
        self.forming.abandon()
        self.gather.begin()
        self._check_consensus()

    def _check_consensus(self, *, alone: bool = False) -> None:
        """§6.2: once everybody who is left says what we say, the smallest forms the ring."""
        members = self.gather.consensus(alone=alone) if self.phase is Phase.GATHER else ()
        if not members:
            return
        if members[0] == self.node:
            self._accept_commit(self.forming.first_commit(members))
        else:
            self.gather.await_commit()

    def _accept_commit(self, m: Commit) -> None:
        if self.waiting:
            self._start_engine()  # The view lasted no longer than this one input.
        step = self.forming.accept(m)
        self.gather.commit_wait &= self.phase is Phase.GATHER
        self._follow(step)

    def _follow(self, step: Step | None) -> None:
        """Do what a visit of the forming ring's token leads to."""
        if step is not None and step.accused is not None:
            suspicion = Suspect((step.accused,), "it fails to receive")
            self._accuse(suspicion, GatherReason.FAILS_TO_RECEIVE)
        elif step is not None and step.install:
            self._install()

    def _on_consensus_timer(self) -> None:
        if self.proposal.members == (self.node,):
            self._check_consensus(alone=True)
            return
        self.gather.give_up_silent()
        self._gather(GatherReason.SILENT_GIVEN_UP)

    def _on_loss(self) -> None:
        """The ring being formed got stuck."""
        if self.phase is Phase.OPERATIONAL:
            # We have installed it. That nothing is heard of our successor is no reason to leave:
            # if it has not installed, it tells us in a Join, or the engine notices.
            self.forming.retire()
            return
        self._state.emit(Suspect((), "the ring being formed got stuck"))
        if self.phase is not Phase.GATHER:
            self.gather.count_failure(self.forming.members)
        elif self.gather.commit_wait:
            self.gather.count_failure(self.proposal.members)
        self._gather(_LOSSES[self.phase])

    # Installing

    def _install(self) -> None:
        """§7: end the old view, show the transitional one, end it, and enter the new one."""
        state, recovery, old = self._state, self.recovery, self.view
        assert recovery is not None
        passing = recovery.transitional_view
        end = self.guard.conclude(recovery.summaries, passing, recovery.obligations)
        state.out += (*end.records, *end.regular)
        state.emit(Install(passing))
        state.out += end.transitional
        for packet in end.withdrawn:
            state.emit(Record(Kind.WITHDRAW, packet, old.id))
        ruling = recovery.ruling
        state.view = recovery.new_view
        state.lives = recovery.lives
        state.obligation = ()
        self.gather.end(state.view, old)
        state.journals = tuple([entry.node for entry in recovery.entries if entry.journal])
        state.able_members = able_members(recovery.entries)
        if not state.journal and state.standing.install(recovery.id, ruling):
            state.persist()
            if state.node not in ruling.voters:
                state.emit(SetTimer(CAUGHT_UP, self.config.caught_up_s))
        state.emit(Install(state.view, state.standing.able, ruling.why))
        state.phase = Phase.OPERATIONAL
        if len(recovery.members) == 1:
            self.forming.retire()
        state.emit(SetTimer(MERGE, self.config.merge_detect_s / 2))
        self.waiting = True

    def _on_merge_timer(self) -> None:
        """§6.1 leaves idle rings unheard: the representative of one says that it is there."""
        if not self.guard.multicast:
            self._send_merge()
        self.guard.multicast = False
        # Twice in the time: an idle ring is heard within it, whenever it fell silent.
        self._state.emit(SetTimer(MERGE, self.config.merge_detect_s / 2))

    def _send_merge(self) -> None:
        """Let nodes that are near know of this ring; a frame of its representative is enough."""
        if self.view.members[0] == self.node:
            self._state.emit(Send(Merge(self.terms), self.view.id))

    # The engine

    def _start_engine(self) -> None:
        state, guard = self._state, self.guard
        self.waiting = False
        state.out += self._pass_on(guard.start(state.view))
        assert guard.timers.isdisjoint(TIMERS), "the engine uses timers of membership"
        for origin, message in self.forming.pop_early():
            if guard.hold is LIVE:
                state.out += self._pass_on(guard.engine.receive(origin, message))

    def _pass_on(self, effects: list[Effect[Any]]) -> list[Effect[Any]]:
        """The effects of the engine for the driver. Suspicions are for membership: while the view
        lasts, the first of them ends it."""
        suspicion = self.guard.note_effects(effects)
        if suspicion is None:
            return effects
        state = self._state
        state.out += [effect for effect in effects if type(effect) is not Suspect]
        if state.phase is Phase.OPERATIONAL:
            self._accuse(suspicion, GatherReason.ENGINE_SUSPECTS)
        return state.drain()

    def _accuse(self, suspicion: Suspect, reason: GatherReason) -> None:
        """The view cannot go on as it is; members that are named are given up at once."""
        self._state.emit(suspicion)
        self.gather.give_up_deaf(suspicion.members)
        self._gather(reason)
