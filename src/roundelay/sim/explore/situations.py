"""Where explorations begin: small groups at moments when a lot can go wrong.

A situation is the beginning of a scenario. Its timers are a LAN's, shortened so that little
happens besides what matters: two retransmissions fit before a token is lost, two Joins before a
silent node is given up. Every link has a latency of its own, so that no two things happen at
once by accident.
"""

from collections.abc import Callable
from dataclasses import dataclass

from roundelay.core.ids import NodeId

Nodes = tuple[NodeId, ...]

NODES_MAX = 5

_ENGINES = {
    "totem": "engine totem token_loss_s=0.025 token_retransmit_s=0.015",
    "fifo": "engine fifo silence_s=0.06",
}
"""How each engine that can be explored is set up."""

PROTOCOLS = tuple(_ENGINES)

_MEMBERSHIP = "membership join_s=0.02 consensus_s=0.03 ring_loss_s=0.025 ring_retransmit_s=0.015"


@dataclass(frozen=True, slots=True)
class Situation:
    """A named beginning."""

    name: str
    story: str
    """What has happened, in a sentence."""
    commands: Callable[[Nodes], list[str]]
    """What follows the creation of the nodes, up to the point from which on all is explored."""


def names(count: int) -> Nodes:
    """Nodes a, b, c ..."""
    return tuple(chr(ord("a") + i) for i in range(count))


def header(protocol: str, nodes: Nodes) -> list[str]:
    """The set-up, up to nodes that are not started yet."""
    links = [(a, b) for a in nodes for b in nodes if a != b]
    latencies = [f"{a}>{b}={100 + 3 * i}us" for i, (a, b) in enumerate(links)]
    return [
        _ENGINES[protocol],
        _MEMBERSHIP,
        f"network wan {' '.join(latencies)}",
        f"nodes {' '.join(nodes)} down",
    ]


def _start(nodes: Nodes) -> list[str]:
    return [
        f"start {' '.join(nodes)}",
        f"submit {nodes[0]} m1",
        f"submit {nodes[-1]} m2 safe",
    ]


def _together(nodes: Nodes) -> list[str]:
    """All in one view, which is idle."""
    return [f"start {' '.join(nodes)}", "run 5ms"]


def _messages(nodes: Nodes) -> list[str]:
    return [
        *_together(nodes),
        f"submit {nodes[0]} m1 safe",
        f"submit {nodes[-1]} m2",
    ]


def _crash(nodes: Nodes) -> list[str]:
    first, last = nodes[0], nodes[-1]
    others = ",".join(nodes[1:-1])
    return [
        *_together(nodes),
        f"lose DATA from={last} to={others}",
        f"submit {last} m1",
        "run 400us",
        f"submit {first} m2 safe",
        "run 300us",
        f"crash {last}",
        "lose none",
    ]


SITUATIONS = {
    situation.name: situation
    for situation in (
        Situation("start", "All nodes start at once, and two have a message.", _start),
        Situation("messages", "An idle view; two nodes submit a message, one of them safe.", _messages),
        Situation("crash", "", _crash),
    )
}
