"""The directory of a sweep, and the loop that fills it, without Spark."""

import csv
import json
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import roundelay
from roundelay.cli import main
from roundelay.experiments import load
from roundelay.experiments.plan import SweepPlan, parse
from roundelay.pipeline.errors import PipelineError
from roundelay.pipeline.sweep import drive, store, work
from roundelay.pipeline.sweep.store import Store, open_store, read_sweep
from roundelay.pipeline.sweep.waves import Wave, Waves
from roundelay.pipeline.sweep.work import Job, Row
from roundelay.trace import reader

PLAN = """seeds = 2
[[grid]]
protocol = ["fifo", "template"]
messages = [4, 6]
"""


@pytest.fixture
def plan() -> SweepPlan:
    return parse(PLAN, "small.toml")


def fill(held: Store, jobs: list[Job], first: int = 0) -> None:
    """Run cells here, two in a wave."""
    for i in range(0, len(jobs), 2):
        held.add_wave(first + i, [work.run(job) for job in jobs[i : i + 2]])


def everything(directory: Path) -> dict[str, bytes]:
    """The files of the table, byte by byte."""
    paths = [*directory.glob("results/**/*.parquet"), directory / "results.csv"]
    return {str(path.relative_to(directory)): path.read_bytes() for path in paths}


def test_the_table_has_every_cell_in_the_order_of_the_plan(plan, tmp_path):
    with open_store(tmp_path, plan) as held:
        fill(held, list(reversed(held.pending(retry=False))))
        held.write_results()
    table = pq.read_table(tmp_path / "results")
    assert set(table.column("protocol").to_pylist()) == {"fifo", "template"}
    with (tmp_path / "results.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(r["protocol"], r["messages"], r["seed"]) for r in rows[:3]] == [
        ("fifo", "4", "0"),
        ("fifo", "4", "1"),
        ("fifo", "6", "0"),
    ]
    alone = load.run(load.Cell("fifo", messages=6), 1)
    assert {name: float(rows[3][name]) for name in alone} == alone
    assert json.loads((tmp_path / "sweep.json").read_text())["finished"] is True


