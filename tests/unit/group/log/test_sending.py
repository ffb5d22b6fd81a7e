"""What was appended goes again until it is committed: in order, and into the log once."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from roundelay.core.contract import Boot, QueueFullError
from roundelay.core.effects import Appended, Kind, Record
from roundelay.core.ids import Packet, Service, Span, ViewId
from roundelay.core.log import EMPTY_LOG, Mark, Place
from roundelay.group.body import unpack
from roundelay.group.log.arrival import Arrivals
from roundelay.group.log.config import LogConfig
from roundelay.group.log.sending import Sending
from roundelay.group.log.state import LogState
from roundelay.group.packer import GroupConfig, Packer

BOOT = Boot("g", "a", 3, journal=EMPTY_LOG, session=77)
GROUP = GroupConfig(packet_bytes=120, packet_messages=3)


def sending(config: LogConfig | None = None) -> tuple[Sending, list[object]]:
    out: list[object] = []
    return Sending(BOOT, config or LogConfig(), GROUP, out), out  # type: ignore[arg-type]


def fed(queue: Sending) -> list[tuple[list[bytes], int]]:
    found: list[tuple[list[bytes], int]] = []
    while queue.unfed:
        queue.feed(lambda bodies, count: found.append((bodies, count)))
    return found


def test_numbers_count_from_zero_in_each_session():
    queue, _ = sending()
    assert [queue.append(b"x", 1, None, None) for _ in range(3)] == [0, 1, 2]
    client = queue.open_session("client", 1)
    assert queue.append(b"x", 1, client, None) == 0
    assert queue.append(b"x", 1, client, 41) == 41
    assert queue.append(b"x", 1, client, None) == 42
    assert queue.append(b"x", 1, None, None) == 3


def test_messages_that_can_never_be_sent_are_refused():
    queue, _ = sending()
    with pytest.raises(TypeError, match="an entry is of type bytes, not str"):
        queue.append("x", 1, None, None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="is opened before it is used"):
        queue.append(b"x", 1, 2**63 + 5, None)
    with pytest.raises(ValueError, match="numbered by their client"):
        queue.append(b"x", 1, None, 4)
    with pytest.raises(ValueError, match="cannot be the name of a session"):
        queue.open_session("a/b", 1)
    assert queue.messages == 0


def test_a_full_queue_refuses_and_keeps_what_it_has():
    queue, _ = sending(LogConfig(queue_bytes=10, queue_messages=3))
    queue.append(b"123456", 1, None, None)
    with pytest.raises(QueueFullError):
        queue.append(b"12345", 1, None, None)
    queue.append(b"1234", 1, None, None)
    queue.append(b"", 1, None, None)
    with pytest.raises(QueueFullError):
        queue.append(b"", 1, None, None)
    assert (queue.messages, queue.bytes) == (3, 10)


def test_rows_tell_of_each_message_once():
    queue, out = sending()
    for _ in range(5):
        queue.append(b"x", 9, None, None)
    queue.record()
    queue.append(b"x", 9, None, None)
    queue.record()
    queue.record()
    heads = [row.head for row in out if isinstance(row, Record) and row.kind is Kind.APPEND]
    assert [(h.session, h.number, h.count) for h in heads if h] == [
        (77, 0, 3),
        (77, 3, 2),
        (77, 5, 1),
    ]


def test_the_engine_is_told_exactly_how_many_packets_wait():
    queue, _ = sending()
    for size in (1, 500, 1, 40, 300, 7):
        queue.append(bytes(size), 1, None, None)
    queue.open_session("client", 1)
    waiting = queue.unfed
    assert sum(len(bodies) for bodies, _ in fed(queue)) == waiting
    queue.take_back()
    assert queue.unfed == waiting


def test_what_was_sent_once_goes_again_as_it_was():
    """Another member's log may hold it, and then its index is found by its numbers."""
    queue, out = sending()
    state = LogState(BOOT, LogConfig(), [])
    state.on_entries = queue.note_entries
    queue.append(b"x", 1, None, None)
    queue.append(b"x", 1, None, None)
    ((bodies, _),) = fed(queue)
    queue.take_back()
    queue.append(b"y", 1, None, None)
    assert [count for _, count in fed(queue)] == [2, 1]
    state.append(Mark(ViewId(4, "a"), 0, ("a",), ("a",), (77,), 0, b"L" * 16))
    arrival = Arrivals(1000).read(Packet(Span("a", 3, 0, 2), Service.AGREED, bodies[0]))
    assert arrival is not None
    state.take(arrival)
    queue.commit(state.place, state.sessions)
    assert out == [Appended(77, 0, 2, 0)]


