"""Gather: nodes agree, by Joins, on who is in the next ring ([Totem95] §6.2).

    paper            here                 meaning
    my_proc_set      proposal.procs       who should be in the next ring
    my_fail_set      proposal.fails       who of those has failed
    consensus        proposal.agreed      who is known to hold the same two sets

`Gather` decides; `Membership` changes the phase as it says. Deviations from the paper: nobody puts
itself into its own fail set; an outsider's fail set is not merged; a membership that fails
repeatedly loses its largest member; and some outsiders are left alone for a while (`outsiders`).
"""

from collections.abc import Iterable

from roundelay.core.contract import Origin
from roundelay.core.effects import CancelTimer, Send, SetTimer
from roundelay.core.ids import NodeId, View
from roundelay.core.value import value
from roundelay.membership.config import (
    CAUGHT_UP,
    CONSENSUS,
    FORGIVE,
    JOIN,
    LOSS,
    MERGE,
    RETRANSMIT,
    SETTLE,
)
from roundelay.membership.failures import Failures
from roundelay.membership.messages import Join
from roundelay.membership.outsiders import Outsiders
from roundelay.membership.phase import GatherReason, Phase
from roundelay.membership.proposal import Proposal
from roundelay.membership.state import State


@value
class Heard:
    """What follows from a Join."""

    reason: GatherReason | None = None
    """Why a Gather must begin or begin again; None if it need not."""
    agrees: bool = False
    """Its sender proposes the same as this node."""


