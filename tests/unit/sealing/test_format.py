"""A sealed datagram, byte by byte, and that every bit of it counts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.sealing.lab import GROUP, KEYS, Lab, frame_of, opened_by_hand, stream

from roundelay.core.contract import Boot
from roundelay.runtime.tuning import SEAL_BYTES
from roundelay.sealing.ciphers import Cipher, InvalidTag, aead
from roundelay.sealing.seal import COPIED_BYTES, HEADER_BYTES, OVERHEAD_BYTES, Seal
from roundelay.wire.primitives import Reason


def header_is_authentic() -> None:
    """The tag covers the header: opened without it, or with another one, no datagram opens."""
    lab = Lab()
    frame = lab.frame("a")
    data = lab.seals["a"].seal(frame)
    key = KEYS[0].boot_key(GROUP, Cipher.AES, lab.seals["a"].boot)
    decrypt = aead(Cipher.AES, key)[1]
    opened: list[bytes | None] = []
    for header in (data[:36], b"", data[:35] + b"\xff"):
        try:
            opened.append(decrypt(data[24:36], data[36:], header))
        except InvalidTag:
            opened.append(None)
    assert opened == [frame, None, None]


def test_the_header_is_authentic():
    header_is_authentic()


@pytest.mark.parametrize("cipher", Cipher)
def test_the_header_byte_by_byte(cipher):
    lab = Lab(ciphers={"a": cipher})
    frame = lab.frame("a")
    first, second = lab.seals["a"].seal(frame), lab.seals["a"].seal(frame)
    assert first[0:2] == b"RS"
    assert first[2] == 1
    assert first[3] == {Cipher.AES: 1, Cipher.CHACHA: 2}[cipher]
    assert first[4:12] == KEYS[0].id(GROUP)
    assert first[12:28] == lab.seals["a"].boot
    assert first[28:36] == bytes(7) + b"\1"
    assert second[:28] == first[:28]
    assert second[28:36] == bytes(7) + b"\2"
    assert len(first) == 36 + len(frame) + 16
    assert opened_by_hand(first) == opened_by_hand(second) == frame
    assert first[36:] != second[36:]


def test_how_much_a_seal_takes():
    assert (HEADER_BYTES, OVERHEAD_BYTES, SEAL_BYTES) == (36, 52, 52)


@given(st.lists(st.binary(max_size=300), min_size=1, max_size=5))
def test_frames_of_equal_sizes_stay_so(texts):
    lab = Lab()
    for text in texts:
        frame = lab.frame("a", text)
        assert len(lab.seals["a"].seal(frame)) == len(frame) + OVERHEAD_BYTES


@pytest.mark.parametrize("first", Cipher)
@pytest.mark.parametrize("second", Cipher)
def test_both_ciphers_are_understood(first, second):
    lab = Lab(ciphers={"a": first, "b": second})
    lab.meet()
    assert lab.hears("a", "b")
    assert lab.hears("b", "a")


@pytest.mark.parametrize("size", [0, 1, COPIED_BYTES - 120, COPIED_BYTES + 1, 60_000])
def test_frames_of_all_sizes_are_opened(size):
    lab = Lab()
    lab.meet()
    frame = lab.frame("a", bytes(size))
    assert lab.open("b", lab.seals["a"].seal(frame)) == frame


@pytest.mark.parametrize("known", [True, False])
def test_every_bit_of_a_datagram_is_authentic(known):
    """A changed header opens nothing, even where it still leads to the right key."""
    lab = Lab()
    if known:
        lab.meet()
    data = lab.send("a")
    for bit in range(8 * len(data)):
        lab.now += 0.001
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        found = lab.open("b", bytes(changed))
        assert isinstance(found, Reason), bit
        assert lab.pending == [], bit
        at = bit // 8
        if at < 2:
            assert found is Reason.FOREIGN
        elif at < 4:
            assert found in (Reason.VERSION, Reason.SEAL)
        elif at < 12:
            assert found is Reason.KEY
        elif at >= 28 and known:
            assert found in (Reason.SEAL, Reason.REPLAY)
        else:
            assert found is Reason.SEAL
    assert (lab.open("b", data) == lab.frame("a")) is known


@pytest.mark.parametrize("known", [True, False])
def test_a_datagram_that_is_cut_or_longer_is_refused(known):
    lab = Lab()
    if known:
        lab.meet()
    data = lab.send("a")
    for size in range(len(data)):
        lab.now += 0.001
        found = lab.open("b", data[:size])
        expected = Reason.FOREIGN if size < 2 else Reason.TRUNCATED
        assert found is (expected if size < OVERHEAD_BYTES else Reason.SEAL), size
    assert lab.open("b", data + b"\0") is Reason.SEAL
    assert lab.pending == []


def test_a_frame_that_is_not_sealed_is_told_apart():
    lab = Lab()
    assert lab.open("a", lab.frame("b")) is Reason.PLAIN
    assert lab.open("a", b"GET / HTTP/1.1\r\n\r\n" + bytes(60)) is Reason.FOREIGN
    assert lab.open("a", b"") is Reason.FOREIGN


def test_a_version_or_a_cipher_of_the_future_is_told():
    lab = Lab()
    data = lab.send("b")
    assert lab.open("a", data[:2] + b"\2" + data[3:]) is Reason.VERSION
    assert lab.open("a", data[:3] + b"\3" + data[4:]) is Reason.VERSION


def keystream(data: bytes, frame: bytes) -> bytes:
    return bytes(x ^ y for x, y in zip(data[36:-16], frame, strict=True))


def no_keystream_twice() -> None:
    """However often a node starts, and whatever it has forgotten, no two of its datagrams are
    encrypted with the same bytes: what a datagram is XORed with never repeats."""
    lab = Lab(keys=KEYS[1::-1])
    seen: set[bytes] = set()
    made = 0
    for _ in range(4):
        seal = lab.start("a", KEYS[1::-1])
        for number in range(5):
            frame = lab.frame("a", b"message %d of this start" % number)
            for sealer in seal._sealers:
                seen.add(keystream(seal._seal(frame, sealer), frame))
                made += 1
    assert len(seen) == made


def test_no_keystream_is_used_twice():
    no_keystream_twice()


def test_a_boot_is_drawn_by_whoever_drives_the_seal():
    draws: list[int] = []

    def random(size: int) -> bytes:
        draws.append(size)
        return bytes(range(size))

    seal = Seal(Boot(GROUP, "a", 1), "ab", KEYS[:1], random, 0.0)
    assert draws == [16]
    assert seal.boot == bytes(range(16))
    assert seal.seal(frame_of("a"))[12:28] == seal.boot


def forged_counter_moves_nothing() -> None:
    """Whatever counter is put into a header, the datagram does not open, and the window stays."""
    lab = Lab()
    lab.meet()
    data = lab.send("a")
    for counter in (0, 1, 2**32, 2**63, 2**64 - 1):
        forged = data[:28] + counter.to_bytes(8) + data[36:]
        assert lab.open("b", forged) in (Reason.SEAL, Reason.REPLAY)
    assert lab.open("b", data) == lab.frame("a")
    assert lab.hears("b", "a")


def test_a_forged_counter_opens_nothing_and_moves_nothing():
    forged_counter_moves_nothing()


@given(st.binary(max_size=200), st.integers(0, 3))
def test_no_bytes_end_the_seal(junk, known):
    """Also such that begin like a datagram of a member."""
    lab = Lab()
    lab.meet()
    start = lab.send("a")[: (0, 4, 12, 28)[known]]
    assert isinstance(lab.open("b", start + junk), Reason)
    assert lab.pending == []


def test_random_bytes_come_from_the_stream():
    draw = stream("x")
    assert draw(16) != draw(16)
    assert stream("x")(16) == stream("x")(16)
