"""S: claims and safe deliveries that rest on nothing, and some that do rest on something."""

import pytest

from roundelay.check import Validity
from roundelay.trace import mini

from .trial import expect, judge, judge_rows, without_gseq

VIOLATED, OK, VACUOUS = Validity.VIOLATED, Validity.OK, Validity.VACUOUS

CASES = [
    ("S1", VIOLATED, "p+V1{p,q} q+V1{p,q} p!a p*a"),
    ("S1", VIOLATED, "p!a q?a p*a r?a"),
    ("S1", VIOLATED, "p!a{q,r} q?a p*a"),
    ("S1", OK, "p!a q?a p*a"),
    ("S1", OK, "p!a q.a p*a"),  # Who delivers it has it.
    ("S1", OK, "p!a{q} q?a p*a r?b"),
    ("S1", OK, "p+V1{p,q} q+V1{p,q} p!a p~T2{p} p*a"),
    ("S1", VACUOUS, "p!a q?a p.a"),
    ("S1", VACUOUS, "p!a p*a:2"),
    ("S1d", VIOLATED, "p!a p.a q?a p*a:2"),
    ("S1d", VIOLATED, "p!a p.a p*a:2 q.a"),
    ("S1d", OK, "p!a p.a q.a p*a:2"),
    ("S1d", OK, "p!a{q} q.a q*a:2"),
    ("S1d", VACUOUS, "p!a p.a q?a p*a"),
    ("S2", VIOLATED, "p+V1{p,q} p!a/s q?a p.a"),
    ("S2", VIOLATED, "p+V1{p,q} p!a/s q?a p.a q+V1{p,q}"),
    ("S2", OK, "p+V1{p,q} q+V1{p,q} p!a/s q?a p.a"),
    ("S2", VACUOUS, "p+V1{p,q} p!a q?a p.a"),
    ("S2", VACUOUS, "p+V1{p,q} p!a/s p~T2{p} p.a"),
    ("S2", VACUOUS, "p!a/s p.a"),
    ("S3", VIOLATED, "p+V1{p,q} q+V1{p,q} p!a/s q?a p.a q~T2{q} q+V3{q}"),
    ("S3", VIOLATED, "p+V1{p,q} q+V1{p,q} p!a/s q?a p.a q~T2{q} q+V3{q} q.a"),
    ("S3", VIOLATED, "p+V1{p,q} q+V1{p,q} p!a/s p~T2{p,q} q~T2{p,q} p.a q+V3{q}"),
    ("S3", OK, "p+V1{p,q} q+V1{p,q} p!a/s q?a p.a q~T2{q} q.a q+V3{q}"),
    ("S3", OK, "p+V1{p,q} q+V1{p,q} p!a/s{p} p.a p~T2{p} p+V3{p} q~T4{q} q+V5{q}"),
    ("S3", VACUOUS, "p+V1{p,q} q+V1{p,q} p!a/s q?a p.a qX q^1 q+V3{q}"),
    ("S3", VACUOUS, "p+V1{p,q} q+V1{p,q} p!a/s q?a p.a"),
    ("S3", VACUOUS, "p+V1{p,q} q+V1{p,q} p!a p.a q~T2{q} q+V3{q}"),
    ("S4", VIOLATED, "p+V1{p,q} q+V1{p,q} p!a/s p.a"),
    ("S4", VIOLATED, "p!a/s q?a p.a r?a"),
    ("S4", OK, "p!a/s q?a p.a q.a"),
    ("S4", OK, "p+V1{p,q} q+V1{p,q} p!a/s p~T2{p} p.a"),
    ("S4", VACUOUS, "p+V1{p,q} q+V1{p,q} p!a p.a"),
    ("S5", VIOLATED, "p!a p!b p.a p.b q?a q?b p*b"),
    ("S5", VIOLATED, "p!a p!b p!c p.a p.b p.c p*a p*c"),
    ("S5", VIOLATED, "p!a p!b p.a p.b p*a p*b p*b:2"),
    ("S5", OK, "p!a p!b p.a p.b p*a p*b p*a"),
    ("S5", OK, "p+V1{p} p!a p.a p~T2{p} p!b p.b p*b"),  # A view begins anew.
    ("S5", OK, "p!a p*a p.a"),
    ("S5", VACUOUS, "p!a q.a p*a"),
    ("S7", VIOLATED, "p!a{q,r} q?a r?a q*a q*a:2 q.a r*a"),
    ("S7", VIOLATED, "p!a{q,r} q?a q*a r?a r*a"),
    ("S7", VIOLATED, "p!a{q,r} q?a r?a q*a q*a:2"),
    ("S7", VIOLATED, "p!b{q} q?b q*b p!a{q,r} q?a q.a r?a"),  # Nobody claims a.
    ("S7", VIOLATED, "p!b{q} q?b q*b p!a{q,r} q?a q.a"),
    ("S7", VIOLATED, "p+V1{p,q} q+V1{p,q} p!b{p} p*b p!a p.a"),
    ("S7", OK, "p!a{q,r} q?a r?a q*a r*a q*a:2 q.a r*a:2 r.a"),
    # The end of a recovery delivers on level 1, or on no claim at all.
    ("S7", OK, "p!a{q,r} q?a r?a q*a r*a q.a q*a:2"),
    ("S7", OK, "p!a{q,r} q?a r?a q*a r*a q*a:2 q.a r.a"),
    ("S7", OK, "p!a{q,r} q?a r?a q*a q.a r.a"),
    # Only those who are in the view have to have it.
    ("S7", OK, "p+V1{p,q} q+V1{p,q} r+V1{r} p!a{p,r} p*a p*a:2 p.a"),
    ("S7", OK, "p+V1{p,q} q+V1{p,q} p!b{p} p*b p!a p~T2{p} p.a"),
    ("S7", VACUOUS, "p!a{q,r} q?a q.a r.a"),
]


