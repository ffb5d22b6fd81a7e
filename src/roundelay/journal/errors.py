"""What can go wrong with a journal. Each has one sentence: which file, and what to do."""

from pathlib import Path


class BaseJournalError(Exception):
    """Any failure of a journal that was foreseen."""


class JournalError(BaseJournalError):
    """The journal is in use, belongs to another node or log, or cannot be read; nothing was
    changed."""


class DiskError(BaseJournalError):
    """The disk failed to write or to sync. What had been written may be lost although a second try
    would report success, so the node must stop."""


class FullError(BaseJournalError):
    """There was no room: nothing of what was to be written is in the journal."""


class DamageError(BaseJournalError):
    """A record in the middle of the journal cannot be read. At its next start the node sets the
    damaged part aside and fetches it again."""

    def __init__(self, path: Path, offset: int, why: str, index: int | None = None) -> None:
        """`index` is that of the first entry that cannot be read, if it is known."""
        lost = "" if index is None else f", so entries from {index} on cannot be read"
        super().__init__(
            f"{path} is damaged at byte {offset} ({why}){lost}; `roundelay journal verify` tells "
            "more; check the disk and restart the node, which then fetches from its peers what it "
            "cannot read"
        )
        self.path = path
        self.offset = offset
        self.why = why
        self.index = index


class TruncatedError(BaseJournalError):
    """An index was asked for that was removed. `first` is the first there is."""

    def __init__(self, index: int, first: int) -> None:
        super().__init__(
            f"the entries below {first} were removed, and {index} was asked for; begin at {first}, "
            "or keep more with retain_bytes"
        )
        self.index = index
        self.first = first


class ForeignLogError(BaseJournalError):
    """An offset or a snapshot belongs to another log, or to another generation of this one."""
