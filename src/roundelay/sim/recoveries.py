"""A majority that is lost for good, in some runs of the swarm with a log, and an operator who goes
on with what is left."""

from random import Random

from roundelay.sim.units import show_ns

MS = 1_000_000
SHARE = 0.12
"""Of the runs with a log and without clients of machines, in which that happens. What clients did
before cannot be judged: it may be gone."""


def with_recovery(text: str, random: Random, nodes: list[str], keeper: str, length_ms: int) -> str:
    """The scenario, in some runs with a recovery. One of those that survive is the `keeper`, which
    never loses its disk. Of the others one may come back with its old journal, alone."""
    if random.random() >= SHARE or "objects=yes" in text or len(nodes) < 2:
        return text
    end = length_ms * MS
    at = random.randint(end // 3, 4 * end // 5)
    others = [node for node in nodes if node != keeper]
    random.shuffle(others)
    count = random.randint(0, (len(nodes) - 1) // 2)
    survivors, gone = sorted([keeper, *others[:count]]), sorted(others[count:])
    old = random.choice(("", random.choice(gone)))
    drawn = []
    if random.random() < 0.5:  # The others have confirmed what survivors lack.
        before = max(at - random.choice((300, 600)) * MS, 0)
        drawn.append((before, f"partition {','.join(survivors)} {','.join(gone)}"))
    for gap in (100, 20, 1):
        node, times = random.choice(nodes), random.randint(1, 4)
        drawn.append((max(at - gap * MS, 0), f"append {node} last times={times}"))
    power = random.choice(("", " power"))
    drawn += [(at, f"crash {node}{power}") for node in nodes]
    drawn.append((at, "merge"))
    lost = ",".join(node for node in gone if node != old)
    drawn.append((at, f"recover {' '.join(survivors)}{' lost=' if lost else ''}{lost}"))
    back = at
    for node in [*random.sample(survivors, len(survivors)), *gone]:
        drawn.append((min(back, end), f"restart {node}"))
        back += random.choice((0, 1, 30, 300)) * MS
    commands = "\n".join(f"at {show_ns(time)} {command}" for time, command in drawn)
    return text.replace(f"\nrun {length_ms}ms\n", f"\n{commands}\nrun {length_ms}ms\n")
