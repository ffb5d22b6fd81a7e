"""L: what must have happened by the time a run is quiet.

Nothing is owed while faults go on, so these properties speak only of traces that end quietly: there
is an end row for each component of live, connected nodes, the faults were lifted before, and
since then at least the time has passed that the manifest allows for everything to settle. L5 alone
is due earlier, at the next view.

What is owed is owed in a component, by all its nodes, for what a node of it sent in its last view
and did not withdraw.
"""

from collections.abc import Collection, Iterator, Mapping

from roundelay.check.events import about
from roundelay.check.model import Config, Ending, Event, Message, Model, read_model
from roundelay.check.property import Finding, declare
from roundelay.core.effects import Kind
from roundelay.trace.schema import LOWER_LAYER, Row

NOT_QUIET = "the trace does not end quietly"
NOT_HEALED = "the faults were not lifted before the end"
TOO_SHORT = "the trace ends sooner after the faults than the manifest's bound"


def unsettled(model: Model) -> str:
    """Why nothing is owed yet; empty if everything is."""
    ends = [row for row in model.rows if row.kind == Kind.END]
    if not model.components or not ends:
        return NOT_QUIET
    if not model.faults:
        return ""
    if model.healed is None:
        return NOT_HEALED
    bound_ns = model.manifest.bound_ns if model.manifest is not None else None
    if bound_ns is not None and ends[0].t_ns - model.healed.t_ns < bound_ns:
        return TOO_SHORT
    return ""


def _end(model: Model, component: tuple[int, ...]) -> Row:
    return next(r for r in model.rows if r.kind == Kind.END and r.members == component)


def _last_sent(model: Model) -> Iterator[tuple[Event, tuple[int, ...]]]:
    """What live nodes sent in their last view, and their component."""
    home = {proc: component for component in model.components for proc in component}
    for event in model.by_kind.get(Kind.ORIGINATE, ()):
        component = home.get(event.proc)
        if event.message is None or component is None:
            continue
        if event.block is model.blocks[event.proc][-1] and not model.withdrawn(event):
            yield event, component


def _owed(model: Model, did: Mapping[Message, Collection[int]], verb: str) -> Finding:
    """What was sent last must have been done with by all it is for."""
    count = 0
    for event, component in _last_sent(model):
        count += 1
        done = did.get(about(event), ())
        for proc in component:
            if proc in done or (event.row.dst is not None and proc not in event.row.dst):
                continue
            reason = (
                f"{model.name(proc)} never {verb} {model.label(about(event))}, which "
                f"{model.name(event.proc)} sent"
            )
            return Finding(count, reason, (event, _end(model, component)))
    return Finding(count)


@declare("L1", "What is sent in the last view is delivered by all who are left")
def delivery(model: Model) -> Finding:
    if reason := unsettled(model):
        return Finding(0, unknown=reason)
    did = {m: {event.proc for event in events} for m, events in model.delivers.items()}
    return _owed(model, did, "delivers")


@declare("L2", "All who are left end in one view of exactly them")
def membership_precision(model: Model) -> Finding:
    if reason := unsettled(model):
        return Finding(0, unknown=reason)
    count = 0
    for component in model.components:
        chosen: Event | None = None
        for proc in component:
            if model.static:
                break
            count += 1
            last = _last_install(model, proc)
            end = _end(model, component)
            if last is None:
                reason = f"{model.name(proc)} ends in no view"
                return Finding(count, reason, (end, *model.by_proc[proc][-1:]))
            config = last.cfg
            assert config is not None
            if not config.regular or sorted(last.row.members or ()) != sorted(component):
                reason = (
                    f"{model.name(proc)} ends in {model.view(config)}"
                    f"{{{model.names(last.row.members or ())}}}, but its component is "
                    f"{{{model.names(component)}}}"
                )
                return Finding(count, reason, (last, end))
            chosen = chosen or last
            if config != chosen.cfg:
                reason = (
                    f"{model.name(chosen.proc)} ends in {model.view(chosen.cfg)}, "
                    f"{model.name(proc)} in {model.view(config)}"
                )
                return Finding(count, reason, (chosen, last, end))
    return Finding(count)


def _last_install(model: Model, proc: int) -> Event | None:
    """The install of the view a live process ends in."""
    last = model.installs[proc][-1:]
    life = model.by_proc[proc][-1].row.inc if model.by_proc[proc] else 0
    return last[0] if last and last[0].row.inc == life else None


@declare("L3", "A node that loses a member of its view installs another view")
def termination(model: Model) -> Finding:
    """A member is lost if it crashed in the view or is in no component with the one that stays."""
    if reason := unsettled(model):
        return Finding(0, unknown=reason)
    crashes = {
        (event.proc, event.reg): event for event in reversed(model.by_kind.get(Kind.CRASH, []))
    }
    count = 0
    for component in model.components:
        for proc in component:
            for install in model.installs[proc]:
                config = install.cfg
                if config is None or not config.regular:
                    continue
                lost = [
                    q for q in model.group(config) if q not in component or (q, config) in crashes
                ]
                if not lost:
                    continue
                count += 1
                if install.block is model.blocks[proc][-1]:
                    crash = crashes.get((lost[0], config))
                    fate = "crashed" if crash else "is gone"
                    reason = (
                        f"{model.name(lost[0])} {fate}, but {model.name(proc)} stays in "
                        f"{model.view(config)}, of which it was a member"
                    )
                    shown: list[Event | Row] = [install, *([crash] if crash else [])]
                    return Finding(count, reason, (*shown, _end(model, component)))
    return Finding(count)


