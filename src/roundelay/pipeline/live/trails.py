"""The traces in some directories, how far each can be read, and what is new since a position.

A *trail* is the trace of one life of a node, named after its files:

    DIR/a-17.*.parquet    in pieces: those are read that the manifest counts
    DIR/a-17.*.jsonl      in pieces of lines: the last one is read as it grows
    DIR/a-17.jsonl        one file of lines, which is read as it grows
    DIR/a-17.parquet      one file, which can be read when its node has stopped
    DIR/table.json        a table that `ingest` makes, whose pieces are its parts

Of a table, the lives whose rows it has have trails too. They have no pieces of their own, and tell
who may still write.

A *position* is how many pieces of a trail were read, and how many bytes of the next one.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from sys import maxsize

import pyarrow.parquet as pq

from roundelay.pipeline.errors import PipelineError
from roundelay.pipeline.ingest.sources import MANIFEST, Source, end_of_lines, files, source_of
from roundelay.pipeline.ingest.table import POINTER, Table
from roundelay.trace import parquet
from roundelay.trace.intake import UnreadableError
from roundelay.trace.manifest import Manifest
from roundelay.trace.writer import SUFFIXES, life_of, piece_name

Position = tuple[int, int]
"""Whole pieces, and bytes of the next one, which are whole lines."""

Positions = Mapping[str, Position]
"""By trail."""

BEGIN: Position = (0, 0)

ANY = ".*"
"""Stands in the name of a trail where its pieces have their numbers."""

LINE_BYTES = 256
"""About how long a line is, in bytes. What is read at a time is limited in rows, and nobody knows
how many lines a file has: with a greater value there are more of them at a time, with a smaller one
fewer."""


@dataclass(frozen=True, slots=True)
class Trail:
    """A trace as it is now."""

    name: str
    manifest: Manifest | None
    whole: int
    """How many of its pieces will not change any more."""
    table: Table | None = None
    """The table that it is."""
    manifest_file: str = ""
    """Where its manifest was read."""

    @property
    def grows(self) -> bool:
        """Whether it has lines, which can be read before a piece is whole."""
        return self.name.endswith(".jsonl")

    @property
    def closed(self) -> bool:
        """Whether its node has stopped in good order."""
        return self.manifest is not None and self.manifest.rows is not None

    @property
    def writer(self) -> tuple[int, int] | None:
        """The node's number and incarnation, as far as the name tells."""
        node, _, inc = life_of(Path(self.name.replace(ANY, "")).stem).rpartition("-")
        if self.manifest is None or node not in self.manifest.nodes or not inc.isdecimal():
            return None
        return self.manifest.nodes.index(node), int(inc)


@dataclass(frozen=True, slots=True)
class Step:
    """Something new: a piece, or some lines."""

    trail: str
    source: Source
    then: Position
    """Where the trail has been read to, after this."""
    rows: int | None = None
    """How many rows it has, if that is known."""


def trails(paths: Iterable[str | Path]) -> dict[str, Trail]:
    """The trails at or below `paths`; PipelineError if there is no such path.

    A node that has written nothing but a manifest has one too, since its rows are to be expected.
    """
    names: dict[str, Path] = {}
    manifests: list[Path] = []
    tables: dict[str, Trail] = {}
    for path in map(Path, paths):
        if not path.exists():
            raise PipelineError(
                f"there is no directory {path}; name one that nodes write their traces to"
            )
        if (path / POINTER).is_file():
            tables |= _of_table(Table.load(path.resolve()))
            continue
        for home, name in files(path):
            stem, suffix = os.path.splitext(name)
            if suffix in SUFFIXES:
                trail = _named(home, stem, suffix)
                if trail not in names:
                    names[trail] = Path(home, name)
            elif name.endswith(f".{MANIFEST}"):
                manifests.append(Path(home, name))
    begun = {place.with_name(life_of(place.stem)) for place in names.values()}
    for file in manifests:
        life = file.with_name(file.name.removesuffix(f".{MANIFEST}"))
        if life not in begun:
            names[f"{life}{ANY}.parquet"] = life.with_name(f"{piece_name(life.name, 0)}.parquet")
    read: dict[Path, Manifest | str] = {}
    return tables | {name: _trail(name, file, read) for name, file in names.items()}


