"""Who promises what: the properties that a protocol is held to.

A profile belongs to a protocol, its rules, its resilience F where it has one, and the kind of group
it runs on. On a *static* group an engine is alone, as its paper has it, and is held to what the
paper promises. With *views* the shared membership is below it, so that crashes, partitions and
merges are part of the promise; every engine is then held to the view properties too.

What is not listed is not promised: to check it would be a false alarm. Where a paper's assumptions
are narrower than what a network may do, the profile names its envelope; the repaired rules have
none.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class Standing(StrEnum):
    """Why a property is in a profile. Only an optional one may fail without consequence."""

    PROMISED = "promised"
    DERIVED = "derived"
    """Follows from how the protocol works, though nobody promised it."""
    ASSUMED = "assumed"
    """Of the layer below, or of the environment."""
    OPTIONAL = "optional"


class Entry(NamedTuple):
    """A property in a profile."""

    property: str
    standing: Standing


@dataclass(frozen=True, slots=True)
class Profile:
    """What a run is held to, in the order of reports."""

    name: str
    entries: tuple[Entry, ...]
    envelope: tuple[str, ...] = ()
    """Properties of the environment without which nothing was promised."""
    layer: str = ""
    """The layer of the rows it is about, where a trace has several; empty for the topmost."""
    simulated: tuple[str, ...] = ()
    """Properties that only a trace with a total order of events can show. They are not asked of
    real nodes, which have none."""

    def standing(self, name: str) -> Standing:
        return next(e.standing for e in self.entries if e.property == name)


ENGINES = ("totem", "dtp", "cm", "pinwheel", "atop", "allack", "causal", "fifo", "fc", "st")
PROTOCOLS = (*ENGINES, "vs", "template")
"""The engines, the view-synchronous layer that ATOP assumes, and the template for new engines."""
RULES = ("safe", "paper", "link")
MODES = ("static", "views")

FAMILIES = "TMDOSKNLE"
"""First letters of properties, in the order of reports."""

_Standings = dict[str, Standing]


def _held(promised: str, derived: str = "", assumed: str = "", optional: str = "") -> _Standings:
    words = {
        Standing.PROMISED: promised,
        Standing.DERIVED: derived,
        Standing.ASSUMED: assumed,
        Standing.OPTIONAL: optional,
    }
    return {name: standing for standing, names in words.items() for name in names.split()}


_TRACE = _held("T1 T2 T3 T4 D1 D2 D11", "L7")
"""What every run is held to."""

_TOKEN_RING = _held(
    "O3f O3i O4 O5 O6 O10 S1 S1d S4 S6 K1 K2 K4 L1 L4",
    "D6 D8 O1 O1r O2 O2r O5p O9 O11 K3",
)
"""CM, Pinwheel and DTP: the token's holder numbers what was sent before. Safe messages are safe
whatever F is; with F = n - 1 all are treated like that."""

_ALONE: dict[str, _Standings] = {
    "totem": _held(
        "O2 O2r O3f O3i O4 O5 O6 O9 O10 S1 S3 S4 S5 K1 K2 L1 L4",
        "O1 O1r O5p O11 K3",
    ),
    "dtp": _TOKEN_RING | _held("D8"),
    "cm": _TOKEN_RING,
    "pinwheel": _TOKEN_RING,
    "atop": _held("O1 O1r O2 O3f O3i O4 O5 O9 L5", "O5p L1", "E5"),
    "allack": _held("O1 O1r O2 O3f O3i O4 O5 O9 L5", "O5p L1", "E5"),
    "causal": _held("O1r O2r L1", "D8 O1 O2"),
    "fifo": _held("O1r S1 S3 S4 L1 L4", "D8 O1"),
    "fc": _held("D8 O3f O3i O4 O5 O6 O10 N1 N2 N3 L6", "D6 O5p O11"),
    "st": _held("D8 D9 D10 O1 O1r O5 S1 S7 L1 L4", "D6 O5p"),
    "template": _held("D8 O1 O5 O6 L1", "O3f O3i O4 O5p O10"),
    "vs": _held("", "M3 D3 D4s D5", "M1 M2 M4 O1 O1r", "M9 M10"),
}
"""On a static group. The view-synchronous layer has nothing to say without views."""

# M9 is nobody's: a node that restarts, or is cut off alone, rejoins its old companions by a way of
# its own, and transitional views say so.
_VIEWS = _held("M1 M2 M3 M4 M5 M6 M7 M8 M10 D3 D4e D5 D6 D7 L2 L3")
"""What every engine is held to where there are views."""

_IN_VIEWS: dict[str, _Standings] = {
    "totem": _held("O8 S2", assumed="E6"),
    "dtp": _held("S2"),
    "cm": _held("S2"),
    "pinwheel": _held("S2"),
    "fifo": _held("S2"),
    "atop": _held("D4t", "O8"),
    "allack": _held("D4t", "O8"),
}
"""What an engine adds to that."""

_WITH_RESILIENCE = ("dtp", "cm", "pinwheel")

_ENVELOPES = {
    "dtp": ("E3",),
    "cm": ("E3",),
    "pinwheel": ("E3",),
    "fc": ("E2",),
    "st": ("E1", "E4"),
}
"""What the papers assume of a static group."""


def profile(
    protocol: str,
    rules: str = "safe",
    resilience: int | None = None,
    mode: str = "static",
    nodes: int | None = None,
) -> Profile:
    """What `protocol` promises; `resilience` is F, and `nodes` the size of the group.

    ValueError, for the user, if there is no such protocol, no such rules or no such mode.
    """
    _known("protocol", protocol, PROTOCOLS)
    _known("rules", rules, RULES)
    _known("mode", mode, MODES)
    safe, views = rules == "safe", mode == "views"
    held = _TRACE | _ALONE[protocol]
    if views and protocol != "vs":
        held = held | _VIEWS | _IN_VIEWS.get(protocol, {})
        if not _one_order_everywhere(protocol, safe, resilience or 0, nodes):
            # Sides of a partition may order one message differently: who moves on together agrees.
            held = {name: s for name, s in held.items() if name not in ("O5", "O5p", "O3f")}
            held |= _held("O5w")
    if protocol in _WITH_RESILIENCE and not views and (resilience or not safe):
        held |= _held("", "D8u")
    if protocol == "fc":
        held |= _held("D8u") if safe else _held("N4")
    envelope = _ENVELOPES.get(protocol, ()) if not safe and not views else ()
    held |= _held("", assumed=" ".join(envelope))
    return Profile(
        name=_title(protocol, rules, resilience, mode),
        entries=tuple(Entry(name, held[name]) for name in sorted(held, key=place)),
        envelope=envelope,
        layer="vs" if protocol == "vs" else "",
        simulated=("K3",),
    )


def place(name: str) -> tuple[int, int, str]:
    """Sorts names of properties: by family, number and variant."""
    number = name[1:].rstrip("abcdefghijklmnopqrstuvwxyz")
    return FAMILIES.index(name[0]), int(number), name[1 + len(number) :]


def _known(what: str, given: str, names: tuple[str, ...]) -> None:
    if given not in names:
        raise ValueError(f"there is no {what} {given!r}; choose one of {', '.join(names)}")


def _one_order_everywhere(protocol: str, safe: bool, resilience: int, nodes: int | None) -> bool:
    """Whether no two processes ever deliver two messages in different order, partitions included.

    Engines that decide order when they send have this. Those that decide later have it if nobody
    delivers what another side may take back: DTP and its kin if F is at least half of the group,
    the others if what is not certain is delivered by the primary component alone.
    """
    if protocol in _WITH_RESILIENCE:
        return nodes is not None and resilience >= nodes // 2
    return safe or protocol not in ("fc", "st")


def _title(protocol: str, rules: str, resilience: int | None, mode: str) -> str:
    words = [protocol, rules, mode]
    if resilience is not None:
        words.append(f"F={resilience}")
    return " ".join(words)
