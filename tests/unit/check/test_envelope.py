"""E: runs that leave the assumptions of a paper."""

from dataclasses import replace

import pytest

from roundelay.check import Validity
from roundelay.core.effects import Kind
from roundelay.trace import mini
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import WORLD, Row

from .trial import expect, judge, judge_rows

VIOLATED, OK, VACUOUS = Validity.VIOLATED, Validity.OK, Validity.VACUOUS
INCONCLUSIVE = Validity.INCONCLUSIVE

CASES = [
    ("E1", VIOLATED, "p!a q!b p?a p?b q?b q?a"),
    ("E1", VIOLATED, "p!a q!b r!c p?a p?b q?b q?c r?c r?a"),
    ("E1", OK, "p!a q!b p?a p?b q?a q?a q?b q?a"),
    ("E1", VACUOUS, "p!a q!b p?b q?a"),
    ("E3", VIOLATED, "p!a q?a pX"),
    ("E3", VIOLATED, "p+V1{p,q} q+V1{p,q} p+V2{p,q}"),
    ("E3", VIOLATED, "p!a end{p,q}"),
    ("E3", INCONCLUSIVE, "p!a q?b"),
    ("E3", OK, "p!a q?a"),
    ("E3", OK, "p+V1{p,q} q+V1{p,q} p!a{q} q?a end{p,q}"),
    ("E3", VACUOUS, ""),
    ("E4", VIOLATED, "p!a pX"),
    ("E4", VIOLATED, "p!a qX q^ q?a"),
    ("E4", OK, "p!a q?a"),
    ("E4", VACUOUS, ""),
]


@pytest.mark.parametrize(("name", "validity", "text"), CASES)
def test_a_verdict(name: str, validity: Validity, text: str):
    verdict = judge(name, text)
    expect(verdict, validity)
    assert bool(verdict.witness) == (validity is VIOLATED)


def in_frames(text: str, frames: str) -> tuple[Manifest, list[Row]]:
    """A trace whose receipts come in these frames, a digit each, or none, a dash."""
    manifest, rows = mini.parse(text)
    numbers = iter(frames)
    return manifest, [
        row._replace(pkt=int(number) if (number := next(numbers)) != "-" else None)
        if row.kind == Kind.RECEIVE
        else row
        for row in rows
    ]


@pytest.mark.parametrize(
    ("validity", "frames", "text"),
    [
        # a is sent again for q, which missed it: another frame, behind that of b.
        (OK, "12323", "p!a r!b p?a p?b p?a q?b q?a"),
        (VACUOUS, "1223", "p!a r!b p?a p?b q?b q?a"),
        (VIOLATED, "12332", "p!a r!b p?a p?b p?a q?a q?b"),
        (VIOLATED, "1221", "p!a r!b p?a p?b q?b q?a"),
        # Of what came in no frame that the trace knows, nothing is said.
        (VACUOUS, "1--1", "p!a r!b p?a p?b q?b q?a"),
        (VIOLATED, "----", "p!a r!b p?a p?b q?b q?a"),
    ],
)
def test_one_channel_carries_frames(validity: Validity, frames: str, text: str):
    expect(judge_rows("E1", *in_frames(text, frames)), validity)


def replicas(text: str, k: int | None = 1) -> tuple[Manifest, list[Row]]:
    manifest, rows = mini.parse(text)
    return replace(manifest, envelope={} if k is None else {"k": k}), rows


FIVE = "p!a q?a r?a s?a t?a"
ROUND = "q#a=1.0 s#a=2.0 t#a=3.0"
NEXT_ROUND = "q#a=4.0 s#a=5.0 t#a=6.0"
"""All but p and r decide."""


@pytest.mark.parametrize(
    ("validity", "k", "text"),
    [
        (OK, 1, FIVE),
        (OK, None, FIVE),
        (OK, 1, f"{FIVE} pX"),
        (OK, 1, f"{FIVE} pX {ROUND} {NEXT_ROUND} rX"),
        (OK, 2, f"{FIVE} pX tX"),
        (VIOLATED, 1, f"{FIVE} pX rX"),  # At the same time, and no neighbours.
        (VIOLATED, 1, f"{FIVE} {ROUND} {NEXT_ROUND} pX rX"),
        (VIOLATED, 1, f"{FIVE} pX {ROUND} rX {NEXT_ROUND}"),
        (VIOLATED, 1, f"{FIVE} pX {ROUND} {ROUND} rX"),  # A decision may be of several requests.
        (VIOLATED, 2, f"{FIVE} pX rX"),
        (VIOLATED, 1, f"{FIVE} pX qX"),
        (VIOLATED, 1, f"{FIVE} pX tX"),  # The ring is closed.
        (VIOLATED, 2, f"{FIVE} pX rX tX"),
        (VIOLATED, 2, "p!a q?a r?a s?a pX rX"),
        (VIOLATED, 1, f"{FIVE} pX p^"),
        (INCONCLUSIVE, None, f"{FIVE} pX"),
        (VACUOUS, 1, ""),
    ],
)
def test_few_replicas_fail(validity: Validity, k: int | None, text: str):
    manifest, rows = replicas(text, k)
    expect(judge_rows("E2", manifest, rows), validity)


def world(kind: Kind, tag: str, **columns: int) -> Row:
    return Row(kind, WORLD, 0, 100, 100, tag=tag)._replace(**columns)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("tag", "validity"), [("cut", VIOLATED), ("partition", VIOLATED), ("pause", OK)]
)
def test_the_network_is_not_cut(tag: str, validity: Validity):
    manifest, rows = replicas(FIVE)
    expect(judge_rows("E2", manifest, [*rows, world(Kind.FAULT, tag)]), validity)


