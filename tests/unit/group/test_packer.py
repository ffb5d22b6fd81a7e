"""Messages into packets and out again."""

import contextlib
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundelay.core.checksum import crc32
from roundelay.core.contract import QueueFullError
from roundelay.core.ids import Packet, Service, Span
from roundelay.group.assembler import Assembler
from roundelay.group.body import Piece, pack, unpack
from roundelay.group.packer import GroupConfig, Packer
from roundelay.wire.primitives import WireError

AGREED, SAFE = Service.AGREED, Service.SAFE


def packer(packet_bytes: int = 100, **limits: int) -> Packer:
    made = Packer("a", 0, GroupConfig(packet_bytes=packet_bytes, **limits))
    made.selective = True
    return made


def pull_all(p: Packer) -> list[Packet]:
    packets = []
    while (packet := p.pull()) is not None:
        packets.append(packet)
    return packets


def fill(p: Packer) -> int:
    """Put in as many messages of 50 bytes as are accepted."""
    count = 0
    with contextlib.suppress(QueueFullError):
        while count < 1000:
            p.accept(b"x" * 50, AGREED, None)
            count += 1
    return count


def unpack_all(packets: list[Packet]) -> list[bytes]:
    assembler = Assembler(10**9)
    return [payload for packet in packets for payload in assembler.messages_of(packet)]


@given(st.lists(st.binary(max_size=400), max_size=30), st.integers(40, 300))
def test_what_is_put_in_comes_out_in_order_whatever_the_sizes(payloads, packet_bytes):
    p = packer(packet_bytes)
    for payload in payloads:
        p.accept(payload, AGREED, None)
    waiting = p.waiting
    packets = pull_all(p)
    assert unpack_all(packets) == payloads
    assert len(packets) == waiting
    assert all(len(packet.body) <= packet_bytes for packet in packets)
    assert p.waiting == 0
    covered = [n for k in packets for n in range(k.span.first, k.span.first + k.span.count)]
    assert covered == list(range(len(payloads)))


def test_small_messages_share_a_packet_and_services_do_not():
    p = packer()
    for service in (AGREED, AGREED, SAFE, SAFE, AGREED):
        p.accept(b"x", service, None)
    p.accept(b"x", AGREED, ("b",))
    spans = [(k.span.first, k.span.count, k.service, k.destinations) for k in pull_all(p)]
    assert spans == [
        (0, 2, AGREED, None),
        (2, 2, SAFE, None),
        (4, 1, AGREED, None),
        (5, 1, AGREED, ("b",)),
    ]


def test_a_packet_leaves_half_full_when_it_may_leave():
    p = packer()
    p.accept(b"one", AGREED, None)
    assert p.waiting == 1
    first = p.pull()
    p.accept(b"two", AGREED, None)
    second = p.pull()
    assert first is not None
    assert second is not None
    assert (first.span, second.span) == (Span("a", 0, 0, 1), Span("a", 0, 1, 1))
    assert p.pull() is None


def test_pieces_of_a_large_message_carry_no_message_but_the_last():
    p = packer(100)
    p.accept(b"x" * 250, SAFE, None)
    packets = pull_all(p)
    assert [k.span.count for k in packets] == [0, 0, 1]
    assert {k.span.first for k in packets} == {0}
    assert all(k.service is SAFE for k in packets)


def test_a_large_message_under_way_begins_again_in_a_new_view():
    p = packer(100)
    p.accept(b"a", AGREED, None)
    p.accept(b"x" * 250, AGREED, None)
    p.accept(b"z", AGREED, None)
    sent = [p.pull() for _ in range(3)]  # a and two of three pieces.
    assert sent[2] is not None
    assert sent[2].span.count == 0
    p.start_view()
    assert unpack_all(pull_all(p)) == [b"x" * 250, b"z"]


