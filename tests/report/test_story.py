"""What a report tells of a run: bars of views, faults, and what followed."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from roundelay.core.effects import Kind
from roundelay.report.evidence import CheckedRun
from roundelay.report.story import State, Story
from roundelay.runtime.incarnation import RANDOM_BITS
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import REGULAR, TRANSITIONAL, WORLD, Row

S = 10**9
MANIFEST = Manifest("r", ("a", "b"))


class Rows(list[Row]):
    """Rows of real nodes, written in order of time."""

    def add(self, at_s: float, kind: str, proc: int, inc: int = 0, **columns: Any) -> None:
        lseq = len([row for row in self if (row.proc, row.inc) == (proc, inc)])
        row = Row(kind, proc, inc, lseq, t_ns=round((100 + at_s) * S))
        self.append(row._replace(**columns))

    def enter(self, at_s: float, seq: int, *members: int, **columns: Any) -> None:
        """All members enter a view, one after the other."""
        for n, proc in enumerate(members):
            view = {"c_seq": seq, "c_rep": members[0], "c_kind": REGULAR, "members": members}
            self.add(at_s + n / 100, Kind.INSTALL, proc, **{**view, **columns})

    def fault(self, at_s: float, tag: str, x: str | None = None) -> None:
        self.add(at_s, Kind.FAULT, WORLD, tag=tag, x=x)


def a_run() -> Rows:
    """b is paused and killed, and starts again."""
    rows = Rows()
    rows.fault(0, "start", '{"node": "a"}')
    rows.fault(0, "start", '{"node": "b"}')
    rows.enter(1, 4, 0, 1, primary=True)
    rows.fault(2, "pause", '{"node": "b"}')
    rows.enter(3, 7, 0, c_kind=TRANSITIONAL)
    rows.enter(3.5, 8, 0, primary=False)
    rows.fault(4, "crash", '{"node": "b"}')
    rows.add(4.1, Kind.CRASH, 1)
    rows.fault(5, "start", '{"node": "b"}')
    rows.add(5.5, Kind.RECOVER, 1, inc=1)
    rows.enter(6, 12, 0, members=(0, 1), primary=True)
    rows.enter(6.5, 12, 1, c_rep=0, members=(0, 1), primary=True, inc=1)
    rows.fault(8, "heal")
    rows.add(9, Kind.END, WORLD, members=(0, 1))
    return rows


def test_a_bar_ends_where_the_next_view_or_the_crash_begins() -> None:
    bars = Story(a_run(), MANIFEST).bars()
    assert [(b.row, b.name, b.start, b.end, b.state) for b in bars] == [
        ("a", "a b", 1, 3, State.PRIMARY),
        ("a", "a", 3, 3.5, State.TRANSITIONAL),
        ("a", "a", 3.5, 6, State.OTHER),
        ("a", "a b", 6, 9, State.PRIMARY),
        ("b", "a b", 1.01, 4.1, State.PRIMARY),
        ("b", "down", 4.1, 5.5, State.DOWN),
        ("b", "a b", 6.5, 9, State.PRIMARY),
        ("b", "paused", 2, 4, State.PAUSED),
    ]


def test_a_view_has_one_colour_and_lends_it_to_the_transitional_one_after_it() -> None:
    bars = Story(a_run(), MANIFEST).bars()
    colours = [(bar.colour, bar.state) for bar in bars if bar.row == "a"]
    assert colours == [
        (0, State.PRIMARY),
        (0, State.TRANSITIONAL),
        (1, State.OTHER),
        (2, State.PRIMARY),
    ]
    of_b = [bar.colour for bar in bars if bar.row == "b" and bar.state is State.PRIMARY]
    assert of_b == [0, 2]


def test_faults_are_told_with_the_views_that_followed() -> None:
    faults = Story(a_run(), MANIFEST).faults()
    assert [(f.number, f.at_s, f.told) for f in faults] == [
        (1, 2, "pause of b"),
        (2, 4, "crash of b"),
        (3, 5, "restart of b"),
        (4, 8, "all faults end"),
    ]
    assert faults[0].followed == ("a: not primary, after 1.50 s",)
    assert faults[1].followed == ()
    assert faults[2].followed == ("a b: primary, after 1.50 s",)
    assert faults[3].followed == ()


def test_what_no_table_knows_keeps_its_words() -> None:
    rows = a_run()
    rows.fault(8.5, "partition", '{"components": [["a"], ["b"]]}')
    rows.fault(8.6, "cut", "no JSON")
    rows.fault(8.7, "merge")
    told = [fault.told for fault in Story(rows, MANIFEST).faults()[4:]]
    assert told == ["partition {a} {b}", "cut no JSON", "the network is whole again"]


def test_a_run_without_views_has_no_bars() -> None:
    rows = Rows()
    rows.add(1, Kind.SUBMIT, 0)
    story = Story(rows, MANIFEST)
    assert not story.has_views
    assert story.bars() == []
    assert story.faults() == []


def test_the_lives_of_nodes_say_when_a_run_was() -> None:
    began = datetime(2026, 11, 19, 3, 45, tzinfo=UTC)
    early, late = (round(began.timestamp() + n) * 1000 << RANDOM_BITS for n in (0, 60))
    manifest = replace(MANIFEST, machines={f"0.{late}": "m", f"1.{early}": "m"})
    assert CheckedRun("r", manifest, 1).began == began
    assert CheckedRun("r", MANIFEST, 1).began is None