class Queue(RuleBasedStateMachine):
    """One node that appends, a log that takes what is delivered, and view changes that lose what
    was under way, or cut what was in the log already."""

    def __init__(self) -> None:
        super().__init__()
        self.queue, self.out = sending()
        self.state = LogState(BOOT, LogConfig(), [])
        self.state.on_entries = self.queue.note_entries
        self.state.on_cut = self.queue.cut
        self.packer = Packer("a", 3, GROUP)
        self.arrivals = Arrivals(GROUP.message_bytes_max)
        self.texts: list[bytes] = []
        """Of the log."""
        self.places: list[tuple[Place, int]] = []
        self.appended: list[bytes] = []
        self.term = 0
        self.confirmed = 0
        self.open()

    def open(self) -> None:
        """A view opens."""
        self.term += 4
        place = self.state.place
        self.state.append(
            Mark(
                ViewId(self.term, "a"),
                place.length,
                ("a",),
                ("a",),
                (77,),
                0,
                b"L" * 16,
                opened=place.opened,
            )
        )
        self.queue.compare(self.state.sessions, self.state.place)

    @rule(size=st.sampled_from((10, 30, 150, 400)), several=st.integers(1, 4))
    def append(self, size: int, several: int) -> None:
        for _ in range(several):
            text = str(len(self.appended)).encode().ljust(size)
            number = self.queue.append(text, 1, None, None)
            assert number == len(self.appended)
            self.appended.append(text)

    @precondition(lambda self: self.queue.unfed)
    @rule(parcels=st.integers(1, 3))
    def feed(self, parcels: int) -> None:
        for _ in range(parcels):
            if self.queue.unfed:
                self.queue.feed(self.packer.enqueue)

    @precondition(lambda self: self.packer.waiting)
    @rule(packets=st.integers(1, 6))
    def deliver(self, packets: int) -> None:
        for _ in range(packets):
            packet = self.packer.pull()
            if packet is None:
                return
            arrival = self.arrivals.read(packet)
            if arrival is None:
                continue
            entries = self.state.take(arrival)
            if entries is None:
                self.queue.note_duplicate(arrival, self.state.sessions, self.state.place)
                continue
            messages = unpack(entries.body, entries.head.count)
            assert isinstance(messages, tuple)
            self.texts += messages
            self.places.append((self.state.place, len(self.texts)))

    @rule(pulled=st.integers(0, 3), cut=st.integers(0, 3))
    def change_the_view(self, pulled: int, cut: int) -> None:
        for _ in range(pulled):
            self.packer.pull()  # And nobody ever delivers it.
        for packet in self.packer.drop_log_packets():
            self.packer.put_back(packet)
        self.packer.start_view()
        self.arrivals.forget()
        self.queue.take_back()
        for _ in range(cut):
            if len(self.places) > 1 and self.places[-2][1] >= self.confirmed:
                self.places.pop()
                place, length = self.places[-1]
                if place.term != self.state.place.term:
                    continue  # Only what is of the last term is cut here.
                self.state.cut(place)
                del self.texts[length:]
        self.open()

    @rule()
    def commit(self) -> None:
        self.state.show_committed(self.state.length)
        self.queue.commit(self.state.place, self.state.sessions)
        for effect in self.out:
            if isinstance(effect, Appended):
                assert effect.number == self.confirmed
                assert effect.index is not None
                for i in range(effect.count):
                    assert self.texts[effect.index + i] == self.appended[effect.number + i]
                self.confirmed += effect.count
        self.out.clear()
        self.places = [(self.state.place, len(self.texts))]

    @invariant()
    def the_log_is_what_was_appended_in_order(self) -> None:
        assert self.texts == self.appended[: len(self.texts)]

    @invariant()
    def counts_are_right(self) -> None:
        assert self.queue.messages == len(self.appended) - self.confirmed
        assert self.queue.bytes == sum(map(len, self.appended[self.confirmed :]))

    def teardown(self) -> None:
        """In one more view all of it comes."""
        self.change_the_view(0, 0)
        while self.queue.unfed or self.packer.waiting:
            self.feed(3)
            self.deliver(6)
        self.commit()
        assert self.confirmed == len(self.appended)


TestQueue = Queue.TestCase
TestQueue.settings = settings(stateful_step_count=30)


def test_a_forged_body_is_no_arrival():
    arrivals = Arrivals(1000)
    span = Span("b", 0, 0, 2)
    good = Packet(span, Service.AGREED, bytes((4,)) + bytes(24) + b"\1\0\0\0\1xy")
    read = arrivals.read(good)
    assert read is not None
    assert read.count == 2
    for body in (
        b"",
        bytes((4,)),
        bytes((4,)) + bytes(24),
        bytes((4,)) + bytes(24) + b"\1\0\0\0\2xy",
        bytes((4,)) + bytes(24) + b"\2\0\0\0\1\0\0\0\2xy",
        bytes((4,)) + bytes(24) + b"\7xy",
        bytes((4,)) + b"\xff" * 24 + b"\1\0\0\0\1xy",
        bytes((5,)) + bytes(24) + b"name",
    ):
        assert arrivals.read(Packet(span, Service.AGREED, body)) is None
