"""Spark gives the verdicts of the local checker, property by property."""

from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

import pytest
from tests.pipeline.swarm_traces import Verdicts, simulate, verdicts
from tests.unit.check.trial import corpus

from roundelay.check import PROPERTIES, check
from roundelay.group.engines import MODULES, STATIC_ONLY
from roundelay.pipeline import slices
from roundelay.pipeline.check import check as check_on_spark
from roundelay.pipeline.ingest import ingest
from roundelay.trace import mini

from .conftest import write

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def differences(reports, expected: dict[str, Verdicts]) -> list[str]:
    assert {one.run for one in reports} == expected.keys()
    found = []
    for one in reports:
        for name, verdict in verdicts(one.report).items():
            if verdict != expected[one.run][name]:
                found.append(f"{one.run} {name}: {expected[one.run][name]} here, {verdict} there")
    return found


@pytest.fixture(scope="module")
def mutants(spark, tmp_path_factory):
    """The corpus, with and without a total order of events, judged here."""

    home = tmp_path_factory.mktemp("corpus")
    expected: dict[str, Verdicts] = {}
    for number, case in enumerate(corpus()):
        for total in (True, False):
            manifest, rows = case.trace()
            if not total:
                rows = [row._replace(gseq=None) for row in rows]
            run = f"{number}-{case}-{'sim' if total else 'real'}"
            manifest = replace(manifest, run=run)
            written = write(home / run, manifest, rows, "jsonl" if number % 2 else "parquet")
            expected[run] = verdicts(check(rows, written, profile=list(PROPERTIES)))
    return ingest(spark, [home], home / "table").table, expected


@pytest.mark.parametrize("slice_rows", [2, 40_000])
def test_the_mutation_corpus(spark, mutants, slice_rows):
    """In slices of two rows, where almost nothing is in one piece, and whole."""

    table, expected = mutants
    reports = check_on_spark(spark, table, held=list(PROPERTIES), slice_rows=slice_rows)
    assert not [problem for one in reports for problem in one.problems]
    assert not differences(reports, expected)
    convicted = {v.property for one in reports for v in one.report.violated}
    assert convicted == PROPERTIES.keys() - {
        "T1",
        "L5",
        "L6",
        "L7",
        "E2",
        "E3",
        "E4",
        "E5",
        "E6",
    } | {v for v in convicted if v in ("L6", "E2", "E3", "E4")}
    for one in reports:
        for verdict in one.report.violated:
            assert verdict.reason
            assert verdict.witness, (one.run, verdict)


TRACES = 200
KINDS = [
    (engine, static)
    for engine in sorted(MODULES)
    for static in (False, True)
    if static or engine not in STATIC_ONLY
]


def test_two_hundred_swarm_traces(spark, tmp_path):

    jobs = [(*KINDS[i % len(KINDS)], i // len(KINDS), str(tmp_path)) for i in range(TRACES)]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        expected = dict(pool.map(simulate, *zip(*jobs, strict=True), chunksize=10))
    table = ingest(spark, [tmp_path], tmp_path / "table").table
    reports = check_on_spark(spark, table, slice_rows=8000)
    assert not differences(reports, expected)
    assert len(reports) == TRACES


BROKEN = {
    "O1": "p!a p!b p.a=1 p.b=2 q.b=1 q.a=2",
    "O3i": "p!a q!b p.a=1 q.b=1",
    "O4": "p!a q!b p.a=2 p.b=1",
    "O5": "p!a q!b p.a=1 p.b=2 q.b=1 q.a=2",
    "O5p": "p!a q!b p.a=1 p.b=2 q.b=2 q.a=1",
    "O6": "p!a q!b r!c p.a=1 p.b=2 p.c=3 q.a=1 q.c=3",
    "D2": "p!a p!b p.a=1 p.b=2 p.a=3",
    "none": "p!a q!b p.a=1 p.b=2 q.a=1 q.b=2",
}
"""By what is broken: traces with keys."""


def test_a_run_too_large_for_one_piece_is_convicted_and_never_acquitted(
    spark, tmp_path, monkeypatch
):
    """What is wrong is looked for where the facts point; what is only not proved stays open."""
    expected = {}
    for name, text in BROKEN.items():
        manifest, rows = mini.parse(text, name)
        written = write(tmp_path / "in" / name, manifest, rows)
        expected[name] = verdicts(check(rows, written, profile=list(SUSPECT)))
    table = ingest(spark, [tmp_path / "in"], tmp_path / "table").table
    monkeypatch.setattr(slices, "ALL_ROWS_MAX", 0)
    for one in check_on_spark(spark, table, held=list(SUSPECT), slice_rows=0):
        for verdict in one.report.verdicts:
            here, _ = expected[one.run][verdict.property]
            assert verdict.validity in (here, "inconclusive"), (one.run, verdict)
            if one.run == verdict.property:
                assert verdict.validity == "violated", verdict
                assert verdict.witness
        if one.run == "none":
            assert one.report.ok


SUSPECT = sorted(slices.SUSPECT)
