"""Hosts under every fault of the vocabulary, with cores small enough to see through.

`Echo` is a stack of the smallest kind: it installs a view, keeps a counter on stable storage,
answers each frame, and runs a timer. What the driver owes a core is tested on it.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from roundelay.core.contract import Boot, CoreStatus, Origin, QueueFullError
from roundelay.core.effects import (
    CancelTimer,
    Deliver,
    Effect,
    Install,
    Kind,
    Persist,
    Record,
    Send,
    SetTimer,
)
from roundelay.core.ids import NodeId, Packet, Service, Span, View, ViewId
from roundelay.sim.costs import Costs
from roundelay.sim.faults import Choices, Rates
from roundelay.sim.network import Bus, Channel, Lan, Network
from roundelay.sim.world import World
from roundelay.trace.schema import WORLD, Row
from roundelay.wire.primitives import Reader, Reason, WireError

US, MS, S = 1_000, 1_000_000, 1_000_000_000


class BytesCodec:
    tags: Mapping[int, str] = {1: "NOTE"}

    def encode(self, message: bytes) -> tuple[int, bytes]:
        return 1, message

    def decode(self, tag: int, data: bytes, start: int) -> bytes:
        if tag != 1:
            raise WireError(Reason.MALFORMED)
        return Reader(data, start).rest(10_000)


class Echo:
    """Counts its lives in storage, tells everyone what is submitted, and logs all it is told."""

    codec = BytesCodec()

    def __init__(self, boot: Boot) -> None:
        self.boot = boot
        self.log: list[str] = []
        self.number = 0
        self.accepted: list[tuple[bytes, Service, tuple[NodeId, ...] | None]] = []

    def start(self) -> list[Effect[bytes]]:
        lives = int(self.boot.stored or b"0") + 1
        view = View(ViewId(lives, self.boot.node), (self.boot.node,))
        recover = [Record(Kind.RECOVER, stable_seq=lives - 1)] if self.boot.incarnation else []
        return [*recover, Persist(b"%d" % lives), Install(view), SetTimer("tick", 0.010)]

    @property
    def status(self) -> CoreStatus:
        raise NotImplementedError

    def accept(
        self,
        payload: bytes,
        service: Service = Service.AGREED,
        destinations: tuple[NodeId, ...] | None = None,
    ) -> int:
        if payload == b"full":
            raise QueueFullError
        self.accepted.append((payload, service, destinations))
        return self.number

    def flush(self) -> list[Effect[bytes]]:
        accepted, self.accepted = self.accepted, []
        return [effect for message in accepted for effect in self._send(*message)]

    def _send(
        self, payload: bytes, service: Service, destinations: tuple[NodeId, ...] | None
    ) -> list[Effect[bytes]]:
        if payload == b"cancel":
            return [CancelTimer("tick")]
        if payload == b"later":
            return [SetTimer("tick", 0.030)]
        if payload == b"sooner":
            return [SetTimer("tick", 0.001)]
        span = Span(self.boot.node, self.boot.incarnation, self.number)
        self.number += 1
        packet = Packet(span, service, payload, destinations)
        to = destinations[0] if destinations else None
        return [
            Record(Kind.SUBMIT, packet),
            Record(Kind.ORIGINATE, packet),
            Send(payload, None, to),
            Deliver(packet),
        ]

    def receive(self, origin: Origin, message: bytes) -> list[Effect[bytes]]:
        self.log.append(f"{origin.node} {message.decode()}")
        if message == b"ask":
            return [Send(b"answer", None, origin.node)]
        return [SetTimer("tick", 0.030)] if message == b"wait" else []

    def receive_many(self, origin: Origin, messages: Sequence[bytes]) -> list[Effect[bytes]]:
        self.log.append(f"{origin.node} {b'+'.join(messages).decode()}")
        return []

    def leave(self) -> list[Effect[bytes]]:
        return [Send(b"bye")]

    def expire(self, timer: str) -> list[Effect[bytes]]:
        self.log.append(timer)
        return [SetTimer("tick", 0.010)] if timer == "tick" else []


def world(network: Network | None = None, **options: Any) -> tuple[World, list[Row]]:
    rows: list[Row] = []
    made = World(("a", "b", "c"), Echo, network or Lan(100 * US), rows.append, **options)
    made.start()
    return made, rows


def core(made: World, node: str) -> Echo:
    """A host's core, which in these tests is an Echo."""
    found = made.hosts[node].core
    assert isinstance(found, Echo)
    return found


def log(made: World, node: str) -> list[str]:
    return [entry for entry in core(made, node).log if entry != "tick"]


def kinds(rows: list[Row], kind: str) -> list[Row]:
    return [row for row in rows if row.kind == kind]


