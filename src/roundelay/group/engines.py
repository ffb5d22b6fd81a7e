"""Engines by name: where their descriptions are found, and how text configures an engine.

No table lists the engines. Those of Roundelay are the modules of `roundelay.protocols`, each called
like its engine; a package among them names its engines, which are modules of it, in `ENGINES`.
Other distributions add theirs through entry points of the group `roundelay.engines`:

    [project.entry-points."roundelay.engines"]
    sequencer = "my_package.sequencer:DESCRIPTION"

To list names imports no engine. An engine is imported when it is first asked for.
"""

import dataclasses
import importlib
import pkgutil
import sys
from collections.abc import Callable, Mapping
from functools import cache, partial
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeVar

from roundelay import protocols
from roundelay.core.contract import Engine, EngineFactory
from roundelay.core.description import Description, Properties

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

C = TypeVar("C")

ENTRY_POINTS = "roundelay.engines"
"""The group of entry points by which other distributions add engines."""

ATTRIBUTE = "DESCRIPTION"
"""What an engine module calls its description."""


class EngineError(ValueError):
    """There is no such engine, or it cannot be used; the text says what to do."""


def engine_names() -> tuple[str, ...]:
    """The names of all engines that are installed, sorted."""
    return tuple(sorted({*_built_in(), *_outside()}))


def describe(name: str) -> Description:
    """The description of that engine; EngineError if there is none, or it cannot be loaded."""
    module, entries = _built_in().get(name), _outside().get(name, ())
    if module is not None and entries:
        raise EngineError(
            f"{_source(entries[0])} adds an engine called {name!r}, but Roundelay has one of that "
            f"name: uninstall it, or give its engine another name"
        )
    if len(entries) > 1:
        both = " and ".join(sorted(_source(entry) for entry in entries))
        raise EngineError(f"{both} both add an engine called {name!r}: uninstall one of them")
    if module is not None:
        return _load(name, module)
    if entries:
        return _load_outside(entries[0])
    raise EngineError(f"no engine is called {name!r}; there are: {', '.join(engine_names())}")


def engines_in_views() -> tuple[str, ...]:
    """The names of the engines that real nodes can run: those that can end a view. Engines of
    other distributions that cannot be loaded are left out."""
    names = []
    for name in engine_names():
        try:
            if not describe(name).static_only:
                names.append(name)
        except EngineError:  # Whoever asks for it by name is told why.
            continue
    return tuple(names)


def description_of(engine: type) -> Description | None:
    """The description in the module that declares this class of engines, or one that it inherits
    from; None if there is none."""
    for kind in engine.__mro__:
        module = sys.modules.get(kind.__module__)
        for found in () if module is None else vars(module).values():
            if isinstance(found, Description) and found.engine is kind:
                return found
    return None


# Finding descriptions


@cache
def _built_in() -> dict[str, str]:
    """The module of each engine of Roundelay, by the engine's name."""
    found: dict[str, str] = {}
    for module in pkgutil.iter_modules(protocols.__path__, f"{protocols.__name__}."):
        if module.ispkg:
            package = importlib.import_module(module.name)
            found |= {name: f"{module.name}.{name}" for name in getattr(package, "ENGINES", ())}
        else:
            found[module.name.rpartition(".")[2]] = module.name
    return found


@cache
def _outside() -> "dict[str, tuple[EntryPoint, ...]]":
    """The entry points of other distributions, by the engine's name. A distribution that is found
    twice, as in a folder that is listed twice, counts once."""
    from importlib.metadata import entry_points  # Slow to import, and not every command asks.

    found: dict[str, tuple[EntryPoint, ...]] = {}
    for entry in entry_points(group=ENTRY_POINTS):
        known = found.get(entry.name, ())
        if entry not in known:
            found[entry.name] = (*known, entry)
    return found


@cache
def _load(name: str, module: str) -> Description:
    description = getattr(importlib.import_module(module), ATTRIBUTE, None)
    assert isinstance(description, Description), f"{module} has no {ATTRIBUTE}"
    assert description.name == name, f"{module} describes {description.name!r}"
    return description


