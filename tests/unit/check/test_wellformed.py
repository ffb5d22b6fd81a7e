"""T: traces that cannot be trusted."""

from dataclasses import replace
from typing import Any

import pytest

from roundelay.check import Validity, check
from roundelay.core.effects import Kind
from roundelay.trace import mini
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import Row

from .trial import expect, judge, judge_rows, recounted, without_gseq

CLEAN = "p+V1{p,q} q+V1{p,q} p!a q?a p.a q.a pX p^1 p+V3{p}"


@pytest.mark.parametrize("lost", range(9))
def test_t1_notices_any_lost_row(lost: int):
    manifest, rows = mini.parse(CLEAN)
    del rows[lost]
    verdict = judge_rows("T1", manifest, rows)
    expect(verdict, Validity.VIOLATED)
    assert "log of" in verdict.reason


def test_t1_notices_a_writer_of_whom_nothing_is_left():
    manifest, rows = mini.parse(CLEAN)
    rows = [row for row in rows if row.proc != 1]
    verdict = judge_rows("T1", manifest, rows)
    assert verdict.reason == "the log of q in incarnation 0 has 0 rows where 3 were written"


def test_t1_shows_what_is_next_to_a_life_of_which_nothing_is_left():
    manifest, rows = mini.parse("p!a p.a pX p^ p!b pX p^ p.b q!c")
    for inc, shown in ((0, [(0, 1, 0)]), (1, [(0, 0, 2), (0, 2, 0)]), (2, [(0, 1, 2)])):
        left = [row for row in rows if (row.proc, row.inc) != (0, inc)]
        verdict = judge_rows("T1", manifest, left)
        expect(verdict, Validity.VIOLATED)
        assert [(row.proc, row.inc, row.lseq) for row in verdict.witness] == shown
    verdict = judge_rows("T1", manifest, [row for row in rows if row.proc == 1])
    assert [(row.proc, row.lseq) for row in verdict.witness] == [(1, 0)]


def test_t1_cannot_show_what_is_missing_where_there_is_not_a_row():
    manifest, _ = mini.parse("p!a")
    verdict = judge_rows("T1", manifest, [])
    expect(verdict, Validity.INCONCLUSIVE)
    assert verdict.reason == (
        "the log of p in incarnation 0 has 0 rows where 1 were written, and no other row is left"
    )


def test_t1_notices_a_row_that_is_there_twice():
    manifest, rows = mini.parse(CLEAN)
    verdict = judge_rows("T1", manifest, [*rows, rows[2]])
    assert verdict.reason == "the log of p in incarnation 0 repeats row 1"


def test_t1_notices_rows_that_nobody_counted():
    manifest, rows = mini.parse(CLEAN)
    assert manifest.rows is not None
    manifest = replace(manifest, rows={w: n for w, n in manifest.rows.items() if w != "0.1"})
    verdict = judge_rows("T1", manifest, rows)
    assert verdict.reason == "the log of p in incarnation 1 has 2 rows where 0 were written"


def test_t1_counts_a_range_as_one_row():
    manifest, rows = mini.parse("p!a p.a")
    rows = [row._replace(count=5) for row in rows]
    expect(judge_rows("T1", manifest, rows), Validity.OK)


def test_t1_is_vacuous_without_rows():
    manifest, _ = mini.parse("")
    expect(judge_rows("T1", manifest, []), Validity.VACUOUS)


@pytest.mark.parametrize("name", ["T1", "T2", "T3", "T4"])
def test_a_clean_trace_is_well_formed(name: str):
    expect(judge(name, CLEAN), Validity.OK)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("T2", "end{p}"),
        ("T3", "p+V1{p}"),
        ("T4", "p!a p.a"),
    ],
)
def test_vacuous(name: str, text: str):
    expect(judge(name, text), Validity.VACUOUS)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("p!a pX p.a", "p has a row `deliver` after it crashed"),
        ("pX pX", "p has a row `crash` after it crashed"),
        ("p!a p^", "p recovers though it never crashed"),
        ("q!a pX p^ p^", "p recovers though it never crashed"),
    ],
)
def test_t2_convicts(text: str, reason: str):
    assert judge("T2", text).reason == reason


def test_t2_wants_a_new_incarnation_after_a_crash():
    manifest, rows = mini.parse("p!a pX p^ p!b")
    rows = [row._replace(inc=0, lseq=lseq) for lseq, row in enumerate(rows)]
    verdict = judge_rows("T2", recounted(manifest, rows), rows)
    assert verdict.reason == "p recovers as incarnation 0, which it was before"


def test_t2_wants_a_recovery_before_a_new_incarnation():
    manifest, rows = mini.parse("p!a p!b")
    rows = [rows[0], rows[1]._replace(inc=1, lseq=0)]
    verdict = judge_rows("T2", recounted(manifest, rows), rows)
    assert verdict.reason == "p changes from incarnation 0 to 1 without a recovery"


def test_t2_knows_that_a_killed_node_writes_no_crash():
    manifest, rows = mini.parse("p!a pX p^ p!b")
    rows = [row for row in without_gseq(rows) if row.kind != Kind.CRASH]
    expect(judge_rows("T2", recounted(manifest, rows), rows), Validity.OK)