@declare("L4", "What is sent in the last view becomes stable everywhere")
def stability_progress(model: Model) -> Finding:
    """Vacuous for protocols that never claim stability."""
    if reason := unsettled(model):
        return Finding(0, unknown=reason)
    claims: dict[Message, set[int]] = {}
    for event in model.by_kind.get(Kind.STABLE, ()):
        if event.message is not None:
            claims.setdefault(event.message, set()).add(event.proc)
    return _owed(model, claims, "claims the stability of") if claims else Finding(0)


@declare("L5", "What the layer below hands up in a view is delivered before the next view")
def upper_layer_progress(model: Model) -> Finding:
    """By two layers' rows about the same messages; a node that crashes is excused."""
    if not any(row.layer == LOWER_LAYER and row.kind == Kind.DELIVER for row in model.rows):
        return Finding(0)
    below = read_model(model.rows, model.manifest, layer=LOWER_LAYER)
    done: set[tuple[int, Message | None, Config | None]] = set()
    for event in model.by_kind.get(Kind.DELIVER, ()):
        done.add((event.proc, event.message, event.reg))
    count = 0
    for event in below.by_kind.get(Kind.DELIVER, ()):
        if event.message is None or event.block.ending is not Ending.INSTALL:
            continue
        count += 1
        if (event.proc, event.message, event.reg) not in done:
            left = next(
                i for i in below.installs[event.proc] if i.block.number > event.block.number
            )
            reason = (
                f"{model.name(event.proc)} was handed {model.label(event.message)} in "
                f"{model.view(event.reg)} and moves on to {model.view(left.cfg)} without "
                "delivering it"
            )
            return Finding(count, reason, (event, left))
    return Finding(count)


@declare("L6", "Every request is confirmed once by every replica that is left")
def request_progress(model: Model) -> Finding:
    """A request is what was sent, or submitted and never sent."""
    if reason := unsettled(model):
        return Finding(0, unknown=reason)
    confirmed: dict[Message, dict[int, Event]] = {}
    for event in model.by_kind.get(Kind.CONFIRM, ()):
        if event.message is None:
            continue
        first = confirmed.setdefault(event.message, {}).setdefault(event.proc, event)
        if first.key != event.key:
            reason = f"{model.name(event.proc)} confirms {model.label(event.message)} twice"
            return Finding(1, reason, (first, event))
    finding = _owed(model, confirmed, "confirms")
    return finding if finding.reason else _never_sent(model, finding.instances)


def _never_sent(model: Model, count: int) -> Finding:
    """Requests that got stuck before anybody heard of them."""
    home = {proc: component for component in model.components for proc in component}
    for event in model.by_kind.get(Kind.SUBMIT, ()):
        component = home.get(event.proc)
        if event.message is None or component is None or event.message in model.originates:
            continue
        if _goes_again_otherwise(model, event.message):
            continue
        if event.row.inc == model.by_proc[event.proc][-1].row.inc:
            reason = f"{model.name(event.proc)} never sends {model.label(event.message)}"
            return Finding(count + 1, reason, (event, _end(model, component)))
    return Finding(count)


def _goes_again_otherwise(model: Model, message: Message) -> bool:
    """Whether a message was withdrawn and is perhaps of a packet of the log: its entries go again
    under another number."""
    return message in model.withdraws and model.manifest is not None and bool(model.manifest.fsync)


@declare("L7", "What a node that stays up submits is sent and delivered, to itself at least")
def submission(model: Model) -> Finding:
    """Nothing else ties what the application handed over to what was sent. A message for others
    alone has only to be sent."""
    if reason := unsettled(model):
        return Finding(0, unknown=reason)
    home = {proc: component for component in model.components for proc in component}
    delivered = {(e.proc, e.message) for events in model.deliveries.values() for e in events}
    count = 0
    for event in model.by_kind.get(Kind.SUBMIT, ()):
        if event.proc not in home or event.row.inc != model.by_proc[event.proc][-1].row.inc:
            continue
        message = about(event)
        if _goes_again_otherwise(model, message):
            continue
        count += 1
        mine = event.row.dst is None or event.proc in event.row.dst
        if message not in model.originates or (mine and (event.proc, message) not in delivered):
            sent = "delivers" if message in model.originates else "sends"
            reason = f"{model.name(event.proc)} submits {model.label(message)} and never {sent} it"
            return Finding(count, reason, (event, _end(model, home[event.proc])))
    return Finding(count)
