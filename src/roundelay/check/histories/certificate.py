"""H2: whether the indexes that operations carry prove that a history is linearizable.

A write stands at its index, and a read that saw a log of length k stands between the writes k - 1
and k. If that order never contradicts real time, and replaying the log in it gives every reply that
was seen, then it is an order as H1 wants it. Looking takes a time that is linear in the history,
but for sorting it, so histories of any size can be judged.

Where nobody kept the log, the operations themselves are replayed, up to where one may stand whose
place is not known.
"""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, Protocol

from roundelay.check.histories.history import Judgement, Operation
from roundelay.check.histories.models import Model
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


def certified_by_itself(
    history: Sequence[Operation], model: Callable[[], Model], *, clock: bool = True
) -> Judgement:
    """Judge each key by itself, without its log. `clock` says whether times can be compared."""
    count = 0
    by_key = sorted(history, key=lambda operation: operation.key)
    for _, group in groupby(by_key, key=lambda operation: operation.key):
        operations = list(group)
        judged = [o for o in operations if o.returned is not None and o.index is not None]
        count += len(judged)
        verdict = (
            _twice(judged)
            or (_against_time(judged) if clock else None)
            or _stepped(operations, judged, model(), clock)
        )
        if verdict is not None:
            return verdict
    if not count:
        return Judgement("H2", Validity.VACUOUS, reason="no operation carries an index")
    return Judgement("H2", Validity.OK, count)


def _stepped(
    operations: Sequence[Operation], judged: Sequence[Operation], model: Model, clock: bool
) -> Judgement | None:
    """A reply that the object does not give where the operation stands. Writes whose place is not
    known stand behind all that had returned when they were called; what stands behind that is not
    judged."""
    known = float("inf")
    for write in operations:
        if not write.reads and (write.returned is None or write.index is None):
            before = [_place(o) for o in judged if o.returned is not None and clock
                      and o.returned < write.called]  # fmt: skip
            known = min(known, max(before, default=-1))
    state, last = model.start(), None
    for operation in sorted(judged, key=_place):
        if _place(operation) > known:
            return None
        allowed, state = model.step(state, operation)
        if not allowed:
            there = "nothing was written" if last is None else f"the last write is {last}"
            reason = f"where it stands {there}, which gives another reply"
            return _violated(len(judged), reason, *(() if last is None else (last,)), operation)
        if not operation.reads:
            last = operation
    return None


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
