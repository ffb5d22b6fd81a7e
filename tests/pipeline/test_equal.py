"""Spark gives the verdicts of the local checker, property by property."""

from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context

import pytest
from tests.pipeline.swarm_traces import Verdicts, clean, simulate, simulate_log, verdicts
from tests.unit.check.trial import corpus

from roundelay.check import PROPERTIES, check
from roundelay.group.engines import describe, engine_names
from roundelay.pipeline.ingest.into_table import ingest
from roundelay.pipeline.judge.check import check as check_on_spark
from roundelay.pipeline.judge.joins import caught_up, stable_prefix
from roundelay.pipeline.properties import Slice, judged_on
from roundelay.trace import mini

from .conftest import write

pytestmark = pytest.mark.slow


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


@pytest.mark.parametrize(("slice_rows", "small_rows"), [(2, 0), (40_000, 0), (2, 400_000)])
def test_the_mutation_corpus(spark, mutants, slice_rows, small_rows):
    """In slices of two rows, where almost nothing is in one piece; whole, by way of Spark; and as
    small runs, which a task judges as it finds them."""

    table, expected = mutants
    sizes = {"slice_rows": slice_rows, "small_rows": small_rows}
    reports = check_on_spark(spark, table, held=list(PROPERTIES), **sizes)
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


def test_the_mutation_corpus_as_if_it_were_large(spark, mutants):
    """Where nothing is judged in one piece, a verdict is the same or there is none."""
    table, expected = mutants
    reports = check_on_spark(
        spark, table, held=list(PROPERTIES), slice_rows=2, whole_rows=0, small_rows=0
    )
    assert not wrong(reports, expected)
    convicted = {v.property for one in reports for v in one.report.violated}
    assert convicted >= judged_on(Slice.KEYS) | judged_on(Slice.TOKENS)


def wrong(reports, expected: dict[str, Verdicts]) -> list[str]:
    return [
        line for line in differences(reports, expected) if "('inconclusive', 0) there" not in line
    ]


TRACES = 100
KINDS = [
    (engine, static)
    for engine in engine_names()
    for static in (False, True)
    if static or not describe(engine).static_only
]


