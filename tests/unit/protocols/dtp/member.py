"""One member of a DTP group, driven input by input."""

from tests.unit.protocols.outlet import Queue

from roundelay.core.contract import Origin
from roundelay.core.effects import Deliver, Kind, Record, Send
from roundelay.core.ids import Packet, Service, Span, View, ViewId
from roundelay.protocols.dtp.engine import DtpEngine
from roundelay.protocols.dtp.messages import Msg
from roundelay.protocols.dtp.policy import DTP, PINWHEEL, Config, PinwheelConfig, Policy

ABC = View(ViewId(8, "a"), ("a", "b", "c"))
STATIC = View(ViewId(0, "a"), ("a", "b", "c"))


def packet(node="a", number=0, service=Service.AGREED) -> Packet:
    return Packet(Span(node, 0, number), service, b"x")


def msg(sender: int, number: int, held=0, service=Service.AGREED, members="abcde") -> Msg:
    return Msg(sender, number, held, packet(members[sender], number, service))


class Member:
    """An engine and what it has done so far."""

    def __init__(self, node="a", view=ABC, policy: Policy = DTP, *, traced=True, **options) -> None:
        self.queue = Queue(traced=traced)
        kind = PinwheelConfig if policy is PINWHEEL else Config
        self.engine = DtpEngine(node, self.queue, kind(**options), policy=policy)
        self.view = view
        self.said = 0
        self.log: list[Deliver] = []
        self._did(self.engine.start(view))

    def say(self, count=1, service=Service.AGREED):
        for _ in range(count):
            self.queue.packets.append(packet(self.engine.node, self.said, service))
            self.said += 1
        return self._did(self.engine.submit())

    def hear(self, peer: str, message):
        return self._did(self.engine.receive(Origin("g", peer, 0, self.view.id), message))

    def expire(self, timer: str):
        return self._did(self.engine.expire(timer))

    def _did(self, out):
        self.out = out
        self.log += [effect for effect in out if isinstance(effect, Deliver)]
        return out

    @property
    def sent(self):
        return [effect.message for effect in self.out if isinstance(effect, Send)]

    @property
    def delivered(self):
        return [e.key[0] for e in self.out if isinstance(e, Deliver) and e.key is not None]

    def recorded(self, kind: Kind):
        return [e for e in self.out if isinstance(e, Record) and e.kind is kind]
