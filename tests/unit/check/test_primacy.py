"""M10: primary views that are one line, and those that are not."""

import random
from collections import Counter
from typing import Any

import pytest

from roundelay.check import PROPERTIES, Validity, check, read_model
from roundelay.check.online import OnlineChecker
from roundelay.core.effects import Kind
from roundelay.trace import mini
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import REGULAR, WORLD, Row

from .trial import expect, judge, judge_rows, recounted, without_gseq

FOUNDED = "p+V1{p,q,r}! q+V1{p,q,r}! r+V1{p,q,r}!"

FINE = {
    "a partition and its end": (
        "p+V1{p,q}! q+V1{p,q}! p~T2{p} p+V3{p} q~T4{q} q+V5{q}! p~T6{p} q~T7{q} q+V8{p,q}!"
    ),
    "a view that too few installed lies beside the line": (
        f"{FOUNDED} p/V4 q/V4 r/V4 p~T3{{p,q,r}} p+V4{{p,q,r}}! q/V8 r/V8 q~T7{{q,r}} r~T7{{q,r}} "
        "q+V8{q,r}!{p,q,r} r+V8{q,r}!{p,q,r} pX q/V12 r/V12 q+V12{q,r}!{p,q,r} r+V12{q,r}!{p,q,r}"
    ),
    "everybody lost its standing, and founds anew": (
        "p+V1{p,q}! q+V1{p,q}! pX qX p^- q^- p+V3{p,q}! q+V3{p,q}!"
    ),
    "who lost its standing meets one who did not": (
        "p+V1{p,q}! q+V1{p,q}! qX q^- p/V3 q/V3 p+V3{p,q}! q+V3{p,q}!"
    ),
    "a restart that kept its standing carries the line on": (
        f"{FOUNDED} q+V3{{q,r}}! r+V3{{q,r}}! qX rX q^3 p/V5 q/V5 p+V5{{p,q}}! q+V5{{p,q}}!"
    ),
    "a member that crashed before it installed the view had told what it knew": (
        f"{FOUNDED} q/V3 r/V3 q+V3{{q,r}}! r+V3{{q,r}}! p/V5 q/V5 r/V5 qX rX "
        "p+V5{p,q,r}!{p,q,r} q^5 q/V7 p/V7 p+V7{p,q}!{p,q,r} q+V7{p,q}!{p,q,r}"
    ),
    "a majority froze the old view before the next began": (
        f"{FOUNDED} q/V3 r/V3 q+V3{{q,r}}!{{p,q,r}} r+V3{{q,r}}!{{p,q,r}}"
    ),
    "a trace that does not tell when the old view was frozen": (
        "p+V1{p,q,r}! q+V1{p,q,r}! r+V1{p,q,r}! p~T2{p,q,r} p+V3{p,q,r}! q~T2{p,q,r} q+V3{p,q,r}! "
        "r~T2{p,q,r} r+V3{p,q,r}! s+V4{s} p+V5{p,s} r+V6{q,r,s}! q+V6{q,r,s}!"
    ),
    "a founding of an earlier line is nobody's ancestor": "p+V1{p}! pX q+V2{q}! qX r+V3{r}!",
}


@pytest.mark.parametrize("text", FINE.values(), ids=FINE)
def test_what_is_fine(text: str):
    expect(judge("M10", text), Validity.OK)
    manifest, rows = mini.parse(text)
    expect(judge_rows("M10", manifest, without_gseq(rows)), Validity.OK)
    assert online(rows, manifest) is Validity.OK


@pytest.mark.parametrize(
    "text", ["p!a", "p+V1{p} q+V2{q}", "p+V1{p}! p~T2{p} p+V3{p}", "p+V1{p,q}! q+V1{p,q}!"]
)
def test_one_primary_view_shows_nothing(text: str):
    expect(judge("M10", text), Validity.VACUOUS)
    manifest, rows = mini.parse(text)
    assert online(rows, manifest) is Validity.VACUOUS


