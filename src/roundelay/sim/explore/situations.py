"""Where explorations begin: a small group at a moment when much can go wrong.

A situation is the beginning of a scenario. Timers are a LAN's, but cut short, so that little
happens besides what matters: before a token is given up, it is sent again once, and before a silent
node is given up, a Join is. Every link has a latency of its own, so that hardly two things happen
at once.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise

from roundelay.core.ids import NodeId
from roundelay.group.engines import describe
from roundelay.sim.scenario import DASHES
from roundelay.sim.simulation import simulation_of

Nodes = tuple[NodeId, ...]

NODES_MIN, NODES_MAX = 3, 5


@dataclass(frozen=True, slots=True)
class Explored:
    """What situations ask about the engine that is explored."""

    patience: str
    """How long to wait after a node was cut off, so that it is just about to suspect somebody."""
    carrier: str
    """The name of the frames that carry packets."""
    token: bool
    """Whether a node that wants to send waits for a token."""


MEMBERSHIP = "membership join_s=0.02 consensus_s=0.03 ring_loss_s=0.025 ring_retransmit_s=0.015"


JOURNAL = ["journal", "fsync always sync=200us"]
"""How nodes keep a log: their disks take longer than a frame, and not much longer."""


@dataclass(frozen=True, slots=True)
class Situation:
    """A named beginning."""

    name: str
    story: str
    """What has happened, in a sentence."""
    commands: Callable[[Nodes, Explored], list[str]]
    """What follows the creation of the nodes, up to the point from which on all is explored."""
    deviations: int = 1
    """How many are made unless somebody asks for more: as many as take a minute or two."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The beginning of a scenario."""

    header: list[str]
    """Up to nodes that are not started yet."""
    commands: list[str]

    def text(self, deviations: Iterable[str] = (), rest: Iterable[str] = ()) -> str:
        """The scenario. Deviations come first: what is to be done at some time is then done
        before everything else that happens at that time."""
        return "\n".join([*self.header, *deviations, *self.commands, *rest, DASHES, ""])


def names(count: int) -> Nodes:
    """Nodes a, b, c ..."""
    return tuple(chr(ord("a") + i) for i in range(count))


def setting(protocol: str, situation: Situation, nodes: Nodes, *, log: bool = False) -> Setting:
    """How a situation is brought about; with `log` by nodes that keep a log, to which messages are
    appended."""
    tuning, engine = simulation_of(protocol).tuning, describe(protocol)
    assert tuning is not None, f"{protocol} cannot be explored"
    links = [f"{a}>{b}={us}us" for (a, b), us in _latencies(nodes).items()]
    header = [
        f"engine {protocol} {tuning.options}",
        MEMBERSHIP,
        f"network wan {' '.join(links)}",
        *(JOURNAL if log else []),
        f"nodes {' '.join(nodes)} down",
    ]
    explored = Explored(tuning.patience, engine.data_tags[0], engine.has_token)
    commands = situation.commands(nodes, explored)
    if log:
        commands = [_appended(command) for command in commands]
    return Setting(header, commands)


def _appended(command: str) -> str:
    """The command with an append in the place of a submission."""
    if not command.startswith("submit "):
        return command
    return command.replace("submit ", "append ").removesuffix(" safe")


def _latencies(nodes: Nodes) -> dict[tuple[NodeId, NodeId], int]:
    """Microseconds on the way from one node to another."""
    links = [(a, b) for a in nodes for b in nodes if a != b]
    return {link: 100 + 3 * i for i, link in enumerate(links)}


def _start(nodes: Nodes, engine: Explored) -> list[str]:
    return [
        f"start {' '.join(nodes)}",
        f"submit {nodes[0]} m1",
        f"submit {nodes[-1]} m2 safe",
    ]


def _messages(nodes: Nodes, engine: Explored) -> list[str]:
    # So soon after the start the token of recovery has not retired everywhere.
    return [
        f"start {' '.join(nodes)}",
        "run 5ms",
        f"submit {nodes[0]} m1 safe",
        f"submit {nodes[-1]} m2",
    ]


def _together(nodes: Nodes) -> list[str]:
    """All in one view, which is idle."""
    return [f"start {' '.join(nodes)}", "run 18ms"]


def _crash(nodes: Nodes, engine: Explored) -> list[str]:
    first, last, others = nodes[0], nodes[-1], nodes[1:-1]
    us = 0
    if engine.token:
        # It rests with the first, is called for by the last, and comes there by all the others.
        way = [(last, first), *pairwise(nodes)]
        us = sum(_latencies(nodes)[link] for link in way)
    return [
        *_together(nodes),
        f"lose {engine.carrier} from={last} to={','.join(others)}",
        f"submit {last} m1",
        f"run {us}us",
        f"submit {first} m2 safe",
        "run 1us",
        f"crash {last}",
        "lose none",
        f"submit {others[0]} m3",
    ]


def _recovery(nodes: Nodes, engine: Explored) -> list[str]:
    first, second, last = nodes[0], nodes[1], nodes[-1]
    return [
        *_together(nodes),
        f"lose {engine.carrier} from={first} to={last}",
        f"submit {first} m1",
        f"submit {second} m2 safe",
        "run 250us",
        "lose none",
        f"partition {' '.join(nodes)}",
        f"run {engine.patience}",
        "merge",
        f"submit {last} m3",
    ]


def _merge(nodes: Nodes, engine: Explored) -> list[str]:
    first, last = nodes[0], nodes[-1]
    return [
        f"partition {','.join(nodes[:-1])} {last}",
        f"start {' '.join(nodes)}",
        "run 40ms",
        f"submit {first} m1",
        f"submit {last} m2",
        "run 5ms",
        "merge",
        f"submit {first} m3 safe",
    ]


def _restart(nodes: Nodes, engine: Explored) -> list[str]:
    first, last = nodes[0], nodes[-1]
    return [
        *_together(nodes),
        f"submit {first} m1 safe",
        "run 150us",
        f"crash {last}",
        f"restart {last}",
        f"submit {last} m2",
    ]


SITUATIONS = {
    situation.name: situation
    for situation in (
        Situation(
            "start", "All nodes start at once, and two of them have a message to send.", _start
        ),
        Situation(
            "messages",
            "In an idle view, two messages are submitted; one of them is safe.",
            _messages,
            deviations=2,
        ),
        Situation(
            "crash",
            "A node has crashed, and some members lack its last message. A safe message "
            "follows it, and another waits to be sent.",
            _crash,
            deviations=2,
        ),
        Situation(
            "recovery",
            "All nodes are cut off and about to suspect each other. Some members lack one "
            "message, a safe message follows it, and another waits to be sent.",
            _recovery,
        ),
        Situation(
            "merge",
            "Two views hear each other again, through a safe message of one of them.",
            _merge,
        ),
        Situation(
            "restart",
            "A node crashed and restarted before the others noticed. A safe message is under "
            "way, and another waits to be sent.",
            _restart,
        ),
    )
}
