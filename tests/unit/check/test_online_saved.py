"""An online checker that is saved and loaded between any two rows says what it would have said."""

import json
import random

import pytest

from roundelay.check import Verdict
from roundelay.check.online import OnlineChecker
from roundelay.trace.schema import Row

from .online_runs import agreed_run, random_run
from .trial import Case, corpus

CASES = list(corpus())


def plain(verdicts: list[Verdict]) -> list[tuple[object, ...]]:
    return [(v.property, v.validity, v.instances, v.witness, v.reason) for v in verdicts]


class Saving:
    """Two checkers of one run: one that goes on, and one that is saved and loaded again."""

    def __init__(self, nodes: int | tuple[str, ...], resilience: int | None, window: int) -> None:
        self._made = (nodes, None, resilience, window)
        self.told: tuple[list[Verdict], list[Verdict]] = ([], [])
        self.steady = self.fresh(0)
        self.moving = self.fresh(1)

    def fresh(self, place: int) -> OnlineChecker:
        return OnlineChecker(*self._made, on_breach=self.told[place].append, breaches_max=3)

    def append(self, row: Row) -> None:
        self.steady.append(row)
        self.moving.append(row)

    def move(self) -> None:
        saved = json.loads(json.dumps(self.moving.save()))
        self.moving = self.fresh(1)
        self.moving.load(saved)

    def check(self) -> None:
        assert plain(self.moving.verdicts()) == plain(self.steady.verdicts())
        assert plain(self.moving.violations) == plain(self.steady.violations)
        assert self.moving.breaches == self.steady.breaches
        assert plain(self.told[0]) == plain(self.told[1])


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case))
def test_the_corpus_with_a_cut_at_every_row(case: Case) -> None:
    manifest, rows = case.trace()
    saving = Saving(manifest.nodes, manifest.resilience, 10_000)
    for row in rows:
        saving.append(row)
        saving.move()
    saving.check()


@pytest.mark.parametrize("views", [True, False])
@pytest.mark.parametrize("window", [3, 10_000])
def test_random_runs_with_cuts_anywhere(views: bool, window: int) -> None:
    for seed in range(150):
        _, rows = random_run(seed, views=views)
        rng = random.Random(seed)
        saving = Saving(("p", "q", "r"), 1, window)
        for row in rows:
            saving.append(row)
            if rng.random() < 0.2:
                saving.move()
        saving.check()


def test_what_is_saved_of_a_long_run_stays_small() -> None:
    saving = Saving(3, None, 50)
    sizes = []
    for number, row in enumerate(agreed_run(3_000, (0, 2, 5))):
        saving.append(row)
        if number % 3_000 == 2_999:
            saving.move()
            sizes.append(len(json.dumps(saving.moving.save())))
    saving.check()
    assert sizes[-1] < sizes[1] * 1.1


def test_every_object_is_made_once_however_many_lead_to_it() -> None:
    checker = OnlineChecker(3)
    for row in agreed_run(50, (0, 1, 2)):
        checker.append(row)
    once = checker.save()
    other = OnlineChecker(3)
    other.load(once)
    assert other.save() == once


def test_what_is_no_state_of_such_a_checker_is_refused() -> None:
    saved = OnlineChecker(3).save()
    with pytest.raises(ValueError, match="by another version"):
        OnlineChecker(3).load(("0", *saved[1:]))
    with pytest.raises(ValueError, match="made in another way"):
        OnlineChecker(3).load((saved[0], (), ()))