BROKEN = [
    (
        f"{FOUNDED} q/V2 r/V2 p/V3 p+V3{{p}}! pX q/V4 q+V4{{q}}!",
        "R4{q} goes back to R1 and not to R3{p}, which a majority of its voters installed in "
        "between",
        "q+V1{p,q,r}! p+V3{p}! q/V4 q+V4{q}!",
    ),
    (
        f"{FOUNDED} p/V9 q/V9 r/V9 p+V9{{p,q,r}}! qX rX q^- q/V11 p/V11 q+V11{{p,q}}! p+V11{{p,q}}!"
        " r^- r/V13 r+V13{r}!",
        "R11{p,q} and R13{r} are primary at the same time, each for a majority of its voters",
        "q+V11{p,q}! p+V11{p,q}! r+V13{r}!",
    ),
    (
        f"{FOUNDED} q+V3{{q}}!{{q}}",
        "R1{p,q,r} and R3{q} are primary at the same time, each for a majority of its voters",
        "p+V1{p,q,r}! r+V1{p,q,r}! q+V3{q}!{q}",
    ),
    (
        "p+V1{p,q,r}!{p} q+V2{q,r}!{q,r,s} r+V2{q,r}!{q,r,s}",
        "R1{p,q,r} and R2{q,r} are primary at the same time, each for a majority of its voters",
        "p+V1{p,q,r}!{p} q+V2{q,r}!{q,r,s} r+V2{q,r}!{q,r,s}",
    ),
    (
        "p+V1{p,q}! q+V1{p,q}! q/V3 q~T2{q} q+V3{q}! q/V5 q~T4{q} q+V5{q}! qX q^- "
        "p/V7 q/V7 p+V7{p,q}! q+V7{p,q}!",
        "R7{p,q} goes back to R1 and not to R5{q}, which a majority of its voters installed in "
        "between",
        "p+V1{p,q}! q+V5{q}! q^- p/V7 p+V7{p,q}! q+V7{p,q}!",
    ),
]


@pytest.mark.parametrize(("text", "reason", "witness"), BROKEN)
def test_planted_faults(text: str, reason: str, witness: str):
    verdict = judge("M10", text)
    expect(verdict, Validity.VIOLATED)
    assert verdict.reason == reason
    manifest, rows = mini.parse(text)
    assert mini.render(verdict.witness, manifest) == witness
    again = judge_rows("M10", manifest, list(verdict.witness))
    assert again.reason == reason
    assert online(rows, manifest) is Validity.VIOLATED


# Without a total order

SIDES = "p+V1{p}! q+V2{q}!"


def test_without_a_total_order_nobody_knows_what_was_held_at_once():
    manifest, rows = mini.parse(f"{SIDES} pX qX")
    expect(judge_rows("M10", manifest, rows), Validity.VIOLATED)
    expect(judge_rows("M10", manifest, without_gseq(rows)), Validity.OK)


def test_what_two_live_nodes_hold_at_a_quiet_end_is_held_at_once():
    manifest, rows = mini.parse(f"{SIDES} end{{p}}{{q}}")
    verdict = judge_rows("M10", manifest, without_gseq(rows))
    assert verdict.reason == (
        "R1{p} and R2{q} are primary at the same time, each for a majority of its voters"
    )
    assert len(verdict.witness) == 2
    manifest, rows = mini.parse(f"{SIDES} end{{p}}")
    expect(judge_rows("M10", manifest, without_gseq(rows)), Validity.OK)


@pytest.mark.parametrize("both", [True, False])
def test_frames_prove_that_two_views_were_held_at_once(both: bool):
    """p and q hear of each other while each holds its view; one way alone proves nothing."""
    rows: list[Row] = []
    count: Counter[int] = Counter()

    def write(kind: Kind, proc: int, pkt: int | None = None, **columns: Any) -> None:
        rows.append(Row(kind, proc, 0, count[proc], pkt=pkt)._replace(**columns))
        count[proc] += 1

    for proc in (0, 1):
        view: dict[str, Any] = {
            "c_seq": 1 + proc,
            "c_rep": 0,
            "c_kind": REGULAR,
            "members": (proc,),
        }
        write(Kind.INSTALL, proc, **view, primary=True)
        write(Kind.SEND, proc, pkt=proc)
    write(Kind.ARRIVE, 1, pkt=0)
    if both:
        write(Kind.ARRIVE, 0, pkt=1)
    write(Kind.CRASH, 0)
    write(Kind.CRASH, 1)
    manifest = recounted(Manifest("r", ("p", "q")), rows)
    expect(judge_rows("M10", manifest, rows), Validity.VIOLATED if both else Validity.OK)