def test_what_is_done_is_not_done_again_and_the_table_is_the_same(plan, tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    with open_store(whole, plan) as held:
        fill(held, held.pending(retry=False))
        held.write_results()
    with open_store(cut, plan) as held:
        fill(held, held.pending(retry=False)[2:4])
    (cut / "waves" / "00009.tmp").write_bytes(b"half a wave")
    with open_store(cut, plan) as held:
        left = held.pending(retry=False)
        assert len(left) == len(plan.runs()) - 2
        fill(held, left, held.next_wave)
        held.write_results()
    assert everything(cut) == everything(whole)


def test_an_error_is_a_row_and_is_run_again_only_if_asked(plan, tmp_path, monkeypatch):
    def run(cell: load.Cell, seed: int) -> dict[str, float]:
        if cell.messages == 6:
            raise RuntimeError("too many\nand more")
        return {"found": 1.0}

    monkeypatch.setattr(load, "run", run)
    with open_store(tmp_path, plan) as held:
        fill(held, held.pending(retry=False))
        held.write_results()
        assert {why for _, why in held.errors()} == {"RuntimeError: too many"}
        assert not held.pending(retry=False)
        assert len(held.pending(retry=True)) == 4
    rows = pq.read_table(tmp_path / "results").to_pylist()
    found = {(r["found"], r["error"]) for r in rows if r["messages"] == 6}
    assert found == {(None, "RuntimeError: too many")}
    monkeypatch.setattr(load, "run", lambda cell, seed: {"found": 2.0})
    with open_store(tmp_path, plan) as held:
        fill(held, held.pending(retry=True), held.next_wave)
        assert not held.errors()
    sweep = read_sweep(tmp_path)
    assert sweep is not None
    assert sorted(r.measures["found"] for r in sweep.results) == [1.0] * 4 + [2.0] * 4


def test_one_cell_and_another_have_names_of_their_own(plan):
    jobs = [work.job("load", one) for one in plan.runs()]
    assert len({job.name for job in jobs}) == len(jobs)
    assert jobs[0].name == work.job("load", plan.runs()[0]).name != jobs[1].name
    assert jobs[0].name != work.job("totem", plan.runs()[0]).name


def test_traces_are_kept_if_the_plan_says_so(plan, tmp_path):
    with open_store(tmp_path, replace(plan, traces=True)) as held:
        jobs = held.pending(retry=False)
        rows = [work.run(job) for job in jobs]
    (first,) = (path for path in tmp_path.rglob(jobs[0].name))
    trace = reader.read(first)
    assert not trace.problems
    assert trace.manifest is not None
    assert (trace.manifest.run, trace.manifest.protocol) == (jobs[0].name, "fifo")
    assert trace.manifest.config["cell"]["messages"] == 4
    assert rows[0].measures == load.run(load.Cell("fifo", messages=4), 0)
    assert work.run(jobs[0]).error == ""  # A trace that is there already is no obstacle.


def test_a_plan_may_grow(plan, tmp_path):
    with open_store(tmp_path, plan) as held:
        fill(held, held.pending(retry=False))
    more = parse(PLAN.replace("[4, 6]", "[4, 6, 8]"), "small.toml")
    with open_store(tmp_path, more) as held:
        assert {job.fields["messages"] for job in held.pending(retry=False)} == {8}


def test_results_of_other_code_are_not_mixed(plan, tmp_path, monkeypatch):
    with open_store(tmp_path, plan) as held:
        fill(held, held.pending(retry=False))
    monkeypatch.setattr(store, "code_digest", lambda: "other")
    with (
        pytest.raises(PipelineError, match=r"another version of the code.*--again"),
        open_store(tmp_path, plan),
    ):
        pass
    with open_store(tmp_path, plan, again=True) as held:
        assert len(held.pending(retry=False)) == 8


def test_the_digest_is_of_the_code_that_decides(tmp_path, monkeypatch):
    package = tmp_path / "roundelay"
    for name in ("sim", "cli"):
        (package / name).mkdir(parents=True)
        (package / name / "a.py").write_text("1")
    monkeypatch.setattr(roundelay, "__file__", str(package / "__init__.py"))
    before = store.code_digest()
    (package / "cli" / "a.py").write_text("2")
    assert store.code_digest() == before
    (package / "sim" / "a.py").write_text("2")
    assert store.code_digest() != before


def test_a_directory_of_something_else_is_refused(plan, tmp_path):
    with open_store(tmp_path, plan):
        pass
    other = parse(
        'experiment = "totem"\n[[grid]]\nworkload = "new ring"\nhop = "1.5ms"\nlosses = 1'
    )
    with pytest.raises(PipelineError, match="another experiment"), open_store(tmp_path, other):
        pass
    (tmp_path / "sweep.json").write_text("{")
    with pytest.raises(PipelineError, match="cannot be read"), open_store(tmp_path, plan):
        pass
    (tmp_path / "sweep.json").write_text('{"format": 99}')
    with pytest.raises(PipelineError, match="another version"), open_store(tmp_path, plan):
        pass


def test_two_sweeps_do_not_share_a_directory(plan, tmp_path):
    with (
        open_store(tmp_path, plan),
        pytest.raises(PipelineError, match="another sweep is at work"),
        open_store(tmp_path, plan),
    ):
        pass


def test_a_damaged_wave_is_named(plan, tmp_path):
    with open_store(tmp_path, plan) as held:
        fill(held, held.pending(retry=False)[:2])
    (tmp_path / "waves" / "00000.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(PipelineError, match=r"00000.parquet is damaged; delete it"):
        open_store(tmp_path, plan).__enter__()


# The loop


class Cluster:
    """Instead of Spark: runs waves here, and dies of cells that it is told to die of."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *deadly: str) -> None:
        self.flown: list[Wave] = []
        self.alive = True
        self.deadly = deadly
        monkeypatch.setattr(drive, "_run_wave", self.fly)
        monkeypatch.setattr(drive, "_alive", lambda spark: self.alive)
        monkeypatch.setattr(drive, "_progress", lambda spark, wave: (0.0, 0))
        monkeypatch.setattr(drive, "_cores", lambda spark: 2)
        monkeypatch.setattr(drive, "_cancel", lambda spark: None)

    def fly(self, spark: object, wave: Wave) -> list[Row]:
        self.flown.append(wave)
        if any(job.name in self.deadly for job in wave.jobs):
            raise RuntimeError("a worker was lost")
        return [work.run(job) for job in wave.jobs]


def test_a_cell_that_kills_its_executor_is_found_and_the_others_go_on(plan, tmp_path, monkeypatch):
    with open_store(tmp_path, plan) as held:
        pending = held.pending(retry=False)
        cluster = Cluster(monkeypatch, pending[3].name)
        told: list[tuple[float, float, int]] = []
        summary = drive.drive(None, held, pending, lambda *said: told.append(said))  # type: ignore[arg-type]
        held.write_results()
        ((planned, why),) = held.errors()
    assert (planned.cell.messages, planned.seed) == (pending[3].fields["messages"], pending[3].seed)
    assert why == drive.DIED
    assert summary.cells == len(pending) == 8
    assert max(len(wave.jobs) for wave in cluster.flown) > 1
    assert told[-1][0] == pytest.approx(told[-1][1])
    assert told[-1][2] == 8


def test_if_all_of_spark_is_gone_no_cell_is_to_blame(plan, tmp_path, monkeypatch):
    with open_store(tmp_path, plan) as held:
        pending = held.pending(retry=False)
        cluster = Cluster(monkeypatch, *(job.name for job in pending))
        cluster.alive = False
        with pytest.raises(RuntimeError, match="a worker was lost"):
            drive.drive(None, held, pending, lambda *said: None)  # type: ignore[arg-type]
        assert not held.rows


def test_a_wave_is_written_down_before_the_next_is_taken(plan, tmp_path):
    """What is lost when it is killed is what was under way."""
    with open_store(tmp_path, plan) as held:
        pending = held.pending(retry=False)
        waves = Waves(pending, cores=2)
        loop = drive._Loop(None, held, waves, lambda *said: None)  # type: ignore[arg-type]
        wave = waves.pop()
        future: Future[list[Row]] = Future()
        future.set_result([work.run(job) for job in wave.jobs])
        loop._finish_wave(wave, future)
    with open_store(tmp_path, plan) as held:
        assert set(held.rows) == {job.name for job in wave.jobs}


# The command


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["papers/pbft"],
            "there is no plan papers/pbft; there are: papers/atop, papers/dtp, papers/fc, "
            "papers/st, papers/totem",
        ),
        (["PLAN", "--master", "spork://here"], "'spork://here' is no Spark master; write local[*]"),
        (["PLAN", "-o", "/dev/null/x"], "cannot write to /dev/null/x"),
        (["PLAN", "--quick"], "does not say what is quick"),
    ],
)
def test_wrong_use_is_a_sentence(arguments, sentence, tmp_path, capsys):
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    words = [str(path) if word == "PLAN" else word for word in arguments]
    if "-o" not in words:
        words += ["-o", str(tmp_path / "out")]
    assert main(["sweep", *words]) == 2
    assert sentence in capsys.readouterr().err


def test_many_cells_need_a_yes(tmp_path, capsys):
    path = tmp_path / "plan.toml"
    path.write_text(PLAN.replace("seeds = 2", "seeds = 5000"))
    assert main(["sweep", str(path), "-o", str(tmp_path / "out")]) == 2
    assert "line 2: 20,000 cells" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_sweep_that_is_done_needs_no_spark(plan, tmp_path, capsys):
    path = tmp_path / "small.toml"
    path.write_text(PLAN)
    with open_store(tmp_path / "out", plan) as held:
        fill(held, held.pending(retry=False))
    words = ["sweep", str(path), "-o", str(tmp_path / "out"), "--master", "spark://127.0.0.1:1"]
    assert main([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["cells"], document["known"], document["run"]) == (8, 8, None)
    assert main(words) == 0
    assert "8 cells done, 8 of them before; 0 ended in an error" in capsys.readouterr().out
