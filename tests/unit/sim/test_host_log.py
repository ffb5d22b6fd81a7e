"""The driver of a log: when the core is told that something is stored, and what survives what."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from roundelay.core.checksum import crc32
from roundelay.core.contract import Boot
from roundelay.core.effects import Cut, Fork, Load, Reset, Store, StoreSnapshot
from roundelay.core.ids import ViewId
from roundelay.core.log import Checkpoint, Entries, Head, Mark, Place
from roundelay.sim.application import Application
from roundelay.sim.disk import Mood, Policy
from roundelay.sim.host_log import INTERVAL_NS, Journals, PowerCut
from roundelay.sim.network import Lan
from roundelay.sim.world import World
from roundelay.wire.log_record import encode_record

MS = 1_000_000
TERM = ViewId(4, "a")
MARK = Mark(TERM, 0, ("a",), ("a",), (1,), 0, bytes(16))
BODY = b"\1\0\0\0\1x"


def entry(index: int) -> Entries:
    return Entries(Head(index, TERM, "a", 0, 1, index, 1, 0, crc32(BODY)), BODY)


class Codec:
    tags: Mapping[int, str] = {}


@dataclass
class Told:
    """A core that notes what it is told."""

    boot: Boot
    codec: Any = field(default_factory=Codec)
    heard: list[tuple[str, tuple[Any, ...]]] = field(default_factory=list)

    def start(self) -> list[Any]:
        return []

    def __getattr__(self, name: str) -> Any:
        def hear(*arguments: Any) -> list[Any]:
            self.heard.append((name, arguments))
            return []

        return hear


class Node:
    """One host with a journal, whose core does what the test says."""

    def __init__(self, policy: Policy = Policy.ALWAYS, sync_ns: int = MS) -> None:
        self.rows: list[Any] = []
        self.world = World(["a"], Told, Lan(), self.rows.append, journal=Journals(policy, sync_ns))
        self.world.start()
        self.host = self.world.hosts["a"]
        assert self.host.log is not None
        self.log = self.host.log

    def do(self, *effects: Any) -> None:
        self.host._perform(list(effects))

    @property
    def boot(self) -> Any:
        core: Any = self.host.core
        return core.boot

    @property
    def heard(self) -> list[tuple[str, tuple[Any, ...]]]:
        core: Any = self.host.core
        heard: list[tuple[str, tuple[Any, ...]]] = core.heard
        return heard

    @property
    def stored(self) -> list[int]:
        return [arguments[0] for name, arguments in self.heard if name == "stored"]

    def restart(self) -> Any:
        self.world.restart("a")
        return self.boot.journal


def test_what_comes_while_the_disk_syncs_is_synced_together_behind_it():
    node = Node()
    for number in range(4):
        node.do(Store(number, (MARK if number == 0 else entry(number - 1),)))
    assert node.stored == []
    assert len(node.log.disk.written) == 1
    node.world.run(4 * MS)
    assert node.stored == [0, 3]
    assert node.log.disk.synced == 4


def test_a_cut_is_synced_before_what_comes_behind_it():
    node = Node()
    node.do(Store(0, (MARK, entry(0), entry(1))), Cut(1, Place(TERM, 1)), Store(2, (entry(1),)))
    node.world.run(10 * MS)
    assert node.stored == [0, 1, 2]
    assert node.log.disk.records() == [MARK, entry(0), entry(1)]


def test_a_kill_loses_what_waits_for_the_writer_and_keeps_what_is_written():
    node = Node()
    node.do(Store(0, (MARK, entry(0))), Store(1, (entry(1),)))
    node.world.crash("a")
    assert node.restart().tail[-1].index == 0
    assert node.boot.journal.able
    assert [row.tag for row in node.rows if row.kind == "crash"] == ["kill"]


def test_a_power_cut_loses_what_is_not_synced():
    node = Node()
    node.do(Store(0, (MARK, entry(0))))
    node.world.run(2 * MS)
    node.do(Store(1, (entry(1),)))
    node.world.crash("a", power=PowerCut(0))
    assert [head.index for head in node.restart().tail[1:]] == [0]
    assert [row.tag for row in node.rows if row.kind == "crash"] == ["power"]


def test_interval_says_stored_when_it_is_written_and_syncs_later():
    node = Node(Policy.INTERVAL)
    node.do(Store(0, (MARK, entry(0))))
    node.world.run(MS)
    assert node.stored == [0]
    assert node.log.disk.synced == 0
    node.world.run(INTERVAL_NS + 2 * MS)
    assert node.log.disk.synced == 2
    node.world.crash("a", power=PowerCut(0))
    kept = node.restart()
    assert not kept.able
    assert len(kept.tail) == 2


def test_off_says_stored_at_once_and_is_not_able_after_a_kill():
    node = Node(Policy.OFF)
    node.do(Store(0, (MARK,)))
    node.world.run(1)
    assert node.stored == [0]
    node.world.crash("a")
    assert not node.restart().able


def test_off_is_able_after_a_goodbye():
    node = Node(Policy.OFF)
    node.do(Store(0, (MARK,)))
    node.world.run(1)
    node.world.leave("a")
    assert node.restart().able


def test_without_room_nothing_up_to_now_is_done():
    node = Node()
    node.do(Store(0, (MARK,)))
    node.world.run(2 * MS)
    node.world.set_disk("a", Mood.FULL)
    node.do(Store(1, (entry(0),)), Store(2, (entry(1),)))
    node.world.run(2 * MS)
    assert ("unstored", (1,)) in node.heard
    node.world.set_disk("a", Mood.OK)
    node.do(Store(3, (entry(0),)))
    node.world.run(2 * MS)
    assert node.stored == [0, 3]
    assert node.log.disk.records() == [MARK, entry(0)]


def test_a_failed_sync_stops_the_node_and_what_it_was_for_is_lost():
    node = Node()
    node.do(Store(0, (MARK, entry(0))))
    node.world.run(2 * MS)
    node.world.set_disk("a", Mood.FAILS)
    node.do(Store(1, (entry(1),)))
    node.world.run(2 * MS)
    assert not node.host.alive
    assert node.stored == [0]
    node.world.set_disk("a", Mood.OK)
    assert [head.index for head in node.restart().tail[1:]] == [0]


def test_a_slow_disk_takes_a_hundred_times_as_long():
    node = Node()
    node.world.set_disk("a", Mood.SLOW)
    node.do(Store(0, (MARK,)))
    node.world.run(49 * MS)
    assert node.stored == []
    node.world.run(102 * MS)
    assert node.stored == [0]


def test_a_load_reads_what_was_asked_to_be_stored_and_no_checkpoints():
    node = Node()
    checkpoint = Checkpoint(Place(TERM, 0), 0, 0, ())
    node.do(Store(0, (MARK, checkpoint, entry(0), entry(1))), Load(7, Place(), 100_000))
    node.world.run(MS)
    found = [encode_record(record) for record in (MARK, entry(0), entry(1))]
    assert ("loaded", (7, found)) in node.heard
    node.do(Load(8, Place(TERM, 1), 1))
    node.world.run(MS)
    assert ("loaded", (8, [encode_record(entry(1))])) in node.heard


def test_a_snapshot_that_is_not_whole_is_dropped():
    node = Node()
    node.do(StoreSnapshot(0, 5, 0, b"no snapshot", last=True))
    node.world.run(2 * MS)
    assert ("unstored", (0,)) in node.heard
    assert node.log.disk.snapshots == {}


def test_a_reset_begins_anew():
    node = Node()
    checkpoint = Checkpoint(Place(TERM, 3), 0, 0, ())
    node.do(Store(0, (MARK, entry(0))), Reset(1, checkpoint, MARK), Store(2, (entry(3),)))
    node.world.run(10 * MS)
    assert node.log.disk.records() == [checkpoint, MARK, entry(3)]
    node.world.crash("a")
    assert node.restart().first == 3


def test_a_fork_stops_the_node_before_anything_else_is_done():
    node = Node()
    node.do(Fork("two logs"), Store(0, (MARK,)))
    assert not node.host.alive
    assert node.log.disk.written == []


def test_a_lost_disk_is_empty_at_the_next_start():
    node = Node()
    node.do(Store(0, (MARK,)))
    node.world.run(2 * MS)
    node.world.crash("a")
    node.world.restart("a", "lost")
    assert node.boot.journal.marks == ()
    assert not node.boot.journal.able


def test_each_life_has_a_session_of_its_own():
    node = Node()
    first = node.boot.session
    node.world.crash("a")
    node.restart()
    assert 0 < node.boot.session != first
    assert node.boot.session < 1 << 63


@pytest.mark.parametrize("length", [0, 1, 2, 3])
def test_applications_with_equal_entries_have_equal_states(length):
    whole, parts = Application(), Application()
    whole.apply([MARK, entry(0), entry(1), entry(2)], length)
    for index in range(3):
        parts.apply([entry(index)], length)
    assert (whole.length, whole.state) == (parts.length, parts.state) == (length, whole.state)
    again = Application()
    again.restore(whole.snapshot())
    assert again.state == whole.state
