"""H1: whether some order of the operations on an object fits real time and what the object is.

Theory of operation. The search is that of Wing and Gong, with the memory that Lowe added: go
through the calls and returns in the order of time; take an operation that was called before the
first return among those that are not placed yet, place it next if the object allows its reply, and
go on; where nothing can be placed, take the last one back. A set of placed operations together with
a state was either never reached before, or is not worth going on from again.

Operations that did not return may be placed at any time after their call, or never.

What is shown of a history that has no such order is its shortest beginning that has none, without
operations that it does not need.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby

from roundelay.check.histories.history import Judgement, Operation
from roundelay.check.histories.models import Model
from roundelay.check.verdict import Validity

OVERLAPPING_MAX = 60
"""Operations under way at once. The search may take a time that grows exponentially with it."""
STEPS_MAX = 2_000_000
"""States that the search looks at before it gives up. Too few: histories stay undecided that are
not hard; too many: one that is hard takes minutes."""
SHORTER_STEPS_MAX = 20_000
"""The same for each try to show fewer operations. Too few: witnesses are longer than they need be;
too many: a violation takes minutes to be told."""


class TooHardError(Exception):
    """The search was given up."""


def linearizable(
    history: Sequence[Operation], model: Callable[[], Model], *, steps_max: int = STEPS_MAX
) -> Judgement:
    """Judge each key by itself. VIOLATED if there is one key without an order; else INCONCLUSIVE if
    there is one that is too hard."""
    if not history:
        return Judgement("H1", Validity.VACUOUS, reason="there are no operations")
    by_key = sorted(history, key=lambda operation: operation.key)
    hard = ""
    for key, group in groupby(by_key, key=lambda operation: operation.key):
        operations = sorted(group, key=lambda operation: operation.called)
        width = overlapping(operations)
        if width > OVERLAPPING_MAX:
            hard = hard or f"{width} operations on {key!r} overlap, {OVERLAPPING_MAX} are the limit"
            continue
        try:
            if has_order(operations, model(), steps_max):
                continue
        except TooHardError:
            hard = hard or f"the search for an order on {key!r} took too long"
            continue
        witness = _shortest(operations, model, steps_max)
        return Judgement(
            "H1",
            Validity.VIOLATED,
            len(history),
            witness,
            f"no order of the operations on {key!r} fits real time and their replies; without "
            f"the last reply there is one: {_last(witness)}",
        )
    if hard:
        return Judgement("H1", Validity.INCONCLUSIVE, len(history), reason=hard)
    return Judgement("H1", Validity.OK, len(history))


def overlapping(operations: Sequence[Operation]) -> int:
    """The most operations under way at once. Those that never return count up to the end."""
    ends = [(o.returned, -1) for o in operations if o.returned is not None]
    moments = sorted([(o.called, 1) for o in operations] + ends, key=lambda m: (m[0], -m[1]))
    most = now = 0
    for _, change in moments:
        now += change
        most = max(most, now)
    return most


def has_order(operations: Sequence[Operation], model: Model, steps_max: int = STEPS_MAX) -> bool:
    """Whether there is an order. TooHardError after so many steps."""
    operations = sorted(operations, key=lambda operation: operation.called)
    must = sum(1 << n for n, o in enumerate(operations) if o.returned is not None)
    seen: set[tuple[int, object]] = set()
    # Of each state on the way: what is placed, the state, and the operations still to be tried.
    start = model.start()
    stack = [(0, start, _next(operations, 0))]
    steps = 0
    while stack:
        placed, state, candidates = stack[-1]
        if placed & must == must:
            return True
        if not candidates:
            stack.pop()
            continue
        chosen = candidates.pop()
        steps += 1
        if steps > steps_max:
            raise TooHardError
        allowed, after = model.step(state, operations[chosen])
        if not allowed:
            continue
        now = placed | 1 << chosen
        if (now, after) not in seen:
            seen.add((now, after))
            stack.append((now, after, _next(operations, now)))
    return False


def _next(operations: Sequence[Operation], placed: int) -> list[int]:
    """Operations that may come next: not placed, and called before any other that is not placed
    had returned. The first to return is tried first."""
    first_return = float("inf")
    open_ones = []
    first = (~placed & (placed + 1)).bit_length() - 1  # The first that is not placed.
    for n in range(first, len(operations)):
        if placed >> n & 1:
            continue
        operation = operations[n]
        if operation.called > first_return:
            break
        open_ones.append(n)
        if operation.returned is not None:
            first_return = min(first_return, operation.returned)
    fitting = [n for n in open_ones if operations[n].called <= first_return]
    return sorted(fitting, key=lambda n: -_end(operations[n]))


def _end(operation: Operation) -> float:
    return float("inf") if operation.returned is None else operation.returned


def _shortest(
    operations: Sequence[Operation], model: Callable[[], Model], steps_max: int
) -> tuple[Operation, ...]:
    """The beginning of the history up to the first return with which it has no order. Beginnings of
    a history that has an order have one, so it can be found by halving."""
    returns = sorted(o.returned for o in operations if o.returned is not None)
    low, high = 0, len(returns) - 1
    while low < high:
        middle = (low + high) // 2
        if _decided(_until(operations, returns[middle]), model(), steps_max):
            low = middle + 1
        else:
            high = middle
    needed = _until(operations, returns[low])
    for operation in reversed(needed):  # Reads before the writes that they have read.
        rest = [other for other in needed if other is not operation]
        if model().needless(operation, rest) and not _decided(rest, model(), SHORTER_STEPS_MAX):
            needed = rest
    return tuple(needed)


def _decided(operations: Sequence[Operation], model: Model, steps_max: int) -> bool:
    try:
        return has_order(operations, model, steps_max)
    except TooHardError:
        return True  # A longer beginning is shown instead.


def _until(operations: Sequence[Operation], moment: float) -> list[Operation]:
    """What had happened up to this moment."""
    return [
        o if o.returned is not None and o.returned <= moment else replace(o, returned=None)
        for o in operations
        if o.called <= moment
    ]


def _last(operations: Sequence[Operation]) -> Operation:
    returned = [o for o in operations if o.returned is not None]
    return max(returned, key=lambda operation: operation.returned or 0.0)
