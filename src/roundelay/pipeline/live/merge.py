"""The rows of several nodes in one order, as far as nobody can come before them any more.

The order is that of (lam, proc, lseq): a cause has a smaller Lamport clock than its effect. A node
that starts again begins with a small clock, though what it does comes after what the run has done
by then; so its rows are *placed* at that point until its clock has caught up.

Rows wait as Arrow tables, and become objects only once it is their turn.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from roundelay.core.value import value

PLACE = "place"
"""A column: where a row stands in the order of the run."""

WRITTEN = "written"
"""A column: when the file of a row was written, in seconds since 1970."""

NOBODY = -1
"""The place before all rows."""

ALL = 1 << 62
"""A place behind all rows."""

Writer = tuple[int, int]
"""A node's number and incarnation."""


@value
class Known:
    """What is known of one life of a node."""

    floor: int
    """No row of it is placed before."""
    last: int
    """Where its latest row is placed: no later one comes before that."""


class Merge:
    """The rows of one run that wait, and how far they were given out."""

    def __init__(self) -> None:
        self.lives: dict[Writer, Known] = {}
        self.given = 0
        """All rows placed before this were given out."""
        self.late = 0
        """Rows that came after their turn. They are not given out any more."""
        self.waiting: Any = None
        """A table, sorted by nothing; None before there is any row."""

    def add(self, rows: Any) -> list[Writer]:
        """Rows of the run, of any nodes, each node's without a hole. Returns whose came late."""
        proc, inc, lseq, lam = (_numbers(rows, name) for name in ("proc", "inc", "lseq", "lam"))
        total = rows.column("gseq").null_count == 0
        if total:
            lam = _numbers(rows, "gseq")  # The simulator knows the order.
        places = np.zeros(len(proc), np.int64)
        for writer in sorted(set(zip(proc.tolist(), inc.tolist(), strict=True))):
            mine = np.flatnonzero((proc == writer[0]) & (inc == writer[1]))
            mine = mine[np.argsort(lseq[mine], kind="stable")]
            known = self.lives.get(writer)
            floor = (0 if total else self._begin(writer[0])) if known is None else known.floor
            last = floor if known is None else known.last
            placed = np.maximum.accumulate(np.maximum(lam[mine], last))
            places[mine] = placed
            self.lives[writer] = Known(floor=floor, last=int(placed[-1]))
        table = rows.append_column(PLACE, pa.array(places))
        behind = places < self.given
        late: list[Writer] = []
        if behind.any():
            self.late += int(behind.sum())
            late = sorted(set(zip(proc[behind].tolist(), inc[behind].tolist(), strict=True)))
            table = table.filter(pa.array(~behind))
        parts = [table] if self.waiting is None else [self.waiting, table]
        self.waiting = pa.concat_tables(parts, promote_options="default")
        return late

    def take(self, until: int) -> Any:
        """The rows placed before `until`, in order; None if there are none."""
        if until <= self.given or self.waiting is None:
            return None
        self.given = until
        ready = pc.less(self.waiting.column(PLACE), until)
        rows = self.waiting.filter(ready)
        self.waiting = self.waiting.filter(pc.invert(ready)).combine_chunks()
        if not rows.num_rows:
            return None
        names = (PLACE, "lam", "proc", "inc", "lseq")
        return rows.sort_by([(name, "ascending") for name in names])

    def end(self) -> int:
        """A place behind all rows that are known."""
        return max([known.last for known in self.lives.values()], default=NOBODY) + 1

    def _begin(self, proc: int) -> int:
        """Where the rows of a new life are placed at least: behind what was given out, and behind
        the node's earlier lives."""
        before = [known.last + 1 for (other, _), known in self.lives.items() if other == proc]
        # What depends on these rows was not given out. At the same place it has a greater clock.
        return max([self.given, *before])


def _numbers(rows: Any, name: str) -> Any:
    return rows.column(name).to_numpy().astype(np.int64)
