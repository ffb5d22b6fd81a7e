"""Traces into a table: what is good is in it once, what is bad is in quarantine with a reason."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.patience import until
from tests.pipeline.processes import die_with_parent

from roundelay.check import Validity
from roundelay.pipeline.errors import PipelineError
from roundelay.pipeline.ingest import into_table
from roundelay.pipeline.ingest.decode import Survey, Unit
from roundelay.pipeline.ingest.into_table import Ingested, ingest, refuse_empty
from roundelay.pipeline.ingest.sources import find
from roundelay.pipeline.ingest.table import Table
from roundelay.pipeline.judge.check import check
from roundelay.trace import mini
from roundelay.trace.manifest import Manifest
from roundelay.trace.writer import Writer

from .conftest import write, write_text

pytestmark = pytest.mark.slow

FINE = "p!a q?a p.a=1 q.a=1 q!b p?b q.b=2 p.b=2 end{p,q}"


def count(spark, table: Table) -> int:
    return int(table.events(spark).count())


def judged(spark, done: Ingested) -> dict[str, Validity]:
    """The verdicts on O5, by run."""
    return {one.run: one.report["O5"].validity for one in check(spark, done.table, held=["O5"])}


def problems(done: Ingested) -> str:
    return " ".join(s for said in done.table.problems.values() for s in said)


def test_many_runs_and_formats_become_one_table_and_nothing_is_added_twice(spark, tmp_path):
    for number in range(3):
        manifest, rows = mini.parse(FINE, f"run{number}")
        write(tmp_path / "in" / str(number), manifest, rows, ("parquet", "jsonl", "auto")[number])
    done = ingest(spark, [tmp_path / "in"], tmp_path / "out")
    sources = find([tmp_path / "in"]).sources
    assert into_table._survey_by_spark(spark, sources) == into_table._survey(spark, sources)
    assert done.table.runs == ["run0", "run1", "run2"]
    assert count(spark, done.table) == 27
    assert not problems(done)
    before = (tmp_path / "out" / "table.json").read_bytes()
    again = ingest(spark, [tmp_path / "in"], tmp_path / "out")
    assert again.part is None
    assert len(again.known) == 3
    assert (tmp_path / "out" / "table.json").read_bytes() == before
    assert count(spark, Table.open(tmp_path / "out")) == 27
    write_text(tmp_path / "more", FINE, "run3")
    more = ingest(spark, [tmp_path / "more", tmp_path / "in"], tmp_path / "out")
    assert more.table.runs == ["run0", "run1", "run2", "run3"]
    assert set(judged(spark, more).values()) == {Validity.OK}


def test_bad_input_is_quarantined_and_never_ok(spark, tmp_path):
    """One table of everything that can be wrong, and a run that is fine beside it."""
    home = tmp_path / "in"
    write_text(home / "fine", FINE, "fine")
    _truncated(home / "truncated")
    _one_node_missing(home / "missing")
    _duplicate(home / "duplicate")
    _empty(home / "empty")
    _nonsense(home / "nonsense")
    _manifest_of_fewer(home / "fewer")
    _mixed_versions(home / "mixed")
    _other_run(home / "foreign")
    _no_manifest(home / "bare")
    _damaged_manifest(home / "damaged")
    shuffled = mini.parse(FINE, "shuffled")
    write(home / "shuffled", shuffled[0], shuffled[1][::-1])
    done = ingest(spark, [home], tmp_path / "out")
    verdicts = judged(spark, done)
    assert verdicts["fine"] is Validity.OK
    assert verdicts.pop("shuffled") is Validity.OK  # Rows say themselves where they belong.
    del verdicts["fine"]
    assert set(verdicts.values()) == {Validity.INCONCLUSIVE}, verdicts
    assert verdicts.keys() == {
        *("truncated", "missing", "twice", "empty", "nonsense", "fewer", "mixed"),
        *("foreign", "bare", "damaged"),
    }
    said = problems(done)
    for sentence in (
        "is cut short, and Parquet cannot be read without its end",
        "gave no rows",
        "left out as making no sense, one in line 2: kind 'dance' is unknown",
        "the trace has schema 99, this version reads up to 3",
        "has rows of run 'another' but the manifest is of run 'foreign'",
        "has a manifest that cannot be read",
    ):
        assert sentence in said, sentence
    reasons = {row["reason"] for row in done.table.quarantine(spark).collect()}
    assert any("dance" in reason for reason in reasons)
    reports = {one.run: one for one in check(spark, done.table, held=["T1", "O5"])}
    told = {run: " ".join(one.problems) for run, one in reports.items()}
    assert "rows of q, incarnation 0: 0 rows where the manifest counts 4" in told["missing"]
    assert "repeated or out of order (is a file there twice?)" in told["twice"]
    assert "9 rows where" not in told["fewer"]
    assert "5 rows where the manifest counts 3" in told["fewer"]
    assert reports["missing"].report["T1"].validity is Validity.VIOLATED
    assert reports["fine"].report["T1"].validity is Validity.OK


def _truncated(home: Path) -> None:
    write_text(home, FINE, "truncated")
    (data,) = home.glob("*.parquet")
    data.write_bytes(data.read_bytes()[:-100])


def _one_node_missing(home: Path) -> None:
    manifest, rows = mini.parse(FINE, "missing")
    for node, name in enumerate(manifest.nodes):
        with Writer(home, manifest, name=name) as writer:
            for row in rows:
                if row.proc == node or (row.proc < 0 and not node):
                    writer.append(row)
    (home / "q.parquet").unlink()


def _duplicate(home: Path) -> None:
    """The same rows in another format: not the same file, so it is read."""
    manifest, rows = mini.parse(FINE, "twice")
    write(home, manifest, rows, "parquet")
    with Writer(home / "copy", manifest, format="jsonl") as writer:
        for row in rows:
            writer.append(row)
    (home / "copy" / "manifest.json").unlink()


def _empty(home: Path) -> None:
    manifest, _ = mini.parse(FINE, "empty")
    home.mkdir(parents=True)
    (home / "trace.jsonl").write_text("")
    (home / "manifest.json").write_text(manifest.to_json())


def _nonsense(home: Path) -> None:
    manifest, rows = mini.parse(FINE, "nonsense")
    write(home, manifest, rows, "jsonl")
    data = home / "trace.jsonl"
    lines = data.read_text().splitlines(keepends=True)
    lines[1] = lines[1].replace('"receive"', '"dance"')
    data.write_text("".join(lines))


def _manifest_of_fewer(home: Path) -> None:
    manifest = write_text(home, FINE, "fewer")
    wrong = replace(manifest, rows={**(manifest.rows or {}), "0.0": 3})
    wrong = replace(wrong, rows={**(wrong.rows or {}), "0.0": 3})
    (home / "manifest.json").write_text(wrong.to_json())
    _grow(home)


def _grow(home: Path) -> None:
    """One more row of p than there was."""
    (data,) = home.glob("*.parquet")
    table = pq.read_table(data)
    more = table.slice(0, 1).to_pylist()[0] | {"lseq": 4, "gseq": 99, "kind": "expire"}
    for name in ("m_src", "m_inc", "m_seq"):
        more[name] = None
    pq.write_table(pa.concat_tables([table, pa.Table.from_pylist([more], table.schema)]), data)


def _mixed_versions(home: Path) -> None:
    """Two nodes' files, one of a version that we do not know."""
    manifest, rows = mini.parse(FINE, "mixed")
    for node, name in enumerate(manifest.nodes):
        with Writer(home, manifest, name=name) as writer:
            for row in rows:
                if row.proc == node or (row.proc < 0 and not node):
                    writer.append(row)
    table = pq.read_table(home / "q.parquet")
    metadata = {**(table.schema.metadata or {}), b"roundelay.schema": b"99"}
    pq.write_table(table.replace_schema_metadata(metadata), home / "q.parquet")


