"""What ST says on the wire, and what no member can have said: counted or ignored, and bounded."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundelay.core.contract import Origin
from roundelay.core.effects import Deliver, Refuse, Send
from roundelay.core.ids import Packet, Service, Span, View, ViewId
from roundelay.protocols.st.config import Config
from roundelay.protocols.st.lists import Collected, List, parts
from roundelay.protocols.st.member import StMember
from roundelay.protocols.st.messages import (
    Again,
    Done,
    ListPart,
    Name,
    Placed,
    Poll,
    Raised,
    Reset,
    StCodec,
    Taken,
    Transmission,
    Want,
)
from roundelay.wire.primitives import I64_MAX, WireError

NODES = ("a", "b", "c")
VIEW = View(ViewId(1, "a"), NODES)
CODEC = StCodec()

small = st.integers(1, 4)
large = st.one_of(small, st.integers(1, I64_MAX), st.just(I64_MAX))
places = st.integers(0, 3)
to = st.one_of(
    st.none(), st.lists(st.sampled_from(("a", "b", "c", "zz")), max_size=3, unique=True).map(tuple)
)
packets = st.builds(
    lambda node, first, names: Packet(Span(node, 0, first, 1), Service.AGREED, b"x", names),
    st.sampled_from(NODES),
    st.integers(0, 3),
    to,
)


@st.composite
def transmissions(draw: st.DrawFn) -> Transmission:
    size = draw(st.sampled_from((3, 3, 3, 2, 4)))
    ack = draw(st.lists(large, min_size=size, max_size=size))
    behind = [draw(st.integers(0, min(a, 3))) for a in ack]
    return Transmission(
        draw(places),
        draw(st.one_of(st.integers(0, 2), large)),
        draw(large),
        tuple(draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))),
        tuple(ack),
        tuple(a - b for a, b in zip(ack, behind, strict=True)),
        tuple(a - b for a, b in zip(ack, behind, strict=True)),
        draw(st.integers(0, 9)),
        draw(st.one_of(st.none(), packets)),
    )


names = st.builds(Name, places, large)
epochs = st.one_of(st.integers(0, 2), large)
messages = st.one_of(
    st.builds(Placed, st.integers(0, I64_MAX), st.integers(0, I64_MAX), transmissions()),
    st.builds(Placed, st.integers(1, 9), st.integers(1, 9), transmissions()),
    st.builds(Raised, large, transmissions()),
    st.builds(Taken, large),
    st.builds(Poll),
    st.builds(Reset, epochs),
    st.builds(ListPart, epochs, places, st.integers(0, 1), st.integers(2, 4), st.binary()),
    st.builds(
        Want,
        epochs,
        st.lists(places, max_size=3).map(tuple),
        st.lists(names, max_size=3).map(tuple),
    ),
    st.builds(Again, epochs, names, packets),
    st.builds(Done, epochs, st.lists(places, max_size=3).map(tuple)),
)


@given(messages)
def test_messages_survive_the_wire(message):
    tag, data = CODEC.encode(message)
    assert CODEC.decode(tag, b"?" + data, 1) == message
    for size in range(0, len(data), 7):
        if not isinstance(message, ListPart):  # The last bytes of it may be any.
            with pytest.raises(WireError):
                CODEC.decode(tag, data[:size], 0)


@given(st.integers(0, 70), st.binary(max_size=200))
def test_garbage_is_a_wire_error_and_nothing_else(tag, data):
    with suppress(WireError):
        CODEC.decode(tag, data, 0)


@given(messages, st.sampled_from((0, max(CODEC.tags) + 1)))
def test_what_no_message_has_as_its_tag_is_refused(message, tag):
    """Also if the rest can be read: who traces a frame looks up the name of its tag."""
    with pytest.raises(WireError):
        CODEC.decode(tag, CODEC.encode(message)[1], 0)


class Queue:
    """What a member has to send."""

    traced = True

    def __init__(self, count: int) -> None:
        self.left = [
            Packet(Span("b", 0, n, 1), Service.AGREED, b"x", (("a", "c"), None, ("b",))[n % 3])
            for n in range(count)
        ]

    @property
    def waiting(self) -> int:
        return len(self.left)

    def pull(self) -> Packet | None:
        return self.left.pop(0) if self.left else None


def member(node: str = "b", count: int = 3, **options: Any) -> StMember:
    made = StMember(node, Queue(count), Config(**options))
    made.start(VIEW)
    return made


def origin(node: str) -> Origin:
    return Origin("g", node, 0, VIEW.id)


timers = st.sampled_from(("ready", "repeat", "watch"))
inputs = st.lists(
    st.one_of(st.tuples(st.sampled_from("ac"), messages), st.tuples(st.just("b"), timers)),
    max_size=20,
)


@given(st.sampled_from("ab"), inputs)
def test_no_forged_message_ends_a_member_and_all_that_it_says_can_be_sent(node, forged):
    core = member(node)
    for peer, what in forged:
        if isinstance(what, str):
            out = core.expire(what)
        elif peer == node:
            continue
        else:
            out = core.receive(origin(peer), what)
        for effect in out:
            if isinstance(effect, Send):
                CODEC.encode(effect.message)


@given(st.lists(messages, max_size=8))
def test_an_epoch_that_nobody_reached_moves_nothing(forged):
    core = member()
    for message in forged:
        core.receive(origin("a"), message)
    assert core.logs.epoch <= 1  # One recovery may be ended by forged words, no more.


def rr(source: int, number: int, hop: int, ack: tuple[int, ...] = (1, 1, 1)) -> Placed:
    return Placed(hop, hop, Transmission(source, 0, number, (0, 0, 0), ack, ack, ack, 9))


@pytest.mark.parametrize(
    ("peer", "message"),
    [
        ("c", rr(2, 1, 1)),  # c does not reflect.
        ("a", rr(3, 1, 1)),
        ("a", rr(2, 1, 1, (1, 1))),
        ("a", rr(2, 1, 1, (1, 9, 1))),  # b has sent three.
        ("a", rr(2, 1 << 40, 1)),
        ("a", Taken(99)),
        ("a", Done(0, (2,))),
        ("a", Raised(1, rr(0, 1, 1).transmission)),  # b does not reflect.
    ],
    ids=str,
)
def test_what_no_member_can_have_said_is_refused(peer, message):
    assert any(isinstance(e, Refuse) for e in member().receive(origin(peer), message))


def test_a_packet_for_nobody_of_the_view_is_refused():
    packet = Packet(Span("c", 0, 0, 1), Service.AGREED, b"x", ("zz",))
    sent = Transmission(2, 0, 1, (0, 0, 0), (1, 1, 1), (1, 1, 1), (1, 1, 1), 9, packet)
    assert any(isinstance(e, Refuse) for e in member().receive(origin("a"), Placed(1, 1, sent)))


def test_a_copy_outside_of_a_recovery_changes_nothing():
    core = member()
    packet = Packet(Span("c", 0, 0, 1), Service.AGREED, b"x")
    assert core.receive(origin("c"), Again(0, Name(2, 1), packet)) == []
    assert Name(2, 1) not in core.logs.known


def test_lists_that_differ_under_one_name_are_no_list_and_the_right_one_may_still_come():
    made = List(0, 1, 1, (0, 0, 0), (0, 0, 0), (1, 1, 1), ())
    first, *rest = parts(made, 30)
    collected = Collected(3, 0)
    collected.take(ListPart(0, 1, 0, first.parts + 1, b"forged"))
    with pytest.raises(WireError, match="differ under one name"):
        collected.take(first)
    for part in (first, *rest):
        collected.take(part)
    assert collected.lists == {1: made}


def test_members_that_send_more_than_there_is_room_for_are_not_heard():
    core = member(count=0, buffer_packets=4)
    for number in range(1, 100):
        packet = Packet(Span("c", 0, number - 1, 1), Service.AGREED, b"x")
        counts = (number - 1,) * 3
        ones = (1, 1, 1)
        sent = Transmission(2, 0, number, counts, ones, ones, ones, 9, packet)
        core.receive(origin("a"), Placed(number, number, sent))
    assert 4 <= core.logs.waiting <= 20
    assert len(core.logs.known) <= 20


@st.composite
def sound(draw: st.DrawFn) -> list[Placed]:
    """What a and c say and b hears, without a gap: all acknowledge what was said before."""
    number, counts = [1, 1, 1], [[0] * 3 for _ in NODES]
    ack: dict[int, tuple[int, ...]] = {0: (1, 1, 1), 2: (1, 1, 1)}
    pack = ack
    told: list[Placed] = []
    length = draw(st.integers(1, 30))
    for hop in range(1, length + 7):
        source = draw(st.sampled_from((0, 2))) if hop <= length else 2 * (hop % 2)
        names: tuple[str, ...] | None
        names = draw(st.sampled_from((None, ("b",), ("a", "b"), ("a", "c"), ())))
        packet = None
        if hop <= length and names != ():
            packet = Packet(Span(NODES[source], 0, hop, 1), Service.AGREED, b"x", names)
        done, pack, ack = pack, ack, {**ack, source: tuple(number)}
        told.append(
            Placed(
                hop,
                hop,
                Transmission(
                    source,
                    0,
                    number[source],
                    tuple(counts[source]),
                    ack[source],
                    pack[source],
                    done[source],
                    9,
                    packet,
                ),
            )
        )
        if packet is not None:
            number[source] += 1
            for node in names or NODES:
                counts[source][NODES.index(node)] += 1
    return told


def hear_oneself(core: StMember, last: Placed) -> list[Any]:
    """Nothing is delivered before a member has heard itself, and the others after that."""
    core.expire("ready")
    out = core.expire("repeat") + core.expire("repeat")
    hop = last.hop
    found: list[Any] = []
    for sent in [e.message for e in out if isinstance(e, Send) and isinstance(e.message, Raised)]:
        hop += 1
        found += core.receive(origin("a"), Placed(hop, sent.turn, sent.transmission))
    return found


@given(sound(), st.integers(1, 9))
def test_many_at_once_are_the_same_as_one_after_the_other(told, burst):
    one, many = member(count=0), member(count=0)
    singly = [e for message in told for e in one.receive(origin("a"), message)]
    together = [
        e
        for at in range(0, len(told), burst)
        for e in many.receive_many(origin("a"), told[at : at + burst])
    ]
    assert one.logs.stop() == many.logs.stop()
    singly += hear_oneself(one, told[-1])
    together += hear_oneself(many, told[-1])
    said = [e for e in singly if isinstance(e, Deliver)]
    assert said == [e for e in together if isinstance(e, Deliver)]
    assert [e.packet for e in said] == [
        packet
        for message in told
        if (packet := message.transmission.packet) is not None
        and "b" in (packet.destinations or NODES)
    ]
    assert not any(isinstance(e, Refuse) for e in singly + together)
