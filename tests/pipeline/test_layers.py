"""Traces of two layers on Spark: what a link does is judged at any size, and counted nowhere."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.pipeline.conftest import write
from tests.pipeline.swarm_traces import verdicts

from roundelay.check import Report, check
from roundelay.core.effects import Kind
from roundelay.pipeline.ingest.into_table import ingest
from roundelay.pipeline.judge.check import check as check_on_spark
from roundelay.pipeline.measure.measure import measure
from roundelay.sim.runner import ScenarioRunner
from roundelay.sim.scenario import parse
from roundelay.trace import reader
from roundelay.trace.schema import LOWER_LAYER, REGULAR, Row

pytestmark = pytest.mark.slow

STORY = """engine atop factor=1 period_s=0.02 threshold_permille=0
network lan latency=100us
nodes a b c
run 60ms
load messages=200 rate=1000/s size=10 from=a,b
run 400ms
crash c
run 500ms
load messages=20 rate=500/s size=10 from=a,b
end after=5s
----
"""
"""Shares of slots change, and c is left behind."""

BOTH = ["E5", "L5"]
SLOTS = 1 << 40


@pytest.fixture(scope="module")
def story() -> ScenarioRunner:
    runner = ScenarioRunner()
    for block in parse(STORY):
        runner.play(block)
    return runner


def without(rows: Iterable[Row], struck: Callable[[Row], bool]) -> list[Row]:
    """The rows that are left, numbered anew."""
    left = []
    count: defaultdict[tuple[int, int], int] = defaultdict(int)
    for row in rows:
        if not struck(row):
            left.append(row._replace(lseq=count[row.proc, row.inc]))
            count[row.proc, row.inc] += 1
    return left


def below(row: Row) -> bool:
    return row.layer == LOWER_LAYER


@pytest.fixture(scope="module")
def traces(story) -> dict[str, list[Row]]:
    """By what is wrong with it."""
    first = next(row for row in story.rows if below(row) and row.kind == Kind.ORIGINATE)
    message = first[Row._fields.index("m_src") : Row._fields.index("m_seq") + 1]

    def about(row: Row) -> bool:
        return bool((row.m_src, row.m_inc, row.m_seq) == message)

    return {
        "nothing": story.rows,
        "never delivered": without(
            story.rows,
            lambda row: about(row) and row.kind == Kind.DELIVER and not below(row) and not row.proc,
        ),
        "from nowhere": without(
            story.rows, lambda row: about(row) and row.kind == Kind.ORIGINATE and below(row)
        ),
        "with a gap": without(
            story.rows,
            lambda row: about(row) and row.kind == Kind.DELIVER and below(row) and row.proc == 1,
        ),
    }


@pytest.fixture(scope="module")
def home(traces, story, tmp_path_factory) -> Path:
    home: Path = tmp_path_factory.mktemp("layers")
    for run, rows in traces.items():
        write(home / run, replace(story.manifest(STORY), run=run, rows={}), rows)
    return home


@pytest.fixture(scope="module")
def here(home, traces) -> dict[str, Report]:
    """The verdicts of the local checker."""
    found = {run: reader.read(home / run) for run in traces}
    return {run: check(one.rows, one.manifest, profile=BOTH) for run, one in found.items()}


@pytest.fixture(scope="module")
def table(spark, home):
    return ingest(spark, [home], home / "table").table


EXPECTED = {
    "nothing": ("ok", "ok"),
    "never delivered": ("ok", "violated"),
    "from nowhere": ("violated", "ok"),
    "with a gap": ("violated", "ok"),
}


def test_the_story_has_what_the_verdicts_are_about(traces, here):
    rows = traces["nothing"]
    assert {row.kind for row in rows if below(row)} == {Kind.ORIGINATE, Kind.DELIVER}
    assert {row.c_kind for row in rows if below(row)} == {REGULAR}
    assert any((row.k2 or 0) > SLOTS for row in rows if row.kind == Kind.DELIVER)
    for run, report in here.items():
        assert tuple(str(v.validity) for v in report.verdicts) == EXPECTED[run], run


def test_small_runs_are_judged_as_here(spark, table, here):
    for one in check_on_spark(spark, table, held=BOTH):
        assert verdicts(one.report) == verdicts(here[one.run]), one.run


def test_runs_of_any_size_are_judged(spark, table, here):
    """A gap in what a link hands up is not convicted in a large run, but not acquitted either."""
    for one in check_on_spark(spark, table, held=BOTH, slice_rows=300, whole_rows=0, small_rows=0):
        said = tuple(str(v.validity) for v in one.report.verdicts)
        if one.run == "with a gap":
            assert said == ("inconclusive", "ok")
            continue
        assert said == EXPECTED[one.run], one.run
        for verdict in one.report.violated:
            assert verdict.witness
        assert verdicts(one.report) == verdicts(here[one.run]), one.run


def test_a_large_run_of_two_layers_loses_no_verdict(spark, table, traces):
    """The facts of the ordering know nothing of the layer below, nor of the leap to the slots of
    a new distribution."""
    (one,) = (
        report
        for report in check_on_spark(spark, table, slice_rows=300, whole_rows=0, small_rows=0)
        if report.run == "nothing"
    )
    here = check(traces["nothing"], one.manifest)
    assert here.ok
    assert verdicts(one.report) == verdicts(here)


def test_measures_count_messages_once(spark, table, tmp_path):
    lines = {
        line.measure: line for line in measure(spark, table, tmp_path) if line.run == "nothing"
    }
    assert lines["fairness of sending"].count == 220
    assert lines["own"].count == 220
