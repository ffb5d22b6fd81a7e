"""S: what may be said and done once everybody has a message.

Level 1 of a stable row claims that everybody received the message, level 2 that everybody delivered
it (or, in ST, that everybody knows of level 1). Everybody means the destinations of a message that
has its own, else the members of the view in which the claim was made. A process has a message once
it sent, received or delivered it.
"""

from collections.abc import Callable, Iterable, Mapping

from roundelay.check import sentences as say
from roundelay.check.events import about, owed_by, sending
from roundelay.check.model import Block, Config, Ending, Event, Message, Model
from roundelay.check.property import Finding, Scope, declare
from roundelay.core.effects import Kind
from roundelay.core.ids import Service

Table = Mapping[Message, Mapping[int, Event]]
"""By message and process, the event since which something is so."""


def _level(event: Event) -> int:
    return 1 if event.row.level is None else event.row.level


def _claims(model: Model, level: int) -> list[Event]:
    claims = model.by_kind.get(Kind.STABLE, ())
    return [e for e in claims if e.message is not None and _level(e) == level]


def _all_did(
    model: Model, events: Iterable[Event], table: Table, what: Callable[[Event], str]
) -> Finding:
    """Before each event everybody concerned must have an entry in the table."""
    count = 0
    for event in events:
        count += 1
        had = table.get(about(event), {})
        for proc in owed_by(model, event):
            other = had.get(proc)
            if other is not None and (other is event or model.before(other, event)):
                continue
            when = "never did" if other is None else "did so only later"
            reason = f"{what(event)}, {model.name(proc)} {when}"
            return Finding(count, reason, (event,) if other is None else (event, other))
    return Finding(count)


@declare("S1", "What is claimed stable has been received by all")
def received_by_all(model: Model) -> Finding:
    def what(claim: Event) -> str:
        return say.claims_received(model.name(claim.proc), model.label(about(claim)))

    return _all_did(model, _claims(model, 1), model.holders, what)


@declare("S1d", "What is claimed delivered by all has been delivered by all")
def delivered_by_all(model: Model) -> Finding:
    def what(claim: Event) -> str:
        return say.claims_delivered(model.name(claim.proc), model.label(about(claim)))

    return _all_did(model, _claims(model, 2), _first_by_process(model.delivers), what)


def _first_by_process(events: Mapping[Message, Iterable[Event]]) -> Table:
    table: dict[Message, dict[int, Event]] = {}
    for message, group in events.items():
        first = table.setdefault(message, {})
        for event in group:
            first.setdefault(event.proc, event)
    return table


def _safe_deliveries(model: Model) -> list[Event]:
    return [event for event in model.by_kind.get(Kind.DELIVER, ()) if _safe(model, event)]


def _safe(model: Model, event: Event) -> bool:
    if event.message is None:
        return False
    service = event.row.svc
    if service is None:
        origin = sending(model, event)
        service = None if origin is None else origin.row.svc
    return service == Service.SAFE


@declare("S2", "A safe message is delivered in a view that all its members installed")
def safe_in_installed_view(model: Model) -> Finding:
    entered: dict[tuple[int, Config | None], Event] = {}
    for event in model.by_kind.get(Kind.INSTALL, ()):
        entered.setdefault((event.proc, event.cfg), event)
    count = 0
    for event in _safe_deliveries(model):
        if model.static or event.cfg is None or not event.cfg.regular:
            continue
        count += 1
        for proc in model.group(event.cfg):
            install = entered.get((proc, event.cfg))
            if install is not None and model.before(install, event):
                continue
            when = "has not installed" if install is None else "installs only later"
            reason = (
                f"{model.name(event.proc)} delivers the safe {model.label(about(event))} in "
                f"{model.view(event.cfg)}, which {model.name(proc)} {when}"
            )
            late = () if install is None else (install,)
            return Finding(count, reason, (entered[event.proc, event.cfg], event, *late))
    return Finding(count)


@declare("S3", "A safe message is delivered by all members of the view before they move on")
def safe_obligation(model: Model) -> Finding:
    """Excused are members whose stay in the view ended with a crash or the trace."""
    stays: dict[tuple[int, Config | None], Block] = {}
    for blocks in model.blocks.values():
        for block in blocks:
            stays.setdefault((block.proc, block.config), block)
    delivered = {
        (event.proc, event.message, event.block.config)
        for event in model.by_kind.get(Kind.DELIVER, ())
    }
    count = 0
    seen: set[tuple[Message, Config | None]] = set()
    for event in _safe_deliveries(model):
        if (about(event), event.cfg) in seen:
            continue
        seen.add((about(event), event.cfg))
        for proc in owed_by(model, event):
            stay = stays.get((proc, event.reg))
            if proc not in model.group(event.cfg) or stay is None:
                continue  # It never got there: S2 says so.
            if stay.ending is not Ending.INSTALL:
                continue
            count += 1
            if (proc, event.message, event.reg) not in delivered:
                left = _entered_next(model, stay)
                reason = (
                    f"{model.name(event.proc)} delivers the safe {model.label(about(event))} in "
                    f"{model.view(event.cfg)}, {model.name(proc)} moves on to "
                    f"{model.view(left.cfg)} without it"
                )
                return Finding(count, reason, (event, left))
    return Finding(count)


