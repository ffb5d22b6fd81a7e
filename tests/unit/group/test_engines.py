"""Engines are found by name, those of other distributions too, and describe themselves truly."""

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest

from roundelay.check import PROPERTIES
from roundelay.core.contract import Origin
from roundelay.core.description import Description
from roundelay.core.ids import Packet, Service, Span, View, ViewId
from roundelay.group import engines
from roundelay.group.engines import (
    EngineError,
    describe,
    description_of,
    engine_config,
    engine_factory,
    engine_names,
    engines_in_views,
    envelope,
    log_refusal,
    needs_channel,
    without_views,
)
from roundelay.protocols.dtp import cm
from roundelay.protocols.template import TemplateEngine
from roundelay.protocols.totem import TotemEngine
from roundelay.sim.simulation import Simulation, simulation_of

ORIGIN = Origin("g", "b", 0, ViewId(0, "a"))
TEMPLATE = "from roundelay.protocols.template import DESCRIPTION as TEMPLATE\n"


class Outlet:
    """One packet that waits."""

    traced = True

    def __init__(self) -> None:
        self.waiting = 1

    def pull(self) -> Packet | None:
        self.waiting, left = 0, self.waiting
        return Packet(Span("a", 0, 0), Service.AGREED, b"x") if left else None


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Installs distributions with one entry point each: name, value, and a module's text."""
    monkeypatch.syspath_prepend(tmp_path)
    caches = (engines._outside, engines._load_outside, simulation_of)

    def put(distribution: str, name: str, value: str, text: str) -> None:
        module = value.partition(":")[0]
        (tmp_path / f"{module}.py").write_text(text)
        monkeypatch.delitem(sys.modules, module, raising=False)
        info = tmp_path / f"{distribution}-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1\n")
        (info / "entry_points.txt").write_text(f"[{engines.ENTRY_POINTS}]\n{name} = {value}\n")
        for cache in caches:
            cache.cache_clear()

    yield put
    for cache in caches:
        cache.cache_clear()


def outside(name: str, more: str = "") -> str:
    """A module that describes the template under another name."""
    changed = f'name="{name}"{more}'
    return f"import dataclasses\n{TEMPLATE}DESCRIPTION = dataclasses.replace(TEMPLATE, {changed})\n"


@pytest.mark.parametrize("name", engine_names())
def test_a_description_is_true(name):
    description = describe(name)
    assert description.name == name
    assert description_of(description.engine) is description
    fields = {field.name for field in dataclasses.fields(description.config)}
    assert {*description.shared_options} <= fields
    assert description.alarm in fields or description.static_only
    assert set(description.data_tags) <= set(description.engine.codec.tags.values())
    promises = description.promises
    named = promises.static.names | promises.in_views.names | set(promises.envelope.split())
    assert named <= PROPERTIES.keys()
    assert ("resilience" in fields) is promises.resilient
    assert {*description.envelope_options} <= fields
    assert "rules" in fields or not description.static_rules
    needed = dict(option.split("=") for option in description.channel_options)
    assert needed.keys() <= fields
    if needed:
        engine_config(name, needed)
    for rules in description.static_rules:
        engine_config(name, {"rules": rules} | (needed if "rules" in needed else {}))
    assert isinstance(simulation_of(name), Simulation)


@pytest.mark.parametrize(
    ("name", "options", "why"),
    [
        ("totem", {}, ""),
        ("template", {}, "template runs on static groups only"),
        ("dtp", {"rules": "paper"}, ""),
        ("fc", {}, ""),
        ("fc", {"rules": "safe"}, ""),
        ("fc", {"rules": "paper"}, "fc with rules=paper runs on static groups only"),
        ("st", {"medium": "channel"}, ""),
        ("st", {"rules": "paper"}, "st with rules=paper runs on static groups only"),
        ("fc", {"rules": "link"}, "fc with rules=link runs on static groups only"),
    ],
)
def test_what_cannot_run_with_views_says_so(name, options, why):
    assert without_views(name, options) == why


@pytest.mark.parametrize(
    ("name", "options", "why"),
    [
        ("totem", {}, ""),
        ("st", {}, ""),
        ("st", {"medium": "reflector", "rules": "safe"}, ""),
        ("st", {"medium": "channel"}, "st with medium=channel needs a network that is one channel"),
        ("st", {"rules": "paper"}, "st with rules=paper needs a network that is one channel"),
    ],
)
def test_what_needs_a_channel_says_so(name, options, why):
    assert needs_channel(name, options) == why


def test_an_envelope_is_what_the_options_say():
    assert envelope("fc") == {"k": 1}
    assert envelope("fc", {"rules": "paper", "k": "2"}) == {"k": 2}
    assert envelope("dtp", {"rules": "paper"}) == {}


