"""The state of an online checker as plain tuples, and back.

The checker is a graph of objects. Its *parts*, such as the window or a check, are made anew by
whoever loads it, and are filled; the other objects, such as the records of packets, are numbered
and made again. What is saved is

    (version, objects, parts)       objects: (class, values of its attributes)

A value is a number, a text or None as it is; else a tuple that begins with what it was:

    o a numbered object    r a row    t tuple    l list    d dict    s set    q deque

JSON makes lists of tuples. Both can be loaded.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from roundelay.check.online.acyclic import Node
from roundelay.check.online.keys import KeyBook, Ring
from roundelay.check.online.order import Agreement
from roundelay.check.online.views import Configuration, Content, Process
from roundelay.check.online.wellformed import WriterLog
from roundelay.check.online.window import PacketRecord, Range, Stream
from roundelay.check.primary import Lineage, Primary
from roundelay.check.verdict import Validity, Verdict
from roundelay.trace.schema import SCHEMA_VERSION, Row

VERSION = f"1.{SCHEMA_VERSION}"
"""Changes when what an older version saved would be misread."""

Saved = tuple[Any, ...]

NUMBERED: tuple[type, ...] = (
    *(PacketRecord, Stream, Range, Node, Configuration, Content, Process),
    *(Agreement, Ring, WriterLog, Primary, Verdict),
)
"""The classes whose objects are made again; their attributes are their slots."""

_SLOTS: dict[type, tuple[str, ...]] = {kind: tuple(kind.__slots__) for kind in NUMBERED}  # type: ignore[attr-defined]
_PLACE = {kind: place for place, kind in enumerate(NUMBERED)}
_PLAIN = frozenset({int, str, bool, type(None)})
_CONTAINERS = (dict, list, set, deque)


def inner_parts(parts: Iterable[object]) -> list[object]:
    """These parts, and the parts that they have themselves."""
    found: list[object] = []
    for part in parts:
        found.append(part)
        found += [value for value in vars(part).values() if isinstance(value, KeyBook | Lineage)]
    return found


def save(parts: Sequence[object], wiring: tuple[type, ...]) -> Saved:
    """What these parts know. Their attributes that are of the types in `wiring`, or are functions,
    join them to each other and are left out."""
    saver = _Saver()
    states = [
        {
            name: saver.value(value)
            for name, value in _attributes(part)
            if not _is_wiring(value, wiring)
        }
        for part in parts
    ]
    return VERSION, tuple(saver.objects()), tuple(tuple(state.items()) for state in states)


def load(saved: Sequence[Any], parts: Sequence[object]) -> None:
    """Fill parts that were made as those were that are saved; ValueError if they were not."""
    if not saved or saved[0] != VERSION:
        raise ValueError("it was saved by another version of Roundelay")
    _, objects, states = saved
    if len(states) != len(parts):
        raise ValueError("it was saved by a checker that was made in another way")
    loader = _Loader(objects)
    for part, state in zip(parts, states, strict=True):
        for name, stored in state:
            value, present = loader.value(stored), getattr(part, name)
            if not isinstance(present, _CONTAINERS):
                setattr(part, name, value)
            elif isinstance(present, list):
                present[:] = value
            else:  # In place: others may hold it too, and it may be of a special kind.
                present.clear()
                _fill(present, value)


def _fill(container: Any, value: Any) -> None:
    if isinstance(container, deque):
        container.extend(value)
    else:
        container.update(value)


def _attributes(part: object) -> list[tuple[str, Any]]:
    slots = getattr(part, "__slots__", None)
    return [(name, getattr(part, name)) for name in slots] if slots else [*vars(part).items()]


def _is_wiring(value: Any, types: tuple[type, ...]) -> bool:
    if isinstance(value, types) or callable(value):
        return True
    if not isinstance(value, dict | list | tuple):
        return False
    values = value.values() if isinstance(value, dict) else value
    first = next(iter(values), None)  # What joins parts is of one type.
    return first is not None and (isinstance(first, types) or callable(first))


class _Saver:
    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        """By identity; all of them are alive while they are saved."""
        self._found: list[Any] = []

    def value(self, value: Any) -> Any:
        kind = type(value)
        if kind in _PLAIN:
            return value
        if kind in _PLACE:
            number = self._numbers.get(id(value))
            if number is None:
                number = self._numbers[id(value)] = len(self._found)
                self._found.append(value)
            return "o", number
        if kind is Row:
            return ("r", *value)
        if kind is tuple:
            return ("t", *map(self.value, value))
        if isinstance(value, list):
            return ("l", *map(self.value, value))
        if isinstance(value, dict):
            return ("d", *map(self.value, chain.from_iterable(value.items())))
        if isinstance(value, set | frozenset):
            return ("s", *map(self.value, value))
        if isinstance(value, deque):
            return ("q", *map(self.value, value))
        if isinstance(value, str):
            return str(value)
        if isinstance(value, int):
            return int(value)
        raise TypeError(f"{kind.__name__} cannot be saved")

    def objects(self) -> Iterable[Saved]:
        """All that were met, and those that they lead to."""
        for one in self._found:  # Grows while it is walked.
            kind = type(one)
            yield (_PLACE[kind], *[self.value(getattr(one, name)) for name in _SLOTS[kind]])


class _Loader:
    def __init__(self, objects: Sequence[Sequence[Any]]) -> None:
        # First all of them, empty, since they lead to each other.
        self._objects = [NUMBERED[state[0]].__new__(NUMBERED[state[0]]) for state in objects]
        for one, state in zip(self._objects, objects, strict=True):
            for name, stored in zip(_SLOTS[type(one)], state[1:], strict=True):
                object.__setattr__(one, name, self.value(stored))
            if isinstance(one, Verdict):
                object.__setattr__(one, "validity", Validity(one.validity))

    def value(self, stored: Any) -> Any:
        if type(stored) in _PLAIN:
            return stored
        what = stored[0]
        if what == "o":
            return self._objects[stored[1]]
        if what == "r":
            fields = [tuple(one) if type(one) in (list, tuple) else one for one in stored[1:]]
            return Row._make(fields)
        values = map(self.value, stored[1:])
        match what:
            case "t":
                return tuple(values)
            case "l":
                return list(values)
            case "d":
                return dict(zip(values, values, strict=True))
            case "s":
                return set(values)
            case "q":
                return deque(values)
        raise ValueError(f"{what!r} is nothing that is saved")
