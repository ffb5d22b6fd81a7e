"""H1 to H4: operations on replicated objects, as a trace has them.

The judges are those of `histories`; here rows `invoke` and `reply` become what they judge. An
operation takes place somewhere between its `invoke` and its `reply`. One without a reply took place
at any time after its `invoke`, or never. What an object is shows in what is done to it; where
something else is done to it, it is not judged:

    register    `set` writes `arg`; `get` answers with the value, none if there is none; `pop` does
                so too and leaves none; `delete` answers with 1 if there was one; `revise` answers
                with something if it did as `set`. Each key of a map is one
    counter     `add` adds `arg` and answers with the sum, `value` answers with it
    member      `include`, `exclude` and `contains` answer with 1 if it was not, was, or is there.
                Each value that may be in a set is one
    loan        `lend` writes `arg` for a while; `recall` answers with it, or with none from some
                moment on
    highest     `offer` answers with the greatest `arg` up to then, `highest` answers with it
    lock        `acquire` answers with its fencing token, `release` gives the token `arg` back and
                answers with 1 if it was held up to then
    semaphore   `enter` and `leave` are the same for as many at once as `arg` of `enter` says
    queue       `take` answers with an item, and its place in the log is the token; `done` and
                `back` of the item `arg` answer with 1 if it was the taker's up to then
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from roundelay.check.histories import (
    Holding,
    Judgement,
    Operation,
    Taking,
    certified_by_itself,
    counter,
    done_once,
    fenced,
    highest,
    linearizable,
    loan,
    member,
    register,
)
from roundelay.check.histories import Model as Object
from roundelay.check.log.history import Losses
from roundelay.check.model import Config, Event, Model
from roundelay.check.property import Finding, declare
from roundelay.check.verdict import Validity
from roundelay.core.effects import Kind
from roundelay.trace.schema import REGULAR

LOST = "a majority was lost for good, and operations with it"
CLOCKS = "the operations are of several clocks: nobody knows which came first"

_SEARCHED: dict[Callable[[], Object], frozenset[str]] = {
    register: frozenset({"set", "revise", "get", "pop", "delete"}),
    counter: frozenset({"add", "value"}),
    member: frozenset({"include", "exclude", "contains"}),
    highest: frozenset({"offer", "highest"}),
    loan: frozenset({"lend", "recall"}),
}
_READS = frozenset({"get", "value", "contains", "highest", "recall"})
_TURNS = (("acquire", "release"), ("enter", "leave"))
"""How turns of a lock and of a semaphore are got and given back."""
_QUEUE = frozenset({"put", "take", "done", "back"})


class Call(NamedTuple):
    """What one life of a node did to one object."""

    invoke: Event
    reply: Event | None
    begin: int
    end: int | None
    """When its reply came."""

    @property
    def op(self) -> str:
        return self.invoke.row.op or ""

    @property
    def argument(self) -> int | None:
        return self.invoke.row.arg

    @property
    def result(self) -> int | None:
        return None if self.reply is None else self.reply.row.res

    @property
    def life(self) -> tuple[int, int]:
        return self.invoke.proc, self.invoke.row.inc

    @property
    def rows(self) -> tuple[Event, ...]:
        return (self.invoke,) if self.reply is None else (self.invoke, self.reply)


def calls(model: Model, names: frozenset[str]) -> dict[str, list[Call]]:
    """By object, for objects to which nothing else is done: what was, in the order of its begin.
    Where any state will do, nothing is promised."""
    replies: dict[tuple[int, int, int | None], Event] = {}
    for event in model.by_kind.get(Kind.REPLY, ()):
        replies.setdefault((event.proc, event.row.inc, event.row.cause), event)
    found: dict[str, list[Call]] = {}
    others: set[str] = set()
    for event in model.by_kind.get(Kind.INVOKE, ()):
        row = event.row
        if row.obj is None or row.op not in names:
            others.add(row.obj or "")
        elif row.level != 0:
            reply = replies.get((event.proc, row.inc, row.lseq))
            end = None if reply is None else _when(model, reply)
            found.setdefault(row.obj, []).append(Call(event, reply, _when(model, event), end))
    for made in found.values():
        made.sort(key=lambda call: call.begin)
    return {obj: made for obj, made in found.items() if obj not in others}


def _when(model: Model, event: Event) -> int:
    return event.at if model.total else event.row.t_ns


def _one_clock(model: Model, made: Iterable[Call]) -> bool:
    """Whether the times of these operations can be compared."""
    if model.total:
        return True
    writers = {call.life for call in made}
    clocks = model.manifest.clocks() if model.manifest is not None else {}
    named = {clocks.get(f"{proc}.{inc}") for proc, inc in writers}
    return len(writers) == 1 or (len(named) == 1 and None not in named)


def _found(model: Model, judged: Sequence[Judgement], unknown: str = "") -> Finding:
    """What several judgements say together: the first breach, or else why one is not known."""
    count = sum(judgement.instances for judgement in judged)
    if count and Losses(model).events:
        return Finding(count, unknown=LOST)
    for judgement in judged:
        if judgement.validity is Validity.VIOLATED:
            rows = tuple(row for shown in judgement.witness for row in shown.source)
            return Finding(count, judgement.reason, rows)
        if judgement.validity is Validity.INCONCLUSIVE:
            unknown = unknown or judgement.reason
    return Finding(count, unknown=unknown)


def _history(model: Model, obj: str, made: Iterable[Call]) -> list[Operation]:
    """Reads that have no reply say nothing."""
    return [
        Operation(
            model.name(call.invoke.proc),
            obj,
            call.op,
            call.argument,
            call.begin,
            call.end,
            call.result,
            _index(call),
            call.op in _READS,
            call.rows,
        )
        for call in made
        if call.op not in _READS or call.reply is not None
    ]


def _index(call: Call) -> int | None:
    """Rows tell as of how many entries a reply is, of a write its own included."""
    length = None if call.reply is None else call.reply.row.idx
    return length if length is None or call.op in _READS else length - 1


@declare("H1", "Operations on an object fit some order that agrees with their times")
def in_some_order(model: Model) -> Finding:
    judged, unknown = [], ""
    for kind, names in _SEARCHED.items():
        for obj, made in calls(model, names).items():
            if _one_clock(model, made):
                judged.append(linearizable(_history(model, obj, made), kind))
            else:
                unknown = CLOCKS
    return _found(model, judged, unknown)


@declare("H2", "What carries an index agrees with time, and the log gives every answer")
def in_the_order_of_the_log(model: Model) -> Finding:
    """Where all that has ended carries an index, this implies H1, and takes no search."""
    judged, unknown = [], ""
    for kind, names in _SEARCHED.items():
        for obj, made in calls(model, names).items():
            clock = _one_clock(model, made)
            judged.append(certified_by_itself(_history(model, obj, made), kind, clock=clock))
            if not clock and any(_index(call) is not None for call in made):
                unknown = CLOCKS
    return _found(model, judged, unknown)


@declare("H3", "Fencing tokens of a lock grow, and nobody gets it while another holds it")
def fencing(model: Model) -> Finding:
    judged = []
    for get, give in _TURNS:
        for made in calls(model, frozenset({get, give})).values():
            limit = max((call.argument or 1 for call in made if call.op == get), default=1)
            holdings = _holdings(model, made, get)
            judged.append(fenced(holdings, limit, clock=_one_clock(model, made)))
    return _found(model, judged)


def _holdings(model: Model, made: Sequence[Call], get: str) -> list[Holding]:
    released = {(call.life, call.argument): call for call in made if call.op != get}
    found = []
    for call in made:
        if call.op != get or call.end is None or call.result is None:
            continue
        name, back = model.name(call.invoke.proc), released.get((call.life, call.result))
        if back is None:
            held = Holding(name, call.begin, call.end, call.result, source=call.rows)
        else:
            sure, rows = back.result == 1, (*call.rows, *back.rows)
            held = Holding(name, call.begin, call.end, call.result, back.begin, sure, source=rows)
        found.append(held)
    return found


@declare("H4", "An item of a queue is done once, and taken again only when it was given up")
def doing(model: Model) -> Finding:
    losses = _losses(model)
    return _found(
        model,
        [
            done_once(_takings(model, made, losses), clock=_one_clock(model, made))
            for made in calls(model, _QUEUE).values()
        ],
    )


def _losses(model: Model) -> list[tuple[int, frozenset[tuple[int, int | None]], bool]]:
    """When lives of nodes ended, and views opened without some nodes, or may have: the time, the
    lives that ended or the nodes that stayed, and which of the two it is.

    Nodes that install a primary view store its mark. A later view may adopt a log with that mark
    though the view never opened, and what the mark says then holds for all."""
    found: list[tuple[int, frozenset[tuple[int, int | None]], bool]] = [
        (_when(model, event), frozenset({(event.proc, event.row.inc)}), True)
        for event in model.by_kind.get(Kind.CRASH, ())
    ]
    for event in model.by_kind.get(Kind.INSTALL, ()):
        if event.row.primary and event.row.c_kind == REGULAR:
            stayed = frozenset((proc, None) for proc in event.row.members or ())
            found.append((_when(model, event), stayed, False))
    for event in (e for e in model.by_kind.get(Kind.OPEN, ()) if not e.row.tag):
        view = Config(event.row.k0 or 0, event.row.k1 or 0, REGULAR)
        if members := model.members.get(view):
            stayed = frozenset((proc, None) for proc in members)
            found.append((_when(model, event), stayed, False))
    return sorted(found, key=lambda loss: loss[0])


def _takings(
    model: Model,
    made: Sequence[Call],
    losses: Sequence[tuple[int, frozenset[tuple[int, int | None]], bool]],
) -> list[Taking]:
    found = []
    for call in made:
        if call.op != "take" or call.end is None or call.result is None:
            continue
        assert call.reply is not None
        token = call.reply.row.idx
        if token is None:
            continue
        later = [
            other
            for other in made
            if other.op in ("done", "back")
            and (other.life, other.argument) == (call.life, call.result)
            and other.begin > call.end
        ]
        back = later[0] if later else None
        ends = [] if back is None else [back.begin]
        for when, lives, ended in losses:
            gone = call.life in lives if ended else (call.life[0], None) not in lives
            if gone and when > call.begin:
                ends.append(when)
                break
        done = back is not None and back.op == "done" and back.result == 1
        found.append(
            Taking(
                model.name(call.invoke.proc),
                call.result,
                call.begin,
                call.end,
                token,
                min(ends, default=None),
                done,
                source=call.rows if back is None else (*call.rows, *back.rows),
            )
        )
    return found