@pytest.mark.parametrize("name", engine_names())
def test_packets_in_counts_what_data_frames_bring(name):
    """Until an engine has sent its packet, frames without one bring none."""
    description = describe(name)
    view = View(ViewId(0, "a"), ("a", "b"))
    both = [engine_factory(name)(node, Outlet()) for node in view.members]
    sent = [e.message for one in both for e in one.start(view) if hasattr(e, "message")]
    codec = both[0].codec
    counted = {codec.tags[codec.encode(m)[0]]: description.packets_in(m) for m in sent}
    assert {tag for tag, count in counted.items() if count} == set(description.data_tags)


def test_names_are_listed_without_loading_engines():
    code = (
        "import sys; from roundelay.group.engines import engine_names; names = engine_names();"
        "print(*names, '-', *[m for m in sys.modules if m.startswith('roundelay.protocols.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names, _, modules = done.stdout.strip().partition(" - ")
    assert {"cm", "dtp", "fifo", "pinwheel", "template", "totem"} <= set(names.split())
    packages = ("atop", "dtp", "fc", "st")
    assert modules.split() == [f"roundelay.protocols.{package}" for package in packages]


def test_an_engine_is_known_by_its_class_and_by_what_that_inherits_from():
    class Wrong(TotemEngine):
        """As tests make them."""

    assert description_of(Wrong) is describe("totem")
    assert description_of(cm.Engine) is describe("cm")
    # The simulator finds in this way what watches an engine.
    assert description_of(type(engine_factory("st")("a", Outlet()))) is describe("st")
    assert description_of(Path) is None


def test_an_unknown_engine_is_told_what_there_is():
    with pytest.raises(EngineError, match=r"no engine is called 'paxos'; there are: .*totem"):
        describe("paxos")


def test_an_entry_point_adds_an_engine(install):
    install("mine", "early", "early_engine:DESCRIPTION", outside("early"))
    install("yours", "late", "late_engine", outside("late", ", static_only=False"))
    assert {"early", "late", "totem"} <= set(engine_names())
    assert describe("early").engine is describe("late").engine is TemplateEngine
    assert "late" in engines_in_views()
    assert "early" not in engines_in_views()
    assert isinstance(
        engine_factory("early", {"memory_packets": "7"})("a", Outlet()), TemplateEngine
    )


@pytest.mark.parametrize(
    ("value", "text", "says"),
    [
        ("e", "import nothing_of_that_name", "'odd' of the package mine cannot be loaded from e:"),
        ("e:GONE", "", "cannot be loaded from e:GONE: AttributeError"),
        ("e", "", "is no engine: e is no Description and has no DESCRIPTION"),
        ("e:x", "x = 5", "is no engine: e:x is no Description"),
        ("e", outside("even"), "is called 'even' in its description"),
    ],
)
def test_an_entry_point_that_is_no_engine_says_so(install, value, text, says):
    install("mine", "odd", value, text)
    with pytest.raises(EngineError, match=says):
        describe("odd")
    assert "odd" in engine_names()
    assert "odd" not in engines_in_views()
    assert "totem" in engines_in_views()


def test_a_name_is_one_engines(install):
    install("mine", "totem", "mine_totem", outside("totem"))
    with pytest.raises(
        EngineError, match="package mine adds an engine called 'totem', but Roundel"
    ):
        describe("totem")
    install("one", "twin", "twin_one", outside("twin"))
    install("two", "twin", "twin_two", outside("twin"))
    with pytest.raises(
        EngineError, match=r"package one and .*two both add an engine called 'twin'"
    ):
        describe("twin")


def test_a_simulation_that_cannot_be_used_says_so(install):
    install("mine", "lost", "lost_engine", outside("lost", ', simulation="no_such_module"'))
    with pytest.raises(EngineError, match=r"'lost' names the module no_such_module .* imported"):
        simulation_of("lost")
    install("yours", "bare", "bare_engine", outside("bare", ', simulation="bare_engine"'))
    with pytest.raises(EngineError, match="bare_engine for the simulator, which has no SIMULATION"):
        simulation_of("bare")


def test_an_engine_without_a_simulation_has_what_every_engine_has():
    simulation = simulation_of("template")
    assert simulation.carriers == ("DATA",)
    assert simulation.watch is None
    assert not simulation.goals


def test_a_description_has_values_that_can_be_replaced():
    changed = dataclasses.replace(describe("template"), name="other")
    assert isinstance(changed, Description)
    assert changed.name == "other"


def test_engines_that_put_all_into_one_order_within_a_view_carry_a_log():
    carriers = {name for name in engines_in_views() if log_refusal(name) is None}
    assert {"totem", "pinwheel", "dtp", "cm"} <= carriers
    assert carriers.isdisjoint({"fifo", "causal", "st", "atop", "allack"})


def test_an_engine_that_cannot_carry_a_log_is_refused_with_what_to_use():
    why = log_refusal("fifo")
    assert why is not None
    assert why.startswith(
        "the engine 'fifo' cannot carry a log: its members need not deliver in one order "
        "(property O6); use cm, dtp, "
    )
    assert why.endswith(", or leave out journal")


def test_an_engine_without_views_carries_no_log():
    assert "static groups only" in (log_refusal("fc", {"rules": "paper"}) or "")
    assert "static groups only" in (log_refusal("template") or "")
