"""What the processes of a measurement and the one that leads them say: a JSON document per line.

A member says `{"ready": true}` once its group can commit. Then each line to it is a task, and it
answers with a result.
"""

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

KEYS = 1000
"""Keys of the map that are written and read. Fewer: all is in a processor's cache; more: loading
them takes longer than the measurement."""
WARM_SHARE = 0.2
"""The share of a task that passes before anything counts."""
READS_AT_A_TIME = 1000
"""Reads between two looks at the clock."""


@dataclass(frozen=True, slots=True)
class Job:
    """What one process is told at its start."""

    node: str
    addresses: dict[str, str]
    directory: str
    fsync: str

    def to_json(self) -> str:
        return json.dumps(asdict(self))


@dataclass(frozen=True, slots=True)
class Task:
    """What one process is to do."""

    do: Literal["map", "counter", "reads"]
    seconds: float
    outstanding: int
    """Writes that wait at this node at a time; with 0 it writes nothing, and takes part."""


def say(**document: Any) -> None:
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


def tasks() -> Iterator[Task]:
    """What the leader says, until it says no more."""
    for line in sys.stdin:
        yield Task(**json.loads(line))


def cpu_s() -> float:
    times = os.times()
    return times.user + times.system
