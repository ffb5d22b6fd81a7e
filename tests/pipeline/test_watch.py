"""A streaming query of real Spark that judges a group while it runs."""

import shutil
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.pipeline.live_traces import PLANTS, parts, played, twice
from tests.pipeline.test_live_judge import Told, table
from tests.unit.check.trial import recounted

pytest.importorskip("pyspark")

from roundelay.check import check
from roundelay.cli import main
from roundelay.pipeline import session
from roundelay.pipeline.errors import PipelineError, plain
from roundelay.pipeline.live import states
from roundelay.pipeline.live.follow import follow, start
from roundelay.pipeline.live.judge import RunJudge
from roundelay.pipeline.live.source import stream
from roundelay.pipeline.live.watch import Watch, watch


class KilledError(Exception):
    """In the place of `kill -9` of the driver."""


def stored(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return rows


def begin(spark, source: Path, home: Path, told: Told):
    """A new driver; the judges and the query."""
    watching = Watch([str(source)], home, told)
    files = stream(spark, [str(source)], 1_000_000)
    return watching, start(files, watching.batch, home / "checkpoint", 0.1)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "out"
    home.mkdir()
    return home


def test_a_breach_is_reported_within_two_batches_however_often_the_driver_is_killed(
    spark, live, tmp_path, home, monkeypatch
):
    manifest, clean = played()
    rows = tuple(twice(clean))
    planted = next(
        n for n, (one, other) in enumerate(zip(rows, clean, strict=False)) if one != other
    )
    nodes, told = live(tmp_path / "in", manifest), Told()
    nodes.write([])
    watching, query = begin(spark, tmp_path / "in", home, told)
    passed = 0
    for number, part in enumerate(parts(rows, 6)):
        with monkeypatch.context() as dying:

            def die(*_: object) -> None:
                raise KilledError

            if number == 1:  # Before what is known is on disk, and after that.
                dying.setattr(states, "save", die)
            if number == 4:
                dying.setattr(told, "batch", die)
            nodes.write(part)
            if number in (1, 4):
                with pytest.raises(Exception, match="KilledError"):
                    query.processAllAvailable()
        if number in (1, 4):
            watching, query = begin(spark, tmp_path / "in", home, told)
        query.processAllAvailable()
        passed += len(part)
        if passed <= planted:
            assert not told.breaches
        elif passed > planted + len(part):
            assert told.breaches
    nodes.close()
    watching.idle()
    query.stop()
    _, breach = told.breaches[0]
    assert breach.property == "D2"
    assert [row.kind for row in breach.witness] == ["deliver", "deliver"]

    judge = RunJudge(manifest, one_clock=True)
    judge.add(table(rows), 0.0)
    judge.judge(set(), 0.0)
    assert watching.judges["live"].verdicts() == judge.verdicts()
    assert watching.judges["live"].rows == judge.rows == len(rows)
    found = {str(row["property"]): row for row in stored(home / "verdicts.parquet")}
    assert {name for name, row in found.items() if row["verdict"] == "violated"} == {"D2"}
    assert found["D2"]["witness"] == [f"{row.proc}.{row.inc}.{row.lseq}" for row in breach.witness]
    measured = stored(home / "measures.parquet")
    assert sum(int(str(row["rows"])) for row in measured) > 0.9 * judge.rows
    assert all(0 < row["latency_p50_ms"] < 100 for row in measured if row["latency_p50_ms"])


def test_the_command_says_what_it_covers_and_exits_with_one_if_something_broke(
    spark, live, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(session, "open_session", lambda master: nullcontext(spark))
    for names in (("nothing",), tuple(PLANTS)):
        source, out = tmp_path / names[-1], tmp_path / f"{names[-1]}.out"
        broken, expected = {}, {}
        for name in names:
            manifest, clean = played(run=name)
            rows = list(PLANTS[name](clean)) if name in PLANTS else list(clean)
            nodes = live(source / name, manifest)
            nodes.write(rows)
            nodes.close()
            held = RunJudge(manifest, one_clock=True).covered
            whole = check(rows, recounted(manifest, rows), profile=held)
            broken[name] = {v.property for v in whole.violated}
            expected[name] = {name} & PLANTS.keys()
        code = int(names[-1] in PLANTS)
        assert main(["watch", "--once", str(source), "-o", str(out)]) == code
        said = capsys.readouterr().out
        assert "  judged live: T1 T2 " in said
        assert f"  left to `roundelay check {source}`: M3 " in said
        assert ("VIOLATED in run D2: D2: b delivers" in said) == (code == 1)
        found: dict[str, set[str]] = {name: set() for name in names}
        for row in stored(out / "verdicts.parquet"):
            if row["verdict"] == "violated":
                found[row["run"]].add(row["property"])
        assert found == broken, "the local check agrees"
        assert all(found[name] >= expected[name] for name in names)

        before = {path: path.read_bytes() for path in out.glob("*.parquet")}
        assert len(before) == 2
        assert main(["watch", "--once", str(source), "-o", str(out)]) == code, "once more"
        said = capsys.readouterr().out
        assert ("VIOLATED before: D2: b delivers" in said) == (code == 1)
        count = sum(map(len, found.values())) or "no"
        assert f"{count} violation{'s' * code} of what is judged live;" in said
        assert {path: path.read_bytes() for path in before} == before
    capsys.readouterr()
    assert main(["check", str(source / "D2")]) == 1, "the batch check agrees"


def test_files_that_are_gone_before_they_were_read_are_told_in_a_sentence(
    spark, live, tmp_path, home
):
    manifest, rows = played()
    nodes = live(tmp_path / "in", manifest)
    nodes.write(rows[:200])
    nodes.close()
    told = Told()
    _, query = begin(spark, tmp_path / "in", home, told)
    query.processAllAvailable()
    query.stop()
    shutil.rmtree(tmp_path / "in")
    (tmp_path / "in").mkdir()
    _, query = begin(spark, tmp_path / "in", home, told)
    with pytest.raises(Exception, match="is gone") as failed:
        query.processAllAvailable()
    assert "of which a part was read; copy it back to where it was" in str(plain(failed.value))
    assert told.batches[-1].judged
    assert told.breaches == []


def test_a_table_that_is_followed_can_be_watched(spark, live, tmp_path, home):
    manifest, clean = played()
    rows = tuple(twice(clean))
    nodes, told = live(tmp_path / "in", manifest), Told()
    followed = tmp_path / "table"
    for number, part in enumerate(parts(rows, 3)):
        nodes.write(part)
        if number == 2:
            nodes.close()
        follow(spark, [tmp_path / "in"], followed, once=True)
        if number:
            watch(spark, [followed], home, told, once=True)
    judge = RunJudge(manifest, one_clock=True)
    judge.add(table(rows), 0.0)
    judge.judge(set(), 0.0)
    found = {row["property"]: row["verdict"] for row in stored(home / "verdicts.parquet")}
    assert found == {v.property: str(v.validity) for v in judge.verdicts()}
    assert [batch.rows for batch in told.batches] == [
        sum(len(part) for part in [*parts(rows, 3)][:2]),
        len([*parts(rows, 3)][2]),
    ]
    with pytest.raises(PipelineError, match="name one table, or directories"):
        watch(spark, [followed, tmp_path / "in"], home, told, once=True)
    with pytest.raises(PipelineError, match="a table cannot be followed"):
        follow(spark, [followed], home, once=True)