@pytest.mark.parametrize(
    ("tag", "peer", "validity"),
    [("DEC", 1, VIOLATED), ("DEC", 2, OK), ("REQUEST", 1, OK)],
)
def test_a_decision_lost_on_its_way_to_the_successor_is_a_failure(
    tag: str, peer: int, validity: Validity
):
    manifest, rows = replicas(FIVE, k=0)
    sent = Row(Kind.SEND, 0, 0, 99, 99, layer="net", tag=tag, pkt=7)
    lost = world(Kind.DROP, "loss", pkt=7, peer=peer)
    expect(judge_rows("E2", manifest, [*rows, sent, lost]), validity)


@pytest.mark.parametrize(("arrives", "validity"), [(False, VIOLATED), (True, OK)])
def test_a_decision_that_its_successor_refuses_is_lost_unless_another_copy_arrives(
    arrives: bool, validity: Validity
):
    """A frame with wrong bytes is dropped by its receiver, and the row names the sender."""
    manifest, rows = replicas(FIVE, k=0)
    rows.append(Row(Kind.SEND, 0, 0, 99, 99, layer="net", tag="DEC", pkt=7))
    if arrives:
        rows.append(Row(Kind.ARRIVE, 1, 0, 99, 100, layer="net", tag="DEC", pkt=7, peer=0))
    rows.append(Row(Kind.DROP, 1, 0, 100, 101, layer="net", tag="checksum", pkt=7, peer=0))
    expect(judge_rows("E2", manifest, rows), validity)


def test_who_is_suspected_has_failed():
    manifest, rows = replicas(FIVE, k=0)
    suspicion = Row(Kind.SUSPECT, 1, 0, 99, 99, members=(0,))
    expect(judge_rows("E2", manifest, [*rows, suspicion]), VIOLATED)


def test_what_a_replica_that_crashes_suspects_is_nobodys_failure():
    """It may have missed anything; that it failed itself is counted."""
    manifest, rows = replicas(f"{FIVE} qX", k=1)
    of_its_neighbour = Row(Kind.SUSPECT, 1, 0, 1, 2, members=(0,))
    expect(judge_rows("E2", manifest, [*rows, of_its_neighbour]), OK)
    by_another = of_its_neighbour._replace(proc=2)
    expect(judge_rows("E2", manifest, [*rows, by_another]), VIOLATED)


def test_a_suspicion_of_nobody_is_no_failure():
    """With such a one a replica says that it has seen another confirm something else."""
    manifest, rows = replicas(FIVE, k=0)
    diverged = Row(Kind.SUSPECT, 1, 0, 99, 99, members=())
    expect(judge_rows("E2", manifest, [*rows, diverged]), OK)


def test_losses_that_were_not_recorded_leave_a_doubt():
    manifest, rows = replicas(FIVE)
    expect(judge_rows("E2", manifest, [*rows, world(Kind.FAULT, "rates")]), INCONCLUSIVE)


BELOW = [
    ("M1", "p+V1{q} q+V1{q} p!a"),
    ("M2", "p+V2{p} p+V1{p} p!a"),
    ("M3", "p!a p+V1{p}"),
    ("M4", "p+V1{p,q} q+V1{q} p!a"),
    ("D1", "p+V1{p} p.a"),
    ("D2", "p+V1{p} p!a p.a p.a"),
    ("D4s", "p+V1{p} p!a p+V2{p} p.a"),
    ("O1r", "p+V1{p,q} q+V1{p,q} p!a p!b q.b"),
]


def below(text: str) -> list[Row]:
    """The messages as those of the layer below."""
    return [
        row._replace(layer="vs") if row.m_src is not None else row for row in mini.parse(text)[1]
    ]


@pytest.mark.parametrize(("broken", "text"), BELOW)
def test_the_layer_below_breaks_its_promise(broken: str, text: str):
    manifest, rows = mini.parse(text)
    verdict = judge_rows("E5", manifest, below(text))
    expect(verdict, VIOLATED)
    assert verdict.reason.startswith(f"{broken} of the layer below: ")
    expect(judge_rows("E5", manifest, rows), VACUOUS)


def test_the_layer_below_keeps_its_promise():
    """What the layer above makes of it is no concern of this property."""
    text = "p+V1{p,q} q+V1{p,q} p!a p!b p.a p.b q.a q.b"
    manifest, rows = mini.parse(text)
    above = [row._replace(lseq=row.lseq + 50, layer="to") for row in rows if row.kind == "deliver"]
    expect(judge_rows("E5", manifest, [*below(text), *above, *above]), OK)


def digested(text: str, received: int | None) -> list[Row]:
    return [
        row._replace(digest=received) if row.kind == "receive" else row
        for row in mini.parse(text)[1]
    ]


@pytest.mark.parametrize(
    ("validity", "text", "received"),
    [
        (VIOLATED, "p!a%0000000a q?a", 11),
        (VIOLATED, "p!a%0000000a q!a%0000000b", None),
        (OK, "p!a%0000000a q?a q.a%0000000b", 10),  # What becomes of it later is D11's business.
        (VACUOUS, "p!a%0000000a q?a", None),
        (VACUOUS, "p!a q?a", 10),
    ],
)
def test_packets_arrive_as_they_were_sent(validity: Validity, text: str, received: int | None):
    manifest, _ = mini.parse(text)
    expect(judge_rows("E6", manifest, digested(text, received)), validity)