def test_a_frame_arrives_after_the_latency_of_the_network():
    made, rows = world()
    made.submit("a", b"x")
    made.run(100 * US - 1)
    assert log(made, "b") == []
    made.run(1)
    assert log(made, "b") == log(made, "c") == ["a x"]
    assert log(made, "a") == []
    (send,) = kinds(rows, "send")
    arrivals = kinds(rows, "arrive")
    assert {row.pkt for row in arrivals} == {send.pkt}
    assert [row.peer for row in arrivals] == [0, 0]
    assert all(row.tag == "NOTE" for row in [send, *arrivals])


def test_a_frame_for_one_node_reaches_that_node_alone():
    made, _ = world()
    made.submit("a", b"x", destinations=("c",))
    made.run(MS)
    assert (log(made, "b"), log(made, "c")) == ([], ["a x"])


def test_on_a_channel_a_sender_hears_itself_in_place():
    made, _ = world(Channel())
    made.submit("a", b"x")
    made.submit("b", b"y")
    made.run(MS)
    assert log(made, "a") == log(made, "b") == log(made, "c") == ["a x", "b y"]


def test_timers_expire_repeat_move_and_are_cancelled():
    made, _ = world()
    ticks = lambda: core(made, "a").log.count("tick")  # noqa: E731
    made.run(10 * MS - 1)
    assert ticks() == 0
    made.run(1)
    assert ticks() == 1  # And armed again, for 20 ms.
    made.run(5 * MS)
    made.submit("a", b"later")  # For 45 ms: the alarm of 20 ms must not count.
    made.run(29 * MS)
    assert ticks() == 1
    made.run(1 * MS)
    assert ticks() == 2
    made.submit("a", b"sooner")  # For 46 ms instead of 55.
    made.run(1 * MS)
    assert ticks() == 3
    made.submit("a", b"cancel")
    made.run(S)
    assert ticks() == 3


def test_a_drifting_clock_makes_timers_late():
    made, _ = world()
    made.drift("b", 2.0)
    made.run(50 * MS)
    assert core(made, "a").log.count("tick") == 5
    assert core(made, "b").log.count("tick") == 3  # 10, 30 and 50 ms.


def test_loss_duplication_reordering_and_corruption_are_counted_in_the_trace():
    rates = Rates(loss=0.2, duplicate=0.2, reorder=0.2, corrupt=0.2)
    made, rows = world(choices=Choices(5))
    made.set_rates(rates)
    for i in range(500):
        made.submit("a", b"%03d" % i)
        made.run(200 * US)
    made.run(10 * MS)
    heard = log(made, "b")
    assert len(heard) != len(set(heard))  # Copies.
    assert heard != sorted(heard)  # Overtaking.
    assert len(set(heard)) < 400  # Loss, and damage that was noticed.
    reasons = {row.tag for row in kinds(rows, "drop")}
    assert {"loss", "checksum"} <= reasons
    assert all(row.proc == WORLD for row in kinds(rows, "drop") if row.tag == "loss")
    dropped = sum(made.hosts["b"].endpoint.drops.values())
    assert dropped == sum(row.proc == 1 for row in kinds(rows, "drop"))


def test_a_partition_separates_both_ways_and_a_merge_mends_it():
    made, rows = world()
    made.partition(("a", "b"), ("c",))
    assert made.components() == [("a", "b"), ("c",)]
    made.submit("a", b"x")
    made.submit("c", b"y")
    made.run(MS)
    assert (log(made, "a"), log(made, "b"), log(made, "c")) == ([], ["a x"], [])
    assert [row.tag for row in kinds(rows, "drop")] == ["cut"] * 3
    made.merge()
    made.submit("a", b"z")
    made.run(MS)
    assert log(made, "c") == ["a z"]


def test_a_cut_is_one_way_and_may_be_partial():
    made, _ = world()
    made.cut([("a", "b")])
    made.submit("a", b"x")
    made.submit("b", b"y")
    made.run(MS)
    assert log(made, "a") == ["b y"]
    assert log(made, "b") == []
    assert log(made, "c") == ["a x", "b y"]
    assert made.components() == [("a", "b", "c")]  # By way of c.


def test_a_frame_under_way_when_the_network_parts_still_arrives():
    made, _ = world()
    made.submit("a", b"x")
    made.partition(("a",), ("b", "c"))
    made.run(MS)
    assert log(made, "b") == ["a x"]


