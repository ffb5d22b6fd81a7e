"""What `roundelay bench sweep` runs."""

import pytest

from roundelay.cli import main
from roundelay.experiments.results import cost


def test_the_cells_are_as_many_as_asked_for_and_very_different():
    sweep = pytest.importorskip("roundelay.bench.sweep")
    planned = sweep.uneven(200).runs()
    costs = sorted(cost(one.cell) for one in planned)
    assert len(planned) == 200
    assert costs[-1] / costs[0] > 50
    assert sweep.uneven(200).runs() == planned


def test_wrong_use_is_a_sentence(capsys):
    assert main(["bench", "sweep", "--cells", "0"]) == 2
    assert "must be at least 1" in capsys.readouterr().err
