"""Membership: Gather, Commit, Recovery, and the engine's life between them.

Follows [Totem95] section 6 and 7; numbers with § refer to it.

    paper            here                     meaning
    my_ring_id       self.ring                newest ring whose Commit token was accepted
    my_proc_set      self.proposal.procs      who should be in the next ring
    my_fail_set      self.proposal.fails      who of those has failed
    consensus        self.proposal.agreed     who is known to hold the same two sets
    state            self.phase

Theory of operation
===================

*Operational*: a view is installed and its engine runs. A suspicion, a frame of a stranger or a
Join ends this. *Gather*: nodes tell each other in Joins whom they hear and whom they have given
up, until all who are left say the same. *Commit*: the smallest of them sends a Commit token round
twice, once to collect what each brings along, once to show it to all. *Recovery*: over the new
ring they exchange what they hold of their old views. Then each installs: it ends the old view with
what the exchange allows, shows the transitional view, ends that, and shows the new view.

The engine of the old view goes on during Gather, is frozen when a Commit token is accepted, since
what it reports there must stay true, and sealed when Recovery begins. An attempt that fails leaves
it frozen or sealed until a later one succeeds.

The token of the forming ring retires once it finds a node that has installed already: then all
have. Until a node knows that its successor has, it goes on retransmitting.

Deviations from the paper: nobody puts itself into its own fail set; an outsider's fail set is not
merged; a membership that fails repeatedly loses its largest member; the engine of the old view
goes on, timers and all, until a Commit token is accepted; a node that was expelled more than once
because it did not hear us is left alone for a while, which grows, and so is one that another
member does not hear.
"""

import contextlib
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, assert_never

from roundelay.core.contract import Boot, Engine, Origin
from roundelay.core.effects import (
    CancelTimer,
    Effect,
    Install,
    Kind,
    Persist,
    Record,
    Refuse,
    Send,
    SetTimer,
    Suspect,
)
from roundelay.core.ids import NodeId, Terms, View, ViewId
from roundelay.membership.claims import comes_round, credible, is_sound
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
from roundelay.membership.failures import Failures
from roundelay.membership.messages import (
    MESSAGES,
    NO_TERMS,
    STEP,
    Commit,
    Entry,
    Installed,
    Join,
    Leave,
    Merge,
    Message,
    RingItem,
    RingToken,
    fill_in,
)
from roundelay.membership.outsiders import Outsiders
from roundelay.membership.phase import LIVE, SEALED, Phase
from roundelay.membership.primary import rule
from roundelay.membership.proposal import Proposal
from roundelay.membership.recovery import Recovery
from roundelay.membership.ring import Token
from roundelay.membership.storage import pack, read_storage
from roundelay.membership.tenant import Tenant
from roundelay.wire.primitives import WireError

