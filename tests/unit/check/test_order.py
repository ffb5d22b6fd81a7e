"""O: the corpus has a trace that breaks each property; here are more, and some that do not."""

import pytest

from roundelay.check import Validity
from roundelay.trace import mini

from .trial import expect, judge, judge_rows

VIOLATED, OK, VACUOUS = Validity.VIOLATED, Validity.OK, Validity.VACUOUS

CASES = [
    # Messages of one sender
    ("O1", VIOLATED, "p!a p!b q.b q.a"),
    ("O1", VIOLATED, "p!a p!b p!c q.a q.c q.b"),
    ("O1", VIOLATED, "p!a pX p^ p!b q.b q.a"),
    ("O1", OK, "p!a p!b p!c q.a q.c r.b r.c"),
    ("O1", OK, "p!a p!b q.a q.b q.a"),  # Twice: D2's business.
    ("O1", VACUOUS, "p!a q!b r.b r.a"),
    ("O1", VACUOUS, "p+V1{p} p.a p.b"),  # Nobody sent them: D1's business.
    ("O1r", VIOLATED, "p!a p!b q.b"),
    ("O1r", VIOLATED, "p!a p!b p!c q.a q.c q.b"),
    ("O1r", VIOLATED, "p!a{q,r} p!b{r} p!c{q} q.c"),
    ("O1r", OK, "p!a p!b p!c q.a q.b q.c r.a"),
    ("O1r", OK, "p!a{r} p!b{q} p!c{q} q.b q.c"),
    ("O1r", OK, "p+V1{p,q} q+V1{p,q} p!a p!b p-b p!c q.a q.c"),  # Withdrawn: owed to nobody.
    ("O1r", VACUOUS, "p!a{r} p!b{q} q.b"),
    ("O1r", VACUOUS, "p+V1{p,q} q+V1{p,q} p!a p+V2{p,q} q+V2{p,q} p!b q.b"),
    ("O1r", VIOLATED, "p+V1{p,q} q+V1{p,q} p!a p-a p+V2{p,q} q+V2{p,q} p!a p!b q.b"),
    # Causality
    ("O2", VIOLATED, "p!a q.a q!b r.b r.a"),
    ("O2", VIOLATED, "p!a p!b q.b q.a"),
    ("O2", VIOLATED, "p!a q.a q!b r.b r!c s.c s.a"),  # s never delivers b.
    ("O2", VIOLATED, "p!a q.a q!b r.b r!c s.c s!d t.d t.a"),
    ("O2", OK, "p!a q.a q!b r.a r.b p.b"),
    ("O2", VIOLATED, "p.b p!a q.a q!b p!c r.c r.a"),  # Each delivered what the other sent later.
    ("O2", VACUOUS, "p!a q.a q!b r.b"),
    ("O2", VACUOUS, "p!a q.a q!b r.b rX r^ r.a"),
    ("O2", VACUOUS, "p!a q!b p.a p.b q.b q.a"),
    ("O2", VACUOUS, "p!a q.a qX q^ q!b r.b r.a"),  # A restarted node remembers nothing.
    ("O2r", VIOLATED, "p!a q.a q!b r.b"),
    ("O2r", VIOLATED, "p!a{q,r} q.a q!b{s} s.b s!c{r} r.c"),  # b is not for r, a is.
    ("O2r", OK, "p!a q.a q!b r.a r.b"),
    ("O2r", OK, "p!a q.a q!b r.a r.b r.a"),
    ("O2r", VACUOUS, "p!a{q} q.a q!b r.b"),
    ("O2r", VACUOUS, "p!a q.a r.a"),
    ("O2r", VACUOUS, "p+V1{p,q} q+V1{p,q} p!a q.a q+V2{p,q} p+V2{p,q} q!b p.b"),
    # Keys
    ("O3f", VIOLATED, "p!a p.a=1 q.a=2"),
    ("O3f", VIOLATED, "p+V1{p,q} q+V1{p,q} p!a p.a=1 q+V2{p,q} q.a=1"),
    ("O3f", OK, "p!a p.a=1 q.a=1 r.a"),
    ("O3f", VACUOUS, "p!a p!b p.a=1 q.b=2"),
    ("O3i", VIOLATED, "p!a p!b p.a=1 q.b=1"),
    ("O3i", VIOLATED, "p!a p!b p.a=1.1 q.b=1.1"),
    ("O3i", OK, "p!a p!b p.a=1.0 p.b=1.1 q.a=1.0"),
    ("O3i", VACUOUS, "p!a p!b p.a q.b"),
    ("O4", VIOLATED, "p!a p!b p.b=2 p.a=1"),
    ("O4", VIOLATED, "p!a p!b p!c p.b=2 p.c p.a=1.5"),
    ("O4", OK, "p!a p!b p.a=1 p.b=1.1 p.a=1"),
    ("O4", OK, "p+V1{p} p!a p.a=7 p+V2{p} p!b p.b=1"),  # Numbers start again in a view.
    ("O4", VACUOUS, "p!a p!b p.a=1 q.b=2"),
    # One order
    ("O5p", VIOLATED, "p!a q!b p.a p.b q.b q.a"),
    ("O5p", VIOLATED, "p!a q!b r!c p.a p.c p.b q.b q.a"),
    ("O5p", OK, "p!a q!b p.a p.b q.a q.b"),
    ("O5p", VACUOUS, "p!a q!b r!c p.a p.b q.b q.c r.c r.a"),
    ("O5", VIOLATED, "p!a q!b r!c p.a p.b q.b q.c r.c r.a"),
    ("O5", VIOLATED, "p!a q!b p.a p.b q.b q.a q.b"),
    ("O5", VIOLATED, "p!a q!b p.a pX p^ p.b q.b q.a end{p,q}"),
    ("O5", VIOLATED, "p+V1{p,q} q+V1{p,q} p!a q!b p.a p+V2{p} p.b q.b q+V3{q} q.a"),
    (
        "O5",
        VIOLATED,  # Every message has its view, but q goes through them backwards.
        "p+V1{p,q} p!a p.a p+V2{p,q} p!b p.b q+V2{p,q} q.b q+V1{p,q} q.a",
    ),
    ("O5", VIOLATED, "p!a q!b p.a=1 p.b=2 q.b=3 q.a=4"),
    ("O5", OK, "p!a q!b r!c p.a p.b q.b q.c r.a r.c"),
    ("O5", OK, "p!a q!b p.a=1 p.b=2 q.a=1 q.b=2"),
    ("O5", VACUOUS, "p!a q!b p.a p.b q.a"),
    ("O5", VACUOUS, "p!a q!b p.a q.b"),
    (
        "O5w",
        VIOLATED,
        "p+V1{p,q} q+V1{p,q} p!a q!b p.a p.b q.b q.a p+V2{p,q} q+V2{p,q}",
    ),
    ("O5w", VIOLATED, "p!a q!b p.a p.b q.b q.a end{p,q}"),
    ("O5w", VACUOUS, "p!a q!b p.a p.b q.b q.a end{p}{q}"),  # They part company.
    ("O5w", VACUOUS, "p+V1{p,q} q+V1{p,q} p!a q!b p.a p.b q.b q.a p+V2{p} q+V3{q}"),
    ("O5w", VACUOUS, "p!a q!b p.a p.b q.b q.a"),
    ("O5w", OK, "p+V1{p,q} q+V1{p,q} p!a q!b p.a p.b q.a q.b p~T2{p,q} q~T2{p,q}"),
    # Gap-free order
    ("O6", VIOLATED, "p+V1{p,q} q+V1{p,q} p!a p!b p.a p.b q.b"),
    ("O6", VIOLATED, "p!a p!b p!c p.a p.b p.c q.a q.c"),
    ("O6", VIOLATED, "p+V1{p,q} q+V1{p,q} p!a p!b p~T2{p,q} q~T2{p,q} p.a p.b q.b"),
    ("O6", OK, "p!a p!b p.a p.b q.a"),
    ("O6", OK, "p!a p!b p.a p.a p.b q.a q.b q.b"),
    ("O6", OK, "p+V1{p,q} q+V1{p,q} p!a p!b q.a p.a p.b q~T2{q} q.b"),
    ("O6", VACUOUS, "p+V1{p,q} q+V1{p,q} p!a p!b p.a q~T2{q} q.b"),  # After a gap: allowed there.
    ("O6", VACUOUS, "p!a p.a"),
    # Views among the messages
    ("O8", VIOLATED, "p+V1{p,q} q+V1{p,q} p!a p.a p+V2{p,q} q+V2{p,q} q.a"),
    (
        "O8",
        VIOLATED,  # By three: no two of them disagree.
        "p+V1{p,q,r} q+V1{p,q,r} r+V1{p,q,r} p!a q!b p.a p+V2{p,q} q+V2{p,q} q.b r.b r.a",
    ),
    ("O8", OK, "p+V1{p,q} q+V1{p,q} p!a p.a q.a p+V2{p,q} q+V2{p,q}"),
    ("O8", VACUOUS, "p!a q!b p.a p.b q.a q.b"),
    ("O8", VACUOUS, "p+V1{p,q} q+V1{p,q} p!a p.a"),
    # Keys and causality
    ("O9", VIOLATED, "p!a q.a=5 q!b r.b=3"),
    ("O9", VIOLATED, "p!a p!b q.b=1 r.a=2"),
    ("O9", VIOLATED, "p!a q.a q!b r.b=3 s.a=5"),
    ("O9", OK, "p!a q.a=5 q!b r.b=6"),
    ("O9", OK, "p+V1{p} p!a p-a p!b p.b=1 p+V2{p} p!a p.a=1"),
    ("O9", VACUOUS, "p!a q!b r.b=3 r.a=5"),
    ("O9", VACUOUS, "p!a q.a=5 qX q^ q!b r.b=3"),
    ("O10", VIOLATED, "p!a p!b p.a=1 p.b=3"),
    ("O10", VIOLATED, "p!a p!b p!c p.a=1 p.b=2 p.c=4.1"),
    ("O10", VIOLATED, "p!a p!b p$a=1 p$b=3 p.a=1 p.b=2"),
    ("O10", OK, "p!a p!b p!c p.a=1.0 p.b=1.1 p.c=2"),
    ("O10", OK, "p!a p!b p$a=1 p$b=2 p.a=1 p.b=3"),
    ("O10", VACUOUS, "p+V1{p} p!a p!b p.a=1 p~T2{p} p.b=3"),
    ("O10", VACUOUS, "p+V1{p} p!a p.a=1 p+V2{p} p!b p.b=3"),
    # Shared pasts
    ("O11", VIOLATED, "p!a q!b p.b p!c q.a q.b q.c pX end{q}"),
    ("O11", VIOLATED, "p!a q!b p.b p!c q.c"),
    ("O11", OK, "p!a q!b p.b p!c q.b q.a q.c"),
    ("O11", OK, "p!a q!b p.b p!c q.b q.c r.c rX"),  # Who fails is not held to it.
    ("O11", VACUOUS, "p!a q!b p!c q.a q.b q.c"),
    ("O11", VACUOUS, "p+V1{p,q} q+V1{p,q} p!a p.a p!b q~T2{q} q.b"),
]


