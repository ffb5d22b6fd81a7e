"""The online checker: it says what brute force and the offline checker say, in bounded memory."""

import itertools
import random
import re
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
from roundelay.group.static import StaticStack
from roundelay.protocols import template
from roundelay.sim.faults import Choices
from roundelay.sim.network import Bus, Lan, Network
from roundelay.sim.world import World
from roundelay.trace import mini
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import REGULAR, WORLD, Row

from .online_runs import Columns, agreed_run, brute_force, cyclic, deliveries, random_run
from .trial import Case, corpus

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


LATER = {"D1", "T4", "S1", "S1d", "S4"}
"""The batch checker goes on to say what came later: the online checker cannot know that."""


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.head[0] in COVERED], ids=lambda case: str(case)
)
def test_both_checkers_tell_of_a_breach_in_the_same_words(case: Case) -> None:
    name = case.head[0]
    manifest, rows = case.trace()
    manifest = replace(manifest, config={})  # Messages without names of their own.
    names = [name] if name.startswith("T") else ["T1", "T2", "T3", "T4", name]
    batch = check(rows, manifest, profile=names)[name]
    online = judged(rows, manifest.nodes, [name], manifest.resilience)[name]
    assert batch.validity is VIOLATED
    if name in LATER:
        told = re.split(r", (?!which all)| before", batch.reason)[0]
        assert online.reason.startswith(told)
    else:
        assert online.reason == batch.reason
    assert set(online.witness) <= set(rows)
    if name in ("D2", "D3", "O1", "O3f", "O3i", "O4", "O6", "K1", "K3", "M2", "M4"):
        assert len(online.witness) == 2  # Both that contradict each other.


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
    for seed in range(600):
        offline = agree_with_offline(*random_run(seed, views=views))
        seen.update((name, verdict.validity) for name, verdict in offline.items())
    static = {"T1", "M1", "M2", "M4", "M10", "D3"}  # Without views these cannot break.
    for name in COVERED:
        # M10 has random runs of its own, in test_primacy.
        if name not in ({"T1", "M10"} if views else static):
            assert seen[name, VIOLATED] > 1, name
            assert seen[name, OK] > 5, name


LIMITS = (
    "online.window.ARCHIVE_RANGES_MAX",
    "online.window.INCARNATIONS_MAX",
    "online.views.CONTENTS_MAX",
    "primary.VIEWS_MAX",
)


@pytest.mark.parametrize("window", [1, 3])
@pytest.mark.parametrize("forgetful", [False, True], ids=["archive", "no-archive"])
def test_a_small_window_makes_no_verdict_wrong(
    monkeypatch: pytest.MonkeyPatch, window: int, forgetful: bool
) -> None:
    """It may cost certainty, never truth: the verdict is the right one, or inconclusive."""
    if forgetful:
        for name in LIMITS:
            monkeypatch.setattr(f"roundelay.check.{name}", 1)
        monkeypatch.setattr("roundelay.check.online.views.ABANDONED_MAX", 0)
        monkeypatch.setattr("roundelay.check.online.keys.RINGS_MAX", 1)
    unsure = 0
    for seed, views in itertools.product(range(100), (False, True)):
        manifest, rows = random_run(seed, views=views)
        right = {v.property: v for v in check(rows, manifest, profile=list(COVERED)).verdicts}
        if any(right[name].validity is VIOLATED for name in ("T1", "T2", "T3", "T4")):
            continue
        for name, verdict in judged(rows, 3, COVERED, 1, window).items():
            told = name, mini.render(rows, manifest), verdict, right[name]
            assert verdict.validity in (right[name].validity, INCONCLUSIVE), told
            unsure += verdict.validity is INCONCLUSIVE
    assert unsure > 30


# Brute force


