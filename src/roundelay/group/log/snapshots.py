"""A learner's copy of a donor's snapshot, while it comes.

The file is written as it comes, part by part. Its head tells which place of the log it is of; its
end, whether it is the same file at another donor.
"""

from roundelay.core.log import Checkpoint, Mark, Place
from roundelay.group.log.messages import TooFar
from roundelay.group.log.state import LogState
from roundelay.wire.primitives import Reason, WireError
from roundelay.wire.snapshot_file import SnapshotHead, decode_head


class Transfer:
    """The transfer of one snapshot, from one donor after the other."""

    def __init__(self, offer: TooFar, part_bytes: int) -> None:
        self.offer = offer
        self.head: SnapshotHead | None = None
        """Once it has come."""
        self.last_number: int | None = None
        """The journal has the whole file once it has done what it was asked under this number."""
        self.stored = False
        """The journal has checked the whole file, and keeps it."""
        self._part_bytes = part_bytes
        self._parts: list[bytes] = []
        self._held = 0
        self._beginning = b""
        self._given = 0

    @property
    def received(self) -> int:
        """Bytes of the file that have come."""
        return self._given + self._held

    @property
    def complete(self) -> bool:
        """Whether all of the file has come."""
        return self.received == self.offer.size

    def continues(self, offer: TooFar) -> bool:
        """Whether what another donor offers is the same file."""
        mine = self.offer
        same = (mine.index, mine.size, mine.digest) == (offer.index, offer.size, offer.digest)
        return same and mine.mark == offer.mark

    def feed(self, data: bytes, state: LogState) -> None:
        """Take in the next bytes of the file. WireError if they are not of the snapshot that was
        offered; then nothing more may be fed."""
        if self.received + len(data) > self.offer.size:
            raise WireError(Reason.OVERSIZED, "a snapshot that is longer than its size")
        if self.head is None:
            self._beginning += data
            found = decode_head(self._beginning)
            if found is not None:
                self._check(found[0])
                self.head, self._beginning = found[0], b""
        self._parts.append(data)
        self._held += len(data)
        if self.head is None and self.complete:
            raise WireError(Reason.TRUNCATED, "a snapshot that ends within its head")
        if self.head is not None and (self._held >= self._part_bytes or self.complete):
            part, self._parts = b"".join(self._parts), []
            offset, self._given, self._held = self._given, self.received, 0
            number = state.store_snapshot(self.offer.index, offset, part, last=self.complete)
            if self.complete:
                self.last_number = number

    def _check(self, head: SnapshotHead) -> None:
        mark, place = self.offer.mark, head.checkpoint.place
        if (head.log, place.length) != (mark.log, self.offer.index):
            raise WireError(Reason.IMPLAUSIBLE, "a snapshot of another log, or another index")
        if not fits(head.checkpoint, mark) or head.generation > mark.generation:
            raise WireError(Reason.IMPLAUSIBLE, "a snapshot of another term than its mark")

    @property
    def checkpoint(self) -> Checkpoint:
        """Where the log goes on behind the snapshot, which is complete."""
        assert self.head is not None, "the snapshot is complete"
        return self.head.checkpoint


def fits(checkpoint: Checkpoint, mark: Mark) -> bool:
    """Whether a log may begin with these two: the mark is that of the checkpoint's term."""
    place = checkpoint.place
    return place.term == mark.term and place >= Place(mark.term, mark.base)
