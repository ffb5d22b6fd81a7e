"""O3, O4, O9, O10: what order keys promise.

A key is the view that ordered the message, (k0, k1), and a place in its order, (k2, k3), compared
as a whole. Messages of one packet share k2 and are counted by k3. Rows without a message (an empty
decision, a null acknowledgment, part of a large message) may carry a key as well: they take no part
here, except that the number they used up is not missing.
"""

from collections.abc import Iterable
from itertools import pairwise

from roundelay.check import sentences as say
from roundelay.check.events import about, ring, sending
from roundelay.check.model import Event, Key, Message, Model
from roundelay.check.names import key_within_view
from roundelay.check.property import Finding, Scope, declare
from roundelay.core.effects import Kind


def _keyed(model: Model) -> list[Event]:
    return [event for event in model.by_kind.get(Kind.DELIVER, ()) if _has_both(event)]


def _has_both(event: Event) -> bool:
    return event.key is not None and event.message is not None


def _places(model: Model, event: Event) -> str:
    return say.delivers_at(model.name(event.proc), model.label(about(event)), _key(event))


@declare("O3f", "All deliveries of a message carry the same key")
def one_key_each(model: Model) -> Finding:
    count = 0
    first: dict[Message, Event] = {}
    for event in _keyed(model):
        other = first.setdefault(about(event), event)
        if other is event:
            continue
        count += 1
        if other.key != event.key:
            rings = _ring(model, other), _ring(model, event)
            reason = say.two_keys(_places(model, other), _places(model, event), *rings)
            return Finding(count, reason, (other, event))
    return Finding(count)


def _ring(model: Model, event: Event) -> str:
    seq, rep = ring(event)
    return f"{seq}.{model.name(rep)}"


@declare("O3i", "No key is carried by two messages")
def one_message_each(model: Model) -> Finding:
    first: dict[Key, Event] = {}
    for event in _keyed(model):
        assert event.key is not None
        other = first.setdefault(event.key, event)
        if other.message != event.message:
            reason = say.one_key_for_two(_places(model, other), _places(model, event))
            return Finding(len(first), reason, (other, event))
    return Finding(len(first))


@declare("O4", "Every node delivers in the order of the keys", scope=Scope.NODE)
def in_key_order(model: Model) -> Finding:
    count = 0
    for history in model.histories.values():
        for one, next_ in pairwise(event for event in history if event.key is not None):
            assert one.key is not None
            assert next_.key is not None
            count += 1
            if one.key >= next_.key:
                before = model.label(about(one))
                reason = say.key_goes_back(_places(model, next_), before, _key(one))
                return Finding(count, reason, (one, next_))
    return Finding(count)


def _key(event: Event) -> str:
    assert event.key is not None
    return key_within_view(event.key)


def certified(model: Model) -> bool:
    """Whether the keys alone prove that all nodes follow one order.

    They do if every delivery has one and O3f, O3i and O4 hold: then every history goes upwards in
    the order of the keys. If not, nothing is proved either way.
    """
    if not all(event.key is not None for history in model.histories.values() for event in history):
        return False
    checks = (one_key_each, one_message_each, in_key_order)
    return not any(check(model).reason for check in checks)


@declare("O9", "Keys respect causality")
def keys_respect_causality(model: Model) -> Finding:
    """A new message has a greater key than all its sender has delivered and sent in this life."""
    final = _final_keys(model)
    count = 0
    for proc in model.processes:
        highest: tuple[Key, Event] | None = None
        life = 0
        for event in model.by_proc[proc]:
            if event.row.inc != life:
                highest, life = None, event.row.inc
            if event.kind not in (Kind.ORIGINATE, Kind.DELIVER) or event.message is None:
                continue
            known = final.get(event.message)
            if known is None or known.key is None:
                continue
            if event.kind == Kind.ORIGINATE:
                if sending(model, known) is not event:
                    continue  # Withdrawn; its key belongs to a later sending.
                if highest is not None:
                    count += 1
                    if known.key <= highest[0]:
                        return _acausal(model, count, highest[1], event, final)
            if highest is None or known.key > highest[0]:
                highest = known.key, event
    return Finding(count)


def _final_keys(model: Model) -> dict[Message, Event]:
    """Of each message, the first delivery that tells its key."""
    final: dict[Message, Event] = {}
    for event in _keyed(model):
        final.setdefault(about(event), event)
    return final


def _acausal(
    model: Model, count: int, cause: Event, origin: Event, final: dict[Message, Event]
) -> Finding:
    low, high = final[about(origin)], final[about(cause)]
    verb = "delivered" if cause.kind == Kind.DELIVER else "sent"
    reason = (
        f"{model.name(origin.proc)} sends {model.label(about(origin))} after it {verb} "
        f"{model.label(about(cause))}, but the keys are {_key(low)} and {_key(high)}"
    )
    # Its own delivery tells the key, if it has the same one.
    telling = cause if cause.key == high.key else high
    return Finding(count, reason, (cause, telling, origin, low))


@declare("O10", "Keys leave no gap within a regular view")
def contiguous_keys(model: Model) -> Finding:
    """Over confirmations, where the protocol has them, else over deliveries.

    A transitional view may leave gaps: there, messages of nodes that are gone and that follow a
    loss are dropped.
    """
    empty = {event.key[:3] for event in model.events if event.key and event.message is None}
    count = 0
    for proc in model.processes:
        previous: Event | None = None
        for event in _numbered(model, proc):
            if previous is not None and event.cfg == previous.cfg and ring(event) == ring(previous):
                count += 1
                if missing := _gap(previous, event, empty):
                    return Finding(count, _jump(model, previous, event, missing), (previous, event))
            previous = event
    return Finding(count)


def _numbered(model: Model, proc: int) -> Iterable[Event]:
    """What a process did in regular views that has a number, in order."""
    if Kind.CONFIRM in model.by_kind:
        confirmed = (event for event in model.by_proc[proc] if event.kind == Kind.CONFIRM)
        events = list({(event.key, event.message): event for event in confirmed}.values())
    else:
        events = model.histories[proc]
    return (e for e in events if e.key is not None and e.cfg is not None and e.cfg.regular)


def _gap(one: Event, next_: Event, empty: set[tuple[int, int, int]]) -> str:
    """What is wrong between two keys that follow one another; nothing if they are contiguous."""
    assert one.key is not None
    assert next_.key is not None
    if next_.key <= one.key:
        return "not upwards"
    for number in range(one.key[2] + 1, next_.key[2]):
        if (*ring(one), number) not in empty:
            return f"{number} is missing"
    return ""


def _jump(model: Model, one: Event, next_: Event, missing: str) -> str:
    verb = "confirms" if next_.kind == Kind.CONFIRM else "delivers"
    where = "" if model.static else f" in {model.view(next_.cfg)}"
    return (
        f"{model.name(next_.proc)} {verb} {_key(next_)} right after {_key(one)}{where}: {missing}"
    )
