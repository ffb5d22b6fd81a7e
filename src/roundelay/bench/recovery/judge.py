"""Compares what journals hold, what the files of a table hold, and what was to be appended."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import pyarrow.parquet as pq

from roundelay.journal.reader import Batch, Reader

SHOWN = 3
"""Sentences about one kind of fault, at most."""


class Entry(NamedTuple):
    """An entry of the log, wherever it was found."""

    at: int
    """The index."""
    term: str
    sender: str
    incarnation: int
    session: str
    number: int
    payload: bytes


COLUMNS = ("index", *Entry._fields[1:])
"""Of the table, in the order of `Entry`."""


def in_journal(path: Path) -> list[Entry]:
    """The committed entries, read by the journal's own reader."""
    reader = Reader(path)
    found: list[Entry] = []
    try:
        reader.refresh()
        for batch in reader.read(reader.first):
            assert isinstance(batch, Batch)
            who = str(batch.term), batch.sender, batch.incarnation, f"{batch.session:016x}"
            found += [
                Entry(batch.index + n, *who, batch.number + n, bytes(payload))
                for n, payload in enumerate(batch.payloads)
            ]
    finally:
        reader.close()
    return found


def in_files(files: Iterable[str]) -> list[list[Entry]]:
    """The rows of each file of a table, in their order there."""
    found = []
    for file in files:
        table = pq.ParquetFile(unquote(urlsplit(file).path)).read(columns=list(COLUMNS))
        columns = [table.column(name).to_pylist() for name in COLUMNS]
        found.append(list(map(Entry._make, zip(*columns, strict=True))))
    return found


def faults(
    journals: dict[str, list[Entry]],
    files: Sequence[Sequence[Entry]],
    appended: Iterable[bytes],
) -> list[str]:
    """What is wrong, in sentences. All that is `appended` must be in the log once; the files must
    hold the log."""
    first, *others = journals
    log = journals[first]
    wrong = [f"the journals of {first} and {o} differ" for o in others if journals[o] != log]
    wrong += _in_order(log, files)
    times = Counter(entry.payload for entry in log)
    lacking = [payload for payload in appended if times[payload] != 1]
    wrong += [f"{p!r} is {times[p]} times in the log" for p in lacking[:SHOWN]]
    return wrong


def _in_order(log: Sequence[Entry], files: Sequence[Sequence[Entry]]) -> list[str]:
    """Every file has consecutive entries in their order, and together they are the log."""
    wrong = []
    at = 0
    for rows in sorted((rows for rows in files if rows), key=lambda rows: rows[0].at):
        if rows[0].at != at:
            wrong.append(f"a file begins with entry {rows[0].at} where {at} is due")
        at = rows[0].at + len(rows)
        if list(rows) != log[rows[0].at : at]:
            wrong.append(f"a file has other rows than the log's entries {rows[0].at} to {at}")
    if at != len(log):
        wrong.append(f"the files end before entry {at}, and the log before {len(log)}")
    return wrong[:SHOWN]
