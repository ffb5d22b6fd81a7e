"""Moments of a group: the rows that its nodes keep of them, and their space-time diagrams.

A node under load keeps rows for seconds only. So the rows of moments that somebody will ask for,
those of views, faults and nodes that end, are fetched soon after them and kept here.
"""

import threading
import time
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from roundelay import draw
from roundelay.core.effects import Kind
from roundelay.runtime.client import ClientError
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import WORLD, Row
from roundelay.web.chronicle import Chronicle
from roundelay.web.watching import Watched, Watching

EVENTS, EVENTS_MAX = 220, 800
"""Events in a diagram, by default and at most. With more it is slow and hard to read."""
BEFORE = 0.4
"""The share of them that lie before the moment."""
NEAR_NS, THERE_NS = 3_000_000_000, 300_000_000
"""Rows further away than the first have nothing to do with the moment; if none is as near as the
second, its rows are gone."""
MOMENTS_MAX = 40
"""Moments that are kept: some 20 MB. Fewer: older ones cannot be drawn any more."""
AFTER_NS = 1_200_000_000
"""How long after a moment its rows are fetched. Too short: what follows is missing; too long: nodes
under load have forgotten it."""
LATE_NS = 30_000_000_000
"""Moments that are told of later than this are not fetched: nobody has rows of them any more."""
APART_NS = 1_000_000_000
"""Moments of one group that are less than this apart share their rows: a group whose views change
without end must not be asked without end."""
EVERY_S = 0.4
"""Seconds between two looks for new moments."""


@dataclass(frozen=True)
class Rows:
    """What the nodes of a group kept of a moment."""

    at_ns: int
    rows: tuple[Row, ...]
    """In order of their times."""
    entered: tuple[Row, ...]
    """Of each node, the view that it had entered before."""
    missing: tuple[str, ...]
    """Nodes that were asked in vain, or could not be."""
    manifest: Manifest

    def views_before(self, start_ns: int) -> list[Row]:
        """Of each node, the view that it had entered last before that time; told as of just then,
        as a diagram counts its times from the first event."""
        known: dict[int, Row] = {}
        for row in (*self.entered, *self.rows):
            if row.kind == Kind.INSTALL and row.t_ns < start_ns:
                known[row.proc] = row
        return [row._replace(t_ns=start_ns - 1) for row in known.values()]

    def has(self, at_ns: int) -> bool:
        """Whether it shows what happened then."""
        place = bisect_left(self.rows, at_ns, key=lambda row: row.t_ns)
        near = self.rows[max(0, place - 1) : place + 1]
        return any(abs(row.t_ns - at_ns) <= THERE_NS for row in near)


@dataclass(frozen=True)
class Drawn:
    """A diagram, or why there is none."""

    svg: str
    sentence: str
    at: float = 0.0
    """Where in the diagram the moment is: 0 at the top, 1 at the bottom."""


