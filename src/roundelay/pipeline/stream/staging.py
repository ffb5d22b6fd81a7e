"""What tasks leave for the driver, and the manifest that fixes what a batch is.

    STAGING/SESSION/BATCH/part-PARTITION-UNIQUE.arrow   payloads, in their order
    STAGING/SESSION/BATCH/manifest.json                 the files of the batch, in their order

A task that is repeated leaves another file; Spark's ids of attempts would not do as its name, since
each application counts them from 0. The manifest gets its name at once and only once; from then on
the batch is these entries, whatever is repeated, so an entry's number never names another one. A
batch is removed when the next one is fixed: by then Spark knows that it is done. The newest stays,
even if it has no rows: it tells which batches are in the log.
"""

import contextlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import numpy as np
import pyarrow as pa

from roundelay.core.value import value
from roundelay.pipeline.errors import PipelineError

MANIFEST = "manifest.json"
SCHEMA = pa.schema([("payload", pa.binary())])


@value
class Part:
    """A file of a batch."""

    name: str
    entries: int
    bytes: int


@value
class Batch:
    """What the manifest of a batch says."""

    parts: tuple[Part, ...]
    """In the order of their entries."""
    offsets: str
    """See `noted_offsets`."""

    @property
    def entries(self) -> int:
        return sum(part.entries for part in self.parts)


@value
class Chunk:
    """Consecutive entries of a batch."""

    first: int
    """Within the batch."""
    sizes: bytes
    """Four bytes for each payload, the greatest byte first."""
    payloads: memoryview
    """One behind the other."""


def batch_directory(staging: Path, session: str, batch: int) -> Path:
    return _session_directory(staging, session) / str(batch)


def write_part(directory: Path, partition: int, payloads: Iterable[Any]) -> Part:
    """Leave arrays of binary values as a file of their own, which is on disk when this returns."""
    directory.mkdir(parents=True, exist_ok=True)
    name = f"part-{partition:06}-{uuid4().hex}.arrow"
    beside = directory / f"{name}.new"
    entries = size = 0
    try:
        with pa.OSFile(str(beside), "wb") as file, pa.ipc.new_file(file, SCHEMA) as writer:
            for array in payloads:
                writer.write_batch(pa.RecordBatch.from_arrays([array], schema=SCHEMA))
                entries += len(array)
                size += _bytes_of(array)
        _sync(beside)
        os.replace(beside, directory / name)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    return Part(name, entries, size)


def fix(directory: Path, batch: Batch) -> Batch:
    """Make this the batch, unless it was fixed before; what it is."""
    known = fixed(directory)
    if known is not None:
        return known
    directory.mkdir(parents=True, exist_ok=True)
    parts = [{"name": p.name, "entries": p.entries, "bytes": p.bytes} for p in batch.parts]
    beside = directory / f"{MANIFEST}.{os.getpid()}.new"
    with beside.open("w") as file:
        json.dump({"parts": parts, "offsets": batch.offsets}, file)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(beside, directory / MANIFEST)  # Unlike renaming, it replaces nothing.
    except FileExistsError:
        pass
    except OSError:  # A file system without links.
        if not (directory / MANIFEST).exists():
            os.replace(beside, directory / MANIFEST)
    beside.unlink(missing_ok=True)
    _sync(directory)
    _sync(directory.parent)
    found = fixed(directory)
    assert found is not None
    return found


def fixed(directory: Path) -> Batch | None:
    """The batch; None if it is not fixed."""
    path = directory / MANIFEST
    try:
        found = json.loads(path.read_bytes())
        parts = [Part(p["name"], int(p["entries"]), int(p["bytes"])) for p in found["parts"]]
        return Batch(tuple(parts), str(found.get("offsets", "")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise PipelineError(
            f"{path} cannot be read ({e}); it says which rows the batch consists of, so do not "
            "remove it: see that the directory is shared and whole"
        ) from None


def noted_offsets(checkpoint: Path | None, batch: int) -> str:
    """A digest of what Spark noted of a batch before it ran: which offsets, and when it planned it.
    A batch that is repeated has the same, one that is planned anew under its number has not. Empty
    if it cannot be read."""
    if checkpoint is None:
        return ""
    try:
        return sha256((checkpoint / "offsets" / str(batch)).read_bytes()).hexdigest()
    except OSError:
        return ""


def chunks(
    directory: Path, parts: Iterable[Part], entries_max: int, bytes_max: int
) -> Iterator[Chunk]:
    """The entries of a batch in their order, so many at a time; one that is larger than `bytes_max`
    comes alone."""
    first = 0
    for part in parts:
        entries = 0
        for array in _arrays(directory / part.name):
            for chunk in _chunks(array, entries_max, bytes_max):
                count = len(chunk.sizes) // 4
                yield Chunk(first, chunk.sizes, chunk.payloads)
                first += count
                entries += count
        if entries != part.entries:
            raise PipelineError(f"{directory / part.name} has {entries} rows, not {part.entries}")


def newest(staging: Path, session: str) -> int | None:
    """The last batch that was fixed, if there is any."""
    manifests = _session_directory(staging, session).glob(f"*/{MANIFEST}")
    found = [int(path.parent.name) for path in manifests if path.parent.name.isdecimal()]
    return max(found, default=None)


def remove_before(staging: Path, session: str, batch: int) -> None:
    """Remove what batches before this one left."""
    with contextlib.suppress(OSError):
        for path in _session_directory(staging, session).iterdir():
            if path.name.isdecimal() and int(path.name) < batch:
                shutil.rmtree(path, ignore_errors=True)


def remove_parts(directory: Path, parts: Iterable[Part]) -> None:
    """Remove files that are of no use, but never one that the manifest names."""
    known = fixed(directory)
    named = {part.name for part in known.parts} if known is not None else set()
    for part in parts:
        if part.name not in named:
            with contextlib.suppress(OSError):
                (directory / part.name).unlink()


def _session_directory(staging: Path, session: str) -> Path:
    return staging / quote(session, safe="").replace(".", "%2E")


def _arrays(path: Path) -> Iterator[Any]:
    try:
        with pa.memory_map(str(path)) as file, pa.ipc.open_file(file) as reader:
            for number in range(reader.num_record_batches):
                yield reader.get_batch(number).column(0)
    except (OSError, pa.ArrowInvalid) as e:
        raise PipelineError(
            f"{path} cannot be read ({e}); the driver and all executors must share the directory "
            "that the option staging names"
        ) from None


def _chunks(array: Any, entries_max: int, bytes_max: int) -> Iterator[Chunk]:
    _, offsets_buffer, data = array.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int32)[array.offset : array.offset + len(array) + 1]
    view = memoryview(data) if data is not None else memoryview(b"")
    start = 0
    while start < len(array):
        fits = int(np.searchsorted(offsets, int(offsets[start]) + bytes_max, "right")) - 1
        end = min(max(fits, start + 1), start + entries_max, len(array))
        sizes = np.diff(offsets[start : end + 1]).astype(">u4").tobytes()
        yield Chunk(0, sizes, view[int(offsets[start]) : int(offsets[end])])
        start = end


def _bytes_of(array: Any) -> int:
    if not len(array):
        return 0
    offsets = np.frombuffer(array.buffers()[1], np.int32)
    return int(offsets[array.offset + len(array)]) - int(offsets[array.offset])


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
