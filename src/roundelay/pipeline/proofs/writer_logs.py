"""How many rows each life of a node wrote, and how they are numbered, from the facts of a run."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from roundelay.pipeline.proofs.views import Fact


@dataclass(frozen=True, slots=True)
class Log:
    """What one life of a node wrote."""

    proc: int
    inc: int
    rows: int
    missing: int
    first_missing: int
    repeated: int
    ordered: bool
    """Whether all rows have a place in the total order, and no two change places there."""
    unplaced: int
    """Rows without a place in the total order."""
    message_rows: int
    last_place: int = -1
    """The greatest place of a row in the total order."""

    @property
    def whole(self) -> bool:
        return not (self.missing or self.repeated)


def read_logs(facts: list[Fact]) -> Iterator[Log]:
    """The log of each life, from its facts about writers, sorted."""
    lives: dict[tuple[int, int], list[Fact]] = defaultdict(list)
    for fact in facts:
        lives[fact.proc, fact.inc].append(fact)
    for (proc, inc), parts in sorted(lives.items()):
        expected, missing, first_missing, repeated = 0, 0, -1, 0
        disorder = 0
        place: int | None = None
        for part in parts:
            last, _, holes, first_hole, again, _, falls, first_place, last_place, _ = part.v
            if part.first > expected:
                missing += part.first - expected
                first_missing = expected if first_missing < 0 else first_missing
            if holes and first_missing < 0:
                first_missing = first_hole
            missing += holes
            repeated += again + (part.first < expected)
            disorder += falls + (place is not None and place >= first_place)
            expected, place = max(expected, last + 1), last_place
        yield Log(
            proc,
            inc,
            rows=sum(part.v[1] for part in parts),
            missing=missing,
            first_missing=max(first_missing, 0),
            repeated=repeated,
            ordered=not disorder,
            unplaced=sum(part.v[5] for part in parts),
            message_rows=sum(part.v[9] for part in parts),
            last_place=max(part.v[8] for part in parts),
        )
