"""Messages to some of the group, under ST: what is planted into a trace is found, here and there.

A run of ST gives a clean trace. Each fault is a change of a few of its rows.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest
from tests.pipeline.swarm_traces import verdicts

from roundelay.check import Report, Validity, check, profile
from roundelay.core.effects import Kind
from roundelay.core.ids import Service
from roundelay.sim.runner import ScenarioRunner
from roundelay.sim.scenario import parse
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import Row, expand

from .conftest import write

SAID = """engine st static medium=channel
network channel rate=100Mbit
group packet_messages=1
seed 4
nodes a b c d
run 30ms
submit a hello safe to=b,c
submit b one
submit c two
run 60ms
faults loss=2%
load messages=120 rate=2000/s size=10 safe=30% subset=60%
run 60ms
end after=1s
----
"""


@pytest.fixture(scope="module")
def clean() -> tuple[Manifest, list[Row]]:
    """A run with losses and recoveries, most of whose messages are for some nodes only. Nothing is
    lost at first, so that there are messages into which faults can be planted."""
    story = ScenarioRunner()
    for block in parse(SAID):
        story.play(block)
    return story.manifest(SAID), list(expand(story.rows))


Rows = list[Row]


def named(row: Row) -> tuple[int | None, int | None]:
    return row.m_src, row.m_seq


def silent(row: Row) -> Row:
    """In its place, a row that says nothing."""
    return Row(Kind.EXPIRE, row.proc, row.inc, row.lseq, row.gseq, row.t_ns, tag="nothing")


def without(rows: Rows, gone: Callable[[Row], bool]) -> Rows:
    assert any(map(gone, rows))
    return [silent(row) if gone(row) else row for row in rows]


def chosen(rows: Rows) -> tuple[int | None, int | None]:
    """A safe message for two nodes or more, not its sender, all of which claimed it at level 2."""
    claims = Counter(named(row) for row in rows if row.kind == Kind.STABLE and row.level == 2)
    for row in rows:
        if row.kind != Kind.ORIGINATE or row.svc != Service.SAFE or row.dst is None:
            continue
        if 1 < claims[named(row)] == len(row.dst) and row.m_src not in row.dst:
            return named(row)
    raise AssertionError("the run has no such message")


def addressed(rows: Rows) -> int:
    """Of those that it is for, the one that delivers it last."""
    message = chosen(rows)
    return [row.proc for row in rows if row.kind == Kind.DELIVER and named(row) == message][-1]


def of(rows: Rows, kind: Kind, level: int | None = None) -> Callable[[Row], bool]:
    """Rows of this kind about the chosen message at one of its destinations."""
    message, proc = chosen(rows), addressed(rows)
    return lambda row: (
        row.kind == kind
        and row.proc == proc
        and named(row) == message
        and (level is None or row.level == level)
    )


def never_received(rows: Rows) -> Rows:
    return without(rows, of(rows, Kind.RECEIVE))


def never_claimed(rows: Rows) -> Rows:
    return without(rows, of(rows, Kind.STABLE, 1))


def never_delivered(rows: Rows) -> Rows:
    return without(rows, of(rows, Kind.DELIVER))


def for_another(rows: Rows) -> Rows:
    message, proc = chosen(rows), addressed(rows)
    return [
        row._replace(dst=tuple(p for p in row.dst or () if p != proc))
        if row.kind == Kind.ORIGINATE and named(row) == message
        else row
        for row in rows
    ]


def in_opposite_order(rows: Rows) -> Rows:
    """Two neighbours at the last node, both of which others deliver too, change their places."""
    times: dict[tuple[int | None, int | None], int] = {}
    mine = []
    for row in rows:
        if row.kind == Kind.DELIVER:
            times[named(row)] = times.get(named(row), 0) + 1
            mine += [row] if row.proc == 3 else []
    one, other = next(
        (one, other)
        for one, other in pairwise(mine)
        if one.m_src != other.m_src and times[named(one)] == times[named(other)] == 4
    )
    about = ("m_src", "m_inc", "m_seq", "digest", "size", "svc")
    swapped = {
        id(one): one._replace(**{name: getattr(other, name) for name in about}),
        id(other): other._replace(**{name: getattr(one, name) for name in about}),
    }
    return [swapped.get(id(row), row) for row in rows]


PLANTED: dict[str, tuple[Callable[[Rows], Rows], set[str]]] = {
    "never-received": (never_received, {"S1", "S4", "S7"}),
    "never-claimed": (never_claimed, {"S7"}),
    "never-delivered": (never_delivered, {"D8", "D10", "L1"}),
    "for-another": (for_another, {"D9"}),
    "in-opposite-order": (in_opposite_order, {"O5", "O5p"}),
}
"""By name: how rows are changed, and what breaks."""


def violated(report: Report) -> set[str]:
    return {verdict.property for verdict in report.violated}


def test_the_run_is_clean_and_puts_what_st_promises_to_the_test(clean):
    manifest, rows = clean
    report = check(rows, manifest)
    assert report.ok
    decided = {v.property for v in report.verdicts if v.validity is Validity.OK}
    assert {"D8", "D9", "D10", "O1r", "O2", "O5", "S1", "S4", "S7", "L1", "L4"} <= decided


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found(clean, fault):
    manifest, rows = clean
    plant, broken = PLANTED[fault]
    report = check(plant(rows), manifest)
    assert broken <= violated(report), report
    for verdict in report.violated:
        assert verdict.witness


def test_one_channel_is_the_assumption_of_the_paper_alone(clean):
    """Where frames come in another order at one node, the paper promised nothing."""
    manifest, rows = clean
    assert check(rows, manifest, profile=profile("st", "paper"))["E1"].validity is Validity.OK
    mine = [row for row in rows if row.kind == Kind.RECEIVE and row.proc == 1 and row.pkt]
    one, other = mine[10], mine[11]
    frames = {id(one): other.pkt, id(other): one.pkt}
    changed = [row._replace(pkt=frames.get(id(row), row.pkt)) for row in rows]
    report = check(changed, manifest, profile=profile("st", "paper"))
    assert report["E1"].validity is Validity.VIOLATED
    assert report["S7"].validity is Validity.OUTSIDE
    assert check(changed, manifest).ok


@pytest.mark.slow
def test_spark_finds_the_same_whatever_the_size(clean, spark, tmp_path):
    """Also as if the runs were too large for one piece: then only the order is left open, of which
    the facts know nothing without keys."""
    from roundelay.pipeline.ingest.into_table import ingest
    from roundelay.pipeline.judge.check import check as check_on_spark

    manifest, rows = clean
    expected = {}
    faults = {"none": (lambda rows: rows, set()), **PLANTED}
    for fault, (plant, _) in faults.items():
        planted = plant(rows)
        written = write(tmp_path / "in" / fault, replace(manifest, run=fault), planted)
        expected[fault] = verdicts(check(planted, written))
    table = ingest(spark, [tmp_path / "in"], tmp_path / "table").table
    for slice_rows, whole_rows in ((200, 1_500_000), (200, 0)):
        for one in check_on_spark(
            spark, table, slice_rows=slice_rows, whole_rows=whole_rows, small_rows=0
        ):
            found = verdicts(one.report)
            open_ = {name for name, verdict in found.items() if verdict[0] == "inconclusive"}
            assert open_ <= (set() if whole_rows else {"O1r", "O2", "O5", "O5p"})
            assert {n: v for n, v in found.items() if n not in open_} == {
                n: v for n, v in expected[one.run].items() if n not in open_
            }
            assert faults[one.run][1] - open_ <= violated(one.report)
