"""Which files make up the traces that a user named, and which manifest goes with each.

A directory is searched with all that is below it, so that the output of a sweep can be named as a
whole. Files that begin with a dot or an underscore are nobody's.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from roundelay.pipeline.errors import PipelineError
from roundelay.trace.manifest import Manifest, TraceError
from roundelay.trace.writer import SUFFIXES, manifest_name

MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class Source:
    """A data file."""

    path: str
    manifest: Manifest | None
    problem: str = ""
    """What is wrong with its manifest; completes "<file> ..."."""


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
        for file in _files(path):
            place = file.resolve()
            (manifests if place.name.endswith(MANIFEST) else data)[place] = None
    if not data:
        listed = ", ".join(map(str, paths))
        raise PipelineError(
            f"there is no trace in {listed} (*.parquet or *.jsonl); name a directory that a run "
            "was told to write to"
        )
    read: dict[Path, Manifest | str] = {}
    used: set[Path] = set()
    sources = [_source(file, read, used) for file in data]
    orphans = [
        m for file in manifests if file not in used and isinstance(m := _read(file), Manifest)
    ]
    return Found(tuple(sources), tuple(orphans))


def _files(path: Path) -> Iterable[Path]:
    if not path.is_dir():
        yield path
        return
    for directory, below, names in os.walk(path):
        below[:] = sorted(name for name in below if not name.startswith((".", "_")))
        for name in sorted(names):
            if name.startswith((".", "_")):
                continue
            if name.endswith((*SUFFIXES, MANIFEST)):
                yield Path(directory) / name


def _source(file: Path, read: dict[Path, Manifest | str], used: set[Path]) -> Source:
    # Spark writes a Parquet file as a directory of parts, which have one manifest.
    home = file.parent if file.parent.suffix in SUFFIXES else file
    for name in (manifest_name(home.stem), manifest_name("trace")):
        beside = home.parent / name
        if not beside.is_file():
            continue
        used.add(beside)
        if beside not in read:
            read[beside] = _read(beside)
        found = read[beside]
        if isinstance(found, Manifest):
            return Source(str(file), found)
        return Source(str(file), None, found)
    return Source(str(file), None)


def _read(file: Path) -> Manifest | str:
    try:
        return Manifest.from_json(file.read_text(encoding="utf-8"))
    except TraceError as e:
        return f"has a manifest that cannot be read: {e}"
    except (OSError, UnicodeDecodeError):
        return "has a manifest that cannot be read; copy it again from where it was made"
