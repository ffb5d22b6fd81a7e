"""D: deliveries that may not happen, and those that must."""

import pytest

from roundelay.check import Validity, Verdict
from roundelay.core.effects import Kind
from roundelay.trace import mini
from roundelay.trace.schema import Row

from .trial import expect, judge, judge_rows, recounted, without_gseq

VIEWS = (
    "p+V1{p,q} q+V1{p,q} p!a q?a p.a q.a q!b p~T2{p} q~T3{q} q.b p+V4{p} q+V5{q} "
    "p!c p.c p~T6{p} q~T7{q} p+V8{p,q} q+V8{p,q} q!d q.d p.d end{p,q}"
)
"""A partition and its end; what q sends as it breaks is delivered by q alone."""

WITHDRAWN = (
    "p+V1{p,q,r} q+V1{p,q,r} r+V1{p,q,r} p!a r?a r.a "
    "p~T2{p,q} q~T2{p,q} r~T3{r} p-a p+V4{p,q} q+V4{p,q} r+V5{r} p!a p.a q.a end{p,q}{r}"
)
"""r is cut off and has delivered a; p and q never did, so p takes it back and sends it again."""

SELECTIVE = "p!a{q,r} q!b{p} q.a r.a p.b end{p,q,r}"


@pytest.mark.parametrize("name", ["D1", "D2", "D3", "D4e", "D4t", "D5", "D6", "D8", "D8u", "D10"])
def test_a_partition_that_heals_is_fine(name: str):
    expect(judge(name, VIEWS), Validity.OK)


@pytest.mark.parametrize("name", ["D1", "D2", "D3", "D4e", "D5", "D6", "D7", "D8", "D10"])
def test_a_withdrawn_message_is_owed_nothing_and_may_be_sent_again(name: str):
    expect(judge(name, WITHDRAWN), Validity.OK)


@pytest.mark.parametrize("name", ["D1", "D2", "D3", "D4e", "D5", "D6", "D7"])
def test_also_without_a_total_order(name: str):
    manifest, rows = mini.parse(WITHDRAWN)
    expect(judge_rows(name, manifest, without_gseq(rows)), Validity.OK)


def test_a_cut_off_member_may_deliver_the_first_sending_after_the_second():
    text = WITHDRAWN.replace(" r.a", "").replace("r~T3{r} ", "").replace("r+V5{r} ", "")
    text = text.replace("end{p,q}{r}", "r.a r~T3{r} r+V5{r} end{p,q}{r}")
    for name in ("D1", "D3", "D4e"):
        expect(judge(name, text), Validity.OK)


@pytest.mark.parametrize("name", ["D9", "D10", "D8"])
def test_messages_for_some_members(name: str):
    expect(judge(name, SELECTIVE), Validity.OK)


def test_d4s_ok():
    expect(judge("D4s", "p+V1{p} p!a p.a"), Validity.OK)


def test_d7_ok():
    expect(judge("D7", "p+V1{p,q} q+V1{p,q} p!a q.a p.a p~T2{p,q} q~T2{p,q}"), Validity.OK)


def test_d11_ok():
    expect(judge("D11", "p!a%x p.a%x q.a%x"), Validity.OK)


NOTHING = "p+V1{p} p~T2{p} p+V3{p} end{p}"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *((f"D{n}", NOTHING) for n in (1, 2, 3, 5, 6, 7, 8, 9, 10, 11)),
        ("D4s", NOTHING),
        ("D4e", NOTHING),
        ("D4t", NOTHING),
        ("D8u", NOTHING),
        ("D3", "p!a p.a"),
        ("D6", "p+V1{p} p!a pX"),
        ("D6", "p!a{q} q.a"),
        ("D7", "p+V1{p,q} q+V1{p,q} p!a p.a p+V2{p} q+V3{q}"),
        ("D7", "p+V1{p,q} q+V1{p,q} p!a p.a p+V2{p,q} qX q^ q+V2{p,q}"),
        ("D8", "p!a p.a pX end{q}"),
        ("D8u", "p!a p.a pX end{q}{r}"),
        ("D9", "p!a p.a"),
        ("D10", "p!a{q} pX end{q}"),
        ("D11", "p!a q.a%2"),
    ],
)
def test_vacuous(name: str, text: str):
    expect(judge(name, text), Validity.VACUOUS)


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("D1", "q.a p!a", "q delivers a before it was sent"),
        ("D2", "p!a p.a pX p^ p.a", "p delivers a twice, in two incarnations"),
        (
            "D3",
            "p+V1{p,q} q+V1{p,q} p!a p.a q~T2{q} q+V3{q} q~T4{q} q.a",
            "p delivers a in R1, q in R3",
        ),
        (
            "D4s",
            "p+V1{p} p!a p~T2{p} p.a",
            "p delivers a in T2, but it was sent in R1",
        ),
        (
            "D4e",
            "p+V1{p} p!a pX p^ p.a p+V2{p}",
            "p delivers a in no view, but it was sent in R1",
        ),
        (
            "D4e",
            "p+V1{p,q} q+V1{p,q} p!a p~T2{p} p-a p+V3{p} p!a q~T4{q} q+V5{q} q.a",
            "q delivers a in R5, but it was sent in R3",
        ),
        (
            "D5",
            "p+V1{p} q+V1{p} p!a q.a",
            "q delivers a in R1{p}, of which q is no member",
        ),
        (
            "D6",
            "p+V1{p} p!a p.a p!b p~T2{p} p+V3{p} p.b",
            "p moves on from R1 without delivering its own b",
        ),
        (
            "D6",
            "p+V1{p} p!a p~T2{p} p-a p+V3{p} p!a p~T4{p} p+V5{p}",
            "p moves on from R3 without delivering its own a",
        ),
        (
            "D7",
            "p+V1{p,q} q+V1{p,q} p!a p~T2{p,q} q~T2{p,q} q.a p+V3{p,q} q+V3{p,q}",
            "q and p move on together from T2 to R3, but only q delivers a there",
        ),
        (
            "D7",
            "p+V1{p,q} q+V1{p,q} p!a q!b p.a q.b p~T2{p,q} q~T2{p,q}",
            "p and q move on together from R1 to T2, but only p delivers a there",
        ),
        (
            "D7",
            "p+V1{p,q,r} q+V1{p,q,r} r+V1{p,q,r} p!a{q,r} q.a p~T2{p,q,r} q~T2{p,q,r} r~T2{p,q,r}",
            "q and r move on together from R1 to T2, but only q delivers a there",
        ),
        (
            "D8",
            "p+V1{p,q} q+V1{p,q} p!a p.a end{p,q}",
            "p delivers a, q is up at the end and never does",
        ),
        (
            "D8u",
            "p!a p.a pX end{q,r}",
            "p delivers a, q is up at the end and never does",
        ),
        (
            "D10",
            "p+V1{p,q} q+V1{p,q} p!a p.a end{p,q}",
            "q never delivers a, which p sent to p,q",
        ),
        ("D11", "p!a%x p.a%x q.a%y", "q delivers a with other bytes than p sent"),
    ],
)
def test_planted_faults(name: str, text: str, reason: str):
    verdict = judge(name, text)
    assert verdict.reason == reason
    expect(verdict, Validity.VIOLATED)
    manifest, _ = mini.parse(text)
    again = judge_rows(name, manifest, list(verdict.witness))
    expect(again, Validity.VIOLATED)


