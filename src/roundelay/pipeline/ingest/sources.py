"""Which files make up the traces that a user named, and which manifest goes with each.

A directory is searched with all that is below it, so that the output of a sweep can be named as a
whole. Files that begin with a dot or an underscore are nobody's.
"""

import contextlib
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

from roundelay.pipeline.errors import PipelineError
from roundelay.trace.manifest import Manifest, TraceError
from roundelay.trace.writer import SUFFIXES, manifest_names

MANIFEST = "manifest.json"

TAIL_BYTES = 1 << 16
"""Bytes that are searched at a time, from the end, for the end of a line. More: most are read for
nothing; fewer: a long line is read in many steps."""


@dataclass(frozen=True, slots=True)
class Source:
    """A data file."""

    path: str
    manifest: Manifest | None
    problem: str = ""
    """What is wrong with its manifest; completes "<file> ..."."""
    manifest_file: str = ""
    """Where that was read."""
    start: int = 0
    end: int | None = None
    """Of a file of lines that may still grow: the bytes that are meant, whole lines; None for all
    that there are."""

    @property
    def lines(self) -> bool:
        """Whether it can be read piece by piece."""
        return not self.path.endswith(".parquet")


@dataclass(frozen=True, slots=True)
class Found:
    """What was found."""

    sources: tuple[Source, ...]
    orphans: tuple[Manifest, ...]
    """Manifests whose data file is not there: what they count is missing."""


def find(paths: Iterable[str | Path]) -> Found:
    """The data files at or below `paths`, each once."""
    data: dict[Path, None] = {}
    manifests: dict[Path, None] = {}
    for path in map(Path, paths):
        if not path.exists():
            raise PipelineError(f"there is no trace at {path}; name a directory or a file of one")
        for home, name in files(path):
            (manifests if name.endswith(MANIFEST) else data)[Path(home, name)] = None
    if not data:
        listed = ", ".join(map(str, paths))
        raise PipelineError(
            f"there is no trace in {listed} (*.parquet or *.jsonl); name a directory that a run "
            "was told to write to"
        )
    read: dict[Path, Manifest | str] = {}
    used: set[Path] = set()
    sources = [source_of(file, read, used) for file in data]
    orphans = [
        m for file in manifests if file not in used and isinstance(m := _read(file), Manifest)
    ]
    return Found(tuple(sources), tuple(orphans))


def files(path: Path) -> Iterator[tuple[str, str]]:
    """Directory and name of each data file and manifest at or below a path. There may be many, and
    whoever follows them asks often: so links are resolved once for a directory."""
    home = os.path.realpath(path)
    if not os.path.isdir(home):
        home, name = os.path.split(home)
        yield home, name
        return
    below = []
    with contextlib.suppress(OSError), os.scandir(home) as found:
        for entry in sorted(found, key=attrgetter("name")):
            if entry.name.startswith((".", "_")):
                continue
            if entry.is_dir():
                if not entry.is_symlink():
                    below.append(Path(entry.path))
            elif entry.name.endswith((*SUFFIXES, MANIFEST)):
                if entry.is_symlink():
                    there, name = os.path.split(os.path.realpath(entry.path))
                    yield there, name
                else:
                    yield home, entry.name
    for directory in below:
        yield from files(directory)


def end_of_lines(file: Path, start: int) -> int | None:
    """Where the last whole line of a file ends, in bytes; `start` if there is none behind that, and
    None if the file is shorter."""
    with file.open("rb") as opened:
        end = opened.seek(0, os.SEEK_END)
        if end < start:
            return None
        while end > start:
            first = max(start, end - TAIL_BYTES)
            opened.seek(first)
            at = opened.read(end - first).rfind(b"\n")
            if at >= 0:
                return first + at + 1
            end = first
    return start


def end_of_rows(file: Path, start: int) -> int:
    """Where the last row of a file of lines ends, which may lack the end of its line."""
    end = end_of_lines(file, start) or start
    with file.open("rb") as opened:
        opened.seek(end)
        rest = opened.read(TAIL_BYTES)
    try:
        json.loads(rest)
    except (ValueError, RecursionError):
        return end
    return end + len(rest)


def source_of(file: Path, read: dict[Path, Manifest | str], used: set[Path]) -> Source:
    """A data file with its manifest. `read` keeps manifests that were read, and `used` the places
    of those that belong to some file."""
    # Spark writes a Parquet file as a directory of parts, which have one manifest.
    home = file.parent if file.parent.suffix in SUFFIXES else file
    for name in manifest_names(home.stem):
        beside = home.parent / name
        if not beside.is_file():
            continue
        used.add(beside)
        if beside not in read:
            read[beside] = _read(beside)
        found = read[beside]
        if isinstance(found, Manifest):
            return Source(str(file), found, manifest_file=str(beside))
        return Source(str(file), None, found)
    return Source(str(file), None)


def _read(file: Path) -> Manifest | str:
    try:
        return Manifest.from_json(file.read_text(encoding="utf-8"))
    except TraceError as e:
        return f"has a manifest that cannot be read: {e}"
    except (OSError, UnicodeDecodeError):
        return "has a manifest that cannot be read; copy it again from where it was made"
