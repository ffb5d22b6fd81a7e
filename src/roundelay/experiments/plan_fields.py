"""Values of a plan as the fields of a cell.

A field has its unit in its name. A plan may write `hop_ms = 1.5`, a number under the field's own
name, or `hop = "1.5ms"`, a text with a unit under the name without it.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args, get_origin, get_type_hints

from roundelay.group.engines import engine_names
from roundelay.sim.units import duration_ns, per_second, rate_bps, share, size_bytes


def _scaled(unit_ns: int) -> Callable[[str], float]:
    return lambda text: duration_ns(text) / unit_ns


_UNITS: Mapping[str, tuple[Callable[[str], float], str]] = {
    "_per_s": (per_second, "/s"),
    "_bytes": (size_bytes, "B"),
    "_share": (share, "%"),
    "_bps": (rate_bps, "Mbit"),
    "_ns": (_scaled(1), "ns"),
    "_us": (_scaled(1_000), "us"),
    "_ms": (_scaled(1_000_000), "ms"),
    "_s": (_scaled(1_000_000_000), "s"),
}
"""By the end of a field's name: how a text is read, and a unit to write."""


class Fields:
    """The fields of one type of cell."""

    def __init__(self, cell: type) -> None:
        self._types: dict[str, Any] = get_type_hints(cell)
        self._names = [field.name for field in dataclasses.fields(cell)]

    @property
    def first(self) -> str:
        """The field by which results are partitioned."""
        return self._names[0]

    def field(self, key: str) -> str:
        """The field that a key of a plan sets."""
        for name in self._names:
            if key in (name, _bare(name)):
                return name
        known = ", ".join(_bare(name) for name in self._names)
        raise ValueError(f"there is no parameter {key!r}; write one of: {known}")

    def axis(self, key: str, given: Any) -> list[Any]:
        """What a plan gives under a key, as the values of its field, in order."""
        name = self.field(key)
        several = isinstance(given, list) and (
            get_origin(self._types[name]) is not tuple or any(isinstance(v, list) for v in given)
        )
        if several and not given:
            raise ValueError(f"{key} = [] leaves no cell at all; write at least one value")
        values = [self._value(key, name, value) for value in (given if several else [given])]
        if len(set(values)) < len(values):
            raise ValueError(f"{key} has a value twice; write each once")
        return values

    def _value(self, key: str, name: str, given: Any) -> Any:
        type_ = self._types[name]
        if unit := _unit(name):
            return self._quantity(key, name, given, *unit)
        if get_origin(type_) is Literal:
            if given not in get_args(type_):
                raise ValueError(f"{key} is {_or(get_args(type_))}, not {given!r}")
            return given
        if get_origin(type_) is tuple:
            if not isinstance(given, list) or not all(_is(v, float) for v in given):
                raise ValueError(f"{key} is a list of numbers for each run, like [[1, 2.5]]")
            return tuple(float(v) for v in given)
        if not _is(given, type_):
            raise ValueError(f"{key} is {_NOUNS[type_]}, not {given!r}")
        if name == "protocol" and given not in engine_names():
            names = ", ".join(engine_names())
            raise ValueError(f"no protocol is called {given!r}; write one of: {names}")
        return type_(given)

    def _quantity(
        self, key: str, name: str, given: Any, read: Callable[[str], float], unit: str
    ) -> Any:
        type_ = self._types[name]
        number = _is(given, float)
        if key != name and number:
            raise ValueError(
                f'{key} needs a unit; write {key} = "{given}{unit}" or {name} = {given}'
            )
        if key == name and not number:
            raise ValueError(f"{name} is a number, not {given!r}; write {name} = 1, say")
        if not number and not isinstance(given, str):
            raise ValueError(f'{key} is a text with a unit, like "1{unit}", not {given!r}')
        value = given if number else read(given)
        if type_ is int and value != int(value):
            raise ValueError(f"{key} = {given!r} is no whole number of {name.rpartition('_')[2]}")
        return type_(value)


_NOUNS = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}


def _unit(name: str) -> tuple[Callable[[str], float], str] | None:
    return next((unit for end, unit in _UNITS.items() if name.endswith(end)), None)


def _bare(name: str) -> str:
    """A field's name without its unit."""
    return next((name.removesuffix(end) for end in _UNITS if name.endswith(end)), name)


def _is(given: Any, type_: type) -> bool:
    """Whether a TOML value is of a type: whole numbers are numbers, and nothing else is both."""
    if type_ is float:
        return isinstance(given, int | float) and not isinstance(given, bool)
    return type(given) is type_


def _or(words: tuple[Any, ...]) -> str:
    return " or ".join(repr(word) for word in words)