def test_a_crashed_node_is_silent_and_its_next_life_reads_its_storage():
    made, rows = world()
    made.run(5 * MS)
    made.crash("b")
    made.submit("b", b"unheard")
    made.submit("a", b"x")
    made.run(100 * MS)
    assert log(made, "a") == []
    assert made.components() == [("a", "c")]
    made.restart("b")
    made.submit("a", b"y")
    made.run(MS)
    assert log(made, "b") == ["a y"]  # Nothing of the first life, no alarm of it either.
    installs = [(r.proc, r.inc, r.c_seq) for r in kinds(rows, "install") if r.proc == 1]
    assert installs == [(1, 0, 1), (1, 1, 2)]
    (recover,) = kinds(rows, "recover")
    assert (recover.inc, recover.lseq, recover.k0) == (1, 0, 1)
    made.crash("b")
    made.restart("b", "lost")
    assert made.hosts["b"].storage == b"1"
    assert made.hosts["b"].incarnation == 2


def test_a_node_that_leaves_says_so_and_is_gone():
    made, rows = world()
    made.leave("b")
    made.leave("b")  # Gone already: nothing happens.
    made.run(MS)
    assert log(made, "a") == ["b bye"]
    assert not made.hosts["b"].alive
    assert [row.proc for row in kinds(rows, "crash")] == [1]


def test_in_turns_frames_of_one_sender_come_as_bursts_and_messages_leave_together():
    made, rows = world(turn_ns=MS)
    for payload in (b"1", b"2", b"full", b"3"):
        made.submit("a", payload)
    made.submit("b", b"4")
    assert not kinds(rows, "submit")
    made.run(3 * MS)
    assert len(kinds(rows, "submit")) == 4
    assert log(made, "c") == ["a 1+2+3", "b 4"]
    assert made.hosts["a"].refused == 1


def test_in_turns_each_burst_has_its_rows_before_those_of_the_next():
    made, rows = world(turn_ns=MS)
    made.submit("a", b"ask")
    made.submit("b", b"ask")
    made.run(2500 * US)
    here = [row for row in rows if row.proc == 2 and row.kind in ("arrive", "send")]
    assert [(row.kind, row.peer) for row in here] == [
        ("arrive", 0),
        ("send", 0),
        ("arrive", 1),
        ("send", 1),
    ]
    assert [here[1].cause, here[3].cause] == [here[0].lseq, here[2].lseq]


def test_in_turns_frames_come_before_timers():
    made, _ = world(turn_ns=MS)
    made.run(9500 * US)
    made.submit("a", b"1")  # Leaves at 10.5 ms; the timer of b runs out at 10 ms, its turn at 11.
    made.run(2600 * US)
    assert core(made, "b").log == ["a 1", "tick"]


def test_in_turns_a_timer_that_was_put_off_waits():
    made, _ = world(turn_ns=MS)
    made.run(9500 * US)
    made.submit("a", b"wait")  # Comes within the turn in which the timer of b runs out.
    made.run(20 * MS)
    assert core(made, "b").log == ["a wait"]


def test_a_turn_that_a_pause_interrupts_is_made_up_for_later():
    made, rows = world(turn_ns=MS)
    made.submit("a", b"1")
    made.pause("a")
    made.run(5 * MS)
    assert not kinds(rows, "submit")
    made.resume("a")
    made.run(5 * MS)
    assert [row.proc for row in kinds(rows, "submit")] == [0]
    assert log(made, "b") == ["a 1"]


def test_a_crash_forgets_the_inputs_of_its_turn():
    made, rows = world(turn_ns=MS)
    made.submit("a", b"1")
    made.crash("a")
    made.restart("a")
    made.run(5 * MS)
    assert not kinds(rows, "submit")


def test_torn_storage_is_a_part_of_what_was_written():
    rows: list[Row] = []

    class Careful(Echo):
        def start(self) -> list[Effect[bytes]]:
            recover = [Record(Kind.RECOVER)] if self.boot.incarnation else []
            return [*recover, Persist(b"0123456789" * self.boot.incarnation)]

    made = World(("a",), Careful, Lan(), rows.append, choices=Choices(4))
    made.start()
    seen = set()
    for _ in range(30):
        made.crash("a")
        made.hosts["a"].storage = b"0123456789"
        made.restart("a", "torn")
        seen.add(core(made, "a").boot.stored)
    assert all(b"0123456789".startswith(stored or b"") for stored in seen)
    assert b"0123456789" not in seen
    assert len(seen) > 3


def test_a_node_can_die_between_two_effects_of_one_step():
    made, rows = world()
    made.crash("a", after_effects=3)
    made.submit("a", b"x")
    assert not made.hosts["a"].alive
    assert [row.kind for row in rows if row.proc == 0][-3:] == ["originate", "send", "crash"]
    made.run(MS)
    assert log(made, "b") == ["a x"]  # The send had happened; the delivery had not.


