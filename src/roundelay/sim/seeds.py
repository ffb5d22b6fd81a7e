"""What a seed draws: a cluster, its settings, a load, a network, and which faults there are.

Every seed is a different cluster and not the same one with other dice: some have no loss at all,
some lose a fifth of all frames, some crash and never part. What is drawn is a scenario, as text, so
a failure can be read, kept and cut down. `docs/swarm.md` tells how often what is drawn.
"""

from collections.abc import Callable
from random import Random

from roundelay.sim.units import show_ns

MS = 1_000_000

BOUND_MS = 8_000
"""How long after the faults everything must have come about. The longest pause before a merge is
3 s; forming a ring takes one consensus time for every node given up, and some tries may fail."""

Events = list[tuple[int, str]]
"""Commands, each with its time in nanoseconds."""

Draw = Callable[[Random, list[str], int, int, Events], None]
"""Adds the events of one mishap: among these nodes, from a time on, until a later one."""


def scenario(seed: int, protocol: str, *, static: bool = False, rules: str = "safe") -> str:
    """The scenario of a seed."""
    random = Random(f"roundelay/{seed}/swarm/{protocol}")
    nodes = [chr(ord("a") + i) for i in range(random.randint(1 if not static else 2, 6))]
    length_ms = random.randint(300, 2500)
    lines = [
        f"seed {seed}",
        " ".join(["engine", protocol, *_options(random, protocol, static, rules)]),
        f"group packet_bytes={random.choice((100, 400, 1200, 1200))}",
        _network(random),
        f"nodes {' '.join(nodes)}",
        *_rates(random),
        *_load(random, len(nodes), length_ms),
    ]
    lines += [] if static else _events(random, nodes, length_ms)
    # The last messages come after the faults: they are owed to everybody who is left.
    last = f"load messages={random.randint(1, 12)} rate={random.randint(5, 100)}/s safe=50%"
    lines += [f"run {length_ms}ms", "heal", last, f"end after={BOUND_MS}ms"]
    return "\n".join(lines) + "\n----\n"


def _options(random: Random, protocol: str, static: bool, rules: str) -> list[str]:
    """The words after the engine's name: how the group runs, and settings that are not default."""
    drawn: dict[str, float | None] = {}
    if protocol == "totem":
        drawn["window_packets"] = random.choice((None, None, 16, 4))
        drawn["visit_packets"] = random.choice((None, 2))
        deaf = random.choice((None, 40, 8))
        # Alone, an engine that stops the ring for a deaf member has nobody to start it again.
        drawn["fail_to_receive_visits"] = None if static else deaf
    elif protocol == "fifo":
        drawn["window_packets"] = random.choice((None, None, 16, 3))
        drawn["stall_s"] = random.choice((None, 0.3, 0.15))
    words = [f"{name}={setting}" for name, setting in drawn.items() if setting is not None]
    return ["static"] * static + [f"rules={rules}"] * (rules != "safe") + words


