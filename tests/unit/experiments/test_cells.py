"""Runs over several processes."""

import math
from typing import NamedTuple

import pytest

from roundelay.experiments.cells import run_cells, spread
from roundelay.experiments.results import Result


@pytest.mark.parametrize("jobs", [1, 2])
def test_results_are_in_the_order_of_the_tasks(jobs):
    heard: list[tuple[int, int]] = []
    tasks = [3, 5, 2]

    def report(done: int, total: int) -> None:
        heard.append((done, total))

    results = spread(math.factorial, tasks, jobs=jobs, report=report, cost=float)
    assert results == [6, 120, 2]
    assert [total for _, total in heard] == [10, 10, 10]
    assert heard[-1] == (10, 10)


def test_costly_tasks_begin_first():
    begun: list[int] = []

    def work(task: int) -> None:
        begun.append(task)

    spread(work, [3, 5, 2], jobs=1, report=lambda done, total: None, cost=float)
    assert begun == [5, 3, 2]


def test_nothing_to_do_is_nothing():
    assert spread(math.factorial, [], jobs=2, report=lambda done, total: None) == []


class Cell(NamedTuple):
    cost: float


def test_cells_are_run_with_their_seeds_and_the_costly_ones_first():
    begun: list[tuple[Cell, int]] = []

    def run(cell: Cell, seed: int) -> dict[str, float]:
        begun.append((cell, seed))
        return {"product": cell.cost * seed}

    small, large = Cell(1.0), Cell(9.0)
    tasks = [(small, 2), (large, 3)]
    results = run_cells(run, tasks, jobs=1, report=lambda done, total: None)
    assert results == [Result(small, 2, {"product": 2.0}), Result(large, 3, {"product": 27.0})]
    assert begun == [(large, 3), (small, 2)]
