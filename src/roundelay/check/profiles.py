"""Who promises what: the properties that a protocol is held to.

A profile belongs to a protocol, its rules, its resilience F where it has one, and the kind of group
it runs on. On a *static* group an engine is alone, as its paper has it, and is held to what the
paper promises. With *views* the shared membership is below it, so that crashes, partitions and
merges are part of the promise; every engine is then held to the view properties too.

What an engine promises is in its description. What is not listed is not promised: to check it would
be a false alarm. Where a paper's assumptions are narrower than what a network may do, the profile
names its envelope; the repaired rules have none.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from roundelay.core.description import OneOrder, Promises, Properties
from roundelay.group.engines import describe, engine_names


class Standing(StrEnum):
    """Why a property is in a profile. Only an optional one may fail without consequence."""

    PROMISED = "promised"
    DERIVED = "derived"
    """Follows from how the protocol works, though nobody promised it."""
    ASSUMED = "assumed"
    """Of the layer below, or of the environment."""
    OPTIONAL = "optional"


class Promise(NamedTuple):
    """A property in a profile."""

    property: str
    standing: Standing


@dataclass(frozen=True, slots=True)
class Profile:
    """What a run is held to, in the order of reports."""

    name: str
    entries: tuple[Promise, ...]
    envelope: tuple[str, ...] = ()
    """Properties of the environment without which nothing was promised."""
    layer: str = ""
    """The layer of the rows it is about, where a trace has several; empty for the topmost."""
    simulated: tuple[str, ...] = ()
    """Properties that only a trace with a total order of events can show. They are not asked of
    real nodes, which have none."""

    def standing(self, name: str) -> Standing:
        return next(promise.standing for promise in self.entries if promise.property == name)


RULES = ("safe", "paper", "link")
MODES = ("static", "views")

FAMILIES = "TMDOSKNJHLE"
"""First letters of properties, in the order of reports."""

_TRACE = Properties("T1 T2 T3 T4 D1 D2 D11", derived="L7")
"""What every run is held to."""

# M9 is nobody's: a node that restarts, or is cut off alone, rejoins its old companions by a way of
# its own, and transitional views say so.
_VIEWS = Properties("M1 M2 M3 M4 M5 M6 M7 M8 M10 D3 D4e D5 D6 D7 L2 L3")
"""What every engine is held to where there are views."""

_LOG = Properties("J1 J2 J3 J4 J5 J6 J7 J8 J9 J10 J11 J12 H2 H3 H4 L8 L9", optional="H1")
"""What every run with a replicated log is held to, whatever its engine and its policy: who may have
lost something says that it is not able to vote. H1 is optional since it may find no answer; H2
implies it where answers carry an index."""

VIEW_SYNCHRONY = "vs"
"""The layer that ATOP assumes: it has nothing to say without views, and is no engine."""

_OF_VIEW_SYNCHRONY = Promises(
    Properties(derived="M3 D3 D4s D5", assumed="M1 M2 M4 O1 O1r", optional="M9 M10")
)


def protocol_names() -> tuple[str, ...]:
    """Every protocol that has a profile, sorted."""
    return tuple(sorted({*engine_names(), VIEW_SYNCHRONY}))


def profile(
    protocol: str,
    rules: str = "safe",
    resilience: int | None = None,
    mode: str = "static",
    nodes: int | None = None,
    *,
    log: bool = False,
) -> Profile:
    """What `protocol` promises; `resilience` is F, and `nodes` the size of the group. `log` says
    whether the group keeps a replicated log.

    ValueError, for the user, if there is no such protocol, no such rules or no such mode, or if its
    engine is installed and cannot be loaded.
    """
    promises = _promises(protocol)
    _known("rules", rules, RULES)
    _known("mode", mode, MODES)
    safe, views = rules == "safe", mode == "views"
    held = _standings(_TRACE) | _standings(promises.static)
    if views and protocol != VIEW_SYNCHRONY:
        held |= _standings(_VIEWS) | _standings(promises.in_views)
        given_up = _given_up(promises.one_order, resilience or 0, nodes)
        if held.keys() & given_up & {"O5", "O5p"}:
            held |= _standings(Properties("O5w"))
        held = {name: standing for name, standing in held.items() if name not in given_up}
    if promises.resilient and not views and (resilience or not safe):
        held |= _standings(Properties(derived="D8u"))
    if log:
        held |= _standings(_LOG)
    held |= _standings(dict(promises.rules).get(rules, Properties()))
    envelope = tuple(promises.envelope.split()) if not safe and not views else ()
    held |= _standings(Properties(assumed=" ".join(envelope)))
    return Profile(
        name=_title(protocol, rules, resilience, mode, log=log),
        entries=tuple(Promise(name, held[name]) for name in sorted(held, key=place)),
        envelope=envelope,
        layer=VIEW_SYNCHRONY if protocol == VIEW_SYNCHRONY else "",
        simulated=("K3",),
    )


def place(name: str) -> tuple[int, int, str]:
    """Sorts names of properties: by family, number and variant."""
    number = name[1:].rstrip("abcdefghijklmnopqrstuvwxyz")
    return FAMILIES.index(name[0]), int(number), name[1 + len(number) :]


def _promises(protocol: str) -> Promises:
    if protocol == VIEW_SYNCHRONY:
        return _OF_VIEW_SYNCHRONY
    if protocol not in engine_names():
        names = ", ".join(protocol_names())
        raise ValueError(f"there is no protocol {protocol!r}; choose one of {names}")
    return describe(protocol).promises


def _standings(properties: Properties) -> dict[str, Standing]:
    """By property: why it is held. What is promised is promised, whatever else it is."""
    words = {
        Standing.OPTIONAL: properties.optional,
        Standing.ASSUMED: properties.assumed,
        Standing.DERIVED: properties.derived,
        Standing.PROMISED: properties.promised,
    }
    return {name: standing for standing, names in words.items() for name in names.split()}


def _known(what: str, given: str, names: tuple[str, ...]) -> None:
    if given not in names:
        raise ValueError(f"there is no {what} {given!r}; choose one of {', '.join(names)}")


def _given_up(when: OneOrder, resilience: int, nodes: int | None) -> frozenset[str]:
    """What an engine does not promise where there are views, for two processes on different sides
    of a partition may deliver two messages in different order.

    Engines that decide order when they send give up nothing. Nor do those that decide later, if
    nobody delivers what another side may order otherwise: those with a resilience, if F is at least
    half of the group.
    """
    match when:
        case OneOrder.ALWAYS:
            return frozenset()
        case OneOrder.HALF if nodes is not None and resilience >= nodes // 2:
            return frozenset()
        case OneOrder.CONFIRMED:
            return frozenset({"O5", "O5p"})
        case _:
            return frozenset({"O5", "O5p", "O3f"})


def _title(protocol: str, rules: str, resilience: int | None, mode: str, *, log: bool) -> str:
    words = [protocol, rules, mode, *(["log"] if log else [])]
    if resilience is not None:
        words.append(f"F={resilience}")
    return " ".join(words)
