"""Rows of several nodes are merged and judged while they come; no Spark is needed for that."""

import json
import os
import random
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.pipeline.live_traces import PLANTS, LiveNodes, by_life, parts, played, twice
from tests.unit.check.trial import recounted

from roundelay.check import Validity, Verdict, check
from roundelay.check.online import OnlineChecker, findings
from roundelay.pipeline.arrow import EVENT_FIELDS, to_arrays
from roundelay.pipeline.errors import PipelineError
from roundelay.pipeline.live import judge as judge_module
from roundelay.pipeline.live.judge import HOLD_S, SILENT_S, RunJudge
from roundelay.pipeline.live.merge import Merge
from roundelay.pipeline.live.trails import after, steps, trails
from roundelay.pipeline.live.watch import Batch, Watch
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import Row

RESTART = "crash c\nrun 500ms\nrestart c\nrun 500ms"


def table(rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_arrays(to_arrays(rows), schema=pa.schema(EVENT_FIELDS))


def row(proc: int, lseq: int, lam: int, inc: int = 0) -> Row:
    return Row("token", proc, inc, lseq, lam=lam, tag="acquire")


def names(rows: pa.Table | None) -> list[tuple[int, int]]:
    if rows is None:
        return []
    return list(zip(rows.column("proc").to_pylist(), rows.column("lam").to_pylist(), strict=True))


# The order


def test_rows_are_given_out_in_order_once_nobody_can_come_before() -> None:
    merge = Merge()
    merge.add(table([row(1, 0, 3), row(0, 1, 7), row(0, 0, 2), row(1, 1, 3)]))
    assert [known.last for known in merge.lives.values()] == [7, 3]
    assert names(merge.take(3)) == [(0, 2)]
    merge.add(table([row(1, 2, 9)]))
    assert names(merge.take(7)) == [(1, 3), (1, 3)]
    assert names(merge.take(merge.end())) == [(0, 7), (1, 9)]
    assert merge.take(merge.end()) is None


def test_a_node_that_starts_again_is_placed_behind_what_was_given_out_and_its_earlier_life() -> (
    None
):
    merge = Merge()
    merge.add(table([row(0, 0, 100), row(1, 0, 50), row(1, 1, 120)]))
    assert names(merge.take(101)) == [(1, 50), (0, 100)]
    assert merge.add(table([row(1, 0, 0, inc=1), row(1, 1, 130, inc=1), row(0, 1, 125)])) == []
    assert names(merge.take(200)) == [(1, 120), (1, 0), (0, 125), (1, 130)]


def test_rows_that_come_too_late_are_told_and_not_given_out() -> None:
    merge = Merge()
    merge.add(table([row(0, 0, 10), row(1, 0, 5)]))
    merge.take(8)
    assert merge.add(table([row(1, 1, 6), row(0, 1, 11)])) == [(1, 0)]
    assert names(merge.take(merge.end())) == [(0, 10), (0, 11)]
    assert merge.late == 1


# One run


def pieces_of(rows: Iterable[Row], rng: random.Random) -> Iterable[list[Row]]:
    """The rows as they may be read: of each life some, none too far behind the others."""
    left = by_life(rows)
    at = 0
    while any(left.values()):
        at += 150
        batch = []
        for writer, mine in left.items():
            count = sum(one.lam <= at + rng.randint(-60, 60) for one in mine)
            batch += mine[:count]
            left[writer] = mine[count:]
        rng.shuffle(batch)
        yield batch


@pytest.mark.parametrize("seed", range(3))
def test_verdicts_are_those_of_the_rows_in_order_also_if_they_are_saved(seed: int) -> None:
    manifest, rows = played()
    rng = random.Random(seed)
    rows = tuple(twice(rows)) if seed % 2 else rows
    judge = RunJudge(manifest, one_clock=True)
    for batch in pieces_of(rows, rng):
        if batch:
            judge.add(table(batch), 0.0)
        judge.judge(set(judge.merge.lives), 0.0)
        saved, waiting = json.loads(json.dumps(judge.save())), judge.merge.waiting
        judge = RunJudge(manifest, one_clock=True)
        judge.load(saved, waiting)
    judge.judge(set(), 0.0)
    assert judge.rows == len(rows)
    plain = OnlineChecker(manifest.nodes, judge.covered, manifest.resilience)
    for one in sorted(rows, key=lambda one: (one.lam, one.proc, one.lseq)):
        plain.append(one)
    assert judge.verdicts() == plain.verdicts()
    assert judge.violated == bool(seed % 2)


def test_a_restart_is_no_breach() -> None:
    manifest, rows = played(RESTART)
    judge = RunJudge(manifest, one_clock=True)
    for part in parts(rows, 9):
        judge.add(table(part), 0.0)
        judge.judge({writer for writer in judge.merge.lives if writer != (2, 0)}, 0.0)
    judge.judge(set(), 0.0)
    assert (judge.rows, judge.violated, judge.doubts) == (len(rows), False, [])


def test_a_node_that_hears_nothing_is_waited_for_no_longer_than_others_can_bear() -> None:
    manifest, rows = played()
    judge = RunJudge(manifest, one_clock=True)
    judge.add(table([one for one in rows if one.proc != 2]), 0.0)
    judge.add(table([one for one in rows if one.proc == 2][:1]), 0.0)
    lives = {(0, 0), (1, 0), (2, 0)}
    assert judge.judge(lives, 0.0) < 10
    assert judge.judge(lives, HOLD_S - 1) == 0
    assert judge.judge(lives, HOLD_S) > 100
    judge.add(table([one for one in rows if one.proc == 2][1:]), 0.0)
    assert judge.doubts == ["the trace of c came late, after others had gone on without it"]
    judge.judge(set(), 0.0)
    assert {v.validity for v in judge.verdicts() if v.property != "T4"} <= {
        Validity.INCONCLUSIVE,
        Validity.VIOLATED,
    }


# All runs of some directories


class Told:
    """A watcher that remembers."""

    def __init__(self) -> None:
        self.breaches: list[tuple[int, Verdict]] = []
        self.batches: list[Batch] = []
        self.notes: list[str] = []
        self.runs: list[str] = []

    def begins(self, judge: RunJudge) -> None:
        self.runs.append(judge.manifest.run)

    def violated(self, manifest: Manifest, verdict: Verdict) -> None:
        self.breaches.append((len(self.batches), verdict))

    def batch(self, batch: Batch) -> None:
        self.batches.append(batch)

    def note(self, sentence: str) -> None:
        self.notes.append(sentence)


class Watching:
    """A watch that is told what is new without a query, and a clock that stands still."""

    def __init__(self, source: Path, home: Path) -> None:
        self.now = 0.0
        self.told = Told()
        home.mkdir(exist_ok=True)
        self._source, self._home = source, home
        self._read = {}  # type: ignore[var-annotated]
        self._begun = 0
        self.watch = Watch([str(source)], home, self.told, lambda: self.now)

    def batch(self) -> None:
        new = steps(trails([self._source]), self._read)
        self._read = after(self._read, new)
        self.watch.batch([step.source for step in new], self._begun + len(self.told.batches))

    def resumed(self) -> "Watching":
        """The next process on the same output."""
        other = Watching(self._source, self._home)
        other._read, other._begun = self._read, len(self.told.batches) + self._begun
        other.watch.resume(other._begun - 1)
        return other

    def verdicts(self) -> dict[str, Verdict]:
        return {v.property: v for v in self.watch.judges["live"].verdicts()}


def test_a_node_that_has_written_nothing_yet_is_waited_for(tmp_path, live) -> None:
    manifest, rows = played()
    first, *_ = parts(rows, 3)
    nodes = live(tmp_path / "in", manifest)
    nodes.write([one for one in first if one.proc != 2])
    nodes.write([one for one in first if one.proc == 2], roll=False)
    for path in (tmp_path / "in").glob("c-0.0*.parquet"):
        path.unlink()
    watching = Watching(tmp_path / "in", tmp_path / "out")
    watching.batch()
    assert watching.told.batches[0].judged == 0
    watching.now += SILENT_S
    watching.watch.idle()
    assert watching.watch.judges["live"].rows > 100


def test_who_goes_on_knows_what_was_found_and_judges_what_waited(tmp_path, live) -> None:
    manifest, clean = played()
    rows = tuple(twice(clean))
    nodes = live(tmp_path / "in", manifest)
    nodes.write(rows)
    first = Watching(tmp_path / "in", tmp_path / "out")
    first.batch()
    assert first.told.batches[-1].waiting
    stored = {path: path.read_bytes() for path in (tmp_path / "out").glob("*.parquet")}
    second = first.resumed()
    assert second.watch.violated
    second.watch.idle()
    assert {path: path.read_bytes() for path in stored} == stored
    second.now += SILENT_S
    second.watch.idle()
    assert second.watch.judges["live"].rows == len(rows)
    assert second.told.breaches == [], "it was told before"


def test_nothing_is_judged_before_what_is_there_was_read(tmp_path, live) -> None:
    """The first batch of a process may take longer than a node may be silent."""
    manifest, rows = played()
    first, second = parts(rows, 2)
    nodes = live(tmp_path / "in", manifest)
    nodes.write(first)
    watching = Watching(tmp_path / "in", tmp_path / "out")
    watching.batch()
    nodes.write([one for one in second if one.proc == 2])
    for _ in range(2):
        watching.now += HOLD_S
        watching.watch.idle()
    nodes.write([one for one in second if one.proc != 2])
    watching.batch()
    nodes.close()
    watching.watch.idle()
    assert (watching.watch.judges["live"].rows, watching.told.notes) == (len(rows), [])


def test_it_is_behind_by_the_age_of_the_oldest_row_that_waits(tmp_path, live) -> None:
    manifest, rows = played()
    nodes = live(tmp_path / "in", manifest)
    watching = Watching(tmp_path / "in", tmp_path / "out")
    behind = []
    for part, age in zip(parts(rows, 2), (500, 20), strict=True):
        there = set((tmp_path / "in").glob("*.parquet"))
        nodes.write(one for one in part if one.proc != 2 or age == 500)
        for path in set((tmp_path / "in").glob("*.parquet")) - there:
            os.utime(path, (time.time() - age,) * 2)
        watching.batch()
        behind.append(watching.told.batches[-1].behind_s)
        watching = watching.resumed()
    assert watching.watch.judges["live"].waiting
    assert all(500 <= one < 510 for one in behind)
    nodes.close()
    nodes.write([])
    watching.now += SILENT_S
    watching.batch()
    watching.batch()
    assert [batch.waiting for batch in watching.told.batches] == [0, 0]
    measured = pq.read_table(tmp_path / "out" / "measures.parquet").column("behind_s").to_pylist()
    assert [round(one, -1) for one in measured] == [500, 500, 500, 0]


def test_a_file_that_is_removed_before_it_is_read_is_told(tmp_path, live) -> None:
    manifest, rows = played()
    nodes = live(tmp_path / "in", manifest)
    nodes.write(rows[:100])
    watching = Watching(tmp_path / "in", tmp_path / "out")
    new = [step.source for step in steps(trails([tmp_path / "in"]), {})]
    Path(new[0].path).unlink()
    with pytest.raises(PipelineError, match="is gone, which was found and not yet read; copy it"):
        watching.watch.batch(new, 0)


@pytest.mark.parametrize("format", ["parquet", "jsonl"])
def test_who_is_killed_holds_nobody_up_and_nobody_is_convicted(tmp_path, live, format) -> None:
    """Of Parquet the last rows are lost, so that others deliver what nobody sent. Lines are not."""
    manifest, rows = played("crash c\nrun 500ms")
    mine = [one for one in rows if one.proc == 2]
    lost = {one.lseq for one in mine[-40:]} if format == "parquet" else {mine[-1].lseq}
    nodes: LiveNodes = live(tmp_path / "in", manifest, format)
    watching = Watching(tmp_path / "in", tmp_path / "out")
    kept = [one for one in rows if one.proc != 2 or one.lseq not in lost]
    *most, last = parts(tuple(kept), 6)
    for part in most:
        nodes.write(part)
        watching.batch()
    before = watching.watch.judges["live"].rows
    watching.now += SILENT_S
    nodes.write(last)
    watching.batch()
    assert watching.watch.judges["live"].rows > before + 100
    assert watching.told.breaches == []
    verdict = watching.verdicts()["D1"]
    if format == "parquet":
        assert verdict.validity is Validity.INCONCLUSIVE
        assert "node c wrote nothing for long and did not stop in good order" in verdict.reason
        assert watching.verdicts()["O4"].validity is Validity.OK
    else:
        assert verdict.validity is Validity.OK


def test_a_trace_that_cannot_be_read_yet_and_a_run_without_manifest_are_named(
    tmp_path: Path,
) -> None:
    from roundelay.trace.writer import Writer

    manifest, rows = played()
    home = tmp_path / "in"
    writer = Writer(home, replace(manifest, rows=None), name="a-0", format="parquet")
    with Writer(home, Manifest(run="other", nodes=()), name="x-1", format="jsonl") as other:
        other.append(rows[0])
    (home / "x-1.manifest.json").unlink()
    watching = Watching(home, tmp_path / "out")
    watching.batch()
    writer.abandon()
    assert watching.told.notes == [
        f"{home}/a-0.parquet cannot be read before its node stops; start nodes with trace_roll_s",
        "run other is not judged, as no manifest says which protocol it has",
    ]


def test_a_state_that_is_gone_is_told(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    watching = Watching(tmp_path / "in", tmp_path / "out")
    with pytest.raises(
        PipelineError, match=r"the state after batch 6 is not in .*; begin again with"
    ):
        watching.watch.batch([], 7)


def test_what_is_kept_does_not_grow_with_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge_module, "WINDOW_PACKETS", 100)
    monkeypatch.setattr(findings, "WITNESS_ROWS", 200)
    manifest, rows = played("load messages=6000 rate=2000/s size=10\nrun 4s")
    judge = RunJudge(manifest, one_clock=True)
    sizes = []
    for part in parts(rows, 12):
        judge.add(table(part), 0.0)
        judge.judge(set(judge.merge.lives), 0.0)
        sizes.append(len(json.dumps(judge.save())))
    assert max(sizes[6:]) < 1.1 * max(sizes[2:6])
    assert judge.waiting < 200


@pytest.mark.parametrize("name", ["nothing", *PLANTS])
def test_the_batch_check_agrees(name: str) -> None:
    manifest, rows = played()
    told = list(PLANTS[name](rows)) if name in PLANTS else list(rows)
    judge = RunJudge(manifest, one_clock=True)
    judge.add(table(told), 0.0)
    judge.judge(set(), 0.0)
    live = {v.property for v in judge.verdicts() if v.validity is Validity.VIOLATED}
    whole = check(told, recounted(manifest, told), profile=judge.covered)
    assert live == {v.property for v in whole.violated}
    assert (name in live) == (name in PLANTS) == bool(live)
