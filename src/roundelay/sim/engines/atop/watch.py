"""Invariants of ATOP over all hosts: tags, weights, and that places follow from them alone."""

from collections import defaultdict
from typing import Any

from roundelay.core.ids import NodeId, ViewId
from roundelay.links.messages import Data
from roundelay.protocols.atop.atop import SLOT_BITS, AtopEngine
from roundelay.protocols.atop.slots import Owner, Weights, owners, valid
from roundelay.sim.engines.links_watch import OneOrderWatch, engine_in
from roundelay.sim.world import World


class SlotList:
    """The slots of each member in a distribution, computed from the list of owners alone."""

    def __init__(self, view: int, distribution: int, weights: Weights) -> None:
        self._owner: Owner = owners(view, distribution, weights)
        self._slots: list[list[int]] = [[] for _ in weights]
        self._end = 0

    def slot(self, member: int, number: int) -> int:
        """The slot of that number, from 0, among those of a member."""
        mine = self._slots[member]
        while len(mine) <= number:
            self._slots[self._owner(self._end)].append(self._end)
            self._end += 1
        return mine[number]


class AtopWatch(OneOrderWatch):
    """Raises AssertionError at the first breach: of what every one order keeps, and of these.

    - A sender's tags never go back, and number its slots without gaps.
    - All that know of a distribution know the same weights: one for each member, at least 1.
    - A packet is delivered at the slot that its tag and the weights give.
    """

    def __init__(self) -> None:
        super().__init__()
        self._tags: dict[tuple[ViewId, int], tuple[int, int]] = defaultdict(lambda: (0, 0))
        """By view and place of the sender: the distribution and the number of its next content."""
        self._weights: dict[tuple[ViewId, int], Weights] = {}
        self._lists: dict[tuple[ViewId, int], SlotList] = {}

    def places(self, world: World, view: ViewId, data: Data[Any]) -> list[int]:
        tag = data.content.tag
        members = self.members(world, view)
        node = members[data.sender]
        distribution, number = self._tags[view, data.sender]
        assert tag.distribution >= distribution, f"{node} goes back to {tag} from d{distribution}"
        due = number if tag.distribution == distribution else 0
        assert tag.number == due, f"{node} tags a content {tag}, and {due} comes next"
        self._tags[view, data.sender] = (tag.distribution, tag.number + tag.count)
        if tag.weights is not None:
            self._check_known(node, view, tag.distribution, tag.weights, len(members))
        self._check_weights(world, view)
        slots = self._list(view, tag.distribution, len(members))
        first = tag.distribution << SLOT_BITS
        numbers = range(tag.number, tag.number + tag.count)
        return [first + slots.slot(data.sender, number) for number in numbers]

    def _check_weights(self, world: World, view: ViewId) -> None:
        """Check what all members that are still in a view know of its distributions."""
        for node in world.nodes:
            engine = engine_in(world, node, view)
            if isinstance(engine, AtopEngine):
                for distribution, weights in engine.atom.known.items():
                    self._check_known(node, view, distribution, weights, len(engine.view.members))

    def _check_known(
        self, node: NodeId, view: ViewId, distribution: int, weights: Weights, members: int
    ) -> None:
        first = self._weights.get((view, distribution))
        if first is None:
            assert valid(weights, members), f"{node} knows {weights} for {members} members"
            first = self._weights[view, distribution] = weights
        assert weights == first, f"{node} knows d{distribution} as {weights}, others as {first}"

    def _list(self, view: ViewId, distribution: int, members: int) -> SlotList:
        key = (view, distribution)
        if key not in self._lists:
            weights = self._weights[key] if distribution else (1,) * members
            self._lists[key] = SlotList(view.seq, distribution, weights)
        return self._lists[key]
