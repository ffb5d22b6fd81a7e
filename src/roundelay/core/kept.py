"""What a log amounts to when its node starts: `KeptLog`, from the records that its disk holds.

A journal of files and the simulator's disk both come here, so that a core starts alike on both.
"""

from collections.abc import Iterable, Sequence

from roundelay.core.log import (
    EMPTY_LOG,
    MARKS_KEPT,
    Checkpoint,
    Entries,
    Head,
    KeptLog,
    LogRecord,
    Mark,
    Place,
)

EMPTY_WHY = "the journal is empty, which cannot be told from a disk that was lost"
_START = Checkpoint(Place(), 0, 0, ())


def place_after(place: Place, record: LogRecord | Head) -> Place | None:
    """The place behind `record` if it continues a log that ends at `place`; None if it does not.

    Entries may begin before the place: a snapshot may have been taken in the middle of a packet,
    and the log that begins with it goes on with the whole packet."""
    if type(record) is Entries:
        record = record.head
    if type(record) is Head:
        index, end = record.index, record.index + record.count
        fits = index == place.length or index < place.length < end
        return place.past(record) if fits and record.term == place.term else None
    if type(record) is Mark:
        fits = record.term > place.term and record.base == place.length
        return place.past(record) if fits else None
    assert type(record) is Checkpoint
    return place if record.place == place else None


def split(records: Sequence[LogRecord], place: Place) -> int:
    """How many of the records of a log are not behind `place`: a `Cut` to that place leaves these,
    and a `Load` from it begins with the next one."""
    at, here = 0, Place()
    if records and type(records[0]) is Checkpoint:
        here = records[0].place
        at = 2 if len(records) > 1 and _repeated(records[1], here) else 1
    while at < len(records) and (here := here.past(records[at])) <= place:
        at += 1
    return at


def _repeated(record: LogRecord | Head, place: Place) -> bool:
    """Whether this is the mark that a log without its beginning has behind its first checkpoint."""
    return type(record) is Mark and record.term == place.term


def kept_log(
    records: Iterable[LogRecord | Head],
    *,
    committed: int,
    able: bool = True,
    why: str = "",
    snapshot: int | None = None,
    marks: Iterable[Mark] = (),
    first: int | None = None,
) -> KeptLog:
    """What these records amount to, of whose entries `committed` are known to be committed; fewer
    if there are fewer.

    The records are those of the whole log, or begin with a checkpoint. A log whose beginning was
    removed begins with a checkpoint and the mark of its term, and all below is committed. If the
    records are only the end of what is held, `marks` are those before them, and `first` is the
    first index that is held. AssertionError if a record does not continue the one before it."""
    known = list(marks)
    start = chosen = _START
    place: Place | None = None
    behind: list[Head | Mark | Checkpoint] = []
    for record in records:
        if place is None:
            place = Place()
            if type(record) is Checkpoint:
                start = chosen = record
                place = record.place
                continue
        if type(record) is Mark and _repeated(record, place):
            if record not in known:
                known.append(record)
            continue
        after = place_after(place, record)
        assert after is not None, f"a record does not continue a log that ends at {place}"
        place = after
        if type(record) is Mark:
            known.append(record)
        behind.append(record.head if isinstance(record, Entries) else record)
    if not known or place is None:
        return EMPTY_LOG
    committed = max(start.place.length, min(committed, place.length))
    tail: list[Head | Mark] = []
    for item in behind:
        if not isinstance(item, Checkpoint):
            tail.append(item)
        elif item.place.length < committed:  # Else the mark before it may yet be cut off.
            chosen = item
            tail.clear()
    return KeptLog(
        log=known[-1].log,
        generation=known[-1].generation,
        able=able,
        first=start.place.length if first is None else first,
        committed=committed,
        marks=tuple(known[-MARKS_KEPT:]),
        checkpoint=chosen,
        tail=tuple(tail),
        snapshot=snapshot,
        why=why,
    )
