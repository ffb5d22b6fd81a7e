"""Facts and certificates, without Spark: what is proved is true, and faults are not proved."""

import random
from collections.abc import Sequence
from itertools import pairwise

import pyarrow as pa
import pytest
from tests.unit.check.random_traces import traces

from roundelay.check import PROPERTIES, Validity, read_model
from roundelay.pipeline.arrow import EVENT_FIELDS, to_arrays
from roundelay.pipeline.facts import COLUMNS, facts_of
from roundelay.pipeline.stitch import Edges, Fact, Stitched, conclude_keys, stitch
from roundelay.trace import mini
from roundelay.trace.schema import Row

PROVABLE = ("D2", "D7", "O1", "O4", "O3f", "O3i", "O5", "O5p", "O6")


def facts(rows: Sequence[Row], cuts: Sequence[int] = ()) -> list[Fact]:
    """The facts of rows, read in batches that end at these places."""
    found: list[Fact] = []
    ends = [0, *cuts, len(rows)]
    ordered = sorted(rows, key=lambda row: (row.proc, row.inc, row.lseq))
    names = [name for name, _ in EVENT_FIELDS]
    for start, end in pairwise(ends):
        if start == end:
            continue
        some = ordered[start:end]
        arrays = [pa.array(["run"] * len(some)), *to_arrays(some)]
        batch = pa.RecordBatch.from_arrays(arrays, names=["run", *names]).select(list(COLUMNS))
        told = facts_of(batch).to_pylist()
        found += [Fact(f["fact"], f["proc"], f["inc"], f["first"], f["v"]) for f in told]
    return found


def stitched(text: str, cuts: Sequence[int] = ()) -> Stitched:
    _, rows = mini.parse(text)
    run = stitch(facts(rows, cuts))
    if run.classes and not run.edges:
        conclude_keys(run, Edges())
    return run


AGREED = "p+V1{p,q} q+V1{p,q} p!a q!b p.a=1 q.a=1 p.b=2 q.b=2 p+V3{p,q} q+V3{p,q}"


@pytest.mark.parametrize("cuts", [(), (1,), (3, 6), (1, 2, 3, 4, 5, 6, 7, 8, 9)])
def test_agreement_is_proved_however_the_rows_are_cut(cuts):
    assert stitched(AGREED, cuts).proved == {
        "O4": 2, "D2": 4, "O1": 0, "O3f": 2, "O3i": 2, "O5": 2, "O5p": 1, "O6": 2, "D7": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("D2", "p!a p.a=1 p.a=2"),
        ("O1", "p!a p!b q.b=1 q.a=2"),
        ("O4", "p!a q!b p.a=2 p.b=1"),
        ("O3f", "p!a p.a=1 q.a=2"),
        ("O3i", "p!a q!b p.a=1 q.b=1"),
        ("O5", "p!a q!b p.a=1 p.b=2 q.b=1 q.a=2"),
        ("O5", "p!a q!b p.a p.b"),
        ("O6", "p!a q!b r!c p.a=1 p.b=2 p.c=3 q.a=1 q.c=3"),
        ("D7", "p+V1{p,q} q+V1{p,q} p!a p.a=1 p+V2{p,q} q+V2{p,q}"),
    ],
)
def test_a_fault_is_not_proved_away(name, text):
    for cuts in ((), (1,), (2,), (3,)):
        assert name not in stitched(text, cuts).proved


def test_a_message_in_two_blocks_that_nobody_shares_is_an_edge():
    run = stitched("p!a q!b p.a=1 q.a=5000 q.b=5001")
    assert len(run.edges) == 2
    assert "O3f" not in run.proved


def test_what_is_proved_is_what_the_local_checker_says():
    """On random runs, cut at random: with its instances, and never against it."""
    rng = random.Random(7)
    seen = dict.fromkeys(PROVABLE, 0)
    for kinds in ("keys", "keys views", "keys views crashes", "", "views"):
        for text in traces(11, 80, kinds):
            manifest, rows = mini.parse(text)
            cuts = sorted(rng.sample(range(1, len(rows)), min(len(rows) - 1, rng.randint(0, 4))))
            model = read_model(rows, manifest)
            for name, instances in stitched(text, cuts).proved.items():
                verdict = PROPERTIES[name].judge(model)
                assert verdict.instances == instances, (name, text, verdict)
                assert verdict.validity is (Validity.OK if instances else Validity.VACUOUS)
                seen[name] += bool(instances)
    assert all(seen.values()), seen


def test_holes_repetitions_and_disorder_are_noticed():
    _, rows = mini.parse("p!a p.a q!b p.b q.b q.a")
    whole = stitch(facts(rows)).logs
    assert [(log.rows, log.whole, log.ordered) for log in whole] == [(3, True, True)] * 2
    lost = stitch(facts([row for row in rows if (row.proc, row.lseq) != (0, 1)])).logs[0]
    assert (lost.missing, lost.first_missing) == (1, 1)
    twice = stitch(facts([*rows, rows[0]], cuts=(1,))).logs[0]
    assert twice.repeated == 1
    moved = [rows[1]._replace(gseq=0), rows[0]._replace(gseq=1)]
    assert not stitch(facts(moved)).logs[0].ordered
