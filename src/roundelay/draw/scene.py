"""A diagram as positions and texts, before it becomes SVG. All lengths are in pixels.

Time runs downwards, and nodes are side by side. The body (the lifelines and all that is on them)
has its own vertical origin below the heading and the legend.
"""

from roundelay.core.value import value
from roundelay.draw.flights import ArrowKind


@value
class Box:
    """A rectangle that a text or a mark covers."""

    x0: float
    y0: float
    x1: float
    y1: float

    def overlaps(self, other: "Box") -> bool:
        return (
            self.x0 < other.x1 and other.x0 < self.x1 and self.y0 < other.y1 and other.y0 < self.y1
        )


@value
class Column:
    """A node."""

    proc: int
    name: str
    """The name, cut to the width above the lifeline."""
    full_name: str
    x: float


@value
class Life:
    """A part of a lifeline: the node is up, or is down between a crash and a recovery."""

    x: float
    y0: float
    y1: float
    up: bool


@value
class Band:
    """The time that a node is in a view."""

    x: float
    y0: float
    y1: float
    colour: int
    """The view's number in order of appearance."""
    transitional: bool
    primary: bool
    facts: str
    lit: bool


@value
class Hold:
    """The time that a node has the token."""

    x: float
    y0: float
    y1: float
    facts: str
    lit: bool


@value
class Mark:
    """An event on a lifeline, or a lost frame before it."""

    shape: str
    x: float
    y: float
    row: int
    """Index of the event."""
    facts: str
    lit: bool
    """Whether it is not faded; if there is a witness, only the rows of the witness are not."""


@value
class Arrow:
    """A frame or a message on its way, from (x0, y0) to (x1, y1)."""

    kind: ArrowKind
    x0: float
    y0: float
    x1: float
    y1: float
    bend: float
    """How far its middle is moved down (or up, if negative) to keep clear of marks of others."""
    loop: bool
    """Whether it ends at the lifeline where it begins."""
    source: int | None
    target: int | None
    """Indices of the events at its ends."""
    transmission: int
    facts: str
    lit: bool

    def at(self, part: float) -> tuple[float, float]:
        """The position after that part of its way, from 0 to 1."""
        x = self.x0 + (self.x1 - self.x0) * part
        y = self.y0 + (self.y1 - self.y0) * part
        return x, y + 4 * self.bend * part * (1 - part)


@value
class Label:
    """The text beside a mark."""

    text: str
    kind: str
    box: Box
    end: bool
    """Whether the text ends at the right edge of its box, instead of beginning at the left one."""
    y: float
    row: int
    lit: bool


@value
class Rule:
    """A line across all nodes: a fault, the end of the run, a pause, events left out."""

    kind: str
    y: float
    text: str
    box: Box
    rows: tuple[int, ...]
    facts: str
    lit: bool


@value
class Tick:
    """A time on the axis."""

    y: float
    text: str


@value
class Heading:
    """One line of text above the body."""

    style: str
    text: str
    y: float


@value
class LegendEntry:
    """One item of the legend."""

    glyph: str
    text: str
    x: float
    y: float


@value
class Scene:
    """A whole picture."""

    width: float
    height: float
    title: str
    description: str
    headings: tuple[Heading, ...]
    legend: tuple[LegendEntry, ...]
    body_top: float
    axis_x: float
    columns: tuple[Column, ...]
    names: tuple[float, ...]
    """Heights at which the node names stand."""
    lives: tuple[Life, ...]
    bands: tuple[Band, ...]
    holds: tuple[Hold, ...]
    rules: tuple[Rule, ...]
    ticks: tuple[Tick, ...]
    arrows: tuple[Arrow, ...]
    marks: tuple[Mark, ...]
    labels: tuple[Label, ...]
    has_witness: bool
    """There is a witness to highlight."""
    note: str = ""
    """What was left out."""
