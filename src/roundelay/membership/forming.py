"""Forming a ring: the Commit token goes round, then the exchange of the old views.

`Forming` keeps the attempt that is under way: its Commit token, its recovery, and frames that
members which installed earlier sent in the new view. It stays after the installation until the
forming ring's token has retired. Its handlers return a `Step` where the ring can be installed or a
member is accused; `Membership` does what follows.
"""

import contextlib
import itertools
from typing import Any

from roundelay.core.contract import Origin
from roundelay.core.effects import CancelTimer, Kind, Record, Refuse, Send, SetTimer
from roundelay.core.ids import NodeId, ViewId
from roundelay.membership.codec import fill_in
from roundelay.membership.config import CONSENSUS, JOIN, LOSS, RETRANSMIT
from roundelay.membership.engine_guard import EngineGuard
from roundelay.membership.messages import (
    STEP,
    Commit,
    CommitEntry,
    Installed,
    Join,
    RingItem,
    RingToken,
)
from roundelay.membership.phase import Phase
from roundelay.membership.plausibility import comes_round, is_sound
from roundelay.membership.recovery import Recovery, Step
from roundelay.membership.ring import Token
from roundelay.membership.state import State
from roundelay.wire.primitives import WireError

ALONE_VISITS_MAX = 100_000
"""Visits of its own token by a ring of one member. More than it can need for all items that it may
hold: a ring that gets there would never end, which is a bug."""


