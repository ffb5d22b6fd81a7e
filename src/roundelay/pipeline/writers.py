"""Who wrote how many rows: whether a trace is all there.

The sentences are those of the local reader and of T1, made from the facts about writers: nobody
has to hold, or even to sort, the rows of a node.
"""

from dataclasses import dataclass

from roundelay.check import Validity, Verdict
from roundelay.trace.manifest import Manifest

PROBLEMS_MAX = 12
"""Sentences about lost rows before the rest is only counted."""

NO_MANIFEST = (
    "there is no manifest, so rows may be missing at the end and nodes have no names: the run was "
    "cut short, or the manifest was not copied"
)
NO_COUNTS = "the manifest does not count the rows, so some may be missing at the end"


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


def counts_of(manifest: Manifest | None) -> dict[tuple[int, int], int] | None:
    """Rows by (proc, inc) as the manifest counts them; None if it does not."""
    if manifest is None or manifest.rows is None:
        return None
    split = ((key.partition("."), count) for key, count in manifest.rows.items())
    return {(int(proc), int(inc)): count for (proc, _, inc), count in split}


def problems(found: list[Log], manifest: Manifest | None, *, total: bool) -> list[str]:
    """Why these logs may not be all that was written."""
    counts = counts_of(manifest)
    said = [NO_MANIFEST] if manifest is None else manifest.cut_short()
    if manifest is not None and counts is None:
        said.append(NO_COUNTS)
    by_writer = {(log.proc, log.inc): log for log in found}
    lines = []
    for writer in sorted(by_writer.keys() | (counts or {}).keys()):
        log = by_writer.get(writer)
        expected = None if counts is None else counts.get(writer, 0)
        if facts := _facts(log, expected, total=total):
            name = str(writer[0]) if manifest is None else manifest.name(writer[0])
            lines.append(f"rows of {name}, incarnation {writer[1]}: {', '.join(facts)}")
    if len(lines) > PROBLEMS_MAX:
        lines[PROBLEMS_MAX:] = [f"and {len(lines) - PROBLEMS_MAX} more nodes lack rows"]
    return said + lines


def _facts(log: Log | None, expected: int | None, *, total: bool) -> list[str]:
    rows = 0 if log is None else log.rows
    facts = []
    if expected is not None and rows != expected:
        facts.append(f"{rows} rows where the manifest counts {expected}")
    if log is not None and log.missing:
        facts.append(f"{log.missing} missing from lseq {log.first_missing} on")
    if log is not None and (log.repeated or (total and not log.ordered)):
        facts.append(f"{log.repeated or 'some'} repeated or out of order (is a file there twice?)")
    return facts


def gap_free(found: list[Log], manifest: Manifest | None) -> Verdict:
    """T1."""
    counts = counts_of(manifest)
    by_writer = {(log.proc, log.inc): log for log in found}
    writers = sorted(by_writer.keys() | (counts or {}).keys())
    for writer in writers:
        log = by_writer.get(writer)
        name = f"#{writer[0]}" if manifest is None else manifest.name(writer[0])
        who = f"{name} in incarnation {writer[1]}"
        if log is not None and not log.whole:
            what = f"lacks row {log.first_missing}" if log.missing else "repeats a row"
            return Verdict("T1", Validity.VIOLATED, len(writers), (), f"the log of {who} {what}")
        rows = 0 if log is None else log.rows
        if counts is not None and counts.get(writer, 0) != rows:
            reason = f"the log of {who} has {rows} rows where {counts.get(writer, 0)} were written"
            return Verdict("T1", Validity.VIOLATED, len(writers), (), reason)
    if not writers:
        return Verdict("T1", Validity.VACUOUS, reason="its premise never occurred")
    if manifest is not None and manifest.ended:
        reason = manifest.cut_short()[0]
        return Verdict("T1", Validity.INCONCLUSIVE, len(writers), (), reason)
    return Verdict("T1", Validity.OK, len(writers))
