"""Reading records of a log from its segments, by their place.

DamageError if a record cannot be read: none is skipped.
"""

from bisect import bisect_right
from collections.abc import Sequence

from roundelay.core.log import Mark, Place
from roundelay.journal.errors import DamageError
from roundelay.journal.frame import CHECKPOINT, MARK, NOTE, place_past
from roundelay.journal.segment import Segment, Walk
from roundelay.wire.log_record import decode_record, encode_record


def load(segments: Sequence[Segment], place: Place, bytes_max: int) -> list[bytes]:
    """Records as `wire.log_record` encodes them, the first one the one that follows `place`, as
    `Journal.read` says. There must be a segment."""
    records: list[bytes] = []
    if place < segments[0].place:
        records = _beginning(segments[0])
        place = segments[0].place
    size = sum(map(len, records))
    at = bisect_right(segments, place, key=lambda s: s.place) - 1
    near = segments[at].near(place)
    here, offset = near.place, near.offset
    for segment in segments[at:]:
        walk = segment.walk(max(offset, segment.carry_end))
        offset = 0
        for found in walk:
            here = place_past(here, walk.data, found)
            if found.kind in (NOTE, CHECKPOINT) or here <= place:
                continue
            if records and size + found.end - found.start > bytes_max:
                return records
            records.append(walk.data[found.start : found.end])
            size += found.end - found.start
        check_whole(segment, walk)
    return records


def _beginning(segment: Segment) -> list[bytes]:
    """The checkpoint and the mark that a log without its beginning starts with."""
    walk = segment.walk()
    for found in walk:
        if found.kind == CHECKPOINT and segment.carry.marks:
            return [walk.data[found.start : found.end], encode_record(segment.carry.marks[-1])]
        break
    raise DamageError(segment.path, walk.offset, "it does not begin with a checkpoint")


def end_of(segment: Segment, place: Place) -> tuple[int, Place, list[Mark]]:
    """Where in a segment the first record behind `place` begins, its place in the log, and the
    marks before it in this segment."""
    here = segment.place
    marks: list[Mark] = []
    walk = segment.walk()
    for found in walk:
        after = place_past(here, walk.data, found)
        if after > place:
            return walk.offset, here, marks
        if found.kind == MARK:
            mark = decode_record(walk.data[found.start : found.end])
            assert isinstance(mark, Mark)
            marks.append(mark)
        here = after
    check_whole(segment, walk)
    return walk.offset, here, marks


def check_whole(segment: Segment, walk: Walk) -> None:
    """DamageError if a walk that has ended did not come to the end of its segment."""
    if walk.bad is not None or walk.offset < walk.end:
        why = walk.bad.why if walk.bad is not None else "a record is missing"
        raise DamageError(segment.path, walk.offset, why)
