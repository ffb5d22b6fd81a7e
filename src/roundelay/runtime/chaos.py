"""A relay between real nodes that loses, delays, repeats and reorders datagrams.

Every ordered pair of nodes has a port of its own: the peers of node a say that node b is at the
port of (a, b), and the relay forwards what arrives there to b. So it knows sender and receiver of
every datagram without looking inside, and can cut one direction of one link.

What happens to a datagram is drawn from a seeded generator in the order of arrival. That order
depends on real time, so two runs with one seed are similar, not the same.
"""

import asyncio
import random
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import permutations
from typing import Any

from roundelay.core.ids import NodeId
from roundelay.transport.address import Address, SocketAddress, parse_address, resolve
from roundelay.transport.udp import UdpSocket

REORDER_S = 0.005
"""By how much a reordered datagram is delayed at most, in seconds. Too small: it still arrives
before the next one; too large: it counts as lost, and is repeated before it arrives."""
REPEAT_S = 0.002
"""By how much a copy is later than its original at most, in seconds. Too large: receivers have
forgotten the original, and the copy tests something else."""
TURN_DATAGRAMS = 64
"""Reads of one link in one turn of the event loop. Too small: many turns; too large: a busy link
makes the others wait."""


@dataclass(frozen=True, slots=True)
class Faults:
    """What happens to datagrams: shares are between 0 and 1, delays in seconds."""

    loss: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    delay_s: float = 0.0
    jitter_s: float = 0.0
    """The most that chance adds to the delay."""


class CommandError(ValueError):
    """A command that the relay does not understand; a sentence for the user."""


