"""What docs/sealing.md says of the format is so."""

import hashlib
import hmac
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.sealing.lab import Lab

from roundelay.core.contract import Boot, Origin
from roundelay.sealing import lives, seal
from roundelay.sealing.ciphers import Cipher
from roundelay.sealing.keys import GroupKey
from roundelay.sealing.proofs import CODEC, Answer, Challenge, encode_proof
from roundelay.sealing.seal import Seal
from roundelay.wire.frame import decode, encode, encode_origin

TEXT = (Path(__file__).parents[3] / "docs" / "sealing.md").read_text()
ORIGIN = Origin("orders", "a", 7, None)


def vectors() -> dict[str, bytes]:
    block = re.search(r"^```text\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    assert block is not None
    found: dict[str, str] = {}
    name = ""
    for line in block[1].splitlines():
        name = line[:15].strip() or name
        found[name] = found.get(name, "") + line[15:].strip()
    assert found.pop("group name") == ORIGIN.group
    return {name: bytes.fromhex(digits) for name, digits in found.items()}


VECTORS = vectors()
KEY = GroupKey(VECTORS["group key"])


def hkdf(secret: bytes, salt: bytes, info: bytes) -> bytes:
    """RFC 5869, for up to 32 bytes; written from the RFC and not with what the product uses."""
    extracted = hmac.new(salt or bytes(32), secret, hashlib.sha256).digest()
    return hmac.new(extracted, info + b"\1", hashlib.sha256).digest()


def sealed(cipher: Cipher) -> bytes:
    node = Boot(ORIGIN.group, ORIGIN.node, ORIGIN.incarnation)
    return Seal(node, "ab", (KEY,), lambda size: VECTORS["boot"], 0.0, cipher).seal(
        VECTORS["frame"]
    )


def opener() -> Callable[[bytes, bytes, str], bytes]:
    """The function in the document."""
    block = re.search(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    assert block is not None
    found: dict[str, Callable[[bytes, bytes, str], bytes]] = {}
    exec(block[1], found)
    return found["open_datagram"]


def test_derived_keys_are_as_documented():
    secret, boot = VECTORS["group key"], VECTORS["boot"]
    assert KEY.id("orders") == VECTORS["key id"]
    assert hkdf(secret, b"", b"roundelay key id 1 orders")[:8] == VECTORS["key id"]
    for cipher in Cipher:
        expected = VECTORS[f"boot key {cipher.value}"]
        assert KEY.boot_key("orders", cipher, boot) == expected
        assert hkdf(secret, boot, b"roundelay boot key 1 %d orders" % cipher) == expected


@pytest.mark.parametrize("cipher", Cipher)
def test_datagrams_are_as_documented(cipher):
    datagram = VECTORS[f"datagram {cipher.value}"]
    assert sealed(cipher) == datagram
    assert opener()(datagram, VECTORS["group key"], "orders") == VECTORS["frame"]


def test_frames_are_as_documented():
    assert encode(encode_origin(ORIGIN), 9, 3, 1, b"hello", sealed=True) == VECTORS["frame"]
    challenge = decode(VECTORS["challenge"], CODEC, {}, sealed=True).message
    answer = decode(VECTORS["answer"], CODEC, {}, sealed=True).message
    asked, back = bytes(range(0x60, 0x70)), bytes(range(0x70, 0x80))
    assert challenge == Challenge(asked, VECTORS["key id"])
    assert answer == Answer(asked, bytes(range(0x50, 0x60)), back, VECTORS["key id"])
    assert encode_proof(ORIGIN, challenge) == VECTORS["challenge"]
    assert encode_proof(ORIGIN, answer) == VECTORS["answer"]


def test_the_document_opens_what_nodes_send():
    lab = Lab(ciphers={"a": Cipher.AES, "b": Cipher.CHACHA})
    secret = hashlib.sha256(b"key 0").digest()
    for name in lab.names:
        for _ in range(3):
            assert opener()(lab.send(name), secret, "g") == lab.frame(name)


def test_the_limits_are_as_documented():
    interval_ms = round(seal.PROOF_INTERVAL_S * 1000)
    assert TEXT.count(f"one in {interval_ms} ms for each peer") == 2
    assert f"one in {interval_ms} to {interval_ms * 3 // 2} ms, by chance" in TEXT
    assert f"| {seal.UNPROVEN_OPENINGS} in {round(seal.UNPROVEN_S * 1000)} ms," in TEXT
    assert f"counts for {lives.PROOF_S:.0f} s from when" in TEXT
    assert f"From {lives.RENEW_S:.0f} s on" in TEXT
    assert f"{lives.CHALLENGE_S:.0f} s of when it was made" in TEXT
    assert f"Counters that are {lives.WINDOW} or more below" in TEXT
    assert f"more than {seal.SWITCH_S:.0f} s after" in TEXT
    assert f"{seal.OLD_KEY_S:.0f} s after it got the newest" in TEXT
    assert f"is {seal.OVERHEAD_BYTES} bytes longer" in TEXT
