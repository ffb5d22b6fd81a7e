"""What Spark cannot know it does not say; what it says it shows."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.check.test_primacy import BROKEN, FINE
from tests.unit.check.test_wellformed import HERE, lives
from tests.unit.check.trial import recounted

from roundelay.check import check
from roundelay.core.effects import Kind
from roundelay.core.ids import Service
from roundelay.pipeline.ingest.into_table import ingest
from roundelay.pipeline.judge.check import check as check_on_spark
from roundelay.trace import mini
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import REGULAR, Row

from .conftest import write

pytestmark = pytest.mark.slow


def judged(spark, home, traces, names, **options):
    """The reports on traces, by run: here and on Spark."""
    here = {}
    for run, (manifest, rows) in traces.items():
        written = write(home / "in" / run, replace(manifest, run=run), rows, "jsonl")
        written = replace(written, ended=manifest.ended)
        here[run] = check(rows, written, profile=names, problems=written.cut_short())
    table = ingest(spark, [home / "in"], home / "table").table
    there = check_on_spark(spark, table, held=names, **options)
    return {one.run: (here[one.run], one.report) for one in there}


class Real:
    """Writes the rows of real nodes: frames, Lamport clocks and no total order."""

    def __init__(self, *, clocks: bool) -> None:
        self.rows: list[Row] = []
        self.lseq: Counter[tuple[int, int]] = Counter()
        self.inc: Counter[int] = Counter()
        self.lam: Counter[int] = Counter()
        self.sent: dict[int, int] = {}
        self.clocks = clocks

    def write(self, kind: Kind, proc: int, **columns: Any) -> None:
        life = proc, self.inc[proc]
        columns = {"c_seq": 1, "c_rep": 0, "c_kind": REGULAR, **columns}
        row = Row(kind, *life, self.lseq[life], lam=self.lam[proc] * self.clocks)
        self.rows.append(row._replace(**columns))
        self.lseq[life] += 1

    def frame(self, sender: int, receiver: int) -> None:
        self.lam[sender] += 1
        pkt = len(self.sent)
        self.sent[pkt] = self.lam[sender]
        self.write(Kind.SEND, sender, pkt=pkt)
        self.lam[receiver] = max(self.lam[receiver], self.lam[sender])
        self.write(Kind.ARRIVE, receiver, pkt=pkt)

    def message(self, kind: Kind, proc: int) -> None:
        about = {"m_src": 0, "m_inc": 0, "m_seq": 0, "svc": int(Service.SAFE)}
        self.write(kind, proc, **about)

    def restart(self, proc: int) -> None:
        self.write(Kind.CRASH, proc)
        self.inc[proc] += 1
        self.lam[proc] = 0
        self.write(Kind.RECOVER, proc, level=1)

    def trace(self) -> tuple[Manifest, list[Row]]:
        return recounted(Manifest("r", ("a", "b", "c")), self.rows), self.rows


def safe_delivery(
    *, early: bool, clocks: bool, restart: bool = False
) -> tuple[Manifest, list[Row]]:
    """a delivers a safe message; if it is early, before it can have heard that b has it."""
    real = Real(clocks=clocks)
    for proc in (0, 1):
        real.write(Kind.INSTALL, proc, members=(0, 1), primary=False)
    if restart:
        real.write(Kind.INSTALL, 2, c_seq=9, members=(2,), primary=False)
        real.restart(2)
    real.message(Kind.ORIGINATE, 0)
    if early:
        real.message(Kind.DELIVER, 0)
    real.frame(0, 1)
    real.message(Kind.RECEIVE, 1)
    real.frame(1, 0)
    if not early:
        real.message(Kind.DELIVER, 0)
    return real.trace()


def test_only_frames_could_tell_and_they_are_too_many(spark, tmp_path):
    """A run that the local checker convicts is never acquitted. Where Lamport clocks exclude that
    frames would change anything, the verdict is the same."""
    traces = {
        f"{early}-{clocks}-{restart}": safe_delivery(early=early, clocks=clocks, restart=restart)
        for early in (False, True)
        for clocks in (False, True)
        for restart in (False, True)
    }
    names = ["T4", "D1", "S4"]
    found = judged(spark, tmp_path, traces, names, slice_rows=2, whole_rows=0, small_rows=0)
    for run, (here, there) in found.items():
        early, clocks, restart = (word == "True" for word in run.split("-"))
        assert [v.validity for v in here.verdicts] == ["ok", "ok", "violated" if early else "ok"]
        sure = clocks and not restart
        assert there["T4"].validity == ("ok" if sure else "inconclusive"), run
        assert there["D1"].validity == ("ok" if sure else "inconclusive"), run
        assert there["S4"].validity == ("ok" if sure and not early else "inconclusive"), run
        if not sure:
            assert "only frames could tell" in there["T4"].reason


def test_a_run_without_frames_is_judged_as_it_is(spark, tmp_path):
    manifest, rows = safe_delivery(early=True, clocks=False)
    bare = [row for row in rows if row.kind not in (Kind.SEND, Kind.ARRIVE)]
    life: Counter[int] = Counter()
    numbered = []
    for row in bare:
        numbered.append(row._replace(lseq=life[row.proc]))
        life[row.proc] += 1
    traces = {"bare": (recounted(manifest, numbered), numbered)}
    names = ["T4", "D1", "S4"]
    ((here, there),) = judged(
        spark, tmp_path, traces, names, slice_rows=2, whole_rows=0, small_rows=0
    ).values()
    assert [v.validity for v in here.verdicts] == [v.validity for v in there.verdicts]
    assert there["S4"].validity == "ok"


@pytest.mark.parametrize("small_rows", [0, 400_000])
@pytest.mark.parametrize("slice_rows", [2, 40_000])
def test_primary_views(spark, tmp_path, slice_rows, small_rows):
    texts = {**FINE, **{f"broken {n}": text for n, (text, *_) in enumerate(BROKEN)}}
    traces = {}
    for run, text in texts.items():
        manifest, rows = mini.parse(f"{text} p!a p!b p!c")
        traces[run.replace(" ", "-")] = manifest, rows
        bare = [row._replace(gseq=None) for row in rows]
        traces[f"{run} real".replace(" ", "-")] = manifest, bare
    names = ["M2", "M5", "M10"]
    found = judged(spark, tmp_path, traces, names, slice_rows=slice_rows, small_rows=small_rows)
    for run, (here, there) in found.items():
        assert here.verdicts == there.verdicts, run
    assert {here["M10"].validity for here, _ in found.values()} == {"ok", "violated"}


LOSSES = {
    "none": lambda rows: rows,
    "first": lambda rows: [row for row in rows if (row.proc, row.inc, row.lseq) != (0, 0, 0)],
    "inner": lambda rows: [row for row in rows if (row.proc, row.inc, row.lseq) != (0, 0, 1)],
    "last": lambda rows: [row for row in rows if (row.proc, row.inc, row.lseq) != (0, 1, 1)],
    "life": lambda rows: [row for row in rows if (row.proc, row.inc) != (0, 1)],
    "node": lambda rows: [row for row in rows if row.proc != 0],
    "twice": lambda rows: [*rows, rows[2]],
}


@pytest.mark.parametrize("small_rows", [0, 400_000])
def test_what_is_next_to_missing_rows_is_shown(spark, tmp_path, small_rows):
    manifest, rows = mini.parse("p!a q?a p.a q.a pX p^1 p!b pX p^2 p.b")
    for run, lose in LOSSES.items():
        home = tmp_path / "in" / run
        write(home, replace(manifest, run=run), lose(rows), "jsonl")
        # The manifest counts what there was.
        whole = replace(manifest, run=run, sha256="")
        (home / "manifest.json").write_text(whole.to_json())
    table = ingest(spark, [tmp_path / "in"], tmp_path / "table").table
    for one in check_on_spark(spark, table, held=["T1"], small_rows=small_rows):
        here = check(LOSSES[one.run](rows), manifest, profile=["T1"])["T1"]
        there = one.report["T1"]
        assert (there.validity, there.instances) == (here.validity, here.instances), one.run
        places = [(row.proc, row.inc, row.lseq) for row in there.witness]
        if one.run == "twice" and not small_rows:
            assert places == [(0, 0, 1)]
        else:
            assert places == [(row.proc, row.inc, row.lseq) for row in here.witness], one.run
        assert bool(places) == (one.run != "none")


def test_a_disk_that_was_full_and_a_clock_that_was_set_back(spark, tmp_path):
    manifest, rows = mini.parse("p!a q?a q.a p.a")
    left = [row for row in rows if row.proc == 1]
    full = replace(recounted(manifest, left), ended={"0.0": "its disk was full"})
    back = lives((5, 6), (1, 2), machines=HERE)
    names = ["T1", "T2", "T3", "T4", "D1", "O1"]
    traces = {"full": (full, left), "back": back, "fine": lives((1, 2), (5, 6), machines=HERE)}
    found = judged(spark, tmp_path, traces, names, slice_rows=2, small_rows=0)
    for run, (here, there) in found.items():
        assert [v.validity for v in here.verdicts] == [v.validity for v in there.verdicts], run
    for name in ("T4", "D1"):
        reason = "the trace of node p ends early, its disk was full"
        assert found["full"][1][name].reason == reason
    assert "its clock was set back" in found["back"][1]["O1"].reason
    assert found["fine"][1]["O1"].validity == "ok"
