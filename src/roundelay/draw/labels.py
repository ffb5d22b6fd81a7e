"""Places labels beside marks so that no two overlap. A label without room becomes a tooltip."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

from roundelay.core.effects import Kind
from roundelay.core.value import value
from roundelay.draw.scene import Arrow, Box, Label
from roundelay.draw.text import fit, width

SIZE = 11.0
"""The font size of labels, in pixels."""
HEIGHT = 12.0
"""The height that a label takes, in pixels; a smaller number lets labels touch."""
RAISE = 7.0
"""How far above or below its mark a label may be, in pixels, if an arrow is in its way."""
REACH = 12.0
"""The distance from a lifeline to its labels, in pixels; a smaller one lets labels cover marks and
the bands of views."""
_BUCKET = 20.0
"""The height in pixels of the strips by which taken places are found. It affects only the speed."""

_RANK: dict[str, int] = {
    kind.value: rank
    for rank, kind in enumerate(
        (
            Kind.INSTALL,
            Kind.CRASH,
            Kind.RECOVER,
            Kind.DELIVER,
            Kind.ORIGINATE,
            Kind.WITHDRAW,
            Kind.SUSPECT,
            Kind.CONFIRM,
            Kind.ORDER,
            Kind.STABLE,
            Kind.EXPIRE,
            Kind.SUBMIT,
            Kind.RECEIVE,
            Kind.SEND,
            Kind.DROP,
        )
    )
}


@value
class LabelRequest:
    """A label that needs a place beside (x, y)."""

    texts: tuple[str, ...]
    """The texts to choose from, the best one first."""
    kind: str
    x: float
    y: float
    left: float
    right: float
    """The limits of the room beside the lifeline, to the left and to the right."""
    row: int
    lit: bool
    urgent: bool = False
    """Whether it is placed before others, as part of a witness."""


class Board:
    """The places that are taken."""

    def __init__(self, arrows: Iterable[Arrow]) -> None:
        self._boxes: defaultdict[int, list[Box]] = defaultdict(list)
        self._arrows: defaultdict[int, dict[int, Arrow]] = defaultdict(dict)
        for number, arrow in enumerate(arrows):
            slack = abs(arrow.bend)
            low, high = min(arrow.y0, arrow.y1) - slack, max(arrow.y0, arrow.y1) + slack
            for bucket in _buckets(low, high):
                self._arrows[bucket][number] = arrow

    def occupy(self, box: Box) -> None:
        for bucket in _buckets(box.y0, box.y1):
            self._boxes[bucket].append(box)

    def free(self, box: Box) -> bool:
        return not any(
            box.overlaps(other)
            for bucket in _buckets(box.y0, box.y1)
            for other in self._boxes[bucket]
        )

    def crossings(self, box: Box) -> int:
        """How many arrows cross the box."""
        found: dict[int, Arrow] = {}
        for bucket in _buckets(box.y0, box.y1):
            found.update(self._arrows[bucket])
        return sum(_crosses(arrow, box) for arrow in found.values())


def place(requests: Sequence[LabelRequest], board: Board) -> list[Label]:
    """Place labels, and return those that found room in the order of their rows. The board holds
    them afterwards."""
    ranked = sorted(requests, key=lambda w: (not w.urgent, _RANK.get(w.kind, len(_RANK)), w.y, w.x))
    placed: list[Label] = []
    for request in ranked:
        label = _best(request, board)
        if label is not None:
            board.occupy(label.box)
            placed.append(label)
    return sorted(placed, key=lambda label: (label.row, label.y, label.box.x0))


def _best(request: LabelRequest, board: Board) -> Label | None:
    for text in request.texts:
        found = _beside(request, text, board)
        if found is not None:
            return found
    shortest = request.texts[-1]
    room = max(request.right - request.x, request.x - request.left) - REACH
    if width(shortest, SIZE, bold=True) > room > 3 * SIZE:
        return _beside(request, fit(shortest, room, SIZE, bold=True), board)
    return None


def _beside(request: LabelRequest, text: str, board: Board) -> Label | None:
    """The place for `text` that the fewest arrows cross; None if there is none."""
    wide = width(text, SIZE, bold=True)
    best: tuple[int, int, Label] | None = None
    for preference, (side, shift) in enumerate(
        ((1, 0.0), (-1, 0.0), (1, -RAISE), (-1, -RAISE), (1, RAISE), (-1, RAISE))
    ):
        x0 = request.x + REACH if side > 0 else request.x - REACH - wide
        y = request.y + shift
        box = Box(x0, y - HEIGHT / 2, x0 + wide, y + HEIGHT / 2)
        if box.x0 < request.left or box.x1 > request.right or not board.free(box):
            continue
        label = Label(text, request.kind, box, side < 0, y, request.row, request.lit)
        cost = board.crossings(box), preference, label
        if best is None or cost[:2] < best[:2]:
            best = cost
        if cost[:2] == (0, 0):
            break
    return best[2] if best else None


def _buckets(y0: float, y1: float) -> range:
    return range(int(y0 // _BUCKET), int(y1 // _BUCKET) + 1)


def _crosses(arrow: Arrow, box: Box) -> bool:
    steps = 4 if arrow.bend else 1
    points = [arrow.at(step / steps) for step in range(steps + 1)]
    return any(_through(box, a, b) for a, b in pairwise(points))


def _through(box: Box, a: tuple[float, float], b: tuple[float, float]) -> bool:
    (x0, y0), (x1, y1) = (a, b) if a[1] <= b[1] else (b, a)
    top, bottom = max(y0, box.y0), min(y1, box.y1)
    if top > bottom:
        return False
    if y1 - y0 < 0.01:
        return min(x0, x1) < box.x1 and box.x0 < max(x0, x1)
    at_top = x0 + (x1 - x0) * (top - y0) / (y1 - y0)
    at_bottom = x0 + (x1 - x0) * (bottom - y0) / (y1 - y0)
    return min(at_top, at_bottom) < box.x1 and box.x0 < max(at_top, at_bottom)
