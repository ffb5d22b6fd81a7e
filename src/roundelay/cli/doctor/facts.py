"""What `roundelay doctor` finds out about a machine, before anything is judged.

Every class is one look at one thing. `machine`, `network` and `places` take the looks; `judge` says
what they mean, and takes facts from tests as well.
"""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Software:
    """What runs here."""

    roundelay: str
    python: tuple[int, int, int]
    implementation: str
    system: str
    """The operating system and its version."""
    linux: bool


@dataclass(frozen=True, slots=True)
class Package:
    """One optional package."""

    name: str
    extra: str
    """The smallest extra that brings it."""
    version: str | None
    """None if it is not installed."""
    wanted: str
    """What the extra asks for, such as `>=4.1,<5`; empty if nothing is known of that."""
    fits: bool
    """Whether the version is one that is asked for."""


@dataclass(frozen=True, slots=True)
class Java:
    """The Java that Spark would get."""

    path: str | None
    why: str
    """Why there is none; empty if there is one, or if nothing here needs it."""


@dataclass(frozen=True, slots=True)
class Processors:
    """The processors that this process may use."""

    count: int
    quota: float | None
    """How many processors' time its control group may take; None for no limit."""


@dataclass(frozen=True, slots=True)
class Clock:
    """The clocks of this machine."""

    went_back: bool
    """Whether the monotonic clock ever went back while it was read many times."""
    read_ns: float
    """What one look at the monotonic clock costs."""
    source: str | None
    """What the kernel takes the time from; None if it does not tell."""
    year: int
    synchronized: bool | None
    """Whether the kernel says that something keeps its clock right; None if it does not tell."""
    error_ms: float | None
    """The kernel's bound for the error of the wall clock; None if it does not tell."""


@dataclass(frozen=True, slots=True)
class Files:
    """Files that this process has and may have open."""

    open: int
    limit: int


@dataclass(frozen=True, slots=True)
class Buffers:
    """What the kernel gives to a socket that asks for as much as a node does."""

    wanted: int
    receive: int
    send: int


@dataclass(frozen=True, slots=True)
class Loopback:
    """One datagram from this process to itself."""

    datagram_bytes: int
    failure: str
    """Why it did not come back; empty if it did."""
    batched: bool
    """Whether the kernel takes many datagrams with one call."""


@dataclass(frozen=True, slots=True)
class Listening:
    """Whether a node could listen at its address."""

    address: str
    failure: str
    """Why not; empty if it can."""
    runs: bool
    """Whether the very node of these settings runs here, and so has the address."""


@dataclass(frozen=True, slots=True)
class Peer:
    """One node of the group, as this machine sees its address."""

    name: str
    address: str
    own: bool
    numeric: str | None
    """The host's number; None if the name does not resolve."""
    loopback: bool
    lookup_s: float
    failure: str
    """Why no datagram can be sent there, as far as this machine knows; empty if it can."""
    mtu: int | None
    """The largest packet of the way there, in bytes, headers included; None if it is not known."""


@dataclass(frozen=True, slots=True)
class Disk:
    """The disk below one directory of a node."""

    purpose: str
    """The setting that names the directory."""
    path: Path
    failure: str
    """Why a node could not write there; empty if it can."""
    filesystem: str | None
    free_bytes: int
    sync_ms: float | None
    """The median time of an `fdatasync`; None where nothing needs one."""
    sync_worst_ms: float | None


@dataclass(frozen=True, slots=True)
class Control:
    """Where the control socket goes."""

    path: str
    failure: str
    """Why it cannot be made there; empty if it can."""


@dataclass(frozen=True, slots=True)
class Key:
    """The key file of the settings."""

    path: Path
    failure: str


@dataclass(frozen=True, slots=True)
class Needs:
    """What the settings of a node ask of the machine; the defaults if there are no settings."""

    datagram_bytes: int = 60_000
    fsync: bool = False
    """Whether the journal waits for the disk."""
    segment_bytes: int = 0
    """The size of one file of the journal; 0 without a journal."""
    by_wall_clock: bool = False
    """Whether the age of the log decides what is removed."""
    key: bool = False
    trace: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that was found out; None for what was not looked at."""

    needs: Needs
    software: Software
    packages: tuple[Package, ...]
    java: Java
    processors: Processors
    clock: Clock
    files: Files
    buffers: Buffers
    loopback: Loopback
    control: Control
    listening: Listening | None = None
    multicast: Listening | None = None
    peers: tuple[Peer, ...] = ()
    disks: tuple[Disk, ...] = ()
    key: Key | None = None
