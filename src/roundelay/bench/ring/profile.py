"""Sums up the profile of one node, and what one message costs at each layer."""

import pstats
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from roundelay.bench.ring import runs
from roundelay.bench.ring.floor import cpu_us_per_datagram
from roundelay.bench.ring.jobs import Cell
from roundelay.bench.ring.systems import OURS
from roundelay.transport.segments import SEGMENTS_MAX

Report = Callable[[int, int], None]
"""Called with the rounds that are done and the rounds in all."""

FUNCTIONS = 20
"""How many functions are listed, the most expensive first."""

LAYERS = {
    "bench": "the application: sends, reads, verifies",
    "runtime": "the driver: queues, timers, effects",
    "transport": "sockets: system calls",
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


TOKEN_BYTES = 100
"""The size of a frame that passes a token on, about."""
HEADERS_BYTES = 64
"""Bytes of a datagram that are not payloads, about."""


@dataclass(frozen=True, slots=True)
class Floor:
    """What the same datagrams cost with nothing but system calls."""

    datagram_bytes: int
    datagrams_per_msg: float
    us_per_datagram: float
    tokens_per_msg: float
    us_per_token: float

    @property
    def us_per_msg(self) -> float:
        return (
            self.datagrams_per_msg * self.us_per_datagram + self.tokens_per_msg * self.us_per_token
        )


@dataclass(frozen=True, slots=True)
class Costs:
    """Processor time of one message, of all nodes together, in microseconds."""

    us_per_msg: float
    """Without a profiler: the median over rounds."""
    layers: list[tuple[str, float]]
    """That time, divided among layers by their shares under a profiler."""
    floor_us: float
    """The median over rounds."""
    floor: Floor
    """Of the last round."""


def costs(cell: Cell, seconds: float, rounds: int, profile: Profile, report: Report) -> Costs:
    """Let runs without a profiler alternate with bare system calls."""
    times, floors = [], []
    for i in range(rounds):
        load = runs.load(OURS, cell, seconds)
        times.append(load.cpu_us_per_msg)
        floors.append(floor_of(cell, load, cpu_us_per_datagram))
        report(i + 1, rounds)
    whole = median(times)
    return Costs(
        whole,
        by_layer(profile, whole),
        median(floor.us_per_msg for floor in floors),
        floors[-1],
    )


def by_layer(profile: Profile, us: float) -> list[tuple[str, float]]:
    """A time, divided among layers by their shares."""
    return [(layer.name, layer.share * us) for layer in profile.layers]


def floor_of(cell: Cell, load: runs.Load, us: Callable[[int, int], float]) -> Floor:
    """Every packet goes to every other node, many with one call; a token goes to one, alone. `us`
    tells what a datagram of a size costs if so many are sent with one call."""
    mean = load.messages * cell.size // max(1, load.packets) + HEADERS_BYTES
    size = min(cell.datagram, mean)
    copies = load.packets * (cell.nodes - 1)
    return Floor(
        size,
        copies / load.messages,
        us(size, SEGMENTS_MAX),
        load.tokens / load.messages,
        us(TOKEN_BYTES, 1) if load.tokens else 0.0,
    )
