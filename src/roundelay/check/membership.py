"""M: what nodes may say about the views they install.

A node's path is its installs in order. Regular views follow one another with a transitional view
between them, which holds those that come along; "directly" and "previous" below mean within one
incarnation, as a node that restarts comes from nowhere. M10, on primary views, is in `primacy`.

M2 and M5 reach from one life of a node to the next, but only where the later life still had what
the earlier one had stored: its `recover` row says whether its standing was kept.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from roundelay.check import sentences as say
from roundelay.check.model import Config, Event, Model
from roundelay.check.primary import kept_standing
from roundelay.check.property import Finding, Scope, declare
from roundelay.core.effects import Kind

Identity = tuple[int, int]
"""A view's (seq, rep), whatever its kind."""


@dataclass(slots=True)
class Step:
    """A node enters a regular view."""

    to: Event
    source: Event | None
    """The install of its previous regular view in this incarnation."""
    between: tuple[Event, ...]
    """Its transitional installs since then."""


def _identity(event: Event) -> Identity:
    assert event.cfg is not None
    return event.cfg.seq, event.cfg.rep


def _lives(model: Model) -> Iterator[list[Event]]:
    """The installs of each incarnation of each process."""
    for proc in model.processes:
        life: list[Event] = []
        for event in model.installs[proc]:
            if life and event.row.inc != life[0].row.inc:
                yield life
                life = []
            life.append(event)
        if life:
            yield life


def _steps(model: Model) -> Iterator[Step]:
    for life in _lives(model):
        source: Event | None = None
        between: list[Event] = []
        for event in life:
            if _regular(event):
                yield Step(event, source, tuple(between))
                source, between = event, []
            else:
                between.append(event)


def _regular(event: Event) -> bool:
    return event.cfg is not None and event.cfg.regular


def _installs(model: Model) -> list[Event]:
    return model.by_kind.get(Kind.INSTALL, [])


def _members(event: Event) -> tuple[int, ...]:
    return event.row.members or ()


@declare("M1", "A node that installs a view is a member of it", scope=Scope.NODE)
def self_inclusion(model: Model) -> Finding:
    installs = _installs(model)
    for event in installs:
        if event.proc not in _members(event):
            reason = say.not_in_view(model.name(event.proc), _view(model, event))
            return Finding(len(installs), reason, (event,))
    return Finding(len(installs))


@declare("M2", "A node's views grow, also across its crashes", scope=Scope.NODE)
def local_monotony(model: Model) -> Finding:
    count = 0
    for proc in model.processes:
        recoveries: list[Event] = []
        earlier: Event | None = None
        for later in model.by_proc[proc]:
            if later.kind == Kind.RECOVER:
                recoveries.append(later)
                if not kept_standing(later.row):
                    earlier = None
            if later.kind != Kind.INSTALL:
                continue
            if earlier is None:
                earlier, recoveries = later, []
                continue
            count += 1
            if _identity(earlier) >= _identity(later):
                reason = say.view_goes_back(
                    model.name(proc), model.view(later.cfg), model.view(earlier.cfg)
                )
                return Finding(count, reason, (earlier, *recoveries, later))
            earlier, recoveries = later, []
    return Finding(count)


@declare("M3", "Messages are sent, delivered and stable in a view")
def initial_view(model: Model) -> Finding:
    kinds = (Kind.ORIGINATE, Kind.DELIVER, Kind.STABLE)
    count = 0 if model.static else sum(len(model.by_kind.get(kind, ())) for kind in kinds)
    for event in model.events if count else ():
        if event.kind in kinds and event.cfg is None:
            what = "" if event.message is None else f" for {model.label(event.message)}"
            reason = f"{model.name(event.proc)} has no view yet, but a row `{event.kind}`{what}"
            return Finding(count, reason, (*_no_view(model, event), event))
    return Finding(count)


def _no_view(model: Model, event: Event) -> Iterator[Event]:
    """What shows that there are views, and that the process is in none of them yet."""
    path = model.installs[event.proc]
    yield next((i for i in path if i.at > event.at), _installs(model)[0])
    for other in reversed(model.by_proc[event.proc]):
        if other.kind == Kind.RECOVER and other.at < event.at:
            yield other
            return


@declare("M4", "One identifier names one view")
def one_content(model: Model) -> Finding:
    first: dict[Identity, Event] = {}
    for count, event in enumerate(_installs(model), 1):
        other = first.setdefault(_identity(event), event)
        if _content(other) != _content(event):
            reason = say.two_views(
                model.name(other.proc),
                model.name(event.proc),
                _view(model, other),
                _view(model, event),
            )
            return Finding(count, reason, (other, event))
    return Finding(len(_installs(model)))


def _content(event: Event) -> tuple[bool, tuple[int, ...]]:
    return _regular(event), tuple(sorted(_members(event)))


def _view(model: Model, event: Event) -> str:
    return f"{model.view(event.cfg)}{{{model.names(_members(event))}}}"


