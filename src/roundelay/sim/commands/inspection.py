"""Scenario commands that print something and change nothing."""

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from roundelay.check import Standing, Validity, check
from roundelay.sim.arguments import exactly
from roundelay.sim.transcript import VERBS, plain_text
from roundelay.sim.units import show_ns

if TYPE_CHECKING:
    from roundelay.sim.runner import ScenarioRunner


def choose_shown(runner: "ScenarioRunner", arguments: list[str]) -> None:
    for verb in arguments:
        if verb not in VERBS:
            raise ValueError(f"{verb!r} cannot be shown; choose of: {' '.join(VERBS)}")
    runner.shown_verbs = frozenset(arguments)


def print_log(runner: "ScenarioRunner", arguments: list[str]) -> None:
    for node in arguments or runner.world.nodes:
        runner.print(f"{node}: {' '.join(runner.log[runner.node(node)])}".rstrip())


def print_held(runner: "ScenarioRunner", arguments: list[str]) -> None:
    exactly(0, arguments, "nothing more")
    for transmission, receiver in runner.world.held:
        runner.print(f"{transmission.sender} -> {receiver} {transmission.tag} {transmission}")


def print_timers(runner: "ScenarioRunner", arguments: list[str]) -> None:
    host = runner.host(arguments)
    for timer, deadline in sorted(host.timers.items()):
        runner.print(f"{timer} at {show_ns(deadline)}")


def print_state(runner: "ScenarioRunner", arguments: list[str]) -> None:
    """Print the public attributes of a node's engine, or of its core if it has no engine."""
    core = runner.host(arguments).core
    shown = getattr(core, "engine", core)
    slots = [name for kind in type(shown).__mro__ for name in getattr(kind, "__slots__", ())]
    for name in sorted(slots or vars(shown)):
        if not name.startswith("_") and hasattr(shown, name):
            runner.print(f"{name} = {plain_text(getattr(shown, name))}")


def print_stats(runner: "ScenarioRunner", arguments: list[str]) -> None:
    exactly(0, arguments, "nothing more")
    drops: dict[str, int] = {}
    for row in runner.rows:
        if row.kind == "drop":
            drops[row.tag] = drops.get(row.tag, 0) + 1
    runner.print(f"frames {runner.world.frames}")
    for reason in sorted(drops):
        runner.print(f"drop {reason} {drops[reason]}")


def print_verdicts(runner: "ScenarioRunner", arguments: list[str]) -> None:
    """Print the verdicts that are neither ok nor vacuous, then the number of each kind."""
    if len(arguments) > 1:
        raise ValueError("name one protocol, whose promises are checked, or none")
    manifest = runner.manifest()
    if arguments:
        manifest = replace(manifest, protocol=arguments[0])
    report = check(runner.rows, manifest)
    counts: Counter[Validity] = Counter()
    for verdict, promise in zip(report.verdicts, report.profile.entries, strict=True):
        if promise.standing is Standing.OPTIONAL:
            continue
        counts[verdict.validity] += 1
        if verdict.validity not in (Validity.OK, Validity.VACUOUS):
            runner.print(f"{verdict.property} {verdict.validity}: {verdict.reason}")
    runner.print(", ".join(f"{counts[v]} {v}" for v in Validity if counts[v]))


COMMANDS = {
    "show": choose_shown,
    "log": print_log,
    "held": print_held,
    "timers": print_timers,
    "state": print_state,
    "stats": print_stats,
    "check": print_verdicts,
}
