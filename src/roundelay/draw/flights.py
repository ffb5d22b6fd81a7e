"""Finds the arrows of a diagram: who sent which frame to whom, and whether it arrived."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from enum import StrEnum

from roundelay.core.effects import Kind
from roundelay.core.value import value
from roundelay.trace.schema import LOWER_LAYER, WORLD, Row


class ArrowKind(StrEnum):
    """What became of a frame, or of a message if the trace has no rows of frames."""

    ARRIVED = "arrived"
    COPY = "copy"
    """A further copy arrived."""
    LOST = "lost"
    """The network lost it."""
    REFUSED = "refused"
    """The receiver dropped it."""
    IMPLIED = "implied"
    """It was delivered, but the trace has no row of its arrival."""
    OPEN = "open"
    """One end is not in the diagram."""


@value
class Flight:
    """One arrow. `source` and `target` are indices of rows; None if that end is not shown."""

    kind: ArrowKind
    source: int | None
    target: int | None
    sender: int | None
    receiver: int | None
    """The numbers of the nodes; None if the trace does not tell."""
    transmission: int
    """The same number for all arrows of one frame."""


def flights(rows: Sequence[Row], shown: Sequence[int]) -> list[Flight]:
    """All arrows that begin or end in a shown row."""
    if any(rows[i].kind in (Kind.SEND, Kind.ARRIVE) for i in shown):
        found = _frames(rows, shown)
    else:
        found = _messages(rows, shown)
    visible = set(shown)
    return [_clip(flight, visible) for flight in found]


def _clip(flight: Flight, visible: set[int]) -> Flight:
    source = flight.source if flight.source in visible else None
    target = flight.target if flight.target in visible else None
    kind = flight.kind
    if kind is not ArrowKind.LOST and (source is None or target is None):
        kind = ArrowKind.OPEN
    return Flight(kind, source, target, flight.sender, flight.receiver, flight.transmission)


def _frames(rows: Sequence[Row], shown: Sequence[int]) -> Iterator[Flight]:
    sends: dict[int, int] = {}
    for i, row in enumerate(rows):
        if row.kind == Kind.SEND and row.pkt is not None:
            sends.setdefault(row.pkt, i)
    arrived = {(row.pkt, row.proc) for row in rows if row.kind == Kind.ARRIVE}
    answered = {row.pkt for row in rows if row.kind in (Kind.ARRIVE, Kind.DROP)}
    seen: set[tuple[int, int]] = set()
    visible = set(shown)
    for i, row in enumerate(rows):
        again = False
        if row.kind == Kind.ARRIVE and row.pkt is not None:
            again = (row.pkt, row.proc) in seen
            seen.add((row.pkt, row.proc))
        source = sends.get(row.pkt) if row.pkt is not None else None
        if i not in visible and source not in visible:
            continue
        sender = rows[source].proc if source is not None else None
        transmission = source if source is not None else i
        if row.kind == Kind.ARRIVE:
            kind = ArrowKind.COPY if again else ArrowKind.ARRIVED
            sender = sender if sender is not None else row.peer
            yield Flight(kind, source, i, sender, row.proc, transmission)
        elif row.kind == Kind.DROP and row.proc == WORLD:
            yield Flight(ArrowKind.LOST, source, i, sender, row.peer, transmission)
        elif row.kind == Kind.DROP and row.pkt is not None and (row.pkt, row.proc) not in arrived:
            sender = sender if sender is not None else row.peer
            yield Flight(ArrowKind.REFUSED, source, i, sender, row.proc, transmission)
        elif row.kind == Kind.SEND and row.pkt not in answered and row.peer is not None:
            yield Flight(ArrowKind.OPEN, i, None, row.proc, row.peer, i)


def _messages(rows: Sequence[Row], shown: Sequence[int]) -> Iterator[Flight]:
    """Arrows of messages, for a trace without rows of frames."""
    visible = set(shown)
    origins = _Origins(rows)
    obtained: set[tuple[int, int]] = set()
    for i, row in enumerate(rows):
        if row.kind == Kind.DROP and row.proc == WORLD and i in visible:
            yield Flight(ArrowKind.LOST, None, i, None, row.peer, i)
        if row.kind not in (Kind.RECEIVE, Kind.DELIVER) or row.layer == LOWER_LAYER:
            continue
        for source in origins.of(row):
            again = (source, row.proc) in obtained
            obtained.add((source, row.proc))
            if row.proc == rows[source].proc or not (i in visible or source in visible):
                continue
            if row.kind == Kind.RECEIVE:
                kind = ArrowKind.COPY if again else ArrowKind.ARRIVED
            elif again:
                continue
            else:
                kind = ArrowKind.IMPLIED
            yield Flight(kind, source, i, rows[source].proc, row.proc, source)


class _Origins:
    """Finds the originate row of a message; one row may cover very many messages."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._spans: dict[tuple[int | None, int | None], list[tuple[int, int, int]]] = {}
        for i, row in enumerate(rows):
            if row.kind != Kind.ORIGINATE or row.layer == LOWER_LAYER:
                continue
            if row.m_seq is not None:
                span = row.m_seq, row.m_seq + max(row.count, 1), i
                self._spans.setdefault((row.m_src, row.m_inc), []).append(span)
        for spans in self._spans.values():
            spans.sort()

    def of(self, row: Row) -> list[int]:
        """The rows that originated messages of `row`."""
        if row.m_seq is None:
            return []
        spans = self._spans.get((row.m_src, row.m_inc), [])
        end = row.m_seq + max(row.count, 1)
        found: list[int] = []
        for place in range(bisect_left(spans, (end,)) - 1, -1, -1):
            first, last, i = spans[place]
            if last > row.m_seq:
                found.append(i)
            elif first < row.m_seq:
                break  # Spans do not overlap in a sound trace: all before it end earlier still.
        # A message originated twice keeps its first origin.
        return found[-1:] if row.count == 1 else found[::-1]
