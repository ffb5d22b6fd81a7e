"""A frame survives the wire whole or not at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundelay.core.contract import Boot, Origin
from roundelay.core.ids import Packet, Service, Span, ViewId, is_name
from roundelay.protocols.template import Data, TemplateCodec
from roundelay.transport.segments import buffers
from roundelay.wire.endpoint import Endpoint
from roundelay.wire.frame import (
    FILL_SHARE,
    FRAME_BYTES_MAX,
    PROBE_TAG,
    Frame,
    decode,
    encode,
    encode_origin,
    filled_up,
)
from roundelay.wire.packet import decode_packet, encode_packet
from roundelay.wire.primitives import I64_MAX, Reason, WireError, Writer

CODEC = TemplateCodec()
letters = st.characters(exclude_categories=["C", "Z"], exclude_characters="/")
names = st.text(letters, min_size=1, max_size=16).filter(is_name)
views = st.none() | st.builds(ViewId, st.integers(0, I64_MAX), names)
packets = st.builds(
    Packet,
    st.builds(
        Span,
        names,
        st.integers(0, I64_MAX),
        st.integers(0, 2**60),
        st.integers(0, 2**16 - 1),
    ),
    st.sampled_from(Service),
    st.binary(max_size=300),
    st.none() | st.lists(names, max_size=4).map(tuple),
)


def node(name: str, group: str = "g", incarnation: int = 0) -> Endpoint[Data]:
    return Endpoint(Boot(group, name, incarnation), CODEC)


def data(text: bytes = b"hello") -> Data:
    return Data(1, Packet(Span("a", 0, 7), Service.AGREED, text))


@given(packets, views, names, st.integers(0, I64_MAX))
def test_a_frame_comes_out_as_it_went_in(packet, view, name, incarnation):
    sender = Endpoint(Boot("g", name, incarnation), CODEC)
    _, raw = sender.encode(Data(1, packet), view)
    frame = decode(raw, CODEC, {})
    assert frame.message == Data(1, packet)
    assert frame.origin == Origin("g", name, incarnation, view)
    assert (frame.number, frame.lamport, frame.size) == (1, 1, len(raw))


def test_an_endpoint_numbers_its_frames_and_follows_the_clock_of_others():
    a, b = node("a"), node("b")
    for _ in range(5):
        _, raw = a.encode(data(), None)
    frame = b.receive(raw)
    assert isinstance(frame, Frame)
    assert (frame.number, b.lamport, b.frame_number) == (5, 5, 0)
    b.encode(data(), None)
    assert (b.lamport, b.frame_number) == (6, 1)


def test_the_view_of_each_frame_is_the_one_it_was_sent_in():
    a = node("a")
    seen = [
        decode(a.encode(data(), view)[1], CODEC, {}).origin.view
        for view in (None, ViewId(4, "a"), ViewId(4, "b"), None)
    ]
    assert seen == [None, ViewId(4, "a"), ViewId(4, "b"), None]


def test_refusals_are_counted_and_change_nothing_else():
    a, b = node("a"), node("b")
    _, raw = a.encode(data(), None)
    cases = {
        Reason.FOREIGN: b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n",
        Reason.TRUNCATED: raw[:-1],
        Reason.OVERSIZED: raw + b"x",
        Reason.VERSION: raw[:6] + b"\x01" + raw[7:],
        Reason.CHECKSUM: raw[:-1] + bytes([raw[-1] ^ 1]),
        Reason.GROUP: node("a", group="other").encode(data(), None)[1],
        Reason.OWN: node("b").encode(data(), None)[1],
        Reason.MALFORMED: _with_body(b"\0" * 9),
    }
    before = vars(b).copy()
    for reason, datagram in cases.items():
        assert b.receive(datagram) is reason
    assert b.drops == dict.fromkeys(cases, 1)
    # The cache of parsed origins may have grown; it decides nothing.
    unchanged = {k: v for k, v in vars(b).items() if k not in ("drops", "_origins")}
    assert unchanged == {k: v for k, v in before.items() if k not in ("drops", "_origins")}
    assert isinstance(b.receive(raw), Frame)


@given(st.lists(st.binary(max_size=900), min_size=1, max_size=9), st.booleans())
def test_frames_that_are_filled_up_are_the_same_frames(bodies, sealed):
    a = Endpoint(Boot("g", "a"), CODEC, sealed=sealed)
    b = Endpoint(Boot("g", "b"), CODEC, sealed=sealed)
    frames = [a.encode(data(body), None)[1] for body in bodies]
    filled = filled_up(frames)
    assert max(map(len, filled)) == max(map(len, frames))
    assert filled[-1] is frames[-1]
    spent = sum(map(len, filled)) - sum(map(len, frames))
    assert spent <= sum(map(len, filled)) / FILL_SHARE
    for frame, body in zip(filled, bodies, strict=True):
        received = b.receive(frame)
        assert isinstance(received, Frame)
        assert received.message == data(body)


def test_frames_that_nearly_have_one_size_leave_with_one_call():
    a = node("a")
    frames = [a.encode(data(bytes(1300 - 7 * i)), None)[1] for i in range(20)]
    assert len(list(buffers(frames))) > 1
    assert len(list(buffers(filled_up(frames)))) == 1
    small = [a.encode(data(bytes(size)), None)[1] for size in (1300, 100, 1300)]
    assert [len(frame) for frame in filled_up(small)] == [len(frame) for frame in small]


def test_nothing_but_zeros_may_follow_a_frame():
    a, b = node("a"), node("b")
    raw = a.encode(data(), None)[1]
    assert isinstance(b.receive(raw + bytes(100)), Frame)
    for more in (b"\1", bytes(50) + b"\1", bytes(50) + b"\1" + bytes(50)):
        assert b.receive(raw + more) is Reason.OVERSIZED
    assert b.receive(raw[:-1] + bytes(100)) is Reason.CHECKSUM


@pytest.mark.parametrize("size", range(30))
def test_a_stump_of_a_frame_is_truncated(size):
    _, raw = node("a").encode(data(), None)
    expected = Reason.FOREIGN if size == 0 else Reason.TRUNCATED
    assert node("b").receive(raw[:size]) is expected


def test_another_incarnation_of_this_very_node_is_heard():
    _, raw = node("a", incarnation=1).encode(data(), None)
    assert isinstance(node("a", incarnation=2).receive(raw), Frame)


@pytest.mark.parametrize("incarnation", [I64_MAX + 1, 2**64 - 1])
def test_an_incarnation_has_63_bits(incarnation):
    _, body = CODEC.encode(data())
    raw = encode(encode_origin(Origin("g", "a", incarnation, None)), 1, 1, 1, body)
    assert node("b").receive(raw) is Reason.MALFORMED
    packet = Packet(Span("a", incarnation, 7), Service.AGREED, b"x")
    for destinations in (None, ("b",)):
        packet = Packet(packet.span, packet.service, packet.body, destinations)
        raw = encode(encode_origin(Origin("g", "a", 0, None)), *_stamped(Data(1, packet)))
        assert node("b").receive(raw) is Reason.MALFORMED


def test_probes_are_told_apart_from_nonsense():
    origin = encode_origin(Origin("g", "a", 0, None))
    b = node("b")
    assert b.receive(encode(origin, PROBE_TAG, 0, 0, b"?")) is Reason.PROBE
    assert b.receive(encode(origin, 254, 0, 0, b"?")) is Reason.MALFORMED
    damaged = encode(origin, PROBE_TAG, 0, 0, b"?")[:-1] + b"!"
    assert b.receive(damaged) is Reason.CHECKSUM
    assert b.lamport == 0


def test_on_a_channel_a_node_hears_itself():
    a = Endpoint(Boot("g", "a"), CODEC, reflect=True)
    assert isinstance(a.receive(a.encode(data(), None)[1]), Frame)


def test_a_forged_clock_neither_breaks_nor_wraps_ours():
    origin = encode_origin(Origin("g", "mallory", 0, None))
    _, body = CODEC.encode(data())
    b = node("b")
    assert b.receive(encode(origin, 1, 2**64 - 1, 1, body)) is Reason.MALFORMED
    assert isinstance(b.receive(encode(origin, 1, I64_MAX, 1, body)), Frame)
    b.encode(data(), None)
    assert b.lamport == I64_MAX


def test_origins_of_strangers_do_not_fill_memory():
    origins: dict[bytes, Origin] = {}
    _, body = CODEC.encode(data())
    for i in range(5000):
        raw = encode(encode_origin(Origin("g", f"n{i}", 0, None)), 1, 1, 1, body)
        decode(raw, CODEC, origins)
    assert len(origins) <= 1024


def test_a_frame_too_large_to_send_is_a_bug_of_the_sender():
    with pytest.raises(ValueError, match="the limit is 65507"):
        node("a").encode(data(b"x" * FRAME_BYTES_MAX), None)
    with pytest.raises(ValueError, match="longer than 64 bytes"):
        node("n" * 65)


BAD_NAMES = [
    "",
    ".",
    "..",
    "../x",
    "a/b",
    "a\n",
    "a\x1b[2J",
    "a\0",
    "\u202eb",
    "n" * 65,
    "\xe9" * 33,
]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_frame_has_no_name_that_no_node_can_have(name):
    """Whether it is the sender's, the group's, the view's, the packet's or a destination's."""

    def frame(origin: bytes, packet: Packet) -> bytes:
        return encode(origin, 1, 1, 1, CODEC.encode(Data(1, packet))[1])

    def origin(*names: str) -> bytes:
        w = Writer()
        w.text(names[0])
        w.text(names[1])
        w.u64(7)
        w.flag(len(names) > 2)
        if len(names) > 2:
            w.u64(3)
            w.text(names[2])
        return w.done()

    def packet(sender: str = "a", to: tuple[str, ...] | None = None) -> Packet:
        return Packet(Span(sender, 0, 7), Service.AGREED, b"", to)

    assert decode(frame(origin("g", "a", "a"), packet("a", ("b",))), CODEC, {}).origin.node == "a"
    for raw in (
        frame(origin(name, "a"), packet()),
        frame(origin("g", name), packet()),
        frame(origin("g", "a", name), packet()),
        frame(origin("g", "a"), packet(name)),
        frame(origin("g", "a"), packet(name, ("b",))),
        frame(origin("g", "a"), packet("a", ("b", name))),
    ):
        endpoint = node("b")
        assert endpoint.receive(raw) is Reason.MALFORMED
        assert endpoint.drops[Reason.MALFORMED] == 1
    for encoded in (encode_packet(packet(name)), encode_packet(packet("a", (name,)))):
        with pytest.raises(WireError, match="malformed"):
            decode_packet(encoded, 0)


def _stamped(message: Data) -> tuple[int, int, int, bytes]:
    tag, body = CODEC.encode(message)
    return tag, 1, 1, body


def _with_body(body: bytes) -> bytes:
    return encode(encode_origin(Origin("g", "a", 0, None)), 1, 1, 1, body)
