"""The settings of a node: names, addresses, directories and limits."""

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from roundelay.core.ids import NODE_NAME_BYTES_MAX, is_name
from roundelay.group.engines import (
    EngineError,
    describe,
    engine_names,
    engines_in_views,
    log_refusal,
    needs_channel,
    without_views,
)
from roundelay.journal.policy import Policy, parse_policy
from roundelay.membership.config import MembershipConfig
from roundelay.runtime.errors import ConfigError
from roundelay.transport.address import Address, AddressError, parse_address

DATAGRAM_BYTES = {"loopback": 60_000, "network": 1400}
"""Largest datagrams where all peers are on this machine, and otherwise. Too small: more datagrams
for the same messages; larger than the network carries in one piece: a lost fragment loses a whole
datagram."""

PEERS_MAX = MembershipConfig().members_max
"""Most nodes of a group: as many as one view may have."""
TIMEOUT_S = 0.4
"""Default of `timeout_s`, in seconds."""
TIMEOUT_S_MIN = 0.02
"""Least `timeout_s`, in seconds: an event loop often takes longer than less, and nodes would give
each other up without end."""
TRACE_ROLL_S_MIN = 1.0
"""Least `trace_roll_s`, in seconds: files are flushed once a second, and smaller ones would cost
more for their names than for their rows."""
RECENT_S = 60.0
"""Default of `recent_s`."""
TRACE_ROLL_S_MAX = 3600.0
"""Most `trace_roll_s`, in seconds: who wants fewer files than one in an hour does not watch."""

