"""Runs of `fc` on Spark, as if they were too large for one piece: clean ones get every verdict of
their profile, and every fault that is planted in their rows is found."""

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.pipeline.swarm_traces import Verdicts, verdicts

from roundelay.check import Validity, check
from roundelay.core.effects import Kind
from roundelay.pipeline.ingest.into_table import ingest
from roundelay.pipeline.judge.check import check as check_on_spark
from roundelay.sim.runner import ScenarioRunner
from roundelay.sim.scenario import parse
from roundelay.trace import mini
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import Row

from .conftest import write

pytestmark = pytest.mark.slow

STORY = """engine fc {options}
group packet_messages=2
network lan latency=100us
nodes a b c d e
run 60ms
load messages=60 rate=500/s size=10
at 90ms crash b
run 500ms
load messages=40 rate=500/s size=10
run 200ms
heal
end after=1s
----
"""
"""A node crashes, and the others go on."""

KINDS = {
    "paper": "static rules=paper k=1",
    "link": "static rules=link k=1",
    "safe": "static",
    "views": "",
}

Plant = Callable[[list[Row]], list[Row]]


def _of(rows: list[Row], kind: Kind) -> list[int]:
    """The places of rows of this kind about a message."""
    return [i for i, row in enumerate(rows) if row.kind == kind and row.m_seq is not None]


def _changed(rows: list[Row], place: int, **columns: object) -> list[Row]:
    return [*rows[:place], rows[place]._replace(**columns), *rows[place + 1 :]]  # type: ignore[arg-type]


def two_requests_for_one_number(rows: list[Row]) -> list[Row]:
    """A node confirms the number of a request that it confirmed before."""
    one, *_, two = (i for i in _of(rows, Kind.CONFIRM) if rows[i].proc == 0)
    return _changed(rows, two, k2=rows[one].k2, k3=rows[one].k3)


def two_numbers_for_one_request(rows: list[Row]) -> list[Row]:
    """A node confirms a request that it confirmed before."""
    one, *_, two = (i for i in _of(rows, Kind.CONFIRM) if rows[i].proc == 0)
    first = rows[one]
    return _changed(
        rows, two, m_src=first.m_src, m_inc=first.m_inc, m_seq=first.m_seq, count=first.count
    )


def another_request(rows: list[Row]) -> list[Row]:
    """Two nodes confirm different requests as one number."""
    return two_numbers_for_one_request(rows)


def never_decided(rows: list[Row]) -> list[Row]:
    """A request is confirmed as a number that nobody gave it."""
    last = _of(rows, Kind.CONFIRM)[-1]
    return _changed(rows, last, k2=(rows[last].k2 or 0) + 100_000)


def too_early(rows: list[Row]) -> list[Row]:
    """A number is confirmed when no later one is decided: those decisions happen after it."""
    confirm = rows[_of(rows, Kind.CONFIRM)[-1]]
    before = [row for row in rows if row.kind != Kind.ORDER or (row.k2 or 0) <= (confirm.k2 or 0)]
    return _renumbered(before)


def damaged(rows: list[Row]) -> list[Row]:
    """A decision does not reach who is next in line, and both are neighbours of who crashes."""
    sent = {row.pkt for row in rows if row.kind == Kind.SEND and row.tag == "DEC" and row.proc == 0}
    arrives = (i for i, row in enumerate(rows) if row.kind == Kind.ARRIVE and row.pkt in sent)
    place = next(i for i in arrives if rows[i].proc == 2)
    return _changed(rows, place, kind=Kind.DROP, tag="checksum")


def another_key(rows: list[Row]) -> list[Row]:
    """A message is delivered under another key than elsewhere."""
    last = _of(rows, Kind.DELIVER)[-1]
    return _changed(rows, last, k2=(rows[last].k2 or 0) + 100_000)


def another_order(rows: list[Row]) -> list[Row]:
    """A node delivers the last messages that it has a key for the other way round, without keys."""
    mine = [i for i in _of(rows, Kind.DELIVER) if rows[i].proc == 2 and rows[i].k2 is not None]
    one, two = mine[-2:]
    assert (rows[one].m_src, rows[one].m_seq) != (rows[two].m_src, rows[two].m_seq)
    names = ("m_src", "m_inc", "m_seq", "count", "digest", "size", "svc")
    first = {name: getattr(rows[one], name) for name in names}
    second = {name: getattr(rows[two], name) for name in names}
    keyless: dict[str, object] = dict.fromkeys(("k0", "k1", "k2", "k3"))
    changed = _changed(rows, one, **second, **keyless)
    return _changed(changed, two, **first, **keyless)


def _renumbered(rows: list[Row]) -> list[Row]:
    """Without gaps in the logs of nodes."""
    following: dict[tuple[int, int], int] = {}
    found = []
    for row in rows:
        writer = row.proc, row.inc
        found.append(row._replace(lseq=following.get(writer, 0)))
        following[writer] = following.get(writer, 0) + 1
    return found


PLANTED: list[tuple[str, str, Plant]] = [
    *(("N1", kind, two_requests_for_one_number) for kind in ("safe", "paper", "views")),
    *(("N1", kind, two_numbers_for_one_request) for kind in ("safe", "link", "views")),
    *(("N2", kind, another_request) for kind in ("safe", "paper", "views")),
    *(("N3", kind, never_decided) for kind in ("safe", "paper", "views")),
    *(("N4", kind, too_early) for kind in ("paper", "link")),
    *(("E2", kind, damaged) for kind in ("paper", "link")),
    *(("O3f", kind, another_key) for kind in ("safe", "views")),
    ("O5w", "views", another_order),
]


