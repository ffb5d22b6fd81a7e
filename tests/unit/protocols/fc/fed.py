"""Members that run FC in one view, fed by hand or by each other."""

from collections import deque
from collections.abc import Sequence
from typing import Any

from tests.unit.protocols.outlet import Queue

from roundelay.core.contract import Origin
from roundelay.core.effects import CancelTimer, Deliver, Effect, Refuse, Send, SetTimer, Suspect
from roundelay.core.ids import Packet, Service, Span, View, ViewId
from roundelay.protocols.fc.config import Config
from roundelay.protocols.fc.fc import Engine
from roundelay.protocols.fc.messages import FIRST_EPOCH, ROOT, Dec, Req, Run

SMALL: dict[str, Any] = {"window_packets": 4, "batch_packets": 4, "buffer_packets": 16}
"""Limits that forged frames soon reach."""


def packet(node: str, number: int = 0, *, safe: bool = False) -> Packet:
    return Packet(Span(node, 0, number), Service.SAFE if safe else Service.AGREED, b"x")


def dec(maker: int, number: int = 1, *runs: Run, **fields: Any) -> Dec:
    """A decision as members of a view of three make it, apart from what is given."""
    made: dict[str, Any] = {
        "version": 1,
        "ring": (0, 1, 2),
        "evolved": False,
        "epoch": FIRST_EPOCH,
        "parent": ROOT._replace(number=number - 1),
        "have": (0, 0, 0),
        "confirmed": ROOT,
    }
    return Dec(maker, runs, number, **{**made, **fields})


class Fed:
    """One member: what it was told to do, and what it did."""

    def __init__(
        self, node: str, nodes: str = "abc", *, static: bool = False, traced: bool = True, **options
    ) -> None:
        self.view = View(ViewId(0 if static else 8, nodes[0]), tuple(nodes))
        self.node = node
        self.queue = Queue(traced=traced)
        self.engine: Any = Engine(node, self.queue, Config(**options))
        self.now = 0.0
        self.timers: dict[str, float] = {}
        """When each expires."""
        self.delivered: list[Deliver] = []
        self.suspected: list[Suspect] = []
        self.submitted = 0
        self.started = self.engine.start(self.view)
        self.note(self.started)

    def submit(self, *, safe: bool = False) -> list[Effect[Any]]:
        self.submitted += 1
        self.queue.packets.append(packet(self.node, self.submitted, safe=safe))
        return self.note(self.engine.submit())

    def hear(self, peer: str, *messages: Any) -> list[Effect[Any]]:
        """Frames of a peer, all at once if there are several."""
        origin = Origin("g", peer, 0, self.view.id)
        if len(messages) == 1:
            return self.note(self.engine.receive(origin, messages[0]))
        return self.note(self.engine.receive_many(origin, messages))

    def expire(self, timer: str) -> list[Effect[Any]]:
        self.timers.pop(timer, None)
        return self.note(self.engine.expire(timer))

    def note(self, effects: Sequence[Effect[Any]]) -> list[Effect[Any]]:
        for effect in effects:
            match effect:
                case SetTimer():
                    self.timers[effect.timer] = self.now + effect.delay_s
                case CancelTimer():
                    self.timers.pop(effect.timer, None)
                case Deliver():
                    self.delivered.append(effect)
                case Suspect():
                    self.suspected.append(effect)
        return list(effects)

    def refuses(self, peer: str, message: Any) -> bool:
        """Whether this is refused, and changes nothing that is said or delivered."""
        return [type(effect) for effect in self.hear(peer, message)] == [Refuse]


class Circle:
    """Members that hear each other at once and in order, except for those that are cut off."""

    def __init__(self, nodes: str, deaf: str = "", **options: Any) -> None:
        self.members = {node: Fed(node, nodes, **options) for node in nodes}
        self.deaf = deaf
        self.said: list[tuple[str, Any]] = []
        """What was broadcast, and by whom."""
        self._way: deque[tuple[str, str, Any]] = deque()
        for node, member in self.members.items():
            self._send(node, member.started)

    def submit(self, node: str, *, safe: bool = False) -> None:
        self._send(node, self.members[node].submit(safe=safe))

    def run(self, hops: int) -> None:
        """Let so many frames arrive; where there is none, the next timer expires."""
        for _ in range(hops):
            if self._way:
                sender, to, message = self._way.popleft()
                self._send(to, self.members[to].hear(sender, message))
                continue
            awake = [node for node in self.members if node not in self.deaf]
            due = [(at, n, timer) for n in awake for timer, at in self.members[n].timers.items()]
            now, node, timer = min(due)
            for member in self.members.values():
                member.now = now
            self._send(node, self.members[node].expire(timer))

    def _send(self, node: str, effects: Sequence[Effect[Any]]) -> None:
        for effect in effects:
            if not isinstance(effect, Send):
                continue
            if effect.to is None:
                self.said.append((node, effect.message))
            for to in self.members if effect.to is None else (effect.to,):
                if to != node and to not in self.deaf and node not in self.deaf:
                    self._way.append((node, to, effect.message))


def numbers(sender: int, first: int, count: int = 1) -> Run:
    return Run(sender, first, count)


def req(sender: int, number: int, *, nodes: str = "abc", safe: bool = False) -> Req:
    return Req(sender, number, packet(nodes[sender], number, safe=safe))