def test_t2_does_not_blame_a_node_that_is_down_for_frames_lost_at_it():
    manifest, rows = mini.parse("p!a pX")
    drop = Row(Kind.DROP, 0, 0, 2, gseq=2, layer="net", tag="down")
    rows.append(drop)
    expect(judge_rows("T2", recounted(manifest, rows), rows), Validity.OK)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("p!a q!a", "q sends a, which p has sent"),
        ("p!a p!a", "p sends a twice without withdrawing it in between"),
        (
            "p+V1{p} p!a p~T2{p} p+V3{p} p!a p-a",
            "p sends a twice without withdrawing it in between",
        ),
        ("p+V1{p} p!a p-a p!a", "p sends a twice in R1"),
    ],
)
def test_t3_convicts(text: str, reason: str):
    assert judge("T3", text).reason == reason


def test_t3_lets_a_withdrawn_message_be_sent_again_in_the_next_view():
    text = "p+V1{p} p!a p~T2{p} p-a p+V3{p} p!a p~T4{p} p-a p+V5{p} p!a p.a"
    expect(judge("T3", text), Validity.OK)


def test_t4_names_what_nobody_sent():
    assert judge("T4", "q?a").reason == "q receives a, which nobody sent"
    assert judge("T4", "q?a p!a").reason == "q receives a before it was sent"


def test_t4_without_a_total_order_gives_the_benefit_of_the_doubt():
    manifest, rows = mini.parse("q?a p!a")
    expect(judge_rows("T4", manifest, without_gseq(rows)), Validity.OK)
    manifest, rows = mini.parse("q?a")
    expect(judge_rows("T4", manifest, without_gseq(rows)), Validity.VIOLATED)


def test_t4_without_a_total_order_trusts_frames():
    """q received a before it sent the frame that p had when it sent a."""
    manifest, rows = mini.parse("q?a p!a")
    received, sent = without_gseq(rows)
    rows = [
        received,
        Row(Kind.SEND, 1, 0, 1, layer="net", pkt=7),
        Row(Kind.ARRIVE, 0, 0, 0, layer="net", pkt=7),
        sent._replace(lseq=1),
    ]
    verdict = judge_rows("T4", recounted(manifest, rows), rows)
    expect(verdict, Validity.VIOLATED)


# Traces that end early, and lives out of order


def test_where_rows_are_lost_nobody_is_convicted_of_receiving_from_nowhere():
    manifest, rows = mini.parse("p!a q?a q.a p.a")
    left = [row for row in rows if row.proc == 1]
    report = check(left, manifest, profile=["T1", "T4", "D1"])
    expect(report["T1"], Validity.VIOLATED)
    expect(report["T4"], Validity.INCONCLUSIVE)
    told = ["the trace of node p ends early, its disk was full"]
    manifest = replace(recounted(manifest, left), ended={"0.0": "its disk was full"})
    assert manifest.cut_short() == told
    report = check(left, manifest, profile=["T1", "T4", "D1"], problems=told)
    for name in ("T1", "T4", "D1"):
        expect(report[name], Validity.INCONCLUSIVE)
        assert report[name].reason == told[0]
    whole = replace(recounted(manifest, left), ended={})
    expect(check(left, whole, profile=["T4"])["T4"], Validity.VIOLATED)


def lives(*times: tuple[int, int], machines: dict[str, str]) -> tuple[Manifest, list[Row]]:
    """A real node's lives by incarnation, each with the time at which it began and ended; it
    delivers its own message in each."""
    rows = []
    for inc, (begin, end) in enumerate(times):
        about: dict[str, Any] = {"m_src": 0, "m_inc": inc, "m_seq": 0}
        rows += [
            Row("recover", 0, inc, 0, t_ns=begin, level=0),
            Row("originate", 0, inc, 1, t_ns=begin)._replace(**about),
            Row("deliver", 0, inc, 2, t_ns=end)._replace(**about),
        ]
    return recounted(Manifest("r", ("a",), machines=machines), rows), rows


HERE = {f"0.{inc}": "boot" for inc in range(3)}


@pytest.mark.parametrize(
    ("times", "machines", "validity"),
    [
        (((1, 2), (3, 4), (5, 6)), HERE, Validity.OK),
        (((3, 4), (1, 2), (5, 6)), HERE, Validity.INCONCLUSIVE),
        (((5, 6), (3, 4), (1, 2)), HERE | {"0.1": "another"}, Validity.INCONCLUSIVE),
        (((5, 6), (1, 2)), {"0.0": "boot", "0.1": "another"}, Validity.OK),
        (((5, 6), (1, 2)), {"0.0": "boot"}, Validity.OK),
        (((5, 6), (1, 2)), {}, Validity.OK),
    ],
)
def test_lives_that_came_in_another_order_than_their_numbers(
    times: tuple[tuple[int, int], ...], machines: dict[str, str], validity: Validity
):
    manifest, rows = lives(*times, machines=machines)
    report = check(rows, manifest, profile=["T1", "T2", "T3", "T4", "D1", "O1", "M2"])
    expect(report["T1"], Validity.OK)
    expect(report["T2"], validity)
    expect(report["O1"], validity)
    if validity is Validity.INCONCLUSIVE:
        assert "its clock was set back and it kept no state" in report["O1"].reason
    total = [row._replace(gseq=i) for i, row in enumerate(rows)]
    assert "clock" not in check(total, manifest, profile=["T2"])["T2"].reason
