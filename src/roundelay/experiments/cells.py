"""Many independent runs, over several processes."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

from roundelay.experiments.results import Measures, Result, cost
from roundelay.sim.pool import workers

Report = Callable[[int, int], None]
"""Hears how much is done, and of how much."""

T = TypeVar("T")
R = TypeVar("R")


def _alike(task: object) -> float:
    return 1.0


def spread(
    function: Callable[[T], R],
    tasks: Sequence[T],
    *,
    jobs: int,
    report: Report,
    cost: Callable[[T], float] = _alike,
) -> list[R]:
    """What `function` makes of each task, in the order of the tasks, whatever the order of doing.

    With more than one job, function, tasks and results travel between processes. Costly tasks begin
    first, so that none is left over at the end; `report` hears of costs.
    """
    costs = [cost(task) for task in tasks]
    order = sorted(range(len(tasks)), key=lambda i: -costs[i])
    total, done = sum(costs), 0.0
    results: dict[int, R] = {}
    for i, result in _results(partial(_numbered, function), [(i, tasks[i]) for i in order], jobs):
        results[i] = result
        done += costs[i]
        report(round(done), round(total))
    return [results[i] for i in range(len(tasks))]


def run_cells(
    run: Callable[[Any, int], Measures],
    tasks: Sequence[tuple[Any, int]],
    *,
    jobs: int,
    report: Report,
) -> list[Result]:
    """What comes of cells, each with a seed; `run` is that of their experiment."""
    return spread(partial(_result, run), tasks, jobs=jobs, report=report, cost=_cost)


def _result(run: Callable[[Any, int], Measures], task: tuple[Any, int]) -> Result:
    return Result(*task, run(*task))


def _cost(task: tuple[Any, int]) -> float:
    return cost(task[0])


def _results(
    function: Callable[[tuple[int, T]], tuple[int, R]], tasks: Sequence[tuple[int, T]], jobs: int
) -> Iterator[tuple[int, R]]:
    if jobs <= 1 or len(tasks) <= 1:
        yield from map(function, tasks)
        return
    with workers(min(jobs, len(tasks))) as pool:
        yield from pool.imap_unordered(function, tasks)


def _numbered(function: Callable[[T], R], task: tuple[int, T]) -> tuple[int, R]:
    i, argument = task
    return i, function(argument)
