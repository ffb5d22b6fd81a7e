"""Engines by name. A new one adds its line here and nothing else outside its own module."""

import dataclasses
import importlib
from collections.abc import Mapping
from functools import partial
from math import isfinite
from typing import Any, TypeVar

from roundelay.core.contract import EngineFactory

C = TypeVar("C")

MODULES = {
    "cm": "roundelay.protocols.dtp.cm",
    "dtp": "roundelay.protocols.dtp.dtp",
    "fifo": "roundelay.protocols.fifo",
    "pinwheel": "roundelay.protocols.dtp.pinwheel",
    "template": "roundelay.protocols.template",
    "totem": "roundelay.protocols.totem",
}
"""Where each engine lives: a module with an `engine` (its class) and a `Config`."""


STATIC_ONLY = frozenset({"template"})
"""Engines that notice no failure, and so cannot end a view."""

IN_VIEWS = tuple(name for name in MODULES if name not in STATIC_ONLY)
"""The others: what real nodes can run."""


def engine_factory(name: str, options: Mapping[str, str] | None = None) -> EngineFactory:
    """The engine of that name, configured by `options`: text, as files and flags give it."""
    config = engine_config(name, options)
    return partial(importlib.import_module(MODULES[name]).engine, config=config)


def engine_config(name: str, options: Mapping[str, str] | None = None) -> Any:
    """The configuration of that engine, of a type that only it knows."""
    if name not in MODULES:
        raise ValueError(f"no engine is called {name!r}; there are: {', '.join(MODULES)}")
    return configure(name, importlib.import_module(MODULES[name]).Config, options or {})


def configure(name: str, config: type[C], options: Mapping[str, str]) -> C:
    """A configuration with these fields set, each read as its type; `name` is for errors."""
    return config(**_typed(name, config, options))


def _typed(name: str, config: type, options: Mapping[str, str]) -> dict[str, object]:
    """Options with the types of the fields they set."""
    fields = {
        field.name: field
        for field in dataclasses.fields(config)
        if isinstance(field.default, str | int | float)
    }
    typed: dict[str, object] = {}
    for option, text in options.items():
        if option not in fields:
            raise ValueError(f"{name} has no option {option!r}; it has: {', '.join(fields)}")
        default: object = fields[option].default
        try:
            typed[option] = _parse(text, default)
        except ValueError:
            kind = type(default).__name__
            raise ValueError(f"{option}={text} is not of type {kind}") from None
    return typed


def _parse(text: str, default: object) -> object:
    """`text` as a value of the type of `default`."""
    match default:
        case bool():
            if text not in ("yes", "no"):
                raise ValueError(text)
            return text == "yes"
        case int():
            return int(text)
        case float():
            number = float(text)
            if not isfinite(number):
                raise ValueError(text)
            return number
        case _:
            return text