def test_storage_is_written_before_the_step_goes_on():
    made, _ = world()
    made.crash("a")
    made.hosts["a"].fuse = None
    made.restart("a")
    assert made.hosts["a"].storage == b"2"
    made.crash("a")
    made.hosts["a"].fuse = 2  # Recover and Persist, then death before Install.
    made.restart("a")
    assert not made.hosts["a"].alive
    assert made.hosts["a"].storage == b"3"


def test_a_paused_node_takes_frames_before_timers_when_it_wakes():
    made, _ = world()
    made.pause("b")
    made.run(15 * MS)
    made.submit("a", b"x")
    made.run(15 * MS)
    assert core(made, "b").log == []
    made.resume("b")
    made.run(0)
    assert core(made, "b").log == ["a x", "tick"]


def test_a_full_socket_buffer_loses_what_comes():
    made, rows = world(buffer_frames=3)
    made.pause("b")
    for i in range(5):
        made.submit("a", b"%d" % i)
    made.run(MS)
    made.resume("b")
    made.run(MS)
    assert log(made, "b") == ["a 0", "a 1", "a 2"]
    assert [row.tag for row in kinds(rows, "drop")] == ["overrun"] * 2


def test_a_slow_node_handles_one_input_after_the_other():
    made, _ = world()
    made.slow("b", 5 * MS)
    for i in range(3):
        made.submit("a", b"%d" % i)
    made.run(9 * MS)
    assert log(made, "b") == ["a 0"]
    made.run(20 * MS)
    assert log(made, "b") == ["a 0", "a 1", "a 2"]


def test_processor_costs_delay_sends_and_receipts():
    costs = Costs(send_ns=1 * MS, receive_ns=2 * MS, byte_ns=0.0)
    made, rows = world(Lan(100 * US), costs=costs)
    made.submit("a", b"x")
    made.submit("a", b"y")
    made.run(20 * MS)
    # Sent at 1 and 2 ms; heard 0.1 ms later; each receipt takes 2 ms.
    times = [row.t_ns for row in kinds(rows, "arrive") if row.proc == 1]
    assert times == [3_100 * US, 5_100 * US]


def test_the_cost_of_a_message_type_replaces_the_cost_of_receiving():
    made, rows = world(costs=Costs(receive_ns=2 * MS, tag_ns={"NOTE": 7 * MS}))
    made.submit("a", b"x")
    made.run(20 * MS)
    assert {row.t_ns for row in kinds(rows, "arrive")} == {7_100 * US}


def test_the_bus_is_shared_by_all_senders():
    made, rows = world(Bus(rate_bps=10_000_000, propagation_ns=0, overhead_bytes=0))
    made.submit("a", b"x" * 1000)
    made.submit("b", b"y" * 1000)
    made.run(10 * MS)
    first, second = sorted({row.t_ns for row in kinds(rows, "arrive")})
    assert second == 2 * first


def test_a_refused_message_leaves_no_trace():
    made, rows = world()
    before = len(rows)
    made.submit("a", b"full")
    assert made.hosts["a"].refused == 1
    assert len(rows) == before


def test_healing_ends_every_fault_but_death():
    made, rows = world()
    made.set_rates(Rates(loss=1.0))
    made.partition(("a",), ("b", "c"))
    made.pause("b")
    made.slow("c", S)
    made.crash("a")
    made.heal()
    made.submit("b", b"x")
    made.run(MS)
    assert log(made, "c") == ["b x"]
    made.end()
    assert [row.tag for row in kinds(rows, "fault")][-1] == "heal"
    assert [row.members for row in kinds(rows, "end")] == [(1, 2)]


def test_every_row_has_its_place():
    made, rows = world(choices=Choices(2))
    made.set_rates(Rates(loss=0.1, duplicate=0.1))
    for i in range(50):
        made.submit("abc"[i % 3], b"%d" % i)
        made.run(MS)
    made.crash("b")
    made.restart("b")
    made.run(S)
    assert [row.gseq for row in rows] == list(range(len(rows)))
    writers: dict[tuple[int, int], int] = {}
    for row in rows:
        assert row.lseq == writers.get((row.proc, row.inc), 0)
        writers[row.proc, row.inc] = row.lseq + 1
    assert all(a.t_ns <= b.t_ns for a, b in itertools.pairwise(rows))
    caused = [row for row in rows if row.cause is not None]
    assert {row.kind for row in caused} == {"originate", "send", "deliver"}
    assert all(row.cause is not None and row.cause < row.lseq for row in caused)


def test_impossible_faults_are_refused():
    made, _ = world()
    with pytest.raises(ValueError, match="two components"):
        made.partition(("a",), ("a", "b"))
    with pytest.raises(ValueError, match="clock"):
        made.drift("a", 0)
