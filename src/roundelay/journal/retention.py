"""What of a log may be removed, and the room on the disk that is kept for need."""

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path

from roundelay.journal.config import JournalConfig
from roundelay.journal.files import Files
from roundelay.journal.segment import Segment

_HOLDS_MAX = 4096


class Holds:
    """Places that learners read from lately: what is behind them is not removed for a while, but
    not for ever either, however often a learner asks for the same."""

    def __init__(self, hold_s: float, monotonic_s: Callable[[], float]) -> None:
        self._hold_s = hold_s
        self._monotonic_s = monotonic_s
        self._since: dict[int, float] = {}

    def add(self, index: int) -> None:
        """Somebody reads from this index."""
        self._since.setdefault(index, self._monotonic_s())
        if len(self._since) > _HOLDS_MAX:
            del self._since[next(iter(self._since))]

    def indexes(self) -> list[int]:
        """Those that are held."""
        now = self._monotonic_s()
        for index, since in list(self._since.items()):
            if now - since >= 2 * self._hold_s:
                del self._since[index]
        return [i for i, since in list(self._since.items()) if now - since < self._hold_s]


def removable(
    segments: Sequence[Segment],
    config: JournalConfig,
    *,
    below: int,
    committed: int,
    now_us: int,
    replaced: bool,
) -> int:
    """How many of the first segments may go. All entries before index `below` may, and the one
    before that stays: marks that follow it are needed by whoever goes on from that index.
    `replaced` says that a snapshot has the entries, so that without a limit in the configuration
    they need not stay."""
    size = sum(segment.end for segment in segments)
    no_limit = config.retain_bytes is None and config.retain_s is None
    count = 0
    for number in range(1, len(segments)):
        following = segments[number]
        if following.place.length >= min(below, committed):
            break  # The mark of a term that is not open yet may be cut off again.
        too_large = config.retain_bytes is not None and size > config.retain_bytes
        age_s = (now_us - following.header.wall_us) / 1e6
        too_old = config.retain_s is not None and age_s > config.retain_s
        if not (too_large or too_old or (no_limit and replaced)):
            break
        size -= segments[number - 1].end
        if following.checkpoint:
            count = number
    return count


def reserve_in(directory: Path) -> Path:
    """The file whose room is given up when the disk is full."""
    return directory / "reserve"


class Reserve:
    """A file that is given up when the disk is full, so that there is room for small ones."""

    def __init__(self, directory: Path, config: JournalConfig, files: Files) -> None:
        self._directory = directory
        self._path = reserve_in(directory)
        self._config = config
        self._files = files

    def take(self) -> None:
        """Take the room if there is enough left beside it."""
        size = self._config.reserve_bytes
        if not size or self._path.exists():
            return
        try:
            free = self._files.free_bytes(self._directory)
            if free < 2 * size + self._config.preallocate_bytes:
                return
            fd = self._files.open(self._path, create=True)
            try:
                self._files.fallocate(fd, 0, size)
            finally:
                self._files.close(fd)
        except OSError:
            self.give_up()

    def give_up(self) -> None:
        with contextlib.suppress(OSError):
            self._files.unlink(self._path)
