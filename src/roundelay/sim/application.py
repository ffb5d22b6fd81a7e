"""The application of a simulated node that keeps a log: it is given what is committed, and is its
state."""

from collections.abc import Sequence
from hashlib import blake2b

from roundelay.core.log import Entries, LogRecord
from roundelay.sim.clients import Machines


class Application:
    """What stands on the log: its state is a digest over all entries so far, and machines if there
    are any."""

    def __init__(self, machines: Machines | None = None) -> None:
        self.machines = machines
        self.length = 0
        self.digest = bytes(8)
        self.new: list[tuple[int, tuple[int, int]]] = []
        """Indexes that were applied since somebody last looked, with session and number."""

    def apply(self, records: Sequence[LogRecord], length: int) -> None:
        """Apply what is new in these records, below an index."""
        if self.machines is not None:
            self.machines.apply(records, length)
        for record in records:
            if not isinstance(record, Entries):
                continue
            head = record.head
            for i in range(head.count):
                index = head.index + i
                if index == self.length < length:
                    said = f"{index} {head.session} {head.number + i} {head.crc}".encode()
                    self.digest = blake2b(self.digest + said, digest_size=8).digest()
                    self.length += 1
                    self.new.append((index, (head.session, head.number + i)))

    def clear_news(self) -> None:
        """Who wanted to look has looked."""
        self.new.clear()
        if self.machines is not None:
            self.machines.applied.clear()

    @property
    def state(self) -> int:
        """The digest as a number that a row can hold."""
        return int.from_bytes(self.digest, "big") >> 1

    def snapshot(self) -> bytes:
        machines = b"" if self.machines is None else self.machines.snapshot()
        return self.length.to_bytes(8, "big") + self.digest + machines

    def restore(self, data: bytes) -> None:
        self.length = int.from_bytes(data[:8], "big")
        self.digest = data[8:16]
        if self.machines is not None:
            self.machines.restore(data[16:])