def test_a_large_message_whose_last_piece_was_not_delivered_begins_again():
    p = packer(100)
    p.accept(b"x" * 250, AGREED, None)
    p.accept(b"y" * 250, AGREED, None)
    packets = pull_all(p)
    p.release(packets[2].span)  # x arrived; y did not, and its pieces are withdrawn.
    for packet in packets[3:]:
        p.put_back(packet)
    p.start_view()
    assert unpack_all(pull_all(p)) == [b"y" * 250]


def test_what_is_put_back_goes_first_and_in_order():
    p = packer(20)
    for payload in (b"0" * 10, b"1" * 10, b"2" * 10, b"3" * 10):
        p.accept(payload, AGREED, None)
    sent = [p.pull(), p.pull(), p.pull()]
    for packet in reversed(sent):
        assert packet is not None
        p.put_back(packet)
    p.start_view()
    assert [k.span.first for k in pull_all(p)] == [0, 1, 2, 3]


def test_the_queue_is_bounded_in_bytes_and_messages_and_recovers():
    p = packer(queue_bytes=1000)
    assert 15 <= fill(p) <= 20
    with pytest.raises(QueueFullError, match="wait to be sent"):
        p.accept(b"x" * 50, AGREED, None)
    assert 10 <= p.waiting <= 30
    pull_all(p)
    p.accept(b"x" * 50, AGREED, None)
    q = packer(queue_messages=3)
    for _ in range(3):
        q.accept(b"", AGREED, None)
    with pytest.raises(QueueFullError):
        q.accept(b"", AGREED, None)


def test_a_refused_message_takes_no_number():
    p = packer(queue_messages=1)
    p.accept(b"", AGREED, None)
    with pytest.raises(QueueFullError):
        p.accept(b"", AGREED, None)
    p.pull()
    assert p.accept(b"", AGREED, None) == 1


@pytest.mark.parametrize("payload", ["text", bytearray(b"may change"), None, 5])
def test_a_message_that_is_not_bytes_is_refused_with_or_without_others_before_it(payload):
    packer = Packer("a", 0)
    for number in range(2):
        with pytest.raises(TypeError, match=f"not {type(payload).__name__}"):
            packer.accept(payload)
        assert packer.accept(b"fine") == number


def test_a_message_of_64_megabytes_goes_through_and_a_larger_one_is_refused():
    p = Packer("a", 0, GroupConfig(packet_bytes=60_000))
    payload = bytes(range(256)) * (64 * 1024 * 4)
    assert len(payload) == 64 * 1024 * 1024
    p.accept(payload, AGREED, None)
    assembler = Assembler(64 * 1024 * 1024)
    out = [m for packet in pull_all(p) for m in assembler.messages_of(packet)]
    assert out == [payload]
    with pytest.raises(ValueError, match="the limit is"):
        p.accept(payload + b"x", AGREED, None)


def test_pieces_without_their_beginning_complete_nothing():
    p = packer(100)
    p.accept(b"x" * 250, AGREED, None)
    p.accept(b"y" * 250, AGREED, None)
    pieces = pull_all(p)
    assembler = Assembler(10**6)
    assert [assembler.messages_of(k) for k in pieces[1:3]] == [(), ()]
    assert [assembler.messages_of(k) for k in pieces[3:]] == [(), (), (b"y" * 250,)]
    assembler.messages_of(pieces[0])
    assembler.forget()
    assert [assembler.messages_of(k) for k in pieces[1:3]] == [(), ()]


def test_senders_interleave_and_incarnations_do_not_mix():
    def pieces(node: str, incarnation: int, letter: bytes) -> list[Packet]:
        p = Packer(node, incarnation, GroupConfig(packet_bytes=100))
        p.accept(letter * 250, AGREED, None)
        return pull_all(p)

    a, b, again = pieces("a", 0, b"a"), pieces("b", 0, b"b"), pieces("a", 1, b"c")
    assembler = Assembler(10**6)
    order = [a[0], b[0], a[1], again[0], again[1], a[2], b[1], b[2], again[2]]
    out = [m for k in order for m in assembler.messages_of(k)]
    assert out == [b"b" * 250]
    order = [again[0], b[0], again[1], b[1], again[2], b[2]]
    out = [m for k in order for m in assembler.messages_of(k)]
    assert out == [b"c" * 250, b"b" * 250]