def _other_run(home: Path) -> None:
    write_text(home, FINE, "another")
    text = (home / "manifest.json").read_text().replace('"another"', '"foreign"')
    (home / "manifest.json").write_text(text)


def _no_manifest(home: Path) -> None:
    write_text(home, FINE, "bare")
    (home / "manifest.json").unlink()


def _damaged_manifest(home: Path) -> None:
    write_text(home, FINE, "damaged")
    (home / "manifest.json").write_text("{")


def test_a_file_that_is_there_twice_is_read_once(spark, tmp_path):
    write_text(tmp_path / "in" / "one", FINE, "run")
    write_text(tmp_path / "in" / "two", FINE, "run")
    done = ingest(spark, [tmp_path / "in"], tmp_path / "out")
    assert len(done.known) == 1
    assert judged(spark, done) == {"run": Validity.OK}


def test_nothing_to_read_is_said_in_a_sentence(spark, tmp_path):
    with pytest.raises(PipelineError, match="there is no trace at"):
        ingest(spark, [tmp_path / "nowhere"], tmp_path / "out")
    with pytest.raises(PipelineError, match="there is no trace in"):
        ingest(spark, [tmp_path], tmp_path / "out")
    _empty(tmp_path / "in")
    with pytest.raises(PipelineError, match="not a single row could be read"):
        refuse_empty(ingest(spark, [tmp_path / "in"], tmp_path / "out"))
    with pytest.raises(PipelineError, match="make one with: roundelay ingest"):
        Table.open(tmp_path / "other")