@pytest.mark.parametrize(("name", "validity", "text"), CASES)
def test_a_verdict(name: str, validity: Validity, text: str):
    verdict = judge(name, text)
    expect(verdict, validity)
    assert bool(verdict.witness) == (validity is VIOLATED)


@pytest.mark.parametrize(
    ("validity", "resilience", "text"),
    [
        (VIOLATED, 1, "p!a p.a q?a"),
        (VIOLATED, 2, "p!a q?a p.a r?a"),
        (OK, 0, "p!a p.a q?a"),
        (OK, 1, "p!a q.a"),
        (OK, 2, "p+V1{p,q} q+V1{p,q} r+V2{r} p!a q?a p.a"),  # The view has no more.
        (VACUOUS, 1, "p!a q?a"),
        (VACUOUS, 1, "p+V1{p,q} q+V1{p,q} p!a p~T2{p} p.a"),
        (Validity.INCONCLUSIVE, None, "p!a q?a p.a"),
    ],
)
def test_resilience(validity: Validity, resilience: int | None, text: str):
    expect(judge("S6", text, resilience), validity)


def test_a_reason_names_who_lacks_what():
    assert judge("S1", "p!a q?a p*a r?a").reason == (
        "p claims that all have received a, r did so only later"
    )
    assert judge("S6", "p!a q?a p.a r?a", 2).reason == (
        "p delivers a when only p,q had it; F = 2 demands 3"
    )
    assert judge("S7", "p!a{q,r} q?a r?a q*a q*a:2").reason == (
        "q claims that all have claimed a, r never did"
    )
    assert judge("S7", "p!b{p} p*b p!a{q,r} q?a q.a r?a").reason == (
        "q delivers a, which all must have received, r did so only later"
    )


@pytest.mark.parametrize("name", ["S1", "S4", "S7"])
def test_without_a_total_order_doubt_speaks_for_the_node(name: str):
    """q may have received a in time, as far as anybody can tell; r never did."""
    text = {"S1": "p!a p*a q?a", "S4": "p!a/s p.a q?a", "S7": "p!b{p} p*b p!a p.a q?a"}[name]
    manifest, rows = mini.parse(text)
    expect(judge_rows(name, manifest, rows), VIOLATED)
    expect(judge_rows(name, manifest, without_gseq(rows)), OK)
    manifest, rows = mini.parse(text + " r?b")
    expect(judge_rows(name, manifest, without_gseq(rows)), VIOLATED)


def test_without_a_total_order_frames_remove_the_doubt():
    """p's claim went out in a frame, and q received a only after that frame had arrived."""
    manifest, rows = mini.parse("p!a p*a p( q( q?a")
    rows = [
        row._replace(kind=("send", "arrive")[row.proc], layer="net", pkt=1)
        if row.kind == "token"
        else row
        for row in without_gseq(rows)
    ]
    expect(judge_rows("S1", manifest, rows), VIOLATED)
