"""What clients of replicated machines do in a run of the swarm."""

import re
from random import Random

from roundelay.sim.units import duration_ns, show_ns

MS = 1_000_000
SHARE = 0.5
"""Of the runs with a log in which there are clients of machines."""
CALLS = (10, 30, 80)
"""How many calls there are in a run. Few at once are judged surely; many meet more trouble."""
LATER_MS = 500
"""How long after the faults clients still call."""
_OPS = (
    *("set x", "set x", "set y", "get x", "get x", "get x", "get y", "delete x", "pop x"),
    *("revise x", "pair", "both", "both"),
    *("add", "value", "acquire", "acquire", "release", "release", "release"),
    *("put", "put", "take", "take", "done", "done", "back"),
)
_MORE = (
    ("lead", "lead", "resign", "resign"),
    ("enter", "enter", "enter", "leave", "leave"),
    ("include x", "include x", "exclude x", "contains x", "contains x"),
    ("offer", "offer", "highest", "highest"),
    ("lend x", "lend x", "recall x", "recall x", "recall x"),
)
"""Of each run clients use two of these too: with all, little would happen to each."""
_CRASH = re.compile(r"^at (\S+) crash (\w+)", re.MULTILINE)
_WITH_A_NUMBER = ("set", "revise", "pair", "lend", "add", "put", "offer")


def with_clients(text: str, random: Random, nodes: list[str], length_ms: int) -> str:
    """The scenario, in some runs with machines on the log and clients that call them."""
    if random.random() >= SHARE:
        return text
    text = re.sub(r"^journal\b.*$", _with_machines, text, flags=re.MULTILINE)
    crashes = [(duration_ns(at), node) for at, node in _CRASH.findall(text)]
    drawn = "\n".join(_calls(random, nodes, length_ms, crashes))
    return text.replace(f"\nrun {length_ms}ms\n", f"\n{drawn}\nrun {length_ms}ms\n")


def _with_machines(line: re.Match[str]) -> str:
    return f"{line[0].replace(' application=yes', '')} objects=yes"


def _calls(
    random: Random, nodes: list[str], length_ms: int, crashes: list[tuple[int, str]]
) -> list[str]:
    """Calls of clients at all nodes, one by one or some at once, from the founding on until after
    the faults. Some call just before their node crashes."""
    found: list[tuple[int, str]] = []
    ops = [*_OPS, *(op for ops in random.sample(_MORE, 2) for op in ops)]
    number = 0
    for _ in range(random.choice(CALLS)):
        at = random.randint(50 * MS, (length_ms + LATER_MS) * MS)
        for _ in range(random.choice((1, 1, 1, 2, 4))):
            op = random.choice(ops)
            number += 1
            if op.split()[0] in _WITH_A_NUMBER:
                op = f"{op} {number}"
            found.append((at, f"call {random.choice(nodes)} {op}"))
            at += random.choice((0, 1, 5)) * MS
    for at, node in crashes:
        number += 1
        before = at - random.choice((200_000, MS, 2 * MS, 4 * MS))
        if before > 0 and random.random() < 0.7:
            found.append((before, f"call {node} set x {number}"))
            later = at + random.choice((30, 200, 600)) * MS
            found.append((later, f"call {random.choice(nodes)} get x"))
    return [f"at {show_ns(at)} {what}" for at, what in sorted(found)]
