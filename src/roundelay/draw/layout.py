"""Computes the positions of everything in a diagram from the rows of a trace.

Theory of operation
===================

`order` puts all rows in one sequence and `window` chooses some of them. `flights` finds the arrows
between them, and `lines` gives each row a line on the time axis, such that no arrow runs backwards
unless the trace does. This module turns lines into heights and nodes into columns that are wide
enough for most labels; then `labels` finds room for labels beside the marks. `render` writes the
result as SVG.
"""

import dataclasses
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from roundelay.core.effects import Kind
from roundelay.draw import flights, heading, labels, lines, spans
from roundelay.draw.clock import Clock, clock_of, span
from roundelay.draw.flights import ArrowKind, Flight
from roundelay.draw.lines import Between, Lines
from roundelay.draw.order import ordered
from roundelay.draw.scene import (
    Arrow,
    Band,
    Box,
    Column,
    Hold,
    Label,
    Life,
    Mark,
    Rule,
    Scene,
    Tick,
)
from roundelay.draw.text import fit, width
from roundelay.draw.window import Selection, Window, select
from roundelay.draw.wording import Wording
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import WORLD, Row

LINE = 20.0
"""The height of a line, in pixels: a label and some space. With less, labels of neighbouring lines
touch."""
NAMES = 12.0
"""The distance of the node names from the top of the body, in pixels."""
WIDTH_AIM = 1240.0
"""The width of a diagram in pixels beyond which columns do not grow for the sake of their labels;
longer labels are cut."""
WIDTH_MIN = 560.0
"""The smallest width of a diagram, in pixels: headings need it."""
MARK = 7.0
"""Half the side of the square that a mark takes, in pixels."""
LOST_BEFORE = 22.0
"""The distance at which the arrow of a lost frame ends before the lifeline of its receiver, in
pixels."""
CLEAR = 6.0
"""An arrow that comes closer to the mark of another event, in pixels, seems to end there and is
bent."""
BEND = 12.0
"""How far the middle of a bent arrow is moved up or down, in pixels."""
STUB = 30.0
"""The length of an arrow with one end that is not shown, in pixels."""
SIDE = 12.0
"""The margin to the right of the last column, in pixels."""


def layout(
    rows: Sequence[Row],
    manifest: Manifest,
    *,
    witness: Sequence[Row] = (),
    reason: str = "",
    title: str = "",
    window: Window | None = None,
) -> Scene:
    """The positions of everything in the diagram of a trace."""
    sequence = ordered(rows)
    clock = clock_of(sequence)
    wording = Wording(manifest, sequence, clock)
    selection = select(sequence, witness, wording, clock, window or Window())
    arrows = flights.flights(sequence, selection.shown)
    grid = lines.assign(sequence, selection.shown, selection.cuts, arrows, stepped=clock.stepped)
    body = _Body(selection, wording, clock, grid, arrows)
    return heading.add_heading(
        body.scene(), manifest, selection, wording, clock, title=title, reason=reason
    )


