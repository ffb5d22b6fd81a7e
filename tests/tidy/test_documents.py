"""Documents say what the code has."""

import dataclasses
import re
from pathlib import Path

from roundelay.check import PROPERTIES
from roundelay.core.description import Description
from roundelay.core.effects import Kind
from roundelay.group.engines import describe, engine_names
from roundelay.runtime import errors
from roundelay.runtime.chaos import Relay
from roundelay.runtime.settings import SETTINGS
from roundelay.sim import intruder
from roundelay.sim.commands import COMMANDS
from roundelay.sim.coverage import goal_name, links, logs, objects, sealed, sentence, traffic, views
from roundelay.sim.engines import allack, causal
from roundelay.sim.engines.atop import goals as atop
from roundelay.sim.engines.atop import mishaps as atop_mishaps
from roundelay.sim.engines.dtp import goals as dtp
from roundelay.sim.engines.dtp import mishaps as dtp_mishaps
from roundelay.sim.engines.fc import goals as fc
from roundelay.sim.engines.fc import mishaps as fc_mishaps
from roundelay.sim.engines.st import goals as st
from roundelay.sim.engines.st import mishaps as st_mishaps
from roundelay.sim.engines.totem import goals as totem
from roundelay.sim.log_mishaps import LOG_MISHAPS
from roundelay.sim.mishaps import MISHAPS
from roundelay.trace.schema import Row
from roundelay.wire.primitives import Reason

DOCS = Path(__file__).parents[2] / "docs"