ALONE_VISITS_MAX = 100_000
"""More than a ring of one can need for all it may hold."""


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
        self.node = boot.node
        self.config = config or MembershipConfig()
        self.tenant = Tenant(engine)
        self.phase = Phase.OPERATIONAL
        self.ring = ViewId(0, boot.node)
        self.view = View(self.ring, (boot.node,))
        self.proposal = Proposal(boot.node)
        self.commit_wait = False
        self.max_seq = 0
        """Largest ring number heard of."""
        self._stored = read_storage(boot)
        self.standing = self._stored.standing
        self._founders = (*sorted(founders),)
        self.lives: Mapping[NodeId, int] = {boot.node: boot.incarnation}
        """The life of each member of the view: no other speaks for it."""
        self.obligation: tuple[NodeId, ...] = ()
        self.waiting = False
        """A view is installed and its engine has yet to be started: see `begin`."""
        self.recovery: Recovery | None = None
        """The ring being formed; after installation, until its token has retired."""
        self._boot = boot
        self._commit: Commit | None = None
        self._commit_seq = 0
        self._failures = Failures(self.node, self.config.repeat_limit)
        self._outsiders = Outsiders(self.node, self.config, terms)
        self.terms = terms
        self._early: list[tuple[Origin, Any]] = []
        self._out: list[Effect[Any]] = []

    # Inputs

    def start(self) -> list[Effect[Any]]:
        stored = self._stored
        if self._boot.incarnation:
            self._emit(Record(Kind.RECOVER, stable_seq=stored.seq, level=int(stored.kept)))
        # A number of its own for every start: a node that restarts before anybody noticed must
        # not look like a continuing member of its old ring.
        self.ring = ViewId(stored.seq + STEP, self.node)
        self.max_seq = self.ring.seq
        self._persist()
        self.view = View(self.ring, (self.node,))
        self._emit(Install(self.view, self.standing.able, "the node has just started"))
        self._gather()
        return self._drain()

    def submit(self) -> list[Effect[Any]]:
        """Packets wait."""
        return self._pass_on(self.tenant.engine.submit()) if self.tenant.hold is LIVE else []

    def receive(self, origin: Origin, message: Any) -> list[Effect[Any]]:
        if type(message) in MESSAGES:
            self._on_message(origin, message)
        elif origin.view == self.view.id and self.lives.get(origin.node) == origin.incarnation:
            if self.tenant.hold is not SEALED:
                return self._pass_on(self.tenant.engine.receive(origin, message))
        else:
            self._on_other_view(origin, message)
        return self._drain()

    def receive_many(self, origin: Origin, messages: Sequence[Any]) -> list[Effect[Any]] | None:
        """As `receive` for each of them, where all go to an engine that takes them at once; None,
        and nothing done, where they have to be given one by one."""
        view, tenant = self.view, self.tenant
        if (
            tenant.burst_engine is not None
            and tenant.hold is LIVE
            and origin.view == view.id
            and self.lives.get(origin.node) == origin.incarnation
            and MESSAGES.isdisjoint(map(type, messages))
        ):
            return self._pass_on(tenant.burst_engine.receive_many(origin, messages))
        return None

    def expire(self, timer: str) -> list[Effect[Any]]:
        if self.tenant.owns(timer):
            return self._pass_on(self.tenant.engine.expire(timer))
        if timer == JOIN:
            self._outsiders.apart.tick()
            self._emit(Send(self._join(), self.view.id))
            self._emit(SetTimer(JOIN, self.config.join_s))
        elif timer == CONSENSUS:
            self._on_consensus_timer()
        elif timer == LOSS:
            self._on_loss()
        elif timer == RETRANSMIT:
            self._retransmit()
        elif timer == MERGE:
            self._on_merge_timer()
        elif timer == SETTLE:
            self._outsiders.quarrels.settling = False
            self._show_up()
        elif timer == FORGIVE:
            self._outsiders.forgive(self.view.members)
        elif timer == CAUGHT_UP:
            self._accuse(Suspect((), f"{self.node} has caught up, and may vote from now on"))
        else:
            self._outsiders.resume(timer)
        return self._drain()

    def leave(self) -> list[Effect[Any]]:
        """Tell the others that this node is about to stop; it must, after this."""
        self._emit(Send(Leave(), self.view.id))
        return self._drain()

    def begin(self) -> list[Effect[Any]]:
        """Start the engine of a new view: when `waiting`, once its installation was noted."""
        self._begin()
        return self._drain()

    # Frames

    def _on_message(self, origin: Origin, m: Message) -> None:
        match m:
            case RingToken():
                self._on_ring_token(origin, m)
            case RingItem():
                self._on_ring_item(origin, m)
            case Join():
                if self._agrees(origin, m):
                    self._on_join(origin, m)
            case Commit():
                self._on_commit(m)
            case Merge():
                if self._agrees(origin, m) and origin.view != self.ring:
                    self._on_foreign(origin)
            case Installed():
                self._on_installed(origin)
            case Leave():
                self._on_leave(origin)
            case _:
                assert_never(m)

    def _agrees(self, origin: Origin, m: Join | Merge) -> bool:
        """Whether a frame is of a node with our settings; no other ever gets into a view."""
        agrees, effects = self._outsiders.agreement.hear(origin, m, self.view.id)
        self._out += effects
        if not agrees and self.phase is Phase.GATHER and self.proposal.drop(origin.node):
            self._gather()
        return agrees

    def _on_other_view(self, origin: Origin, message: Any) -> None:
        """A frame of an engine: of a view that comes, or of somebody else's."""
        if self._of_forming_ring(origin):
            # An already installed peer. What does not fit is lost, as frames may be.
            if len(self._early) < self.config.early_frames_max:
                self._early.append((origin, message))
        else:
            self._on_foreign(origin)

    def _of_forming_ring(self, origin: Origin) -> bool:
        """Whether a frame comes from a member of the ring being formed, in its present life."""
        recovery = self.recovery
        return (
            recovery is not None
            and origin.view == self.ring
            and recovery.lives.get(origin.node) == origin.incarnation
        )

    def _on_foreign(self, origin: Origin) -> None:
        """§6.1: somebody is there who is not with us."""
        self._outsiders.meet(origin)
        if self._outsiders.agreement.differs(origin):
            return
        node, view = origin.node, origin.view
        late = node in self.view.members and view is not None and view.seq < self.view.id.seq
        if late or origin.view == self.ring or node == self.node:
            return  # Late, or an early frame of the ring being formed.
        if self.phase is Phase.OPERATIONAL:
            heeded = not self._aloof and self._outsiders.heeds(origin)
        else:
            unknown = node not in self.proposal.procs
            heeded = self.phase is Phase.GATHER and unknown and not self.commit_wait
        heeded = heeded and node not in self._outsiders.apart.pauses
        if heeded and len(self.proposal.procs) < self.config.members_max:
            self.proposal.procs.add(node)
            self._outsiders.apart.call(node)
            self._gather()

    # Gather

    def _gather(self) -> None:
        """§6.2: begin, or begin again, to agree on who is there."""
        self.phase = Phase.GATHER
        self.commit_wait = False
        self.recovery = None
        self._commit = None
        self._early.clear()
        self.proposal.begin()
        self._outsiders.quarrels.forget()
        self._out += map(CancelTimer, (LOSS, RETRANSMIT, MERGE, FORGIVE, SETTLE, CAUGHT_UP))
        self._emit(Send(self._join(), self.view.id))
        self._emit(SetTimer(JOIN, self.config.join_s))
        self._emit(SetTimer(CONSENSUS, self.config.consensus_s))
        self._check_consensus()

    def _join(self) -> Join:
        proposal = self.proposal
        return Join(
            (*sorted(proposal.procs),), (*sorted(proposal.fails),), self.ring.seq, self.terms
        )

    def _on_join(self, origin: Origin, m: Join) -> None:
        node = origin.node
        if not self._believes(m.ring_seq):
            return
        if self.phase in (Phase.COMMIT, Phase.RECOVERY):
            assert self._commit is not None
            member = any(entry.node == node for entry in self._commit.entries)
            if not member or m.ring_seq < self.ring.seq:
                return
            self._gather()  # That member has abandoned the ring: so must we, before anything else.
        known = self.proposal.procs
        if len(known.union(m.procs, m.fails, (node,))) > self.config.members_max:
            return  # More than a ring can hold, or a forged list of names.
        self._outsiders.meet(origin)
        self.max_seq = max(self.max_seq, m.ring_seq)
        proposal = self.proposal
        operational = self.phase is Phase.OPERATIONAL
        if self._outsiders.apart.shuns(node) and (operational or node not in known):
            return
        if operational:
            if self._left_over(origin, m):
                return
        else:
            self._outsiders.apart.hear(node)
            if self.commit_wait and node not in proposal.members:
                return
        if proposal.equals(m):
            if operational:
                self._gather()
            self._agree(node)
        elif proposal.covers(m):
            if operational:
                self._gather()  # Our own Join tells it what it does not know.
        elif node not in proposal.fails:
            companion = node in self.view.members
            self._outsiders.note_deaf(node, m, companion=operational and companion)
            failed = set(proposal.fails)
            changed = proposal.merge(node, m, companion=companion)
            if not (m.fails == (self.node,) and self._failures.mine):
                self._outsiders.apart.note(node, proposal.fails - failed)
            if changed or operational:
                self._gather()
            if proposal.equals(m):
                self._agree(node)

    def _left_over(self, origin: Origin, m: Join) -> bool:
        """Whether a Join that finds us in a view is of a round that does not concern it."""
        if origin.node in self.view.members:
            return m.ring_seq < self.ring.seq  # Of the formation of this very ring.
        return self._outsiders.left_over(origin, m, self.view) or self._aloof

    @property
    def _aloof(self) -> bool:
        """Whether no outsider is heeded for now; who has not installed holds them for gone."""
        return self.recovery is not None or self._outsiders.quarrels.settling

    def _agree(self, node: NodeId) -> None:
        if self.phase is Phase.GATHER:
            self.proposal.agreed.add(node)
            self._check_consensus()

    def _check_consensus(self, *, alone: bool = False) -> None:
        """§6.2: has everybody who is left said what we say? Then the smallest forms the ring."""
        if self.phase is not Phase.GATHER or not self.proposal.unanimous:
            return
        members = self.proposal.members
        if members == (self.node,) and not self.proposal.fails and not alone:
            return  # Just started: others may be about to answer.
        if members[0] == self.node:
            self._form(members)
        elif not self.commit_wait:
            self.commit_wait = True
            self._emit(CancelTimer(CONSENSUS))
            self._emit(SetTimer(LOSS, self.config.ring_loss_s))

    def _on_consensus_timer(self) -> None:
        if self.proposal.members == (self.node,):
            self._check_consensus(alone=True)
            return
        failed = set(self.proposal.fails)
        self.proposal.give_up_silent()
        self._outsiders.apart.note(self.node, self.proposal.fails - failed)
        self._gather()

    def _on_loss(self) -> None:
        """The ring being formed got stuck."""
        if self.phase is Phase.OPERATIONAL:
            # We have installed it. That nothing is heard of our successor is no reason to leave:
            # if it has not installed, it tells us in a Join, or the engine notices.
            self._retire()
            return
        self._emit(Suspect((), "the ring being formed got stuck"))
        if self._commit is not None:
            failed = tuple(entry.node for entry in self._commit.entries)
            self.proposal.give_up(self._failures.count(failed))
        elif self.commit_wait:
            self.proposal.give_up(self._failures.count(self.proposal.members))
        self._gather()

    def _on_leave(self, origin: Origin) -> None:
        """A companion stops: what its silence would tell later. A ring that is being formed
        finds out by itself."""
        life = self.lives.get(origin.node)
        if origin.view != self.view.id or origin.incarnation != life:
            return  # Of an earlier view or life.
        if origin.node in self.proposal.fails:
            return  # Known.
        if self.phase in (Phase.OPERATIONAL, Phase.GATHER) and origin.node != self.node:
            self._emit(Suspect((origin.node,), "it leaves"))
            self.proposal.give_up((origin.node,))
            self._gather()

    # Commit

    def _form(self, members: tuple[NodeId, ...]) -> None:
        """§6.3: the representative makes the Commit token and takes it first."""
        seq = max(self.ring.seq, self.max_seq) + STEP
        entries = tuple(Entry(member) for member in members)
        self._accept_commit(Commit(ViewId(seq, self.node), 0, 0, entries))

    def _on_commit(self, m: Commit) -> None:
        match self.phase:
            case Phase.GATHER:
                members = tuple(entry.node for entry in m.entries)
                mine = m.index < len(m.entries) and m.entries[m.index].node == self.node
                if (
                    mine
                    and m.token_seq == m.index  # So far each hop has filled in one entry.
                    and members == self.proposal.members
                    and m.ring.rep == m.entries[0].node
                    and m.ring.seq > self.ring.seq
                    and self._believes(m.ring.seq)
                ):
                    self._accept_commit(m)
            case Phase.COMMIT:
                complete = m.index == len(m.entries)
                if complete and self._comes_round(m):
                    self._enter_recovery(m)
            case Phase.RECOVERY:
                assert self.recovery is not None
                mine = self.recovery.representative == self.node
                if mine and self._comes_round(m):
                    self._commit_seq = m.token_seq
                    self._visit(self.recovery.first_token(m.token_seq))
            case Phase.OPERATIONAL:
                pass  # Late.

    def _believes(self, seq: int) -> bool:
        """Whether a ring number that a peer claims may be true; if not, it is refused."""
        limit = credible(self.max_seq)
        if seq <= limit:
            return True
        self.max_seq = limit
        self._emit(Refuse(f"the ring number {seq} is not to be believed"))
        return False

    def _comes_round(self, m: Commit) -> bool:
        """Whether this is the Commit token that this node sent on, after another rotation."""
        assert self._commit is not None
        return comes_round(m, self._commit, self.ring, self._commit_seq)

    def _accept_commit(self, m: Commit) -> None:
        """First rotation: freeze the engine and fill in our entry."""
        if self.waiting:
            self._begin()  # The view lasted no longer than this one input.
        summary, ended = self.tenant.freeze()
        self._out += ended
        mine = (self.node, self.view.id, summary, self.obligation)
        entry = Entry(*mine, *self.standing.known, self._founders, self._boot.incarnation)
        filled = fill_in(m, entry)
        if filled is None:
            return  # No honest token is so large.
        assert m.ring.seq > self.ring.seq, "a ring number came a second time"
        self._emit(Record(Kind.FREEZE, view=m.ring))
        self.ring = m.ring
        self.max_seq = max(self.max_seq, m.ring.seq)
        self._persist()  # Before any frame shows that we know this ring.
        self.phase = Phase.COMMIT
        self.commit_wait = False
        self._early.clear()
        self._out += map(CancelTimer, (JOIN, CONSENSUS))
        self._pass_commit(filled)

    def _pass_commit(self, m: Commit) -> None:
        """Send the Commit token on; a ring of one goes through it all at once."""
        self._commit = m
        self._commit_seq = m.token_seq
        if len(m.entries) == 1:
            # Its own successor: the next reception, which needs a larger number than its own.
            self._on_commit(Commit(m.ring, m.token_seq + 1, m.index, m.entries))
            return
        self._emit(Send(m, self.view.id, m.after(self.node)))
        self._emit(SetTimer(LOSS, self.config.ring_loss_s))
        self._emit(SetTimer(RETRANSMIT, self.config.ring_retransmit_s))

    # Recovery

    def _enter_recovery(self, m: Commit) -> None:
        """Second rotation: everybody's entry is known."""
        assert self._commit is not None
        if not is_sound(m, self._commit, self.view):
            self._emit(Refuse("a Commit token with entries that nobody wrote"))
            return
        recovery = Recovery(self.node, m, self.view.id, self.config.ring)
        try:
            items = self.tenant.seal(recovery.summaries)
        except WireError:
            return  # No member wrote that summary; the real token is yet to come.
        recovery.offer(items)
        self.phase = Phase.RECOVERY
        self.recovery = recovery
        recovery.ring.token_seq = m.token_seq + 1
        self._pass_commit(Commit(m.ring, m.token_seq + 1, m.index, m.entries))

    def _on_ring_token(self, origin: Origin, m: RingToken) -> None:
        recovery = self.recovery
        if recovery is None or not self._of_forming_ring(origin):
            life = self.lives.get(origin.node)
            ours = origin.view == self.view.id and origin.incarnation == life
            if ours and self.phase is Phase.OPERATIONAL and recovery is None:
                self._emit(Send(Installed(), self.view.id, origin.node))
            return
        fresh = recovery.ring.accepts(m.token)
        if self.phase is Phase.RECOVERY:
            if fresh:
                self._visit(m.token)
        elif self.phase is Phase.OPERATIONAL:
            if fresh:
                self._retire()  # It came round once more: everybody has installed.
            else:
                self._emit(Send(Installed(), self.view.id, origin.node))

    def _on_ring_item(self, origin: Origin, m: RingItem) -> None:
        if self.recovery is None or not self._of_forming_ring(origin):
            return
        item = self.recovery.receive(m)
        if item is None or self.phase is not Phase.RECOVERY:
            return
        # A forged item is no item: what it displaced is still offered by whoever has it.
        with contextlib.suppress(WireError):
            self._out += self.tenant.absorb(item)

    def _on_installed(self, origin: Origin) -> None:
        if (
            self.phase is Phase.OPERATIONAL
            and self.recovery is not None
            and self._of_forming_ring(origin)
            and origin.node == self.recovery.successor
        ):
            self._retire()

    def _visit(self, token: Token) -> None:
        recovery = self.recovery
        assert recovery is not None
        alone = len(recovery.members) == 1
        for visits in itertools.count():
            assert visits < ALONE_VISITS_MAX, "a ring of one never comes to rest"
            complete = recovery.complete
            step = recovery.visit(token)
            if recovery.complete and not complete:
                self.obligation = recovery.obligations
                if self.standing.attempt(recovery.id, rule(recovery.entries)):
                    self._persist()  # Before any frame lets a peer install.
            for item in step.sends:
                self._emit(Send(item, self.ring))
            if step.accused is not None:
                self._accuse(Suspect((step.accused,), "it fails to receive"))
                return
            if not alone or step.install:
                break
            token = step.token  # A ring of one is its own successor.
        if not alone:
            self._emit(Send(RingToken(step.token), self.ring, recovery.successor))
            self._emit(SetTimer(LOSS, self.config.ring_loss_s))
            self._emit(SetTimer(RETRANSMIT, self.config.ring_retransmit_s))
        if step.install:
            self._install()

    def _retransmit(self) -> None:
        """§5.2: nothing shows that our token went on; send it again, unchanged."""
        if self.recovery is not None and self.recovery.ring.last is not None:
            token = RingToken(self.recovery.ring.last)
            self._emit(Send(token, self.ring, self.recovery.successor))
        elif self._commit is not None:
            self._emit(Send(self._commit, self.view.id, self._commit.after(self.node)))
        else:
            return
        self._emit(SetTimer(RETRANSMIT, self.config.ring_retransmit_s))

    def _retire(self) -> None:
        """The forming ring's token is of no use any more."""
        self.recovery = None
        self._commit = None
        self._out += map(CancelTimer, (LOSS, RETRANSMIT))

    # Installing

    def _install(self) -> None:
        """§7: end the old view, show the transitional one, end it, and enter the new one."""
        recovery = self.recovery
        assert recovery is not None
        old = self.view
        passing = View(
            ViewId(recovery.id.seq - 1, recovery.transitional[0]),
            recovery.transitional,
            transitional=True,
            previous=old.id,
        )
        end = self.tenant.conclude(recovery.summaries, passing, recovery.obligations)
        self._out += end.regular
        self._emit(Install(passing))
        self._out += end.transitional
        for packet in end.withdrawn:
            self._emit(Record(Kind.WITHDRAW, packet, old.id))
        ruling = rule(recovery.entries)
        voters = ruling.voters
        self.view = View(
            recovery.id,
            recovery.members,
            primary=bool(voters),
            previous=passing.id,
            voters=voters,
        )
        self.lives = recovery.lives
        self._out += self._outsiders.settle(self.view, old, self.proposal.fails)
        if self.standing.install(recovery.id, ruling):
            self._persist()
            if self.node not in voters:
                self._emit(SetTimer(CAUGHT_UP, self.config.caught_up_s))
        self._emit(Install(self.view, self.standing.able, ruling.why))
        self.phase = Phase.OPERATIONAL
        self.proposal.settle(recovery.members)
        self.obligation = ()
        self._failures.forget()
        if len(recovery.members) == 1:
            self._retire()
        self._emit(SetTimer(MERGE, self.config.merge_detect_s / 2))
        self.waiting = True

    def _on_merge_timer(self) -> None:
        """§6.1 leaves idle rings unheard: the representative of one says that it is there."""
        if not self.tenant.spoke:
            self._show_up()
        self.tenant.spoke = False
        # Twice in the time: an idle ring is heard within it, whenever it fell silent.
        self._emit(SetTimer(MERGE, self.config.merge_detect_s / 2))

    def _show_up(self) -> None:
        """Let whoever is near know of this ring; one of us is enough."""
        if self.view.members[0] == self.node:
            self._emit(Send(Merge(self.terms), self.view.id))

    # The engine

    def _begin(self) -> None:
        self.waiting = False
        self._out += self._pass_on(self.tenant.begin(self.view))
        assert self.tenant.timers.isdisjoint(TIMERS), "the engine uses timers of membership"
        early, self._early = self._early, []
        for origin, message in early:
            if self.tenant.hold is LIVE:
                self._out += self._pass_on(self.tenant.engine.receive(origin, message))

    def _pass_on(self, effects: list[Effect[Any]]) -> list[Effect[Any]]:
        """What the engine wants, except for suspicions, which are ours."""
        suspicions = self.tenant.heed(effects)
        if not suspicions:
            return effects
        self._out += [effect for effect in effects if type(effect) is not Suspect]
        if self.phase is Phase.OPERATIONAL:
            self._accuse(suspicions[0])
        return self._drain()

    def _accuse(self, suspicion: Suspect) -> None:
        """The view cannot go on as it is; whoever is named is given up at once."""
        self._emit(suspicion)
        self.proposal.give_up(suspicion.members)
        self._outsiders.expulsions.accuse(suspicion.members)
        self._gather()

    def _persist(self) -> None:
        self._emit(Persist(pack(self.ring.seq, self.standing)))

    def _emit(self, effect: Effect[Any]) -> None:
        self._out.append(effect)

    def _drain(self) -> list[Effect[Any]]:
        out = self._out.copy()
        self._out.clear()
        return out
