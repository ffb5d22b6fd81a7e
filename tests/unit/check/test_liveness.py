"""L: what is owed at a quiet end, and when nothing is owed yet."""

from dataclasses import replace

import pytest

from roundelay.check import Validity, Verdict, check
from roundelay.core.effects import Kind
from roundelay.trace import mini
from roundelay.trace.schema import WORLD, Row

from .trial import expect, judge, judge_rows, without_gseq

VIOLATED, OK, VACUOUS = Validity.VIOLATED, Validity.OK, Validity.VACUOUS
INCONCLUSIVE = Validity.INCONCLUSIVE

CASES = [
    ("L1", VIOLATED, "p+V1{p,q} q+V1{p,q} p!a p.a end{p,q}"),
    ("L1", VIOLATED, "p+V1{p,q} q+V1{p,q} p!a p-a p+V2{p,q} q+V2{p,q} p!a p.a end{p,q}"),
    ("L1", VIOLATED, "p!a{q,r} q.a end{p,q,r}"),
    ("L1", OK, "p!a p.a q.a end{p,q}"),
    ("L1", OK, "p!a{q} q.a end{p,q}"),
    ("L1", OK, "p+V1{p,q} q+V1{p,q} p!a p+V2{p} q+V3{q} p!b p.b end{p}{q}"),
    ("L1", VACUOUS, "p+V1{p,q} q+V1{p,q} p!a p-a end{p,q}"),
    ("L1", VACUOUS, "p!a pX end{q}"),
    ("L1", INCONCLUSIVE, "p!a p.a q.a"),
    ("L2", VIOLATED, "p+V1{p} q+V2{q} end{p,q}"),
    ("L2", VIOLATED, "p+V1{p,q} q+V2{p,q} end{p,q}"),
    ("L2", VIOLATED, "p+V1{p,q} q+V1{p,q} p~T2{p,q} q~T2{p,q} end{p,q}"),
    ("L2", VIOLATED, "p+V1{p,q} q+V1{p,q} qX q^1 end{p,q}"),
    ("L2", OK, "p+V1{p,q} q+V1{p,q} p+V2{p} q+V3{q} end{p}{q}"),
    ("L2", VACUOUS, "p!a end{p,q}"),
    ("L2", INCONCLUSIVE, "p+V1{p} q+V2{q}"),
    ("L3", VIOLATED, "p+V1{p,q} q+V1{p,q} qX end{p}"),
    ("L3", VIOLATED, "p+V1{p,q} q+V1{p,q} qX q^1 q+V2{q} end{p,q}"),
    ("L3", VIOLATED, "p+V1{p,q} q+V1{p,q} q+V2{q} end{p}{q}"),
    ("L3", OK, "p+V1{p,q} q+V1{p,q} qX p~T2{p} p+V3{p} end{p}"),
    ("L3", VACUOUS, "p+V1{p,q} q+V1{p,q} end{p,q}"),
    ("L3", VACUOUS, "p!a qX end{p}"),
    ("L3", INCONCLUSIVE, "p+V1{p,q} q+V1{p,q} qX"),
    ("L4", VIOLATED, "p!a q?a p.a q.a p*a end{p,q}"),
    ("L4", VIOLATED, "p!a p!b p*a q*a end{p,q}"),
    ("L4", OK, "p!a p*a q*a:2 end{p,q}"),
    ("L4", OK, "p!a{q} q*a end{p,q}"),
    ("L4", VACUOUS, "p!a p.a q.a end{p,q}"),  # A protocol that never claims stability.
    ("L4", INCONCLUSIVE, "p!a p*a"),
    ("L6", VIOLATED, "p!a p#a=1 p$a=1 end{p,q}"),
    ("L6", VIOLATED, "p!a p$a=1 q$a=1 p$a=2 end{p,q}"),
    ("L6", VIOLATED, "p!a q!b p#a=1 q#b=1 p$b=1 q$b=1 end{p,q}"),  # a was never decided again.
    ("L6", OK, "p!a q!b p#a=1 q#b=1 q#a=2 p$b=1 q$b=1 p$a=2 q$a=2 end{p,q}"),
    ("L6", VACUOUS, "p!a pX end{q}"),
    ("L6", INCONCLUSIVE, "p!a p#a=1"),
]


@pytest.mark.parametrize(("name", "validity", "text"), CASES)
def test_a_verdict(name: str, validity: Validity, text: str):
    verdict = judge(name, text)
    expect(verdict, validity)
    assert bool(verdict.witness) == (validity is VIOLATED)