def _entered_next(model: Model, stay: Block) -> Event:
    """The install that ended a stay."""
    return next(i for i in model.installs[stay.proc] if i.block.number == stay.number + 1)


@declare("S4", "A safe message is delivered when all members have it")
def safe_evidence(model: Model) -> Finding:
    def what(delivery: Event) -> str:
        return say.delivers_safe(model.name(delivery.proc), model.label(about(delivery)))

    deliveries = [event for event in _safe_deliveries(model) if event.cfg is not None]
    return _all_did(model, deliveries, model.holders, what)


@declare("S5", "Stability is claimed in the order of delivery, without holes", scope=Scope.NODE)
def stable_prefix(model: Model) -> Finding:
    count = 0
    for proc in model.processes:
        rank: dict[Message, int] = {}
        delivered: dict[Config | None, list[Event]] = {}
        for event in model.histories[proc]:
            group = delivered.setdefault(event.cfg, [])
            rank[about(event)] = len(group)
            group.append(event)
        home = {about(event): event.cfg for event in model.histories[proc]}
        next_: dict[tuple[Config | None, int], int] = {}
        for event in model.by_proc[proc]:
            if event.kind != Kind.STABLE or event.message not in rank:
                continue
            config, place = home[about(event)], rank[about(event)]
            due = next_.get((config, _level(event)), 0)
            count += 1
            if place > due:
                skipped, own = delivered[config][due], delivered[config][place]
                reason = (
                    f"{model.name(proc)} claims {model.label(about(event))} stable and has not "
                    f"claimed {model.label(about(skipped))}, which it delivered before"
                )
                return Finding(count, reason, (skipped, own, event))
            next_[config, _level(event)] = max(due, place + 1)
    return Finding(count)


@declare("S6", "A message is delivered when F more processes than one have it")
def resilient_delivery(model: Model) -> Finding:
    """In a view of fewer members, all of them; in a transitional view nothing is promised."""
    resilience = model.manifest.resilience if model.manifest is not None else None
    if resilience is None:
        return Finding(0, unknown="the manifest does not tell the resilience F")
    count = 0
    for event in model.by_kind.get(Kind.DELIVER, ()):
        if event.message is None or event.cfg is None or not event.cfg.regular:
            continue
        count += 1
        needed = min(resilience + 1, len(model.group(event.cfg)))
        since = model.holders[event.message]
        having = [p for p, e in since.items() if e is event or model.before(e, event)]
        if len(having) < needed:
            who, what = model.name(event.proc), model.label(event.message)
            reason = say.too_few(who, what, model.names(sorted(having)), resilience, needed)
            return Finding(count, reason, (*(since[proc] for proc in having), event))
    return Finding(count)


@declare("S7", "Each level of acknowledgment rests on the one below, and delivery on the first")
def acknowledgment_levels(model: Model) -> Finding:
    """Deliveries are judged only if the trace tells of levels at all. What the end of a recovery,
    or of a view, delivers need not have reached level 2 there."""
    if not model.by_kind.get(Kind.STABLE):
        return Finding(0)
    first = _claims(model, 1)
    deliveries = [e for e in model.by_kind.get(Kind.DELIVER, ()) if e.message is not None]

    def claim(event: Event) -> str:
        return say.claims_level_1(model.name(event.proc), model.label(about(event)))

    def delivery(event: Event) -> str:
        return say.delivers_on_level_1(model.name(event.proc), model.label(about(event)))

    count = 0
    for finding in (
        received_by_all(model),
        _all_did(model, _claims(model, 2), _by_message(first), claim),
        _all_did(model, deliveries, model.holders, delivery),
    ):
        count += finding.instances
        if finding.reason:
            return Finding(count, finding.reason, finding.witness)
    return Finding(count)


def _by_message(events: Iterable[Event]) -> Table:
    groups: dict[Message, list[Event]] = {}
    for event in events:
        groups.setdefault(about(event), []).append(event)
    return _first_by_process(groups)