@cache
def _load_outside(entry: "EntryPoint") -> Description:
    where = f"the engine {entry.name!r} of {_source(entry)}"
    try:
        loaded = entry.load()
    except Exception as e:  # Whatever a module of others raises as it is imported.
        raise EngineError(
            f"{where} cannot be loaded from {entry.value}: {type(e).__name__}: {e}; "
            "repair or uninstall it"
        ) from e
    description = loaded if isinstance(loaded, Description) else getattr(loaded, ATTRIBUTE, None)
    if not isinstance(description, Description):
        raise EngineError(
            f"{where} is no engine: {entry.value} is no Description and has no {ATTRIBUTE}; its "
            f"entry point is to name one, like my_package.module:{ATTRIBUTE}"
        )
    if description.name != entry.name:
        raise EngineError(
            f"{where} is called {description.name!r} in its description: the name of its entry "
            "point is to be the same"
        )
    return description


def _source(entry: "EntryPoint") -> str:
    """The distribution that an entry point belongs to."""
    return "an installed package" if entry.dist is None else f"the package {entry.dist.name}"


# Configuring engines


def engine_factory(name: str, options: Mapping[str, str] | None = None) -> EngineFactory:
    """The engine of that name, configured by `options`: text, as files and flags give it."""
    engine: Callable[..., Engine[Any]] = describe(name).engine
    return partial(engine, config=engine_config(name, options))


def engine_config(name: str, options: Mapping[str, str] | None = None) -> Any:
    """The configuration of that engine, of a type that only it knows."""
    return configure(name, describe(name).config, options or {})


def envelope(name: str, options: Mapping[str, str] | None = None) -> dict[str, Any]:
    """How many faults the engine bears with these options; for the manifest of a trace."""
    config = engine_config(name, options)
    return {option: getattr(config, option) for option in describe(name).envelope_options}


def without_views(name: str, options: Mapping[str, str] | None = None) -> str:
    """Why the engine, with these options, cannot run where there are views: a sentence without its
    end, to be completed by what to do. Empty if it can."""
    description = describe(name)
    if description.static_only:
        return f"{name} runs on static groups only"
    if (rules := (options or {}).get("rules", "")) in description.static_rules:
        return f"{name} with rules={rules} runs on static groups only"
    return ""


_ONE_SEQUENCE = "O6"
"""Within a view, what its members deliver are beginnings of one sequence."""


def carries_log(name: str, options: Mapping[str, str] | None = None) -> bool:
    """Whether a replicated log can stand on the engine: all members of a view must give the same
    indexes to what they deliver in it (O6). That members which move on together have delivered the
    same (D7), which a log needs too, every engine is held to where there are views."""
    if without_views(name, options):
        return False
    promises = describe(name).promises
    rules = (options or {}).get("rules", "safe")
    held = (promises.static, promises.in_views, dict(promises.rules).get(rules, Properties()))
    return any(_ONE_SEQUENCE in (*p.promised.split(), *p.derived.split()) for p in held)


def log_refusal(name: str, options: Mapping[str, str] | None = None) -> str | None:
    """Why the engine, with these options, cannot carry a replicated log, and what to do; None if
    it can."""
    if carries_log(name, options):
        return None
    if why := without_views(name, options):
        return f"{why}, and a log needs views; leave out journal"
    others = [other for other in engines_in_views() if carries_log(other)]
    use = " or ".join(filter(None, (", ".join(others[:-1]), *others[-1:])))
    return (
        f"the engine {name!r} cannot carry a log: its members need not deliver in one order "
        f"(property {_ONE_SEQUENCE}); use {use}, or leave out journal"
    )


def needs_channel(name: str, options: Mapping[str, str] | None = None) -> str:
    """Why the engine, with these options, can run only on a network that is one channel: a sentence
    without its end, to be completed by what to do. Empty if it can run on any."""
    for needs in describe(name).channel_options:
        option, _, value = needs.partition("=")
        if (options or {}).get(option) == value:
            return f"{name} with {needs} needs a network that is one channel"
    return ""


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