class Relay:
    """Carries datagrams between the nodes, from when it is opened until it is closed."""

    def __init__(
        self, nodes: Mapping[NodeId, str], faults: Faults | None = None, seed: int = 0
    ) -> None:
        """`nodes` maps names to real addresses."""
        self.nodes = {node: parse_address(text) for node, text in nodes.items()}
        self.faults = faults or Faults()
        self.cuts: set[tuple[NodeId, NodeId]] = set()
        """Links that carry nothing, each as sender and receiver."""
        self.carried = 0
        self.lost = 0
        self._random = random.Random(seed)
        self._sockets: dict[tuple[NodeId, NodeId], UdpSocket] = {}
        self._targets: dict[NodeId, tuple[SocketAddress]] = {}

    def open(self) -> None:
        """Bind a port for every ordered pair; AddressError if that fails."""
        loop = asyncio.get_running_loop()
        self._targets = {node: (resolve(address)[1],) for node, address in self.nodes.items()}
        for link in permutations(self.nodes, 2):
            sock = UdpSocket(Address("127.0.0.1", 0))
            self._sockets[link] = sock
            loop.add_reader(sock.fileno(), self._read, link, sock)

    def close(self) -> None:
        loop = asyncio.get_running_loop()
        for sock in self._sockets.values():
            loop.remove_reader(sock.fileno())
            sock.close()
        self._sockets.clear()

    def peers(self, node: NodeId) -> dict[NodeId, str]:
        """The `peers` to give to that node: its own address, and the relay's for the others."""
        table = {node: str(self.nodes[node])}
        for (sender, receiver), sock in self._sockets.items():
            if sender == node:
                table[receiver] = f"{sock.address[0]}:{sock.address[1]}"
        return dict(sorted(table.items()))

    def document(self) -> dict[str, Any]:
        """The nodes, with the peers that each was given, and the faults that hold now."""
        peers = {node: self.peers(node) for node in self.nodes}
        told = {"peers": peers, "cuts": sorted(self.cuts), **asdict(self.faults)}
        return told | {"carried": self.carried, "lost": self.lost}

    def command(self, line: str) -> str:
        """Carry out one command, and return the faults that hold now.

        loss 5% | duplicate 5% | reorder 5% | delay 2ms [JITTER] | cut a>b ... | partition a,b c |
        heal | status
        """
        verb, *words = line.split() or [""]
        match verb, words:
            case (("loss" | "duplicate" | "reorder"), [share]):
                self.faults = replace(self.faults, **{verb: _share(share)})
            case "delay", [delay, *jitter] if len(jitter) < 2:
                jitter_s = _seconds(jitter[0]) if jitter else 0.0
                self.faults = replace(self.faults, delay_s=_seconds(delay), jitter_s=jitter_s)
            case "cut", [_, *_]:
                self.cuts |= {self._link(word) for word in words}
            case "partition", [_, _, *_]:
                self.partition([word.split(",") for word in words])
            case "heal", []:
                self.faults, self.cuts = Faults(), set()
            case "status", []:
                pass
            case _:
                raise CommandError(
                    f"{line.strip()!r} is no command; write loss 5%, duplicate 5%, reorder 5%, "
                    "delay 2ms, cut a>b, partition a,b c, heal or status"
                )
        return self._summary()

    def partition(self, components: Iterable[Iterable[NodeId]]) -> None:
        """Cut every link between different components, and mend all other links."""
        side: dict[NodeId, int] = {}
        for number, component in enumerate(components):
            for node in component:
                if node not in self.nodes or node in side:
                    raise CommandError(
                        f"{node!r} is no node, or is named twice; there are: "
                        f"{', '.join(self.nodes)}"
                    )
                side[node] = number
        self.cuts = {(a, b) for a, b in permutations(self.nodes, 2) if side.get(a) != side.get(b)}

    def _link(self, word: str) -> tuple[NodeId, NodeId]:
        sender, arrow, receiver = word.partition(">")
        if not arrow or (sender, receiver) not in self._sockets:
            raise CommandError(f"{word!r} is no link between two nodes; write it as a>b")
        return sender, receiver

    def _summary(self) -> str:
        f = self.faults
        cuts = " ".join(f"{a}>{b}" for a, b in sorted(self.cuts)) or "none"
        return (
            f"loss {f.loss:.0%} duplicate {f.duplicate:.0%} reorder {f.reorder:.0%} "
            f"delay {f.delay_s * 1e3:g}ms cuts {cuts}; carried {self.carried} lost {self.lost}"
        )

    def _read(self, link: tuple[NodeId, NodeId], sock: UdpSocket) -> None:
        for _ in range(TURN_DATAGRAMS):
            try:
                datagrams = sock.receive()
            except OSError:
                return
            for data in datagrams:
                self._carry(link, sock, data)

    def _carry(self, link: tuple[NodeId, NodeId], sock: UdpSocket, data: bytes) -> None:
        faults, chance = self.faults, self._random.random
        if link in self.cuts or (faults.loss and chance() < faults.loss):
            self.lost += 1
            return
        delay_s = faults.delay_s
        if faults.jitter_s:
            delay_s += chance() * faults.jitter_s
        if faults.reorder and chance() < faults.reorder:
            delay_s += REORDER_S * chance()
        self._forward(sock, data, link[1], delay_s)
        if faults.duplicate and chance() < faults.duplicate:
            self._forward(sock, data, link[1], delay_s + REPEAT_S * chance())

    def _forward(self, sock: UdpSocket, data: bytes, to: NodeId, delay_s: float) -> None:
        self.carried += 1
        if delay_s:
            loop = asyncio.get_running_loop()
            loop.call_later(delay_s, sock.send, data, self._targets[to])
        else:
            sock.send(data, self._targets[to])


def _share(text: str) -> float:
    """`5%` or `0.05`."""
    number = re.fullmatch(r"(\d+(?:\.\d+)?)(%?)", text)
    share = float(number[1]) / (100 if number[2] else 1) if number else 2.0
    if share > 1:
        raise CommandError(f"{text!r} is no share; write it as 5% or 0.05")
    return share


def _seconds(text: str) -> float:
    """`2ms`, `500us` or `0.1s`."""
    number = re.fullmatch(r"(\d+(?:\.\d+)?)(us|ms|s)", text)
    if number is None:
        raise CommandError(f"{text!r} is no time; write it as 2ms, 500us or 0.1s")
    return float(number[1]) * {"us": 1e-6, "ms": 1e-3, "s": 1.0}[number[2]]
