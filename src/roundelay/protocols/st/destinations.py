"""Whom packets are for, by the places of members in their view."""

from collections.abc import Sequence

from roundelay.core.ids import NodeId, Packet


class Destinations:
    """The members of one view that packets are for. Few sets of names come again and again, so
    what they mean is kept."""

    def __init__(self, members: Sequence[NodeId], kept_max: int) -> None:
        self.everybody = tuple(range(len(members)))
        self.index = {member: i for i, member in enumerate(members)}
        self._kept: dict[tuple[NodeId, ...], tuple[int, ...]] = {}
        self._kept_max = 4 * kept_max

    def __call__(self, packet: Packet) -> tuple[int, ...]:
        """The members that a packet is for, in their order; none if nobody of the view is."""
        names = packet.destinations
        if names is None:
            return self.everybody
        places = self._kept.get(names)
        if places is None:
            found = {self.index[name] for name in names if name in self.index}
            places = self._kept[names] = tuple(sorted(found))
            if len(self._kept) > self._kept_max:
                del self._kept[next(iter(self._kept))]
        return places
