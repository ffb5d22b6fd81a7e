"""Rows of a moment, and what is drawn of them."""

from pathlib import Path
from typing import Any

import pytest
from tests.web.test_told import recent, status, view

from roundelay.core.effects import Kind
from roundelay.trace.schema import Row
from roundelay.web import moments
from roundelay.web.chronicle import Chronicle
from roundelay.web.moments import EVENTS, NEAR_NS, THERE_NS, Moments, fetch
from roundelay.web.watching import Watched, Watching

MS = 1_000_000


class Answers(Watching):
    """Nodes that keep the given rows."""

    def __init__(self, kept: dict[str, list[Row]], gone: str = "") -> None:
        super().__init__()
        self.asked = 0
        self.asked_of: dict[str, int] = {}
        self.viewers = 1
        self.kept = kept
        for name in kept:
            state: Any = "gone" if name in gone else "up"
            node = Watched(Path(name), "g", name, state=state, status=status(name))
            self._nodes[node.path] = node

    def ask(self, watched: Watched, **request: Any) -> dict[str, Any]:
        self.asked += 1
        self.asked_of[watched.node] = request["at_ns"]
        rows = [[*row[:-1], row[-1]] for row in self.kept[watched.node]]
        return {"columns": Row._fields, "rows": rows}


def rows(proc: int, times: Any) -> list[Row]:
    """A node's view, long ago, and a timer at each of these times."""
    entered = Row(Kind.INSTALL, proc, 0, 0, t_ns=1, c_seq=7, c_rep=0, c_kind=0, members=(0, 1))
    return [
        entered,
        *(
            Row(Kind.EXPIRE, proc, 0, n, t_ns=t, layer="net", tag=f"t{t}")
            for n, t in enumerate(times, 1)
        ),
    ]


AT = 10 * NEAR_NS


def test_it_draws_what_all_nodes_kept_and_names_those_that_kept_nothing():
    kept = {"a": rows(0, range(AT - 5 * MS, AT + 5 * MS, MS)), "b": rows(1, [AT]), "c": []}
    watching = Answers(kept, gone="c")
    drawn = Moments(watching, Chronicle()).draw("g", AT)
    assert drawn.svg.startswith("<svg")
    assert drawn.sentence.startswith("11 events, 9.0 ms.")
    assert "Of c, d, e only what others saw" in drawn.sentence
    assert "R7.a" in drawn.svg, "the view that was entered before"
    assert drawn.at == round(5 / 11, 3)


def test_the_last_view_before_the_first_event_is_shown_wherever_it_was_told():
    later = Row(Kind.INSTALL, 0, 0, 1, t_ns=AT - 900 * MS, c_seq=9, c_rep=0, c_kind=0, members=(0,))
    timers = rows(0, range(AT - 500 * MS, AT + 500 * MS, MS))[1:]
    watching = Answers(
        {"a": [rows(0, [])[0], later, *(row._replace(lseq=row.lseq + 1) for row in timers)]}
    )
    drawn = Moments(watching, Chronicle()).draw("g", AT)
    assert "R9.a" in drawn.svg
    assert "R7.a" not in drawn.svg


@pytest.mark.parametrize("shift_ns", [10**15, -5 * NEAR_NS])
def test_rows_of_another_machine_are_brought_to_our_clock(shift_ns):
    there = rows(1, range(AT - shift_ns - 5 * MS, AT - shift_ns + 5 * MS, MS))
    watching = Answers({"a": rows(0, [AT + MS // 2]), "b": there})
    watching.nodes()[1].shift_ns = shift_ns
    found = fetch(watching, "g", AT)
    assert found is not None
    assert watching.asked_of == {"a": AT, "b": AT - shift_ns}
    assert [row.proc for row in found.rows] == [1] * 6 + [0] + [1] * 4
    assert len(found.entered) == 2
    assert Moments(watching, Chronicle()).draw("g", AT).sentence.startswith("11 events, 9.0 ms.")


def test_the_moment_is_among_the_events_that_are_drawn():
    watching = Answers({"a": rows(0, range(AT - 900 * MS, AT + 900 * MS, MS))})
    found = fetch(watching, "g", AT)
    assert found is not None
    for events in (20, EVENTS):
        chosen = moments._nearest(found.rows, AT, events)
        assert len(chosen) == events
        assert sum(row.t_ns < AT for row in chosen) == round(events * moments.BEFORE)
    early = moments._nearest(found.rows, AT + 895 * MS, 20)
    assert len(early) == 20


def test_what_was_done_is_drawn_too():
    chronicle = Chronicle()
    chronicle.on_fault("g", "partition", "network: partition a b", ())
    ((_, _, at_ns),) = chronicle.notable(0, 1 << 62)
    watching = Answers({"a": rows(0, range(at_ns - 5 * MS, at_ns + 5 * MS, MS))})
    assert "partition" in Moments(watching, chronicle).draw("g", at_ns).svg


def test_a_moment_that_nobody_keeps_is_not_drawn_as_another_one():
    watching = Answers({"a": rows(0, [AT + THERE_NS + 1, AT + THERE_NS + MS])})
    drawn = Moments(watching, Chronicle()).draw("g", AT)
    assert drawn.svg == ""
    assert "No rows of that time" in drawn.sentence
    nobody = Moments(Answers({"a": []}, gone="a"), Chronicle()).draw("g", AT)
    assert "No node of this group answers" in nobody.sentence


def test_moments_are_kept_when_their_nodes_have_forgotten_them(monkeypatch):
    watching, chronicle = Answers({"a": rows(0, [AT, AT + MS])}), Chronicle()
    chronicle.on_told(watching.nodes()[0], recent(view("view 7.a", t_ns=AT)))
    kept = Moments(watching, chronicle)
    for entry, group, t_ns in chronicle.notable(0, 1 << 62):
        kept._keep(entry, group, t_ns)
        kept._keep(entry + 1, group, t_ns + MS)
    assert watching.asked == 1, "two moments close to each other share their rows"
    watching.kept["a"] = []
    assert kept.draw("g", AT, entry=1).svg
    assert kept.draw("g", AT + MS, entry=2).svg
    assert not kept.draw("g", AT).svg
    monkeypatch.setattr(moments, "MOMENTS_MAX", 1)
    watching.kept["a"] = rows(0, [2 * AT])
    kept._keep(3, "g", 2 * AT)
    watching.kept["a"] = []
    assert not kept.draw("g", AT, entry=1).svg
    assert kept.draw("g", 2 * AT, entry=3).svg


def test_an_answer_of_another_version_is_left_out():
    watching = Answers({"a": rows(0, [AT])})
    watching.ask = lambda watched, **request: {"columns": ["kind"], "rows": [["x"]]}  # type: ignore[method-assign]
    assert not Moments(watching, Chronicle()).draw("g", AT).svg


@pytest.mark.parametrize(
    "wrong",
    [{"t_ns": "soon"}, {"t_ns": None}, {"lseq": "x"}, {"proc": []}, {"members": 3}, {"proc": 99}],
)
def test_rows_that_make_no_sense_end_nothing(wrong):
    watching = Answers({"a": [row._replace(**wrong) for row in rows(0, [AT, AT + MS])]})
    drawn = Moments(watching, Chronicle()).draw("g", AT)
    assert bool(drawn.svg) == (" ms." in drawn.sentence)