class Gather:
    """What one node proposes, and what it makes of the proposals of others."""

    def __init__(self, state: State) -> None:
        config = state.config
        self.proposal = Proposal(state.node)
        self.commit_wait = False
        """All have agreed, and the Commit token is yet to come."""
        self.outsiders = Outsiders(state.node, config, state.terms)
        self._failures = Failures(state.node, config.repeat_limit)
        self._state = state

    def begin(self) -> None:
        """Ask everybody anew: send a first Join, and give the others time to answer."""
        state = self._state
        self.commit_wait = False
        self.proposal.restart()
        self.outsiders.rejections.clear()
        state.out += map(CancelTimer, (LOSS, RETRANSMIT, MERGE, FORGIVE, SETTLE, CAUGHT_UP))
        self._send_join()
        state.emit(SetTimer(CONSENSUS, state.config.consensus_s))

    def send_next_join(self) -> None:
        self.outsiders.broken_links.next_join()
        self._send_join()

    def _send_join(self) -> None:
        state, proposal = self._state, self.proposal
        procs, fails = (*sorted(proposal.procs),), (*sorted(proposal.fails),)
        state.emit(Send(Join(procs, fails, state.ring_id.seq, state.terms), state.view.id))
        state.emit(SetTimer(JOIN, state.config.join_s))

    def hear_join(self, origin: Origin, m: Join, *, forming: bool) -> Heard:
        """Take in the Join of a node with our settings. `forming` says that other members may not
        have installed the view yet that this node is in."""
        state, proposal, outsiders = self._state, self.proposal, self.outsiders
        node, links = origin.node, outsiders.broken_links
        if len(proposal.procs.union(m.procs, m.fails, (node,))) > state.config.members_max:
            return Heard()  # More than a ring can hold, or a forged list of names.
        outsiders.note_incarnation(origin)
        state.max_seq = max(state.max_seq, m.ring_seq)
        operational = state.phase is Phase.OPERATIONAL
        if links.ignores(node) and (operational or node not in proposal.procs):
            return Heard()
        if operational:
            if self._is_stale(origin, m, forming=forming):
                return Heard()
        else:
            links.note_join(node)
            if self.commit_wait and node not in proposal.members:
                return Heard()
        agrees = proposal.equals(m)
        if agrees or proposal.covers(m):
            # If it knows less than we do, our own Join tells it.
            return Heard(GatherReason.JOIN_HEARD if operational else None, agrees)
        if node in proposal.fails:
            return Heard()
        changed = self._merge(node, m, operational=operational)
        if operational:
            return Heard(GatherReason.JOIN_HEARD, proposal.equals(m))
        return Heard(GatherReason.PROPOSAL_GREW if changed else None, proposal.equals(m))

    def _is_stale(self, origin: Origin, m: Join, *, forming: bool) -> bool:
        """Whether a Join that finds us operational is of a Gather that does not concern the view:
        one that led to it, or one of outsiders that we do not merge with for now."""
        state = self._state
        if origin.node in state.view.members:
            return m.ring_seq < state.ring_id.seq
        ignored = self.outsiders.ignores_join(origin, m, state.view)
        return ignored or self._ignores_outsiders(forming=forming)

    def _ignores_outsiders(self, *, forming: bool) -> bool:
        """Whether no outsider is merged with for now. Members that have not installed the view yet
        have given those outsiders up."""
        return forming or self.outsiders.rejections.settling

    def _merge(self, node: NodeId, m: Join, *, operational: bool) -> bool:
        """Take over what a Join tells; whether that changed the proposal."""
        state, proposal, outsiders = self._state, self.proposal, self.outsiders
        companion = node in state.view.members
        outsiders.note_receive_failure(node, m, companion=operational and companion)
        failed = set(proposal.fails)
        changed = proposal.merge(node, m, companion=companion)
        if not (m.fails == (state.node,) and self._failures.own_turn):
            outsiders.broken_links.note_given_up(node, proposal.fails - failed)
        return changed

    def hear_stranger(self, origin: Origin, *, forming: bool) -> bool:
        """§6.1: a frame shows a node that is not with us; whether a Gather must begin, with that
        node in the proposal."""
        state, outsiders = self._state, self.outsiders
        outsiders.note_incarnation(origin)
        if outsiders.agreement.differs(origin):
            return False
        node, view = origin.node, origin.view
        outdated = node in state.view.members and view is not None and view.seq < state.view.id.seq
        if outdated or view == state.ring_id or node == state.node:
            return False  # Delayed since our last view, or an early frame of the forming ring.
        if state.phase is Phase.OPERATIONAL:
            welcome = not self._ignores_outsiders(forming=forming) and outsiders.may_merge(origin)
        else:
            unknown = node not in self.proposal.procs
            welcome = state.phase is Phase.GATHER and unknown and not self.commit_wait
        if not welcome or node in outsiders.broken_links.pauses:
            return False
        if len(self.proposal.procs) >= state.config.members_max:
            return False
        self.proposal.procs.add(node)
        outsiders.broken_links.note_contact(node)
        return True

    def consensus(self, *, alone: bool = False) -> tuple[NodeId, ...]:
        """The members of the next ring, if everybody who is left has said what we say; else ().
        A node that has just started answers () unless it is to go on `alone`: others may be about
        to answer."""
        members = self.proposal.members
        if not self.proposal.unanimous:
            return ()
        if members == (self._state.node,) and not self.proposal.fails and not alone:
            return ()
        return members

    def await_commit(self) -> None:
        """All have agreed: the representative sends the Commit token."""
        if not self.commit_wait:
            self.commit_wait = True
            self._state.emit(CancelTimer(CONSENSUS))
            self._state.emit(SetTimer(LOSS, self._state.config.ring_loss_s))

    def give_up_silent(self) -> None:
        """Give up everybody who did not agree in time."""
        failed = set(self.proposal.fails)
        self.proposal.give_up_silent()
        given_up = self.proposal.fails - failed
        self.outsiders.broken_links.note_given_up(self._state.node, given_up)

    def give_up_deaf(self, nodes: Iterable[NodeId]) -> None:
        """Give up members that are accused of not receiving."""
        self.proposal.give_up(nodes)
        self.outsiders.expulsions.note_deaf(nodes)

    def count_failure(self, members: tuple[NodeId, ...]) -> None:
        """A ring of these members was not formed; if that happens repeatedly, its largest member
        is given up."""
        self.proposal.give_up(self._failures.count(members))

    def end(self, view: View, old: View) -> None:
        """A view was installed, after `old`: the next Gather starts from its members."""
        self._state.out += self.outsiders.note_install(view, old, self.proposal.fails)
        self.proposal.reset(view.members)
        self._failures.reset()