@declare("M5", "View numbers survive a crash", scope=Scope.NODE)
def numbers_survive(model: Model) -> Finding:
    count = 0
    for proc in model.processes:
        highest: Event | None = None
        recovery: Event | None = None
        for event in model.by_proc[proc]:
            if event.kind == Kind.RECOVER and not kept_standing(event.row):
                highest = recovery = None
            elif event.kind == Kind.RECOVER and event.row.k0 is not None:
                count += 1
                recovery = event
                if highest is not None and event.row.k0 < _identity(highest)[0]:
                    reason = (
                        f"{model.name(proc)} recovers with view number {event.row.k0}, but it had "
                        f"installed {model.view(highest.cfg)}"
                    )
                    return Finding(count, reason, (highest, event))
            elif event.kind == Kind.INSTALL:
                if recovery is not None and _identity(event)[0] <= (recovery.row.k0 or 0):
                    reason = (
                        f"{model.name(proc)} recovers with view number {recovery.row.k0} and "
                        f"installs {model.view(event.cfg)}, which is no greater"
                    )
                    return Finding(count, reason, (recovery, event))
                recovery = None
                if highest is None or _identity(event) > _identity(highest):
                    highest = event
    return Finding(count)


@declare(
    "M6",
    "Regular and transitional views alternate, and the transitional one fits both",
    scope=Scope.NODE,
)
def alternation(model: Model) -> Finding:
    count = 0
    for life in _lives(model):
        for i, event in enumerate(life):
            before = life[i - 1] if i else None
            if before is None and _regular(event):
                continue
            count += 1
            if reason := _misfit(model, before, event):
                # A transitional view that fits badly is shown between its neighbours.
                start = i - 2 if before is not None and not _regular(before) else i - 1
                return Finding(count, reason, tuple(life[max(start, 0) : i + 1]))
    return Finding(count)


def _misfit(model: Model, before: Event | None, event: Event) -> str:
    who, what = model.name(event.proc), _view(model, event)
    if before is None:
        return f"{who} begins with the transitional view {what}"
    if _regular(before) == _regular(event):
        kind = "regular" if _regular(event) else "transitional"
        return f"{who} installs two {kind} views in a row: {_view(model, before)} and {what}"
    small, large = (before, event) if _regular(event) else (event, before)
    if not set(_members(small)) <= set(_members(large)):
        return f"{who} has {_view(model, small)} next to {_view(model, large)}, which lacks some"
    return ""


@declare("M7", "A transitional view holds exactly those who come along from the old view")
def transitional_exactness(model: Model) -> Finding:
    came: dict[Config, dict[int, Step]] = {}
    moves: list[Step] = []
    for step in _steps(model):
        assert step.to.cfg is not None
        came.setdefault(step.to.cfg, {}).setdefault(step.to.proc, step)
        if step.source is not None and len(step.between) == 1:
            moves.append(step)
    judged: set[tuple[Config | None, Config | None, tuple[int, ...]]] = set()
    for step in moves:
        assert step.source is not None
        assert step.to.cfg is not None
        old, (via,) = step.source.cfg, step.between
        if (case := (old, step.to.cfg, _members(via))) in judged:
            continue
        judged.add(case)
        together = set(_members(via))
        for proc, other in came[step.to.cfg].items():
            comes = other.source is not None and other.source.cfg == old
            if comes == (proc in together):
                continue
            where = model.view(other.source.cfg) if other.source is not None else "nowhere"
            not_ = "" if proc in together else "not "
            reason = (
                f"{model.name(step.to.proc)} goes from {model.view(old)} through "
                f"{_view(model, via)} to {model.view(step.to.cfg)}, and {model.name(proc)}, "
                f"{not_}in it, comes there from {where}"
            )
            events = [step.source, via, step.to, other.to, other.source]
            return Finding(len(moves), reason, tuple(e for e in events if e is not None))
    return Finding(len(moves))


@declare("M8", "Nodes that go from one regular view to the next together go the same way")
def same_way(model: Model) -> Finding:
    first: dict[tuple[Config | None, Config | None], Step] = {}
    pairs = 0
    for step in _steps(model):
        if step.source is None:
            continue
        other = first.setdefault((step.source.cfg, step.to.cfg), step)
        if other is step:
            continue
        pairs += 1
        if _way(other) != _way(step):
            assert other.source is not None
            reason = (
                f"{model.name(other.to.proc)} and {model.name(step.to.proc)} both go from "
                f"{model.view(step.source.cfg)} to {model.view(step.to.cfg)}, one through "
                f"{_through(model, other)}, one through {_through(model, step)}"
            )
            ways = (other.source, *other.between, other.to, step.source, *step.between, step.to)
            return Finding(pairs, reason, ways)
    return Finding(pairs)


def _way(step: Step) -> list[tuple[Config | None, tuple[int, ...]]]:
    return [(event.cfg, tuple(sorted(_members(event)))) for event in step.between]


def _through(model: Model, step: Step) -> str:
    return " and ".join(_view(model, event) for event in step.between) or "nothing"


@declare("M9", "Members of a view who meet in a later one come from the same view")
def same_predecessor(model: Model) -> Finding:
    came: dict[Config | None, list[Step]] = {}
    for step in _steps(model):
        came.setdefault(step.to.cfg, []).append(step)
    count = 0
    for config, steps in came.items():
        sources: dict[Config | None, Step] = {}
        for step in steps:
            if step.source is not None:
                sources.setdefault(step.source.cfg, step)
        for old, step in sources.items():
            assert step.source is not None
            for other in steps:
                if other is step or other.to.proc not in _members(step.source):
                    continue
                count += 1
                if other.source is not None and other.source.cfg == old:
                    continue
                origin = model.view(other.source.cfg) if other.source is not None else "nowhere"
                reason = (
                    f"{model.name(other.to.proc)} was in {_view(model, step.source)} and comes to "
                    f"{model.view(config)} from {origin}, not from there as "
                    f"{model.name(step.to.proc)} does"
                )
                events = [step.source, step.to, other.source, other.to]
                return Finding(count, reason, tuple(e for e in events if e is not None))
    return Finding(count)
