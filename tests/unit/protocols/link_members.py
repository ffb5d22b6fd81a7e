"""Engines on links in one view of three, fed by hand."""

from collections.abc import Sequence
from typing import Any

from tests.unit.protocols.outlet import Queue

from roundelay.core.contract import Origin
from roundelay.core.effects import Deliver, Effect, Refuse, Send, Suspect
from roundelay.core.ids import Packet, Service, Span, View, ViewId
from roundelay.group.engines import describe
from roundelay.links.engine import LinkEngine

VIEW = View(ViewId(8, "a"), ("a", "b", "c"))
REST = View(ViewId(11, "a"), ("a", "b"), transitional=True)


def packet(node: str, number: int = 0, *, safe: bool = False) -> Packet:
    return Packet(Span(node, 0, number), Service.SAFE if safe else Service.AGREED, b"x")


def engine(
    protocol: str, node: str, waiting: Sequence[Packet] = (), **options: Any
) -> tuple[Any, Queue]:
    """An engine that was started, and its queue."""
    description = describe(protocol)
    queue = Queue()
    queue.packets += waiting
    made: LinkEngine[Any] = description.engine(node, queue, description.config(**options))
    made.start(VIEW)
    return made, queue


def hear(member: Any, node: str, message: object) -> list[Effect[Any]]:
    effects: list[Effect[Any]] = member.receive(Origin("g", node, 0, VIEW.id), message)
    return effects


def sent(effects: Sequence[Effect[Any]]) -> list[Any]:
    return [effect.message for effect in effects if isinstance(effect, Send)]


def delivered(effects: Sequence[object]) -> list[str]:
    return [str(effect.packet.span) for effect in effects if isinstance(effect, Deliver)]


def refused(effects: Sequence[object]) -> bool:
    return any(isinstance(effect, Refuse) for effect in effects)


def suspicions(effects: Sequence[object]) -> list[str]:
    return [effect.reason for effect in effects if isinstance(effect, Suspect)]


def end(*members: Any) -> list[tuple[list[str], list[str]]]:
    """a and b, or those given, leave the view together; what each delivers in it and behind it."""
    summaries = {member.node: member.freeze() for member in members}
    items = [item for member in members for item in member.seal(summaries)]
    for member in members:
        for item in items:
            member.absorb(item)
    ends = [member.conclude(summaries, REST, tuple(summaries)) for member in members]
    return [(delivered(end.regular), delivered(end.transitional)) for end in ends]