class Moments:
    """Fetches, keeps and draws moments."""

    def __init__(self, watching: Watching, chronicle: Chronicle) -> None:
        self._watching = watching
        self._chronicle = chronicle
        self._kept: OrderedDict[int, Rows] = OrderedDict()
        """By entry of the chronicle."""
        self._lock = threading.Lock()
        self._ended = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._keep_all, daemon=True).start()

    def stop(self) -> None:
        self._ended.set()

    def draw(self, group: str, at_ns: int, entry: int = 0, events: int = EVENTS) -> Drawn:
        """The diagram of a time on the clock of this machine; `entry` is the one it is of."""
        with self._lock:
            found = self._kept.get(entry)
        if found is None or not found.has(at_ns):
            found = fetch(self._watching, group, at_ns)
        if found is None:
            return Drawn("", "No node of this group answers, so nobody has rows of that time.")
        if not found.has(at_ns):
            return Drawn(
                "",
                "No rows of that time are kept. Nodes keep them while a page is open, for "
                "recent_s, and less under load.",
            )
        try:
            return self._drawn(group, found, at_ns, events)
        except (LookupError, TypeError, ValueError, AttributeError):
            return Drawn("", "What the nodes told of that time makes no sense.")

    def _drawn(self, group: str, found: Rows, at_ns: int, events: int) -> Drawn:
        chosen = _nearest(found.rows, at_ns, events)
        start, end = chosen[0].t_ns, chosen[-1].t_ns
        faults = [
            Row(Kind.FAULT, WORLD, 0, number, t_ns=t_ns, tag=kind)
            for number, (t_ns, kind) in enumerate(self._chronicle.faults(group, start, end))
        ]
        svg = draw.svg(
            [*found.views_before(start), *faults, *chosen],
            found.manifest,
            window=draw.Window(limit=None),
        )
        sentence = f"{len(chosen)} events, {(end - start) / 1e6:.1f} ms."
        if found.missing:
            sentence += f" Of {', '.join(found.missing)} only what others saw is shown."
        at = bisect_left(chosen, at_ns, key=lambda row: row.t_ns) / len(chosen)
        return Drawn(svg, sentence, round(at, 3))

    def _keep_all(self) -> None:
        seen = 0
        while not self._ended.wait(EVERY_S):
            due = time.monotonic_ns() - AFTER_NS
            for entry, group, t_ns in self._chronicle.notable(seen, due):
                seen = max(seen, entry)
                if t_ns > due - LATE_NS and self._watching.is_watched():
                    self._keep(entry, group, t_ns)

    def _keep(self, entry: int, group: str, t_ns: int) -> None:
        with self._lock:
            kept = [rows for rows in self._kept.values() if rows.manifest.run == group]
        last = kept[-1] if kept else None
        if last is None or abs(t_ns - last.at_ns) > APART_NS:
            last = fetch(self._watching, group, t_ns)
            if last is None or not last.has(t_ns):
                return
        with self._lock:
            self._kept[entry] = last
            while len(self._kept) > MOMENTS_MAX:
                self._kept.popitem(last=False)


def fetch(watching: Watching, group: str, at_ns: int) -> Rows | None:
    """Ask all nodes of a group for their rows of about that time; None if none of them runs."""
    with watching.lock:
        nodes = [w for w in watching.nodes() if w.group == group and w.status is not None]
        status = nodes[0].status if nodes else None
    running = [w for w in nodes if w.state == "up"]
    if not running or status is None:
        return None
    limit = 2 * EVENTS_MAX // len(running)
    rows: list[Row] = []
    entered: list[Row] = []
    with ThreadPoolExecutor(len(running)) as pool:
        for told in pool.map(lambda w: _ask(watching, w, at_ns, limit), running):
            near = [row for row in told if abs(row.t_ns - at_ns) <= NEAR_NS]
            rows += near
            if near:
                before = [row for row in told if row.lseq < near[0].lseq]
                entered += [row for row in before if row.kind == Kind.INSTALL][-1:]
    peers = tuple(sorted(status["peers"]))
    told_of = {row.proc for row in rows}
    return Rows(
        at_ns,
        tuple(sorted(rows, key=lambda row: (row.t_ns, row.proc, row.lseq))),
        tuple(entered),
        tuple(name for number, name in enumerate(peers) if number not in told_of),
        Manifest(run=group, nodes=peers, protocol=str(status["engine"]), mode="views"),
    )


def _ask(watching: Watching, watched: Watched, at_ns: int, limit: int) -> list[Row]:
    """What a node keeps of about that time, on our clock; nothing if it has gone meanwhile."""
    shift_ns = watched.shift_ns
    try:
        told = watching.ask(watched, do="recent", at_ns=at_ns - shift_ns, limit=limit)
        if tuple(told["columns"]) != Row._fields:
            return []
        return [_row(values, shift_ns) for values in told["rows"]]
    except (ClientError, LookupError, TypeError, ValueError):
        return []


def _row(values: Sequence[Any], shift_ns: int) -> Row:
    row = Row._make(tuple(value) if isinstance(value, list) else value for value in values)
    if not all(type(number) is int for number in (row.t_ns, row.proc, row.lseq)):
        raise TypeError("no row")
    return row._replace(t_ns=row.t_ns + shift_ns)


def _nearest(rows: Sequence[Row], at_ns: int, events: int) -> list[Row]:
    """The rows around the moment, some of them before it."""
    place = bisect_left(rows, at_ns, key=lambda row: row.t_ns)
    early = max(round(events * BEFORE), events - (len(rows) - place))
    first = max(0, place - early)
    return list(rows[first : first + events])
