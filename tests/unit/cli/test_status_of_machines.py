"""How `roundelay status` and its metrics show replicated machines."""

from roundelay.cli.status import _machine
from roundelay.runtime.metrics import _machines


def test_a_machine_is_one_line_with_its_sizes_and_holders():
    told = {"kind": "Lock", "holders": ["a", "b"], "waiting": 1234, "watchers": 0, "versions": {}}
    assert _machine("door", told) == ["machine    door, Lock: holders a b, waiting 1,234"]
    told |= {"holders": [], "watchers": 2}
    assert _machine("", told) == ["machine    Lock: holders none, waiting 1,234, 2 watch it here"]


def test_versions_are_shown_if_they_differ():
    told = {"kind": "Counter", "value": 3, "watchers": 0, "versions": {"a": 2, "b": 2}}
    assert len(_machine("", told)) == 1
    told["versions"] = {"a": 2, "b": 1}
    assert _machine("", told)[1].endswith("its versions differ: a 2, b 1; upgrade the older ones")


def test_metrics_have_numbers_and_the_lengths_of_lists():
    found: dict[str, list[tuple[str, object]]] = {}

    def metric(name: str, kind: str, about: str, samples: list[tuple[str, object]]) -> None:
        found[name] = samples

    queue = {"kind": "Queue", "in work": 2, "takers": ["a"], "note": "x", "bad-name": 1}
    _machines({'q"1': queue, "": {"kind": "Map", "size": 3}}, metric, 'node="a"')
    assert found == {
        "machine_in_work": [('{node="a",machine="q\\"1",kind="Queue"}', 2)],
        "machine_takers": [('{node="a",machine="q\\"1",kind="Queue"}', 1)],
        "machine_size": [('{node="a",machine="",kind="Map"}', 3)],
    }