QUEUE_BYTES = 32 * 1024 * 1024
"""Default of `queue_bytes`."""
BACKLOG_BYTES = 64 * 1024 * 1024
"""Default of `backlog_bytes`."""
SEGMENT_BYTES = 128 * 1024 * 1024
"""Default of `segment_bytes`."""
SNAPSHOT_BYTES = 256 * 1024 * 1024
"""Default of `snapshot_bytes`."""
CATCHUP_BYTES_PER_S = 64 * 1024 * 1024
"""Default of `catchup_bytes_per_s`."""
CATCHUP_SHARE = 0.8
"""Default of `catchup_share`."""
SEGMENT_BYTES_MIN = 1 << 20
"""Least `segment_bytes`: with less, most of the time would go into new files."""


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of a node. ConfigError for values that make no sense."""

    group: str
    """The name of the group, the same at all nodes."""
    node: str
    """The name of this node."""
    peers: Mapping[str, str]
    """Every node of the group, this one included, and where the others reach it: `host:port`."""
    bind: str | None = None
    """Where this node listens, if that is not the address that its peers use."""
    multicast: str | None = None
    """An IP multicast address and port for what goes to everybody; None sends it to each."""
    engine: str = "totem"
    """The ordering protocol, the same at all nodes."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Settings of the engine, by the names of its `Config`. They take precedence over those that
    are derived from `timeout_s` and `datagram_bytes`."""
    timeout_s: float = TIMEOUT_S
    """Seconds of silence after which a node counts as failed. Too short: nodes of a loaded machine
    are expelled; too long: a crash stops the group for that long. All other timers follow it."""
    datagram_bytes: int | None = None
    """Largest datagram; None means 60000 where all peers are on this machine and 1400 otherwise."""
    queue_bytes: int = QUEUE_BYTES
    """Bytes that may wait to be sent before `send` waits too."""
    backlog_bytes: int = BACKLOG_BYTES
    """Bytes that may wait for the application before packets are refused. The group then waits for
    this node, and gives it up if the application reads nothing for long. Long before that the group
    slows down. A message counts as 48 bytes more than its size, and pieces of large messages count
    too."""
    key: Path | None = None
    """The file with the group's key, as `roundelay keygen` makes it: every datagram is sealed with
    it. Without one, whoever reaches this node's port can read along and be a member."""
    cipher: str | None = None
    """`aes` or `chacha`, which seals what this node sends; None takes `aes` where the processor
    supports it. All nodes understand both."""
    state: Path | None = None
    """A directory for what must survive a crash; without one every start makes a new node."""
    journal: Path | None = None
    """A directory for the replicated log, and for all that `state` keeps; without one there is no
    log. All nodes of a group have one, or none has."""
    fsync: str = "always"
    """When what was appended counts as stored: `always`, once the disk has it; `interval`, once the
    kernel has it, which is synced every 50 ms, or as often as `interval:20ms` says; `off`, never
    synced. With the last two a power cut of all nodes loses entries."""
    retain_bytes: int | None = None
    """Bytes of log that are kept at least, in whole segments, when older ones are removed; None
    keeps all."""
    retain_s: float | None = None
    """How long log is kept, in seconds; all of it if not set. As with `retain_bytes`, only whole
    files are removed: each once the one behind it is so old. With both, what either says goes."""
    segment_bytes: int = SEGMENT_BYTES
    """Size of the journal's files. Smaller: more of them, and a sync waits for new files more
    often; larger: `retain_bytes` is kept less exactly."""
    snapshot_bytes: int = SNAPSHOT_BYTES
    """Bytes of log after which the state of the `machine` is stored anew. Smaller: snapshots take
    time and disk; larger: a restart takes longer, and the log before the snapshot is kept."""
    catchup_bytes_per_s: int = CATCHUP_BYTES_PER_S
    """How fast this node sends its log to one that lacks it while the group is at work. Smaller:
    a node that comes back takes long to catch up; larger: the group is slowed down meanwhile."""
    catchup_share: float = CATCHUP_SHARE
    """The most of its throughput that a busy group gives up, so that a node which catches up and
    does not come nearer reaches the end. 0: nothing, and the node may be outrun for ever; near 1: a
    node with a slow disk makes the group slow for some minutes, until it is waited for no more."""
    trace: Path | None = None
    """A directory for the node's trace."""
    trace_every_row: bool = False
    """Whether each row reaches the file before its effect leaves this node, so that not even
    `kill -9` loses a row. Slow: for tests and demonstrations."""
    trace_frames: bool = False
    """Whether single frames and timers have rows too."""
    trace_roll_s: float | None = None
    """Seconds after which the trace goes on in another file, so that the one before can be read
    while the node runs; None keeps one file, whose Parquet can be read only when the node has
    stopped. Shorter: many small files; longer: who watches the group learns of a breach later."""
    recent_s: float = RECENT_S
    """Seconds of its trace that the node keeps in memory while somebody watches it with `roundelay
    dashboard`; 0 keeps none. Shorter: what led to a fault may be gone; longer: memory, up to some
    20 MB."""
    run: str = ""
    """The name of the run in the trace; by default the group's."""
    check: bool = False
    """Whether the node checks the rows of its own trace as they are made, also if `trace` names no
    directory for them, and reports breaches in its log and in `status`."""
    record: Path | None = None
    """A directory for records of every input of this node's core, for `roundelay replay`."""
    control: Path | None = None
    """A Unix socket for `roundelay send`, `tail` and `status`."""

    def __post_init__(self) -> None:
        _check_name("group", self.group)
        for name in (self.node, *self.peers):
            _check_name("node", name)
        if self.node not in self.peers:
            raise ConfigError(
                f"peers has no address for this node, {self.node!r}; add it, as its peers have it"
            )
        if len(self.peers) > PEERS_MAX:
            raise ConfigError(
                f"peers lists {len(self.peers)} nodes; a group has at most {PEERS_MAX}: make "
                "several groups of them"
            )
        places: dict[Address, str] = {}
        for peer, text in self.peers.items():
            address = _parse(f"peer {peer!r}", text)
            if address in places:
                raise ConfigError(
                    f"peers {places[address]!r} and {peer!r} have one address, {address}; give "
                    "each its own"
                )
            places[address] = peer
        for name, value in (("bind", self.bind), ("multicast", self.multicast)):
            if value is not None:
                _parse(name, value)
        _check_engine(self.engine, self.options)
        if not TIMEOUT_S_MIN <= self.timeout_s <= 60:
            raise ConfigError(
                f"timeout_s={self.timeout_s:g} is not between {TIMEOUT_S_MIN:g} and 60 seconds"
            )
        if self.datagram_bytes is not None and not 576 <= self.datagram_bytes <= 65_000:
            raise ConfigError(
                f"datagram_bytes={self.datagram_bytes} is not between 576 and 65000 bytes"
            )
        if self.cipher not in (None, "aes", "chacha"):
            raise ConfigError(f"cipher={self.cipher!r} is neither 'aes' nor 'chacha'")
        if self.cipher is not None and self.key is None:
            raise ConfigError("a cipher without a key seals nothing; set key too")
        for limit in ("queue_bytes", "backlog_bytes"):
            if getattr(self, limit) < 1 << 20:
                raise ConfigError(f"{limit}={getattr(self, limit)} is less than a megabyte")
        if not 0 <= self.recent_s <= 3600:
            raise ConfigError(f"recent_s={self.recent_s:g} is not between 0 and 3600 seconds")
        self._check_roll()
        self._check_journal()

    def _check_roll(self) -> None:
        if self.trace_roll_s is None:
            return
        if self.trace is None:
            raise ConfigError("trace_roll_s says when the trace is rolled; set trace too")
        if not TRACE_ROLL_S_MIN <= self.trace_roll_s <= TRACE_ROLL_S_MAX:
            raise ConfigError(
                f"trace_roll_s={self.trace_roll_s:g} is not between {TRACE_ROLL_S_MIN:g} and "
                f"{TRACE_ROLL_S_MAX:g} seconds"
            )

    def _check_journal(self) -> None:
        try:
            parse_policy(self.fsync)
        except ValueError as e:
            raise ConfigError(str(e)) from None
        if self.journal is None:
            for name, what in JOURNAL_SETTINGS.items():
                if getattr(self, name) != SETTINGS[name].default:
                    raise ConfigError(f"{name} says {what}, and there is none; set journal too")
            return
        if self.state is not None:
            raise ConfigError("journal keeps what state does; leave out state")
        if why := log_refusal(self.engine, self.options):
            raise ConfigError(why)
        if self.segment_bytes < SEGMENT_BYTES_MIN:
            raise ConfigError(f"segment_bytes={self.segment_bytes} is less than a megabyte")
        if self.retain_bytes is not None and self.retain_bytes < self.segment_bytes:
            raise ConfigError(
                f"retain_bytes={self.retain_bytes} is less than one segment of "
                f"{self.segment_bytes} bytes; segments are removed as a whole: keep more, or set "
                "segment_bytes too"
            )
        if self.retain_s is not None and self.retain_s <= 0:
            raise ConfigError(
                f"retain_s={self.retain_s} keeps nothing; give a time, or leave it out"
            )
        if not 0 <= self.catchup_share <= 0.9:
            raise ConfigError(f"catchup_share={self.catchup_share} is not between 0 and 0.9")
        for limit in ("snapshot_bytes", "catchup_bytes_per_s"):
            if getattr(self, limit) < 1 << 16:
                raise ConfigError(f"{limit}={getattr(self, limit)} is less than 65536 bytes")

    @property
    def policy(self) -> Policy:
        """What `fsync` says."""
        return parse_policy(self.fsync)

    @property
    def listen(self) -> Address:
        """The address to bind to."""
        return parse_address(self.bind or self.peers[self.node])