def _of_table(table: Table) -> dict[str, Trail]:
    name = str(table.directory / POINTER)
    found = {name: Trail(name, None, len(table.parts), table)}
    for place, manifest in table.latest.items():
        life = place.removesuffix(f".{MANIFEST}")
        name = place if life == place else f"{life}{ANY}.parquet"
        found[name] = Trail(name, manifest, 0)
    return found


def position_after(source: Source) -> tuple[str, Position]:
    """The trail of a file, and where it is read to when this file is."""
    file = Path(source.path)
    if file.name == POINTER:
        return source.path, (source.end or 0, 0)
    name = trail_name(file)
    piece = int(file.stem.rpartition(".")[2]) if ANY in Path(name).stem else 0
    return name, (piece + 1, 0) if source.end is None else (piece, source.end)


def trail_name(file: Path) -> str:
    """The trail that a data file belongs to."""
    return _named(str(file.parent), file.stem, file.suffix)


def _named(home: str, stem: str, suffix: str) -> str:
    life = life_of(stem)
    return os.path.join(home, f"{life}{suffix}" if life == stem else f"{life}{ANY}{suffix}")


def file_of(trail: str, piece: int) -> Path:
    """A data file of a trail."""
    path = Path(trail)
    if not path.stem.endswith(ANY):
        return path
    return path.with_name(piece_name(path.stem.removesuffix(ANY), piece) + path.suffix)


def _trail(name: str, file: Path, read: dict[Path, Manifest | str]) -> Trail:
    source = source_of(file, read, set())
    manifest = source.manifest
    if ANY in Path(name).stem:
        whole = 0 if manifest is None else manifest.pieces
    else:
        whole = int(file.suffix == ".parquet" and _has_end(file))
    return Trail(name, manifest, whole, manifest_file=source.manifest_file)


def _has_end(file: Path) -> bool:
    try:
        parquet.check_ends(file)
    except UnreadableError:
        return False
    return True


def check(paths: Iterable[str | Path], found: Mapping[str, Trail], read: Positions) -> None:
    """PipelineError if a trail below `paths` is gone, or is shorter than it was."""
    homes = [Path(path).resolve() for path in paths]
    for name, (pieces, size) in read.items():
        trail = found.get(name) or _without_pieces(name)
        if trail is None:
            if any(Path(name).is_relative_to(home) for home in homes):
                raise PipelineError(f"{name} is gone, of which a part was read; {_ADVICE}")
            continue  # It is not asked for any more.
        if trail.whole < pieces:
            raise PipelineError(
                f"{name} has {trail.whole} pieces, and {pieces} were read: it is an older copy; "
                f"{_ADVICE}"
            )
        if size and trail.whole == pieces and size_of(file_of(name, pieces)) < size:
            raise PipelineError(
                f"{file_of(name, pieces)} is shorter than the {size} bytes that were read; "
                f"{_ADVICE}"
            )


def _without_pieces(name: str) -> Trail | None:
    """A trail whose manifest is there: pieces that were read may be removed."""
    file = file_of(name, 0)
    manifest = source_of(file, {}, set()).manifest if ANY in Path(name).stem else None
    return None if manifest is None else Trail(name, manifest, manifest.pieces)


def written_at(file: str | Path) -> float:
    """When a file that is to be read was written, in seconds since 1970; PipelineError if it is
    gone."""
    try:
        return os.stat(file).st_mtime
    except FileNotFoundError:
        raise _gone(file) from None


def _gone(file: str | Path) -> PipelineError:
    return PipelineError(f"{file} is gone, which was found and not yet read; {_ADVICE}")


_ADVICE = "copy it back to where it was, or begin again with a new output directory"


