"""Reads rows from files, and says what is wrong with them.

Two cases are kept apart. If there is nothing to read, a `TraceError` says in one sentence what was
found and what to do next. If some rows are missing, or may be, the rows come with `problems`, a
sentence each: a checker must then answer that the trace is inconclusive.

    TraceError      no such path; no trace in it; every data file empty, cut (Parquet), damaged or
                    foreign; a schema newer than ours; a manifest that is damaged or of another run
    problems        no manifest, or one that says that rows end early; rows fewer or more than it
                    counts, or not those it has the sha256 of; holes and repetitions in lseq; rows
                    left out because they make no sense; a last line cut short; a damaged file
                    among others; columns missing or unknown
"""

import gc
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

from roundelay.trace import jsonl, mini
from roundelay.trace.intake import Findings, UnreadableError
from roundelay.trace.manifest import Manifest, TraceError
from roundelay.trace.schema import Row
from roundelay.trace.writer import (
    BATCH_ROWS,
    NEEDS_PYARROW,
    SUFFIXES,
    canonical_batch,
    life_of,
    manifest_names,
)

PROBLEMS_MAX = 12
"""How many sentences about lost rows are printed; more are only counted."""

_NODES_MAX = 1 << 15  # Node numbers have 16 bits and a sign.


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace in memory. Its rows are in the order of `gseq` if all rows have one; else the rows of
    each node are in the order of its `lseq`."""

    manifest: Manifest | None
    rows: list[Row]
    problems: list[str]
    """Why rows may be missing; a sentence for the user about each reason."""


def read(path: str | Path, *, verify: bool = False, bare: bool = False) -> Trace:
    """The trace at `path`: its directory, one data file of it, or a text in the mini-language.

    The rows are compared with the manifest's sha256. A Parquet file of ours repeats that sha256
    and has checksums, which is enough for most; `verify` computes it from its rows all the same.
    `bare` reads the rows as if there were no manifest.
    """
    stream = iterate(path, verify=verify, bare=bare)
    with _without_garbage_collection():
        rows = [row for batch in stream.unchecked() for row in batch]
    counter = _RowCounter()
    if all(row.gseq is not None for row in rows):
        rows.sort(key=attrgetter("gseq"))
        counter.count(rows)
    else:
        counter.count(rows)
        if counter.repeated:
            rows.sort(key=attrgetter("proc", "inc", "lseq"))
            counter = _RowCounter()
            counter.count(rows)
    stream.problems.extend(counter.problems(stream.manifest))
    return Trace(stream.manifest, rows, stream.problems)


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Switch the garbage collector off: none of the million tuples made here is garbage, and it
    would take more time than the reading."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def read_text(text: str, run: str = "mini") -> Trace:
    """The trace that a text in the mini-language writes down."""
    manifest, rows = mini.parse(text, run)
    return Trace(manifest, rows, [])


def iterate(
    path: str | Path, *, batch_rows: int = BATCH_ROWS, verify: bool = False, bare: bool = False
) -> "Stream":
    """The trace in batches of rows, for traces that are too large for the memory."""
    path = Path(path)
    try:
        if not path.exists():
            raise TraceError(
                f"there is no trace at {path}; name the directory that a run was told to write to"
            )
        if path.name.endswith("manifest.json"):
            path = path.parent
        data, manifests = _files_of(path) if path.is_dir() else _files_beside(path)
        if not path.is_dir() and (text := _mini_text(path)) is not None:
            return Stream.of_text(path, text, batch_rows)
        manifest, hashes = _read_manifests(path, () if bare else manifests)
    except OSError as e:
        raise TraceError(
            f"cannot read {e.filename or path}: {e.strerror or e}; check that it is yours to read"
        ) from None
    return Stream(path, data, manifest, hashes, batch_rows, verify)


class Stream:
    """Batches of rows, file by file as they were written.

    `manifest` is known from the start, `problems` only after the iteration. A stream can be
    iterated once.
    """

    def __init__(
        self,
        path: Path,
        data: Sequence[Path],
        manifest: Manifest | None,
        hashes: Mapping[str, tuple[str, int]],
        batch_rows: int,
        verify: bool = False,
    ) -> None:
        self.manifest = manifest
        self.problems: list[str] = []
        self._path = path
        self._data = data
        self._hashes = hashes
        self._batch_rows = batch_rows
        self._verify = verify
        self._run = None if manifest is None else manifest.run
        self._rows: list[Row] | None = None

    @classmethod
    def of_text(cls, path: Path, text: str, batch_rows: int) -> "Stream":
        """A trace in the mini-language, which has no data file and loses no rows."""
        try:
            manifest, rows = mini.parse(text, path.stem)
        except TraceError as e:
            raise TraceError(f"{path}, {e}") from None
        if not rows:
            raise TraceError(f"{path} holds no event; write one, such as p!a")
        stream = cls(path, (), manifest, {}, batch_rows)
        stream._rows = rows
        return stream

    def __iter__(self) -> Iterator[list[Row]]:
        counter = _RowCounter()
        for batch in self.unchecked():
            counter.count(batch)
            yield batch
        self.problems.extend(counter.problems(self.manifest))

    def unchecked(self) -> Iterator[list[Row]]:
        """The batches, without a search for lost rows, which the caller does."""
        if self._rows is not None:
            for start in range(0, len(self._rows), self._batch_rows):
                yield self._rows[start : start + self._batch_rows]
            return
        refused: list[str] = []
        row_count = 0
        node_count = _NODES_MAX if self.manifest is None else len(self.manifest.nodes)
        for path in self._data:
            found = Findings(path, node_count)
            try:
                yield from self._file(path, found)
            except UnreadableError as e:
                refused.append(f"{path} {e}")
            row_count += found.row_count
            self.problems.extend(found.problems())
        if refused and not row_count:
            raise TraceError(refused[0])
        self.problems.extend(refused)
        if not row_count:
            self.problems.append(f"{self._path} holds no rows")

    def _file(self, path: Path, found: Findings) -> Iterator[list[Row]]:
        expected, schema = self._hashes.get(path.stem, ("", 0))
        sha256 = hashlib.sha256()
        computed = False
        for rows in _decode(path, self._batch_rows, found):
            for run in found.runs:
                self._check_run(path, run)
            if expected and (self._verify or found.sha256 != expected):
                computed = True
                sha256.update(canonical_batch(rows, schema))
            yield rows
        if found.left_out and not found.row_count:
            raise UnreadableError(f"holds no row of a trace ({found.first}); name another file")
        if computed and sha256.hexdigest() != expected and not found.left_out:
            found.notes.append(
                "its rows are not those that were written, as their sha256 shows; copy it again "
                "from where it was made"
            )

    def _check_run(self, path: Path, run: str) -> None:
        if self._run is None:
            self._run = run
        elif run != self._run:
            what = "the manifest is" if self.manifest is not None else "other rows are"
            raise TraceError(
                f"{path} has rows of run {run!r} but {what} of run {self._run!r}; keep one run "
                "and its own manifest in a directory"
            )


# Which files make a trace.


def _files_of(directory: Path) -> tuple[list[Path], list[Path]]:
    """Data files and manifests of a directory."""
    data: list[Path] = []
    manifests: list[Path] = []
    for entry in sorted(directory.iterdir()):
        if entry.name.endswith("manifest.json"):
            manifests.append(entry)
        elif entry.suffix in SUFFIXES and not entry.name.startswith((".", "_")):
            # Spark writes a Parquet file as a directory of parts.
            parts = sorted(entry.glob(f"*{entry.suffix}")) if entry.is_dir() else [entry]
            data.extend(parts)
    if not data:
        what = "a manifest but no data file" if manifests else "no trace"
        raise TraceError(
            f"{directory} holds {what} (*.parquet or *.jsonl); name the directory that a run was "
            "told to write to"
        )
    return data, manifests


def _files_beside(path: Path) -> tuple[list[Path], list[Path]]:
    """The data file, or all of a trace in pieces, and the manifest beside it if there is one."""
    life = life_of(path.stem)
    data = [path] if life == path.stem else _pieces(path.parent, life, path.suffix)
    for name in manifest_names(path.stem):
        if (path.parent / name).is_file():
            return data, [path.parent / name]
    return data, []


def _pieces(directory: Path, life: str, suffix: str) -> list[Path]:
    files = (file for file in directory.iterdir() if file.suffix == suffix)
    return sorted(file for file in files if life_of(file.stem) == life != file.stem)


def _mini_text(path: Path) -> str | None:
    """The text of a file in the mini-language; None if its name or its first bytes show a data
    file."""
    if path.suffix in SUFFIXES:
        return None
    with path.open("rb") as file:
        head = file.read(1024)
        if head.startswith(b"PAR1") or head.lstrip().startswith(b"{"):
            return None
        content = head + file.read()
    if not content.strip():
        raise TraceError(f"{path} is empty; name a trace directory or a file with events")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise TraceError(
            f"{path} is neither Parquet nor JSON Lines nor text; name a trace directory"
        ) from None


def _read_manifests(
    path: Path, manifests: Sequence[Path]
) -> tuple[Manifest | None, dict[str, tuple[str, int]]]:
    """The manifest of all files together, and by the stem of each data file the sha256 of its rows
    and the version of their schema."""
    whole: Manifest | None = None
    hashes: dict[str, tuple[str, int]] = {}
    for file in manifests:
        try:
            manifest = Manifest.from_json(file.read_text(encoding="utf-8"))
        except TraceError as e:
            raise TraceError(f"{file}: {e}") from None
        except UnicodeDecodeError:
            raise TraceError(
                f"{file}: the manifest is not text; restore it, or move it away to read the rows "
                "without it"
            ) from None
        if manifest.sha256:
            stem = file.name.removesuffix("manifest.json").rstrip(".") or "trace"
            hashes[stem] = manifest.sha256, manifest.schema
        if whole is None:
            whole = manifest
        elif (manifest.run, manifest.nodes) != (whole.run, whole.nodes):
            raise TraceError(
                f"{path} holds manifests of several runs or groups ({whole.run!r}, "
                f"{manifest.run!r}); keep one run in a directory"
            )
        else:
            whole = whole.joined(manifest)
    return whole, hashes


def _decode(path: Path, batch_rows: int, found: Findings) -> Iterator[list[Row]]:
    """The rows of a data file, whose format shows in its suffix or else in its first bytes."""
    if path.suffix == ".jsonl" or (path.suffix != ".parquet" and not _looks_like_parquet(path)):
        return jsonl.decode(path, batch_rows, found)
    try:
        from roundelay.trace import parquet
    except ImportError:
        raise TraceError(f"cannot read {path}: {NEEDS_PYARROW}") from None
    return parquet.decode(path, batch_rows, found)


def _looks_like_parquet(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"PAR1"


# Lost rows.


class _RowCounter:
    """Finds lost and repeated rows: the rows of each (proc, inc) must be numbered 0, 1, 2 ..."""

    def __init__(self) -> None:
        self.next: dict[tuple[int, int], int] = {}
        self.missing: Counter[tuple[int, int]] = Counter()
        self.first_missing: dict[tuple[int, int], int] = {}
        self.repeated: Counter[tuple[int, int]] = Counter()

    def count(self, rows: Iterable[Row]) -> None:
        following = self.next
        for row in rows:
            writer, lseq = (row[1], row[2]), row[3]
            expected = following.get(writer, 0)
            if lseq < expected:
                self.repeated[writer] += 1
                continue
            if lseq > expected:
                self.missing[writer] += lseq - expected
                self.first_missing.setdefault(writer, expected)
            following[writer] = lseq + 1

    def problems(self, manifest: Manifest | None) -> list[str]:
        if manifest is None:
            found = [
                "there is no manifest, so rows may be missing at the end and nodes have no names: "
                "the run was cut short, or the manifest was not copied"
            ]
        elif manifest.rows is None:
            found = ["the manifest does not count the rows, so some may be missing at the end"]
        else:
            found = []
        if manifest is not None:
            found = manifest.cut_short() + found
        lines = [
            sentence
            for writer in sorted(self.next.keys() | _writers(manifest))
            if (sentence := self._problem(writer, manifest))
        ]
        if len(lines) > PROBLEMS_MAX:
            lines[PROBLEMS_MAX:] = [f"and {len(lines) - PROBLEMS_MAX} more nodes lack rows"]
        return found + lines

    def _problem(self, writer: tuple[int, int], manifest: Manifest | None) -> str:
        missing, repeated = self.missing[writer], self.repeated[writer]
        there = self.next.get(writer, 0) - missing + repeated
        counts = None if manifest is None else manifest.rows
        expected = None if counts is None else counts.get(f"{writer[0]}.{writer[1]}", 0)
        facts = []
        if expected is not None and there != expected:
            facts.append(f"{there} rows where the manifest counts {expected}")
        if missing:
            facts.append(f"{missing} missing from lseq {self.first_missing[writer]} on")
        if repeated:
            facts.append(f"{repeated} repeated or out of order (is a file there twice?)")
        if not facts:
            return ""
        name = str(writer[0]) if manifest is None else manifest.name(writer[0])
        return f"rows of {name}, incarnation {writer[1]}: {', '.join(facts)}"


def _writers(manifest: Manifest | None) -> set[tuple[int, int]]:
    if manifest is None or manifest.rows is None:
        return set()
    return {(int(p), int(i)) for p, _, i in (key.partition(".") for key in manifest.rows)}