@pytest.mark.parametrize(
    ("clocks", "lives", "guessed"),
    [
        ((0, 0), 1, True),
        ((1, 5), 1, True),
        ((5, 1), 1, False),
        ((5, 1), 2, True),
    ],
)
def test_where_frames_are_withheld_only_lamport_clocks_exclude_what_they_say(
    clocks: tuple[int, int], lives: int, guessed: bool
):
    """p installed its view at the first of these, and q gave up its own at the second."""
    manifest, rows = mini.parse("p+V1{p}! q+V2{q}! pX qX" + " r^" * (lives - 1) + " r!a")
    lam = {"0 install": clocks[0], "1 crash": clocks[1], "0 crash": 9}
    rows = [r._replace(gseq=None, lam=lam.get(f"{r.proc} {r.kind}", 0)) for r in rows]
    if lives == 2:
        rows.append(Row("end", 2, 0, 0))
    model = read_model(rows, manifest)
    model.withheld = True
    expect(PROPERTIES["M10"].verdict_on(model), Validity.OK)
    assert model.guessed == guessed


def test_descent_needs_no_total_order():
    text, reason, _ = BROKEN[-1]
    manifest, rows = mini.parse(text)
    verdict = judge_rows("M10", manifest, without_gseq(rows))
    assert verdict.reason == reason


# Random runs


def online(rows: list[Row], manifest: Manifest) -> Validity:
    checker = OnlineChecker(manifest.nodes, ["M10"])
    for row in rows:
        checker.append(row)
    return checker.verdicts()[0].validity


class Author:
    """Rings that form and are installed by some, by a membership that is often careless."""

    def __init__(self, seed: int) -> None:
        rng = self.rng = random.Random(seed)
        self.nodes = range(rng.randint(2, 5))
        self.rows: list[Row] = []
        self.inc = dict.fromkeys(self.nodes, 0)
        self.lseq: Counter[tuple[int, int]] = Counter()
        self.down: set[int] = set()
        self.formed: dict[int, dict[str, Any] | None] = dict.fromkeys(self.nodes)
        self.seq = 0
        self.care = rng.random()
        for _ in range(rng.randint(10, 60)):
            rng.choice((self.form, *[self.enter] * 4, self.fail))()

    def write(self, kind: Kind, node: int, **columns: Any) -> None:
        writer = node, self.inc[node]
        row = Row(kind, node, writer[1], self.lseq[writer], gseq=len(self.rows))
        self.rows.append(row._replace(**columns))
        self.lseq[writer] += 1

    def form(self) -> None:
        up = [node for node in self.nodes if node not in self.down]
        if not up:
            return
        members = tuple(sorted(self.rng.sample(up, self.rng.randint(1, min(3, len(up))))))
        self.seq += 1
        voters = self.rng.choice((None, None, tuple(self.nodes), members[:1]))
        primary = self.rng.random() > self.care or 2 * len(members) > len(self.nodes)
        view: dict[str, Any] = {
            "c_seq": self.seq,
            "c_rep": 0,
            "c_kind": REGULAR,
            "members": members,
        }
        view |= {"primary": primary, "voters": voters if primary else None}
        for node in members:
            self.write(Kind.FREEZE, node, k0=self.seq, k1=0)
            self.formed[node] = view

    def enter(self) -> None:
        waiting = [node for node in self.nodes if self.formed[node] is not None]
        if waiting:
            node = self.rng.choice(waiting)
            self.write(Kind.INSTALL, node, **(self.formed[node] or {}))
            self.formed[node] = None

    def fail(self) -> None:
        node = self.rng.choice(self.nodes)
        if node in self.down:
            self.down.discard(node)
            self.inc[node] += 1
            self.write(Kind.RECOVER, node, level=self.rng.randint(0, 1))
        else:
            self.formed[node] = None
            self.down.add(node)
            self.write(Kind.CRASH, node)

    def trace(self) -> tuple[Manifest, list[Row]]:
        names = tuple("pqrst"[: len(self.nodes)])
        return recounted(Manifest("r", names), self.rows), self.rows