@pytest.fixture(scope="module")
def swarm(spark, tmp_path_factory):
    """Traces of the swarm, and a clean one of every kind, judged here."""
    home = tmp_path_factory.mktemp("swarm")
    jobs = [(*KINDS[i % len(KINDS)], i // len(KINDS), str(home)) for i in range(TRACES)]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        expected = dict(pool.map(simulate, *zip(*jobs, strict=True), chunksize=10))
        kinds = [(*kind, str(home)) for kind in KINDS if kind[0] != "template"]
        expected |= pool.map(clean, *zip(*kinds, strict=True))
    return ingest(spark, [home], home / "table").table, expected


def test_a_hundred_swarm_traces(spark, swarm):
    table, expected = swarm
    reports = check_on_spark(spark, table, slice_rows=20_000, small_rows=0)
    assert not differences(reports, expected)
    assert len(reports) >= TRACES


LOGS = 6


def test_swarm_traces_of_logs_in_slices(spark, tmp_path):
    """Entries, sessions and what nodes knew are judged apart from each other."""
    expected = dict(simulate_log(seed, str(tmp_path / "in")) for seed in range(LOGS))
    table = ingest(spark, [tmp_path / "in"], tmp_path / "table").table
    reports = check_on_spark(spark, table, slice_rows=100, small_rows=0)
    of_log = judged_on(Slice.LOG) | judged_on(Slice.ENTRIES) | judged_on(Slice.SESSIONS)
    assert not differences(reports, expected)
    shown = {n for found in expected.values() for n, v in found.items() if v[0] == "ok"}
    assert of_log - {"J12"} <= shown


WITHOUT_KEYS = {"causal": {"O2", "O2r"}, "st": {"O1r", "O2", "O5", "O5p", "O5w"}}
"""By engine: what only keys could prove in a large run, and the engine has none."""

DOUBTFUL = {"O2", "O2r", "O3f", "O5", "O5p", "O5w", "O6", "O8", "O9", "O11"}
"""What faults may leave open in a large run with views."""


def test_swarm_traces_as_if_they_were_large(spark, swarm):
    """Where nothing is judged in one piece, a verdict is the same or there is none. A clean run
    gets every verdict of its profile, and a static one as well, faults or not."""
    table, expected = swarm
    reports = check_on_spark(spark, table, slice_rows=8000, whole_rows=0, small_rows=0)
    assert not wrong(reports, expected)
    left: Counter[str] = Counter()
    in_views = [one for one in reports if one.run in SWARM_IN_VIEWS]
    for one in reports:
        if one.run.startswith("template-"):
            continue  # It has no keys, and so no certificate.
        opened = {
            v.property
            for v in one.report.verdicts
            if v.validity == "inconclusive" and expected[one.run][v.property][0] != "inconclusive"
        }
        engine = one.run.removeprefix("clean-").partition("-")[0]
        allowed = WITHOUT_KEYS.get(engine, set())
        allowed = allowed | DOUBTFUL if one.run in SWARM_IN_VIEWS else allowed
        assert opened <= allowed, (one.run, opened)
        left.update(opened - WITHOUT_KEYS.get(engine, set()))
    # In views, most runs are decided nevertheless.
    assert all(count * 2 < len(in_views) for count in left.values()), left


SWARM_IN_VIEWS = {
    f"{engine}-views-{seed}" for engine, static in KINDS if not static for seed in range(TRACES)
}


BROKEN = {
    "O1": "p!a p!b p.a=1 p.b=2 q.b=1 q.a=2",
    "O3i": "p!a q!b p.a=1 q.b=1",
    "O4": "p!a q!b p.a=2 p.b=1",
    "O5": "p!a q!b p.a=1 p.b=2 q.b=1 q.a=2",
    "O5p": "p!a q!b p.a=1 p.b=2 q.b=2 q.a=1",
    "O5w": "p+V1{p,q} q+V1{p,q} p!a q!b p.a=1 p.b=2 q.b=1 q.a=2 p+V2{p,q} q+V2{p,q}",
    "O6": "p!a q!b r!c p.a=1 p.b=2 p.c=3 q.a=1 q.c=3",
    "D2": "p!a p!b p.a=1 p.b=2 p.a=3",
    "none": "p!a q!b p.a=1 p.b=2 q.a=1 q.b=2",
}
"""By what is broken: traces with keys."""


def test_a_run_too_large_for_one_piece_is_convicted_and_never_acquitted(spark, tmp_path):
    """What is wrong is looked for where the facts point; what is only not proved stays open."""
    expected = {}
    for name, text in BROKEN.items():
        manifest, rows = mini.parse(text, name)
        written = write(tmp_path / "in" / name, manifest, rows)
        expected[name] = verdicts(check(rows, written, profile=list(SUSPECT)))
    table = ingest(spark, [tmp_path / "in"], tmp_path / "table").table
    for one in check_on_spark(
        spark, table, held=list(SUSPECT), slice_rows=1, whole_rows=0, small_rows=0
    ):
        for verdict in one.report.verdicts:
            here, _ = expected[one.run][verdict.property]
            assert verdict.validity in (here, "inconclusive"), (one.run, verdict)
            if one.run == verdict.property:
                assert verdict.validity == "violated", verdict
                assert verdict.witness
        if one.run == "none":
            assert one.report.ok


SUSPECT = sorted(judged_on(Slice.SUSPECTS))


CLAIMS = {
    "in order": "p!a p!b p!c p.a=1 p.b=2 p*a p*b p.c=3 p*c",
    "not all": "p!a p!b p.a=1 p.b=2 p*a",
    "by level": "p!a p!b p.a=1 p.b=2 p*a p*b p*a:2",
    "backwards": "p!a p!b p.a=1 p.b=2 p*b p*a",
    "with a hole": "p!a p!b p!c p.a=1 p.b=2 p.c=3 p*a p*c",
    "of the next view": "p+V1{p} p!a p.a=1 p+V2{p} p!b p.b=1 p*b",
}
ASSIGNMENTS = {
    "caught up": "p!a p!b q?a q#a=1 q?b q#b=5000",
    "one ahead": "p!a p!b q?a q#a=1 r?b r#b=5000",
    "too late": "p!a p!b q?a q#a=1 r?b r#b=5000 r?a",
    "downwards": "p!a p!b q?a q?b q#b=5000 q#a=1",
}


@pytest.mark.parametrize(
    ("name", "texts", "prove"),
    [("S5", CLAIMS, partial(stable_prefix, stretch_rows=1)), ("K4", ASSIGNMENTS, caught_up)],
)
def test_joins_prove_what_holds_and_nothing_else(spark, tmp_path, name, texts, prove):
    """Also where what belongs together is in two pieces."""
    expected = {}
    for run, text in texts.items():
        manifest, rows = mini.parse(text, run)
        written = write(tmp_path / "in" / run, manifest, rows)
        expected[run] = check(rows, written, profile=[name]).verdicts[0]
    table = ingest(spark, [tmp_path / "in"], tmp_path / "table").table
    said = prove(table.events(spark), list(texts))
    assert said.keep == {run: v.instances for run, v in expected.items() if v.validity == "ok"}
    assert "violated" in {v.validity for v in expected.values()}
