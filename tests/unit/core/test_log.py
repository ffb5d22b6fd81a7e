"""Places in a log."""

from roundelay.core.ids import ViewId
from roundelay.core.log import Checkpoint, Entries, Head, LogRecord, Mark, Place

TERM = ViewId(3, "a")


def _entries(index: int, count: int) -> Entries:
    return Entries(Head(index, TERM, "a", 0, 1, 0, count, 0, 0), b"")


def test_each_record_of_a_log_has_a_place_of_its_own() -> None:
    """Records that open a session have no index, and move the place all the same: else a log with
    one and a log without it would be at one place with different digests, which is a fork."""
    records: list[LogRecord] = [
        Mark(TERM, 0, ("a",), ("a",), (1,), 0, b""),
        _entries(0, 0),
        _entries(0, 0),
        _entries(0, 3),
        _entries(3, 0),
        _entries(3, 1),
        Mark(ViewId(4, "a"), 4, ("a",), ("a",), (1,), 0, b""),
    ]
    place, places = Place(), [Place()]
    for record in records:
        place = place.past(record)
        places.append(place)
    assert places == sorted(set(places))
    assert place.past(Checkpoint(place, 0, 0, ())) == place
