"""D: who delivers what, in which view, and what is owed to whom.

A message that its sender withdrew is owed nothing in the view it was withdrawn from, and when it is
sent again that is another sending: D3, D4 and D6 hold for each sending by itself.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from roundelay.check import sentences as say
from roundelay.check.events import about
from roundelay.check.model import Block, Config, Ending, Event, Message, Model
from roundelay.check.property import Finding, Scope, declare
from roundelay.core.effects import Kind
from roundelay.trace.schema import Row

NOT_QUIET = "the trace does not end quietly, so what is still owed may yet come"


def _deliveries(model: Model) -> list[Event]:
    return model.by_kind.get(Kind.DELIVER, [])


def _delivers(model: Model, event: Event) -> str:
    assert event.message is not None
    return say.delivers(model.name(event.proc), model.label(event.message))


@declare("D1", "What is delivered was sent before")
def integrity(model: Model) -> Finding:
    deliveries = _deliveries(model)
    for event in deliveries:
        if event.message is None or model.origins(event):
            continue
        sent = model.originate(event.message)
        who, what = model.name(event.proc), model.label(event.message)
        reason = say.unsent(who, "delivers", what, later=sent is not None)
        return Finding(len(deliveries), reason, (event,) if sent is None else (event, sent))
    return Finding(len(deliveries))


@declare("D2", "Nobody delivers a message twice", scope=Scope.NODE)
def no_duplication(model: Model) -> Finding:
    deliveries = _deliveries(model)
    first: dict[tuple[int, Message | None], Event] = {}
    for event in deliveries:
        other = first.setdefault((event.proc, event.message), event)
        if other is not event:
            who, what = model.name(event.proc), model.label(about(event))
            reason = say.delivered_twice(who, what, lives=other.row.inc != event.row.inc)
            return Finding(len(deliveries), reason, (other, event))
    return Finding(len(deliveries))


@declare("D3", "All who deliver a message do so in the same view")
def same_view(model: Model) -> Finding:
    shared = 0
    for events in model.delivers.values():
        if len(events) < 2:
            continue
        shared += 1
        first: dict[int | None, Event] = {}
        for event in events:
            origin = _sending(model, event, _in_regular) if model.withdraws else None
            other = first.setdefault(None if origin is None else origin.at, event)
            if other.reg != event.reg:
                reason = say.two_places(
                    model.name(other.proc),
                    model.label(about(other)),
                    model.view(other.reg),
                    model.name(event.proc),
                    model.view(event.reg),
                )
                return Finding(shared, reason, _placed(model, other, event))
    return Finding(shared)


Fits = Callable[[Event, Event], bool]
"""Whether a delivery is in the right view for a sending."""


def _in_same(origin: Event, delivery: Event) -> bool:
    return delivery.cfg == origin.cfg


def _in_regular(origin: Event, delivery: Event) -> bool:
    return delivery.reg == origin.reg


def _not_earlier(origin: Event, delivery: Event) -> bool:
    if origin.cfg is None or delivery.cfg is None:
        return origin.cfg is None
    return origin.cfg[:2] <= delivery.cfg[:2]


def _sending(model: Model, event: Event, fits: Fits) -> Event | None:
    """The sending that a delivery is of: one whose view fits, or else the latest."""
    origins = model.origins(event)
    return next((o for o in origins if fits(o, event)), origins[0] if origins else None)


def _sending_view(model: Model, fits: Fits) -> Finding:
    count = 0
    for event in _deliveries(model):
        origin = _sending(model, event, fits)
        if origin is None:
            continue  # D1 says so.
        count += 1
        if not fits(origin, event):
            reason = (
                f"{_delivers(model, event)} in {model.view(event.cfg)}, but it was sent in "
                f"{model.view(origin.cfg)}"
            )
            return Finding(count, reason, _placed(model, origin, event))
    return Finding(count)


def _placed(model: Model, *events: Event) -> tuple[Event, ...]:
    """The events, and the installs that put each process into its view."""
    shown: list[Event] = []
    for event in events:
        entered: dict[bool, Event] = {}
        for install in model.installs[event.proc]:
            if install.at < event.at and install.row.inc == event.row.inc:
                assert install.cfg is not None
                entered[install.cfg.regular] = install
        if event.cfg is not None and event.cfg.regular:
            entered.pop(False, None)
        if not entered and event.row.inc:
            # In no view because it restarted.
            shown += [e for e in model.by_kind.get(Kind.RECOVER, ()) if _begins(e, event)]
        shown += [*entered.values(), event]
    return tuple(shown)


def _begins(recovery: Event, event: Event) -> bool:
    return (recovery.proc, recovery.row.inc) == (event.proc, event.row.inc)


@declare("D4s", "A message is delivered in the very view it was sent in")
def sending_view_strict(model: Model) -> Finding:
    return _sending_view(model, _in_same)


@declare("D4e", "A message is delivered in the view it was sent in or in its transitional view")
def sending_view_extended(model: Model) -> Finding:
    return _sending_view(model, _in_regular)


@declare("D4t", "A message is not delivered in an earlier view than it was sent in")
def sending_view_late(model: Model) -> Finding:
    return _sending_view(model, _not_earlier)


@declare("D5", "Sender and receiver are members of the view a message is delivered in")
def both_members(model: Model) -> Finding:
    count = 0
    for event in _deliveries(model):
        if event.reg is None or event.message is None:
            continue  # M3 says so.
        count += 1
        members = model.group(event.reg)
        for proc in (event.message.src, event.proc):
            if proc not in members:
                reason = (
                    f"{_delivers(model, event)} in {model.view(event.reg)}"
                    f"{{{model.names(members)}}}, of which {model.name(proc)} is no member"
                )
                return Finding(count, reason, _placed(model, event))
    return Finding(count)


@declare("D6", "A node delivers its own message before it moves on", scope=Scope.NODE)
def self_delivery(model: Model) -> Finding:
    delivered = {
        (event.message, event.block.number)
        for event in _deliveries(model)
        if event.message is not None and event.message.src == event.proc
    }
    count = 0
    for event in model.by_kind.get(Kind.ORIGINATE, ()):
        if event.message is None or event.block.config is None:
            continue
        if event.row.dst is not None and event.proc not in event.row.dst:
            continue  # It did not address itself.
        done = (event.message, event.block.number) in delivered
        if not done and (event.block.ending is not Ending.INSTALL or model.withdrawn(event)):
            continue  # Excused: it crashed, the trace ended, or it took the message back.
        count += 1
        if not done:
            following = _next_regular(model, event)
            reason = (
                f"{model.name(event.proc)} moves on from {model.view(event.reg)} without "
                f"delivering its own {model.label(event.message)}"
            )
            return Finding(count, reason, (*_placed(model, event), *following))
    return Finding(count)


def _next_regular(model: Model, event: Event) -> Iterator[Event]:
    for install in model.installs[event.proc]:
        if install.at > event.at and install.cfg is not None and install.cfg.regular:
            yield install
            return


@dataclass(slots=True)
class Stay:
    """A process in one view, regular or transitional, until it enters the next."""

    entered: Event
    left: Event
    delivered: list[Event]


def _stays(model: Model) -> Iterator[Stay]:
    for proc in model.processes:
        entered: Event | None = None
        delivered: list[Event] = []
        for event in model.by_proc[proc]:
            if event.kind == Kind.DELIVER:
                delivered.append(event)
            elif event.kind == Kind.INSTALL:
                if entered is not None:
                    yield Stay(entered, event, delivered)
                entered, delivered = event, []
            elif event.kind == Kind.RECOVER:
                entered, delivered = None, []


@declare("D7", "Members that move on together delivered the same messages")
def virtual_synchrony(model: Model) -> Finding:
    together: dict[tuple[Config | None, Config | None], list[Stay]] = {}
    for stay in _stays(model):
        together.setdefault((stay.entered.cfg, stay.left.cfg), []).append(stay)
    pairs = 0
    for stays in together.values():
        pairs += len(stays) - 1
        delivered: dict[Message | None, dict[int, tuple[Stay, Event]]] = {}
        for stay in stays if len(stays) > 1 else ():
            for event in stay.delivered:
                delivered.setdefault(event.message, {})[stay.entered.proc] = (stay, event)
        for by in delivered.values():
            if len(by) == len(stays):
                continue
            one, extra = next(iter(by.values()))
            for other in stays:
                proc = other.entered.proc
                if proc not in by and _addressed(model, extra, proc):
                    return _asynchrony(model, pairs, one, other, extra)
    return Finding(pairs)


def _asynchrony(model: Model, pairs: int, one: Stay, other: Stay, extra: Event) -> Finding:
    """`one` delivered `extra` in the view, `other` did not."""
    reason = (
        f"{model.name(one.entered.proc)} and {model.name(other.entered.proc)} move on together "
        f"from {model.view(one.entered.cfg)} to {model.view(one.left.cfg)}, but only "
        f"{_delivers(model, extra)} there"
    )
    return Finding(pairs, reason, (one.entered, extra, one.left, other.entered, other.left))


# What is owed at a quiet end. Processes that share no component with the one it came from are owed
# nothing, and neither are those whose last view is another one.


def _last_blocks(model: Model) -> dict[int, Block]:
    return {proc: blocks[-1] for proc, blocks in model.blocks.items()}


def _ends(model: Model) -> list[Row]:
    return [row for row in model.rows if row.kind == Kind.END]


def _agreement(model: Model, *, uniform: bool) -> Finding:
    if model.delivers and not model.components:
        return Finding(0, unknown=NOT_QUIET)
    last = _last_blocks(model)
    count = 0
    for events in model.delivers.values():
        delivered = {event.proc for event in events}
        for component in model.components:
            source = next((e for e in events if e.proc in component), None)
            if source is None and uniform and len(model.components) == 1:
                source = events[0]
            if source is None:
                continue
            count += 1
            for proc in component:
                if proc in delivered or last[proc].config != source.reg:
                    continue
                if not _addressed(model, source, proc):
                    continue
                reason = (
                    f"{_delivers(model, source)}, {model.name(proc)} is up at the end and never "
                    "does"
                )
                return Finding(count, reason, _owed(model, source, proc))
    return Finding(count)


def _owed(model: Model, source: Event, proc: int) -> tuple[Event | Row, ...]:
    """What shows that `proc` owes a delivery: where it is due from, the last view of both, and
    the quiet end."""
    return (*_placed(model, source), *model.installs[proc][-1:], *_ends(model))


def _addressed(model: Model, delivery: Event, proc: int) -> bool:
    origins = model.origins(delivery)
    dst = origins[0].row.dst if origins else None
    return dst is None or proc in dst


@declare("D8", "If one node that stays up delivers a message, all that stay up do")
def agreement(model: Model) -> Finding:
    return _agreement(model, uniform=False)


@declare("D8u", "If any node delivers a message, even one that fails, all that stay up do")
def uniform_agreement(model: Model) -> Finding:
    return _agreement(model, uniform=True)


@declare("D9", "A message is delivered only where it was addressed to")
def destination_integrity(model: Model) -> Finding:
    count = 0
    for event in _deliveries(model):
        origins = model.origins(event)
        dst = origins[0].row.dst if origins else None
        if dst is None:
            continue
        count += 1
        if event.proc not in dst:
            who, what = model.name(event.proc), model.label(about(event))
            reason = say.not_addressed(who, what, model.names(dst))
            return Finding(count, reason, (origins[0], event))
    return Finding(count)


@declare("D10", "A message is delivered wherever it was addressed to")
def information_preservation(model: Model) -> Finding:
    if model.originates and not model.components:
        return Finding(0, unknown=NOT_QUIET)
    last = _last_blocks(model)
    home = {proc: component for component in model.components for proc in component}
    count = 0
    for event in model.by_kind.get(Kind.ORIGINATE, ()):
        message, component = event.message, home.get(event.proc)
        if message is None or component is None or event.block is not last[event.proc]:
            continue
        if model.withdrawn(event):
            continue
        count += 1
        dst = event.row.dst if event.row.dst is not None else model.group(event.reg)
        delivered = {delivery.proc for delivery in model.delivers.get(message, ())}
        for proc in dst:
            if proc in delivered or proc not in component or last[proc].config != event.reg:
                continue
            reason = (
                f"{model.name(proc)} never delivers {model.label(message)}, which "
                f"{model.name(event.proc)} sent to {model.names(dst)}"
            )
            return Finding(count, reason, _owed(model, event, proc))
    return Finding(count)


@declare("D11", "What is delivered is what was sent, byte for byte")
def content_integrity(model: Model) -> Finding:
    sent: dict[tuple[Message, int], Row] = {}
    other = model.skipped | {"net"}
    rows = [row for row in model.rows if row.digest is not None and row.layer not in other]
    for row in rows:
        if row.kind == Kind.ORIGINATE:
            sent.setdefault(_range(row), row)
    count = 0
    for row in rows:
        origin = sent.get(_range(row)) if row.kind == Kind.DELIVER else None
        if origin is None:
            continue
        count += 1
        if origin.digest != row.digest:
            message, count_ = _range(row)
            what = model.words.messages((*message, count_))
            reason = say.other_bytes(model.name(row.proc), what, model.name(origin.proc))
            return Finding(count, reason, (origin, row))
    return Finding(count)


def _range(row: Row) -> tuple[Message, int]:
    """The messages of a row: a digest is comparable only with one of the same messages."""
    return Message(row.m_src or 0, row.m_inc or 0, row.m_seq or 0), row.count