def named(text: str) -> set[str]:
    """Words in backquotes at the beginning of the rows of tables."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    cells = [re.split(r"(?<!\\)\|", line)[1] for line in lines]
    return {quoted for cell in cells for quoted in re.findall(r"`([^`]+)`", cell)}


def test_every_property_is_documented_with_its_title():
    text = (DOCS / "properties.md").read_text()
    listed = dict(re.findall(r"^\| ([A-Z]\w+) \| (.+) \|$", text, re.MULTILINE))
    assert listed == {name: p.title for name, p in PROPERTIES.items()}


def test_every_column_and_kind_of_the_trace_is_documented():
    words = named((DOCS / "trace.md").read_text())
    assert set(Row._fields) | {"run"} <= words
    assert set(Kind) <= words


def test_every_scenario_command_is_documented():
    commands = {*COMMANDS, "at"}
    listed = {phrase.split()[0] for phrase in named((DOCS / "scenarios.md").read_text())}
    assert commands - listed == {"start"}  # Told of where `nodes` is.
    assert "`start a b`" in (DOCS / "scenarios.md").read_text()


CATALOGUE = {
    "Every engine": traffic.ALWAYS,
    "Every engine, in views": views.IN_VIEWS,
    "`totem`": totem.ALWAYS,
    "`totem`, in views": totem.IN_VIEWS,
    "`fifo`, `causal`, `allack`, `atop`": links.ALWAYS,
    "`fifo`, `causal`, `allack`, `atop`, in views": links.IN_VIEWS,
    "`dtp`, `cm`, `pinwheel`": dtp.ALWAYS,
    "`pinwheel`": dtp.PINWHEEL,
    "`dtp`, `cm`, `pinwheel`, in views": dtp.IN_VIEWS,
    "`atop`": atop.ALWAYS,
    "`atop`, in views": atop.IN_VIEWS,
    "`allack`": allack.ALWAYS,
    "`allack`, in views": allack.IN_VIEWS,
    "`causal`": causal.ALWAYS,
    "`causal`, in views": causal.IN_VIEWS,
    "`fc`": fc.ALWAYS,
    "`fc`, in views": fc.IN_VIEWS,
    "`st`": st.ALWAYS,
    "`st`, in views": st.IN_VIEWS,
    "`--log`": (*logs.WITH_A_LOG, *objects.WITH_MACHINES),
    "Every engine, with `--intruder`": sealed.ALWAYS,
    "Every engine, with `--intruder`, in views": sealed.IN_VIEWS,
}


def test_the_coverage_catalogue_is_documented_as_it_is():
    text = (DOCS / "swarm.md").read_text()
    written = [
        f"### {title}\n\n| goal | is reached when |\n|---|---|\n"
        + "".join(f"| `{goal_name(goal)}` | {sentence(goal)} |\n" for goal in goals)
        for title, goals in CATALOGUE.items()
    ]
    assert text[text.index("### ") :] == "\n".join(written)


def test_every_mishap_of_the_swarm_is_documented():
    text = (DOCS / "swarm.md").read_text()
    tables = {
        "mishap": MISHAPS,
        "mishap of `dtp`, `cm`, `pinwheel` only": dtp_mishaps.MISHAPS,
        "mishap of `atop` only": atop_mishaps.MISHAPS,
        "mishap of `fc` only": fc_mishaps.MISHAPS,
        "mishap of `causal` only": causal.MISHAPS,
        "mishap of `st` only": st_mishaps.MISHAPS,
        "mishap with `--log` only": LOG_MISHAPS,
    }
    for title, mishaps in tables.items():
        rows = "".join(f"| `{kind}` | {draw.__doc__} |\n" for kind, draw in mishaps.items())
        assert f"| {title} | is |\n|---|---|\n{rows}\n" in text


def test_everything_that_an_intruder_does_is_documented():
    acts = {kind: " ".join((act.__doc__ or "").split()) for kind, act in intruder.KINDS.items()}
    rows = "".join(f"| `{kind}` | {said} |\n" for kind, said in acts.items())
    assert f"| act | is |\n|---|---|\n{rows}\n" in (DOCS / "swarm.md").read_text()


def test_every_setting_and_exception_is_documented():
    text = (DOCS / "api.md").read_text()
    settings = text[text.index("## Settings") : text.index("## Exceptions")]
    assert named(settings) == set(SETTINGS)
    tree = text[text.index("```\nRoundelayError") + 4 :].partition("```")[0]
    assert errors.__doc__ is not None
    drawn = [line.removeprefix("    ") for line in errors.__doc__.splitlines()]
    assert tree in "\n".join(drawn)
    raised = {n for n, e in vars(errors).items() if isinstance(e, type)}
    assert set(re.findall(r"\w+Error(?=\s)", tree)) - {"ValueError"} == raised


def test_every_reason_to_drop_a_datagram_is_documented():
    text = (DOCS / "security.md").read_text()
    table = text[text.index("## What the counters mean") : text.index("## Corners")]
    assert named(table) == set(Reason)


def test_every_command_of_the_relay_is_documented():
    listed = named((DOCS / "running.md").read_text())
    assert Relay.command.__doc__ is not None
    said = Relay.command.__doc__.partition("\n\n")[2]
    verbs = {part.split()[0] for part in said.split("|")}
    assert verbs <= {words.split()[0] for words in listed}


def test_every_engine_is_documented_as_it_describes_itself():
    def said(holds: bool) -> str:
        return "yes" if holds else "no"

    text = (DOCS / "engines.md").read_text()
    lines = re.findall(r"^\| `\w+` \| .+ \| (?:yes|no) \|$", text, re.MULTILINE)
    mine = [
        d for d in map(describe, engine_names()) if d.engine.__module__.startswith("roundelay.")
    ]
    assert lines == [
        f"| `{d.name}` | {d.summary} | {said(not d.static_only)} | {said(d.carries_safe)} "
        f"| {said(d.has_token)} | {said(d.takes_bursts)} | {said(d.selective)} |"
        for d in mine
    ]


def test_every_field_of_a_description_is_documented():
    text = (DOCS / "engines.md").read_text()
    table = text[text.index("## What a description says") : text.index("The engines of Roundelay")]
    assert named(table) == {field.name for field in dataclasses.fields(Description)}


def test_the_walks_name_things_that_exist():
    text = (DOCS / "engines.md").read_text()
    source = "\n".join(path.read_text() for path in (DOCS.parent / "src").rglob("*.py"))
    for name in set(re.findall(r"`(?:\w+\.)?(_\w+)`", text)):
        assert f"def {name}(" in source, name
    for owner, name in re.findall(r"`([A-Z]\w+)\.(\w+)", text):
        assert re.search(rf"class {owner}\b", source), owner
        assert re.search(rf"^ *(def {name}\(|{name}: )", source, re.MULTILINE), name


def test_the_tests_of_ours_next_to_those_of_peers_are_there():
    text = (DOCS / "structures.md").read_text()
    rows = re.findall(r"^\| .+ \|$", text[text.index("| behaviour | PySyncObj") :], re.MULTILINE)
    assert len(rows) > 50
    listed = {name for row in rows for name in re.findall(r"`(test_\w+)`", row.split("|")[-2])}
    tests = DOCS.parent / "tests"
    places = (*tests.glob("unit/structures/*.py"), *tests.glob("process/*.py"))
    there = {name for p in places for name in re.findall(r"def (test_\w+)", p.read_text())}
    assert listed - there == set()