def by_definition(rows: list[Row]) -> tuple[bool, bool]:
    """Whether (a) some established view is missed on the way back, (b) two are held at once."""
    knows: dict[int, int] = {}
    holds: dict[int, int] = {}
    told: dict[int, list[int]] = {}
    voters: dict[int, tuple[int, ...]] = {}
    installed: dict[int, set[int]] = {}
    at_once = False
    for row in rows:
        holds.pop(row.proc, None)
        if row.kind == Kind.RECOVER and not row.level:
            knows.pop(row.proc, None)
        elif row.kind == Kind.FREEZE:
            assert row.k0 is not None
            told.setdefault(row.k0, []).extend([knows[row.proc]] if row.proc in knows else [])
        elif row.kind == Kind.INSTALL and row.primary:
            assert row.c_seq is not None
            voters[row.c_seq] = (row.members if row.voters is None else row.voters) or ()
            knows[row.proc] = holds[row.proc] = row.c_seq
            installed.setdefault(row.c_seq, set()).add(row.proc)
            ruling = [
                view
                for view, electorate in voters.items()
                if 2 * sum(holds.get(voter) == view for voter in electorate) > len(electorate)
            ]
            at_once |= len(ruling) > 1
    parents = {view: max(told.get(view, ()), default=None) for view in voters}
    established = [
        view for view, who in voters.items() if 2 * len(installed[view] & set(who)) > len(who)
    ]
    beside = False
    for late in established:
        way = [late]
        while (parent := parents[way[-1]]) is not None:
            way.append(parent)
        beside |= any(way[-1] <= early < late and early not in way for early in established)
    return beside, at_once


def test_random_runs_get_the_verdicts_of_the_definition():
    seen: Counter[tuple[bool, bool]] = Counter()
    for seed in range(1500):
        manifest, rows = Author(seed).trace()
        broken = by_definition(rows)
        seen[broken] += 1
        verdict = judge_rows("M10", manifest, rows)
        told = mini.render(rows, manifest), verdict, broken
        assert (verdict.validity is Validity.VIOLATED) == any(broken), told
        assert online(rows, manifest) is verdict.validity, told
        if verdict.witness:
            again = judge_rows("M10", manifest, list(verdict.witness))
            assert again.validity is Validity.VIOLATED, (
                told,
                mini.render(verdict.witness, manifest),
            )
        real = judge_rows("M10", manifest, without_gseq(rows))
        if broken[0]:
            assert real.validity is Validity.VIOLATED, told
        elif not broken[1]:
            assert real.validity is verdict.validity, told
    assert min(seen[case] for case in ((False, False), (True, False), (False, True))) > 30, seen


def test_a_short_memory_makes_no_verdict_wrong(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("roundelay.check.primary.VIEWS_MAX", 1)
    unsure = 0
    for seed in range(400):
        manifest, rows = Author(seed).trace()
        here = check(rows, manifest, profile=["M10"]).verdicts[0].validity
        there = online(rows, manifest)
        assert there in (here, Validity.INCONCLUSIVE)
        unsure += there is Validity.INCONCLUSIVE
    assert unsure > 10


def test_rows_of_the_world_are_no_processes():
    manifest, rows = mini.parse("p+V1{p}! end{p} p+V2{p}!")
    assert {row.proc for row in rows} == {0, WORLD}
    expect(judge_rows("M10", manifest, rows), Validity.OK)