@pytest.mark.parametrize("views", [False, True], ids=["static", "views"])
def test_random_runs_get_the_verdicts_of_brute_force(views: bool) -> None:
    names = ["D1", "D2", "D3", "D9", "O1", "O3f", "O3i", "O4", "O5", "O6"]
    names += [] if views else ["S6"]
    seen: Counter[str] = Counter()
    for seed in range(10_000, 10_600):
        manifest, rows = random_run(seed, views=views)
        broken = brute_force(rows, resilience=1)
        verdicts = judged(rows, 3, names, 1)
        skipped = {"D3"} if any(row.kind == Kind.WITHDRAW for row in rows) else set()
        found = {v.property for v in verdicts.values() if v.validity is VIOLATED}
        assert found - skipped == broken - skipped, mini.render(rows, manifest)
        seen.update(broken)
    assert all(seen[name] > 2 for name in names if views or name != "D3"), seen


def test_circles_are_found_whatever_the_keys_and_the_window() -> None:
    """Subsets of one order, some with a slip: no circle is missed, and none is invented."""
    rng = random.Random(5)
    seen: Counter[Validity] = Counter()
    for _ in range(800):
        order = rng.sample(range(9), 9)
        lines = [[i for i in order if rng.random() < 0.6] for _ in range(4)]
        for line in lines:
            if rng.random() < 0.2 and len(line) > 1:
                at = rng.randrange(len(line) - 1)
                line[at], line[at + 1] = line[at + 1], line[at]
        keys = rng.choice([None, [order.index(i) for i in range(9)], rng.sample(range(99), 9)])
        rows = deliveries(lines, keys, rng)
        right = VIOLATED if cyclic(lines) else OK
        verdict = judged(rows, 4, ["O5"])["O5"].validity
        assert verdict is right or (verdict is VACUOUS and right is OK)
        for window in (2, 5):
            short = judged(rows, 4, ["O5"], window=window)["O5"].validity
            assert short in (verdict, INCONCLUSIVE)
        seen[right] += 1
    assert seen[VIOLATED] > 100
    assert seen[OK] > 100


# Ranges


def span(kind: str, proc: int, lseq: int, gseq: int, first: int, count: int, **more: Any) -> Row:
    more |= {"m_src": 0, "m_inc": 0, "m_seq": first, "count": count}
    return Row(kind, proc, 0, lseq, gseq=gseq, **more)


def test_a_row_of_many_messages_is_one_entry() -> None:
    checker = OnlineChecker(2, window=3)
    lseq = [0, 0]
    for packet in range(3):
        for kind, proc in ((Kind.ORIGINATE, 0), (Kind.RECEIVE, 1), (Kind.DELIVER, 0)):
            checker.append(span(kind, proc, lseq[proc], 9 * packet, 1000 * packet, 1000))
            lseq[proc] += 1
    for packet in range(3):  # All three packets are still in a window of three.
        checker.append(span(Kind.DELIVER, 1, lseq[1], 99, 1000 * packet, 1000))
        lseq[1] += 1
    verdicts = {verdict.property: verdict for verdict in checker.verdicts()}
    assert verdicts["O6"].validity is OK
    assert verdicts["D2"].instances == 6000


@pytest.mark.parametrize(
    ("name", "second", "expected"),
    [
        ("D2", [(0, 2), (2, 1), (1, 1)], VIOLATED),
        ("D2", [(0, 2), (2, 1)], OK),
        ("O1", [(2, 1), (0, 2)], VIOLATED),
        ("O5", [(1, 2), (0, 1)], VIOLATED),
        ("O5", [(0, 1), (2, 1)], OK),
        ("O6", [(0, 1), (2, 1)], VIOLATED),
        ("O6", [(0, 1), (1, 2)], OK),
    ],
)
def test_rows_that_cut_messages_differently_are_compared_one_by_one(
    name: str, second: list[tuple[int, int]], expected: Validity
) -> None:
    rows = [span(Kind.ORIGINATE, 0, 0, 0, 0, 3), span(Kind.DELIVER, 0, 1, 1, 0, 3)]
    for lseq, (first, count) in enumerate(second):
        rows.append(span(Kind.DELIVER, 1, lseq, 2 + lseq, first, count))
    verdict = judged(rows, 2, [name])[name]
    assert verdict.validity is expected


# The window


PLACED = {"D3", "D11", "O3f", "O3i", "O5", "O6"}
"""What cannot be judged of a message that has left the window."""


