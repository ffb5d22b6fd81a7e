"""Puts all rows of a trace into one order."""

import heapq
from collections import defaultdict
from collections.abc import Iterable

from roundelay.core.effects import Kind
from roundelay.trace.schema import Row


def ordered(rows: Iterable[Row]) -> list[Row]:
    """The rows in the order of the simulator if they have it.

    Real nodes have no common order. Their rows are merged: each node's own order is kept, every
    arrival comes after its send, and apart from that the clock decides.
    """
    found = list(rows)
    if all(row.gseq is not None for row in found):
        return sorted(found, key=lambda row: row.gseq or 0)
    return _merge(sorted(found, key=_own_order))


def _own_order(row: Row) -> tuple[int, int, int]:
    return row.proc, row.inc, row.lseq


def _merge(rows: list[Row]) -> list[Row]:
    """Sort topologically by the nodes' own orders and the frames between nodes."""
    walls = all(row.wall_ns is not None for row in rows)

    def when(i: int) -> tuple[int, int, int]:
        row = rows[i]
        return (row.wall_ns or 0) if walls else row.t_ns, row.lam, i

    after: defaultdict[int, list[int]] = defaultdict(list)
    waits = [0] * len(rows)

    def edge(first: int, second: int) -> None:
        after[first].append(second)
        waits[second] += 1

    sends = {row.pkt: i for i, row in enumerate(rows) if row.kind == Kind.SEND}
    for i, row in enumerate(rows):
        if i and rows[i - 1].proc == row.proc:
            edge(i - 1, i)
        sent = sends.get(row.pkt) if row.pkt is not None and row.kind != Kind.SEND else None
        if sent is not None and rows[sent].proc != row.proc:
            edge(sent, i)

    ready = [when(i) for i in range(len(rows)) if not waits[i]]
    heapq.heapify(ready)
    done = [False] * len(rows)
    stuck = iter(sorted(range(len(rows)), key=when))
    result: list[Row] = []
    while len(result) < len(rows):
        # If no row is ready, the trace contradicts itself: its earliest row goes first.
        i = heapq.heappop(ready)[2] if ready else next(j for j in stuck if not done[j])
        if done[i]:
            continue
        done[i] = True
        result.append(rows[i])
        for j in after[i]:
            waits[j] -= 1
            if waits[j] == 0:
                heapq.heappush(ready, when(j))
    return result
