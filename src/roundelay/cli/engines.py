"""Engines as arguments of commands. What cannot be used is refused before a command begins."""

from roundelay.cli.errors import UserError
from roundelay.group.engines import (
    EngineError,
    describe,
    engine_config,
    engines_in_views,
    needs_channel,
    without_views,
)


def engine(name: str) -> str:
    """An engine that is installed and can be loaded; for `type=` of an argument."""
    try:
        return describe(name).name
    except EngineError as e:
        raise UserError(str(e)) from None


def engine_in_views(name: str) -> str:
    """The same, of those that can end a view: what real nodes can run."""
    if describe(engine(name)).static_only:
        names = ", ".join(engines_in_views())
        raise UserError(f"{name} runs on static groups only; here there are: {names}")
    return name


def totally_ordering(name: str) -> str:
    """The same, of those that put the messages of all senders into one order."""
    if not describe(engine_in_views(name)).orders_all:
        names = ", ".join(n for n in engines_in_views() if describe(n).orders_all)
        raise UserError(f"{name} puts messages into no one order; here there are: {names}")
    return name


def check_rules(protocol: str, rules: str, *, static: bool) -> None:
    """Refuse rules that the engine does not have, or not on such groups."""
    if rules == "safe":
        return
    if why := needs_channel(protocol, {"rules": rules}):
        raise UserError(f"{why}, and seeds draw other networks; leave out --rules {rules}")
    if not static and (why := without_views(protocol, {"rules": rules})):
        raise UserError(f"{why}; add --static")
    if not hasattr(engine_config(protocol), "rules"):
        raise UserError(f"{protocol} has safe rules only; leave out --rules {rules}")
    try:
        engine_config(protocol, {"rules": rules})
    except ValueError as e:
        raise UserError(f"{protocol}: {e}") from None
