"""Loads: the messages that applications submit, drawn from the seed."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from roundelay.core.ids import NodeId, Service


class Submission(NamedTuple):
    """One message of an application."""

    time_ns: int
    node: NodeId
    payload: bytes
    service: Service
    destinations: tuple[NodeId, ...] | None
    appended: bool = False
    """Whether it goes into the replicated log."""


@dataclass(frozen=True, slots=True)
class Load:
    """Each sender submits `rate_per_s` messages a second on average, at exponentially distributed
    intervals, or at equal ones if `periodic`."""

    senders: tuple[NodeId, ...]
    messages: int
    """The number of messages of all senders together."""
    rate_per_s: float = 100.0
    size_bytes: int = 64
    periodic: bool = False
    safe: float = 0.0
    """Share of messages submitted as safe."""
    subset: float = 0.0
    """Share of messages for a random subset of the group instead of all."""

    append: float = 0.0
    """Share of messages that are appended to the replicated log."""

    def draw(self, seed: int, start_ns: int, nodes: tuple[NodeId, ...]) -> Iterator[Submission]:
        """The submissions in order of time, the same for the same seed and start."""
        random = Random(f"roundelay/{seed}/load/{start_ns}")
        gap_ns = 1e9 / self.rate_per_s
        due = {
            sender: start_ns + round(gap_ns * (i + 1) / len(self.senders))
            if self.periodic
            else start_ns + round(random.expovariate(1.0) * gap_ns)
            for i, sender in enumerate(self.senders)
        }
        for number in range(self.messages):
            sender = min(due, key=lambda node: (due[node], node))
            service = Service.SAFE if random.random() < self.safe else Service.AGREED
            destinations = None
            if random.random() < self.subset:
                chosen = random.sample(nodes, random.randint(1, len(nodes)))
                destinations = tuple(sorted(chosen))
            payload = b"%d" % number
            payload += bytes(max(0, self.size_bytes - len(payload)))
            appended = bool(self.append) and random.random() < self.append
            yield Submission(due[sender], sender, payload, service, destinations, appended)
            gap = gap_ns if self.periodic else random.expovariate(1.0) * gap_ns
            due[sender] += max(1, round(gap))
