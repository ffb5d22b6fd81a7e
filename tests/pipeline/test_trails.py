"""What is new in the directories of running nodes."""

import os
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.pipeline.live_traces import LiveNodes, parts, played

from roundelay.pipeline.errors import PipelineError
from roundelay.pipeline.live.trails import (
    Position,
    after,
    between,
    check,
    file_of,
    steps,
    trails,
    written_at,
)
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import Row
from roundelay.trace.writer import Format, Writer

Live = Callable[..., LiveNodes]


@pytest.fixture
def nodes(tmp_path: Path, live: Live) -> LiveNodes:
    manifest, rows = played()
    nodes = live(tmp_path, manifest)
    for part in parts(rows, 4):
        nodes.write(part)
    return nodes


def test_pieces_are_found_once_each_and_in_their_order(nodes: LiveNodes, tmp_path: Path) -> None:
    found = trails([tmp_path, tmp_path])
    assert [Path(name).name for name in found] == [
        "a-0.*.parquet",
        "b-0.*.parquet",
        "c-0.*.parquet",
    ]
    new = steps(found, {})
    assert sorted({step.source.path for step in new}) == sorted(
        str(path) for path in tmp_path.glob("*.parquet")
    )
    for name in found:
        assert [step.then[0] for step in new if step.trail == name] == [1, 2, 3, 4]
    read = after({}, new)
    assert steps(found, read) == []
    nodes.close()
    assert steps(trails([tmp_path]), read) == []


def test_links_are_followed_and_asked_for_once_in_a_directory(
    nodes: LiveNodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever watches a group for hours asks for thousands of pieces, several times a second."""
    with TemporaryDirectory() as name:
        elsewhere = Path(name).resolve()
        (elsewhere / "all").symlink_to(tmp_path)
        (elsewhere / "one").mkdir()
        for path in tmp_path.glob("a-*"):
            (elsewhere / "one" / path.name).symlink_to(path)
        asked: list[str] = []
        resolved = os.path.realpath

        def realpath(path: str) -> str:
            asked.append(path)
            return resolved(path)

        monkeypatch.setattr(os.path, "realpath", realpath)
        assert [*trails([elsewhere / "all"])] == [*trails([tmp_path])]
        assert len(asked) == 2
        assert [*trails([elsewhere / "one"])] == [*trails([tmp_path])][:1]


def test_what_was_planned_can_be_found_again(nodes: LiveNodes, tmp_path: Path) -> None:
    some = steps(trails([tmp_path]), {}, rows_max=1)
    start = after({}, some)
    assert len(some) == 1
    end = after(start, steps(trails([tmp_path]), start))
    nodes.close()
    assert [s.path for s in between({}, start)] == [some[0].source.path]
    assert len(list(between(start, end))) == 11
    assert not list(between(end, end))


def test_what_is_read_at_a_time_is_the_oldest(nodes: LiveNodes, tmp_path: Path) -> None:
    read = after({}, steps(trails([tmp_path]), {}, rows_max=900))
    assert max(read.values())[0] - min(read.values())[0] <= 1


@pytest.mark.parametrize("roll", [True, False])
def test_lines_are_read_as_they_grow_and_none_before_its_end(
    tmp_path: Path, live: Live, roll: bool
) -> None:
    manifest, rows = played()
    nodes = live(tmp_path, manifest, "jsonl")
    mine = [row for row in rows if row.proc == 0]
    nodes.write(mine[:10], roll=roll)
    nodes.write(mine[10:12], roll=False)
    first = steps(trails([tmp_path]), {})
    read = after({}, first)
    last = Path(first[-1].source.path)
    with last.open("ab") as file:
        file.write(b'{"kind":"tok')
    assert steps(trails([tmp_path]), read) == []
    with last.open("ab") as file:
        file.write(b'en"}\n')
    (more,) = steps(trails([tmp_path]), read)
    assert (more.source.start, more.source.end) == (
        last.stat().st_size - 16 - 1,
        last.stat().st_size,
    )
    end = after(read, [more])
    assert [(s.start, s.end) for s in between(read, end)] == [(more.source.start, more.source.end)]


def test_lines_are_read_up_to_where_a_query_was_told_to_end(tmp_path: Path, live: Live) -> None:
    manifest, rows = played()
    nodes = live(tmp_path, manifest, "jsonl")
    nodes.write(rows[:100], roll=False)
    until = after({}, steps(trails([tmp_path]), {}))
    nodes.write(rows[100:200], roll=True)
    nodes.write(rows[200:300], roll=True)
    assert after({}, steps(trails([tmp_path]), {}, until)) == until
    assert steps(trails([tmp_path]), until, until) == []


def test_a_large_file_of_lines_is_read_bit_by_bit(tmp_path: Path, live: Live) -> None:
    manifest, rows = played()
    nodes = live(tmp_path, manifest, "jsonl")
    nodes.write([row for row in rows if row.proc == 0], roll=False)
    nodes.close()
    read: dict[str, Position] = {}
    bounds: list[int | None] = [0]
    while new := steps(trails([tmp_path]), read, rows_max=20):
        (step,) = new
        bounds += [step.source.end]
        assert step.source.start == bounds[-2] or step.source.start == 0
        read = after(read, new)
    assert len(bounds) > 10
    assert bounds[-1] == Path(step.source.path).stat().st_size


@pytest.mark.parametrize("format", ["parquet", "jsonl"])
def test_a_trace_in_one_file_is_read_when_that_is_possible(tmp_path: Path, format: Format) -> None:
    rows = [Row("token", 0, 7, number) for number in range(5)]
    writer = Writer(tmp_path, Manifest(run="r", nodes=("a",)), name="a-7", format=format)
    for row in rows:
        writer.append(row)
    writer.flush()
    assert len(steps(trails([tmp_path]), {})) == (format == "jsonl")
    writer.close()
    (step,) = steps(trails([tmp_path]), {})
    assert step.source.manifest == writer.manifest
    (trail,) = trails([tmp_path]).values()
    assert (trail.closed, trail.writer) == (True, (0, 7))


def test_what_is_gone_is_told_and_old_pieces_may_go(nodes: LiveNodes, tmp_path: Path) -> None:
    found = trails([tmp_path])
    read = after({}, steps(found, {}))
    name = next(iter(found))
    for piece in range(4):
        file_of(name, piece).unlink()
    check([tmp_path], trails([tmp_path]), read)
    with pytest.raises(PipelineError, match=r"000000.parquet is gone, which was found and not yet"):
        list(between({}, read))
    with pytest.raises(PipelineError, match=r"000000.parquet is gone, which was found and not yet"):
        written_at(file_of(name, 0))
    (tmp_path / "a-0.manifest.json").unlink()
    with pytest.raises(
        PipelineError, match=r"a-0.\*.parquet is gone, of which a part was read; copy"
    ):
        check([tmp_path], trails([tmp_path]), read)
    check([tmp_path / "elsewhere"], {}, read)
    with pytest.raises(PipelineError, match="there is no directory"):
        trails([tmp_path / "none"])


def test_an_older_copy_is_not_taken_for_what_was_read(nodes: LiveNodes, tmp_path: Path) -> None:
    found = trails([tmp_path])
    read = after({}, steps(found, {}))
    name = next(iter(read))
    with pytest.raises(PipelineError, match="has 4 pieces, and 9 were read: it is an older copy"):
        check([tmp_path], found, {**read, name: (9, 0)})
