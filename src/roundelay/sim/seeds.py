"""What a seed draws: a cluster, its settings, a load, a network, and which faults there are.

Every seed is a different cluster and not the same one with other dice: some have no loss at all,
some lose a fifth of all frames, some crash and never part. What is drawn is a scenario, as text, so
a failure can be read, kept and cut down. `docs/swarm.md` tells how often what is drawn. What is
special to an engine is in its simulation (`sim.simulation`).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from random import Random

from roundelay.sim.calls import with_clients
from roundelay.sim.draft import MS, Mishap, ScenarioDraft
from roundelay.sim.intruder import KINDS
from roundelay.sim.log_mishaps import LOG_MISHAPS
from roundelay.sim.mishaps import MISHAPS
from roundelay.sim.recoveries import with_recovery
from roundelay.sim.simulation import Conditions, Simulation, simulation_of
from roundelay.sim.units import show_ns

BOUND_MS = 8_000
"""How long after the faults, in milliseconds, everything must have come about. A pause before a
merge is hardly longer than the faults lasted; forming a ring takes one consensus time for every
node given up, and some tries may fail. Smaller: sound runs fail. Larger: every run takes longer."""


def scenario(
    seed: int,
    protocol: str,
    *,
    static: bool = False,
    rules: str = "safe",
    intruder: bool = False,
    log: bool = False,
) -> str:
    """The scenario of a seed; with an `intruder` of a group that seals its traffic, with `log` of
    one that keeps a replicated log."""
    random = Random(f"roundelay/{seed}/swarm/{protocol}")
    simulation = simulation_of(protocol)
    fewest = simulation.static_nodes_min.get(rules, 2) if static else 1
    nodes = [chr(ord("a") + i) for i in range(random.randint(fewest, 6))]
    length_ms = random.randint(300, 2500)
    attack = Random(f"roundelay/{seed}/intruder/{protocol}") if intruder else None
    journal = Random(f"roundelay/{seed}/log/{protocol}") if log else None
    if attack is not None and attack.random() < LONG_SHARE:
        length_ms += LONG_MS
    network, latency_ns = _network(random)
    turn_us = Random(f"roundelay/{seed}/turn").choice(TURNS_US)
    draw = simulation.conditions if static else simulation.conditions_in_views
    conditions = None if draw is None else draw(random, nodes, rules)
    if conditions is not None and conditions.network:
        network, latency_ns, turn_us = conditions.network, conditions.latency_ns, 0
    latency_ns += turn_us * 1000
    least = simulation.packet_bytes_min
    options = _options(random, simulation, len(nodes), static, rules, conditions)
    kept = [] if journal is None else _journal(journal)
    lines = [
        f"seed {seed}",
        " ".join(["engine", protocol, *options]),
        f"group packet_bytes={random.choice((least, 400, 1200, 1200))}",
        network,
        *([] if attack is None else [_seal(attack)]),
        *kept,
        *([f"turn {turn_us}us"] if turn_us else []),
        f"nodes {' '.join(nodes)}",
        *_rates(random, conditions, attack),
        *_load(random, len(nodes), length_ms, simulation.load_messages_max),
    ]
    if attack is not None:
        lines += _attack(attack, nodes, length_ms, conditions)
    draft = ScenarioDraft(random, nodes, simulation.carriers, latency_ns * len(nodes))
    more = simulation.mishaps
    if journal is not None:
        draft.keeper = journal.choice(nodes)
        draft.few_sessions = any("sessions_max" in line for line in kept)
        more = {**more, **LOG_MISHAPS}
    if conditions is not None:
        lines += _events(draft, conditions.mishaps, length_ms, conditions.events)
    elif not static:
        lines += _events(draft, {**MISHAPS, **more}, length_ms)
    # The last messages come after the faults: they are owed to everybody who is left.
    last = f"load messages={random.randint(1, 12)} rate={random.randint(5, 100)}/s safe=50%"
    lines += [f"run {length_ms}ms", "heal", last]
    text = "\n".join(lines)
    if conditions is not None and not conditions.safe:
        text = re.sub(r" safe=\d+%| safe$", "", text, flags=re.MULTILINE)
    if journal is not None:
        share = journal.choice(APPENDED)
        text = re.sub(r"^(load .*)$", rf"\1 append={share}%", text, flags=re.MULTILINE)
        text = with_clients(text, Random(f"roundelay/{seed}/clients"), nodes, length_ms)
        recovery = Random(f"roundelay/{seed}/recovery")
        text = with_recovery(text, recovery, nodes, draft.keeper, length_ms)
    text = _with_subsets(text, Random(f"roundelay/{seed}/subset"), simulation.subsets)
    quiet_ms = _quiet_ms(text, len(nodes), length_ms)
    sending_ms = simulation.sending_ns(text, draft.rotation_ns) // MS
    quiet_ms += sending_ms if sending_ms > BOUND_MS // 4 else 0
    return f"{text}\nend after={quiet_ms}ms\n----\n"


FEW_SESSIONS = 8
"""Sessions that a log remembers in some runs: fewer than there are clients, more than nodes."""
APPENDED = (30, 70, 100)
"""Shares of the load that are appended to the log, in percent."""


def _journal(random: Random) -> list[str]:
    """How a group keeps its log: when records count as stored, how long a sync takes, and limits
    that are default or so small that they are reached."""
    policy = random.choice(("always", "always", "always", "interval", "off"))
    sync_us = random.choice((100, 1000, 1000, 5000, 20_000))
    settings = {
        "application": random.choice((None, "yes")),
        "live_window_bytes": random.choice((None, 2000)),
        "unsynced_bytes": random.choice((None, 20_000)),
        "fetch_window_bytes": random.choice((None, 2000)),
        "checkpoint_bytes": random.choice((None, 3000)),
        "sessions_max": random.choice((None, None, None, FEW_SESSIONS)),
    }
    words = [f"{name}={text}" for name, text in settings.items() if text is not None]
    return [" ".join(["journal", *words]), f"fsync {policy} sync={sync_us}us"]


def _with_subsets(text: str, random: Random, shares: Sequence[int]) -> str:
    """The scenario with a share of every load for parts of the group."""
    share = random.choice(shares)
    if not share:
        return text
    return re.sub(r"^(load .*)$", rf"\1 subset={share}%", text, flags=re.MULTILINE)


def _quiet_ms(text: str, nodes: int, length_ms: int) -> int:
    """When all is over: a load that takes its time must have come to its end long before."""
    loads = re.findall(r"^load messages=(\d+) rate=(\d+)", text, re.MULTILINE)
    longest_ms = max(1000 * int(count) // (int(rate) * nodes) for count, rate in loads)
    return BOUND_MS if longest_ms < length_ms + BOUND_MS // 4 else BOUND_MS + 2 * longest_ms


def _options(
    random: Random,
    simulation: Simulation,
    nodes: int,
    static: bool,
    rules: str,
    conditions: Conditions | None,
) -> list[str]:
    """The words after the engine's name: how the group runs, and settings that are not default."""
    drawn = simulation.options(random, nodes, static)
    if conditions is not None:
        drawn = {**drawn, **conditions.options}
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


