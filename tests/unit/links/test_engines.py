"""What engines on links share: bursts, windows, packets that are filled, and their bytes."""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.protocols.outlet import Queue

from roundelay.core.contract import Origin
from roundelay.core.effects import CancelTimer, Deliver, Effect, Send, SetTimer
from roundelay.core.ids import Packet, Service, Span, View, ViewId
from roundelay.group.engines import describe
from roundelay.links.messages import Data, Heartbeat, Request
from roundelay.protocols import allack, causal
from roundelay.protocols.allack import AllAckEngine
from roundelay.protocols.atop import messages as atop
from roundelay.protocols.atop.atom import Tag
from roundelay.protocols.atop.atop import AtopEngine
from roundelay.protocols.causal import CausalEngine
from roundelay.protocols.fifo import FifoEngine
from roundelay.wire.primitives import WireError

VIEW = View(ViewId(4, "a"), ("a", "b", "c"))
PEER = Origin("g", "b", 0, VIEW.id)

Wrap = Callable[[int, Any], Any]
"""The content with this number, of an engine; without a packet, one that only tells something."""

ENGINES: dict[str, tuple[Any, Wrap]] = {
    "fifo": (FifoEngine, lambda number, packet: packet),
    "causal": (CausalEngine, lambda number, packet: causal.Content((0, 0, 0), packet)),
    "allack": (AllAckEngine, lambda number, packet: allack.Content(2 * number, packet)),
    "atop": (AtopEngine, lambda number, packet: atop.Content(Tag(0, number - 1), packet)),
}
ONE_ORDER = ("allack", "atop")


def packet(sender: str, number: int, *, safe: bool = False) -> Packet:
    return Packet(Span(sender, 0, number), Service.SAFE if safe else Service.AGREED, b"x")


def engine(name: str, waiting: int, **options: int) -> Any:
    """Of node c, with so many packets of its own to send."""
    outlet = Queue()
    outlet.packets = [packet("c", number) for number in range(waiting)]
    return ENGINES[name][0]("c", outlet, describe(name).config(**options))


def data(name: str, sender: int, number: int, kind: str, received: tuple[int, int, int]) -> Any:
    """A frame of b, with what a or b once sent."""
    whole = packet("ab"[sender], number, safe=kind == "safe")
    empty = kind == "empty" and name in ONE_ORDER
    return Data(sender, number, 0, received, ENGINES[name][1](number, None if empty else whole))


@st.composite
def frames(draw: st.DrawFn, name: str) -> list[Any]:
    """Of b: contents of its own and copies of a's, in any order and with gaps, and what else it
    says; what it has grows, or a frame is late, or tells what cannot be."""
    made: list[Any] = []
    kinds = {
        (s, n): draw(st.sampled_from(("agreed", "agreed", "safe", "empty")))
        for s in (0, 1)
        for n in range(1, 8)
    }
    for _ in range(draw(st.integers(0, 25))):
        received = (draw(st.integers(0, 7)), draw(st.integers(0, 7)), draw(st.integers(0, 4)))
        match draw(st.sampled_from(("data", "data", "data", "heartbeat", "request"))):
            case "data":
                sender, number = draw(st.integers(0, 1)), draw(st.integers(1, 7))
                made.append(data(name, sender, number, kinds[sender, number], received))
            case "heartbeat":
                made.append(Heartbeat(received))
            case _:
                made.append(Request(draw(st.integers(0, 2)), (draw(st.integers(1, 4)),)))
    return made


lengths = st.lists(st.integers(1, 8), min_size=25, max_size=25)


def delivered(effects: Sequence[Effect[Any]]) -> list[Deliver]:
    return [effect for effect in effects if isinstance(effect, Deliver)]


def sent(effects: Sequence[Effect[Any]]) -> list[Packet]:
    """Own packets, as they were first sent."""
    contents = [
        e.message.content
        for e in effects
        if isinstance(e, Send) and e.to is None and isinstance(e.message, Data)
    ]
    packets = [getattr(content, "packet", content) for content in contents]
    return [p for p in packets if p is not None]


def others(effects: Sequence[Effect[Any]]) -> Counter[str]:
    """Everything but timers, in whatever order."""
    return Counter(repr(e) for e in effects if not isinstance(e, SetTimer | CancelTimer))


def one_by_one_and_together(
    name: str, waiting: int, messages: list[Any], sizes: list[int]
) -> tuple[Any, list[Effect[Any]], Any, list[Effect[Any]]]:
    one, many = engine(name, waiting, window_packets=3), engine(name, waiting, window_packets=3)
    singly, together = list(one.start(VIEW)), list(many.start(VIEW))
    for message in messages:
        singly += one.receive(PEER, message)
    for start, end in pairwise(accumulate(sizes, initial=0)):
        if messages[start:end]:
            together += many.receive_many(PEER, messages[start:end])
    return one, singly, many, together


def check_alike(name: str, one: Any, singly: Any, many: Any, together: Any) -> None:
    if name in ONE_ORDER:
        assert delivered(together) == delivered(singly)
    for node in VIEW.members:
        ours = [d for d in delivered(together) if d.packet.span.node == node]
        assert ours == [d for d in delivered(singly) if d.packet.span.node == node]
    assert vars(many.link.ledger) == vars(one.link.ledger)


@pytest.mark.parametrize("name", ENGINES)
@given(st.data(), lengths)
def test_a_burst_is_its_frames_one_by_one(name: str, draw: st.DataObject, sizes: list[int]) -> None:
    messages = draw.draw(frames(name))
    one, singly, many, together = one_by_one_and_together(name, 0, messages, sizes)
    check_alike(name, one, singly, many, together)
    assert others(together) == others(singly)


