"""The table that `ingest` makes and the other commands read.

    DIR/table.json              which parts there are: written last, renamed into place
    DIR/part=DIGEST/_part.json  what went into a part: sources, manifests, problems
    DIR/part=DIGEST/bad=B/shard=S/*.parquet    B is 0 for events, 1 for quarantine

A part is named after the bytes of its sources, so the same input is the same part. Whatever is
not named in `table.json` is of an ingest that was killed, and is not there.
"""

import hashlib
import json
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roundelay.pipeline.errors import PipelineError
from roundelay.pipeline.ingest.decode import OUT_DDL
from roundelay.trace.manifest import Manifest, TraceError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMAT = 2
POINTER = "table.json"
NOTES = "_part.json"
TABLE_DDL = f"{OUT_DDL}, part string, bad int, shard int"


@dataclass(frozen=True, slots=True)
class TablePart:
    """What one ingest added."""

    name: str
    sources: Mapping[str, str]
    """sha256 of the bytes, by path."""
    manifests: tuple[str, ...]
    """As JSON, one for each data file that has one, and those whose data file is missing."""
    problems: Mapping[str, tuple[str, ...]]
    """By run: why this may not be all of its trace; each a sentence."""
    rows: Mapping[str, int]
    """Events by run."""
    quarantined: int = 0
    manifest_files: tuple[str, ...] = ()
    """Where each of the manifests was read, as far as that is known: one that is read again later
    takes the place of what it was before."""
    read_to: Mapping[str, int] = field(default_factory=dict)
    """By path: how many bytes of a file of lines were read by then. Their sha256 is that of those
    since the part before that has the file, or of all if it began anew."""


