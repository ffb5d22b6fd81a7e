"""Whom a node does not meet with for now: four reasons, asked and told of in one place.

A node that does not receive (`expulsions`), a link that carries nothing (`apart`), and the quarrel
that led to the present view (`quarrels`) each make a node leave others alone for a while; other
settings (`terms`), for as long as they are other.
"""

from collections.abc import Iterable

from roundelay.core.contract import Origin
from roundelay.core.effects import SetTimer, Suspect
from roundelay.core.ids import NodeId, Terms, View
from roundelay.membership.apart import Apart
from roundelay.membership.config import APART, FORGIVE, PAUSE, SETTLE, MembershipConfig
from roundelay.membership.expulsions import Expulsions
from roundelay.membership.messages import Join
from roundelay.membership.quarrels import Quarrels
from roundelay.membership.terms import Agreement


class Outsiders:
    """What one node has against meeting with others."""

    def __init__(self, me: NodeId, config: MembershipConfig, terms: Terms) -> None:
        self.expulsions = Expulsions(config.pause_s, config.pause_max_s)
        self.quarrels = Quarrels(config.members_max)
        self.apart = Apart(me, config.pause_s, config.apart_max_s, 4 * config.members_max)
        self.agreement = Agreement(terms, 4 * config.members_max)
        self._me = me
        self._config = config

    def meet(self, origin: Origin) -> None:
        """Somebody shows up; if it restarted, nothing is held against it."""
        self.expulsions.meet(origin)
        self.apart.meet(origin)

    def heeds(self, origin: Origin) -> bool:
        """Whether a frame of a stranger may end the present view."""
        return not self.quarrels.with_(origin) and origin.node not in self.expulsions.paused

    def left_over(self, origin: Origin, m: Join, view: View) -> bool:
        """Whether the Join of an outsider that finds us in a view does not concern it: the outsider
        is still giving one of us up, or we leave it alone for now."""
        if not set(m.fails).isdisjoint(view.members):
            self.quarrels.note(origin)
            return True
        self.quarrels.end(origin.node)
        return origin.node in self.expulsions.paused

    def note_deaf(self, node: NodeId, m: Join, *, companion: bool) -> None:
        """Somebody is given up whom others hear: it, or we, do not receive."""
        if self._me in m.fails:
            self.expulsions.accuse((node,))
        elif companion:
            self.expulsions.accuse(m.fails)

    def settle(self, view: View, old: View, fails: Iterable[NodeId]) -> list[Suspect | SetTimer]:
        """A view was installed without `fails`: what follows for those that are not in it."""
        given_up = set(fails)
        out: list[Suspect | SetTimer] = []
        for pause in self.apart.settle(view.members, given_up):
            out += (
                Suspect((pause.node,), pause.reason),
                SetTimer(APART + pause.node, pause.time_s),
            )
        gone = [node for node in old.members if node in given_up]
        for node, pause_s in self.expulsions.settle(gone):
            out.append(SetTimer(PAUSE + node, pause_s))
        if given_up:
            self.quarrels.settling = True
            out.append(SetTimer(SETTLE, self._config.settle_s))
        if self.expulsions.any or self.apart.any:
            out.append(SetTimer(FORGIVE, self._config.forgive_s))
        return out

    def forgive(self, members: Iterable[NodeId]) -> None:
        """A view has lasted: its members have a clean record."""
        members = tuple(members)
        self.expulsions.forgive(members)
        self.apart.forgive(members)

    def resume(self, timer: str) -> None:
        """A pause is over, as its timer says."""
        if timer.startswith(PAUSE):
            self.expulsions.resume(timer.removeprefix(PAUSE))
        elif timer.startswith(APART):
            self.apart.resume(timer.removeprefix(APART))
