"""Nodes of a view that catch up with each other, without a network, a disk or an opening.

A host has a log, a learner and a donor, and a disk that is a list of records. Frames go through
bytes, and wait in `Wires` until a test lets them arrive; so do what the disk was asked for, and the
timers.
"""

import hashlib
from collections import deque
from collections.abc import Callable
from typing import Any

from roundelay.core.contract import Boot
from roundelay.core.effects import (
    CancelTimer,
    Committed,
    Cut,
    Effect,
    Fork,
    Load,
    LoadSnapshot,
    Refuse,
    Reset,
    Send,
    SetTimer,
    Store,
    StoreSnapshot,
)
from roundelay.core.ids import NodeId, ViewId
from roundelay.core.kept import kept_log, split
from roundelay.core.log import Checkpoint, Entries, LogRecord, Mark, Place
from roundelay.group.body import pack
from roundelay.group.log.arrival import Arrival, named_session
from roundelay.group.log.codec import LogCodec
from roundelay.group.log.config import LogConfig
from roundelay.group.log.donor import Donor
from roundelay.group.log.learner import Learner
from roundelay.group.log.messages import Chunk, CutTo, Fetch, FetchSnapshot, LogMessage, TooFar
from roundelay.group.log.state import LogState
from roundelay.wire.log_record import encode_record
from roundelay.wire.snapshot_file import SnapshotHead, decode_head, encode_end, encode_head

LOG = b"the id of a log."
CONFIG = LogConfig(chunk_bytes=300, fetch_window_bytes=4096, load_bytes=2000)
CODEC = LogCodec()


class Disk:
    """What one host has stored. Everything is done when `work` is called, in order."""

    def __init__(self) -> None:
        self.records: list[LogRecord] = []
        self.snapshots: dict[int, bytes] = {}
        self.incoming = b""
        self.asked: deque[Effect[Any]] = deque()
        self.full = False
        self.reads_first = False
        """Reads overtake what is to be written, as they do where other threads read."""

    @property
    def log(self) -> list[LogRecord]:
        """Its marks and entries. Checkpoints are each node's own."""
        return [record for record in self.records if not isinstance(record, Checkpoint)]

    def work(self, host: "Host") -> bool:
        """Do the next thing that was asked for; whether there was one."""
        if not self.asked:
            return False
        reads = [e for e in self.asked if isinstance(e, Load | LoadSnapshot)]
        effect = reads[0] if reads and self.reads_first else self.asked[0]
        self.asked.remove(effect)
        match effect:
            case Store() if self.full:
                self._refuse(host, effect.number)
            case Store():
                self.records += effect.records
                host.stored(effect.number)
            case Cut():
                del self.records[split(self.records, effect.place) :]
                host.stored(effect.number)
            case Reset():
                self.records = [effect.checkpoint, effect.mark]
                host.stored(effect.number)
            case StoreSnapshot():
                self._store_snapshot(host, effect)
            case Load():
                host.loaded(effect.request, self._load(effect.place, effect.bytes_max))
            case LoadSnapshot():
                data = self.snapshots.get(effect.index)
                if data is None:
                    host.snapshot_loaded(effect.request, None, 0)
                else:
                    part = data[effect.offset : effect.offset + effect.bytes_max]
                    host.snapshot_loaded(effect.request, part, len(data))
        return True

    def _refuse(self, host: "Host", number: int) -> None:
        self.asked = deque(e for e in self.asked if isinstance(e, Load | LoadSnapshot))
        host.unstored(number)

    def _store_snapshot(self, host: "Host", effect: StoreSnapshot) -> None:
        self.incoming = self.incoming[: effect.offset] + effect.data
        if not effect.last:
            host.stored(effect.number)
        elif is_whole(self.incoming):
            self.snapshots[effect.index] = self.incoming
            host.stored(effect.number)
        else:
            host.unstored(effect.number)

    def _load(self, place: Place, bytes_max: int) -> list[bytes]:
        records = self.records
        begins = records and isinstance(records[0], Checkpoint) and place < records[0].place
        found: list[bytes] = []
        for record in records[0 if begins else split(records, place) :]:
            data = encode_record(record)
            if found and len(data) > bytes_max and not begins:
                break
            found.append(data)
            bytes_max -= len(data)
        return found

    def remove_before(self, index: int, state: LogState) -> None:
        """Retention: remove the records below `index`, where one ends, and which is committed."""
        count = self._until(index)
        removed = replay(self.records[:count])
        self.records = [removed.checkpoint, removed.marks[-1], *self.records[count:]]
        state.first = removed.length

    def _until(self, index: int) -> int:
        place, count = Place(), 0
        for at, record in enumerate(self.records):
            if at == 0 and isinstance(record, Checkpoint):
                place = record.place
            else:
                place = place.past(record)
            count = at + 1
            if place.length >= index:
                break
        return count


