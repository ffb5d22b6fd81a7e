"""Deviations from the plain course of a run, and how a scenario says them."""

from enum import StrEnum

from roundelay.core.ids import NodeId
from roundelay.core.value import value
from roundelay.sim.faults import Fate, copy_name
from roundelay.sim.host import Transmission
from roundelay.sim.units import show_ns


class Kind(StrEnum):
    """What can be done to a run."""

    LOSE = "lose"
    """A frame never arrives at one receiver."""
    DELAY = "delay"
    """It arrives, but later than others sent after it."""
    COPY = "copy"
    """It arrives on time, and again later."""
    EXPIRE = "expire"
    """A timer runs out early."""
    CRASH = "crash"
    """A node stops, between two effects."""
    RESTART = "restart"
    """A node stops and starts again."""


@value
class Deviation:
    """One of them, at its place."""

    kind: Kind
    time: int
    fate: str = ""
    """The command that decides about a frame; it stands before the nodes start."""
    events: tuple[str, ...] = ()
    """The commands that act at a time."""

    def __str__(self) -> str:
        return "; ".join((*([self.fate] if self.fate else []), *self.events))


def frame(kind: Kind, time: int, transmission: Transmission, receiver: NodeId, fate: Fate) -> Deviation:
    name = name_of(transmission, receiver)
    return Deviation(kind, time, f"fate {name} {fate}")


def name_of(transmission: Transmission, receiver: NodeId) -> str:
    """The copy of a frame on its way to one receiver, as scenarios name it."""
    return copy_name(
        transmission.sender, transmission.incarnation, transmission.packet, receiver
    )


def expire(time: int, node: NodeId, timer: str) -> Deviation:
    said = f"'{timer}'" if " " in timer else timer
    return Deviation(Kind.EXPIRE, time, events=(f"at {show_ns(time)} expire {node} {said}",))


def crash(time: int, node: NodeId, after: int) -> Deviation:
    fuse = f" after={after}" if after else ""
    return Deviation(Kind.CRASH, time, events=(f"at {show_ns(time)} crash {node}{fuse}",))


def restart(time: int, node: NodeId, storage: str) -> Deviation:
    event = f"at {show_ns(time)} restart {node} storage={storage}"
    return Deviation(Kind.RESTART, time, events=(event,))