def steps(
    found: Mapping[str, Trail],
    read: Positions,
    until: Positions | None = None,
    rows_max: int | None = None,
) -> list[Step]:
    """What is new, the oldest first, up to given positions, and about so many rows at most.

    All trails go on at the same pace, by the times of their files: who merges what several nodes
    did must not wait for one whose files are read last.
    """
    new = [
        (age, trail.name, step)
        for trail in found.values()
        for age, step in _new(trail, read.get(trail.name, BEGIN), until, rows_max)
    ]
    new.sort(key=lambda item: item[:2] + item[2].then)
    if rows_max is None:
        return [step for _, _, step in new]
    some: list[Step] = []
    rows = 0
    for _, _, step in new:
        rows += _rows(step.source) if step.rows is None else step.rows
        if some and rows > rows_max:
            break
        some.append(step)
    return some


def between(start: Positions, end: Positions) -> Iterator[Source]:
    """What a trail has between two positions that were found earlier; PipelineError if it is
    gone."""
    read: dict[Path, Manifest | str] = {}
    for name, last in end.items():
        pieces, size = start.get(name, BEGIN)
        if Path(name).name == POINTER:
            yield from (Source(name, None, start=n, end=n + 1) for n in range(pieces, last[0]))
            continue
        while (pieces, size) < last:
            file = file_of(name, pieces)
            if not file.is_file():
                raise _gone(file)
            source = source_of(file, read, set())
            if name.endswith(".jsonl"):
                end_ = last[1] if pieces == last[0] else size_of(file)
                if end_ > size:
                    yield replace(source, start=size, end=end_)
            else:
                yield source
            if pieces == last[0]:
                break
            pieces, size = pieces + 1, 0


def _new(
    trail: Trail, read: Position, until: Positions | None, rows_max: int | None
) -> Iterator[tuple[float, Step]]:
    """What is new of a trail, and when that was written."""
    pieces, start = read
    age = 0.0
    if trail.table is not None:
        end = trail.whole if until is None else until.get(trail.name, BEGIN)[0]
        for part in trail.table.parts[pieces:end]:
            pieces += 1
            source = Source(trail.name, None, start=pieces - 1, end=pieces)
            age = written_at(trail.table.directory / part.name)
            yield age, Step(trail.name, source, (pieces, 0), sum(part.rows.values()))
        return
    last = (maxsize, 0) if until is None else until.get(trail.name, BEGIN)
    while (pieces, start) < last and (pieces < trail.whole or trail.grows):
        file = file_of(trail.name, pieces)
        try:
            age = max(age, file.stat().st_mtime)
        except FileNotFoundError:
            return  # A piece of lines that has no line yet; else `between` will tell.
        source = Source(str(file), trail.manifest)
        if not trail.grows:
            pieces += 1
            yield age, Step(trail.name, source, (pieces, 0))
            continue
        end = end_of_lines(file, start) or start
        whole = pieces < trail.whole
        if pieces == last[0]:
            end, whole = min(end, last[1]), False
        if rows_max is not None and end - start > rows_max * LINE_BYTES:
            end = end_of_lines_before(file, start, start + rows_max * LINE_BYTES)
            yield age, Step(trail.name, replace(source, start=start, end=end), (pieces, end))
            return
        if end > start or whole:
            then = (pieces + 1, 0) if whole else (pieces, end)
            yield age, Step(trail.name, replace(source, start=start, end=end), then)
        if not whole:
            return
        pieces, start = pieces + 1, 0


def end_of_lines_before(file: Path, start: int, most: int) -> int:
    """Where a line of a file ends, at or before byte `most`, or else as soon as possible."""
    with file.open("rb") as opened:
        opened.seek(start)
        at = opened.read(most - start).rfind(b"\n")
        if at >= 0:
            return start + at + 1
        return opened.tell() + len(opened.readline())


def _rows(source: Source) -> int:
    """About how many rows a file has."""
    if source.end is not None:
        return (source.end - source.start) // LINE_BYTES
    try:
        with pq.ParquetFile(source.path) as file:
            return int(file.metadata.num_rows)
    except (OSError, ValueError):
        return 0  # Whoever reads it will say why it cannot be read.


def size_of(file: Path) -> int:
    try:
        return os.stat(file).st_size
    except FileNotFoundError:
        return 0


def after(read: Positions, taken: Sequence[Step]) -> dict[str, Position]:
    """Where the trails are read to, after some steps."""
    return {**read, **{step.trail: step.then for step in taken}}
