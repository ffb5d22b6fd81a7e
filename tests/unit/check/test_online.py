"""The online checker: it says what brute force and the offline checker say, in bounded memory."""

import itertools
import random
import tracemalloc
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from roundelay.check import Validity, Verdict, check
from roundelay.check.online import COVERED, OnlineChecker, ViolationError
from roundelay.check.profiles import profile
from roundelay.core.contract import Boot, Core
from roundelay.core.effects import Kind
from roundelay.core.ids import Service
from roundelay.group.static import StaticStack
from roundelay.protocols import template
from roundelay.sim.faults import Choices
from roundelay.sim.network import Bus, Lan, Network
from roundelay.sim.world import World
from roundelay.trace import mini
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import REGULAR, TRANSITIONAL, WORLD, Row, expand

from .trial import Case, corpus, recounted

OK, VIOLATED, VACUOUS, INCONCLUSIVE = (
    Validity.OK,
    Validity.VIOLATED,
    Validity.VACUOUS,
    Validity.INCONCLUSIVE,
)


def judged(
    rows: Iterable[Row],
    nodes: int | tuple[str, ...],
    properties: Iterable[str] | None = None,
    resilience: int | None = None,
    window: int = 10_000,
) -> dict[str, Verdict]:
    chosen = None if properties is None else frozenset(properties)
    checker = OnlineChecker(nodes, chosen, resilience, window)
    for row in rows:
        checker.append(row)
    return {verdict.property: verdict for verdict in checker.verdicts()}


def judged_text(text: str, *properties: str, resilience: int | None = None) -> dict[str, Verdict]:
    manifest, rows = mini.parse(text)
    return judged(rows, manifest.nodes, properties or None, resilience)


# The corpus

CASES = list(corpus())


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.head[0] in COVERED], ids=lambda case: str(case)
)
def test_every_covered_property_convicts_its_example(case: Case) -> None:
    name = case.head[0]
    verdict = judged_text(case.text, resilience=case.resilience)[name]
    assert verdict.validity is VIOLATED
    assert verdict.reason
    assert verdict.witness


@pytest.mark.parametrize("case", [case for case in CASES if case.clean], ids=lambda case: str(case))
def test_clean_traces_break_no_promise(case: Case) -> None:
    protocol, rules, mode = case.head[1:4]
    manifest, rows = case.trace()
    held = profile(protocol, rules, case.resilience, mode, len(manifest.nodes))
    promised = {entry.property for entry in held.entries} - set(case.exceptions)
    verdicts = judged(rows, manifest.nodes, promised, case.resilience)
    assert not [v for v in verdicts.values() if v.validity is VIOLATED]


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case))
def test_the_corpus_gets_the_offline_verdicts(case: Case) -> None:
    manifest, rows = case.trace()
    agree_with_offline(manifest, rows)


def test_a_missing_row_is_noticed_and_casts_doubt() -> None:
    manifest, rows = mini.parse("p!a q?a p.a q.a p!b p.b")
    assert judged(rows, manifest.nodes)["T1"].validity is OK
    del rows[1]
    verdicts = judged(rows, manifest.nodes)
    assert verdicts["T1"].validity is VIOLATED
    assert verdicts["D1"].validity is INCONCLUSIVE


def test_a_circle_of_three_is_told_step_by_step() -> None:
    verdict = judged_text("p!a q!b r!c p.a p.b q.b q.c r.c r.a")["O5"]
    assert verdict.reason == (
        "p delivers p:0 before q:0, q delivers q:0 before r:0, r delivers r:0 before p:0"
    )
    assert [(row.proc, row.m_src) for row in verdict.witness] == [
        (0, 0),
        (0, 1),
        (1, 1),
        (1, 2),
        (2, 2),
        (2, 0),
    ]


# Random runs

FLAWS = (0.0, 0.02, 0.1, 0.3)
"""How often something is done wrong."""