class Host:
    """One node."""

    def __init__(self, name: NodeId, wires: "Wires", config: LogConfig = CONFIG) -> None:
        self.name = name
        self.wires = wires
        self.config = config
        self.disk = Disk()
        self.out: list[Effect[Any]] = []
        self.timers: dict[str, float] = {}
        self.refused: list[str] = []
        self.forks: list[str] = []
        self.committed = 0
        self.sent: list[LogMessage] = []
        self.view: ViewId | None = None
        self._start()

    def _start(self) -> None:
        snapshot = max(self.disk.snapshots, default=None)
        kept = kept_log(self.disk.records, committed=self.committed, snapshot=snapshot)
        self.state = LogState(
            Boot("g", self.name, journal=kept, traced=False), self.config, self.out
        )
        self.committed = self.state.committed  # Of what was never stored a restart shows nothing.
        self.learner = Learner(self.state, self.config, self.out)
        self.donor = Donor(self.state, self.learner, self.config, self.out)

    def restart(self) -> None:
        """A kill: what the disk was asked for and has not done is lost."""
        self.disk.asked.clear()
        self.timers.clear()
        self.out = []
        self._start()

    def enter(self, mark: Mark, target: Place, donors: tuple[NodeId, ...]) -> None:
        """The view of `mark` adopted the log that ends at `target`."""
        self.view = mark.term
        self.donor.begin(mark.term)
        self.learner.begin(target, mark, donors)
        self.run()

    def leave(self) -> None:
        self.view = None
        self.learner.abandon()
        self.donor.abandon()
        self.run()

    def live(self, arrival: Arrival) -> None:
        self.learner.live(arrival)
        self.run()

    def receive(self, origin: NodeId, message: LogMessage) -> None:
        if isinstance(message, Fetch | FetchSnapshot):
            self.donor.receive(origin, message)
        elif isinstance(message, Chunk | CutTo | TooFar):
            self.learner.receive(origin, message)
        self.run()

    def stored(self, number: int) -> None:
        self.state.on_stored(number)
        self.learner.on_stored(number)
        self.run()

    def unstored(self, number: int) -> None:
        self.state.on_unstored(number)
        self.learner.on_unstored(number)
        self.run()

    def loaded(self, request: int, records: list[bytes] | None) -> None:
        self.donor.loaded(request, records)
        self.run()

    def snapshot_loaded(self, request: int, data: bytes | None, size: int) -> None:
        self.donor.snapshot_loaded(request, data, size)
        self.run()

    def expire(self, timer: str) -> None:
        """Let a timer of this name expire, if one is armed."""
        if self.timers.pop(timer, None) is None:
            return
        if timer == "log store":
            self.state.retry()
        elif timer.startswith("log donor"):
            self.donor.expire(timer)
        else:
            self.learner.expire(timer)
        self.run()

    def run(self) -> None:
        self.state.flush()
        effects, self.out[:] = list(self.out), []
        for effect in effects:
            match effect:
                case Send():
                    assert effect.view == self.view
                    assert effect.to is not None, "nothing of this is for all"
                    self.sent.append(effect.message)
                    self.wires.send(self.name, effect.to, effect.message)
                case SetTimer():
                    assert effect.delay_s > 0
                    self.timers[effect.timer] = effect.delay_s
                case CancelTimer():
                    self.timers.pop(effect.timer, None)
                case Refuse():
                    self.refused.append(effect.why)
                case Fork():
                    self.forks.append(effect.why)
                case Committed():
                    assert effect.length > self.committed, "it grows"
                    self.committed = effect.length
                case Store() | Cut() | Reset() | StoreSnapshot() | Load() | LoadSnapshot():
                    self.disk.asked.append(effect)


class Wires:
    """Frames that have not arrived yet."""

    def __init__(self) -> None:
        self.hosts: dict[NodeId, Host] = {}
        self.frames: list[tuple[NodeId, NodeId, bytes]] = []
        self.dead: set[NodeId] = set()

    def add(self, *names: NodeId, config: LogConfig = CONFIG) -> list[Host]:
        for name in names:
            self.hosts[name] = Host(name, self, config)
        return [self.hosts[name] for name in names]

    def send(self, origin: NodeId, to: NodeId, message: LogMessage) -> None:
        tag, body = CODEC.encode(message)
        self.frames.append((origin, to, bytes((tag,)) + body))

    def arrive(self, at: int = 0, *, copies: int = 1) -> None:
        """One of the waiting frames arrives; never, with 0 copies."""
        origin, to, frame = self.frames.pop(at)
        if origin in self.dead or to in self.dead:
            return
        for _ in range(copies):
            self.hosts[to].receive(origin, CODEC.decode(frame[0], frame, 1))

    def settle(self, steps: int = 10_000, lose: Callable[[], bool] = lambda: False) -> None:
        """Frames arrive and disks work until nothing is left to do; timers expire when nothing
        else happens. It ends when all learners that have not crashed have joined, or one is
        stuck."""
        for _ in range(steps):
            if self.frames:
                self.arrive(copies=0 if lose() else 1)
                continue
            alive = [host for host in self.hosts.values() if host.name not in self.dead]
            if sum(host.disk.work(host) for host in alive):
                continue
            timers = [(s, h, t) for h in alive for t, s in h.timers.items()]
            learners = [host.learner for host in alive if host.view is not None]
            stuck = any(learner.stuck for learner in learners)
            if stuck or all(learner.joined for learner in learners) or not timers:
                return
            soonest = min(s for s, _, _ in timers)
            for s, host, timer in timers:
                if s < 2 * soonest:
                    host.expire(timer)
        raise AssertionError("it goes on and on")


