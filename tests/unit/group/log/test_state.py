"""What the journal reports, and what the log takes for stored."""

from roundelay.core.contract import Boot
from roundelay.core.effects import Store
from roundelay.core.ids import ViewId
from roundelay.core.log import EMPTY_LOG, Mark
from roundelay.group.body import pack
from roundelay.group.log.arrival import Arrival
from roundelay.group.log.config import LogConfig
from roundelay.group.log.state import LogState


def full_log() -> tuple[LogState, list[int]]:
    """A log of a mark and two entries, each asked of the journal; and the numbers of that."""
    out: list[object] = []
    state = LogState(Boot("g", "a", journal=EMPTY_LOG), LogConfig(), out)  # type: ignore[arg-type]
    state.append(Mark(ViewId(4, "a"), 0, ("a",), ("a",), (1,), 0, b"L" * 16))
    state.flush()
    for number in range(2):
        state.take(Arrival("a", 0, 1, number, 1, 5, pack([b"m"])))
        state.flush()
    return state, [effect.number for effect in out if isinstance(effect, Store)]


def test_what_is_refused_together_is_not_stored():
    """The journal refused the first entry, and then what it was asked for before that was known."""
    state, (mark, first, second) = full_log()
    state.on_unstored(first)
    state.on_unstored(second)
    assert state.stored.length == 0
    assert not state.idle
    assert state.stored.term == ViewId(4, "a"), mark


def test_an_old_refusal_does_not_count_for_what_is_asked_again():
    state, (_, first, second) = full_log()
    state.on_unstored(first)
    state.retry()
    state.on_unstored(second)
    assert not state.lacks_room
    state.on_stored(second + 2)
    assert state.stored.length == 2
    assert state.idle