class Forming:
    """One node's part in the ring being formed, if there is one."""

    def __init__(self, state: State, guard: EngineGuard) -> None:
        self.recovery: Recovery | None = None
        """From the second rotation of the Commit token on, until the ring's token has retired."""
        self._commit: Commit | None = None
        """The Commit token as this node sent it on."""
        self._commit_seq = 0
        """The newest hop of the Commit token that was seen."""
        self._early: list[tuple[Origin, Any]] = []
        self._state = state
        self._guard = guard

    @property
    def members(self) -> tuple[NodeId, ...]:
        """Of the ring whose Commit token was accepted; () if there is none."""
        return () if self._commit is None else tuple(e.node for e in self._commit.entries)

    def includes(self, origin: Origin) -> bool:
        """Whether a frame was sent in the ring being formed by the incarnation that is its
        member."""
        recovery = self.recovery
        return (
            recovery is not None
            and origin.view == self._state.ring_id
            and recovery.lives.get(origin.node) == origin.incarnation
        )

    def is_abandoned_by(self, node: NodeId, m: Join) -> bool:
        """Whether a Join shows that a member of the ring being formed has given it up."""
        return node in self.members and m.ring_seq >= self._state.ring_id.seq

    def abandon(self) -> None:
        """A Gather begins: nothing is left of the attempt."""
        self.recovery = None
        self._commit = None
        self._early.clear()

    def retire(self) -> None:
        """All members have installed, or no answer is expected: send the token no more."""
        self.recovery = None
        self._commit = None
        self._state.out += map(CancelTimer, (LOSS, RETRANSMIT))

    def keep_early(self, origin: Origin, message: Any) -> None:
        """Keep an engine's frame of the new view until that is installed here too. A frame that
        does not fit is lost, as frames may be."""
        if len(self._early) < self._state.config.early_frames_max:
            self._early.append((origin, message))

    def pop_early(self) -> list[tuple[Origin, Any]]:
        """The frames that were kept, which are the engine's from now on."""
        early, self._early = self._early, []
        return early

    # Commit

    def first_commit(self, members: tuple[NodeId, ...]) -> Commit:
        """§6.3: the Commit token that the representative makes, with no entry filled in."""
        state = self._state
        seq = max(state.ring_id.seq, state.max_seq) + STEP
        entries = tuple(CommitEntry(member) for member in members)
        return Commit(ViewId(seq, state.node), 0, 0, entries)

    def is_expected(self, m: Commit, proposed: tuple[NodeId, ...]) -> bool:
        """Whether this is a Commit token on its first rotation, for the ring that this node has
        agreed to, with this node's entry the next to be filled in."""
        state = self._state
        mine = m.index < len(m.entries) and m.entries[m.index].node == state.node
        return (
            mine
            and m.token_seq == m.index  # So far each hop has filled in one entry.
            and tuple(entry.node for entry in m.entries) == proposed
            and m.ring.rep == m.entries[0].node
            and m.ring.seq > state.ring_id.seq
            and state.believes(m.ring.seq)
        )

    def accept(self, m: Commit) -> Step | None:
        """First rotation: freeze the engine, fill in our entry and send the token on."""
        state = self._state
        summary, cancelled = self._guard.freeze()
        state.out += cancelled
        mine = (state.node, state.view.id, summary, state.obligation)
        entry = CommitEntry(
            *mine,
            *state.standing.known,
            state.founders,
            state.incarnation,
            journal=state.journal,
        )
        filled = fill_in(m, entry)
        if filled is None:
            return None  # No honest token is so large.
        assert m.ring.seq > state.ring_id.seq, "a ring number came a second time"
        state.emit(Record(Kind.FREEZE, view=m.ring))
        state.ring_id = m.ring
        state.max_seq = max(state.max_seq, m.ring.seq)
        state.persist()  # Before any frame shows that we know this ring.
        state.phase = Phase.COMMIT
        self._early.clear()
        state.out += map(CancelTimer, (JOIN, CONSENSUS))
        return self._pass_commit(filled)

    def on_commit(self, m: Commit) -> Step | None:
        """The Commit token came back after another rotation: its second begins Recovery, and at
        the end of that the representative makes the ring's token of it."""
        state = self._state
        assert self._commit is not None
        returned = comes_round(m, self._commit, state.ring_id, self._commit_seq)
        if not returned:
            return None
        if state.phase is Phase.COMMIT:
            return self._enter_recovery(m) if m.index == len(m.entries) else None
        assert self.recovery is not None
        if self.recovery.representative != state.node:
            return None
        self._commit_seq = m.token_seq
        return self.visit(self.recovery.first_token(m.token_seq))

    def _pass_commit(self, m: Commit) -> Step | None:
        """Send the Commit token on; a ring of one goes through it all at once."""
        state = self._state
        self._commit = m
        self._commit_seq = m.token_seq
        if len(m.entries) == 1:
            # Its own successor: the next reception, which needs a larger number than its own.
            return self.on_commit(Commit(m.ring, m.token_seq + 1, m.index, m.entries))
        state.emit(Send(m, state.view.id, m.after(state.node)))
        self._await_token()
        return None

    def _await_token(self) -> None:
        """A token was sent on: retransmit it at intervals, and take it for lost in the end."""
        state = self._state
        state.emit(SetTimer(LOSS, state.config.ring_loss_s))
        state.emit(SetTimer(RETRANSMIT, state.config.ring_retransmit_s))

    # Recovery

    def _enter_recovery(self, m: Commit) -> Step | None:
        """Second rotation: the entries of all members are known."""
        state = self._state
        assert self._commit is not None
        if not is_sound(m, self._commit, state.view):
            state.emit(Refuse("a Commit token with entries that nobody wrote"))
            return None
        recovery = Recovery(state.node, m, state.view.id, state.config.ring)
        try:
            items = self._guard.seal(recovery.summaries)
        except WireError:
            return None  # No member wrote that summary; the real token is yet to come.
        recovery.offer(items)
        state.phase = Phase.RECOVERY
        self.recovery = recovery
        recovery.ring.token_seq = m.token_seq + 1
        return self._pass_commit(Commit(m.ring, m.token_seq + 1, m.index, m.entries))

    def on_ring_token(self, origin: Origin, m: RingToken) -> Step | None:
        state, recovery = self._state, self.recovery
        operational = state.phase is Phase.OPERATIONAL
        if recovery is None or not self.includes(origin):
            if state.is_of_view(origin) and operational and recovery is None:
                state.emit(Send(Installed(), state.view.id, origin.node))
            return None
        fresh = recovery.ring.accepts(m.token)
        if state.phase is Phase.RECOVERY:
            return self.visit(m.token) if fresh else None
        if operational:
            if fresh:
                self.retire()  # It came round once more: everybody has installed.
            else:
                state.emit(Send(Installed(), state.view.id, origin.node))
        return None

    def on_ring_item(self, origin: Origin, m: RingItem) -> None:
        if self.recovery is None or not self.includes(origin):
            return
        item = self.recovery.receive(m)
        if item is None or self._state.phase is not Phase.RECOVERY:
            return
        # A forged item is no item: what it displaced is still offered by whoever has it.
        with contextlib.suppress(WireError):
            self._state.out += self._guard.absorb(item)

    def on_installed(self, origin: Origin) -> None:
        if (
            self._state.phase is Phase.OPERATIONAL
            and self.recovery is not None
            and self.includes(origin)
            and origin.node == self.recovery.successor
        ):
            self.retire()

    def visit(self, token: Token) -> Step:
        """Use the token of the ring being formed, and send it on unless a member is accused."""
        state, recovery = self._state, self.recovery
        assert recovery is not None
        alone = len(recovery.members) == 1
        for visits in itertools.count():
            assert visits < ALONE_VISITS_MAX, "a ring of one never comes to rest"
            complete = recovery.complete
            step = recovery.visit(token)
            if recovery.complete and not complete:
                state.obligation = recovery.obligations
                if state.standing.attempt(recovery.id, recovery.ruling):
                    state.persist()  # Before any frame lets a peer install.
            for item in step.sends:
                state.emit(Send(item, state.ring_id))
            if step.accused is not None:
                return step
            if not alone or step.install:
                break
            token = step.token  # A ring of one is its own successor.
        if not alone:
            state.emit(Send(RingToken(step.token), state.ring_id, recovery.successor))
            self._await_token()
        return step

    def retransmit(self) -> None:
        """§5.2: nothing shows that our token went on; send it again, unchanged."""
        state, recovery = self._state, self.recovery
        if recovery is not None and recovery.ring.last is not None:
            token = RingToken(recovery.ring.last)
            state.emit(Send(token, state.ring_id, recovery.successor))
        elif self._commit is not None:
            state.emit(Send(self._commit, state.view.id, self._commit.after(state.node)))
        else:
            return
        state.emit(SetTimer(RETRANSMIT, state.config.ring_retransmit_s))
