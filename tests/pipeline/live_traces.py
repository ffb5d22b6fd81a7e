"""Runs of the simulator as real nodes would write them: each life in pieces of its own."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from roundelay.core.effects import Kind
from roundelay.sim.runner import ScenarioRunner
from roundelay.sim.scenario import parse
from roundelay.trace.manifest import Manifest
from roundelay.trace.pieces import PieceWriter
from roundelay.trace.schema import WORLD, Row
from roundelay.trace.writer import Format

STORY = """engine totem
network lan latency=100us
nodes a b c
run 60ms
load messages=60 rate=500/s size=10 safe=30%
run 300ms
{change}
load messages=60 rate=500/s size=10 safe=30%
end after=8s
----
"""


@cache
def played(change: str = "run 1ms", run: str = "live") -> tuple[Manifest, tuple[Row, ...]]:
    """A run, in the order in which it happened, without what only the simulator knows."""
    story = ScenarioRunner()
    text = STORY.format(change=change)
    for block in parse(text):
        story.play(block)
    manifest = replace(story.manifest(text), run=run, rows=None, bound_ns=None)
    rows = (row._replace(gseq=None) for row in story.rows if row.proc != WORLD)
    return manifest, tuple(rows)


class LiveNodes:
    """Writes rows as the nodes of a run would, life by life, with a roll whenever it is told."""

    def __init__(
        self, directory: Path, manifest: Manifest, format: Format | dict[int, Format] = "parquet"
    ) -> None:
        self._directory = directory
        self._manifest = replace(manifest, rows=None, sha256="", pieces=0)
        self._format = format
        self.writers: dict[tuple[int, int], PieceWriter] = {}

    def write(self, rows: Iterable[Row], *, roll: bool = True) -> None:
        for row in rows:
            self._writer(row.proc, row.inc).append(row)
        for writer in self.writers.values():
            if roll:
                writer.roll()
            else:
                writer.flush()

    def close(self) -> None:
        """All nodes stop in good order."""
        for writer in self.writers.values():
            writer.close()
        self.writers.clear()

    def _writer(self, proc: int, inc: int) -> PieceWriter:
        writer = self.writers.get((proc, inc))
        if writer is None:
            format = self._format if isinstance(self._format, str) else self._format[proc]
            writer = self.writers[proc, inc] = PieceWriter(
                self._directory,
                self._manifest,
                name=f"{self._manifest.nodes[proc]}-{inc}",
                unclosed={} if format == "jsonl" else {f"{proc}.{inc}": "as it still runs"},
                format=format,
            )
        return writer


def parts(rows: tuple[Row, ...], count: int) -> Iterator[tuple[Row, ...]]:
    """The rows in so many parts, one after the other."""
    for number in range(count):
        yield rows[len(rows) * number // count : len(rows) * (number + 1) // count]


def by_life(rows: Iterable[Row]) -> dict[tuple[int, int], list[Row]]:
    found = defaultdict(list)
    for row in rows:
        found[row.proc, row.inc].append(row)
    return found


def twice(rows: Iterable[Row], number: int = 40) -> Iterator[Row]:
    """The run as it would be if node b delivered the message of one delivery twice."""
    more = count = 0
    for row in rows:
        if row.proc != 1:
            yield row
            continue
        yield row._replace(lseq=row.lseq + more)
        if row.kind == Kind.DELIVER and row.layer == "app":
            count += 1
            if count == number:
                more = 1
                yield row._replace(lseq=row.lseq + more)


def changed(rows: Sequence[Row], kind: Kind, field: str, by: int, number: int = 20) -> list[Row]:
    """As if one row of node b of that kind had another number in a field."""
    mine = [at for at, row in enumerate(rows) if row.proc == 1 and row.kind == kind]
    told = list(rows)
    at = mine[number]
    told[at] = told[at]._replace(**{field: getattr(told[at], field) + by})
    return told


PLANTS: dict[str, Callable[[Sequence[Row]], Iterable[Row]]] = {
    "D1": lambda rows: changed(rows, Kind.DELIVER, "m_seq", 5000),
    "D2": twice,
    "D11": lambda rows: changed(rows, Kind.DELIVER, "digest", 1),
    "K1": lambda rows: changed(rows, Kind.ORDER, "k2", 1),
    "O4": lambda rows: changed(rows, Kind.DELIVER, "k2", -5),
}
"""What makes a right run break a property, and perhaps others with it."""
