"""Cells into tasks, and tasks into waves.

A task is what Spark gives to a core at a time: one or more cells. A wave is written to disk when
all of its tasks are done, so a wave that is under way is lost when a sweep is killed. How long a
cell takes is known once some have been run: until then a wave has one cell for each core.

Costly cells come first, so that none begins when all others are over. Two waves are under way at a
time: cores that have nothing left to do in the first go on with the second.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from roundelay.pipeline.sweep.work import Job, Row

AT_ONCE = 2
"""Waves under way at a time. With one, cores would idle at the end of each wave; with more, more
work is lost when a sweep is killed."""
TASK_S = 1.0
"""How long a task takes at least, in seconds, if there are enough cells. In shorter tasks Spark
spends its time on starting them."""
WAVE_S = 20.0
"""How long a wave takes, in seconds: this much work is lost, on every core, when a sweep is killed.
Shorter waves make more files."""


@dataclass(frozen=True, slots=True)
class Wave:
    """Tasks that are run and written down together."""

    number: int
    tasks: tuple[tuple[Job, ...], ...]

    @property
    def jobs(self) -> list[Job]:
        return [job for task in self.tasks for job in task]

    @property
    def cost(self) -> float:
        return sum(job.cost for job in self.jobs)


class Waves:
    """What is left to be done."""

    def __init__(self, jobs: Iterable[Job], cores: int, first: int = 0) -> None:
        """`first` is the number of the first wave."""
        # Of equal cost: by name, so that neighbours in the plan are not all in one task.
        self._left = deque(sorted(jobs, key=lambda job: (-job.cost, job.name)))
        self._apart: deque[tuple[Job, ...]] = deque()
        self._cores = cores
        self._number = first
        self._pace: float | None = None

    def __bool__(self) -> bool:
        return bool(self._left or self._apart)

    def pop(self) -> Wave:
        """Remove the next wave from what is left, and return it."""
        number, self._number = self._number, self._number + 1
        if self._apart:
            return Wave(number, tuple((job,) for job in self._apart.popleft()))
        tasks: list[tuple[Job, ...]] = []
        seconds = 0.0
        while self._left and not self._full(len(tasks), seconds):
            task, took = self._task()
            tasks.append(task)
            seconds += took
        return Wave(number, tuple(tasks))

    def learn(self, jobs: Sequence[Job], rows: Sequence[Row]) -> None:
        """How long a wave took: the next cells cost about as much as the last ones."""
        cost = sum(job.cost for job in jobs)
        if cost:
            self._pace = sum(row.seconds for row in rows) / cost

    def halve(self, wave: Wave) -> None:
        """Put back a wave that failed as a whole, as two: one cell of it may be to blame."""
        jobs = wave.jobs
        middle = len(jobs) // 2
        self._apart.extend(tuple(part) for part in (jobs[:middle], jobs[middle:]) if part)

    def _full(self, tasks: int, seconds: float) -> bool:
        if self._pace is None:
            return tasks >= self._cores
        return tasks >= self._cores and seconds >= WAVE_S * self._cores

    def _task(self) -> tuple[tuple[Job, ...], float]:
        jobs = [self._left.popleft()]
        seconds = jobs[0].cost * (self._pace or 0.0)
        while self._pace is not None and self._left:
            more = self._left[0].cost * self._pace
            if seconds + more > TASK_S:
                break
            jobs.append(self._left.popleft())
            seconds += more
        return tuple(jobs), seconds
