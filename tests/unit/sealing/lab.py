"""A few seals with a clock, a network that does what a test says, and what an auditor who has the
keys can read in a datagram.
"""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from roundelay.core.contract import Boot, Origin
from roundelay.sealing.ciphers import Cipher, InvalidTag, aead
from roundelay.sealing.keys import GroupKey, KeyRing
from roundelay.sealing.proofs import CODEC, Proof
from roundelay.sealing.seal import Seal
from roundelay.wire.frame import PROOF_TAG, decode, encode, encode_origin, origin_in, tag_of
from roundelay.wire.primitives import Reason

GROUP = "g"
KEYS = tuple(GroupKey(hashlib.sha256(b"key %d" % n).digest()) for n in range(5))
DATA_TAG = 7
Opened = bytes | Reason | None


def stream(seed: str) -> Callable[[int], bytes]:
    """Random bytes: the same ones for the same seed, and never the same ones twice."""
    drawn = 0

    def draw(size: int) -> bytes:
        nonlocal drawn
        drawn += 1
        return hashlib.shake_256(f"{seed} {drawn}".encode()).digest(size)

    return draw


def frame_of(
    name: str, text: bytes = b"hello", *, group: str = GROUP, incarnation: int = 0
) -> bytes:
    """A frame as an endpoint with a key makes it."""
    origin = encode_origin(Origin(group, name, incarnation, None))
    return encode(origin, DATA_TAG, 1, 1, text, sealed=True)


def opened_by_hand(data: bytes, keys: Iterable[GroupKey] = KEYS, group: str = GROUP) -> bytes:
    """The frame in a datagram: what an auditor with the keys reads, by the documented format."""
    header, cipher = data[:36], Cipher(data[3])
    (key,) = [key for key in keys if key.id(group) == data[4:12]]
    decrypt = aead(cipher, key.boot_key(group, cipher, data[12:28]))[1]
    try:
        return decrypt(data[24:36], data[36:], header)
    except InvalidTag:
        raise AssertionError("it does not have the documented format") from None


def proof_in(data: bytes) -> Proof | None:
    """The challenge or the answer in a datagram; None if it holds another frame."""
    frame = opened_by_hand(data)
    return decode(frame, CODEC, {}, sealed=True).message if tag_of(frame) == PROOF_TAG else None


@dataclass
class Emitted:
    """A challenge or an answer, which a seal has asked its driver to send."""

    at: float
    by: str
    to: str
    data: bytes

    @property
    def proof(self) -> Proof:
        proof = proof_in(self.data)
        assert proof is not None
        return proof


class Lab:
    """Nodes with seals. Nothing arrives unless a test delivers it."""

    def __init__(
        self,
        names: str = "ab",
        keys: KeyRing = KEYS[:1],
        *,
        now: float = 100.0,
        ciphers: dict[str, Cipher] | None = None,
    ) -> None:
        self.now = now
        self.names = names
        self.seals: dict[str, Seal] = {}
        self.starts = dict.fromkeys(names, 0)
        self.emitted: list[Emitted] = []
        """All challenges and answers so far."""
        self.pending: list[Emitted] = []
        """Those that are on their way."""
        self._ciphers = ciphers or {}
        for name in names:
            self.start(name, keys)

    def start(self, name: str, keys: KeyRing) -> Seal:
        """A new life of a node."""
        self.starts[name] += 1
        self.seals[name] = Seal(
            Boot(GROUP, name, self.starts[name]),
            self.names,
            keys,
            stream(f"{name} {self.starts[name]}"),
            self.now,
            self._ciphers.get(name, Cipher.AES),
        )
        return self.seals[name]

    def frame(self, name: str, text: bytes = b"hello") -> bytes:
        """The next frame of a node."""
        return frame_of(name, text, incarnation=self.starts[name])

    def send(self, name: str, text: bytes = b"hello") -> bytes:
        """A datagram of a node, which is delivered nowhere yet."""
        return self.seals[name].seal(self.frame(name, text))

    def open(self, name: str, data: bytes) -> Opened:
        """What a node makes of a datagram. What it says to it is on its way then."""
        seal = self.seals[name]
        frame = seal.open(data, self.now)
        said = [Emitted(self.now, name, to, proof) for to, proof in seal.outbox]
        seal.outbox.clear()
        self.emitted += said
        self.pending += said
        return frame

    def settle(self, *, without: str = "") -> None:
        """Deliver challenges and answers until there are no more, except to and from these."""
        for _ in range(100):
            said, self.pending = self.pending, []
            for each in said:
                if each.by not in without and each.to not in without:
                    self.open(each.to, each.data)
            if not self.pending:
                return
        raise AssertionError("challenges and answers without end")

    def talk(self, *pairs: str, seconds: float = 0.0, step: float = 0.1) -> None:
        """Frames arrive, each from the first of a pair at the second, for so long; without pairs,
        from all at all. Challenges and answers arrive at once."""
        everybody = [a + b for a in self.names for b in self.names if a != b]
        until = self.now + seconds
        while True:
            for pair in pairs or everybody:
                self.open(pair[1], self.send(pair[0]))
                self.settle()
            if self.now >= until - 1e-9:
                return
            self.now = min(self.now + step, until)

    def meet(self) -> None:
        """All prove to all that they are alive."""
        self.talk(seconds=0.2, step=0.05)
        self.pending.clear()
        for name in self.names:
            assert self.proven(name) == sorted(set(self.names) - {name})

    def proven(self, name: str) -> list[str]:
        found = self.seals[name].status(self.now)["proven"]
        assert isinstance(found, list)
        return found

    def hears(self, receiver: str, sender: str) -> bool:
        """Whether a new frame of one opens at the other."""
        frame = self.open(receiver, self.send(sender))
        assert not isinstance(frame, bytes) or origin_in(frame).node == sender
        return isinstance(frame, bytes)