class Author:
    """Writes a random run of a group of three: mostly what a good protocol would do."""

    def __init__(self, rng: random.Random, *, views: bool) -> None:
        self.rng = rng
        self.nodes = 3
        self.rows: list[Row] = []
        self.flaw = rng.choice(FLAWS)
        self.untrue = rng.random() < 0.15
        """Whether the trace itself may be wrong."""
        self.keyed = rng.random() < 0.7
        self.partial = rng.random() < 0.3
        self.longest = rng.choice((1, 1, 3))
        self.lseq: Counter[tuple[int, int]] = Counter()
        self.inc = [0] * self.nodes
        self.sent: Counter[tuple[int, int]] = Counter()
        self.view: list[tuple[int, int] | None] = [None] * self.nodes
        self.regular: list[tuple[int, int]] = [(0, 0)] * self.nodes
        self.order: dict[tuple[int, int], list[Row]] = {}
        """By regular view: what was sent in it, in the order all should deliver it."""
        self.reached: Counter[tuple[int, tuple[int, int]]] = Counter()
        self.down: set[int] = set()
        if views:
            for node in range(self.nodes):
                self.install(node, 1, REGULAR)
        actions = [self.send, self.deliver, self.deliver, self.deliver, self.receive, self.receive]
        actions += [self.claim, self.assign, self.token]
        rare = [self.crash, self.recover, self.withdraw] + [self.move] * (3 * views)
        for _ in range(rng.randint(5, 60)):
            rng.choice(actions if rng.random() < 0.9 else rare)()

    def wrong(self) -> bool:
        return self.rng.random() < self.flaw

    def write(self, kind: str, proc: int, **columns: Any) -> Row:
        writer = proc, self.inc[proc]
        view = self.view[proc]
        if view is not None:
            columns = {"c_seq": view[0], "c_rep": 0, "c_kind": view[1], **columns}
        row = Row(kind, proc, self.inc[proc], self.lseq[writer], gseq=len(self.rows), **columns)
        self.lseq[writer] += 1
        self.rows.append(row)
        return row

    def someone(self) -> int:
        up = [node for node in range(self.nodes) if node not in self.down or self.untrue]
        if not up:
            self.recover()
            return self.someone()
        return self.rng.choice(up)

    def install(self, node: int, seq: int, kind: int) -> None:
        members = tuple(range(self.nodes))
        if self.wrong():
            members = tuple(self.rng.sample(members, 2))
        self.view[node] = seq, kind
        self.write(Kind.INSTALL, node, members=members)
        if kind == REGULAR:
            self.regular[node] = (seq, 0)

    def move(self) -> None:
        node = self.someone()
        view = self.view[node] or (0, TRANSITIONAL)
        seq = max(view[0], self.regular[node][0]) + (0 if self.wrong() else 1)
        self.install(node, seq, REGULAR if view[1] == TRANSITIONAL else TRANSITIONAL)

    def crash(self) -> None:
        node = self.someone()
        if node not in self.down:
            self.write(Kind.CRASH, node)
            self.down.add(node)

    def recover(self) -> None:
        node = self.rng.choice(sorted(self.down) or [0])
        if node in self.down or self.untrue:
            self.inc[node] += 1
            self.view[node] = None
            self.down.discard(node)
            self.write(Kind.RECOVER, node)

    def send(self) -> None:
        node = self.someone()
        sender = node, self.inc[node]
        count = self.rng.randint(1, self.longest)
        dst = None
        if self.partial and self.rng.random() < 0.7:
            dst = tuple(sorted(self.rng.sample(range(self.nodes), 2)))
        first = self.sent[sender]
        if first and self.untrue and self.wrong():
            first -= 1
        row = self.write(
            Kind.ORIGINATE,
            node,
            m_src=node,
            m_inc=self.inc[node],
            m_seq=first,
            count=count,
            dst=dst,
            svc=self.rng.choice((Service.AGREED, Service.AGREED, Service.SAFE)),
            digest=self.rng.randint(0, 9),
        )
        self.sent[sender] = max(self.sent[sender], first + count)
        self.order.setdefault(self.regular[node], []).append(row)

    def any_sent(self) -> Row | None:
        sent = [row for rows in self.order.values() for row in rows]
        return self.rng.choice(sent) if sent else None

    def about(self, row: Row) -> dict[str, Any]:
        """Columns for a row about what was sent, or now and then about a part of it or more."""
        first, count = row.m_seq or 0, row.count
        if self.wrong():
            first += self.rng.randrange(count)
            count = self.rng.randint(1, (row.m_seq or 0) + count - first)
            if self.rng.random() < (0.3 if self.untrue else 0.02):
                count += 1
        return {"m_src": row.m_src, "m_inc": row.m_inc, "m_seq": first, "count": count}

    def receive(self) -> None:
        if (row := self.any_sent()) is not None:
            self.write(Kind.RECEIVE, self.someone(), **self.about(row))

    def deliver(self) -> None:
        node = self.someone()
        view = self.regular[node]
        order = self.order.get(view, [])
        place = self.reached[node, view]
        if self.wrong() and order:
            row = self.rng.choice(order) if self.rng.random() < 0.8 else self.any_sent()
        else:
            row = order[place] if place < len(order) else None
            self.reached[node, view] += row is not None
        if row is None or (row.dst is not None and node not in row.dst and not self.wrong()):
            return
        columns = self.about(row)
        if self.keyed and not self.wrong():
            number = place if row not in order else order.index(row)
            columns |= dict(zip(("k0", "k1", "k2", "k3"), (*view, number, 0), strict=True))
        if (columns["m_seq"], columns["count"]) == (row.m_seq, row.count):
            columns["digest"] = (row.digest or 0) + self.wrong()
        self.write(Kind.DELIVER, node, svc=row.svc, dst=row.dst, **columns)

    def claim(self) -> None:
        if (row := self.any_sent()) is not None and (self.wrong() or self.rng.random() < 0.2):
            level = self.rng.choice((1, 2, None))
            self.write(Kind.STABLE, self.someone(), level=level, **self.about(row))

    def assign(self) -> None:
        row = self.any_sent()
        if row is not None and self.rng.random() < 0.5:
            view = (row.c_seq or 0, 0)
            number = self.order.get(view, [row]).index(row) if row in self.order.get(view, []) else 9
            if self.wrong():
                number += 1
            columns = dict(zip(("k0", "k1", "k2", "k3"), (*view, number, 0), strict=True))
            assigner = row.proc if not self.wrong() else self.someone()
            if assigner not in self.down:
                self.write(Kind.ORDER, assigner, **self.about(row), **columns)

    def token(self) -> None:
        node = self.someone()
        if self.rng.random() < 0.2:
            self.write(Kind.TOKEN, node, tag="acquire")
            if not self.wrong():
                self.write(Kind.TOKEN, node, tag="release")

    def withdraw(self) -> None:
        row = self.any_sent()
        if row is None or row.proc in self.down or row.inc != self.inc[row.proc]:
            return
        node = row.proc
        columns = {"m_src": row.m_src, "m_inc": row.m_inc, "m_seq": row.m_seq, "count": row.count}
        self.write(Kind.WITHDRAW, node, **columns)
        if self.regular[node] != (row.c_seq or 0, 0) or self.untrue:
            again = self.write(
                Kind.ORIGINATE, node, **columns, dst=row.dst, svc=row.svc, digest=row.digest
            )
            self.order.setdefault(self.regular[node], []).append(again)