@dataclass(frozen=True)
class Table:
    """A table as it is now."""

    directory: Path
    parts: tuple[TablePart, ...] = field(default=())

    @classmethod
    def load(cls, directory: str | Path) -> "Table":
        """The table in a directory, empty if nothing was ever put there."""
        directory = Path(directory)
        try:
            pointer = json.loads((directory / POINTER).read_text())
        except FileNotFoundError:
            return cls(directory)
        except (OSError, ValueError):
            raise PipelineError(
                f"{directory / POINTER} cannot be read; ingest the traces again into a new "
                "directory"
            ) from None
        if not isinstance(pointer, dict) or pointer.get("format") != FORMAT:
            raise PipelineError(
                f"{directory} is a table of another version; ingest the traces again into a new one"
            )
        return cls(directory, tuple(_part(directory / name) for name in pointer["parts"]))

    @classmethod
    def open(cls, directory: str | Path) -> "Table":
        """The table in a directory, which must hold one."""
        table = cls.load(directory)
        if not table.parts:
            raise PipelineError(
                f"there is no table in {directory}; make one with: roundelay ingest TRACES -o "
                f"{directory}"
            )
        return table

    def events(self, spark: "SparkSession") -> "DataFrame":
        """All good rows."""
        return self._rows(spark).where("bad = 0").drop("place", "reason", "part", "bad", "shard")

    def quarantine(self, spark: "SparkSession") -> "DataFrame":
        """All bad ones: where they were and what is wrong with them."""
        return self._rows(spark).where("bad = 1").select("run", "source", "place", "reason")

    def _rows(self, spark: "SparkSession") -> "DataFrame":
        home = self.directory.resolve()
        paths = [str(home / part.name) for part in self.parts]
        return spark.read.schema(TABLE_DDL).option("basePath", str(home)).parquet(*paths)

    def files(self) -> list[Path]:
        """The data files that hold events."""
        homes = (self.directory / part.name / "bad=0" for part in self.parts)
        return [file.resolve() for home in homes for file in sorted(home.rglob("*.parquet"))]

    @cached_property
    def sources(self) -> frozenset[str]:
        """sha256 of every file that is in."""
        return frozenset(sha256 for part in self.parts for sha256 in part.sources.values())

    @cached_property
    def paths(self) -> frozenset[str]:
        """Every file that is in, or of which some lines are."""
        return frozenset(path for part in self.parts for path in part.sources)

    @cached_property
    def read_to(self) -> dict[str, int]:
        """By path: how many bytes of a file of lines are in."""
        return {path: end for part in self.parts for path, end in part.read_to.items()}

    @cached_property
    def manifests(self) -> dict[str, Manifest]:
        """By run, those of its nodes put together."""
        whole: dict[str, Manifest] = {}
        for manifest in self.latest.values():
            other = whole.get(manifest.run)
            whole[manifest.run] = manifest if other is None else other.joined(manifest)
        return whole

    @cached_property
    def latest(self) -> dict[str, Manifest]:
        """All manifests, by where they were read as far as that is known; of those that were read
        several times, as they were at last."""
        latest: dict[str, Manifest] = {}
        for part in self.parts:
            places = part.manifest_files or part.manifests
            for place, text in zip(places, part.manifests, strict=True):
                latest[place] = Manifest.from_json(text)
        return latest

    @cached_property
    def problems(self) -> dict[str, list[str]]:
        """By run, what the ingest found wrong."""
        found: dict[str, list[str]] = {}
        for part in self.parts:
            for run, sentences in part.problems.items():
                found.setdefault(run, []).extend(sentences)
        for run, nodes in self._disagreeing.items():
            found.setdefault(run, []).append(
                f"its manifests name different nodes ({'; '.join(sorted(nodes))})"
            )
        return found

    @cached_property
    def _disagreeing(self) -> dict[str, set[str]]:
        nodes: dict[str, set[str]] = {}
        for manifest in self.latest.values():
            nodes.setdefault(manifest.run, set()).add(",".join(manifest.nodes))
        return {run: names for run, names in nodes.items() if len(names) > 1}

    @cached_property
    def rows(self) -> Counter[str]:
        """Events by run."""
        counted: Counter[str] = Counter()
        for part in self.parts:
            counted.update(part.rows)
        return counted

    @cached_property
    def runs(self) -> list[str]:
        """All that are known, with rows or without."""
        named = {run for part in self.parts for run in (*part.rows, *part.problems) if run}
        return sorted(named | self.manifests.keys())

    def add(self, part: TablePart) -> "Table":
        """The table with one more part, whose rows are in place already."""
        home = self.directory / part.name
        _write(home / NOTES, json.dumps(asdict(part), indent=1, sort_keys=True))
        names = [p.name for p in self.parts] + [part.name]
        _write(self.directory / POINTER, json.dumps({"format": FORMAT, "parts": names}, indent=1))
        return Table(self.directory, (*self.parts, part))

    def sweep(self) -> None:
        """Remove what a killed ingest left."""
        known = {part.name for part in self.parts}
        for path in self.directory.glob("part=*"):
            if path.name not in known:
                shutil.rmtree(path, ignore_errors=True)


def _part(home: Path) -> TablePart:
    try:
        fields: dict[str, Any] = json.loads((home / NOTES).read_text())
        fields["manifests"] = tuple(fields["manifests"])
        fields["manifest_files"] = tuple(fields.get("manifest_files", ()))
        fields["problems"] = {run: tuple(said) for run, said in fields["problems"].items()}
        return TablePart(**fields)
    except (OSError, ValueError, KeyError, TypeError, TraceError):
        raise PipelineError(
            f"{home} is named in the table and cannot be read; ingest the traces again into a new "
            "directory"
        ) from None


def _write(path: Path, text: str) -> None:
    """As a whole or not at all, also if the machine stops."""
    beside = path.with_suffix(".tmp")
    with beside.open("w", encoding="utf-8") as file:
        file.write(text + "\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)


def part_name(digests: Iterable[str]) -> str:
    """The name of a part that holds the files with these sha256."""
    return f"part={hashlib.sha256(' '.join(sorted(digests)).encode()).hexdigest()[:16]}"