# What logs are made of


def mark(seq: int, place: Place, *, members: tuple[NodeId, ...] = ("a", "b", "c")) -> Mark:
    """The mark of view `seq`, behind a log that ends at `place`."""
    sessions = tuple(range(1, len(members) + 1))
    return Mark(
        ViewId(seq, "a"), place.length, members, members, sessions, 0, LOG, opened=place.opened
    )


def arrival(number: int, *, session: int = 1, count: int = 1, size: int = 10) -> Arrival:
    """A log packet of `count` messages of a session."""
    payloads = [b"%d" % n * size for n in range(number, number + count)]
    return Arrival("a", 0, session, number, count, number, pack(payloads))


def opening(name: str) -> Arrival:
    """A log packet that opens a named session."""
    return Arrival("a", 0, named_session(name), 0, 0, 0, name.encode())


def write(host: Host, *arrivals: Arrival) -> None:
    """Put log packets into the log of a host, as if they had been delivered, and store them."""
    for one in arrivals:
        host.state.take(one)
    store(host)


def begin_term(host: Host, seq: int) -> None:
    """Begin a term where the log of a host ends, and store that."""
    host.state.append(mark(seq, host.state.place))
    store(host)


def store(host: Host) -> None:
    """Let the disk do what it was asked for."""
    host.run()
    while host.disk.work(host):
        pass


def replay(records: list[LogRecord]) -> LogState:
    """A node that starts with these records on its disk."""
    kept = kept_log(records, committed=1 << 62)
    return LogState(Boot("g", "replayed", journal=kept, traced=False), CONFIG, [])


def same(host: Host, other: Host) -> bool:
    """Whether two hosts hold the same: records on disk, and what they make of them."""
    one, two = host.state, other.state
    return (
        (one.place, one.digest, one.time_us) == (two.place, two.digest, two.time_us)
        and one.sessions.sessions == two.sessions.sessions
        and ends_alike(host.disk.log, other.disk.log)
        and replay(host.disk.records).checkpoint == one.checkpoint
    )


def ends_alike(one: list[LogRecord], two: list[LogRecord]) -> bool:
    """Whether one log is the end of the other; their beginnings may have been removed."""
    size = min(len(one), len(two))
    one, two = one[len(one) - size :], two[len(two) - size :]
    return one[1:] == two[1:] if size else True


def entries_of(host: Host) -> list[Entries]:
    return [record for record in host.disk.records if isinstance(record, Entries)]


# Snapshots


def snapshot_file(checkpoint: Checkpoint, application: bytes) -> bytes:
    """The file of a snapshot."""
    data = encode_head(SnapshotHead(LOG, 0, checkpoint)) + application
    return data + encode_end(len(application), hashlib.blake2b(data, digest_size=16).digest())


def is_whole(data: bytes) -> bool:
    """Whether the file of a snapshot is undamaged."""
    found = decode_head(data)
    whole, end = data[:-28], data[-16:]
    return found is not None and hashlib.blake2b(whole, digest_size=16).digest() == end


def take_snapshot(host: Host, application: bytes) -> int:
    """A snapshot at the end of a host's log, all of which is committed."""
    state = host.state
    state.show_committed(state.length)
    host.run()
    host.disk.snapshots[state.length] = snapshot_file(state.at(state.length), application)
    state.snapshot = state.length
    return state.length


# How a view begins


def grown(host: Host, *, terms: int = 3, packets: int = 20, size: int = 10) -> None:
    """Give a host a log of several terms."""
    number = 0
    for term in range(1, terms + 1):
        begin_term(host, term)
        for i in range(packets):
            write(host, arrival(number, count=3, size=size))
            number += 3
            if i % 7 == 0:
                write(host, opening(f"s{term}.{i}"))
        write(host, opening(f"end of {term}"))


def enter(hosts: list[Host], seq: int, donors: tuple[str, ...] = ("a",)) -> None:
    """All enter a view, which adopts the log of the first host."""
    target = hosts[0].state.place
    for host in hosts:
        host.enter(mark(seq, target), target, donors)
