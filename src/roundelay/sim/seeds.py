"""What a seed draws: a cluster, its settings, a load, a network, and which faults there are.

Every seed is a different cluster and not the same one with other dice: some have no loss at all,
some lose a fifth of all frames, some crash and never part. What is drawn is a scenario, as text, so
a failure can be read, kept and cut down. `docs/swarm.md` tells how often what is drawn.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from roundelay.group.body import PIECE_OVERHEAD_BYTES
from roundelay.protocols.totem import Config
from roundelay.sim.units import show_ns

MS = 1_000_000

BOUND_MS = 8_000
"""How long after the faults everything must have come about. A pause before a merge is hardly
longer than the faults lasted; forming a ring takes one consensus time for every node given up, and
some tries may fail."""


@dataclass(slots=True)
class Plan:
    """What is to happen in a run, drawn so far."""

    random: Random
    nodes: list[str]
    carriers: tuple[str, ...]
    """The message types that tell packets and their order."""
    rotation_ns: int
    """About how long a frame takes to go round all nodes."""
    events: list[tuple[int, str]] = field(default_factory=list)
    """Commands, each with its time in nanoseconds."""

    def at(self, time_ns: int, command: str) -> None:
        self.events.append((time_ns, command))

    def restart(self, time_ns: int, node: str) -> None:
        storage = self.random.choice(("kept", "kept", "kept", "lost", "torn"))
        self.at(time_ns, f"restart {node} storage={storage}")

    def return_(self, time_ns: int, nodes: list[str], gap_ns: int) -> None:
        """Restart these, one after the other. None of them, one, half or all come without what they
        had stored, before the others or among them."""
        random = self.random
        bare = random.choice((0, 1, 1, (len(nodes) + 1) // 2, len(nodes)))
        storages = [random.choice(("lost", "lost", "torn")) for _ in range(bare)]
        storages += ["kept"] * (len(nodes) - bare)
        if random.random() < 0.5:
            random.shuffle(storages)
        for i, (node, storage) in enumerate(zip(nodes, storages, strict=True)):
            self.at(time_ns + i * gap_ns, f"restart {node} storage={storage}")

    def carrier(self) -> str:
        """A message type to be lost."""
        return self.random.choice(self.carriers) if len(self.carriers) > 1 else self.carriers[0]

    def service(self) -> str:
        return self.random.choice(("", " safe"))


Draw = Callable[[Plan, int, int], None]
"""Adds one mishap to a plan, from a time on, until a later one."""


def scenario(seed: int, protocol: str, *, static: bool = False, rules: str = "safe") -> str:
    """The scenario of a seed."""
    random = Random(f"roundelay/{seed}/swarm/{protocol}")
    nodes = [chr(ord("a") + i) for i in range(random.randint(1 if not static else 2, 6))]
    length_ms = random.randint(300, 2500)
    network, latency_ns = _network(random)
    turn_us = Random(f"roundelay/{seed}/turn").choice(TURNS_US)
    latency_ns += turn_us * 1000
    family = protocol in DTP_FAMILY
    lines = [
        f"seed {seed}",
        " ".join(["engine", protocol, *_options(random, protocol, len(nodes), static, rules)]),
        f"group packet_bytes={random.choice((400 if family else 100, 400, 1200, 1200))}",
        network,
        *([f"turn {turn_us}us"] if turn_us else []),
        f"nodes {' '.join(nodes)}",
        *_rates(random),
        *_load(random, len(nodes), length_ms, 60 if family else 150),
    ]
    carriers = ("MSG", "ACK") if family else ("DATA",)
    plan = Plan(random, nodes, carriers, latency_ns * len(nodes))
    lines += [] if static else _events(plan, MISHAPS | (DTP_MISHAPS if family else {}), length_ms)
    # The last messages come after the faults: they are owed to everybody who is left.
    last = f"load messages={random.randint(1, 12)} rate={random.randint(5, 100)}/s safe=50%"
    lines += [f"run {length_ms}ms", "heal", last]
    text = "\n".join(lines)
    quiet_ms = _quiet_ms(text, len(nodes), length_ms)
    if protocol == "totem":
        sending_ms = rotations(text) * plan.rotation_ns // MS
        quiet_ms += sending_ms if sending_ms > BOUND_MS // 4 else 0
    return f"{text}\nend after={quiet_ms}ms\n----\n"


def _quiet_ms(text: str, nodes: int, length_ms: int) -> int:
    """When all is over: a load that takes its time must have come to its end long before."""
    loads = re.findall(r"^load messages=(\d+) rate=(\d+)", text, re.MULTILINE)
    longest_ms = max(1000 * int(count) // (int(rate) * nodes) for count, rate in loads)
    return BOUND_MS if longest_ms < length_ms + BOUND_MS // 4 else BOUND_MS + 2 * longest_ms


def rotations(text: str) -> int:
    """After how many rotations of a token without losses all that is submitted was sent.

    A rotation carries half a window at least, since a node keeps back for others at most every
    other time, or as much as one visit may, if one node alone has anything left.
    """

    def setting(name: str, default: int) -> int:
        found = re.search(rf" {name}=(\d+)", text)
        return int(found[1]) if found else default

    room = setting("packet_bytes", 0) - PIECE_OVERHEAD_BYTES
    loads = re.findall(r"^load messages=(\d+) rate=\S+(?: size=(\d+))?", text, re.MULTILINE)
    packets = sum(int(count) * -(-int(size or 0) // room) for count, size in loads)
    default = Config()
    window = setting("window_packets", default.window_packets)
    visit = setting("visit_packets", default.visit_packets)
    return packets // min(visit, -(-window // 2))


DTP_FAMILY = ("dtp", "cm", "pinwheel")
"""One packet, or what waits, for each transfer of a token: it is given less to do."""


def _options(random: Random, protocol: str, nodes: int, static: bool, rules: str) -> list[str]:
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
    elif protocol in DTP_FAMILY:
        drawn["resilience"] = random.choice((0, nodes // 2, nodes - 1))
        drawn["silence_s"], drawn["ack_repeat_s"], drawn["watch_s"] = random.choice(
            ((None, None, None), (0.02, 0.05, 0.5), (0.005, 0.03, 0.25))
        )
        drawn["attempts"] = random.choice((None, 3))
        if protocol == "pinwheel":
            drawn["window_packets"] = random.choice((None, 2, 8))
            drawn["batch_packets"] = random.choice((None, 2))
    words = [f"{name}={setting}" for name, setting in drawn.items() if setting is not None]
    return ["static"] * static + [f"rules={rules}"] * (rules != "safe") + words


def _load(random: Random, nodes: int, length_ms: int, most: int) -> list[str]:
    """Messages over the whole run or all at once, and sometimes large ones."""
    messages = random.randint(1, most)
    over_all = max(1, messages * 1000 // (nodes * length_ms))
    rate = random.choice((over_all, over_all, random.randint(5, 300)))
    size = random.choice((4, 40, 300, 2000))
    lines = [f"load messages={messages} rate={rate}/s size={size} safe={random.choice(SAFE)}%"]
    if random.random() < 0.3:
        large = random.randint(1, most // 25)
        lines.append(f"load messages={large} rate={random.randint(1, 10)}/s size=9000")
    return lines


TURNS_US = (0, 0, 50, 500, 2000)
"""Lengths of a turn of a node's event loop, in microseconds; 0 is a node that handles every input
at once. In longer turns more frames come together, and more messages leave together."""

SAFE = (0, 20, 50, 100)
"""Shares of safe messages, in percent."""


def _network(random: Random) -> tuple[str, int]:
    """The command, and about how long a frame takes, in nanoseconds."""
    kind = random.choice(("lan", "lan", "bus", "switched", "wan"))
    jitter_us = random.choice((0, 20, 300))
    match kind:
        case "bus":
            words, latency_us = "bus rate=100Mbit", 25
        case "switched":
            words, latency_us = "switched", 50
        case "wan":
            latency_us = random.randint(1, 4) * 1000
            words = f"wan latency={latency_us}us"
        case _:
            latency_us = random.randint(20, 500)
            words = f"lan latency={latency_us}us"
    return f"network {words} jitter={jitter_us}us", (latency_us + jitter_us // 2) * 1000


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


def _events(plan: Plan, mishaps: dict[str, Draw], length_ms: int) -> list[str]:
    """Mishaps of some kinds, and when they happen."""
    random = plan.random
    kinds = [kind for kind in mishaps if random.random() < 0.35]
    if len(plan.nodes) == 1:
        kinds = ["crash"]
    if not kinds:
        return []
    for _ in range(random.randint(2, 11)):
        at = random.randint(0, length_ms) * MS
        later = at + random.choice((1, 5, 30, 120, 400, 1000)) * MS
        mishaps[random.choice(kinds)](plan, at, later)
    end = length_ms * MS
    return [f"at {show_ns(at)} {what}" for at, what in sorted(plan.events) if 0 < at <= end]


def _crash(plan: Plan, at: int, later: int) -> None:
    """A node crashes, at once or in the middle of a step, and is usually restarted."""
    node = plan.random.choice(plan.nodes)
    after = plan.random.choice(("", "", f" after={plan.random.randint(1, 12)}"))
    plan.at(at, f"crash {node}{after}")
    if plan.random.random() < 0.8:
        plan.restart(later, node)


def _last_words(plan: Plan, at: int, later: int) -> None:
    """A node crashes, and what it sent last reached nobody, or not all, or with a gap."""
    node, *others = plan.random.sample(plan.nodes, len(plan.nodes))
    lost = sorted(others[plan.random.randint(0, min(2, len(others) - 1)) :])
    before = at - plan.random.choice((2 * plan.rotation_ns, 3 * MS))
    # All of it is lost, or even what others repeat, or one copy for each: of the first packet.
    lose = plan.random.choice((f"from={node}", "", f"from={node} times={len(lost)}"))
    plan.at(before, f"lose {plan.carrier()} to={','.join(lost)} {lose}")
    plan.at(before, f"submit {node} last")
    plan.at(before, f"submit {node} words safe")
    plan.at(at - plan.rotation_ns, f"submit {others[0]} behind{plan.service()}")
    plan.at(at, f"crash {node}")
    plan.at(at + 400 * MS, "lose none")
    if plan.random.random() < 0.8:
        plan.restart(later, node)


def _ambush(plan: Plan, at: int, later: int) -> None:
    """Such a crash, and another just when the next ring is being formed; up to three times."""
    for again in range(plan.random.randint(1, 3)):
        start = at + again * 500 * MS
        node, other = plan.random.sample(plan.nodes, 2)
        rest = ",".join(peer for peer in plan.nodes if peer != node)
        plan.at(start - 6 * plan.rotation_ns, f"lose {plan.carrier()} from={node} to={rest}")
        plan.at(start - 6 * plan.rotation_ns, f"submit {node} gap")
        plan.at(start - 3 * plan.rotation_ns, f"submit {other} behind{plan.service()}")
        plan.at(start, f"crash {node}")
        plan.restart(start + MS, node)
        # About as many effects as until everybody has everything and nobody has installed.
        plan.at(start + MS, f"crash {other} after={plan.random.randint(21, 31)}")
        plan.at(start + 300 * MS, "lose none")
        plan.restart(start + 300 * MS, other)


def _partition(plan: Plan, at: int, later: int) -> None:
    """The network falls into two to four parts, and is mended."""
    random = plan.random
    sides: list[list[str]] = [[] for _ in range(random.randint(2, min(4, len(plan.nodes))))]
    for i, node in enumerate(random.sample(plan.nodes, len(plan.nodes))):
        side = sides[i] if i < len(sides) else random.choice(sides)
        side.append(node)
    plan.at(at, "partition " + " ".join(",".join(sorted(side)) for side in sides))
    plan.at(later + random.choice((0, 300)) * MS, "merge")


def _one_way(plan: Plan, at: int, later: int) -> None:
    """One to three links carry nothing in one direction, and are mended."""
    count = plan.random.randint(1, 3)
    links = [plan.random.sample(plan.nodes, 2) for _ in range(count)]
    plan.at(at, "cut " + " ".join(f"{a}>{b}" for a, b in links))
    plan.at(later + plan.random.choice((0, 300)) * MS, "merge")


def _pause(plan: Plan, at: int, later: int) -> None:
    """A node stops for a while, and goes on with what has come meanwhile."""
    node = plan.random.choice(plan.nodes)
    plan.at(at, f"pause {node}")
    plan.at(later + plan.random.choice((0, 300)) * MS, f"resume {node}")


def _slow(plan: Plan, at: int, later: int) -> None:
    """A node takes longer over everything, for a while."""
    node = plan.random.choice(plan.nodes)
    plan.at(at, f"slow {node} {plan.random.choice((1, 3, 10))}ms")
    plan.at(later, f"slow {node} 0ms")


def _drift(plan: Plan, at: int, later: int) -> None:
    """A node's timers go wrong from now on, by a fifth too fast up to a third too slow."""
    factor = plan.random.choice((0.8, 0.95, 1.05, 1.3))
    plan.at(at, f"drift {plan.random.choice(plan.nodes)} {factor}")