def _check_engine(name: str, options: Mapping[str, str]) -> None:
    """ConfigError if real nodes cannot run an engine of that name, or not with these options."""
    try:
        usable = name in engine_names() and not describe(name).static_only
    except EngineError as e:
        raise ConfigError(str(e)) from None
    if not usable:
        known = ", ".join(engines_in_views())
        raise ConfigError(f"no engine for real nodes is called {name!r}; use {known}")
    if why := without_views(name, options):
        raise ConfigError(f"{why}, and real nodes have views; leave the option rules out")
    if why := needs_channel(name, options):
        raise ConfigError(f"{why}, which only the simulator has; leave this option out")


SETTINGS: Mapping[str, dataclasses.Field[Any]] = {f.name: f for f in dataclasses.fields(Settings)}
"""Every setting by its name."""

PATHS = ("key", "state", "journal", "trace", "record", "control")

JOURNAL_SETTINGS: Mapping[str, str] = {
    "fsync": "when the journal is synced",
    "retain_bytes": "how much of the journal is kept",
    "retain_s": "how long the journal is kept",
    "catchup_share": "what a group gives up for a node that catches up",
    "segment_bytes": "how large the journal's files are",
    "snapshot_bytes": "when the state behind the journal is stored",
    "catchup_bytes_per_s": "how fast the journal is sent to others",
}
"""Settings that mean nothing without a journal."""


