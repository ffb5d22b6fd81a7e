"""What `roundelay bench sweep` runs."""

import pytest

from roundelay.cli import main
from roundelay.experiments import catalogue


def test_the_cells_are_as_many_as_asked_for_and_very_different():
    sweep = pytest.importorskip("roundelay.bench.sweep")
    tasks = sweep.uneven(200).tasks()
    costs = sorted(catalogue.cost(task.cell) for task in tasks)
    assert len(tasks) == 200
    assert costs[-1] / costs[0] > 50
    assert sweep.uneven(200).tasks() == tasks


def test_wrong_use_is_a_sentence(capsys):
    assert main(["bench", "sweep", "--cells", "0"]) == 2
    assert "must be at least 1" in capsys.readouterr().err
