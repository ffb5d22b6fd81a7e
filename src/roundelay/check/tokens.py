"""K and N: who may give out order keys, and when a decision is final.

A ring is the view in which a key counts, the first two parts of the key. Order rows without a
message are empty decisions and null acknowledgments: the former use up a number like any other
decision, the latter repeat one, and neither assigns a key to anything.
"""

from bisect import bisect_left
from collections import Counter

from roundelay.check import sentences as say
from roundelay.check.events import about, ring
from roundelay.check.model import Event, Key, Message, Model
from roundelay.check.names import key_within_view
from roundelay.check.property import Finding, Scope, declare
from roundelay.core.effects import Kind

Ring = tuple[int, int]

NO_TOTAL_ORDER = "the trace has no total order, so it cannot tell what happened at the same time"


def _orders(model: Model) -> list[Event]:
    """Assignments of keys to messages."""
    return [e for e in model.by_kind.get(Kind.ORDER, ()) if e.key and e.message is not None]


def _key(event: Event) -> Key:
    assert event.key is not None
    return event.key


def _assigns(model: Model, event: Event) -> str:
    return say.assigns(
        model.name(event.proc), key_within_view(_key(event)), model.label(about(event))
    )


@declare("K1", "A key is assigned once in a ring")
def one_assigner(model: Model) -> Finding:
    """That its assigner says so again is no harm."""
    first: dict[Key, Event] = {}
    for event in _orders(model):
        other = first.setdefault(_key(event), event)
        if (other.proc, other.message) != (event.proc, event.message):
            reason = f"{_assigns(model, other)}, {_assigns(model, event)}"
            return Finding(len(first), reason, (other, event))
    return Finding(len(first))


@declare("K2", "A message is assigned one key")
def one_key(model: Model) -> Finding:
    """Another one only if it was sent again, in another ring."""
    first: dict[Message, dict[Ring, Event]] = {}
    for event in _orders(model):
        rings = first.setdefault(about(event), {})
        other = rings.setdefault(ring(event), event)
        if other is event and len(model.originates.get(about(event), ())) < 2:
            other = next(iter(rings.values()))
        if other.key != event.key:
            reason = f"{_assigns(model, other)}, {_assigns(model, event)}"
            return Finding(len(first), reason, (other, event))
    return Finding(len(first))


@declare("K3", "At most one node of a ring holds its token")
def token_exclusion(model: Model) -> Finding:
    """A node that crashes or installs a view holds nothing any more."""
    tokens = [event for event in model.by_kind.get(Kind.TOKEN, ()) if _acquires(event)]
    if tokens and not model.total:
        return Finding(0, unknown=NO_TOTAL_ORDER)
    holders: dict[object, Event] = {}
    rings: Counter[object] = Counter()
    count = 0
    for event in model.events:
        if event.kind in (Kind.CRASH, Kind.INSTALL, Kind.RECOVER):
            held = [ring_ for ring_, holder in holders.items() if holder.proc == event.proc]
        elif event.kind == Kind.TOKEN and not _acquires(event):
            holder = holders.get(_token(event))
            held = [_token(event)] if holder is not None and holder.proc == event.proc else []
        else:
            held = []
        for ring_ in held:
            del holders[ring_]
        if event.kind != Kind.TOKEN or not _acquires(event):
            continue
        rings[_token(event)] += 1
        count += rings[_token(event)] > 1
        holder = holders.setdefault(_token(event), event)
        if holder.proc != event.proc:
            reason = say.two_holders(model.name(event.proc), model.name(holder.proc))
            return Finding(count, reason, (holder, event))
    return Finding(count)


def _acquires(event: Event) -> bool:
    return event.row.tag == "acquire"


def _token(event: Event) -> object:
    """The ring of a token: as its row has it, or else the view its holder is in."""
    return (event.row.k0, event.row.k1) if event.row.k0 is not None else event.cfg