@pytest.mark.parametrize("name", ENGINES)
@given(st.data(), lengths, st.integers(1, 9))
def test_a_burst_lets_the_same_packets_go(
    name: str, draw: st.DataObject, sizes: list[int], waiting: int
) -> None:
    """They go once the burst was read, so what they tell of it may be more."""
    messages = draw.draw(frames(name))
    one, singly, many, together = one_by_one_and_together(name, waiting, messages, sizes)
    check_alike(name, one, singly, many, together)
    assert sent(together) == sent(singly)


@pytest.mark.parametrize("name", ENGINES)
def test_a_member_alone_sends_more_than_a_window_at_once(name: str) -> None:
    alone = View(ViewId(4, "c"), ("c",))
    member = engine(name, 9, window_packets=2)
    assert len(delivered(member.start(alone))) == 9


@pytest.mark.parametrize("name", ENGINES)
def test_with_much_under_way_the_last_packet_waits_to_be_filled(name: str) -> None:
    member = engine(name, 0, window_packets=20, fill_packets=4, ack_packets=4)
    member.start(VIEW)
    went = []
    for number in range(7):
        member._outlet.packets.append(packet("c", number))
        went.append(len(sent(member.submit())))
    assert went == [1, 1, 1, 1, 0, 1, 1], "at once up to four, then one less than wait"
    assert member.submit() == []


@pytest.mark.parametrize("name", ["fifo", "causal"])
def test_the_last_packet_goes_when_less_is_under_way(name: str) -> None:
    member = engine(name, 0, window_packets=20, fill_packets=4, ack_packets=4)
    member.start(VIEW)
    member._outlet.packets += [packet("c", number) for number in range(5)]
    assert len(sent(member.submit())) == 4
    assert sent(member.receive(PEER, Heartbeat((0, 0, 4)))) == [], "a has nothing yet"
    effects = member.receive(Origin("g", "a", 0, VIEW.id), Heartbeat((0, 0, 1)))
    assert sent(effects) == [packet("c", 4)]


@pytest.mark.parametrize("name", ONE_ORDER)
def test_who_is_waited_for_sends_a_packet_that_is_not_full_and_nothing_empty(name: str) -> None:
    member = engine(name, 0, window_packets=20, fill_packets=2, ack_packets=2)
    member.start(VIEW)
    member._outlet.packets += [packet("c", number) for number in range(3)]
    assert len(sent(member.submit())) == 2
    for number in range(1, 20):  # Far ahead of what c has sent, by clock and by slots.
        effects = member.receive(PEER, data(name, 1, number, "agreed", (0, number, 0)))
        assert sent(effects) == []
    assert sent(member.expire("hold")) == [packet("c", 2)]


def test_messages_of_one_sender_are_acknowledged_at_once_and_a_few_of_each_soon() -> None:
    member = engine("fifo", 0, ack_packets=3)
    member.start(VIEW)

    def heartbeats(sender: int, number: int) -> int:
        frame = data("fifo", sender, number, "agreed", (number, number, 0))
        effects = member.receive(PEER, frame)
        return sum(isinstance(e, Send) and isinstance(e.message, Heartbeat) for e in effects)

    assert [heartbeats(s, n) for n in (1, 2) for s in (0, 1)] == [0, 0, 0, 0]
    assert [heartbeats(0, 3), heartbeats(1, 3), heartbeats(0, 4)] == [1, 0, 0]


# Bytes

contents: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "fifo": (FifoEngine.codec, st.builds(packet, st.sampled_from("abc"), st.integers(0, 9))),
    "causal": (
        CausalEngine.codec,
        st.builds(
            causal.Content,
            st.lists(st.integers(0, 2**63 - 1), max_size=9).map(tuple),
            st.builds(packet, st.just("a"), st.integers(0, 9)),
        ),
    ),
    "allack": (
        AllAckEngine.codec,
        st.builds(
            allack.Content,
            st.integers(1, allack.CLOCK_MAX),
            st.none() | st.builds(packet, st.just("a"), st.integers(0, 9)),
        ),
    ),
    "atop": (
        atop.CODEC,
        st.builds(
            atop.Content,
            st.one_of(
                st.builds(Tag, st.just(0), st.integers(0, 2**40 - 1)),
                st.builds(Tag, st.integers(1, 2**23 - 1), st.integers(1, 2**40 - 1)),
                st.builds(
                    Tag,
                    st.integers(1, 2**23 - 1),
                    st.just(0),
                    st.just(1),
                    st.lists(st.integers(1, 2**32 - 1), min_size=1, max_size=9).map(tuple),
                ),
            ),
            st.none() | st.builds(packet, st.just("a"), st.integers(0, 9)),
        )
        | st.builds(
            atop.Content, st.builds(Tag, st.just(0), st.integers(0, 9), st.integers(1, 4096))
        ),
    ),
}


@pytest.mark.parametrize("name", contents)
@given(st.data())
def test_a_content_reads_as_it_was_written_and_no_other_way(name: str, draw: st.DataObject) -> None:
    codec, strategy = contents[name]
    frame = Data(1, 3, 2, (1, 3, 0), draw.draw(strategy))
    tag, body = codec.encode(frame)
    assert codec.decode(tag, b"before" + body, 6) == frame
    assert codec.unpack(codec.pack(frame.content)) == frame.content
    cut = draw.draw(st.integers(0, len(body) - 1))
    for wrong in (body[:cut], body + b"\0"):
        with pytest.raises(WireError):
            codec.decode(tag, wrong, 0)


@pytest.mark.parametrize("name", contents)
@given(st.binary(max_size=80))
def test_any_bytes_are_a_content_or_refused(name: str, data: bytes) -> None:
    codec, _ = contents[name]
    try:
        content = codec.unpack(data)
    except WireError:
        return
    assert codec.pack(content) == data
