"""Happened-before between processes, for traces of real nodes, which have no total order.

The certain order is that of each process's own rows, joined by frames: a frame was sent before any
copy of it arrived. Vector clocks are computed once per trace, one entry per process.
"""

from collections.abc import Sequence

from roundelay.core.effects import Kind
from roundelay.trace.schema import Row

Place = tuple[int, int, int]
"""A row's (proc, inc, lseq): its identity."""


class Causality:
    """Vector clocks over the rows of a trace, given process by process in their own order."""

    def __init__(self, rows: Sequence[Row]) -> None:
        chains: dict[int, list[Row]] = {}
        for row in rows:
            chains.setdefault(row.proc, []).append(row)
        self._slot = {proc: slot for slot, proc in enumerate(sorted(chains))}
        self._clock: dict[Place, tuple[int, ...]] = {}
        self._compute(chains)

    def happened_before(self, first: Row, second: Row) -> bool:
        """Whether `first` certainly happened before `second`."""
        a, b = self._clock.get(_place(first)), self._clock.get(_place(second))
        if a is None or b is None or a == b:
            return False
        return a[self._slot[first.proc]] <= b[self._slot[first.proc]]

    def _compute(self, chains: dict[int, list[Row]]) -> None:
        """Walk all processes together; one waits at an arrival until the frame was sent."""
        sent: dict[int, tuple[int, ...]] = {}
        waiting: dict[int, list[int]] = {}
        sends = {
            row.pkt
            for chain in chains.values()
            for row in chain
            if row.kind == Kind.SEND and row.pkt is not None
        }
        next_row = dict.fromkeys(chains, 0)
        now = {proc: [0] * len(chains) for proc in chains}
        ready = sorted(chains)
        while ready:
            proc = ready.pop()
            chain, clock, slot = chains[proc], now[proc], self._slot[proc]
            while next_row[proc] < len(chain):
                row = chain[next_row[proc]]
                if row.kind == Kind.ARRIVE and row.pkt in sends:
                    assert row.pkt is not None
                    if row.pkt not in sent:
                        waiting.setdefault(row.pkt, []).append(proc)
                        break
                    for i, tick in enumerate(sent[row.pkt]):
                        clock[i] = max(clock[i], tick)
                clock[slot] += 1
                next_row[proc] += 1
                self._clock[_place(row)] = tuple(clock)
                if row.kind == Kind.SEND and row.pkt is not None:
                    sent[row.pkt] = tuple(clock)
                    ready += waiting.pop(row.pkt, [])


def _place(row: Row) -> Place:
    return row.proc, row.inc, row.lseq
