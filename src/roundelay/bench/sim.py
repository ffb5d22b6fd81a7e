"""Measures the speed of the simulator, and the memory of a run with the online checker.

Events: the same ping workload on our loop and network and on SimPy, alternating, so that a busy
machine slows both down. In each of `pairs` pairs both nodes send a frame to their partner, which
answers when it arrives, for a given virtual time; an event is an arrival. The simulator has no
cores and no trace here. SimPy runs the workload twice: with processes and mailboxes, as its users
write it, and as its fastest way with timeouts and callbacks alone, without a network.

Memory: a static group with the online checker, whose trace is not kept, in runs of two lengths,
each in a process of its own. The peak resident size shows what grows.
"""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from statistics import median
from typing import Any

from roundelay.check.online import OnlineChecker
from roundelay.core.contract import Boot
from roundelay.group.engines import engine_factory
from roundelay.group.static import StaticStack
from roundelay.sim.faults import Choices
from roundelay.sim.load import Load
from roundelay.sim.loop import Loop
from roundelay.sim.network import Bus, Lan
from roundelay.sim.world import World

LATENCY_NS = 100_000
"""The latency of the network in virtual time; it does not affect the figures."""
Report = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Speed:
    """Events per second, and the medians of the ratios of neighbouring runs."""

    events: int
    ours: float
    simpy: float
    simpy_callbacks: float
    ratio: float
    ratio_callbacks: float


@dataclass(frozen=True, slots=True)
class Memory:
    """Peak resident megabytes of one run of so many messages."""

    messages: int
    rows: int
    peak_mb: float
    seconds: float


def compare_events(pairs: int, events: int, rounds: int, report: Report) -> Speed:
    """Run both simulators in turn on the same workload."""
    rates: list[tuple[float, float, float]] = []
    for i in range(rounds):
        rates.append(
            (
                _rate(ping_roundelay, pairs, events),
                _rate(ping_simpy, pairs, events),
                _rate(ping_callbacks, pairs, events),
            )
        )
        report(i + 1, rounds)
    ours, simpy, callbacks = (median(column) for column in zip(*rates, strict=True))
    return Speed(
        events,
        ours,
        simpy,
        callbacks,
        ratio=median(rate[0] / rate[1] for rate in rates),
        ratio_callbacks=median(rate[0] / rate[2] for rate in rates),
    )


def ping_roundelay(pairs: int, events: int) -> int:
    """The pairs on our loop and network; returns the number of arrivals."""
    loop, network = Loop(), Lan(LATENCY_NS)
    arrivals = 0
    until = LATENCY_NS * (events // (2 * pairs))

    def send(sender: str, receiver: str) -> None:
        time_ns = network.arrival(loop.now, sender, receiver, 100)
        assert time_ns is not None
        loop.at(time_ns, arrive, (receiver, sender))

    def arrive(link: tuple[str, str]) -> None:
        nonlocal arrivals
        arrivals += 1
        send(*link)

    for i in range(pairs):
        send(f"a{i}", f"b{i}")
        send(f"b{i}", f"a{i}")
    loop.run(until)
    return arrivals


def ping_simpy(pairs: int, events: int) -> int:
    """The same pairs as SimPy processes: each node has a mailbox, and a delayed put is the wire."""
    import simpy

    env = simpy.Environment()
    arrivals = 0
    until = LATENCY_NS * (events // (2 * pairs))

    def wire(box: Any, frame: str) -> Generator[Any, Any, None]:
        yield env.timeout(LATENCY_NS)
        yield box.put(frame)

    def node(mine: Any, partner: Any) -> Generator[Any, Any, None]:
        nonlocal arrivals
        env.process(wire(partner, "ping"))
        while True:
            frame = yield mine.get()
            arrivals += 1
            env.process(wire(partner, frame))

    for _ in range(pairs):
        a, b = simpy.Store(env), simpy.Store(env)
        env.process(node(a, b))
        env.process(node(b, a))
    env.run(until + 1)
    return arrivals


def ping_callbacks(pairs: int, events: int) -> int:
    """The same pairs in SimPy's fastest way: a timeout and a callback for each frame."""
    import simpy

    env = simpy.Environment()
    arrivals = 0
    until = LATENCY_NS * (events // (2 * pairs))

    def send(sender: str, receiver: str) -> None:
        env.timeout(LATENCY_NS, (receiver, sender)).callbacks.append(arrive)

    def arrive(event: Any) -> None:
        nonlocal arrivals
        arrivals += 1
        send(*event.value)

    for i in range(pairs):
        send(f"a{i}", f"b{i}")
        send(f"b{i}", f"a{i}")
    env.run(until + 1)
    return arrivals


def memory_in_child(messages: int) -> Memory:
    """Measure one run in a new process, so that the peak is its own."""
    child = subprocess.run(
        [sys.executable, "-m", "roundelay.bench.sim", str(messages)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "0"},
    )
    return Memory(**json.loads(child.stdout))


def checked_run(messages: int, nodes: int = 5) -> tuple[int, OnlineChecker]:
    """A run whose rows go only to the online checker; returns their number and the checker.

    Only one node sends, on a bus: the template engine orders nothing, and with one sender it need
    not.
    """
    names = tuple(f"n{i}" for i in range(nodes))
    factory = engine_factory("template")
    checker = OnlineChecker(nodes)
    rows = 0

    def append(row: Any) -> None:
        nonlocal rows
        rows += 1
        checker.append(row)

    world = World(
        names,
        lambda boot: _stack(boot, names, factory),
        Bus(rate_bps=1_000_000_000),
        append,
        choices=Choices(0, record=False),
        net_rows=False,
    )
    world.start()
    load = Load(names[:1], messages, rate_per_s=10_000, size_bytes=32, periodic=True)
    for submission in load.draw(0, 0, names):
        world.loop.run(submission.time_ns)
        world.submit(*submission[1:])
    world.run(1_000_000_000)
    return rows, checker


def _stack(boot: Boot, names: tuple[str, ...], factory: Any) -> StaticStack:
    return StaticStack(boot, names, factory)


def _rate(ping: Callable[[int, int], int], pairs: int, events: int) -> float:
    start = time.process_time()
    done = ping(pairs, events)
    return done / (time.process_time() - start)


def _child() -> None:
    messages = int(sys.argv[1])
    start = time.process_time()
    rows, checker = checked_run(messages)
    assert not checker.violations, checker.violations
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    seconds = time.process_time() - start
    figures = {"messages": messages, "rows": rows, "peak_mb": peak_mb, "seconds": seconds}
    sys.stdout.write(json.dumps(figures))


if __name__ == "__main__":
    _child()
