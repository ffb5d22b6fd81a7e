"""H1 to H3: whether operations on replicated objects could have happened one at a time.

An operation takes place somewhere between its `invoke` and its `reply`. One without a reply took
place at any time after its `invoke`, or never. Two kinds of objects are judged, by the names of
what is done to them:

    register    `set` writes the value whose digest is `arg`; `get` answers with the digest of the
                value in `res`, none if there is no value yet. Each key of a map is one.
    lock        `acquire` answers with its fencing token in `res`
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from roundelay.check.model import Event, Model
from roundelay.check.property import Finding, declare
from roundelay.core.effects import Kind

OPERATIONS_MAX = 60
"""The most operations that overlap, directly or over others, of which H1 tries all orders. With
fewer, more histories stay undecided; with more, one history may take minutes."""

STATES_MAX = 200_000
"""The most states that one search remembers: some hundred megabytes."""

CLOCKS = "the operations are of several clocks: nobody knows which came first"


class Operation(NamedTuple):
    """What one node did to one object."""

    invoke: Event
    reply: Event | None
    begin: int
    end: float
    """When its reply came; infinity if none did."""

    @property
    def writes(self) -> bool:
        return self.invoke.row.op == "set"

    @property
    def value(self) -> int | None:
        """What it writes, or has read."""
        if self.writes:
            return self.invoke.row.arg
        assert self.reply is not None, "a read without a reply says nothing"
        return self.reply.row.res

    @property
    def rows(self) -> tuple[Event, ...]:
        return (self.invoke,) if self.reply is None else (self.invoke, self.reply)


def operations(model: Model, names: frozenset[str]) -> dict[str, list[Operation]]:
    """By object, for objects to which nothing else is done: what was, in the order of its begin.
    Where any state will do, nothing is promised."""
    replies: dict[tuple[int, int, int | None], Event] = {}
    for event in model.by_kind.get(Kind.REPLY, ()):
        replies.setdefault((event.proc, event.row.inc, event.row.cause), event)
    found: dict[str, list[Operation]] = {}
    others: set[str] = set()
    for event in model.by_kind.get(Kind.INVOKE, ()):
        row = event.row
        if row.obj is None or row.op not in names:
            others.add(row.obj or "")
        elif row.level != 0:
            reply = replies.get((event.proc, row.inc, row.lseq))
            end = float("inf") if reply is None else float(_when(model, reply))
            one = Operation(event, reply, _when(model, event), end)
            found.setdefault(row.obj, []).append(one)
    for made in found.values():
        made.sort(key=lambda one: one.begin)
    return {obj: made for obj, made in found.items() if obj not in others}


def _when(model: Model, event: Event) -> int:
    return event.at if model.total else event.row.t_ns


def _one_clock(model: Model, made: Iterable[Operation]) -> bool:
    """Whether the times of these operations can be compared."""
    if model.total:
        return True
    writers = {(one.invoke.proc, one.invoke.row.inc) for one in made}
    clocks = model.manifest.clocks() if model.manifest is not None else {}
    named = {clocks.get(f"{proc}.{inc}") for proc, inc in writers}
    return len(writers) == 1 or (len(named) == 1 and None not in named)


_REGISTER = frozenset({"set", "get"})


@declare("H1", "Operations on a register fit some order that agrees with their times")
def linearizable(model: Model) -> Finding:
    """The search of Wing and Gong, with the memory of Lowe: an order is built from its beginning,
    and no set of operations is tried twice with the same value. Where all operations before a
    moment have ended the search begins anew, from every value that may be there."""
    count, unknown = 0, ""
    for obj, made in operations(model, _REGISTER).items():
        telling = [one for one in made if one.writes or one.reply is not None]
        count += len(telling)
        if not _one_clock(model, telling):
            unknown = CLOCKS
            continue
        values: frozenset[int | None] = frozenset({None})
        for stretch in _stretches(telling):
            after = _outcomes(stretch, values)
            if after is None:
                unknown = f"more than {OPERATIONS_MAX} operations on {obj} overlap"
                break
            if not after:
                needed = _fewest(stretch, telling, values)
                reason = f"the operations on {obj} fit no order: " + ", ".join(
                    _told(model, one) for one in needed
                )
                return Finding(count, reason, tuple(row for one in needed for row in one.rows))
            values = after
    return Finding(count, unknown=unknown)


def _stretches(made: Sequence[Operation]) -> Iterator[list[Operation]]:
    """Operations that overlap, directly or over others."""
    stretch: list[Operation] = []
    until = float("-inf")
    for one in made:
        if stretch and one.begin > until:
            yield stretch
            stretch = []
        stretch.append(one)
        until = max(until, one.end)
    if stretch:
        yield stretch


def _outcomes(
    stretch: Sequence[Operation], values: frozenset[int | None]
) -> frozenset[int | None] | None:
    """The values that a register may have after all orders that fit; none of them if no order
    does, and None if there are too many to try."""
    if len(stretch) > OPERATIONS_MAX:
        return None
    all_ended = sum(1 << i for i, one in enumerate(stretch) if one.reply is not None)
    found: set[int | None] = set()
    seen: set[tuple[int, int | None]] = set()
    waiting = [(0, value) for value in values]
    while waiting:
        state = waiting.pop()
        if state in seen:
            continue
        if len(seen) >= STATES_MAX:
            return None
        seen.add(state)
        done, value = state
        if done & all_ended == all_ended:
            found.add(value)
        left = [i for i in range(len(stretch)) if not done >> i & 1]
        first_end = min((stretch[i].end for i in left), default=0.0)
        for i in left:
            one = stretch[i]
            if one.begin > first_end:
                break
            if one.writes:
                waiting.append((done | 1 << i, one.value))
            elif one.value == value:
                waiting.append((done | 1 << i, value))
    return frozenset(found)


def _fewest(
    stretch: Sequence[Operation], made: Sequence[Operation], values: frozenset[int | None]
) -> list[Operation]:
    """As few operations as fit no order; what a read of them has read stays with them."""
    needed = list(stretch)
    if None not in values:  # What the values before come from.
        earlier = [one for one in made if one.begin < stretch[0].begin]
        if _outcomes([*earlier, *needed], frozenset({None})) == frozenset():
            needed = [*earlier, *needed]
    for one in list(needed):
        rest = [other for other in needed if other is not one]
        read = {other.value for other in rest if not other.writes}
        if one.writes and one.value in read:
            continue
        if _outcomes(rest, frozenset({None})) == frozenset():
            needed = rest
    return needed


def _told(model: Model, one: Operation) -> str:
    what = "none" if one.value is None else f"{one.value & 0xFFFFFFFF:08x}"
    return f"{model.name(one.invoke.proc)} {'sets' if one.writes else 'gets'} {what}"


@declare("H2", "What carries an index agrees with time, and the log gives every answer")
def certificate(model: Model) -> Finding:
    """Where all that has ended carries an index, this implies H1, and takes no search."""
    count, unknown = 0, ""
    for obj, made in operations(model, _REGISTER).items():
        placed = [one for one in made if one.reply is not None and one.reply.row.idx is not None]
        count += len(placed)
        if not _one_clock(model, placed):
            unknown = CLOCKS
        elif (broken := _against_time(model, obj, placed)) is not None:
            return Finding(count, *broken)
        if (broken := _against_log(model, obj, made, placed)) is not None:
            return Finding(count, *broken)
    return Finding(count, unknown=unknown)


def _index(one: Operation) -> int:
    assert one.reply is not None
    return one.reply.row.idx or 0


def _against_time(
    model: Model, obj: str, placed: Sequence[Operation]
) -> tuple[str, tuple[Event, ...]] | None:
    """Two operations, of which the later one is as of less; a write is as of more than all before
    it."""
    by_end = sorted(placed, key=lambda one: one.end)
    ends = [one.end for one in by_end]
    best: list[Operation] = []
    for one in by_end:
        best.append(one if not best or _index(best[-1]) < _index(one) else best[-1])
    for one in placed:
        place = bisect_right(ends, one.begin)
        before = best[place - 1] if place else None
        if before is None or before is one:
            continue
        if _index(one) < _index(before) + (1 if one.writes else 0):
            reason = (
                f"{model.name(one.invoke.proc)} is answered on {obj} as of length {_index(one)}, "
                f"after {model.name(before.invoke.proc)} had been as of {_index(before)}"
            )
            return reason, (*before.rows, *one.rows)
    return None


def _against_log(
    model: Model, obj: str, made: Sequence[Operation], placed: Sequence[Operation]
) -> tuple[str, tuple[Event, ...]] | None:
    """A read whose answer is not what the last write before its length wrote. A write without an
    answer may be anywhere, so that what it wrote is never wrong."""
    writes = sorted((one for one in placed if one.writes), key=_index)
    lengths = [_index(one) for one in writes]
    unplaced = {one.value for one in made if one.writes and one not in placed}
    for one in placed:
        if one.writes or one.value in unplaced:
            continue
        place = bisect_right(lengths, _index(one))
        last = writes[place - 1] if place else None
        value = None if last is None else last.value
        if one.value != value and not unplaced:
            there = "nothing" if last is None else f"what {model.name(last.invoke.proc)} wrote"
            reason = (
                f"{model.name(one.invoke.proc)} reads another value of {obj} as of length "
                f"{_index(one)} than {there}"
            )
            return reason, (*(() if last is None else last.rows), *one.rows)
    return None


@declare("H3", "Fencing tokens of a lock grow, and no two holders have one")
def fencing(model: Model) -> Finding:
    count = 0
    for obj, made in operations(model, frozenset({"acquire", "release"})).items():
        granted = [
            one
            for one in made
            if one.invoke.row.op == "acquire" and one.reply and one.reply.row.res is not None
        ]
        count += len(granted)
        tokens: dict[int, Operation] = {}
        for one in granted:
            other = tokens.setdefault(_token(one), one)
            if other is not one:
                reason = (
                    f"{model.name(other.invoke.proc)} and {model.name(one.invoke.proc)} hold {obj} "
                    f"by one token, {_token(one)}"
                )
                return Finding(count, reason, (*other.rows, *one.rows))
        if _one_clock(model, granted) and (broken := _falls(granted)) is not None:
            before, one = broken
            reason = (
                f"{model.name(one.invoke.proc)} is given the token {_token(one)} of {obj}, after "
                f"{model.name(before.invoke.proc)} had {_token(before)}"
            )
            return Finding(count, reason, (*before.rows, *one.rows))
    return Finding(count)


def _token(one: Operation) -> int:
    assert one.reply is not None
    return one.reply.row.res or 0


def _falls(granted: Sequence[Operation]) -> tuple[Operation, Operation] | None:
    """Two grants, of which the later one has the smaller token."""
    by_end = sorted(granted, key=lambda one: one.end)
    ends = [one.end for one in by_end]
    greatest: list[Operation] = []
    for one in by_end:
        last = greatest[-1] if greatest else one
        greatest.append(one if _token(last) <= _token(one) else last)
    for one in granted:
        place = bisect_right(ends, one.begin)
        if place and _token(greatest[place - 1]) > _token(one):
            return greatest[place - 1], one
    return None
