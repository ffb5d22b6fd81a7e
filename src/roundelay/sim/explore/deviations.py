"""Deviations from the plain run, and the scenario commands that cause them."""

from enum import StrEnum

from roundelay.core.ids import NodeId
from roundelay.core.value import value
from roundelay.sim.faults import Fate, copy_name
from roundelay.sim.transmission import Transmission
from roundelay.sim.units import show_ns
from roundelay.sim.world import Storage


class Kind(StrEnum):
    """What can be done to a run."""

    LOSE = "lose"
    DELAY = "delay"
    COPY = "copy"
    EXPIRE = "expire"
    CRASH = "crash"
    RESTART = "restart"


@value
class Deviation:
    """One deviation at one time."""

    kind: Kind
    time: int
    """When it takes effect."""
    fate: str = ""
    """The command that decides the fate of a copy of a frame; it is given before the nodes
    start."""
    event: str = ""
    """Or the command that acts at `time`, before everything else that happens then."""

    def __str__(self) -> str:
        return self.fate or self.event


def lose(time: int, transmission: Transmission, receiver: NodeId) -> Deviation:
    return _decide(Kind.LOSE, time, transmission, receiver, Fate(lost=True))


def delay(time: int, transmission: Transmission, receiver: NodeId, by: int) -> Deviation:
    return _decide(Kind.DELAY, time, transmission, receiver, Fate(delay_ns=by))


def copy(time: int, transmission: Transmission, receiver: NodeId, after: int) -> Deviation:
    """A second arrival, `after` nanoseconds after the first one at `time`."""
    return _decide(Kind.COPY, time, transmission, receiver, Fate(copy_ns=after))


def expire(time: int, node: NodeId, timer: str) -> Deviation:
    quoted = f"'{timer}'" if " " in timer else timer
    return _act(Kind.EXPIRE, time, f"expire {node} {quoted}")


def crash(time: int, node: NodeId, after: int, *, power: bool = False) -> Deviation:
    """A crash after `after` effects of what happens at `time`; with `power` of the whole machine,
    with nothing kept that was not synced."""
    fuse = f" after={after}" if after else ""
    return _act(Kind.CRASH, time, f"crash {node}{' power keep=0' if power else ''}{fuse}")


def restart(time: int, node: NodeId, storage: Storage) -> Deviation:
    return _act(Kind.RESTART, time, f"restart {node} storage={storage}")


def name(transmission: Transmission, receiver: NodeId) -> str:
    """What a scenario calls the copy of a frame on its way to one receiver."""
    return copy_name(transmission.sender, transmission.incarnation, transmission.number, receiver)


def _decide(
    kind: Kind, time: int, transmission: Transmission, receiver: NodeId, fate: Fate
) -> Deviation:
    # The apostrophe before an incarnation would begin a quotation.
    return Deviation(kind, time, fate=f'fate "{name(transmission, receiver)}" {fate}')


def _act(kind: Kind, time: int, command: str) -> Deviation:
    return Deviation(kind, time, event=f"at {show_ns(time)} {command}")
