"""H2: whether the indexes that operations carry prove that a history is linearizable.

A write stands at its index, and a read that saw a log of length k stands between the writes k - 1
and k. If that order never contradicts real time, and replaying the log in it gives every reply that
was seen, then it is an order as H1 wants it. Looking takes a time that is linear in the history,
but for sorting it, so histories of any size can be judged.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from roundelay.check.histories.history import Judgement, Operation
from roundelay.check.verdict import Validity


class Replay(Protocol):
    """The object, and its log."""

    def reply(self, index: int) -> Any:
        """Apply the entry of this index, which is the next one, and return its reply."""

    def read(self, operation: Operation) -> Any:
        """What the read returns in the present state."""


def certified(history: Sequence[Operation], replay: Replay, length: int) -> Judgement:
    """Judge operations that returned and carry an index; `length` is that of the log."""
    judged = [o for o in history if o.returned is not None and o.index is not None]
    if not judged:
        return Judgement("H2", Validity.VACUOUS, reason="no operation carries an index")
    verdict = _twice(judged) or _against_time(judged) or _replayed(judged, replay, length)
    if verdict is not None:
        return verdict
    left_out = sum(o.returned is not None and o.index is None for o in history)
    if left_out:
        reason = f"{left_out} operations returned without an index"
        return Judgement("H2", Validity.INCONCLUSIVE, len(judged), reason=reason)
    return Judgement("H2", Validity.OK, len(judged))


def _place(operation: Operation) -> int:
    assert operation.index is not None
    return 2 * operation.index + (0 if operation.reads else 1)


def _violated(count: int, reason: str, *witness: Operation) -> Judgement:
    return Judgement("H2", Validity.VIOLATED, count, witness, reason)


def _twice(judged: Sequence[Operation]) -> Judgement | None:
    writes: dict[int, Operation] = {}
    for operation in judged:
        if not operation.reads:
            assert operation.index is not None
            other = writes.setdefault(operation.index, operation)
            if other is not operation:
                reason = f"two operations were told that they are at index {operation.index}"
                return _violated(len(judged), reason, other, operation)
    return None


def _against_time(judged: Sequence[Operation]) -> Judgement | None:
    """An operation that stands before one that had returned before it was called."""
    by_return = sorted(judged, key=lambda o: o.returned or 0.0)
    latest: Operation | None = None
    """Of those that have returned, the one that stands last."""
    at = 0
    for operation in sorted(judged, key=lambda o: o.called):
        while at < len(by_return) and (by_return[at].returned or 0.0) < operation.called:
            if latest is None or _place(by_return[at]) > _place(latest):
                latest = by_return[at]
            at += 1
        if latest is not None and _place(latest) > _place(operation):
            reason = "the second was called after the first had returned, and stands before it"
            return _violated(len(judged), reason, latest, operation)
    return None


def _replayed(judged: Sequence[Operation], replay: Replay, length: int) -> Judgement | None:
    in_order = sorted(judged, key=_place)
    applied = 0
    for operation in in_order:
        assert operation.index is not None
        if operation.index + (not operation.reads) > length:
            reason = f"it is beyond the end of the log, which has {length} entries"
            return _violated(len(judged), reason, operation)
        while applied < operation.index:
            replay.reply(applied)
            applied += 1
        if operation.reads:
            found = replay.read(operation)
        else:
            found = replay.reply(applied)
            applied += 1
        if found != operation.reply:
            reason = f"replaying the log gives {found!r} here"
            return _violated(len(judged), reason, operation)
    return None
