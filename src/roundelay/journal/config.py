"""Limits of a journal."""

from roundelay.core.value import value


@value
class JournalConfig:
    """Limits of a journal."""

    segment_bytes: int = 128 << 20
    """A segment ends with the first record past this, or with the first checkpoint past three
    quarters of it. Large ones free the disk in coarse steps; of small ones there are many files."""
    preallocate_bytes: int = 16 << 20
    """How far ahead room on the disk is taken. Little: a sync writes the size of the file more
    often, and a full disk is noticed late. Much: small logs take more room than they need."""
    reserve_bytes: int = 16 << 20
    """Room that is given up when the disk is full, so that the node's standing can be written.
    None: a node on a full disk cannot change views."""
    retain_bytes: int | None = None
    """The oldest segments are removed while the log is larger. Less than a node misses while it is
    away: it needs a snapshot, or cannot come back. None: only snapshots make room."""
    retain_s: float | None = None
    """Segments are removed when their newest record is older. None: age does not count."""
    fetch_hold_s: float = 60.0
    """How long after a place was read nothing behind it is removed. Short: a slow learner loses its
    donor. Long: a full disk waits for it."""

    def __post_init__(self) -> None:
        if self.segment_bytes < 1 << 12:
            raise ValueError("segment_bytes must be at least 4096")
        if self.preallocate_bytes < 1 << 12:
            raise ValueError("preallocate_bytes must be at least 4096")