@pytest.mark.parametrize("name", ["D8", "D8u", "D10"])
def test_what_is_owed_needs_a_quiet_end(name: str):
    verdict = judge(name, "p!a p.a q?a")
    expect(verdict, Validity.INCONCLUSIVE)
    assert "does not end quietly" in verdict.reason


def test_parts_of_a_group_that_cannot_reach_each_other_owe_nothing():
    for name in ("D8", "D10"):
        expect(judge(name, "p!a p.a q!b q.b end{p}{q}"), Validity.OK)


def test_d1_without_a_total_order_gives_the_benefit_of_the_doubt():
    manifest, rows = mini.parse("q.a p!a")
    expect(judge_rows("D1", manifest, without_gseq(rows)), Validity.OK)
    manifest, rows = mini.parse("q.a")
    expect(judge_rows("D1", manifest, without_gseq(rows)), Validity.VIOLATED)
    manifest, rows = mini.parse("p.a p!a")
    expect(judge_rows("D1", manifest, without_gseq(rows)), Validity.VIOLATED)


# Ranges: rows that tell of several messages at once.


def ranges(digest: int = 7, delivered: int = 7, *, count: int = 3) -> list[Row]:
    """p sends three messages in one packet, q delivers them."""
    return [
        Row(Kind.ORIGINATE, 0, 0, 0, 0, m_src=0, m_inc=0, m_seq=0, digest=digest, count=3),
        Row(Kind.DELIVER, 0, 0, 1, 1, m_src=0, m_inc=0, m_seq=0, digest=digest, count=3),
        Row(Kind.DELIVER, 1, 0, 0, 2, m_src=0, m_inc=0, m_seq=0, digest=delivered, count=count),
        Row(Kind.END, -1, 0, 0, 3, members=(0, 1)),
    ]


def trial(name: str, rows: list[Row]) -> Verdict:
    manifest, _ = mini.parse("p!a q?a")
    return judge_rows(name, recounted(manifest, rows), rows)


@pytest.mark.parametrize("name", ["D1", "D2", "D3", "D8", "D10", "D11"])
def test_a_range_is_as_good_as_its_messages(name: str):
    expect(trial(name, ranges()), Validity.OK)


def test_a_message_missing_from_a_range_is_noticed():
    verdict = trial("D8", ranges(count=2))
    assert verdict.reason == "p delivers p:2, q is up at the end and never does"
    assert {row.m_seq for row in verdict.witness} == {2, None}


def test_two_messages_of_one_row_are_two_rows_of_a_witness():
    rows = ranges()
    rows.insert(3, rows[2]._replace(lseq=1, gseq=4))
    verdict = trial("D2", rows)
    assert [(row.gseq, row.m_seq, row.count) for row in verdict.witness] == [(2, 0, 1), (4, 0, 1)]


def test_digests_of_equal_ranges_are_compared():
    expect(trial("D11", ranges(delivered=8)), Validity.VIOLATED)
    assert trial("D11", ranges(delivered=8)).instances == 2


def test_digests_of_other_ranges_are_not():
    verdict = trial("D11", ranges(delivered=8, count=2))
    expect(verdict, Validity.OK)
    assert verdict.instances == 1


def test_two_layers_are_judged_apart():
    """A delivery of the layer below is no delivery to the application."""
    manifest, rows = mini.parse("p!a p.a p.a")
    rows[1] = rows[1]._replace(layer="vs")
    expect(judge_rows("D2", manifest, rows), Validity.OK)
    rows = [row._replace(layer="vs") for row in rows]
    expect(judge_rows("D2", manifest, rows), Validity.VIOLATED)


def test_who_moves_on_together_need_not_deliver_what_is_for_others():
    text = "p+V1{p,q} q+V1{p,q} p!a{p} q!b p.a p.b q.b p~T2{p,q} q~T2{p,q}"
    assert judge("D7", text).validity is Validity.OK


def test_a_claim_speaks_for_destinations_that_are_in_the_view():
    text = "p+V1{p,q} q+V1{p,q} p!a{p,r} p.a p*a"
    assert judge("S1", text).validity is Validity.OK
