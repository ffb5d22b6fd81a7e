"""What a node does in a soak with kills, and the appends that are told apart by their payloads."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

GROUP = "kills"
"""The name of the group."""
SEGMENT_BYTES = 1 << 20
"""Size of the journals' files: small, so that there are some that a start does not read."""


@dataclass(frozen=True, slots=True)
class Job:
    """One life of one node."""

    node: str
    addresses: Mapping[str, str]
    journal: str
    """The directory of its journal, which outlives it."""
    engine: str
    fsync: str
    life: int
    """A number for this start of the node."""
    per_s: float
    """Messages that it appends by itself, per second."""
    size: int
    """Bytes of every message."""
    boot: str
    """Names the life of its machine, which ends with a power cut."""
    holds_writes: bool
    """Whether its disk gets what was written only when that is synced, so that to kill the node is
    a power cut."""
    catchup_bytes_per_s: int
    """How fast it sends its log to others."""

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        return cls(**json.loads(text))


def client_payload(client: str, number: int, size: int) -> bytes:
    """The payload of a client's append, the same whenever it is repeated."""
    return f"{client}/{number}/".encode().ljust(size, b".")


def own_payload(node: str, life: int, number: int, size: int) -> bytes:
    """The payload of what a node appends by itself."""
    return f"{node}-{life}/{number}/".encode().ljust(size, b".")