@pytest.mark.parametrize(("name", "validity", "text"), CASES)
def test_no_verdict_needs_a_total_order(name: str, validity: Validity, text: str):
    manifest, rows = mini.parse(text)
    expect(judge_rows(name, manifest, without_gseq(rows)), validity)


def fault(tag: str, time: int) -> Row:
    """Something done to the run after `time` events."""
    return Row(Kind.FAULT, WORLD, 0, 100 + time, time, time * 1000, tag=tag)


SHORT = "p!a p.a q?a q?a q?a q?a end{p,q}"


@pytest.mark.parametrize(
    ("validity", "faults", "bound_ns"),
    [
        (VIOLATED, [], None),
        (VIOLATED, [], 1_000_000),
        (VIOLATED, [("partition", 1), ("heal", 2)], None),
        (VIOLATED, [("partition", 1), ("heal", 2)], 4_000),
        (INCONCLUSIVE, [("partition", 1), ("heal", 2)], 4_001),
        (INCONCLUSIVE, [("partition", 1)], None),
        (INCONCLUSIVE, [("heal", 1), ("crash", 2)], None),
    ],
)
def test_nothing_is_owed_before_the_bound(
    validity: Validity, faults: list[tuple[str, int]], bound_ns: int | None
):
    manifest, rows = mini.parse(SHORT)
    manifest = replace(manifest, bound_ns=bound_ns)
    rows += [fault(tag, time) for tag, time in faults]
    expect(judge_rows("L1", manifest, rows), validity)


def two_layers(text: str) -> list[Row]:
    """Receive rows become deliveries of the layer below."""
    _, rows = mini.parse(text)
    return [
        row._replace(kind=Kind.DELIVER, layer="vs") if row.kind == Kind.RECEIVE else row
        for row in rows
    ]


@pytest.mark.parametrize(
    ("validity", "text"),
    [
        (VIOLATED, "p+V1{p,q} q+V1{p,q} p!a q?a q+V2{q}"),
        (VIOLATED, "p+V1{p,q} q+V1{p,q} p!a q?a q+V2{q} q.a"),
        (OK, "p+V1{p,q} q+V1{p,q} p!a q?a q.a q+V2{q}"),
        (OK, "p+V1{p,q} q+V1{p,q} p!a q?a q~T2{q} q.a q+V3{q}"),
        (VACUOUS, "p+V1{p,q} q+V1{p,q} p!a p.a q?a qX"),
        (VACUOUS, "p+V1{p,q} q+V1{p,q} p!a p.a q?a"),
        (VACUOUS, "p+V1{p,q} q+V1{p,q} p!a q.a q+V2{q}"),
    ],
)
def test_what_the_layer_below_hands_up_is_delivered(validity: Validity, text: str):
    manifest, _ = mini.parse(text)
    expect(judge_rows("L5", manifest, two_layers(text)), validity)


def test_a_request_that_is_never_sent_is_owed_too():
    manifest, rows = mini.parse("p!a p$a=1 end{p}")
    submit = rows[0]._replace(kind=Kind.SUBMIT, m_seq=1, lseq=50, layer="app")
    expect(judge_rows("L6", manifest, rows), OK)
    verdict = judge_rows("L6", manifest, [*rows, submit])
    expect(verdict, VIOLATED)
    assert verdict.reason == "p never sends p:1"


def _submitted(text: str, *submits: tuple[int, int]) -> Verdict:
    """L7 on a mini-language trace with `submit` rows of (process, number) put before it."""
    manifest, rows = mini.parse(text)
    first = [
        Row("submit", proc, 0, 0, gseq=0, layer="app", m_src=proc, m_inc=0, m_seq=number)
        for proc, number in submits
    ]
    numbered = [row._replace(gseq=i) for i, row in enumerate([*first, *rows])]
    return check(numbered, manifest, profile=["L7"])["L7"]


def test_what_is_submitted_must_be_sent_and_delivered_to_its_sender():
    assert _submitted("p!a p.a q.a end{p,q}", (0, 0)).validity is Validity.OK
    lost = _submitted("p!a p.a q.a end{p,q}", (0, 0), (0, 1))
    assert lost.validity is Validity.VIOLATED
    assert lost.reason == "p submits p:1 and never sends it"
    silent = _submitted("p!a q.a end{p,q}", (0, 0))
    assert silent.reason == "p submits a and never delivers it"
    assert _submitted("p!a p.a q.a end{p,q}").validity is Validity.VACUOUS
    assert _submitted("p!a p.a q.a", (0, 0)).validity is Validity.INCONCLUSIVE


def test_the_dead_are_owed_nothing_of_what_they_submitted():
    assert _submitted("q!b q.b pX end{q}", (0, 0)).validity is Validity.VACUOUS