def random_run(seed: int, *, views: bool) -> tuple[Manifest, list[Row]]:
    author = Author(random.Random(seed), views=views)
    manifest = Manifest(
        run="random",
        nodes=("p", "q", "r"),
        resilience=1,
        mode="views" if views else "static",
    )
    return recounted(manifest, author.rows), author.rows


def agree_with_offline(manifest: Manifest, rows: list[Row]) -> dict[str, Verdict]:
    """Both checkers say the same, property by property; the offline verdicts.

    Where the trace is not well-formed the offline checker judges nothing else, while online a
    breach found before that stays one.
    """
    names = [name for name in COVERED if name != "S6" or manifest.resilience is not None]
    online = judged(rows, manifest.nodes, names, manifest.resilience)
    offline = {v.property: v for v in check(rows, manifest, profile=names).verdicts}
    told = mini.render(rows, manifest)
    well_formed = not any(offline[name].validity is VIOLATED for name in ("T1", "T2", "T3", "T4"))
    for name in names:
        if well_formed or name.startswith("T"):
            assert online[name].validity is offline[name].validity, (
                name,
                told,
                online[name],
                offline[name],
            )
        else:
            assert online[name].validity in (VIOLATED, INCONCLUSIVE)
    return offline


@pytest.mark.parametrize("views", [False, True], ids=["static", "views"])
def test_random_runs_get_the_offline_verdicts(views: bool) -> None:
    seen: Counter[tuple[str, Validity]] = Counter()
    for seed in range(1500):
        offline = agree_with_offline(*random_run(seed, views=views))
        seen.update((name, verdict.validity) for name, verdict in offline.items())
    static = {"T1", "M1", "M2", "M4", "D3"}  # Without views these cannot break.
    for name in COVERED:
        if name not in ({"T1"} if views else static):
            assert seen[name, VIOLATED] > 5, name
            assert seen[name, OK] > 5, name
