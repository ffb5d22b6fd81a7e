"""What a node of the simulator is doing, as names and values on one line each.

It is what the command `state` of scenarios prints, the parts of an engine included, and what the
layers around the engine are doing.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from roundelay.core.contract import Core
from roundelay.group.stack import Stack
from roundelay.membership.phase import Phase
from roundelay.sim.host import Host
from roundelay.sim.transcript import plain_text

VALUE_MAX = 160
"""The most characters of a value. Fewer: lists of larger groups are cut; more: a walkthrough of a
long run takes seconds to reach the page."""
DELIVERED_MAX = 24
"""How many of the last messages of a node are told. More: the same."""
ENGINE = "engine."
"""Begins the names of what belongs to the engine."""

State = dict[str, str]

_SETTINGS = frozenset({"config", "node", "me", "policy"})
"""What is the same in the whole run, and says nothing of what happens in it."""


def of_host(host: Host, delivered: Sequence[str], has_token: bool) -> State:
    """What can be seen of a node from outside, and what its application was given."""
    is_what = "paused" if host.paused else "up" if host.alive else "down"
    shown = {"is": is_what if host.incarnation >= 0 else "not started"}
    if host.incarnation > 0:
        shown["life"] = str(host.incarnation)
    if host.slow_ns or host.drift != 1.0:
        shown["is"] += ", slow" if host.slow_ns else ", its clock is wrong"
    if has_token:
        shown["token"] = "here"
    shown["delivered"] = _tail(delivered)
    if host.incarnation >= 0:
        shown["timers"] = " ".join(sorted(host.timers)) if host.alive else ""
    return shown


def of_core(core: Core[Any]) -> State:
    """What the core of a node knows: its view, its membership and its engine."""
    status = core.status
    shown: State = {}
    if isinstance(core, Stack):
        membership = core.membership
        shown["phase"] = str(membership.phase)
        if membership.phase is not Phase.OPERATIONAL:
            shown["phase"] += f": {str(membership.gather_reason).replace('_', ' ')}"
        view = membership.view
        shown["view"] = f"{view}{' primary' if view.primary else ''}"
    shown["packets to send"] = str(status.waiting_packets)
    if (log := status.log) is not None:
        shown["log"] = (
            f"{log.state}, {log.condition}, {log.committed} of {log.length} entries committed"
        )
    engine = getattr(core, "engine", core)
    shown.update(_parts(engine, ENGINE, seen={id(engine)}, depth=1))
    return shown


def _parts(thing: object, prefix: str, *, seen: set[int], depth: int) -> State:
    """The public values of a thing, and of the things that it is made of."""
    shown: State = {}
    for name in _public(thing):
        value = getattr(thing, name)
        if callable(value) or name in _SETTINGS:
            continue
        if not _has_no_words(value):
            text = plain_text(list(value) if isinstance(value, deque) else value)
            if " object at 0x" not in text:  # An address, which differs from run to run.
                shown[prefix + name] = _cut(text)
        elif depth and id(value) not in seen:
            seen.add(id(value))
            shown.update(_parts(value, f"{prefix}{name}.", seen=seen, depth=depth - 1))
    return shown


def _public(thing: object) -> Iterator[str]:
    slots = [name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())]
    for name in sorted(set(slots) or vars(thing)):
        if not name.startswith("_") and hasattr(thing, name):
            yield name


def _has_no_words(value: object) -> bool:
    """Whether a value is written as its address alone."""
    kind = type(value)
    return kind.__str__ is object.__str__ and kind.__repr__ is object.__repr__


def _cut(text: str) -> str:
    return text if len(text) <= VALUE_MAX else text[: VALUE_MAX - 1] + "…"


def _tail(delivered: Sequence[str]) -> str:
    """The last of what was delivered; how many came before is told."""
    left_out = len(delivered) - DELIVERED_MAX
    texts = [f"…{left_out} more"] if left_out > 0 else []
    return " ".join([*texts, *delivered[-DELIVERED_MAX:]])
