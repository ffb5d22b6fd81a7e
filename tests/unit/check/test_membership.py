"""M: views that nodes may not install so."""

import pytest

from roundelay.check import Validity
from roundelay.trace import mini

from .trial import expect, judge, judge_rows, without_gseq

SPLIT_AND_MERGE = (
    "p+V1{p,q,r} q+V1{p,q,r} r+V1{p,q,r} "
    "p~T4{p} p+V5{p} q~T8{q,r} r~T8{q,r} q+V9{q,r} r+V9{q,r} "
    "p~T12{p} q~T13{q,r} r~T13{q,r} p+V14{p,q,r} q+V14{p,q,r} r+V14{p,q,r}"
)
"""A partition and its end; nothing is wrong with it."""

CRASH = "p+V1{p,q} q+V1{p,q} pX q~T2{q} q+V3{q} p^1 p+V4{p} p~T5{p} q~T6{q} p+V7{p,q} q+V7{p,q}"
"""A restart, and a merge with the node that had gone on."""


@pytest.mark.parametrize("name", ["M1", "M2", "M4", "M6", "M7", "M8", "M9"])
def test_a_partition_that_heals_is_fine(name: str):
    expect(judge(name, SPLIT_AND_MERGE), Validity.OK)


@pytest.mark.parametrize("name", ["M1", "M2", "M4", "M5", "M6", "M7"])
def test_a_restart_is_fine(name: str):
    expect(judge(name, CRASH), Validity.OK)


def test_m3_ok():
    expect(judge("M3", "p+V1{p} p!a p.a p*a"), Validity.OK)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("M1", "p!a p.a"),
        ("M2", "p+V1{p} q+V1{q}"),
        ("M3", "p!a p.a"),
        ("M4", "p!a"),
        ("M5", "p+V1{p} pX"),
        ("M6", "p+V1{p,q} q+V1{p,q}"),
        ("M7", "p+V1{p,q} p~T2{p}"),
        ("M8", "p+V1{p} p~T2{p} p+V3{p}"),
        ("M9", "p+V1{p} p+V2{p} q+V3{q}"),
    ],
)
def test_vacuous(name: str, text: str):
    expect(judge(name, text), Validity.VACUOUS)


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("M1", "p+V1{p} p~T2{q}", "p installs T2{q} without being in it"),
        ("M2", "p+V5{p} pX p^9 p+V4{p}", "p installs R4 after R5"),
        ("M2", "p+V5{p} p~T5{p}", "p installs T5 after R5"),
        ("M3", "p+V1{p} p!a pX p^1 p.a", "p has no view yet, but a row `deliver` for a"),
        ("M3", "q+V1{q} p!a", "p has no view yet, but a row `originate` for a"),
        (
            "M4",
            "p+V1{p} q~T1{p}",
            "p and q install two views under one identifier: R1{p} and T1{p}",
        ),
        (
            "M5",
            "p+V3{p} pX p^4 p+V4{p}",
            "p recovers with view number 4 and installs R4, which is no greater",
        ),
        ("M6", "p~T1{p}", "p begins with the transitional view T1{p}"),
        ("M6", "p+V1{p} pX p^ p~T2{p}", "p begins with the transitional view T2{p}"),
        (
            "M6",
            "p+V1{p} p~T2{p} p~T3{p}",
            "p installs two transitional views in a row: T2{p} and T3{p}",
        ),
        ("M6", "p+V1{p} p~T2{p,q}", "p has T2{p,q} next to R1{p}, which lacks some"),
        (
            "M6",
            "p+V1{p,q} p~T2{p,q} p+V3{p}",
            "p has T2{p,q} next to R3{p}, which lacks some",
        ),
        (
            "M7",
            "p+V1{p,q} q+V1{p,q} p~T4{p,q} q~T2{q} q+V3{q} q~T4{q} p+V5{p,q} q+V5{p,q}",
            "p goes from R1 through T4{p,q} to R5, and q, in it, comes there from R3",
        ),
        (
            "M7",
            "p+V1{p,q} p~T4{p,q} p+V5{p,q} q+V5{p,q}",
            "p goes from R1 through T4{p,q} to R5, and q, in it, comes there from nowhere",
        ),
        (
            "M8",
            "p+V1{p,q} q+V1{p,q} p~T2{p,q} p+V3{p,q} q+V3{p,q}",
            "p and q both go from R1 to R3, one through T2{p,q}, one through nothing",
        ),
    ],
)
def test_planted_faults(name: str, text: str, reason: str):
    verdict = judge(name, text)
    assert verdict.reason == reason
    expect(verdict, Validity.VIOLATED)
    manifest, _ = mini.parse(text)
    again = judge_rows(name, manifest, list(verdict.witness))
    expect(again, Validity.VIOLATED)
    assert again.reason == reason


LOST = "p+V5{p} pX p^- p+V4{p}"


@pytest.mark.parametrize("name", ["M2", "M5"])
def test_a_life_that_lost_its_storage_is_not_held_to_the_one_before(name: str):
    expect(judge(name, LOST), Validity.VACUOUS)
    expect(judge(name, f"{LOST} p~T6{{p}} pX p^4 p+V3{{p}}"), Validity.VIOLATED)


@pytest.mark.parametrize("name", ["M2", "M5"])
@pytest.mark.parametrize("level", [None, 0, 1])
def test_real_nodes_are_held_to_an_earlier_life_only_if_they_kept_their_state(
    name: str, level: int | None
):
    manifest, rows = mini.parse("p+V5{p} pX p^3 p+V4{p}")
    rows = [row._replace(level=level) if row.kind == "recover" else row for row in rows]
    expect(judge_rows(name, manifest, rows), Validity.VACUOUS if level == 0 else Validity.VIOLATED)
    real = judge_rows(name, manifest, without_gseq(rows))
    expect(real, Validity.VIOLATED if level else Validity.VACUOUS)


def test_m5_cannot_judge_a_recovery_that_does_not_tell_its_number():
    expect(judge("M5", "p+V3{p} pX p^ p+V4{p}"), Validity.VACUOUS)


def test_m9_a_node_that_went_elsewhere_in_between():
    verdict = judge("M9", "p+V1{p,q} q+V1{p,q} q+V2{q} p+V3{p,q} q+V3{p,q}")
    assert verdict.reason == "q was in R1{p,q} and comes to R3 from R2, not from there as p does"


@pytest.mark.parametrize("name", ["M1", "M2", "M4", "M6", "M7", "M8", "M9"])
def test_no_total_order_is_needed(name: str):
    manifest, rows = mini.parse(SPLIT_AND_MERGE)
    expect(judge_rows(name, manifest, without_gseq(rows)), Validity.OK)
