"""K and N: keys given out twice, tokens held twice, decisions confirmed too soon."""

import pytest

from roundelay.check import Validity
from roundelay.trace import mini
from roundelay.trace.schema import Row

from .trial import expect, judge, judge_rows, without_gseq

VIOLATED, OK, VACUOUS = Validity.VIOLATED, Validity.OK, Validity.VACUOUS

CASES = [
    ("K1", VIOLATED, "p!a q!b p#a=1 q#b=1"),
    ("K1", VIOLATED, "p!a p#a=1 q#a=1"),
    ("K1", VIOLATED, "p!a p!b p#a=1 p#b=1"),
    ("K1", OK, "p!a q!b p#a=1 q#b=2 p#a=1"),
    ("K1", OK, "p+V1{p} p!a p#a=1 p+V2{p} p!b p#b=1"),  # Another ring.
    ("K1", VACUOUS, "p!a p.a=1"),
    ("K2", VIOLATED, "p!a p#a=1 q#a=2"),
    ("K2", VIOLATED, "p+V1{p} p!a p#a=1 p+V2{p} p#a=1"),
    ("K2", VIOLATED, "p+V1{p} p!a p#a=1 p-a p+V2{p} p!a p#a=1 p#a=2"),
    ("K2", OK, "p!a p!b p#a=1 p#b=2"),
    ("K2", OK, "p+V1{p} p!a p#a=1 p-a p+V2{p} p!a p#a=1"),
    ("K2", VACUOUS, "p!a p.a=1"),
    ("K3", VIOLATED, "p( q( p) q)"),
    ("K3", VIOLATED, "p( p) q( q) p( r( p)"),
    ("K3", OK, "p( p) q( q)"),
    ("K3", OK, "p( pX q( q)"),
    ("K3", OK, "p+V1{p,q} q+V1{p,q} p( p+V2{p,q} q( q)"),
    ("K3", VACUOUS, "p( p)"),
    ("K3", VACUOUS, "p+V1{p} q+V2{q} p( q( p) q)"),  # Two rings.
    ("K4", VIOLATED, "p!a p!b q?a q#a=1 r?b r#b=2"),
    ("K4", VIOLATED, "p!a p!b q?a q#a=1 r?b r#b=2 r?a"),
    ("K4", VIOLATED, "p!a p!b p!c p#a=1 p#b=2 q?a q?c q#c=3"),
    ("K4", OK, "p!a p!b q?a q#a=1 r?a r?b r#b=2"),
    ("K4", VACUOUS, "p!a q#a=1"),
    ("K4", VACUOUS, "p+V1{p} p!a p#a=1 q+V2{q} q!b q#b=2"),
    ("N1", VIOLATED, "p!a p!b p#a=1 p#b=1 p$a=1 p$b=1"),
    ("N1", VIOLATED, "p!a p#a=1 p#a=2 p$a=1 p$a=2"),
    ("N1", OK, "p!a p!b p$a=1 p$b=2 q$a=3 p$a=1"),
    ("N1", OK, "p!a p!b p$a=1.0 p$b=1.1"),
    ("N1", VACUOUS, "p!a p#a=1"),
    ("N2", VIOLATED, "p!a q!b p#a=1 q#b=1 p$a=1 q$b=1"),
    ("N2", VIOLATED, "p!a q!b p$a=1 p$b=2 q$a=1 q$a=2"),
    ("N2", OK, "p!a q!b p$a=1 q$a=1 p$b=2"),
    ("N2", VACUOUS, "p!a q!b p$a=1 q$b=2"),
    ("N3", VIOLATED, "p!a p$a=1"),
    ("N3", VIOLATED, "p!a p#a=2 p$a=1"),
    ("N3", VIOLATED, "p!a p$a=1 q#a=1"),
    ("N3", OK, "p!a q#a=1 p$a=1"),
    ("N3", VACUOUS, "p!a p#a=1"),
    ("N4", VIOLATED, "p!a p#a=1 q$a=1"),
    ("N4", VIOLATED, "p!a q!b p#a=1 q$a=1 q#b=2"),
    ("N4", VIOLATED, "p+V1{p} p!a p#a=1 p!b q+V2{q} q#b=2 p$a=1"),
    ("N4", OK, "p!a q!b p#a=1 q#b=2 q$a=1"),
    ("N4", OK, "p!a q!b p#a=1 q#b=3 q#b=2 q$a=1"),
    ("N4", VACUOUS, "p!a p#a=1"),
]


@pytest.mark.parametrize(("name", "validity", "text"), CASES)
def test_a_verdict(name: str, validity: Validity, text: str):
    verdict = judge(name, text)
    expect(verdict, validity)
    assert bool(verdict.witness) == (validity is VIOLATED)


def emptied(rows: list[Row], kind: str, key: int) -> list[Row]:
    """The rows, of which one assigns or confirms nothing."""
    return [
        row._replace(m_src=None, m_inc=None, m_seq=None)
        if (row.kind, row.k2) == (kind, key)
        else row
        for row in rows
    ]


def test_a_null_acknowledgment_assigns_nothing():
    manifest, rows = mini.parse("p!a p!b p#a=1 q#b=1 q#b=2")
    expect(judge_rows("K1", manifest, rows), VIOLATED)
    expect(judge_rows("K2", manifest, rows), VIOLATED)
    null = [rows[2], *emptied(rows[3:4], "order", 1), rows[4]]
    expect(judge_rows("K1", manifest, null), OK)
    expect(judge_rows("K2", manifest, null), OK)


def test_an_empty_decision_is_forward_evidence_and_needs_none_of_its_own():
    manifest, rows = mini.parse("p!a p!b p#a=1 p#b=2 p$a=1")
    empty = emptied(rows, "order", 2)
    expect(judge_rows("N4", manifest, empty), OK)
    expect(judge_rows("K1", manifest, empty), OK)


def test_confirming_nothing_contradicts_confirming_something():
    manifest, rows = mini.parse("p!a p!b p#a=1 p$a=1 q$b=1 q$a=2")
    empty = emptied(rows, "confirm", 2)
    expect(judge_rows("N1", manifest, empty), OK)
    other = [*empty[:4], emptied(rows[4:5], "confirm", 1)[0]]
    verdict = judge_rows("N2", manifest, other)
    expect(verdict, VIOLATED)
    assert verdict.reason == "p confirms a as 1, q confirms nothing as 1"


def test_who_holds_a_token_when_needs_a_total_order():
    manifest, rows = mini.parse("p( p) q( q)")
    expect(judge_rows("K3", manifest, without_gseq(rows)), Validity.INCONCLUSIVE)
    manifest, rows = mini.parse("p!a p.a")
    expect(judge_rows("K3", manifest, without_gseq(rows)), VACUOUS)


def test_a_token_may_name_its_ring():
    """While a ring forms, its members are still in their old views."""
    manifest, rows = mini.parse("p+V1{p} q+V2{q} p( q(")
    named = [row._replace(k0=5, k1=0) if row.kind == "token" else row for row in rows]
    expect(judge_rows("K3", manifest, rows), VACUOUS)
    expect(judge_rows("K3", manifest, named), VIOLATED)


def test_a_later_decision_elsewhere_counts_unless_it_certainly_came_later():
    manifest, rows = mini.parse("p!a q!b p#a=1 p$a=1 q#b=2")
    expect(judge_rows("N4", manifest, rows), VIOLATED)
    expect(judge_rows("N4", manifest, without_gseq(rows)), OK)
