"""Digests of states: two states with equal digests behave alike from then on.

A core of any class is taken apart attribute by attribute. Sets are sorted and names become numbers.
Nothing depends on the address of an object or on the hash seed, so a digest is the same in every
process. Codecs and configurations, which never change, are left out. A function is its name and
what it encloses.
"""

import dataclasses
from collections import deque
from collections.abc import Hashable, Iterable
from enum import Enum
from hashlib import blake2b
from types import FunctionType, MethodType
from typing import Any

NOTHING = 0x6E6F6E65
"""Stands for None, whose own hash is an address in some versions of Python."""

_CONSTANT = frozenset({"codec", "_codec", "config", "_config", "_boot", "_founders"})
"""Attributes that are the same in all runs of an exploration, or matter only when a node starts."""

_SHOWN_ONLY = frozenset({"gather_reason"})
"""Attributes that are for people: no decision depends on them."""

_UNREAD = _CONSTANT | _SHOWN_ONLY

_HIDING = frozenset({"builtins", "collections", "functools", "itertools"})
"""Modules whose objects have a state that is in none of their attributes."""

_CACHE_MAX = 200_000
"""How many digests each of the two caches below holds before it is emptied. A smaller cache
computes more digests again; a larger one takes more memory."""

_words: dict[str | bytes, int] = {}
_values: dict[int, tuple[object, int]] = {}
"""Digests of immutable objects by identity. The object is kept too, so that its identity is not
given to another."""
_immutable: dict[type, bool] = {}
_plans: dict[tuple[str, ...], tuple[int, tuple[str, ...]]] = {}
"""By names of attributes: a number for these names, and the names of those that count."""


def word(text: str | bytes) -> int:
    """A number for a text, the same in every process."""
    number = _words.get(text)
    if number is None:
        data = text.encode() if isinstance(text, str) else text
        number = int.from_bytes(blake2b(data, digest_size=7).digest())
        if len(_words) > _CACHE_MAX:
            _words.clear()
        _words[text] = number
    return number


def digest(value: object) -> int:
    """A number for anything a core may hold."""
    return hash(_canonical(value, {}))


def immutable(kind: type) -> bool:
    """Whether instances of a class never change: dataclasses that can be hashed, named tuples and
    enumerations."""
    known = _immutable.get(kind)
    if known is None:
        parameters = getattr(kind, "__dataclass_params__", None)
        hashable = parameters is not None and (parameters.unsafe_hash or parameters.frozen)
        named = issubclass(kind, tuple) and kind is not tuple
        known = _immutable[kind] = hashable or named or issubclass(kind, Enum)
    return known


def _canonical(value: Any, seen: dict[int, int]) -> Hashable:
    """Nested tuples of numbers; each tuple begins with a number for the type of what it stands for.
    `seen` numbers the objects met, so that cycles end, and so that two names for one object differ
    from two equal objects."""
    kind = type(value)
    if kind is int or kind is bool or kind is float:
        return value  # type: ignore[no-any-return]
    if value is None:
        return NOTHING
    cached = _values.get(id(value))
    if cached is not None:
        return cached[1]
    if kind is str or kind is bytes:
        return word(value)
    if kind is tuple:
        return (7, *[_canonical(item, seen) for item in value])
    if immutable(kind):
        return _of_value(value, kind)
    if kind is dict:
        items = [(_canonical(k, seen), _canonical(v, seen)) for k, v in value.items()]
        return (1, *items)
    if kind is list or kind is deque:
        return (2, *[_canonical(item, seen) for item in value])
    if kind is set or kind is frozenset:
        return (3, *sorted(hash(_canonical(item, seen)) for item in value))
    if kind is bytearray:
        return (6, word(bytes(value)))
    if kind is FunctionType:
        enclosed = [cell.cell_contents for cell in value.__closure__ or ()]
        where = (word(value.__module__), word(value.__qualname__), value.__code__.co_firstlineno)
        return (9, *where, *[_canonical(item, seen) for item in enclosed])
    if kind is MethodType:
        return (8, word(value.__name__), _canonical(value.__self__, seen))
    place = seen.get(id(value))
    if place is not None:
        return (4, place)
    seen[id(value)] = len(seen)
    attributes = _attributes(value)
    number, names = _plan(tuple(attributes))
    parts: list[Hashable] = [5, number]
    for name in names:
        part = attributes[name]
        plain = type(part)
        parts.append(part if plain is int or plain is bool else _canonical(part, seen))
    return tuple(parts)


def _of_value(value: Any, kind: type) -> int:
    content: Iterable[Any]
    if isinstance(value, Enum):
        content = (value.value,)
    elif isinstance(value, tuple):
        content = value
    else:
        content = [getattr(value, field.name) for field in dataclasses.fields(value)]
    number = hash((word(kind.__qualname__), *[_canonical(item, {}) for item in content]))
    if len(_values) > _CACHE_MAX:
        _values.clear()
    _values[id(value)] = (value, number)
    return number


def _attributes(value: object) -> dict[str, Any]:
    """The attributes of an object. Raises TypeError if the object hides its state: states that
    differ only in it would count as one."""
    kind = type(value)
    if kind.__module__ in _HIDING:
        raise TypeError(f"states that hold a {kind.__name__} cannot be compared")
    slots = [name for base in kind.__mro__ for name in getattr(base, "__slots__", ())]
    held = {name: getattr(value, name) for name in slots if hasattr(value, name)}
    return {**held, **vars(value)} if hasattr(value, "__dict__") else held


def _plan(names: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
    plan = _plans.get(names)
    if plan is None:
        plan = word(" ".join(names)), tuple(name for name in names if name not in _UNREAD)
        _plans[names] = plan
    return plan
