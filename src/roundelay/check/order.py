"""O5, O6, O8, O11: do all nodes deliver in one order.

Strong total order is the absence of circles in what all nodes together delivered, failed nodes and
those cut off included; comparing nodes in pairs finds most circles, not all. Two quick proofs come
first, because most runs allow them: keys that every history climbs, and histories that are all
beginnings of one sequence. Only a run that neither proof covers is searched for circles.

Where every message was delivered under one regular view and everybody goes upwards through the
views, no circle leaves a view. Then each is searched by itself.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from roundelay.check import sentences as say
from roundelay.check.acyclicity import Step, find_cycle, find_opposed
from roundelay.check.events import about, sending
from roundelay.check.keys import certified
from roundelay.check.model import STATIC, Config, Event, Message, Model
from roundelay.check.property import Finding, declare
from roundelay.core.effects import Kind
from roundelay.trace.schema import Row

Lines = Sequence[Sequence[Event]]
"""What each of several nodes did, in its order."""


def circle(
    model: Model, count: int, lines: Lines, item: Callable[[Event], Hashable] = about
) -> Finding:
    """A finding about lines of events that must follow one order of their items."""
    cycle = find_cycle([[item(event) for event in line] for line in lines])
    return _contradiction(model, count, lines, cycle)


def _contradiction(model: Model, count: int, lines: Lines, cycle: list[Step] | None) -> Finding:
    if cycle is None:
        return Finding(count)
    arcs = [(lines[step.line][step.first], lines[step.line][step.then]) for step in cycle]
    parts = [
        say.in_order(model.name(one.proc), _verb(one), _item(model, one), _item(model, then))
        for one, then in arcs
    ]
    return Finding(count, ", ".join(parts), tuple(event for arc in arcs for event in arc))


_VERBS = {Kind.DELIVER: "delivers", Kind.INSTALL: "installs", Kind.RECEIVE: "receives"}


def _verb(event: Event) -> str:
    return _VERBS[Kind(event.kind)]


def _item(model: Model, event: Event) -> str:
    return model.view(event.cfg) if event.kind == Kind.INSTALL else model.label(about(event))


def shared(lines: Iterable[Iterable[Hashable]]) -> int:
    """Items that two lines or more have, if they are enough for a circle, which takes two."""
    count = _common(lines)
    return count if count > 1 else 0


def _common(lines: Iterable[Iterable[Hashable]]) -> int:
    times = Counter(item for line in lines for item in dict.fromkeys(line))
    return sum(1 for n in times.values() if n > 1)


def _shared_pairs(lines: Sequence[Sequence[Hashable]]) -> int:
    """How often two lines have two items in common, counting neighbours only."""
    owners: dict[Hashable, tuple[int, ...]] = {}
    for number, line in enumerate(lines):
        for item in line:
            owners[item] = (*owners.get(item, ()), number)
    pairs: Counter[tuple[int, int]] = Counter()
    for group, times in Counter(owners.values()).items():
        for pair in combinations(group, 2):
            pairs[pair] += times
    return sum(times - 1 for times in pairs.values())


def _messages(lines: Lines) -> list[list[Message]]:
    return [[about(event) for event in line] for line in lines]


def by_ring(model: Model) -> list[Lines]:
    """All histories, cut at the views where no circle can cross the cut; else in one piece."""
    histories = [model.histories[proc] for proc in model.processes]
    home: dict[Message, Config | None] = {}
    rings: dict[Config, list[list[Event]]] = {}
    for history in histories:
        current: Config | None = None
        for event in history:
            if event.reg is None or home.setdefault(about(event), event.reg) != event.reg:
                return [histories]
            if event.reg != current:
                if current is not None and current[:2] >= event.reg[:2]:
                    return [histories]
                current = event.reg
                rings.setdefault(current, []).append([])
            rings[current][-1].append(event)
    return [rings[ring] for ring in sorted(rings)]


@declare("O5p", "No two nodes deliver two messages in opposite order")
def pairwise_order(model: Model) -> Finding:
    lines = [model.histories[proc] for proc in model.processes]
    messages = _messages(lines)
    count = _shared_pairs(messages)
    if certified(model):
        return Finding(count)
    return _contradiction(model, count, lines, find_opposed(messages))


@declare("O5", "All nodes deliver in one order")
def total_order(model: Model) -> Finding:
    count = shared(_messages([model.histories[proc] for proc in model.processes]))
    if certified(model):
        return Finding(count)
    for lines in by_ring(model):
        finding = circle(model, count, lines)
        if finding.reason:
            return finding
    return Finding(count)


@declare("O5w", "Nodes that move on together delivered in one order")
def weak_total_order(model: Model) -> Finding:
    """Those that share a component at a quiet end count as moving on together as well."""
    groups = list(_together(model).values())
    count = sum(shared(_messages([stay.delivered for stay in stays])) for stays in groups)
    if certified(model):
        return Finding(count)
    for stays in groups:
        finding = circle(model, count, [stay.delivered for stay in stays])
        if finding.reason:
            shown = [e for stay in stays if stay.seen_in(finding.witness) for e in stay.bounds]
            return replace(finding, witness=(*finding.witness, *shown))
    return Finding(count)


@dataclass(slots=True)
class _Stay:
    """A process in one view."""

    bounds: list[Event | Row]
    """The install that began it, if any, and what ended it."""
    delivered: list[Event]

    def seen_in(self, witness: Iterable[Event | Row]) -> bool:
        return any(event in self.delivered for event in witness)


def _together(model: Model) -> Mapping[tuple[Hashable, Hashable], list[_Stay]]:
    """What processes delivered in a view, by that view and the one they entered next."""
    ends = {proc: row for row in model.rows if row.kind == Kind.END for proc in row.members or ()}
    groups: dict[tuple[Hashable, Hashable], list[_Stay]] = {}
    for proc in model.processes:
        fresh = set(model.histories[proc])
        stay = _Stay([], [])
        left: Config | None = STATIC if model.static else None
        for event in model.by_proc[proc]:
            if event in fresh:
                stay.delivered.append(event)
            elif event.kind == Kind.INSTALL:
                if stay.delivered:
                    stay.bounds.append(event)
                    groups.setdefault((left, event.cfg), []).append(stay)
                stay = _Stay([event], [])
            elif event.kind == Kind.RECOVER:
                stay = _Stay([event], [])
            left = event.cfg
        if stay.delivered and proc in ends and proc not in model.crashed:
            stay.bounds.append(ends[proc])
            groups.setdefault((left, ends[proc]), []).append(stay)
    return groups


@declare("O6", "Within a view, what nodes delivered are beginnings of one sequence")
def agreed_order(model: Model) -> Finding:
    """In a transitional view this binds its members only. So a position, which is a view and an
    index in it, names one message."""
    sequences: dict[Config, list[Event]] = {}
    reached: Counter[tuple[int, Config]] = Counter()
    count = 0
    for event in sorted(_fresh(model), key=lambda event: event.at):
        config = event.cfg
        if config is None or not (config.regular or event.proc in model.group(config)):
            continue
        sequence = sequences.setdefault(config, [])
        place = reached[event.proc, config]
        reached[event.proc, config] = place + 1
        if place == len(sequence):
            sequence.append(event)
            continue
        count += 1
        other = sequence[place]
        if other.message != event.message:
            reason = say.two_at_one_index(
                place + 1,
                "" if model.static else model.view(config),
                model.label(about(other)),
                model.name(other.proc),
                model.label(about(event)),
                model.name(event.proc),
            )
            return Finding(count, reason, (other, event))
    return Finding(count)


def _fresh(model: Model) -> Iterable[Event]:
    """All deliveries but repeated ones."""
    return (event for history in model.histories.values() for event in history)


@declare("O8", "All nodes see messages and changes of view in one order")
def order_with_views(model: Model) -> Finding:
    lines: list[list[Event]] = []
    for proc in model.processes:
        seen = {*model.histories[proc], *model.installs[proc]}
        lines.append([event for event in model.by_proc[proc] if event in seen])
    items = [[_node(event) for event in line] for line in lines]
    messages = _common(_messages(list(model.histories.values())))
    views = _common([[event.cfg for event in path] for path in model.installs.values()])
    count = messages + views if messages and views else 0
    return _contradiction(model, count, lines, find_cycle(items))


def _node(event: Event) -> Hashable:
    return ("view", event.cfg) if event.kind == Kind.INSTALL else event.message


@declare("O11", "What a node sends is accepted only by nodes that share its past")
def no_contamination(model: Model) -> Finding:
    """The past is what was delivered so far in the regular view.

    Every past gets a number by its last message and the number of the past before that one, so
    that two pasts are equal if and only if their numbers are.
    """
    numbers: dict[tuple[int, Message], int] = {}
    pasts: dict[tuple[int, Config], list[int]] = {}
    delivered: dict[tuple[int, Config], list[Event]] = {}
    sent: dict[Event, int] = {}
    accepted: list[tuple[Event, int]] = []
    """Deliveries in regular views, with the length of the past they met."""
    for proc in model.processes:
        fresh = {event.at for event in model.histories[proc]}
        for event in model.by_proc[proc]:
            if event.cfg is None or not event.cfg.regular or event.message is None:
                continue
            own = (proc, event.cfg)
            past = pasts.setdefault(own, [0])
            if event.kind == Kind.ORIGINATE:
                sent[event] = len(past) - 1
            elif event.kind == Kind.DELIVER and event.at in fresh:
                accepted.append((event, len(past) - 1))
                past.append(numbers.setdefault((past[-1], event.message), len(numbers) + 1))
                delivered.setdefault(own, []).append(event)
    count = 0
    correct = set(model.correct)
    for event, length in accepted:
        origin = sending(model, event)
        if origin is None or origin.cfg != event.cfg or not sent.get(origin):
            continue
        if event.proc not in correct or event.proc == origin.proc:
            continue
        assert event.cfg is not None
        count += 1
        needed = sent[origin]
        theirs, ours = (origin.proc, event.cfg), (event.proc, event.cfg)
        if needed > length or pasts[ours][needed] != pasts[theirs][needed]:
            before = delivered.get(ours, [])[:length]
            return _contaminated(model, count, delivered[theirs][:needed], origin, before, event)
    return Finding(count)


def _contaminated(
    model: Model,
    count: int,
    theirs: list[Event],
    origin: Event,
    ours: list[Event],
    event: Event,
) -> Finding:
    place = next(
        (i for i, (a, b) in enumerate(zip(theirs, ours, strict=False)) if a.message != b.message),
        len(ours),
    )
    missed = theirs[place]
    sender = model.name(origin.proc)
    instead = ours[place] if place < len(ours) else None
    if instead is None or missed.message not in {other.message for other in ours}:
        instead = None
        fault = f"without {model.label(about(missed))}, which {sender} had delivered"
    else:
        fault = (
            f"but delivered {model.label(about(instead))} where {sender} had delivered "
            f"{model.label(about(missed))}"
        )
    reason = f"{model.name(event.proc)} delivers {model.label(about(event))} of {sender} {fault}"
    return Finding(count, reason, tuple(e for e in (missed, origin, instead, event) if e))
