"""A static group of engines whose frames and timers are in one's hand.

A frame waits until it is delivered or dropped, and a timer expires when one says so, as in a
scenario on the network `manual`. What is done is noted in the words of scenarios, so that a
scenario can do the same.
"""

from collections.abc import Callable, Sequence
from typing import Any

from roundelay.core.contract import Engine, Origin
from roundelay.core.effects import CancelTimer, Effect, Send, SetTimer
from roundelay.core.ids import NodeId, Packet, Service, Span, View, ViewId
from roundelay.group.engines import engine_factory


def names(size: int) -> tuple[NodeId, ...]:
    """Of the members, in the order of the ring: 1, 2, 3 ..."""
    width = len(str(size))
    return tuple(f"{place:0{width}}" for place in range(1, size + 1))


class Queue:
    """The outlet of one engine: requests that wait."""

    traced = False

    def __init__(self) -> None:
        self.packets: list[Packet] = []

    @property
    def waiting(self) -> int:
        return len(self.packets)

    def pull(self) -> Packet | None:
        return self.packets.pop(0) if self.packets else None


class Group:
    """Members of a static group, by place."""

    def __init__(self, engine: str, size: int, options: dict[str, str]) -> None:
        self.nodes = names(size)
        self.view = View(ViewId(0, self.nodes[0]), self.nodes, primary=True)
        factory = engine_factory(engine, options)
        self._queues = [Queue() for _ in self.nodes]
        self.engines: list[Engine[Any]] = [
            factory(node, queue) for node, queue in zip(self.nodes, self._queues, strict=True)
        ]
        self._origins = [Origin("audit", node, 0, self.view.id) for node in self.nodes]
        self._places = {node: i for i, node in enumerate(self.nodes)}
        self.timers: list[set[str]] = [set() for _ in self.nodes]
        self.dead: set[int] = set()
        self.held: list[tuple[int, int, Any]] = []
        """Copies of frames under way, oldest first: from whom, for whom, and what."""
        self.told: list[str] = []
        """What was done, as commands of a scenario."""
        for place, member in enumerate(self.engines):
            self._perform(place, member.start(self.view))

    def submit(self, place: int, count: int) -> None:
        """The application of a member submits some messages, one request each."""
        for number in range(count):
            span = Span(self.nodes[place], 0, number)
            self._queues[place].packets.append(Packet(span, Service.AGREED, b""))
            self._perform(place, self.engines[place].submit())

    def under_way(self, sender: int, wanted: Callable[[Any], bool]) -> list[tuple[int, Any]]:
        """Frames of one member that wait, with their receivers."""
        return [(to, m) for origin, to, m in self.held if origin == sender and wanted(m)]

    def deliver(self, sender: int, to: int, message: Any) -> None:
        """Let a copy that waits arrive."""
        self._take("deliver", sender, to, message)
        if to not in self.dead:
            self._perform(to, self.engines[to].receive(self._origins[sender], message))

    def drop(self, sender: int, to: int, message: Any) -> None:
        """Lose a copy that waits."""
        self._take("drop", sender, to, message)

    def expire(self, place: int, timer: str) -> None:
        """Let a timer expire that runs."""
        self.timers[place].remove(timer)
        self.told.append(f"expire {self.nodes[place]} {timer}")
        self._perform(place, self.engines[place].expire(timer))

    def crash(self, place: int) -> None:
        self.dead.add(place)
        self.told.append(f"crash {self.nodes[place]}")

    def _take(self, verb: str, sender: int, to: int, message: Any) -> None:
        skip = 0
        for i, (origin, receiver, waiting) in enumerate(self.held):
            if origin == sender and receiver == to:
                if waiting is message:
                    del self.held[i]
                    break
                skip += 1
        else:
            raise ValueError(f"no such frame from {sender} to {to}")
        what = f" skip={skip}" if skip else ""
        self.told.append(f"{verb} {self.nodes[to]} from={self.nodes[sender]}{what} count=1")

    def _perform(self, place: int, effects: Sequence[Effect[Any]]) -> None:
        for effect in effects:
            if type(effect) is Send:
                if effect.to is not None:
                    self.held.append((place, self._places[effect.to], effect.message))
                    continue
                for to in range(len(self.nodes)):
                    if to != place:
                        self.held.append((place, to, effect.message))
            elif type(effect) is SetTimer:
                self.timers[place].add(effect.timer)
            elif type(effect) is CancelTimer:
                self.timers[place].discard(effect.timer)
