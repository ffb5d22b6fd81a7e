"""Cells, the settings that are measured, and jobs, what a node does in a run."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Self, TypeAlias

Task: TypeAlias = Literal["load", "pace", "idle", "stay", "reads", "fill", "join"]
"""What a node does: send and read at full speed; send at a slow rate and measure latencies;
nothing; or report views. Of nodes with a journal also: linearizable reads; append until the log is
so long; or catch up with the others."""

Senders: TypeAlias = Literal["all", "one"]
Service: TypeAlias = Literal["agreed", "safe"]
Pattern: TypeAlias = Literal["oneway", "conversation"]
"""Of messages at a slow rate: one node sends, or it asks and another node answers each message."""
Reading: TypeAlias = Literal["batches", "messages"]
"""`group.batches()`, or `async for` over single messages."""
Sizes: TypeAlias = Literal["equal", "uniform", "lognormal"]
"""How sizes of messages are spread around their mean: not at all; evenly, from half of it to one
and a half; or log-normally, up to twenty times the mean."""
Cipher: TypeAlias = Literal["none", "aes", "chacha"]
"""What seals the traffic: nothing, AES-256-GCM, or ChaCha20-Poly1305."""
Journal: TypeAlias = Literal["none", "off", "interval", "always"]
"""No journal, and messages are sent; or the policy of the journal, and messages are appended."""

Verify: TypeAlias = Literal["last", "all"]
"""Which messages a reader compares with what was sent: the last of each batch, or all, which are
then built from their numbers."""

QUEUE_BYTES = 4 * 1024 * 1024
"""The size of the send queue, unless a cell has another. It is smaller than a node has it, so that
a run is over soon after its senders are done."""

KEY_FILE = "group.key"
"""The file with the key of a sealed group, in the directory of a run."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination of settings whose throughput is measured."""

    engine: str = "totem"
    size: int = 100
    """The size of a message, in bytes; the mean of all, if they differ."""
    nodes: int = 3
    senders: Senders = "all"
    service: Service = "agreed"
    datagram: int = 60_000
    reading: Reading = "batches"
    trace: bool = False
    check: bool = False
    """Whether every node checks its own rows."""
    cipher: Cipher = "none"
    timeout_s: float | None = None
    """The token timeout in seconds; None for the default."""
    journal: Journal = "none"
    sizes: Sizes = "equal"
    pattern: Pattern = "oneway"
    """Only where latencies are measured."""
    queue: int = QUEUE_BYTES
    """Bytes that may wait to be sent."""
    options: tuple[str, ...] = ()
    """Settings of the engine, each as `name=value`."""

    def __str__(self) -> str:
        size = f"{self.size} B" if self.sizes == "equal" else f"{self.size} B {self.sizes}"
        words = [self.engine, f"{self.nodes} nodes", size]
        words.append(f"datagrams of {self.datagram}")
        if self.senders == "one":
            words.append("one sender")
        if self.pattern != "oneway":
            words.append(self.pattern)
        if self.service == "safe":
            words.append("safe")
        words.append("async for" if self.reading == "messages" else "batches")
        if self.trace:
            words.append("trace")
        if self.check:
            words.append("check")
        if self.cipher != "none":
            words.append(f"sealed with {self.cipher}")
        if self.journal != "none":
            words.append(f"journal {self.journal}")
        if self.timeout_s is not None:
            words.append(f"timeout {self.timeout_s:g} s")
        if self.queue != QUEUE_BYTES:
            words.append(f"queue of {self.queue:,} B")
        words += self.options
        return ", ".join(words)


@dataclass(frozen=True, slots=True)
class Job:
    """What one node does in a run."""

    task: Task
    node: str
    addresses: Mapping[str, str]
    senders: tuple[str, ...] = ()
    cell: Cell = field(default_factory=Cell)
    seconds: float = 1.0
    """How long senders send, or how long a node idles, in seconds."""
    warm_s: float = 0.0
    """How many of these seconds pass before anything is counted."""
    rate: float = 100.0
    """Messages per second of a sender at a slow rate."""
    directory: str = ""
    """The directory for state, traces and profiles; empty if there is none."""
    beat_s: float = 0.0
    """How often a node at full speed reports its progress, in seconds; 0 for never."""
    profile: bool = False
    verify: Verify = "last"
    variant: str = ""
    """Which kind of a peer this is, if there are several."""
    fill_bytes: int = 0
    """How many bytes of messages are appended before another node joins."""

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        fields = json.loads(text)
        fields["cell"] = Cell(
            **{**fields["cell"], "options": tuple(fields["cell"].get("options", ()))}
        )
        fields["senders"] = tuple(fields["senders"])
        return cls(**fields)