def test_a_process_that_lags_less_than_the_window_costs_nothing() -> None:
    verdicts = judged(agreed_run(600, (0, 1, 90)), 3, window=100)
    assert not {name for name, v in verdicts.items() if v.validity not in (OK, VACUOUS)}


def test_a_process_that_comes_back_too_late_makes_verdicts_inconclusive() -> None:
    verdicts = judged(agreed_run(600, (0, 1, 250)), 3, resilience=1, window=100)
    unsure = {name: v.reason for name, v in verdicts.items() if v.validity is INCONCLUSIVE}
    assert unsure.keys() == PLACED
    assert all("forgotten" in reason for reason in unsure.values())
    for name in ("D1", "D2", "O1", "O4", "S6"):
        assert verdicts[name].validity is OK, name


def test_a_process_that_never_comes_back_leaves_verdicts_certain() -> None:
    """Whatever left the window, nobody ever asked for it: nothing can have been missed."""
    rows = [row for row in agreed_run(600, (0, 1, 400)) if (row.kind, row.proc) != ("deliver", 2)]
    rows = [row._replace(lseq=i) for i, row in enumerate(rows)]
    verdicts = judged(rows, 3, PLACED | {"D2"}, window=100)
    assert {v.validity for v in verdicts.values()} == {OK}


def test_a_breach_after_the_window_overflowed_is_still_one() -> None:
    rows = list(agreed_run(600, (0, 1, 250)))
    number = next(i for i in reversed(range(len(rows))) if rows[i].kind == Kind.DELIVER)
    late = rows[number]
    rows.append(late._replace(lseq=late.lseq + 1, gseq=len(rows)))
    verdicts = judged(rows, 3, window=100)
    assert verdicts["D2"].validity is VIOLATED
    assert verdicts["O5"].validity is INCONCLUSIVE


def test_a_repetition_is_known_however_old_the_message_is() -> None:
    rows = list(agreed_run(2000, (0, 1, 2)))
    old = next(row for row in rows if row.kind == Kind.DELIVER and row.proc == 1)
    rows.append(old._replace(lseq=1 + max(r.lseq for r in rows if r.proc == 1), gseq=len(rows)))
    verdicts = judged(rows, 3, window=50)
    assert verdicts["D2"].validity is VIOLATED
    assert verdicts["O6"].validity is OK


def test_memory_does_not_grow_with_the_run() -> None:
    """Two stretches of a run need the same, once the window is full."""
    checker = OnlineChecker(3, window=100)
    used: list[int] = []
    tracemalloc.start()
    try:
        for at, row in enumerate(agreed_run(3000, (0, 1, 2))):
            checker.append(row)
            if at in (9_000, 17_000):
                used.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert not checker.violations
    assert used[1] < used[0] * 1.05