def _load(random: Random, nodes: int, length_ms: int) -> list[str]:
    """Messages over the whole run or all at once, and sometimes large ones."""
    messages = random.randint(1, 150)
    over_all = max(1, messages * 1000 // (nodes * length_ms))
    rate = random.choice((over_all, over_all, random.randint(5, 300)))
    size = random.choice((4, 40, 300, 2000))
    lines = [f"load messages={messages} rate={rate}/s size={size} safe={random.choice(SAFE)}%"]
    if random.random() < 0.3:
        large = random.randint(1, 6)
        lines.append(f"load messages={large} rate={random.randint(1, 10)}/s size=9000")
    return lines


SAFE = (0, 20, 50, 100)
"""Shares of safe messages, in percent."""


def _network(random: Random) -> str:
    kind = random.choice(("lan", "lan", "bus", "switched", "wan"))
    jitter = random.choice(("0us", "20us", "300us"))
    match kind:
        case "bus":
            return f"network bus rate=100Mbit jitter={jitter}"
        case "switched":
            return f"network switched jitter={jitter}"
        case "wan":
            return f"network wan latency={random.randint(1, 4)}ms jitter={jitter}"
        case _:
            return f"network lan latency={random.randint(20, 500)}us jitter={jitter}"


def _rates(random: Random) -> list[str]:
    """Some of the things that can happen to frames, each at a rate of its own."""
    rates = {
        "loss": random.choice((0.5, 2, 10, 20)),
        "duplicate": random.choice((1, 5, 15)),
        "reorder": random.choice((1, 5, 15)),
        "spike": random.choice((0.2, 1)),
        "corrupt": random.choice((0.5, 2)),
    }
    chosen = [f"{name}={rate}%" for name, rate in rates.items() if random.random() < 0.4]
    return ["faults " + " ".join(chosen)] if chosen else []


# What is done to nodes and links


def _events(random: Random, nodes: list[str], length_ms: int) -> list[str]:
    """Mishaps of a few kinds, and when they happen."""
    kinds = [kind for kind in KINDS if random.random() < 0.35]
    if len(nodes) == 1:
        kinds = ["crash"]
    if not kinds:
        return []
    events: Events = []
    for _ in range(random.randint(1, 8)):
        at = random.randint(0, length_ms) * MS
        later = at + random.choice((1, 5, 30, 120, 400, 1000)) * MS
        KINDS[random.choice(kinds)](random, nodes, at, later, events)
    end = length_ms * MS
    return [f"at {show_ns(at)} {what}" for at, what in sorted(events) if 0 < at <= end]


def _crash(random: Random, nodes: list[str], at: int, later: int, events: Events) -> None:
    node = random.choice(nodes)
    after = random.choice(("", "", f" after={random.randint(1, 12)}"))
    events.append((at, f"crash {node}{after}"))
    if random.random() < 0.8:
        events.append((later, _restart(random, node)))


def _restart(random: Random, node: str) -> str:
    storage = random.choice(("kept", "kept", "kept", "lost", "torn"))
    return f"restart {node} storage={storage}"


def _last_words(random: Random, nodes: list[str], at: int, later: int, events: Events) -> None:
    """A node crashes, and what it sent last reached nobody, or one or two."""
    node, *others = random.sample(nodes, len(nodes))
    heard = random.randint(0, min(2, len(others) - 1))
    before = at - random.choice((2, 5, 20)) * MS
    events.append((before, f"lose DATA from={node} to={','.join(sorted(others[heard:]))}"))
    events.append((before, f"submit {node} last{random.choice(('', ' safe'))}"))
    events.append((at - MS, f"submit {others[0]} behind{random.choice(('', ' safe'))}"))
    events.append((at, f"crash {node}"))
    events.append((at + 400 * MS, "lose none"))
    if random.random() < 0.8:
        events.append((later, _restart(random, node)))


def _ambush(random: Random, nodes: list[str], at: int, later: int, events: Events) -> None:
    """Last words; then somebody who knows them crashes while the next ring is being formed."""
    node, other = random.sample(nodes, 2)
    rest = [peer for peer in nodes if peer != node]
    events.append((at - 5 * MS, f"lose DATA from={node} to={','.join(rest)}"))
    events.append((at - 5 * MS, f"submit {node} gap"))
    events.append((at - 2 * MS, f"submit {other} behind{random.choice(('', ' safe'))}"))
    events.append((at, f"crash {node}"))
    events.append((at + 2 * MS, _restart(random, node)))
    # About as many effects as it takes until everybody has everything and nobody has installed.
    events.append((at + 2 * MS, f"crash {other} after={random.randint(18, 40)}"))
    events.append((at + 400 * MS, "lose none"))
    events.append((later + 400 * MS, _restart(random, other)))


def _partition(random: Random, nodes: list[str], at: int, later: int, events: Events) -> None:
    sides: list[list[str]] = [[] for _ in range(random.randint(2, min(4, len(nodes))))]
    for i, node in enumerate(random.sample(nodes, len(nodes))):
        side = sides[i] if i < len(sides) else random.choice(sides)
        side.append(node)
    events.append((at, "partition " + " ".join(",".join(sorted(side)) for side in sides)))
    events.append((later + random.choice((0, 300)) * MS, "merge"))


def _one_way(random: Random, nodes: list[str], at: int, later: int, events: Events) -> None:
    links = [random.sample(nodes, 2) for _ in range(random.randint(1, 3))]
    events.append((at, "cut " + " ".join(f"{a}>{b}" for a, b in links)))
    events.append((later, "merge"))


def _pause(random: Random, nodes: list[str], at: int, later: int, events: Events) -> None:
    node = random.choice(nodes)
    events.append((at, f"pause {node}"))
    events.append((later, f"resume {node}"))


def _slow(random: Random, nodes: list[str], at: int, later: int, events: Events) -> None:
    node = random.choice(nodes)
    events.append((at, f"slow {node} {random.choice((1, 3, 10))}ms"))
    events.append((later, f"slow {node} 0ms"))


def _drift(random: Random, nodes: list[str], at: int, later: int, events: Events) -> None:
    events.append((at, f"drift {random.choice(nodes)} {random.choice((0.8, 0.95, 1.05, 1.3))}"))


def _deaf(random: Random, nodes: list[str], at: int, later: int, events: Events) -> None:
    """A node hears what is sent to it alone, but none of the packets."""
    node = random.choice(nodes)
    events.append((at, f"lose DATA to={node}"))
    if random.random() < 0.5:
        events.append((at, f"lose JOIN to={node}"))
    events.append((later + 400 * MS, "lose none"))


def _obstruct(random: Random, nodes: list[str], at: int, later: int, events: Events) -> None:
    """Rings cannot be formed, because what forms them does not get through to one node."""
    node, other = random.sample(nodes, 2)
    times = random.choice(("", "", f" times={random.randint(1, 12)}"))
    events.append((at, f"lose {random.choice(('COMMIT', 'RTOKEN'))} to={node}{times}"))
    events.append((at, f"crash {other}"))
    events.append((at + 5 * MS, _restart(random, other)))
    events.append((later + 400 * MS, "lose none"))


KINDS: dict[str, Draw] = {
    "crash": _crash,
    "last-words": _last_words,
    "ambush": _ambush,
    "partition": _partition,
    "one-way": _one_way,
    "pause": _pause,
    "slow": _slow,
    "drift": _drift,
    "deaf": _deaf,
    "obstruct": _obstruct,
}
