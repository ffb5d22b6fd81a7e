"""What it costs a node to be watched: its processor time with a dashboard that asks, and without.

The same nodes are measured in turns, watched and not, so that what else the machine does falls on
both alike.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from roundelay.runtime.client import Client
from roundelay.runtime.recent import UNASKED_S
from roundelay.web.watching import Watching

FORGET_S = 2 * UNASKED_S
"""Seconds that nodes may take to notice that nobody watches any more."""


@dataclass(frozen=True, slots=True)
class Turn:
    """All nodes together, for some seconds."""

    cpu_s: float
    """Processor time of all nodes in a second, divided by their number: a share of one core."""
    messages_per_s: float
    """Delivered at one node."""

    @property
    def us_per_message(self) -> float:
        return self.cpu_s / max(self.messages_per_s, 1e-9) * 1e6


@dataclass(frozen=True, slots=True)
class Found:
    """Turns in pairs: not watched, then watched."""

    alone: tuple[Turn, ...]
    watched: tuple[Turn, ...]
    rows_per_s: float
    """Rows that one node kept in a second while it was watched."""

    @property
    def more(self) -> float:
        """What being watched takes, as a share of one core, at the rate of the node that is not
        watched: the median of all pairs. Where nodes send as fast as they can, the rate differs
        from turn to turn, and processor time with it."""
        pairs = zip(self.alone, self.watched, strict=True)
        return median(
            (watched.us_per_message - alone.us_per_message) * alone.messages_per_s / 1e6
            for alone, watched in pairs
        )


def measure(
    controls: Mapping[str, Path],
    processes: Mapping[str, int],
    *,
    rounds: int,
    seconds: float,
    say: Callable[[str], None],
) -> Found:
    """Measure running nodes, by their control sockets and process ids."""
    alone: list[Turn] = []
    watched: list[Turn] = []
    rows: list[float] = []
    pids = list(processes.values())
    for number in range(rounds):
        say(f"round {number + 1} of {rounds}, not watched")
        _until_forgotten(controls)
        alone.append(_turn(controls, pids, seconds))
        say(f"round {number + 1} of {rounds}, watched")
        with _watching(list(controls.values())):
            time.sleep(2.0)  # Threads have found every node by then, and rows are made.
            watched.append(_turn(controls, pids, seconds))
            rows += [_rows_per_s(control) for control in controls.values()]
    return Found(tuple(alone), tuple(watched), median(rows))


@contextmanager
def _watching(controls: Sequence[Path]) -> Iterator[None]:
    """As a dashboard with one page open does it."""
    watching = Watching(controls)
    watching.viewers = 1
    watching.start()
    try:
        yield
    finally:
        watching.stop()


def _turn(controls: Mapping[str, Path], pids: Sequence[int], seconds: float) -> Turn:
    start, cpu, messages = time.monotonic(), _cpu_s(pids), _delivered(controls)
    time.sleep(seconds)
    took = time.monotonic() - start
    return Turn((_cpu_s(pids) - cpu) / took / len(pids), (_delivered(controls) - messages) / took)


def _cpu_s(pids: Sequence[int]) -> float:
    """Processor time of these processes so far."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _delivered(controls: Mapping[str, Path]) -> int:
    return int(_ask(next(iter(controls.values())), "status")["counters"]["messages_delivered"])


def _rows_per_s(control: Path) -> float:
    """How many rows lie in the last second."""
    told = _ask(control, "recent", at_ns=time.monotonic_ns() - 1_000_000_000)
    at = told["columns"].index("t_ns")
    times: list[int] = [row[at] for row in told["rows"]][1:]  # The first may be the view of before.
    if len(times) < 2 or times[-1] == times[0]:
        return float(len(times))
    return len(times) / ((times[-1] - times[0]) / 1e9)


def _until_forgotten(controls: Mapping[str, Path]) -> None:
    end = time.monotonic() + FORGET_S
    while any(_ask(control, "recent")["recording"] for control in controls.values()):
        if time.monotonic() > end:
            raise TimeoutError("somebody else watches these nodes; close other dashboards")
        time.sleep(0.5)


def _ask(control: Path, do: str, **more: Any) -> dict[str, Any]:
    with Client(control) as client:
        return client.ask(do=do, **more)
