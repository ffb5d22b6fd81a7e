"""The messages of a run, and the check that every node delivered the same ones in the same order.

A message begins with its sender's name and its number modulo `POOL`, and is padded to its size. So
a sender can send the same messages again and again, and a reader can tell whether a message is in
its place. The last message of a sender is `end`.
"""

from collections.abc import Sequence

POOL = 64
"""How many different messages a sender has. Fewer find fewer messages that are out of place."""
END = b"end"


def pool(sender: str, size: int) -> list[bytes]:
    """The messages that this node sends again and again."""
    return [_head(sender, i).ljust(size, b".")[:size] for i in range(POOL)]


def _head(sender: str, index: int) -> bytes:
    return f"{sender}{index:02}".encode()


class DisorderError(Exception):
    """A message is out of its place."""


class Ledger:
    """What one node has delivered: the last message of each batch is checked, and the batch is
    hashed.

    The hash is Python's own, of numbers and names: processes whose hashes are compared need the
    same PYTHONHASHSEED.
    """

    def __init__(self, senders: Sequence[str]) -> None:
        self.count = 0
        self.digest = 0
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
        self.digest = hash((self.digest, sender, number, count))

    def add(self, sender: str, number: int, payloads: Sequence[bytes]) -> None:
        """Note that these were delivered, and check that the last one is what its number says."""
        count = len(payloads)
        self.order(sender, number, count)
        last = payloads[-1]
        if not last.startswith(self._heads[sender][(number + count - 1) % POOL]):
            if last != END:
                raise DisorderError(f"message {number + count - 1} of {sender} reads {last[:8]!r}")
            self._open.discard(sender)

    def next(self, sender: str) -> int:
        """The number of the next message of this sender."""
        return self._next[sender]

    def counts(self) -> dict[str, int]:
        """Messages delivered, by sender."""
        return dict(self._next)
