"""Facts and certificates, without Spark: what is proved is true, and faults are not proved."""

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.check.random_traces import traces
from tests.unit.check.trial import corpus

from roundelay.check import PROPERTIES, Validity, read_model
from roundelay.pipeline.arrow import EVENT_FIELDS, to_arrays
from roundelay.pipeline.expressions import BLOCK_KEYS
from roundelay.pipeline.proofs.arrays import COLUMNS
from roundelay.pipeline.proofs.batch_facts import facts_of
from roundelay.pipeline.proofs.stitch import RINGS, Edges, RunProofs, conclude_keys, stitch
from roundelay.pipeline.proofs.views import Fact
from roundelay.trace import mini
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import Row, expand

PROVABLE = ("D2", "D7", "O1", "O3f", "O3i", "O4", "O5", "O5p", "O6", "O8", "O10")
IMPLIED = ("O1r", "O2", "O2r", "O5w", "O9", "O11")


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


def edges_of(run: RunProofs, rows: Sequence[Row]) -> Edges:
    """What the edges hold, message by message."""
    static = not any(row.kind == "install" for row in rows)
    owners: dict[Any, set[Any]] = defaultdict(set)
    keys: dict[Any, set[Any]] = defaultdict(set)
    messages: dict[Any, set[Any]] = defaultdict(set)
    in_view: dict[Any, set[int]] = defaultdict(set)
    in_ring: dict[Any, set[int]] = defaultdict(set)
    for row in expand(row for row in rows if row.kind == "deliver" and row.k2 is not None):
        key = (row.k0, row.k1, row.k2, row.k3)
        if (row.k0, row.k1, (row.k2 or 0) // BLOCK_KEYS) not in run.edges:
            continue
        message = (row.m_src, row.m_inc, row.m_seq)
        owners[message].add(row.proc)
        keys[message].add(key)
        messages[key].add(message)
        in_view[() if static else (row.c_seq, row.c_rep, row.c_kind), key].add(row.proc)
        in_ring[key[:2], key].add(row.proc)

    def skipped(having, lasts):
        return sum(
            any(where == view and last > key and p not in nodes for where, p, last in lasts)
            for (view, key), nodes in having.items()
        )

    return Edges(
        [(min(keys[message])[:2], tuple(sorted(nodes)), 1) for message, nodes in owners.items()],
        sum(len(group) > 1 for group in keys.values()),
        len(messages),
        sum(len(group) > 1 for group in messages.values()),
        skipped(in_view, run.lasts),
        skipped(in_ring, run.ring_lasts or []),
    )


def prove(rows: Sequence[Row], cuts: Sequence[int] = ()) -> RunProofs:
    run = stitch(facts(rows, cuts))
    if "O4" in run.proved:
        conclude_keys(run, edges_of(run, rows))
    return run


def stitched(text: str, cuts: Sequence[int] = ()) -> RunProofs:
    return prove(mini.parse(text)[1], cuts)


AGREED = "p+V1{p,q} q+V1{p,q} p!a q!b p.a=1 q.a=1 p.b=2 q.b=2 p+V3{p,q} q+V3{p,q}"


@pytest.mark.parametrize("cuts", [(), (1,), (3, 6), (1, 2, 3, 4, 5, 6, 7, 8, 9)])
def test_agreement_is_proved_however_the_rows_are_cut(cuts):
    assert stitched(AGREED, cuts).proved == {
        "O4": 2, "D2": 4, "O1": 0, "O3f": 2, "O3i": 2, "O5": 2, "O5p": 1, "O6": 2, "D7": 1,
        "O8": 4, "O10": 2, RINGS: 0,
    }  # fmt: skip


CONFIRMED = AGREED.replace("p.a=1", "p$a=1 q$a=1 p.a=1").replace("p.b=2", "p$b=2 q$b=2 p.b=2")


@pytest.mark.parametrize("cuts", [(), (1,), (3, 6), (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)])
def test_confirmations_are_no_obstacle_and_have_numbers_of_their_own(cuts):
    assert stitched(CONFIRMED, cuts).proved == stitched(AGREED).proved
    ahead = CONFIRMED.replace("p.b=2 q.b=2 ", "p!c p$c=3 q$c=3 ")
    assert stitched(ahead, cuts).proved["O10"] == 4


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
        ("O8", "p+V1{p,q} q+V1{p,q} p!a p.a=1 p+V2{p,q} q+V2{p,q} q.a=1"),
        ("O10", "p!a p!b p.a=1 p.b=3"),
        ("O10", "p!a p!b p$a=1 p$b=3 p.a=1 p.b=2"),
        ("O10", "p!a p!b p$b=2 p$a=1 p.a=1 p.b=2"),
    ],
)
def test_a_fault_is_not_proved_away(name, text):
    for cuts in ((), (1,), (2,), (3,)):
        assert name not in stitched(text, cuts).proved


def test_a_message_in_two_blocks_that_nobody_shares_is_an_edge():
    run = stitched("p!a q!b p.a=1 q.a=5000 q.b=5001")
    assert len(run.edges) == 2
    assert "O3f" not in run.proved


def some_traces() -> Iterator[tuple[Manifest, list[Row], str]]:
    """Small runs, right and wrong."""
    for kinds in (
        *("keys", "keys views", "keys views crashes", "", "views", "keys destinations"),
        *("keys withdrawals", "keys views withdrawals crashes", "views withdrawals crashes"),
        *("keys confirmations", "keys views confirmations", "keys views crashes confirmations"),
    ):
        for text in traces(11, 80, kinds):
            yield *mini.parse(text), text
    for case in corpus():
        yield *case.trace(), str(case)


def test_what_is_proved_is_what_the_local_checker_says():
    """On random runs, cut at random: with its instances, and never against it."""
    rng = random.Random(7)
    seen = dict.fromkeys((*PROVABLE, *IMPLIED), 0)
    for manifest, rows, text in some_traces():
        cuts = sorted(rng.sample(range(1, len(rows)), min(len(rows) - 1, rng.randint(0, 4))))
        model = read_model(rows, manifest)
        run = prove(rows, cuts)
        holds = dict(run.proved)
        for name, instances, needs in run.implied:
            open_ = [need for need in needs if need not in holds]
            if RINGS not in open_ and all(
                PROPERTIES[need].verdict_on(model).validity in _FINE for need in open_
            ):
                holds[name] = instances
        for name in holds.keys() - {RINGS}:
            verdict = PROPERTIES[name].verdict_on(model)
            assert verdict.instances == holds[name], (name, text, verdict)
            assert verdict.validity is (Validity.OK if holds[name] else Validity.VACUOUS), text
            seen[name] += bool(holds[name])
    assert all(seen.values()), seen


_FINE = (Validity.OK, Validity.VACUOUS)


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


def test_what_is_unusual_is_written_about_every_run_in_a_batch():
    """Else the facts of the others would prove too much."""
    _, rows = mini.parse("p!a p#a=1 p$a=1 q$a=1 p.a=1 q.a=1")
    rows = [row._replace(k2=None) if row.kind == "confirm" else row for row in rows]
    arrays = to_arrays([*rows, *rows])
    runs = pa.array(["one"] * len(rows) + ["two"] * len(rows))
    names = ["run", *(name for name, _ in EVENT_FIELDS)]
    batch = pa.RecordBatch.from_arrays([runs, *arrays], names=names).select(list(COLUMNS))
    unusual = [f for f in facts_of(batch).to_pylist() if f["fact"] == "unusual"]
    assert sorted((f["run"], f["proc"]) for f in unusual) == [
        ("one", 0),
        ("one", 1),
        ("two", 0),
        ("two", 1),
    ]
