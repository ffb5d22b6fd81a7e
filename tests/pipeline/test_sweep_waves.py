"""Cells into tasks and waves."""

from roundelay.pipeline.sweep.waves import TASK_S, WAVE_S, Waves
from roundelay.pipeline.sweep.work import Job, Row


def jobs(*costs: float) -> list[Job]:
    return [Job(f"{i:04}", "load", {}, 0, cost) for i, cost in enumerate(costs)]


def learned(waves: Waves, seconds_per_cost: float) -> Waves:
    waves.learn(jobs(1.0), [Row("", {}, "", seconds_per_cost)])
    return waves


def all_of(waves: Waves) -> list[list[list[str]]]:
    taken = []
    while waves:
        taken.append([[job.name for job in task] for task in waves.pop().tasks])
    return taken


def test_dear_cells_come_first():
    waves = Waves(jobs(1, 5, 3), cores=1)
    assert all_of(waves) == [[["0001"]], [["0002"]], [["0000"]]]


def test_before_anything_is_known_a_wave_is_a_cell_for_each_core():
    waves = Waves(jobs(*[0.001] * 5), cores=2)
    assert [len(wave) for wave in all_of(waves)] == [2, 2, 1]


def test_cheap_cells_share_a_task_and_dear_ones_have_their_own():
    waves = learned(Waves(jobs(3, *[0.3] * 10), cores=2), 1.0)
    wave = waves.pop()
    assert [len(task) for task in wave.tasks] == [1, 3, 3, 3, 1]
    assert all(sum(job.cost for job in task) <= TASK_S for task in wave.tasks[1:])
    assert not waves


def test_a_wave_is_long_and_no_longer():
    waves = learned(Waves(jobs(*[1.0] * 200), cores=2), 1.0)
    assert sum(job.cost for job in waves.pop().jobs) == 2 * WAVE_S
    assert waves


def test_what_was_learned_last_counts():
    """Cells get cheaper as they go; what the dear ones took says little of them."""
    waves = learned(learned(Waves(jobs(*[1.0] * 1000), cores=1), 1.0), 0.125)
    assert len(waves.pop().jobs) == 8 * WAVE_S


def test_no_cell_is_lost_or_run_twice():
    waves = learned(Waves(jobs(*(i % 17 / 10 for i in range(500))), cores=3), 0.9)
    names = [name for wave in all_of(waves) for task in wave for name in task]
    assert sorted(names) == [f"{i:04}" for i in range(500)]


def test_a_wave_that_failed_comes_back_in_halves_cell_by_cell():
    waves = learned(Waves(jobs(*[0.1] * 5), cores=1), 1.0)
    wave = waves.pop()
    assert [len(task) for task in wave.tasks] == [5]
    waves.halve(wave)
    first, second = waves.pop(), waves.pop()
    assert [len(task) for task in (*first.tasks, *second.tasks)] == [1] * 5
    assert [job.name for job in first.jobs + second.jobs] == [job.name for job in wave.jobs]
    assert (wave.number, first.number, second.number) == (0, 1, 2)
    assert not waves