RATES = ("loss", "duplicate", "reorder", "spike", "corrupt")


def _rates(random: Random, conditions: Conditions | None, attack: Random | None) -> list[str]:
    """Some of the things that can happen to frames, each at a rate of its own. Where there is an
    attack, duplicates are left to the intruder, and in some runs frames are held back for
    seconds."""
    if conditions is not None and conditions.faults:
        return [f"faults {conditions.faults}"]
    names = RATES if conditions is None else conditions.rates
    rates = {
        "loss": random.choice((0.5, 2, 10, 20)),
        "duplicate": random.choice((1, 5, 15)),
        "reorder": random.choice((1, 5, 15)),
        "spike": random.choice((0.2, 1)),
        "corrupt": random.choice((0.5, 2)),
    }
    chosen = [f"{name}={rate}%" for name, rate in rates.items() if random.random() < 0.4]
    chosen = [word for word in chosen if word.partition("=")[0] in names]
    if attack is not None:
        chosen = [word for word in chosen if not word.startswith("duplicate=")]
        held_back = attack.choice((None, None, "1s", "7s", "7s"))
        if held_back is not None and "loss" in names:
            chosen = [word for word in chosen if not word.startswith("spike=")]
            chosen.append(f"spike={attack.choice((0.2, 1))}% spike-by={held_back}")
    return ["faults " + " ".join(chosen)] if chosen else []


