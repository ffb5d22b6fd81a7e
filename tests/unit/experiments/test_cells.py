"""Runs over several processes."""

import math

import pytest

from roundelay.experiments.cells import spread


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
