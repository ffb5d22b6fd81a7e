"""The messages of a run, and the check that every node delivered the same ones in the same order.

A message begins with its sender's name and its number modulo `POOL`, and is padded to its size. So
a sender can send the same messages again and again, and a reader can tell whether a message is in
its place. The last message of a sender is `end`.

Where every message is to be verified, each is built from its sender and its number instead, to the
last byte, and every reader builds it again and compares (`Numbered`). That takes time, at senders
and at readers.
"""

import itertools
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from statistics import NormalDist

from roundelay.bench.ring.jobs import Cell, Sizes, Verify

POOL = 64
"""How many different beginnings messages have. Fewer find fewer messages that are out of place."""
MIXED = 4 * POOL
"""How many messages a sender has if their sizes differ. Fewer: large ones are missing; more: they
do not stay in the processor's cache."""
SIGMA = 1.2
"""Of log-normal sizes: half of the messages are smaller than half the mean."""
LARGEST = 20
"""How many times the mean the largest of log-normal sizes is. MIXED sizes would not reach that: the
largest is made so large, and all others smaller in proportion, so that the mean stays."""
SMALLEST_BYTES = 8
END = b"end"


def pool(sender: str, size: int, sizes: Sizes = "equal") -> list[bytes]:
    """The messages that this node sends again and again."""
    drawn = draw(sender, size, sizes)
    return [_head(sender, i).ljust(bytes_, b".")[:bytes_] for i, bytes_ in enumerate(drawn)]


def draw(sender: str, size: int, sizes: Sizes) -> list[int]:
    """The sizes of these messages. They are spread as exactly as so many can be, so that their mean
    is right; only their order is random, and the same in every run."""
    if sizes == "equal":
        return [size] * POOL
    shares = [(i + 0.5) / MIXED for i in range(MIXED)]
    if sizes == "uniform":
        raw = [round(size / 2 + size * share) for share in shares]
    else:
        normal = NormalDist(math.log(size) - SIGMA**2 / 2, SIGMA)
        exact = [math.exp(normal.inv_cdf(share)) for share in shares[:-1]]
        scale = (MIXED - LARGEST) * size / sum(exact)
        raw = [*(round(bytes_ * scale) for bytes_ in exact), LARGEST * size]
    drawn = [max(bytes_, SMALLEST_BYTES) for bytes_ in raw]
    random.Random(sender).shuffle(drawn)
    return drawn


def _head(sender: str, index: int) -> bytes:
    return f"{sender}{index % POOL:02}".encode()


def pool_of(sender: str, cell: Cell) -> list[bytes]:
    """The same for a cell."""
    return pool(sender, cell.size, cell.sizes)


HEAD_BYTES = 8
"""Bytes of a message that is built from its number: its sender's first byte, and the number."""
_STRIDE, _SHIFT = 167, 13
"""Make neighbours in a message differ, and each of 256 messages in a row from the others."""


class Numbered:
    """The messages of one sender, each built from its number. Their sizes are those of the pool."""

    def __init__(self, sender: str, sizes: Sequence[int]) -> None:
        self._first = sender.encode()[:1]
        self._sizes = sizes
        period = bytes((i * _STRIDE + _SHIFT) % 256 for i in range(256))
        self._pattern = period * (max(sizes) // 256 + 2)

    @classmethod
    def of(cls, sender: str, cell: Cell) -> "Numbered":
        return cls(sender, [len(message) for message in pool_of(sender, cell)])

    def message(self, number: int) -> bytes:
        at = number % 256
        rest = self._sizes[number % len(self._sizes)] - HEAD_BYTES
        return self._first + number.to_bytes(HEAD_BYTES - 1) + self._pattern[at : at + rest]

    def stream(self) -> Iterator[bytes]:
        """All messages, from the first on."""
        return map(self.message, itertools.count())


def outgoing(sender: str, cell: Cell, verify: Verify) -> Iterator[bytes]:
    """What this node sends, for ever."""
    if verify == "all":
        return Numbered.of(sender, cell).stream()
    return itertools.cycle(pool_of(sender, cell))


def expected(senders: Sequence[str], cell: Cell, verify: Verify) -> Mapping[str, Numbered] | None:
    """What a reader compares every message with; None if it looks at the last of each batch."""
    if verify != "all":
        return None
    return {sender: Numbered.of(sender, cell) for sender in senders}


class DisorderError(Exception):
    """A message is out of its place."""


class Ledger:
    """What one node has delivered: of each batch the last message is checked, or each one, and the
    batch is hashed.

    What is not in one order, of an engine that orders each sender's messages alone, is hashed
    sender by sender.

    The hash is Python's own, of numbers and names: processes whose hashes are compared need the
    same PYTHONHASHSEED.
    """

    def __init__(
        self,
        senders: Sequence[str],
        exact: Mapping[str, Numbered] | None = None,
        *,
        in_one_order: bool = True,
    ) -> None:
        """With `exact`, every message is compared with what that sender built."""
        self._exact = exact
        self.count = 0
        self._in_one_order = in_one_order
        self._digests = dict.fromkeys(senders, 0)
        """By sender; all under the first one's name if they are in one order."""
        self._first = senders[0] if senders else ""
        self._next = dict.fromkeys(senders, 0)
        self._open = set(senders)
        self._heads = {sender: [_head(sender, i) for i in range(POOL)] for sender in senders}

    @property
    def complete(self) -> bool:
        """Whether the last message of every sender was delivered."""
        return not self._open

    def order(self, sender: str, number: int, count: int = 1) -> None:
        """Note that `count` messages of `sender`, numbered from `number`, were delivered."""
        if number != self._next[sender]:
            raise DisorderError(f"message {number} of {sender} where {self._next[sender]} was due")
        self._next[sender] = number + count
        self.count += count
        under = self._first if self._in_one_order else sender
        self._digests[under] = hash((self._digests[under], sender, number, count))

    @property
    def digest(self) -> int:
        """The same at all nodes that delivered the same messages in the same order."""
        return hash(tuple(self._digests.values()))

    def add(self, sender: str, number: int, payloads: Sequence[bytes]) -> None:
        """Note that these were delivered, and check that the last one is what its number says."""
        count = len(payloads)
        self.order(sender, number, count)
        last = payloads[-1]
        if self._exact is not None:
            self._compare(self._exact[sender], sender, number, payloads)
            ended = last == END
        else:
            ended = not last.startswith(self._heads[sender][(number + count - 1) % POOL])
            if ended and last != END:
                raise DisorderError(f"message {number + count - 1} of {sender} reads {last[:8]!r}")
        if ended:
            self._open.discard(sender)

    def _compare(
        self, built: Numbered, sender: str, number: int, payloads: Sequence[bytes]
    ) -> None:
        for i, payload in enumerate(payloads, number):
            if payload != built.message(i) and payload != END:
                raise DisorderError(
                    f"message {i} of {sender} has {len(payload)} bytes that begin with "
                    f"{bytes(payload[:16])!r}, which is not what was sent"
                )

    def next(self, sender: str) -> int:
        """The number of the next message of this sender."""
        return self._next[sender]

    def counts(self) -> dict[str, int]:
        """Messages delivered, by sender."""
        return dict(self._next)