def _deaf(plan: Plan, at: int, later: int) -> None:
    """A node hears what is sent to it alone, but no packets, and perhaps no Joins."""
    node = plan.random.choice(plan.nodes)
    plan.at(at, f"lose {plan.carriers[0]} to={node}")
    if plan.random.random() < 0.5:
        plan.at(at, f"lose JOIN to={node}")
    plan.at(later + 400 * MS, "lose none")


def _obstruct(plan: Plan, at: int, later: int) -> None:
    """A node restarts, and no new ring comes about: one node does not get what forms it."""
    node, other = plan.random.sample(plan.nodes, 2)
    times = plan.random.choice(("", "", f" times={plan.random.randint(1, 12)}"))
    plan.at(at, f"lose {plan.random.choice(('COMMIT', 'RTOKEN'))} to={node}{times}")
    plan.at(at, f"crash {other}")
    plan.restart(at + 5 * MS, other)
    plan.at(later + 400 * MS, "lose none")


def _outage(plan: Plan, at: int, later: int) -> None:
    """All nodes or most of them crash at once, and come back one by one, some with lost storage."""
    random, nodes = plan.random, plan.nodes
    count = random.choice((len(nodes), len(nodes), len(nodes) - 1, len(nodes) // 2 + 1))
    fallen = random.sample(nodes, count)
    for node in fallen:
        plan.at(at + random.choice((0, 0, 1)) * MS, f"crash {node}")
    plan.return_(later + 2 * MS, fallen, random.choice((0, 1, 20, 150, 300)) * MS)


def _shrink(plan: Plan, at: int, later: int) -> None:
    """Nodes crash one by one until one or two are left, or none; then the first return."""
    random = plan.random
    order = random.sample(plan.nodes, len(plan.nodes))
    staying = random.randint(1, min(2, len(order) - 1))
    # As long as the others need to go on without a node, or not.
    step = random.choice((30, 250, 300)) * MS
    fallen, rest = order[:-staying], order[-staying:]
    for i, node in enumerate(fallen):
        plan.at(at + i * step, f"crash {node}")
    end = at + len(fallen) * step
    if random.random() < 0.5:
        for node in rest:
            plan.at(end, f"crash {node}")
        plan.return_(end + random.choice((30, 400)) * MS, rest, MS)
    plan.return_(end + random.choice((1, 30, 250)) * MS, fallen, random.choice((1, 30)) * MS)


def _half_formed(plan: Plan, at: int, later: int) -> None:
    """A node restarts, and others crash about when the new ring is complete; up to three times."""
    random = plan.random
    for again in range(random.randint(1, 3)):
        start = at + again * 600 * MS
        node, *others = random.sample(plan.nodes, len(plan.nodes))
        plan.at(start - 3 * plan.rotation_ns, f"submit {others[0]} before{plan.service()}")
        plan.at(start, f"crash {node}")
        plan.restart(start + MS, node)
        # As many effects as until some have everything, and perhaps have installed.
        fallen = others[: random.randint(1, len(others))]
        least = random.choice((22, 26, 26))
        for other in fallen:
            plan.at(start + MS, f"crash {other} after={least + random.randint(0, 8)}")
        plan.return_(start + random.choice((150, 300)) * MS, fallen, random.choice((0, 1, 20)) * MS)


MISHAPS: dict[str, Draw] = {
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
    "outage": _outage,
    "shrink": _shrink,
    "half-formed": _half_formed,
}


# What is done to those who order after sending


def _overtaken(plan: Plan, at: int, later: int) -> None:
    """A node misses acknowledgments, gets later ones, and is cut off before it can ask."""
    node, *others = plan.random.sample(plan.nodes, len(plan.nodes))
    plan.at(at, f"lose ACK to={node} times={plan.random.randint(1, 3)}")
    plan.at(at, f"lose REQ from={node}")
    for i in range(3):
        plan.at(at + 6 * i * plan.rotation_ns, f"submit {plan.random.choice(others)} missed")
        plan.at(at + 6 * i * plan.rotation_ns, f"submit {node} behind{plan.service()}")
    plan.at(at + 20 * plan.rotation_ns, f"partition {node} {','.join(sorted(others))}")
    plan.at(later + 400 * MS, "lose none")
    plan.at(later + plan.random.choice((400, 700)) * MS, "merge")


def _orphaned(plan: Plan, at: int, later: int) -> None:
    """A node that has the token hands it on, one other hears of it at most, and it crashes."""
    node, *others = plan.random.sample(plan.nodes, len(plan.nodes))
    plan.at(at - 100 * MS, f"lose ACK from={node} to={','.join(sorted(others[1:] or others))}")
    plan.at(at, f"crash {node}")
    plan.at(at, "lose none")
    if plan.random.random() < 0.8:
        plan.restart(later + 400 * MS, node)


DTP_MISHAPS: dict[str, Draw] = {"overtaken": _overtaken, "orphaned": _orphaned}
"""Of DTP, CM and Pinwheel, besides all others."""
