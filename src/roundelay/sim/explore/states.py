"""Digests of states: two that are equal behave alike from here on.

A core is taken apart attribute by attribute, whatever its class. Sets are sorted, names become
numbers, and nothing depends on where an object lies in memory or on the hash seed, so a digest is
the same in every process. Only what makes no difference to a core is left out: its codec, and the
counters of its end of the wire.
"""

from collections import deque
from collections.abc import Hashable, Iterable
from enum import Enum
from hashlib import blake2b
from typing import Any

NOTHING = 0x6E6F6E65
"""Stands for None, whose own hash is an address."""

_LEFT_OUT = frozenset({"codec", "_codec"})
_CACHE_MAX = 200_000

_words: dict[str | bytes, int] = {}
_values: dict[int, tuple[object, int]] = {}
"""Digests of immutable objects, by identity; the object is kept so that its identity stays its."""


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


_immutable: dict[type, bool] = {}


def _canonical(value: Any, seen: dict[int, int]) -> Hashable:
    """Nested tuples of numbers. `seen` numbers the objects met, so that cycles end and two names
    for one object differ from two equal objects."""
    kind = type(value)
    if kind is int or kind is bool or kind is float:
        return value  # type: ignore[no-any-return]
    if value is None:
        return NOTHING
    if kind is str or kind is bytes:
        return word(value)
    if kind is tuple:
        return tuple([_canonical(item, seen) for item in value])
    if immutable(kind):
        return _of_value(value, kind)
    if kind is dict:
        items = [(_canonical(k, seen), _canonical(v, seen)) for k, v in value.items()]
        return (1, *items)
    if kind is list or kind is deque:
        return (2, *[_canonical(item, seen) for item in value])
    if kind is set or kind is frozenset:
        return (3, *sorted(hash(_canonical(item, seen)) for item in value))
    place = seen.get(id(value))
    if place is not None:
        return (4, place)
    seen[id(value)] = len(seen)
    fields: list[Hashable] = [5, word(kind.__qualname__)]
    for name, held in _attributes(value):
        if name in _LEFT_OUT:
            continue
        fields.append(word(name))
        plain = type(held)
        fields.append(held if plain is int or plain is bool else _canonical(held, seen))
    return tuple(fields)


def _of_value(value: Any, kind: type) -> int:
    cached = _values.get(id(value))
    if cached is not None:
        return cached[1]
    content: Iterable[Any]
    if isinstance(value, Enum):
        content = (value.value,)
    elif isinstance(value, tuple):
        content = value
    else:
        content = [getattr(value, name) for name in kind.__dataclass_fields__]  # type: ignore[attr-defined]
    number = hash((word(kind.__qualname__), *[_canonical(item, {}) for item in content]))
    if len(_values) > _CACHE_MAX:
        _values.clear()
    _values[id(value)] = (value, number)
    return number


def _attributes(value: object) -> Iterable[tuple[str, object]]:
    if hasattr(value, "__dict__"):
        return vars(value).items()
    slots = getattr(type(value), "__slots__", ())
    return [(name, getattr(value, name)) for name in slots if hasattr(value, name)]
