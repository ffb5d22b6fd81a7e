"""The live verdicts on one run: its rows are merged, and given to the online checker."""

from collections import deque
from collections.abc import Collection, Iterator, Mapping
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from roundelay.check import Profile, Standing, Verdict, profile_of
from roundelay.check.online import COVERED, OnlineChecker
from roundelay.core.effects import Kind
from roundelay.pipeline.live.measures import Measures
from roundelay.pipeline.live.merge import ALL, NOBODY, WRITTEN, Known, Merge, Writer
from roundelay.pipeline.live.trails import Trail
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import COLUMNS, Row

OWED_BY_OTHERS = frozenset({"T4", "D1", "M10", "S1", "S1d", "S4", "S6", "K3"})
"""Properties that would be found broken if rows of another node are missing at the end of its life:
that it sent something, received something, or let go of something."""

WINDOW_PACKETS = 8192
"""Packets of each view that the checker remembers one by one. Too few: verdicts on nodes that lag
behind become inconclusive; too many: what is saved after each batch is larger."""

SILENT_S = 5.0
"""Seconds without a row after which a node is not waited for. Shorter: a node that is only slow is
given up, and its run is judged no more; longer: a node that was killed delays all verdicts."""

HOLD_S = 10.0
"""Seconds that rows wait for a node that does write, but whose clock is far behind those of others,
as it hears nothing of them. Shorter: a run is judged no more after a short partition; longer: a
partition delays all verdicts for longer, and more rows wait."""

WAITING_MAX = 1_000_000
"""Rows of a run that wait at most; then they do not wait any longer. More: memory; fewer: a fast
run is judged no more as soon as one of its nodes lags behind."""

ROWS = 65_536
"""Rows that are objects at the same time. More: memory; fewer: each column is taken more often."""