def test_a_killed_ingest_leaves_the_old_table(spark, tmp_path):
    """Killed when its rows are half written: what was there is there, and nothing else."""
    write_text(tmp_path / "old", FINE, "old")
    old = ingest(spark, [tmp_path / "old"], tmp_path / "out")
    for number in range(30):
        write_text(tmp_path / "new" / str(number), FINE, f"new{number}")
    words = ["ingest", str(tmp_path / "new"), "-o", str(tmp_path / "out"), "--master", "local[1]"]
    child = subprocess.Popen(
        [sys.executable, "-m", "roundelay", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=die_with_parent,
    )
    parts = {part.name for part in old.table.parts}

    def has_written() -> bool:
        assert child.poll() is None, "it ended before it wrote anything"
        return {path.name for path in (tmp_path / "out").glob("part=*")} != parts

    until(has_written, "a first part")
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    found = Table.open(tmp_path / "out")
    assert found.runs in (["old"], sorted(["old", *(f"new{n}" for n in range(30))]))
    assert count(spark, found) == 9 * len(found.runs)
    whole = ingest(spark, [tmp_path / "new"], tmp_path / "out").table
    assert len(whole.runs) == 31
    assert count(spark, whole) == 9 * 31
    names = json.loads((tmp_path / "out" / "table.json").read_text())["parts"]
    assert sorted(names) == sorted(path.name for path in (tmp_path / "out").glob("part=*"))


def test_a_manifest_counts_once_for_the_parts_of_a_file(spark, tmp_path):
    """Spark writes a Parquet file as a directory of parts."""
    manifest = write_text(tmp_path / "in", FINE, "run")
    data = tmp_path / "in" / "trace.parquet"
    table = pq.read_table(data)
    data.unlink()
    data.mkdir()
    pq.write_table(table.slice(0, 4), data / "part-0.parquet")
    pq.write_table(table.slice(4), data / "part-1.parquet")
    (tmp_path / "in" / "manifest.json").write_text(Manifest.to_json(replace(manifest, sha256="")))
    done = ingest(spark, [tmp_path / "in"], tmp_path / "out")
    assert judged(spark, done) == {"run": Validity.OK}


def test_a_file_of_many_row_groups_is_cut_into_units_of_about_so_many_rows():
    seen = Survey("x", "", 1000, 100, (10,) * 10)
    whole = Unit("x", "run", 3)
    for unit_rows, expected in ((1, 10), (10, 10), (25, 4), (1000, 1)):
        units = [unit for _, unit in into_table._split(whole, seen, unit_rows)]
        assert len(units) == expected
        at = 0
        for unit in units:
            assert (unit.first_group, unit.first_row) == (at, 10 * at)
            at += unit.groups
        assert at == 10