@pytest.mark.parametrize(("name", "validity", "text"), CASES)
def test_a_verdict(name: str, validity: Validity, text: str):
    verdict = judge(name, text)
    expect(verdict, validity)
    assert bool(verdict.witness) == (validity is VIOLATED)


NO_CROSSING = [case for case in CASES if case[0] != "O5w" or "end" not in case[2]]


@pytest.mark.parametrize(("name", "validity", "text"), NO_CROSSING)
def test_no_verdict_needs_a_total_order(name: str, validity: Validity, text: str):
    manifest, rows = mini.parse(text)
    stripped = [row._replace(gseq=None) for row in rows]
    expect(judge_rows(name, manifest, stripped), validity)


WITNESSES = [
    ("O1", "p!a p!b p!c q.a q.c q.b", "q.c q.b"),
    ("O1r", "p!a p!b p!c q.a q.c q.b", "p!b p!c q.c"),
    ("O2", "p!a q.a q!b r.b r!c s.c s.a", "p!a q.a q!b r.b r!c s.c s.a"),
    ("O2", "p!a p!b q.a q!c q!d r.d r.c r.a", "q!c q!d r.d r.c"),
    ("O2", "p!a p!y q.y q!b r.b r!z s.b s.z s.a", "p!a p!y q.y q!b s.b s.a"),
    ("O2r", "p!a{q,r} q.a q!b{s} s.b s!c{r} r.c", "p!a{q,r} q.a q!b{s} s.b s!c{r} r.c"),
    ("O2r", "p!a q!x q.a q!b r.x r.b", "p!a q.a q!b r.b"),
    ("O4", "p!a p!b p!c p.a=1 p.c=3 p.b=2", "p.c=3 p.b=2"),
    ("O5", "p!a q!b r!c s!d p.a p.d p.b q.b q.c r.c r.d r.a", "p.a p.d r.d r.a"),
    ("O5", "p!a q!b r!c s!d p.a p.d p.b q.b q.c r.c r.a", "p.a p.b q.b q.c r.c r.a"),
    ("O6", "p!a p!b p!c p.a p.b p.c q.a q.c", "p.b q.c"),
    ("O9", "p!a p!b q.b=1 r.a=2", "p!a p!b q.b=1 r.a=2"),
    ("O10", "p!a p!b p!c p.a=1 p.b=2 p.c=4", "p.b=2 p.c=4"),
    ("O11", "p!a q!b p.b p!c q.c", "p.b p!c q.c"),
    ("O11", "p!a q!b p.b p!c q.a q.b q.c", "p.b p!c q.a q.c"),
]