class _Body:
    """The lifelines and all that is on them."""

    def __init__(
        self,
        selection: Selection,
        wording: Wording,
        clock: Clock,
        grid: Lines,
        arrows: Sequence[Flight],
    ) -> None:
        self.rows = selection.rows
        self.shown = selection.shown
        self.witness = selection.witness
        self.procs = selection.procs
        self.wording = wording
        self.clock = clock
        self.grid = grid
        self.flights = arrows
        self.places: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        for i in self.shown:
            self.places[self.rows[i].proc, grid.line[i]].append(i)

        # Views entered before the first event shown are named above it.
        first = self.shown[0] if self.shown else 0
        early = {row.proc: i for i, row in enumerate(self.rows[:first]) if row.kind == Kind.INSTALL}
        widths = [
            width(texts[0], labels.SIZE, bold=True)
            for i in (*self.shown, *early.values())
            if self.rows[i].proc in self.procs and (texts := wording.labels(self.rows[i]))
        ]
        names = [width(wording.node(proc), 13, bold=True) for proc in self.procs]
        share = (WIDTH_AIM - 100) / max(len(self.procs), 1) - 2 * labels.REACH
        room = min(max(widths, default=0.0), max(share, 70.0))
        self.axis_x = 10.0 if clock.stepped else 66.0
        self.left = self.axis_x + labels.REACH + max(30.0, min(room, 60.0))
        margin = labels.REACH + max(room, 40.0) + SIDE
        gaps = max(len(self.procs) - 1, 0)
        named = min(max(names, default=0.0), 120.0) + 24
        # Few nodes stand further apart than their labels need: arrows want room too.
        airy = min((WIDTH_MIN - self.left - margin) / max(gaps, 1), 170.0)
        self.pitch = max(84.0, room + 2 * labels.REACH + 4, named, airy)
        self.x = {proc: self.left + self.pitch * n for n, proc in enumerate(self.procs)}
        self.width = max(self.left + self.pitch * gaps + margin, WIDTH_MIN)

        self.first_y = NAMES + 16 + LINE * (1.5 if early else 1.0)
        self.top = NAMES + 14
        self.bottom = self.first_y + LINE * (max(grid.count - 1, 0) + 0.9)

    # Heights

    def y(self, line: int) -> float:
        return self.first_y + LINE * line

    def height(self, i: int) -> float:
        """The height of row `i`; if it is not shown, a height just above the next row that is."""
        if i in self.grid.line:
            return self.y(self.grid.line[i])
        place = bisect_left(self.shown, i)
        if place == 0:
            return self.top
        if place == len(self.shown):
            return self.bottom
        line = self.grid.line[self.shown[place]]
        cut = line - 1 in self.grid.between
        return self.y(line) - (LINE if cut else LINE / 2)

    def lit(self, i: int | None) -> bool:
        return not self.witness or i in self.witness

    # The parts

    def scene(self) -> Scene:
        lives: list[Life] = []
        bands: list[tuple[int, Band]] = []
        holds: list[Hold] = []
        colours = spans.colours_of(self.rows)
        for proc, x in self.x.items():
            rows = [(i, row) for i, row in enumerate(self.rows) if row.proc == proc]
            lives += spans.lives(rows, x, top=self.top, bottom=self.bottom, height=self.height)
            bands += spans.bands(
                rows, x, colours, self.wording, bottom=self.bottom, height=self.height, lit=self.lit
            )
            holds += spans.holds(
                rows, x, self.wording, bottom=self.bottom, height=self.height, lit=self.lit
            )
        arrows = list(self._arrows())
        marks = list(self._marks(arrows))
        board = labels.Board(arrows)
        rules = list(self._rules(board))
        columns = tuple(
            Column(
                proc,
                fit(self.wording.node(proc), self.pitch - 16, 13, bold=True),
                self.wording.node(proc),
                x,
            )
            for proc, x in self.x.items()
        )
        names = [self.y(n) for n, (what, _) in self.grid.between.items() if what is Between.NAMES]
        foot = self.bottom + 14
        return Scene(
            width=self.width,
            height=foot + 18,
            title="",
            description="",
            headings=(),
            legend=(),
            body_top=0.0,
            axis_x=self.axis_x,
            columns=columns,
            names=(NAMES, *names, foot),
            lives=tuple(lives),
            bands=tuple(band for _, band in bands),
            holds=tuple(holds),
            rules=tuple(rules),
            ticks=tuple(self._ticks()),
            arrows=tuple(arrows),
            marks=tuple(marks),
            labels=tuple(self._labels(board, marks, rules, columns, names, bands)),
            has_witness=bool(self.witness),
        )

    def _marks(self, arrows: Sequence[Arrow]) -> Iterator[Mark]:
        for arrow in arrows:
            if arrow.kind is ArrowKind.LOST and arrow.target is not None:
                facts = self.wording.facts(self.rows[arrow.target])
                yield Mark("lost", arrow.x1, arrow.y1, arrow.target, facts, self.lit(arrow.target))
        # A frame may leave at the place of another event, whose mark then covers the frame's.
        for i in sorted(self.shown, key=lambda i: (self.rows[i].kind != Kind.SEND, i)):
            row = self.rows[i]
            if row.proc not in self.x or (row.kind == Kind.ARRIVE and i not in self.witness):
                continue  # An arrowhead is mark enough, but not for a witness.
            facts = self.wording.facts(row)
            yield Mark(shape(row), self.x[row.proc], self.height(i), i, facts, self.lit(i))

    def _arrows(self) -> Iterator[Arrow]:
        stubs: set[tuple[float, float, float, float]] = set()
        for flight in self.flights:
            arrow = self._arrow(flight)
            if arrow is None:
                continue
            if arrow.target is None:  # One stub stands for all copies that go the same way.
                way = arrow.x0, arrow.y0, arrow.x1, arrow.y1
                if way in stubs:
                    continue
                stubs.add(way)
            yield arrow

    def _arrow(self, flight: Flight) -> Arrow | None:
        """The position of an arrow; None if neither end is shown."""
        source, target = flight.source, flight.target
        if source is None and target is None:
            return None
        x0 = self.x.get(self.rows[source].proc) if source is not None else None
        x1 = self.x.get(flight.receiver) if flight.receiver is not None else None
        y0 = self.height(source) if source is not None else None
        y1 = self.height(target) if target is not None else None
        towards = 1.0
        if x0 is not None and x1 is not None:
            towards = 1.0 if x1 >= x0 else -1.0
        elif flight.sender is not None and flight.receiver is not None:
            towards = 1.0 if flight.receiver >= flight.sender else -1.0
        if flight.kind is ArrowKind.LOST:
            if x1 is not None:
                x1 -= towards * LOST_BEFORE
            else:
                x1 = (x0 if x0 is not None else self.left) + towards * LOST_BEFORE
            if y1 is None:
                y1 = (y0 or 0.0) + 0.8 * LINE
            if x0 is None or y0 is None:
                x0, y0 = x1 - towards * STUB, y1 - STUB / 3
        elif source is None and x1 is not None and y1 is not None:
            x0, y0 = x1 - towards * STUB, y1 - STUB / 3
        elif target is None and x0 is not None and y0 is not None:
            x1, y1 = x0 + towards * STUB, y0 + STUB / 3
        if x0 is None or x1 is None or y0 is None or y1 is None:
            return None
        facts = "\n\n".join(
            self.wording.facts(self.rows[i]) for i in (source, target) if i is not None
        )
        loop = source is not None and target is not None and x0 == x1
        lit = not self.witness or (self._in_witness(source) and self._in_witness(target))
        transmission = flight.transmission
        straight = Arrow(
            flight.kind, x0, y0, x1, y1, 0.0, loop, source, target, transmission, facts, lit
        )
        bent = (dataclasses.replace(straight, bend=bend) for bend in (0.0, -BEND, BEND))
        return min(bent, key=self._touched)

    def _touched(self, arrow: Arrow) -> int:
        """How many marks of other nodes the arrow comes too close to."""
        if arrow.loop or arrow.x0 == arrow.x1:
            return 0
        touched = 0
        for proc, x in self.x.items():
            part = (x - arrow.x0) / (arrow.x1 - arrow.x0)
            if not 0.01 < part < 0.99:
                continue
            y = arrow.at(part)[1]
            line = round((y - self.first_y) / LINE)
            touched += abs(self.y(line) - y) < CLEAR and (proc, line) in self.places
        return touched

    def _in_witness(self, i: int | None) -> bool:
        """Whether the row is one of the witness, or is at the same place as one."""
        return i is not None and any(j in self.witness for j in self._rows_at_place(i))

    def _rows_at_place(self, i: int) -> list[int]:
        """The rows at the place of row `i`, itself included."""
        return self.places[self.rows[i].proc, self.grid.line[i]]

    def _rules(self, board: labels.Board) -> Iterator[Rule]:
        for n, (what, number) in self.grid.between.items():
            if what is Between.CUT:
                text = f"{number} event{'s' if number != 1 else ''} left out"
                yield self._rule(board, "cut", self.y(n), text)
            elif what is Between.PAUSE:
                yield self._rule(board, "pause", self.y(n), f"{span(number)} later")
        across: dict[int, list[int]] = {}
        for i in self.shown:
            row = self.rows[i]
            if row.proc == WORLD and row.kind != Kind.DROP:
                across.setdefault(self.grid.line[i], []).append(i)
        for n, found in across.items():
            first = self.rows[found[0]]
            texts = [(self.wording.labels(self.rows[i]) or ("",))[0] for i in found]
            if first.kind == Kind.END:
                texts = ["end", *(text.removeprefix("end ") for text in texts)]
            kind = first.kind if first.kind in (Kind.FAULT, Kind.END) else "other"
            facts = "\n\n".join(self.wording.facts(self.rows[i]) for i in found)
            yield self._rule(board, kind, self.y(n), " ".join(texts), tuple(found), facts)

    def _rule(
        self,
        board: labels.Board,
        kind: str,
        y: float,
        text: str,
        found: tuple[int, ...] = (),
        facts: str = "",
    ) -> Rule:
        """A line with its text in the middle, or between the lifelines where the fewest arrows
        cross it."""
        left, right = self.axis_x + 8, self.width - SIDE
        text = fit(text, right - left - 24, labels.SIZE, bold=True)
        half = width(text, labels.SIZE, bold=True) / 2 + 5
        middle = (left + right) / 2
        places = [middle]
        if half <= self.pitch / 2 - labels.REACH:
            places = [(a + b) / 2 for a, b in pairwise(self.x.values())] or places
        boxes = [Box(x - half, y - 8, x + half, y + 8) for x in places]
        box = min(boxes, key=lambda b: (board.crossings(b), abs(b.x0 + half - middle), b.x0))
        lit = not self.witness or not found or any(i in self.witness for i in found)
        return Rule(kind, y, text, box, found, facts, lit)

    def _ticks(self) -> Iterator[Tick]:
        if self.clock.stepped:
            return
        last_line, last_text = -2, ""
        for i in self.shown:
            line, text = self.grid.line[i], self.clock.tick(self.rows[i].t_ns)
            after = line - 1 in self.grid.between
            if text != last_text and (line >= last_line + 2 or (after and line > last_line)):
                yield Tick(self.y(line), text)
                last_line, last_text = line, text

    def _labels(
        self,
        board: labels.Board,
        marks: Sequence[Mark],
        rules: Sequence[Rule],
        columns: Sequence[Column],
        names: Sequence[float],
        bands: Sequence[tuple[int, Band]],
    ) -> list[Label]:
        for mark in marks:
            board.occupy(Box(mark.x - MARK, mark.y - MARK, mark.x + MARK, mark.y + MARK))
        for rule in rules:
            board.occupy(rule.box)
        for y in names:
            for column in columns:
                half = width(column.name, 13, bold=True) / 2
                board.occupy(Box(column.x - half, y - 9, column.x + half, y + 9))
        requests = [
            request for mark in marks if (request := self._label_request(mark.row, mark.x, mark.y))
        ]
        for i, band in bands:
            if i not in self.grid.line and (
                request := self._label_request(i, band.x, band.y0 + LINE / 2)
            ):
                requests.append(request)
        return labels.place(requests, board)

    def _label_request(self, i: int, x: float, y: float) -> labels.LabelRequest | None:
        row = self.rows[i]
        texts = self.wording.labels(row)
        if not texts or (row.kind == Kind.SEND and self._accompanied(i)):
            return None
        others = sorted(self.x.values())
        before = [at for at in others if at < x - MARK]
        after = [at for at in others if at > x + MARK]
        left = before[-1] + labels.REACH if before else self.axis_x + 6
        right = after[0] - labels.REACH if after else self.width - 4
        urgent = i in self.witness
        lit = self.lit(i) or i not in self.grid.line  # What is not shown is context.
        return labels.LabelRequest(texts, row.kind, x, y, left, right, i, lit, urgent)

    def _accompanied(self, i: int) -> bool:
        """Whether the frame is sent at the place of an event that has a label of its own."""
        kinds = {j: self.rows[j].kind for j in self._rows_at_place(i)}
        return Kind.ORIGINATE in kinds.values() or any(
            j < i and kind == Kind.SEND for j, kind in kinds.items()
        )


def shape(row: Row) -> str:
    """The mark of an event."""
    match row.kind:
        case Kind.ORDER:
            return "order" if row.level != 0 else "tentative"
        case Kind.STABLE:
            return "stable2" if row.level == 2 else "stable"
        case Kind.TOKEN:
            return "token"
        case Kind.OPEN:
            return "opening"
        case Kind.CUT:
            return "truncate"
        case _:
            return row.kind if row.kind in _SHAPES else "other"


_UNSHAPED = (Kind.FAULT, Kind.END, Kind.TOKEN, Kind.OPEN, Kind.CUT)
_SHAPES = frozenset(kind.value for kind in Kind if kind not in _UNSHAPED)