def _run(name: str) -> tuple[Manifest, list[Row]]:
    story = ScenarioRunner()
    for block in parse(STORY.format(options=KINDS[name])):
        story.play(block)
    return story.manifest(), story.rows


@pytest.fixture(scope="module")
def judged(spark, tmp_path_factory):
    """By run: what the local checker says, and what Spark says of it in small pieces."""
    home = tmp_path_factory.mktemp("fc")
    expected: dict[str, Verdicts] = {}
    stories = {name: _run(name) for name in KINDS}
    runs = {name: rows for name, (_, rows) in stories.items()}
    runs |= {
        f"{kind}-{n}-{name}": plant(runs[kind]) for n, (name, kind, plant) in enumerate(PLANTED)
    }
    for run, rows in runs.items():
        manifest = replace(stories[run.partition("-")[0]][0], run=run, rows=None)
        written = write(home / run, manifest, rows)
        expected[run] = verdicts(check(rows, written))
    table = ingest(spark, [home], home / "table").table
    reports = check_on_spark(spark, table, slice_rows=1000, whole_rows=0, small_rows=0)
    return expected, {one.run: one for one in reports}


@pytest.mark.parametrize("run", KINDS)
def test_a_clean_run_gets_every_verdict_of_its_profile(judged, run):
    expected, found = judged
    assert found[run].report.ok
    assert verdicts(found[run].report) == expected[run]
    held = {entry.property for entry in found[run].report.profile.entries}
    assert {"N1", "N2", "N3", "O3f", "O3i"} <= held
    assert ("N4" in held) is ("E2" in held) is (run in ("paper", "link"))
    assert ("O5w" in held) is ("O5" not in held) is (run == "views")
    for name in {"N1", "N2", "N3", "N4", "O3f", "E2"} & held:
        assert found[run].report[name].validity is Validity.OK


@pytest.mark.parametrize("number", range(len(PLANTED)))
def test_a_planted_fault_is_found(judged, number):
    name, kind, plant = PLANTED[number]
    run = f"{kind}-{number}-{name}"
    expected, found = judged
    assert expected[run][name][0] == Validity.VIOLATED, "the fault is none"
    verdict = found[run].report[name]
    assert verdict.validity is Validity.VIOLATED, (plant.__name__, verdict)
    assert verdict.witness
    assert verdict.reason


DECISIONS = ("N1", "N2", "N3", "N4", "E2")
NUMBERS = (1, 2, 3, 126, 127, 128, 129, 255, 256, 1000, 10**12)
"""On both sides of where a run is split, and far away."""


def _decisions(seed: int) -> str:
    """Replicas decide and confirm, mostly what is right."""
    rng = random.Random(seed)
    number = {name: rng.choice(NUMBERS) for name in "abcdef"}
    words = [f"{rng.choice('pqr')}!{name}" for name in number]
    todo = sorted(number, key=number.__getitem__) if rng.random() < 0.7 else []
    kinds = ["#"] * len(todo)
    for _ in range(rng.randint(3, 14)):
        todo.append(rng.choice("abcdef"))
        kinds.append(rng.choice("#$$$"))
    for name, kind in zip(todo, kinds, strict=True):
        key = rng.choice(NUMBERS) if rng.random() < 0.03 else number[name]
        words.append(f"{rng.choice('pqr')}{kind}{name}={key}.{ord(name) % 3}")
    crash = [f"{node}X" for node in rng.sample("pqr", rng.choice((0, 0, 1, 2)))]
    return " ".join([*words, *crash])


def test_decisions_at_random(spark, tmp_path):
    """Whatever is wrong with them, Spark says the same as the local checker."""
    expected: dict[str, Verdicts] = {}
    for seed in range(60):
        manifest, rows = mini.parse(_decisions(seed), f"run{seed}")
        manifest = replace(manifest, envelope={"k": seed % 2})
        written = write(tmp_path / "in" / manifest.run, manifest, rows)
        expected[manifest.run] = verdicts(check(rows, written, profile=DECISIONS))
    table = ingest(spark, [tmp_path / "in"], tmp_path / "table").table
    reports = check_on_spark(spark, table, held=DECISIONS, slice_rows=2, whole_rows=0, small_rows=0)
    assert {one.run: verdicts(one.report) for one in reports} == expected
    for name in DECISIONS:
        assert {"ok", "violated"} <= {found[name][0] for found in expected.values()}, name


@pytest.fixture(scope="module")
def judged_crashes(spark, tmp_path_factory) -> tuple[dict[str, Verdicts], dict[str, Verdicts]]:
    """Runs in which two that are no neighbours crash, at one time or not: all verdicts on them,
    here and on Spark."""
    home = tmp_path_factory.mktemp("crashes")
    expected: dict[str, Verdicts] = {}
    for time in ("92ms", "400ms"):
        story = ScenarioRunner()
        text = STORY.format(options=KINDS["link"]).replace(
            "crash b\n", f"crash b\nat {time} crash d\n"
        )
        for block in parse(text):
            story.play(block)
        written = write(home / time, replace(story.manifest(), run=time, rows=None), story.rows)
        expected[time] = verdicts(check(story.rows, written))
    table = ingest(spark, [home], home / "table").table
    reports = check_on_spark(spark, table, slice_rows=1000, whole_rows=0, small_rows=0)
    return expected, {one.run: verdicts(one.report) for one in reports}


@pytest.mark.parametrize(("time", "validity"), [("92ms", "violated"), ("400ms", "ok")])
def test_whether_two_crash_at_the_same_time_is_seen(judged_crashes, time, validity):
    expected, found = judged_crashes
    assert expected[time]["E2"][0] == validity
    assert found[time] == expected[time]