# What is done to nodes and links


def _events(
    draft: ScenarioDraft,
    mishaps: Mapping[str, Mishap],
    length_ms: int,
    certain: Callable[[ScenarioDraft, int], None] | None = None,
) -> list[str]:
    """Mishaps of some kinds and when they happen, and what happens for certain."""
    random = draft.random
    if certain is not None:
        certain(draft, length_ms)
    kinds = [kind for kind in mishaps if random.random() < 0.35]
    if draft.few_sessions and "many-clients" not in kinds:
        kinds.append("many-clients")
    if draft.keeper and len(draft.nodes) == 5 and "in-doubt" in mishaps:
        # With fewer nodes, or six, there is no minority of a view in doubt with a majority of all.
        kinds += ["in-doubt"] * 2
    if len(draft.nodes) == 1:
        kinds = ["crash"] if not draft.keeper else ["crash", "power"]
    for _ in range(random.randint(2, 11) if kinds else 0):
        at = random.randint(0, length_ms) * MS
        later = at + random.choice((1, 5, 30, 120, 400, 1000)) * MS
        mishaps[random.choice(kinds)](draft, at, later)
    end = length_ms * MS
    return [f"at {show_ns(at)} {what}" for at, what in sorted(draft.events) if 0 < at <= end]


# What somebody does who has no key

LONG_SHARE = 0.25
"""Share of runs that are longer under attack than they would be otherwise ..."""
LONG_MS = 6_000
"""... by this many milliseconds: so that what was recorded becomes old while the attack goes on,
and proofs are renewed under it."""

HARMLESS = ("old", "proof", "flip", "cut", "forge", "plain", "flood")
"""What an intruder does where a late frame is outside of what is promised: it sends nothing that
might count as one."""


def _seal(attack: Random) -> str:
    return attack.choice(("seal", "seal", "seal cipher=chacha"))


def _attack(
    attack: Random, nodes: list[str], length_ms: int, conditions: Conditions | None
) -> list[str]:
    """An intruder who does some of what it can do, or all of it, from the beginning or later; and
    in some runs a change of keys."""
    late = conditions is not None and "loss" not in conditions.rates
    known = HARMLESS if late else tuple(KINDS)
    kinds = attack.choice((known, known, [kind for kind in known if attack.random() < 0.4]))
    words = f"intruder rate={attack.choice((10, 40, 150))}/s"
    words += f" kinds={','.join(kinds)}" if 0 < len(kinds) < len(KINDS) else ""
    lines = [(attack.choice((0, 0, length_ms // 2)), words)]
    if attack.random() < 0.3:
        lines += _rotation(attack, nodes, length_ms)
    return [f"at {show_ns(at * MS)} {what}" for at, what in sorted(lines)]


def _rotation(attack: Random, nodes: list[str], length_ms: int) -> list[tuple[int, str]]:
    """There is a new key, and nodes are told so one by one. All are: who is not told is shut out
    after half a minute, and some runs are longer than that."""
    start = attack.randint(1, length_ms // 2)
    return [
        (start, "key rotate"),
        *((attack.randint(start + 1, length_ms), f"key reload {node}") for node in nodes),
    ]
