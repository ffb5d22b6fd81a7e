"""Whether nodes were set up alike: they tell their settings in Joins, and others compare them.

Nodes that run different engines, or cut their packets to different sizes, do not understand each
other in a view. Each would be given up by the other soon after they met, and met again, for ever.
So every node tells its settings, as a text, in the frames that bring nodes together, and does not
merge with a node whose settings differ. The text is for people; here it is only compared.

A node of which only engine frames are heard is sent a Join once, like any stranger. If its settings
differ, it answers with a Merge that tells them, and its frames are ignored from then on.
"""

from typing import Any

from roundelay.core.contract import Origin
from roundelay.core.effects import Differ, Effect, Send
from roundelay.core.ids import NodeId, Terms, ViewId
from roundelay.membership.messages import Join, Merge


class Agreement:
    """Compares this node's terms with those of others."""

    def __init__(self, terms: Terms, most: int) -> None:
        self.terms = terms
        self._most = most
        self._others: dict[NodeId, int] = {}
        """Nodes that told other settings, and the incarnation that did."""

    def compare(
        self, origin: Origin, m: Join | Merge, view: ViewId
    ) -> tuple[bool, list[Effect[Any]]]:
        """Whether the sender of a frame has the same settings; and the effects that follow. A later
        frame with the same settings corrects a forged one with others."""
        ours, theirs = self.terms, m.terms
        if theirs == ours:
            if origin.node in self._others:
                del self._others[origin.node]
            return True, []
        if theirs.settings == ours.settings:
            self._others.pop(origin.node, None)
            return True, [Differ(origin.node, theirs, refused=False)]
        if len(self._others) >= self._most:
            self._others.clear()  # Bounded: strangers may have any number of names.
        self._others[origin.node] = origin.incarnation
        effects: list[Effect[Any]] = [Differ(origin.node, theirs, refused=True)]
        if isinstance(m, Join):
            effects.append(Send(Merge(ours), view, origin.node))
        return False, effects

    def differs(self, origin: Origin) -> bool:
        """Whether this incarnation of a node told other settings."""
        return self._others.get(origin.node) == origin.incarnation
