"""Moments: what a picture of a long run can be about."""

from pathlib import Path

import pytest

from roundelay.cli import main
from roundelay.core.effects import Kind
from roundelay.draw import Place, Window, layout
from roundelay.draw.scene import Scene
from roundelay.trace.schema import WORLD, Row
from roundelay.trace.writer import Writer

from . import stories

MS = 1_000_000
BUSY = 200
"""Token passes after each thing that happens."""


def shown(scene: Scene) -> set[int]:
    rows = {mark.row for mark in scene.marks}
    return rows | {row for rule in scene.rules for row in rule.rows}


def long_run(*, world: bool = True) -> stories.Told:
    """Three nodes are started, b crashes and starts again; hundreds of events lie between."""
    s = stories.Scribe("a", "b", "c")
    begin = 7_180_239_720_419_600

    def fault(tag: str, node: str) -> None:
        if world:
            s.row(Kind.FAULT, WORLD, tag=tag, x=f'{{"node": "{node}"}}')

    def busy() -> None:
        for n in range(BUSY):
            s.wait(MS)
            s.row(Kind.TOKEN, (0, 2)[n % 2], tag="acquire")

    for node in "abc":
        fault("start", node)
    for proc in range(3):
        s.row(Kind.RECOVER, proc)
        s.install(proc, begin, (0, 1, 2), primary=True)
    busy()
    fault("crash", "b")
    s.row(Kind.CRASH, 1)
    busy()
    s.row(Kind.SUSPECT, 0, members=(1,))
    busy()
    for proc in (0, 2):
        s.install(proc, begin + 4, (0, 2), primary=True)
    busy()
    fault("start", "b")
    s.inc[1] = 1
    s.row(Kind.RECOVER, 1)
    busy()
    for proc in range(3):
        s.install(proc, begin + 8, (0, 1, 2), primary=True)
    busy()
    return s.manifest, s.rows


def drawn(at: str, around: int = 3, *, world: bool = True) -> tuple[Scene, list[Row]]:
    manifest, rows = long_run(world=world)
    scene = layout(rows, manifest, window=Window(at=Place(at), around=around))
    return scene, [rows[i] for i in sorted(shown(scene))]


def kinds(rows: list[Row]) -> list[str]:
    return [row.kind for row in rows if row.kind != Kind.TOKEN]


def test_a_fault_is_shown_with_what_followed() -> None:
    scene, rows = drawn("fault:1")
    assert kinds(rows) == ["fault", "crash", "suspect", "install", "install"]
    # Three events before and after the fault, and before and after the view that followed.
    assert len(rows) - 5 == 3 + 2 + 3 + 2
    assert "within 3 events of fault 1, crash b, and what followed" in scene.note


def test_the_next_fault_ends_what_followed() -> None:
    _, rows = drawn("fault:2", around=1)
    assert kinds(rows) == ["fault", "recover", "install", "install", "install"]


def test_all_faults_are_shown_together() -> None:
    _, rows = drawn("fault", around=1)
    assert kinds(rows).count("fault") == 5  # The first starts are part of the story, not faults.
    assert kinds(rows).count("install") == 8


def test_where_nobody_wrote_faults_down_crashes_and_restarts_stand_for_them() -> None:
    scene, rows = drawn("fault:1", world=False)
    assert "fault 1, crash b" in scene.note
    assert kinds(rows)[0] == "crash"
    scene, _ = drawn("fault:2", world=False)
    assert "fault 2, restart b" in scene.note


def test_a_view_is_shown_when_its_first_member_enters_it() -> None:
    scene, rows = drawn("view:2", around=1)
    assert kinds(rows) == ["install", "install"]
    assert "view 2, R604.a {a,c}" in scene.note
    _, rows = drawn("view", around=1)
    assert len({row.c_seq for row in rows if row.kind == Kind.INSTALL}) == 3


def test_a_time_and_a_row_are_shown() -> None:
    _, rows = drawn("250ms", around=2)
    assert len(rows) == 5
    assert min(abs(row.t_ns - 250 * MS) for row in rows) == 0
    _, rows = drawn("row:c.1", around=1)
    assert [(row.proc, row.lseq) for row in rows if row.kind == Kind.INSTALL] == [(2, 1)]
    _, rows = drawn("row:b.1.1", around=1)
    assert (1, 1, 1) in [(row.proc, row.inc, row.lseq) for row in rows]


def test_the_limit_keeps_the_story() -> None:
    manifest, rows = long_run()
    window = Window(at=Place("fault:1"), around=300, limit=12)
    scene = layout(rows, manifest, window=window)
    assert len(shown(scene)) == 12
    assert kinds([rows[i] for i in sorted(shown(scene))]) == [
        *("fault", "crash", "suspect", "install", "install")
    ]


def test_long_numbers_of_views_are_told_by_their_ends() -> None:
    scene, _ = drawn("view:3")
    words = {label.text.split()[0] for label in scene.labels if label.kind == Kind.INSTALL}
    assert "R608.a" in words
    assert any("view number 7180239720419608" in mark.facts for mark in scene.marks)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    manifest, rows = long_run()
    with Writer(tmp_path / "run", manifest, format="jsonl") as writer:
        for row in rows:
            writer.append(row)
    return tmp_path / "run"


def test_the_command_draws_a_moment(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = trace.parent / "fault.svg"
    assert main(["draw", str(trace), "--around", "fault:1", "--near", "5", "-o", str(file)]) == 0
    assert "within 5 events of fault 1, crash b" in capsys.readouterr().out
    assert "crash b" in file.read_text()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--around", "fault:9"], "no fault 9; it has 1 at 200 ms (crash b), 2 at 800 ms (start"),
        (["--around", "view:4"], "the trace has no view 4; it has 1 at 0 ms (R600.a {a,b,c}), 2"),
        (["--around", "soon"], "'soon' names no moment; write fault, fault:2, view, view:3"),
        (["--around", "row:b.1"], "choose one: row:b.0.1, row:b.1.1"),
        (["--around", "row:z.1"], "the trace has no row 1 of z"),
        (["--near", "3"], "name it with --around"),
        (["--around", "fault", "--near", "0"], "--near must be 1 or more"),
        (["--around", "fault", "--witness"], "leave out one of the two"),
    ],
)
def test_what_cannot_be_shown_is_a_sentence(
    trace: Path, arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["draw", str(trace), *arguments]) == 2
    err = capsys.readouterr().err
    assert sentence in err
    assert len(err.strip().splitlines()) == 1