def test_memory_does_not_grow_with_the_number_of_views_and_lives(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("roundelay.check.online.views.CONTENTS_MAX", 100)
    monkeypatch.setattr("roundelay.check.online.keys.RINGS_MAX", 100)

    def life(number: int) -> Iterator[Row]:
        lseq = itertools.count()
        for proc in (0, 1):
            mine = 0
            if number:
                yield Row(Kind.RECOVER, proc, number, mine, gseq=next(lseq))
                mine += 1
            view: Columns = {"c_seq": number, "c_rep": 0, "c_kind": REGULAR, "members": (0, 1)}
            yield Row(Kind.INSTALL, proc, number, mine, gseq=next(lseq), **view)
            mine += 1
            for m in range(10 if proc == 0 else 0):
                message: Columns = {"m_src": 0, "m_inc": number, "m_seq": m}
                keyed: Columns = {**message, "k0": number, "k1": 0, "k2": m, "k3": 0}
                yield Row(Kind.ORIGINATE, 0, number, mine, gseq=next(lseq), **message)
                yield Row(Kind.DELIVER, 0, number, mine + 1, gseq=next(lseq), **keyed)
                mine += 2
            yield Row(Kind.CRASH, proc, number, mine, gseq=next(lseq))

    checker = OnlineChecker(2, window=100)
    used: list[int] = []
    tracemalloc.start()
    try:
        for number in range(700):
            for row in life(number):
                checker.append(row)
            if number in (200, 699):
                used.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert not checker.violations
    assert used[1] < used[0] * 1.05


# As a sink


def test_strict_stops_at_the_row_that_breaks_a_property() -> None:
    manifest, rows = mini.parse("p!a q!b p.a p.b q.b q.a p!c p.c")
    checker = OnlineChecker(manifest.nodes, ["O5", "D2"], strict=True)
    for row in rows[:5]:
        checker.append(row)
    with pytest.raises(ViolationError, match=r"O5 is violated: .*q:0 before p:0") as caught:
        checker.append(rows[5])
    assert caught.value.verdict.property == "O5"
    assert caught.value.verdict == checker.violations[0]


def test_only_what_was_asked_for_is_judged() -> None:
    verdicts = judged_text("p!a q!b p.a p.b q.b q.a", "O1", "D7", "L1")
    assert list(verdicts) == ["O1"]
    assert verdicts["O1"].validity is VACUOUS


def test_f_resilience_needs_its_f() -> None:
    assert "S6" not in judged_text("p!a p.a")
    assert judged_text("p!a p.a", "S6")["S6"].validity is INCONCLUSIVE
    assert judged_text("p!a p.a q?a", "S6", resilience=0)["S6"].validity is OK


def test_rows_of_a_layer_below_are_not_told_twice() -> None:
    manifest, rows = mini.parse("p!a q?a p.a q.a")
    below = [row._replace(layer="vs") for row in rows]
    both = [row for pair in zip(below, rows, strict=True) for row in pair]
    names = [name for name in COVERED if not name.startswith("T")]
    assert judged(both, manifest.nodes, names) == judged(rows, manifest.nodes, names)


def test_a_node_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(ValueError, match="node number 5, but there are 2 nodes"):
        OnlineChecker(2).append(Row(Kind.DELIVER, 5, 0, 0, gseq=0, m_src=0, m_inc=0, m_seq=0))
    with pytest.raises(ValueError, match="remembers nothing"):
        OnlineChecker(2, window=0)


def simulate(network: Network, senders: str, seed: int = 1) -> OnlineChecker:
    names = ("a", "b", "c")

    def core(boot: Boot) -> Core[Any]:
        return StaticStack(boot, names, template.TemplateEngine)

    checker = OnlineChecker(names)
    world = World(names, core, network, checker.append, choices=Choices(seed))
    world.start()
    for number in range(60):
        for sender in senders:
            world.submit(sender, f"{sender}{number}".encode())
        world.run(50_000)
    world.run(1_000_000_000)
    world.end()
    return checker


def test_the_simulator_with_one_sender_breaks_nothing() -> None:
    checker = simulate(Bus(), "a")
    assert not checker.violations
    verdicts = {verdict.property: verdict for verdict in checker.verdicts()}
    for name in ("T1", "T3", "T4", "D1", "D2", "D3", "D11", "O1", "O5", "O6"):
        assert verdicts[name].validity is OK, name


def test_the_simulator_with_two_senders_and_jitter_is_caught() -> None:
    checker = simulate(Lan(jitter_ns=400_000), "ab")
    broken = {verdict.property for verdict in checker.violations}
    assert {"O5", "O6"} <= broken
    assert not broken & {"D1", "D2", "D3", "D11", "T1", "T2", "T3", "T4"}
    (circle,) = (verdict for verdict in checker.violations if verdict.property == "O5")
    assert len(circle.witness) >= 4
    assert {row.kind for row in circle.witness} == {Kind.DELIVER}


def test_rows_of_the_world_are_taken_too() -> None:
    rows = [Row(Kind.FAULT, WORLD, 0, 0, gseq=0, tag="cut"), Row(Kind.END, WORLD, 0, 1, gseq=1)]
    assert judged(rows, 2, ["T1"])["T1"].validity is OK
    assert judged([rows[1]], 2, ["T1"])["T1"].validity is VIOLATED
