"""Traces of single lives, put together."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from roundelay.check import Validity, check
from roundelay.cli import main
from roundelay.core.effects import Kind
from roundelay.runtime.collect import collect, quiet_end, world_recorder
from roundelay.trace import reader
from roundelay.trace.manifest import Manifest, TraceError
from roundelay.trace.schema import Row
from roundelay.trace.writer import Format, Writer

MANIFEST = Manifest("run", ("a", "b"), protocol="totem", mode="views")
NOTHING_LOST: dict[str, str] = {}
"""What a node says of its trace that writes every row at once."""


def life(
    directory,
    proc: int,
    inc: int,
    times: tuple[int, ...],
    *,
    killed: bool,
    format: Format = "jsonl",
    unclosed: dict[str, str] | None = NOTHING_LOST,
) -> None:
    name = f"{'ab'[proc]}-{inc}"
    writer = Writer(directory, MANIFEST, format=format, name=name, unclosed=unclosed)
    for lseq, t_ns in enumerate(times):
        writer.append(Row(Kind.TOKEN, proc, inc, lseq, t_ns=t_ns, tag="acquire"))
    if killed:
        writer.abandon()
    else:
        writer.append(Row(Kind.CRASH, proc, inc, len(times), t_ns=times[-1] + 1))
        writer.close()


def test_who_was_killed_crashed_and_who_was_alive_at_the_end_did_not(tmp_path):
    traces = tmp_path / "traces"
    life(traces, 0, 0, (10, 20), killed=True)
    life(traces, 0, 1, (30, 40, 99), killed=True)
    life(traces, 1, 0, (15, 25), killed=False)
    life(traces, 1, 1, (35,), killed=False)
    rows: list[Row] = []
    world_recorder(rows, "ab").end(("a", "b"))
    world = [row._replace(t_ns=50) for row in rows]
    manifest = collect(traces, tmp_path / "whole", world, bound_ns=7, format="jsonl")
    whole = reader.read(tmp_path / "whole")
    assert whole.problems == []
    assert manifest.rows == {"-1.0": 1, "0.0": 3, "0.1": 2, "1.0": 3, "1.1": 2}
    assert manifest.bound_ns == 7
    crashes = [(row.proc, row.inc) for row in whole.rows if row.kind == Kind.CRASH]
    assert crashes == [(0, 0), (1, 0), (1, 1)]  # The last came before the end: b had left.
    assert max(row.t_ns for row in whole.rows) == 50  # What came after the end is not part of it.


def test_whose_disk_was_full_and_which_boot_wrote_a_life_is_kept(tmp_path):
    traces = tmp_path / "traces"
    life(traces, 0, 0, (10, 20), killed=False)
    life(traces, 1, 0, (15,), killed=False)
    life(traces, 1, 1, (25, 35), killed=True)
    for name, fields in (
        ("a-0", {"machine": "boot"}),
        ("b-0", {"ended": {"1.0": "its disk was full"}}),
    ):
        path = traces / f"{name}.manifest.json"
        path.write_text(replace(Manifest.from_json(path.read_text()), **fields).to_json())
    manifest = collect(traces, tmp_path / "whole", format="jsonl")
    assert manifest.clocks() == {"0.0": "boot"}
    assert reader.read(tmp_path / "whole").problems == [
        "the trace of node b ends early, its disk was full"
    ]


def test_a_node_whose_trace_ends_early_was_not_stopped_in_good_order(tmp_path):
    life(tmp_path, 0, 0, (10,), killed=False)
    path = tmp_path / "a-0.manifest.json"
    ended = {"0.0": "its disk was full"}
    path.write_text(replace(Manifest.from_json(path.read_text()), ended=ended).to_json())
    with pytest.raises(TraceError, match="was stopped in good order"):
        quiet_end(tmp_path)


def test_a_directory_without_a_trace_or_a_manifest_is_told(tmp_path):
    with pytest.raises(TraceError, match="holds no trace"):
        collect(tmp_path, tmp_path / "whole")
    life(tmp_path, 0, 0, (1,), killed=True, unclosed=None)
    with pytest.raises(TraceError, match="stop at least one node in good order"):
        collect(tmp_path, tmp_path / "whole")


def test_a_quiet_end_comes_before_the_first_node_is_stopped(tmp_path, capsys):
    traces = tmp_path / "traces"
    life(traces, 0, 0, (10,), killed=True)
    life(traces, 0, 1, (30, 60), killed=False)
    life(traces, 1, 0, (15, 45), killed=False)
    assert main(["collect", str(traces), "-o", str(tmp_path / "whole"), "--quiet-end"]) == 0
    assert "rows of 3 lives" in capsys.readouterr().out
    whole = reader.read(tmp_path / "whole")
    (end,) = [row for row in whole.rows if row.kind == Kind.END]
    assert (end.members, end.t_ns) == ((0, 1), 45)
    assert [(row.proc, row.inc) for row in whole.rows if row.kind == Kind.CRASH] == [(0, 0)]
    assert main(["collect", str(tmp_path / "none"), "-o", str(tmp_path / "whole")]) == 2
    assert "holds no trace" in capsys.readouterr().err


def test_a_quiet_end_needs_somebody_who_was_there(tmp_path):
    life(tmp_path, 0, 0, (1,), killed=False)
    life(tmp_path, 0, 1, (2,), killed=True)
    with pytest.raises(TraceError, match="was stopped in good order at the end"):
        quiet_end(tmp_path)


def undecided(path: Path) -> bool:
    """Whether nothing is concluded but that rows are well-formed, and T1 not even that."""
    whole = reader.read(path)
    report = check(whole.rows, whole.manifest, problems=whole.problems)
    assert report["T1"].validity is Validity.INCONCLUSIVE
    others = {v.validity for v in report.verdicts if not v.property.startswith("T")}
    return others == {Validity.INCONCLUSIVE}


def test_what_a_killed_node_may_have_lost_leaves_everything_undecided(tmp_path, capsys):
    traces = tmp_path / "traces"
    life(traces, 0, 7, (10, 20), killed=True, unclosed={"0.7": "as it was killed (a-7)"})
    life(traces, 1, 9, (15, 25), killed=False)
    assert main(["collect", str(traces), "-o", str(tmp_path / "whole")]) == 0
    said = capsys.readouterr()
    assert "warning: the trace of node a ends early, as it was killed (a-7)" in said.err
    assert "6 rows of 2 lives" in said.out
    manifest = reader.read(tmp_path / "whole").manifest
    assert manifest is not None
    assert manifest.ended == {"0.7": "as it was killed (a-7)"}
    assert undecided(tmp_path / "whole")


def test_what_was_lost_after_the_end_is_not_missing(tmp_path):
    life(tmp_path, 0, 7, (10, 20, 99), killed=True, unclosed={"0.7": "as it was killed (a-7)"})
    life(tmp_path, 1, 9, (15, 25), killed=False)
    rows: list[Row] = []
    world_recorder(rows, "ab").end(("a",))
    world = [row._replace(t_ns=50) for row in rows]
    assert collect(tmp_path, tmp_path / "whole", world).ended == {}


def test_a_life_without_a_manifest_may_lack_rows(tmp_path):
    life(tmp_path, 0, 7, (10, 20), killed=True, unclosed=None)
    life(tmp_path, 1, 9, (15, 25), killed=False)
    manifest = collect(tmp_path, tmp_path / "whole")
    assert manifest.ended == {
        "0.7": "as a-7.jsonl has no manifest, so nobody knows whether it is all there"
    }


@pytest.mark.parametrize("cut", [0, 3, 40, -30])
@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_one_file_that_cannot_be_read_stops_nothing(tmp_path, capsys, format, cut):
    traces = tmp_path / "traces"
    life(traces, 0, 7, tuple(range(10, 90)), killed=True, format=format)
    life(traces, 1, 9, (15, 25), killed=False, format=format)
    file = traces / f"a-7.{format}"
    file.write_bytes(file.read_bytes()[:cut])
    assert main(["collect", str(traces), "-o", str(tmp_path / "whole")]) == 0
    said = capsys.readouterr()
    whole = reader.read(tmp_path / "whole")
    assert [row.lseq for row in whole.rows if row.proc == 1] == [0, 1, 2]
    if cut == -30 and format == "jsonl":
        # It lost no row but the half one, which told of nothing that has left the node.
        assert whole.problems == []
        return
    assert f"a-7.{format} is" in said.err or f"a-7.{format} holds" in said.err
    assert "the trace of node a ends early" in said.err
    assert undecided(tmp_path / "whole")


def test_a_damaged_manifest_and_a_foreign_file_are_named(tmp_path, capsys):
    traces = tmp_path / "traces"
    life(traces, 0, 7, (10, 20), killed=False)
    life(traces, 1, 9, (15, 25), killed=False)
    (traces / "a-7.manifest.json").write_text("{")
    (traces / "notes.jsonl").write_text("shopping\n")
    (traces / "directory.parquet").mkdir()
    assert main(["collect", str(traces), "-o", str(tmp_path / "whole")]) == 0
    said = capsys.readouterr().err
    assert "the trace of node a ends early, as a-7.manifest.json: the manifest is not JSON" in said
    assert "notes.jsonl is no trace of this run and was left out" in said
    assert [row.lseq for row in reader.read(tmp_path / "whole").rows if row.proc == 0] == [0, 1, 2]


def test_traces_of_two_groups_are_kept_apart(tmp_path, capsys):
    life(tmp_path, 0, 7, (10, 20), killed=False)
    Writer(tmp_path, Manifest("other", ("a", "b")), format="jsonl", name="b-0").close()
    assert main(["collect", str(tmp_path), "-o", str(tmp_path / "whole")]) == 2
    assert "several runs or groups ('run', 'other')" in capsys.readouterr().err


def test_nobody_is_blamed_for_what_a_lost_life_did(tmp_path, capsys):
    """b delivers what a has sent; the file of a is lost."""
    traces = tmp_path / "traces"
    life(traces, 0, 7, (10,), killed=True)
    (traces / "a-7.jsonl").write_bytes(b"")
    writer = Writer(traces, MANIFEST, format="jsonl", name="b-9")
    message: dict[str, Any] = {"m_src": 0, "m_inc": 7, "m_seq": 0, "layer": "to"}
    for lseq, kind in enumerate((Kind.RECEIVE, Kind.DELIVER)):
        writer.append(Row(kind, 1, 9, lseq, t_ns=20 + lseq, **message))
    writer.close()
    assert main(["collect", str(traces), "-o", str(tmp_path / "whole")]) == 0
    assert main(["check", str(tmp_path / "whole")]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("nothing is violated, but")
    assert main(["check", str(tmp_path / "whole"), "--strict"]) == 1
