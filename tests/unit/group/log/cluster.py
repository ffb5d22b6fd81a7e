"""A few whole stacks with journals, on a network and disks of lists, under a virtual clock.

Small enough to steer every step of a story: who hears whom, whose disk syncs, who dies how. The
simulator proper does the same for random stories.
"""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from tests.unit.group.log.duties import check_duties

from roundelay.core.contract import Boot, Origin
from roundelay.core.effects import (
    Appended,
    CancelTimer,
    Committed,
    Cut,
    Fork,
    Install,
    Kind,
    Load,
    LoadSnapshot,
    Persist,
    Record,
    Refuse,
    Reset,
    Send,
    SetTimer,
    Store,
    StoreSnapshot,
    Suspect,
    Synced,
)
from roundelay.core.ids import View, ViewId
from roundelay.core.kept import kept_log, split
from roundelay.core.log import EMPTY_LOG, Checkpoint, Entries, KeptLog, LogRecord, Mark, Place
from roundelay.group.body import unpack
from roundelay.group.engines import engine_factory
from roundelay.group.log.config import LogConfig
from roundelay.group.packer import GroupConfig
from roundelay.group.stack import Stack
from roundelay.wire.log_record import decode_record, encode_record
from roundelay.wire.primitives import WireError

WALL_US = 1_000_000


class Disk:
    """What survives a life of a node."""

    def __init__(self) -> None:
        self.standing: bytes | None = None
        self.records: list[LogRecord] = []
        """Synced."""
        self.committed = 0
        self.lives = 0
        self.first = 0


class Member:
    """One life of a node."""

    def __init__(self, cluster: "Cluster", name: str, disk: Disk, *, able: bool) -> None:
        self.cluster, self.name, self.disk = cluster, name, disk
        self.incarnation = disk.lives
        self.session = 1000 * (ord(name[0]) - 96) + disk.lives + 1
        disk.lives += 1
        kept: KeptLog = EMPTY_LOG
        if disk.records:
            kept = kept_log(disk.records, committed=disk.committed, able=able)
        elif disk.standing is not None:
            # The directory was never lost: a whole journal in which there is nothing yet.
            kept = replace(EMPTY_LOG, able=able)
        self.boot = Boot(
            "g",
            name,
            self.incarnation,
            disk.standing,
            WALL_US + disk.lives,
            journal=kept if name not in cluster.without_journal else None,
            session=self.session,
        )
        self.stack = Stack(
            self.boot,
            cluster.founders,
            engine_factory(cluster.engine),
            group=cluster.group,
            log=cluster.config,
        )
        self.alive = True
        self.waiting: list[Store | Cut | Reset | StoreSnapshot] = []
        self.syncs = True
        """The disk works."""
        self.full = False
        self.frozen: ViewId | None = None
        """The view that is about to end, since the node froze."""
        self.offered: tuple[ViewId | None, Place] = (None, Place())
        self.timers: dict[str, int] = {}
        self.view = View(ViewId(0, name), (name,))
        self.committed = kept.committed
        self.appended: list[Appended] = []
        self.synced: list[Synced] = []
        self.rows: list[Record] = []
        self.forks: list[Fork] = []
        self.refused: list[str] = []
        self.suspected: list[Suspect] = []

    @property
    def log(self):
        log = self.stack.log
        assert log is not None
        return log

    @property
    def status(self):
        return self.stack.status.log

    def append(self, text: str, session: int | None = None, number: int | None = None) -> int:
        result = self.stack.append(text.encode(), 7, session, number)
        self.do(self.stack.flush())
        return result

    def open_session(self, name: str) -> int:
        result = self.stack.open_session(name, 7)
        self.do(self.stack.flush())
        return result

    def read(self, request: int) -> None:
        self.do(self.stack.sync(request))

    def do(self, effects: list[Any]) -> None:
        cluster = self.cluster
        for effect in effects:
            if not self.alive:
                return
            match effect:
                case Send():
                    check_duties(self, effect)
                    cluster.send(self, effect)
                case SetTimer():
                    cluster.arm(self, effect.timer, effect.delay_s)
                case CancelTimer():
                    self.timers.pop(effect.timer, None)
                case Persist():
                    self.disk.standing = effect.state
                case Install():
                    if not effect.view.transitional:
                        self.view = effect.view
                        self.frozen = None
                case Store() | Cut() | Reset() | StoreSnapshot():
                    self.waiting.append(effect)
                    if self.syncs:
                        cluster.later(cluster.sync_s, self.sync)
                case Load():
                    cluster.later(cluster.sync_s, partial(self.load, effect))
                case LoadSnapshot():
                    raise AssertionError("no snapshots in these stories")
                case Committed():
                    assert effect.length > self.committed
                    self.committed = self.disk.committed = effect.length
                case Appended():
                    self.appended.append(effect)
                case Synced():
                    self.synced.append(effect)
                case Record():
                    self.rows.append(effect)
                    if effect.kind is Kind.FREEZE:
                        self.frozen = self.view.id
                case Suspect():
                    self.suspected.append(effect)
                case Fork():
                    self.forks.append(effect)
                case Refuse():
                    self.refused.append(effect.why)

    def sync(self) -> None:
        """All that was written so far reaches the disk."""
        if not self.alive or not self.waiting or not self.syncs:
            return
        waiting, self.waiting = self.waiting, []
        if self.full:
            self.do(self.stack.unstored(waiting[0].number))
            return
        write(self.disk.records, waiting)
        self.do(self.stack.stored(waiting[-1].number))

    def load(self, effect: Load) -> None:
        if self.alive:
            found: list[bytes] = []
            size = 0
            records = self.disk.records
            begin = split(records, effect.place)
            if records and type(records[0]) is Checkpoint and effect.place < records[0].place:
                begin = 0  # What was asked for is not there any more.
            for record in records[begin:]:
                data = encode_record(record)
                size += len(data)
                if found and size > effect.bytes_max:
                    break
                found.append(data)
            self.do(self.stack.loaded(effect.request, found))

    @property
    def terms(self) -> list[tuple[str, ViewId]]:
        """Texts and terms of the entries on disk."""
        return terms_in(self.disk.records)

    @property
    def texts(self) -> list[str]:
        return [text for text, _ in self.terms]

    @property
    def seen(self) -> list[str]:
        """Texts of the entries, with those that wait for the disk."""
        records = list(self.disk.records)
        write(records, self.waiting)
        return [text for text, _ in terms_in(records)]


