"""Sums up the profile of one node."""

import pstats
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

FUNCTIONS = 20
"""How many functions are listed, the most expensive first."""

LAYERS = {
    "bench": "the application: sends, reads, verifies",
    "runtime": "the driver: queues, timers, effects",
    "transport": "sockets: sending",
    "group": "packing, unpacking, delivery",
    "membership": "views, the token's ring",
    "protocols": "the engine",
    "wire": "frames to bytes and back",
    "sealing": "seals, on and off",
    "trace": "the trace",
}
"""Our packages that run in a node. All other time is Python's: the event loop and built-in
types."""


@dataclass(frozen=True, slots=True)
class Share:
    """A part of the time, including the built-in functions that were called in it."""

    name: str
    share: float
    calls: int


@dataclass(frozen=True, slots=True)
class Profile:
    """Where the time went, the most expensive first."""

    layers: list[Share]
    functions: list[Share]


def read(file: Path) -> Profile:
    """The profile in a file that cProfile wrote."""
    stats = pstats.Stats(str(file)).stats  # type: ignore[attr-defined]
    times: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    functions = []
    total = sum(own for _, _, own, _, _ in stats.values())
    for (path, _, name), (_, calls, own, _, _) in stats.items():
        _, ours, inside = path.partition("/roundelay/")
        layer = LAYERS.get(inside.partition("/")[0], "Python")
        times[layer] += own
        counts[layer] += calls
        where = inside if ours else Path(path).name
        functions.append(Share(f"{where}: {name}", own / total, calls))
    layers = [Share(layer, own / total, counts[layer]) for layer, own in times.most_common()]
    functions.sort(key=lambda share: -share.share)
    return Profile(layers, functions[:FUNCTIONS])