@given(st.binary(max_size=60), st.integers(0, 5))
def test_any_bytes_are_messages_a_piece_or_refused(body, count):
    try:
        content = unpack(body, count)
    except WireError:
        return
    assert isinstance(content, Piece) or len(content) == count


@settings(max_examples=50)
@given(st.binary(min_size=1, max_size=200))
def test_a_forged_piece_neither_grows_memory_nor_raises(body):
    assembler = Assembler(1000)
    for count in (0, 1, 2):
        assembler.messages_of(Packet(Span("a", 0, 0, count), AGREED, body))
    huge = b"\x03" + (0).to_bytes(4) + (2**32 - 1).to_bytes(4) + bytes(4) + b"x" * 50
    assert assembler.messages_of(Packet(Span("a", 0, 0, 0), AGREED, huge)) == ()
    assert assembler.messages_of(Packet(Span("a", 0, 0, 1), AGREED, pack([b"ok"]))) == (b"ok",)


@given(st.lists(st.binary(max_size=40), max_size=30))
def test_the_size_of_the_open_packet_is_that_of_its_messages(payloads):
    packer = Packer("a", 0, GroupConfig(packet_bytes=200))
    for payload in payloads:
        packer.accept(payload)
        assert packer._open_bytes == sum(map(len, packer._open))


# What is forged


def piece(index: int, pieces: int, data: bytes, *, first: int = 0) -> Packet:
    body = struct.pack(">BIII", 3, index, pieces, crc32(data)) + data
    return Packet(Span("a", 0, first, int(index == pieces - 1)), AGREED, body)


def parts(assembler: Assembler) -> dict[str, object]:
    kept = vars(assembler)["_parts"]
    assert isinstance(kept, dict)
    return kept


def test_pieces_without_end_or_larger_than_the_first_are_not_kept():
    assembler = Assembler(1000)
    assembler.messages_of(piece(0, 2**32 - 1, b""))
    assert not parts(assembler)
    assembler.messages_of(piece(0, 3, b"xx"))
    assert parts(assembler)
    assembler.messages_of(piece(1, 3, bytes(60_000)))
    assert not parts(assembler)


def test_one_large_message_of_a_sender_is_kept_whatever_lives_it_claims():
    assembler = Assembler(1000)
    for life in range(100):
        begun = piece(0, 3, b"xx")
        span = begun.span._replace(incarnation=life)
        assembler.messages_of(Packet(span, AGREED, begun.body))
    assert len(parts(assembler)) == 1


@given(st.lists(st.binary(max_size=9), min_size=1, max_size=50))
def test_messages_of_any_sizes_come_out_as_they_went_in(payloads):
    assert unpack(pack(payloads), len(payloads)) == tuple(payloads)


@pytest.mark.parametrize("change", [-1, 1])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_sizes_that_do_not_add_up_are_refused(place, change):
    sizes = [5, 3, 4]
    body = pack([bytes(size) for size in sizes])
    sizes[place] += change
    forged = body[:1] + struct.pack(">3I", *sizes) + body[13:]
    for data, count in ((forged, 3), (body, 2), (body, 4), (body[:9], 3)):
        with pytest.raises(WireError):
            unpack(data, count)


@pytest.mark.parametrize(("size", "count"), [(0, 0xFFFF), (1, 60_000), (3, 4097), (3, 4096)])
def test_many_messages_of_one_size(size, count):
    payloads = [i.to_bytes(3)[:size] for i in range(count)]
    assert unpack(pack(payloads), count) == tuple(payloads)