def settings(values: Mapping[str, Any]) -> Settings:
    """Settings from a file or from keyword arguments, checked for names and types."""
    unknown = sorted(values.keys() - SETTINGS.keys())
    if unknown:
        raise ConfigError(
            f"there is no setting {unknown[0]!r}; there are: {', '.join(sorted(SETTINGS))}"
        )
    missing = [name for name in ("group", "node", "peers") if not values.get(name)]
    if missing:
        raise ConfigError(f"{missing[0]!r} is missing; a node needs a group, a name and its peers")
    typed = dict(values)
    for name in PATHS:
        if typed.get(name) is not None:
            typed[name] = _path(name, typed[name])
    for name in ("peers", "options"):
        table = typed.get(name, {})
        if not isinstance(table, Mapping):
            raise ConfigError(f"{name!r} is a table of names and values")
        typed[name] = {str(key): _text(value) for key, value in table.items()}
        if len(typed[name]) < len(table):
            raise ConfigError(f"{name!r} has a name twice; give each once")
    for name, kind in _KINDS.items():
        value = typed.get(name)
        yes_or_no = isinstance(value, bool) and kind is not bool
        if value is not None and (yes_or_no or not isinstance(value, kind)):
            wanted = kind.__name__ if isinstance(kind, type) else "number"
            raise ConfigError(f"{name}={value!r} is not of type {wanted}")
    return Settings(**typed)


_KINDS: Mapping[str, Any] = {
    "group": str,
    "node": str,
    "bind": str,
    "multicast": str,
    "engine": str,
    "cipher": str,
    "run": str,
    "timeout_s": int | float,
    "datagram_bytes": int,
    "queue_bytes": int,
    "backlog_bytes": int,
    "fsync": str,
    "retain_bytes": int,
    "retain_s": int | float,
    "catchup_share": int | float,
    "segment_bytes": int,
    "snapshot_bytes": int,
    "catchup_bytes_per_s": int,
    "trace_every_row": bool,
    "trace_frames": bool,
    "trace_roll_s": int | float,
    "recent_s": int | float,
    "check": bool,
}


def _text(value: object) -> str:
    """An option as engines read it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _path(name: str, value: Any) -> Path:
    try:
        path = Path(value)
        os.fsencode(path)
    except (TypeError, ValueError):
        raise ConfigError(f"{name}={value!r} is not the name of a file or directory") from None
    if "\0" in str(path):
        raise ConfigError(f"{name}={value!r} is not the name of a file or directory")
    return path


def _check_name(kind: str, name: str) -> None:
    if not is_name(name):
        raise ConfigError(
            f"{name!r} cannot name a {kind}; use 1 to {NODE_NAME_BYTES_MAX} printable characters, "
            "without a slash, not . or .."
        )


def _parse(what: str, address: str) -> Address:
    try:
        return parse_address(address)
    except AddressError as e:
        raise ConfigError(f"{what}: {e}") from None