@declare("K4", "A node that assigns a key has every message with a smaller one")
def caught_up(model: Model) -> Finding:
    orders = _orders(model)
    first: dict[Key, Event] = {}
    for event in orders:
        first.setdefault(_key(event), event)
    line: dict[Ring, list[Key]] = {}
    for key in sorted(first):
        line.setdefault(key[:2], []).append(key)
    reached: Counter[tuple[int, Ring]] = Counter()
    count = 0
    for event in orders:
        keys = line[ring(event)]
        place = reached[event.proc, ring(event)]
        count += keys[0] < _key(event)
        while place < len(keys) and keys[place] < _key(event):
            smaller = first[keys[place]]
            had = model.holders.get(about(smaller), {}).get(event.proc)
            if had is None or had.at > event.at:
                reason = (
                    f"{_assigns(model, event)} and does not have {model.label(about(smaller))}, "
                    f"which is {key_within_view(_key(smaller))}"
                )
                return Finding(count, reason, (smaller, event, *([had] if had else [])))
            place += 1
        reached[event.proc, ring(event)] = place
    return Finding(count)


def _confirms(model: Model) -> list[Event]:
    return [event for event in model.by_kind.get(Kind.CONFIRM, ()) if event.key]


def _confirmation(model: Model, event: Event) -> str:
    what = "nothing" if event.message is None else model.label(event.message)
    return f"{model.name(event.proc)} confirms {what} as {key_within_view(_key(event))}"


@declare(
    "N1", "A replica confirms one request per number and one number per request", scope=Scope.NODE
)
def local_one_to_one(model: Model) -> Finding:
    confirms = _confirms(model)
    by_number: dict[tuple[int, Key], Event] = {}
    by_request: dict[tuple[int, Message], Event] = {}
    for event in confirms:
        other = by_number.setdefault((event.proc, _key(event)), event)
        if other.message == event.message and event.message is not None:
            other = by_request.setdefault((event.proc, event.message), event)
        if (other.message, other.key) != (event.message, event.key):
            reason = f"{_confirmation(model, other)}, {_confirmation(model, event)}"
            return Finding(len(confirms), reason, (other, event))
    return Finding(len(confirms))


@declare("N2", "Replicas that confirm a number confirm the same request")
def confirmations_agree(model: Model) -> Finding:
    first: dict[Key, Event] = {}
    count = 0
    for event in _confirms(model):
        other = first.setdefault(_key(event), event)
        if other.proc == event.proc:
            continue  # N1 watches one replica.
        count += 1
        if other.message != event.message:
            reason = f"{_confirmation(model, other)}, {_confirmation(model, event)}"
            return Finding(count, reason, (other, event))
    return Finding(count)


@declare("N3", "What is confirmed was decided")
def confirmed_was_decided(model: Model) -> Finding:
    decided: dict[tuple[Message, Key], list[Event]] = {}
    for event in _orders(model):
        decided.setdefault((about(event), _key(event)), []).append(event)
    count = 0
    for event in _confirms(model):
        if event.message is None:
            continue
        count += 1
        orders = decided.get((event.message, _key(event)), [])
        if not any(model.before(order, event) for order in orders):
            when = "before anybody decided so" if orders else "which nobody decided"
            reason = f"{_confirmation(model, event)}, {when}"
            return Finding(count, reason, (event, *orders[:1]))
    return Finding(count)


@declare("N4", "A number is confirmed when a later decision exists")
def forward_evidence(model: Model) -> Finding:
    """By whomever: the trace does not tell who has seen a decision."""
    climbs: dict[tuple[int, Ring], list[Event]] = {}
    """Decisions of each process that are higher than all its earlier ones."""
    for event in model.by_kind.get(Kind.ORDER, ()):
        if event.key is not None:
            climb = climbs.setdefault((event.proc, ring(event)), [])
            if not climb or _number(climb[-1]) < _number(event):
                climb.append(event)
    confirms = _confirms(model)
    for event in confirms:
        later: list[Event] = []
        for proc in model.processes:
            climb = climbs.get((proc, ring(event)), [])
            place = bisect_left(climb, _number(event) + 1, key=_number)
            later += climb[place : place + 1]
        if not any(model.before(order, event) for order in later):
            reason = (
                f"{_confirmation(model, event)} before there is a decision "
                f"{_number(event) + 1} or higher"
            )
            return Finding(len(confirms), reason, (event,))
    return Finding(len(confirms))


def _number(event: Event) -> int:
    return _key(event)[2]
