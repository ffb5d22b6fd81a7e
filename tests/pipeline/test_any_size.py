"""A run that is too large for one piece is convicted of what the local checker convicts it of.

Five hundred messages in good order, and in the midst of them or at their end something that is not.
"""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from roundelay.check import check
from roundelay.pipeline.ingest.into_table import ingest
from roundelay.pipeline.judge.check import check as check_on_spark
from roundelay.trace import mini

from .conftest import write

pytestmark = pytest.mark.slow

MESSAGES = 500
NODES = "pqr"
KEYED = ["O1", "O1r", "O2", "O2r", "O3f", "O3i", "O4", "O6", "O8", "O9", "O10", "O11", "S5", "K4"]
UNKEYED = ["O1", "O1r", "O2r", "O8", "O11"]

VIEW = "p+V1{p,q,r} q+V1{p,q,r} r+V1{p,q,r}"
HALVES = "p~T2{p,q,r} q~T2{p,q,r} q.x=K r.x=K r~T2{p,q,r} p+V3{p,q,r} q+V3{p,q,r} r+V3{p,q,r}"


def traffic(first: int, last: int, key: int) -> Iterator[str]:
    """Messages in good order: sent, assigned a key by p, delivered and claimed by all."""
    for number in range(first, last):
        name, k = f"m{number}", key + number
        yield f"{NODES[number % 3]}!{name} p?{name} p#{name}={k}"
        yield from (f"{node}.{name}={k}" for node in NODES)
        yield from (f"{node}*{name}" for node in NODES)


K = MESSAGES // 2
PLANTED = {
    # What is planted; how much further the keys are after it; what it breaks.
    "nothing": ("", 0, set()),
    "a number left out": ("p!x p#x=L p.x=L q.x=L r.x=L", 2, {"O10", "S5"}),
    "a claim with a hole": (
        "p!x p#x=K p.x=K q.x=K r.x=K q!y p?y p#y=L p.y=L q.y=L r.y=L q*y",
        2,
        {"S5"},
    ),
    "an effect before its cause": (
        "p!x q.x=L q!y qX p.y=K p.x=L r.y=K r.x=L",
        2,
        {"O2", "O2r", "O6", "O9", "O10", "O11"},
    ),
    "a delivery in the wrong half": (f"p!x p.x=K {HALVES}", 1, {"O8"}),
    "an assigner that lacks one": (
        "q!x p?x p#x=K r!y r#y=L p.x=K q.x=K r.x=K p.y=L q.y=L r.y=L",
        2,
        {"K4", "S5"},
    ),
    "a missing delivery": (
        "p!x p.x=K r.x=K r!y p.y=L q.y=L r.y=L",
        2,
        {"O1r", "O2r", "O6", "O10", "O11", "S5"},
    ),
    "keys downwards": (
        "p!x q!y p.y=L p.x=K q.x=K q.y=L r.x=K r.y=L",
        2,
        {"O4", "O6", "O8", "O10", "O11", "S5"},
    ),
}
OPEN = {"a missing delivery": {"O2", "O9"}, "keys downwards": {"O2", "O2r", "O3i", "O9"}}
"""What holds in the whole run, and stays open: facts do not prove it beside what is planted."""
AT_THE_END = {"an effect before its cause", "a delivery in the wrong half"}
"""What comes when all others have been delivered: a node crashes, or a view ends."""


def trace(name: str):
    """A run with something planted, and the messages that are in what is planted."""
    text, wide, _ = PLANTED[name]
    half = MESSAGES if name in AT_THE_END else K
    named = text.replace("=K", f"={half}").replace("=L", f"={half + 1}")
    before = [VIEW, *traffic(0, half, 0)]
    after = traffic(half, MESSAGES, wide)
    manifest, rows = mini.parse(" ".join([*before, named, *after]), name)
    begin = len(" ".join(before).split())
    planted = rows[begin : begin + len(named.split())]
    return manifest, rows, {row[10:13] for row in planted if row.m_src is not None}


def test_what_is_planted_in_a_large_run_is_found(spark, tmp_path):
    expected, messages = {}, {}
    for name, (_, _, broken) in PLANTED.items():
        manifest, rows, messages[name] = trace(name)
        written = write(tmp_path / "in" / name, replace(manifest, run=name), rows)
        expected[name] = check(rows, written, profile=KEYED)
        assert {v.property for v in expected[name].violated} == broken, name
    table = ingest(spark, [tmp_path / "in"], tmp_path / "table").table
    for one in check_on_spark(
        spark, table, held=KEYED, slice_rows=3000, whole_rows=1000, small_rows=0
    ):
        for here in expected[one.run].verdicts:
            there = one.report[here.property]
            still = "inconclusive" if here.property in OPEN.get(one.run, ()) else here.validity
            assert there.validity == still, (one.run, here, there)
            if there.validity == "violated":
                shown = {row[10:13] for row in there.witness if row.m_src is not None}
                assert shown & messages[one.run], (one.run, there)
        if one.run == "nothing":
            assert one.report.ok, [v for v in one.report.verdicts if v.validity != "ok"]


WITHOUT_KEYS = {
    "O1": "p!x p!y q.y q.x",
    "O8": "p+V1{p,q} q+V1{p,q} p!x p.x p+V2{p,q} q+V2{p,q} q.x",
    "O1r": "p+V1{p,q} q+V1{p,q} p!x p!y p.x p.y q.y",
    "O11": "p+V1{p,q} q+V1{p,q} q!x p.x p!y p.y q.y",
}


def test_what_needs_no_keys_is_found_without_keys(spark, tmp_path):
    for name, text in WITHOUT_KEYS.items():
        manifest, rows = mini.parse(text, name)
        written = write(tmp_path / "in" / name, manifest, rows)
        assert check(rows, written, profile=UNKEYED)[name].validity == "violated", name
    table = ingest(spark, [tmp_path / "in"], tmp_path / "table").table
    for one in check_on_spark(spark, table, held=UNKEYED, whole_rows=0, small_rows=0):
        assert one.report[one.run].validity == "violated", one.run
        assert one.report[one.run].witness