@pytest.mark.parametrize(("name", "text", "witness"), WITNESSES)
def test_a_witness_is_as_small_as_can_be(name: str, text: str, witness: str):
    manifest, _ = mini.parse(text)
    assert mini.render(judge(name, text).witness, manifest) == witness


REASONS = [
    (
        "O2",
        "p!a q.a q!b r.b r.a",
        "r delivers b before its cause a: q delivered a before it sent b",
    ),
    (
        "O5",
        "p!a q!b r!c p.a p.b q.b q.c r.c r.a",
        "p delivers a before b, q delivers b before c, r delivers c before a",
    ),
    ("O6", "p!a p!b p.a p.b q.b", "number 1 is a at p and b at q"),
    ("O10", "p!a p!b p.a=1 p.b=3", "p delivers 3 right after 1: 2 is missing"),
    ("O11", "p!a q!b p.b p!c q.c", "q delivers c of p without b, which p had delivered"),
]


@pytest.mark.parametrize(("name", "text", "reason"), REASONS)
def test_a_reason_is_a_sentence(name: str, text: str, reason: str):
    assert judge(name, text).reason == reason


def test_a_number_used_up_by_nothing_is_not_missing():
    """An empty decision or a part of a large message has a key and no message."""
    manifest, rows = mini.parse("p!a p!b p!x p#x=2 p.a=1 p.b=3")
    empty = [
        row._replace(m_src=None, m_inc=None, m_seq=None) if row.kind == "order" else row
        for row in rows
    ]
    expect(judge_rows("O10", manifest, rows), VIOLATED)
    expect(judge_rows("O10", manifest, empty), OK)


def test_messages_of_one_packet_are_told_apart():
    """A row may cover several messages; their keys count on."""
    manifest, rows = mini.parse("p!a p!b p!c p.a=1 p.c=2")
    rows = [row for row in rows if row.m_seq != 1]
    packed = [row._replace(count=2) if row.m_seq == 0 else row for row in rows]
    for name in ("O3i", "O4", "O10"):
        verdict = judge_rows(name, manifest, packed)
        assert verdict.validity is OK
        assert verdict.instances >= 2
