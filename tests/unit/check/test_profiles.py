"""Who is held to what."""

import dataclasses
import itertools

import pytest

from roundelay.check import PROPERTIES, Standing, profile, profile_of
from roundelay.check.profiles import MODES, RULES, VIEW_SYNCHRONY, protocol_names
from roundelay.core.description import OneOrder
from roundelay.group.engines import describe, engine_names
from roundelay.trace.manifest import Manifest


def names(*args: object, **kwargs: object) -> set[str]:
    return {entry.property for entry in profile(*args, **kwargs).entries}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("protocol", "rules", "mode"), list(itertools.product(protocol_names(), RULES, MODES))
)
def test_every_profile_is_of_known_properties(protocol: str, rules: str, mode: str):
    for resilience in (None, 0, 2):
        held = profile(protocol, rules, resilience, mode, nodes=3)
        listed = [entry.property for entry in held.entries]
        assert set(listed) <= PROPERTIES.keys()
        assert len(set(listed)) == len(listed)
        assert {"T1", "T2", "T3", "T4", "D1", "D2", "D11"} <= set(listed)
        assert set(held.envelope) <= set(listed)
        assert listed[:4] == ["T1", "T2", "T3", "T4"]


@pytest.mark.parametrize("protocol", sorted({*protocol_names()} - {"vs", "template"}))
def test_every_engine_is_held_to_the_view_properties_where_there_are_views(protocol: str):
    views = names(protocol, mode="views", nodes=3)
    assert {f"M{n}" for n in (1, 2, 3, 4, 5, 6, 7, 8, 10)} <= views
    assert {"D3", "D4e", "D5", "D6", "D7", "L2", "L3"} <= views
    alone = names(protocol, mode="static", nodes=3)
    assert not alone & {"M1", "M6", "D7", "O8", "L2", "L3"}


def test_optional_properties_may_fail():
    assert profile("vs", mode="views").standing("M10") is Standing.OPTIONAL
    held = profile("totem", mode="views", nodes=3)
    assert held.standing("M10") is Standing.PROMISED
    assert held.standing("O5") is Standing.PROMISED
    assert held.standing("O11") is Standing.DERIVED


@pytest.mark.parametrize(
    ("resilience", "nodes", "everywhere"),
    [(0, 5, False), (1, 5, False), (2, 5, True), (4, 5, True), (1, 3, True), (None, 3, False)],
)
@pytest.mark.parametrize("protocol", ["dtp", "cm", "pinwheel"])
def test_one_order_across_partitions_takes_resilience(
    protocol: str, resilience: int | None, nodes: int, everywhere: bool
):
    held = names(protocol, "safe", resilience, "views", nodes)
    assert ("O5" in held) is ("O5p" in held) is everywhere
    assert ("O5w" in held) is not everywhere
    assert ("O3f" in held) is everywhere
    assert "O5" in names(protocol, "safe", resilience, "static", nodes)


def test_safe_messages_are_safe_whatever_the_resilience():
    for resilience in (None, 0, 2):
        assert "S4" in names("dtp", "safe", resilience, "static", 3)
        assert {"S2", "S4"} <= names("dtp", "safe", resilience, "views", 3)
    assert "S4" in names("totem")


def test_only_the_papers_have_envelopes():
    for protocol, rules, mode in itertools.product(protocol_names(), RULES, MODES):
        envelope = profile(protocol, rules, None, mode, 3).envelope
        if rules == "safe" or mode == "views":
            assert envelope == ()
    assert profile("fc", "link").envelope == ("E2",)
    assert profile("dtp", "paper").envelope == ("E3",)
    assert profile("st", "paper").envelope == ("E1", "E4")
    assert profile("totem", "paper").envelope == ()


def test_forward_evidence_is_of_the_paper_and_uniformity_of_the_repair():
    for mode in MODES:
        assert "N4" in names("fc", "paper", mode=mode)
        assert "N4" in names("fc", "link", mode=mode)
        assert "N4" not in names("fc", "safe", mode=mode)
        assert "D8u" in names("fc", "safe", mode=mode)
        assert "D8u" not in names("fc", "paper", mode=mode)
        assert {"N1", "N2", "N3"} <= names("fc", mode=mode)
        assert {"O2", "O2r", "O9"} <= names("fc", "safe", mode=mode)
        assert not names("fc", "paper", mode=mode) & {"O2", "O2r", "O9"}
        assert not names("fc", "link", mode=mode) & {"O2", "O2r", "O9"}