def write(records: list[LogRecord], effects: Sequence[Store | Cut | Reset | StoreSnapshot]) -> None:
    """Do to a disk what a core asks for."""
    for effect in effects:
        if isinstance(effect, Store):
            records += effect.records
        elif isinstance(effect, Cut):
            del records[split(records, effect.place) :]
        elif isinstance(effect, Reset):
            records[:] = [effect.checkpoint, effect.mark]


def terms_in(records: Sequence[LogRecord]) -> list[tuple[str, ViewId]]:
    found: list[tuple[str, ViewId]] = []
    for record in records:
        if isinstance(record, Entries) and record.head.count:
            messages = unpack(record.body, record.head.count)
            assert isinstance(messages, tuple)
            found += [(m.decode().strip(), record.head.term) for m in messages]
    return found


class Cluster:
    """Stacks, a network and a clock."""

    def __init__(
        self,
        names: str,
        engine: str = "totem",
        *,
        config: LogConfig | None = None,
        group: GroupConfig | None = None,
        start: bool = True,
        without_journal: str = "",
    ) -> None:
        self.founders = tuple(names)
        self.engine = engine
        self.config = config or LogConfig()
        self.group = group or GroupConfig()
        self.without_journal = without_journal
        self.now = 0.0
        self.sync_s = 0.001
        self.hop_s = 0.0002
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._order = 0
        self.sides: list[set[str]] = [set(names)]
        self.loses: Callable[[str, str, Any], bool] = lambda sender, to, message: False
        self.disks = {name: Disk() for name in names}
        self.members: dict[str, Member] = {}
        if start:
            for name in names:
                self.start(name)

    def __getitem__(self, name: str) -> Member:
        return self.members[name]

    # Faults

    def start(self, name: str, *, able: bool = True, lost: bool = False) -> Member:
        if lost:
            lives = self.disks[name].lives
            self.disks[name] = Disk()
            self.disks[name].lives = lives
        member = Member(self, name, self.disks[name], able=able)
        self.members[name] = member
        member.do(member.stack.start())
        return member

    def kill(self, *names: str, power: bool = False) -> None:
        """Processes die. What was written is in the kernel's hands, unless the power fails too."""
        for name in names:
            member = self.members[name]
            if not power and member.alive:
                member.syncs = True
                effects, member.do = member.do, lambda effects: None  # type: ignore[method-assign]
                member.sync()
                member.do = effects  # type: ignore[method-assign]
            member.alive = False

    def split(self, *sides: str) -> None:
        self.sides = [set(side) for side in sides]

    def heal(self) -> None:
        self.sides = [set(self.founders)]

    # Time

    def later(self, delay_s: float, call: Callable[[], None]) -> None:
        self._order += 1
        heapq.heappush(self._queue, (self.now + delay_s, self._order, call))

    def arm(self, member: Member, timer: str, delay_s: float) -> None:
        self._order += 1
        member.timers[timer] = mine = self._order

        def expire() -> None:
            if member.alive and member.timers.get(timer) == mine:
                del member.timers[timer]
                member.do(member.stack.expire(timer))

        self.later(delay_s, expire)

    def send(self, sender: Member, effect: Send[Any]) -> None:
        tag, data = sender.stack.codec.encode(effect.message)
        origin = Origin("g", sender.name, sender.incarnation, effect.view)
        for side in self.sides:
            if sender.name not in side:
                continue
            for name in sorted(side):
                if name != sender.name and effect.to in (None, name):
                    self.later(self.hop_s, partial(self._arrive, name, origin, tag, data, side))

    def _arrive(self, name: str, origin: Origin, tag: int, data: bytes, side: set[str]) -> None:
        member = self.members.get(name)
        if member is None or not member.alive or side not in self.sides:
            return
        try:
            message = member.stack.codec.decode(tag, data, 0)
        except WireError:
            return  # A driver counts it: a node without a journal does not know these.
        if not self.loses(origin.node, name, message):
            member.do(member.stack.receive(origin, message))

    def run(self, seconds: float = 1.0) -> None:
        end = self.now + seconds
        while self._queue and self._queue[0][0] <= end:
            self.now, _, call = heapq.heappop(self._queue)
            call()
        self.now = end

    def run_until(self, condition: Callable[[], bool], seconds: float = 5.0) -> None:
        end = self.now + seconds
        while not condition():
            assert self._queue, "nothing happens any more"
            assert self._queue[0][0] <= end, "it never came to that"
            self.now, _, call = heapq.heappop(self._queue)
            call()

    # What came of it

    def check(self) -> None:
        """What must hold at any time: no two nodes know different entries to be committed."""
        known: dict[int, tuple[str, str]] = {}
        for name, member in self.members.items():
            for index, text in enumerate(member.texts[: member.committed]):
                other, theirs = known.setdefault(index, (name, text))
                assert theirs == text, f"entry {index} is {text} at {name}, {theirs} at {other}"

    def states(self, names: str) -> list[str]:
        return [self.members[name].status.state for name in names]


__all__ = ["Checkpoint", "Cluster", "Mark", "Member", "decode_record"]
