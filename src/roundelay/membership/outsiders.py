"""Which outsiders a node does not merge with for now: four reasons, asked for in one place.

A node that does not receive (`expulsions`), a link that carries nothing (`broken_links`), and the
Gather that led to the present view (`rejections`) each make a node leave others alone for a while.
Other settings (`terms`) do so for as long as they differ.
"""

from collections.abc import Iterable

from roundelay.core.contract import Origin
from roundelay.core.effects import SetTimer, Suspect
from roundelay.core.ids import NodeId, Terms, View
from roundelay.membership.broken_links import BrokenLinks
from roundelay.membership.config import APART, FORGIVE, PAUSE, SETTLE, MembershipConfig
from roundelay.membership.expulsions import Expulsions
from roundelay.membership.messages import Join
from roundelay.membership.rejections import Rejections
from roundelay.membership.terms import Agreement


class Outsiders:
    """The reasons of one node not to merge with others."""

    def __init__(self, me: NodeId, config: MembershipConfig, terms: Terms) -> None:
        most = 4 * config.members_max
        self.expulsions = Expulsions(config.pause_s, config.pause_max_s)
        self.rejections = Rejections(config.members_max)
        self.broken_links = BrokenLinks(me, config.pause_s, config.apart_max_s, most)
        self.agreement = Agreement(terms, most)
        self._me = me
        self._config = config

    def note_incarnation(self, origin: Origin) -> None:
        """A frame of a node came; if the node restarted, nothing is held against it."""
        self.expulsions.note_incarnation(origin)
        self.broken_links.note_incarnation(origin)

    def may_merge(self, origin: Origin) -> bool:
        """Whether an engine's frame of an outsider may end the present view."""
        return not self.rejections.concern(origin) and origin.node not in self.expulsions.paused

    def ignores_join(self, origin: Origin, m: Join, view: View) -> bool:
        """Whether the Join of an outsider that finds us in a view does not concern it: the outsider
        still gives up one of us, or has a pause because it does not receive."""
        if not set(m.fails).isdisjoint(view.members):
            self.rejections.note(origin)
            return True
        self.rejections.remove(origin.node)
        return origin.node in self.expulsions.paused

    def note_receive_failure(self, node: NodeId, m: Join, *, companion: bool) -> None:
        """A Join gives up nodes that others hear. If it gives us up, its sender does not hear us;
        if a companion gives up others, those do not receive."""
        if self._me in m.fails:
            self.expulsions.note_deaf((node,))
        elif companion:
            self.expulsions.note_deaf(m.fails)

    def note_install(
        self, view: View, old: View, fails: Iterable[NodeId]
    ) -> list[Suspect | SetTimer]:
        """A view was installed without `fails`; returns the pauses that begin, as timers."""
        given_up = set(fails)
        out: list[Suspect | SetTimer] = []
        for pause in self.broken_links.note_install(view.members, given_up):
            out += (
                Suspect((pause.node,), pause.reason),
                SetTimer(APART + pause.node, pause.time_s),
            )
        gone = [node for node in old.members if node in given_up]
        for node, pause_s in self.expulsions.note_install(gone):
            out.append(SetTimer(PAUSE + node, pause_s))
        if given_up:
            self.rejections.settling = True
            out.append(SetTimer(SETTLE, self._config.settle_s))
        if self.expulsions.any or self.broken_links.any:
            out.append(SetTimer(FORGIVE, self._config.forgive_s))
        return out

    def forgive(self, members: Iterable[NodeId]) -> None:
        """A view has lasted: nothing is held against its members."""
        members = tuple(members)
        self.expulsions.forgive(members)
        self.broken_links.forgive(members)

    def end_pause(self, timer: str) -> None:
        """The timer of a pause ran out."""
        if timer.startswith(PAUSE):
            self.expulsions.end_pause(timer.removeprefix(PAUSE))
        elif timer.startswith(APART):
            self.broken_links.end_pause(timer.removeprefix(APART))