@pytest.mark.parametrize("rules", RULES)
def test_only_what_is_confirmed_has_one_order_across_partitions(rules: str):
    """The keys of `fc` are the same on all sides, the order of what has none is not."""
    alone, views = names("fc", rules), names("fc", rules, mode="views")
    everywhere = {"O3f", "O3i", "O4", "O6", "O10", "O1", "O1r", "N1", "N2", "N3", "S4"}
    assert everywhere <= alone & views
    assert {"O5", "O5p"} <= alone
    assert not views & {"O5", "O5p"}
    assert "O5w" in views - alone
    assert {"S2", "S3"} <= views - alone


def test_the_order_of_st_is_one_on_static_groups_only():
    assert {"O5", "O5p", "O2"} <= names("st")
    assert "O2" not in names("st", "paper")
    views = names("st", mode="views")
    assert {"O2", "O5w"} <= views
    assert not views & {"O5", "O5p"}


@pytest.mark.parametrize("rules", ["safe", "paper"])
@pytest.mark.parametrize("mode", MODES)
def test_st_promises_messages_to_whom_they_are_for(rules: str, mode: str):
    held = names("st", rules, mode=mode)
    assert {"D8", "D9", "D10", "O1", "O1r", "S1", "S4", "S7", "L1", "L4"} <= held
    assert {"S2", "S3"} & held == ({"S2", "S3"} if mode == "views" else set())
    # A static group stands still after a crash, whoever had delivered what.
    assert "D8u" not in held
    assert profile("st", "safe", mode=mode).standing("O2") is Standing.DERIVED


@pytest.mark.parametrize("engine", engine_names())
def test_an_engine_is_held_to_all_that_its_description_promises(engine):
    promises = describe(engine).promises
    assert engine != VIEW_SYNCHRONY
    assert promises.static.names <= names(engine)
    if promises.one_order is OneOrder.ALWAYS:
        assert promises.static.names | promises.in_views.names <= names(engine, mode="views")


def test_a_run_with_a_log_is_held_to_what_logs_promise():
    of_log = {*(f"J{n}" for n in range(1, 13)), "H1", "H2", "H3", "H4", "L8", "L9"}
    for protocol in ("totem", "dtp"):
        alone = profile(protocol, mode="views", nodes=3)
        held = profile(protocol, mode="views", nodes=3, log=True)
        assert {e.property for e in held.entries} - {e.property for e in alone.entries} == of_log
        assert held.standing("H1") is Standing.OPTIONAL
        promised = of_log - {"H1"} | {"M10"}
        assert {held.standing(name) for name in promised} == {Standing.PROMISED}
        assert (alone.name, held.name) == (f"{protocol} safe views", f"{protocol} safe views log")


def test_a_manifest_with_a_policy_is_of_a_run_with_a_log():
    manifest = Manifest("r", ("a", "b"), protocol="totem", mode="views")
    assert not any(e.property.startswith("J") for e in profile_of(manifest).entries)
    logged = dataclasses.replace(manifest, fsync="interval")
    assert "J8" in {e.property for e in profile_of(logged).entries}


def test_what_is_not_promised_is_not_checked():
    for mode in MODES:
        assert not names("causal", mode=mode) & {"O5", "O5p", "O5w", "O6", "O4"}
        assert {"O1r", "O2r"} <= names("causal", mode=mode)
        assert not names("fifo", mode=mode) & {"O2", "O2r", "O5", "O5p", "O5w", "O6"}
        assert not names("atop", mode=mode) & {"O2r", "O6", "O10", "K1"}
        assert not names("fc", mode=mode) & {"K1", "K2", "K3", "S1", "L1", "L4"}
        assert not names("st", mode=mode) & {"O6", "O3f", "O4", "K1"}
        assert not names("totem", mode=mode) & {"K4", "S6"}
    assert "D7" not in names("vs", mode="views")
    assert {"D1", "D2", "D8", "D11", "O1", "O5p", "O5", "O6", "L1"} <= names("template")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("raft",), "there is no protocol 'raft'; choose one of allack, atop, causal, cm"),
        (("dtp", "strict"), "there is no rules 'strict'; choose one of safe, paper, link"),
        (("dtp", "safe", None, "ring"), "there is no mode 'ring'; choose one of static, views"),
    ],
)
def test_unknown_names(arguments: tuple[str, ...], message: str):
    with pytest.raises(ValueError, match=message):
        profile(*arguments)  # type: ignore[arg-type]
