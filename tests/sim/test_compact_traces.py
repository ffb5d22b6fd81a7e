"""The recorder of real nodes writes what that of the simulator writes, row by row: whole runs, with
faults, are recorded by both."""

from collections import defaultdict
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from roundelay.core.effects import Kind
from roundelay.core.ids import NodeId
from roundelay.sim import world
from roundelay.sim.swarm import run
from roundelay.trace.compact_recorder import CompactRecorder
from roundelay.trace.recorder import Recorder
from roundelay.trace.schema import Row

BATCH_ROWS = 50
CALLS = (
    *("arrive", "forget_frame", "forget_cause", "expire", "send", "drop", "refuse", "deliver"),
    *("record", "install", "suspect", "crash", "snapshot", "invoke", "reply"),
)
"""What drivers call of a recorder."""


class Ticks:
    """The clock of the simulator, for whoever reads it often."""

    def __init__(self, clock: Any) -> None:
        self._clock = clock

    @property
    def now(self) -> int:
        return int(self._clock.now)

    def read(self) -> int:
        return int(self._clock.now)


class Twin(Recorder):
    """A recorder that has a compact one do the same."""

    kept: ClassVar[defaultdict[tuple[int, int], list[Row]]]
    """The rows of the compact ones, by writer."""
    also: Callable[[Row], None] | None

    def __init__(
        self, append: Any, numbers: Any, node: NodeId, incarnation: int, clock: Any, gseq: Any,
        **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(append, numbers, node, incarnation, clock, gseq, **options)
        options.pop("tokens", None)
        kept = self.kept[numbers[node], incarnation]

        def full() -> None:
            kept.extend(compact.take().rows())

        self.compact = compact = CompactRecorder(
            full, BATCH_ROWS, numbers, node, incarnation, Ticks(clock), also=self.also, **options
        )

    def __getattribute__(self, name: str) -> Any:
        mine = super().__getattribute__(name)
        if name not in CALLS:
            return mine

        def both(*args: Any, **options: Any) -> Any:
            self.compact.lamport = self.lamport
            getattr(self.compact, name)(*args, **options)
            return mine(*args, **options)

        return both


@pytest.fixture(params=[False, True], ids=["alone", "watched"])
def twins(request, monkeypatch):
    """The compact recorders of a run; those that are watched have another way."""
    made: list[Twin] = []
    seen: list[Row] = []

    class Listed(Twin):
        kept: ClassVar[defaultdict[tuple[int, int], list[Row]]] = defaultdict(list)
        also = seen.append if request.param else None

        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            made.append(self)

    monkeypatch.setattr(world, "Recorder", Listed)
    return Listed, made, seen


@pytest.mark.parametrize(
    ("engine", "log", "seed"),
    [
        *(("totem", False, seed) for seed in (0, 2, 3)),
        ("totem", True, 0),
        ("atop", False, 1),
        ("st", False, 2),
        ("fc", False, 3),
        ("pinwheel", False, 4),
    ],
)
def test_both_write_the_same_rows(twins, engine: str, log: bool, seed: int) -> None:
    kind, made, seen = twins
    outcome = run(seed, engine, log=log)
    for twin in made:
        kind.kept[twin._proc, twin._inc].extend(twin.compact.take().rows())
    expected = defaultdict(list)
    for row in outcome.runner.rows:
        expected[row.proc, row.inc].append(row._replace(gseq=None))
    expected.pop((-1, 0), None)  # The world, which has no node.
    found = {writer: rows for writer, rows in kind.kept.items() if rows and writer[0] >= 0}
    assert found == dict(expected)
    kinds = {row.kind for rows in found.values() for row in rows}
    assert kinds >= {Kind.ORIGINATE, Kind.RECEIVE, Kind.DELIVER, Kind.INSTALL, Kind.SUBMIT}
    if kind.also is not None:
        whole = defaultdict(list)
        for row in seen:
            whole[row.proc, row.inc].append(row)
        whole.pop((-1, 0), None)
        assert whole == found