class RunJudge:
    """Judges one run while it goes on."""

    def __init__(self, manifest: Manifest, *, one_clock: bool) -> None:
        self.manifest = manifest
        self.one_clock = one_clock
        self.profile = profile_of(manifest)
        self.covered, self.left = divided(self.profile)
        self.merge = Merge()
        self.measures = Measures(one_clock=one_clock)
        self.rows = 0
        """Rows judged."""
        self.doubts: list[str] = []
        """Why some or all properties are not judged any more, of which nobody was told yet."""
        self._given_up: set[Writer] = set()
        self._over: set[Writer] = set()
        """Lives that crashed, as their rows say."""
        self._heard: dict[Writer | str, float] = {}
        """When something came of a life, or it was first seen; by trail if that names no life."""
        self.news: list[Verdict] = []
        """Breaches that nobody was told of yet."""
        self._ends: deque[tuple[float, int]] = deque()
        """Where the rows ended, at some times of late."""
        self._checker = OnlineChecker(
            manifest.nodes,
            self.covered,
            manifest.resilience,
            WINDOW_PACKETS,
            on_breach=self.news.append,
        )

    def add(self, rows: Any, now: float) -> None:
        """New rows of the run, in any order; `now` is in seconds."""
        last = rows.filter(pc.equal(rows.column("kind"), str(Kind.CRASH)))
        self._over |= set(_writers(last))
        for writer in set(_writers(rows)):
            self._heard[writer] = now
        for proc, _ in self.merge.add(rows)[:1]:
            self._doubt(
                self.covered,
                f"the trace of {self.manifest.name(proc)} came late, after others had gone on "
                "without it",
            )

    def awaits(self, trail: Trail, now: float) -> bool:
        """Whether somebody may still write rows that come before those of others. Who is seen for
        the first time may."""
        if trail.closed or trail.writer in self._over:
            return False
        return now - self._heard.setdefault(trail.writer or trail.name, now) < SILENT_S

    def give_up(self, writer: Writer, manifest: Manifest | None) -> None:
        """A node is not waited for any more. If it was killed, or seems so, rows that it wrote at
        last may be lost."""
        if manifest is not None and (not manifest.ended or writer in self._over):
            return
        if writer not in self._given_up:
            self._given_up.add(writer)
            name = self.manifest.name(writer[0])
            self._doubt(
                [name for name in self.covered if name in OWED_BY_OTHERS],
                f"node {name} wrote nothing for long and did not stop in good order; its last rows "
                "may be lost",
            )

    def _doubt(self, properties: Collection[str], reason: str) -> None:
        self._checker.doubt(properties, reason)
        self.doubts.append(reason)

    def judge(
        self, waited_for: Collection[Writer | None], now: float, *, one_behind: bool = False
    ) -> int:
        """Judge what comes before all rows that these may still write; None among them is somebody
        of whom nothing is known. `now` is in seconds. With `one_behind` what came since the last
        time waits, as a node may have begun of which the next rows will tell first. Returns how
        many rows there were."""
        lives = self.merge.lives
        most = ALL
        if one_behind:
            most = self._ends[-1][1] if self._ends else NOBODY
        until = min([ALL, *(lives[w].last if w in lives else NOBODY for w in waited_for)])
        table = self.merge.take(min(max(until, self._waited_enough(now)), most, self.merge.end()))
        if table is None:
            return 0
        append, measure = self._checker.append, self.measures.append
        for start in range(0, table.num_rows, ROWS):
            for row in rows_of(table.slice(start, ROWS)):
                append(row)
                measure(row)
        self.rows += int(table.num_rows)
        return int(table.num_rows)

    def _waited_enough(self, now: float) -> int:
        """What comes before this place has waited for so long that it waits for nobody."""
        self._ends.append((now, self.merge.end()))
        while len(self._ends) > 1 and self._ends[1][0] <= now - HOLD_S:
            self._ends.popleft()
        if self.waiting > WAITING_MAX:
            return ALL
        since, end = self._ends[0]
        return end if since <= now - HOLD_S else NOBODY

    @property
    def waiting(self) -> int:
        """How many rows wait for others."""
        return 0 if self.merge.waiting is None else int(self.merge.waiting.num_rows)

    @property
    def oldest(self) -> float | None:
        """When the oldest row that is not judged was written; None if there is none."""
        rows = self.merge.waiting
        if rows is None or WRITTEN not in rows.column_names:
            return None
        oldest: float | None = pc.min(rows.column(WRITTEN)).as_py()
        return oldest

    def verdicts(self) -> list[Verdict]:
        """What is known by now. A breach that was found is never taken back."""
        return self._checker.verdicts()

    @property
    def violations(self) -> list[Verdict]:
        """The breaches that were found, also those that were told long ago."""
        return self._checker.violations

    @property
    def violated(self) -> bool:
        return bool(self.violations)

    def save(self) -> dict[str, Any]:
        """Its state as JSON has it, but for the rows that wait."""
        merge = self.merge
        return {
            "manifest": self.manifest.to_json(),
            "one_clock": self.one_clock,
            "rows": self.rows,
            "given_up": sorted(self._given_up),
            "over": sorted(self._over),
            "given": merge.given,
            "late": merge.late,
            "lives": [[*writer, known.floor, known.last] for writer, known in merge.lives.items()],
            "checker": self._checker.save(),
        }

    def load(self, state: Mapping[str, Any], waiting: Any) -> None:
        """Go on from a saved state and the rows that waited then."""
        self.rows = state["rows"]
        self._given_up = {(proc, inc) for proc, inc in state["given_up"]}
        self._over = {(proc, inc) for proc, inc in state["over"]}
        merge = self.merge
        merge.given, merge.late, merge.waiting = state["given"], state["late"], waiting
        for proc, inc, floor, last in state["lives"]:
            merge.lives[proc, inc] = Known(floor=floor, last=last)
        self._checker.load(state["checker"])
        self.news.clear()


def _writers(rows: Any) -> Iterator[Writer]:
    pairs = pa.table([rows.column("proc"), rows.column("inc")], ["proc", "inc"])
    some = pairs.group_by(["proc", "inc"]).aggregate([])
    return zip(some.column("proc").to_pylist(), some.column("inc").to_pylist(), strict=True)


def divided(held: Profile) -> tuple[list[str], list[str]]:
    """What is promised, by whether it can be judged live."""
    promised = [e.property for e in held.entries if e.standing is not Standing.OPTIONAL]
    return [p for p in promised if p in COVERED], [p for p in promised if p not in COVERED]


_NAMES = tuple(COLUMNS)
_VIEW = itemgetter("seq", "rep", "kind")


def rows_of(table: Any) -> Iterator[Row]:
    """Rows of an Arrow table that has all columns."""
    count = table.num_rows
    columns = []
    for name in _NAMES:
        array = table.column(name)
        if array.null_count == count:
            values: list[Any] = [None] * count
        else:
            values = array.to_pylist()
            if COLUMNS[name] == "list<int16>":
                values = [one and tuple(one) for one in values]
            elif COLUMNS[name] == "view":
                values = [one and _VIEW(one) for one in values]
        columns.append(values)
    return map(Row._make, zip(*columns, strict=True))
