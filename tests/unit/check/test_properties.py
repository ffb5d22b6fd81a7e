"""Every property can say no, and says so when it was never put to the test."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from roundelay.check import PROPERTIES, Validity, check
from roundelay.check.profiles import FAMILIES
from roundelay.trace import mini
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import Row

from .trial import corpus, expect, judge_rows

Trace = tuple[Manifest, list[Row]]


def _lost_row() -> Trace:
    manifest, rows = mini.parse("p!a p.a")
    return manifest, rows[:1]


def _two_layers(text: str, *below: int) -> Trace:
    """The rows at these places are of the layer below."""
    manifest, rows = mini.parse(text)
    return manifest, [r._replace(layer="vs") if i in below else r for i, r in enumerate(rows)]


def _damaged_copy() -> Trace:
    manifest, rows = mini.parse("p!a%x q?a")
    return manifest, [rows[0], rows[1]._replace(digest=1)]


def _lost_submission() -> Trace:
    """What p submits is never sent; the first event of a run that goes well otherwise."""
    manifest, rows = mini.parse("q!b q.b p.b end{p,q}")
    lost = Row("submit", 0, 0, 0, gseq=0, layer="app", m_src=0, m_inc=0, m_seq=0)
    return manifest, [row._replace(gseq=i) for i, row in enumerate([lost, *rows])]


PLANTED: dict[str, Callable[[], Trace]] = {
    "T1": _lost_row,
    "L5": lambda: _two_layers("p+V1{p} p!a p.a p+V2{p}", 2),
    "L6": lambda: mini.parse("p!a q!b p#a=1 q#b=2 p$a=1 q$a=1 end{p,q}"),
    "L7": _lost_submission,
    "E2": lambda: mini.parse("p!a pX qX end{r}"),
    "E3": lambda: mini.parse("p!a pX end{q}"),
    "E4": lambda: mini.parse("p!a pX end{q}"),
    "E5": lambda: _two_layers("p+V1{p} p!a p.b p.a", 1, 2),
    "E6": _damaged_copy,
}
"""Faults that need more than a line of the corpus."""

NOTHING = ("", "end{p}")
"""Traces in which nothing happens, without and with a quiet end."""


@pytest.mark.parametrize("name", list(PLANTED))
def test_planted_faults(name: str):
    manifest, rows = PLANTED[name]()
    verdict = judge_rows(name, manifest, rows)
    expect(verdict, Validity.VIOLATED)
    assert verdict.reason
    assert verdict.witness


def test_every_property_is_known_to_convict():
    convicting = {case.head[0] for case in corpus() if not case.clean}
    assert convicting | PLANTED.keys() == PROPERTIES.keys()
    assert not convicting & PLANTED.keys()


@pytest.mark.parametrize("name", list(PROPERTIES))
def test_a_trace_in_which_nothing_happens_is_no_pass(name: str):
    verdicts = []
    for text in NOTHING:
        manifest, rows = mini.parse(text)
        verdicts.append(judge_rows(name, replace(manifest, resilience=1), rows))
    assert Validity.VACUOUS in [verdict.validity for verdict in verdicts], verdicts


def test_titles_are_sentences():
    for name, one in PROPERTIES.items():
        assert one.name == name
        assert one.title[0].isupper(), one.title
        assert one.title[-1] not in ".!", one.title
        assert len(one.title) <= 90, one.title
        assert name[0] in FAMILIES


def test_no_property_fails_on_a_trace_of_its_neighbours():
    """Whatever a trace looks like, a property gives a verdict; it never crashes."""
    for case in corpus():
        manifest, rows = case.trace()
        for name in PROPERTIES:
            verdict = check(rows, manifest, profile=[name])[name]
            assert "the check itself failed" not in verdict.reason, (case, verdict)
            unordered = [row._replace(gseq=None) for row in rows]
            verdict = check(unordered, None, profile=[name])[name]
            assert "the check itself failed" not in verdict.reason, (case, verdict)
