"""Writes a diagram as SVG: self-contained, without scripts, the same bytes every time."""

import math
from collections.abc import Iterator
from itertools import groupby
from xml.sax.saxutils import escape

from roundelay.draw.flights import ArrowKind
from roundelay.draw.glyphs import SHAPES, VIEW_COLOURS, style
from roundelay.draw.heading import GLYPH, MARGIN
from roundelay.draw.scene import (
    Arrow,
    Band,
    Hold,
    Label,
    LegendEntry,
    Life,
    Mark,
    Rule,
    Scene,
    Tick,
)

BAND = 9.0
"""Half the width of a view's band, in pixels."""
HOLD = 3.5
"""Half the width of the box that shows a held token, in pixels."""
HEAD = 8.0
"""The length of an arrowhead, in pixels."""


def render(scene: Scene) -> str:
    """The SVG document."""
    size = f'width="{_n(scene.width)}" height="{_n(scene.height)}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="roundelay" role="img" {size} '
        f'viewBox="0 0 {_n(scene.width)} {_n(scene.height)}">',
        f"<title>{_text(scene.title)}</title>",
        f"<desc>{_text(scene.description)}</desc>",
        f"<style>{style(mark.shape for mark in scene.marks)}</style>",
        _patterns(scene),
        '<rect class="ground" width="100%" height="100%"/>',
        *(
            f'<text class="{heading.style}" x="{_n(MARGIN)}" y="{_n(heading.y)}">'
            f"{_text(heading.text)}</text>"
            for heading in scene.headings
        ),
        *(_entry(entry) for entry in scene.legend),
        f'<g transform="translate(0 {_n(scene.body_top)})">',
        *_body(scene),
        "</g>",
        "</svg>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def _body(scene: Scene) -> Iterator[str]:
    yield from _axis(scene)
    for band in scene.bands:
        yield _band(band)
    for life in scene.lives:
        yield _life(life)
    for hold in scene.holds:
        yield _hold(hold)
    for rule in scene.rules:
        yield _rule(rule, scene)
    if scene.has_witness:
        for mark in scene.marks:
            if mark.lit:
                yield f'<circle class="halo" cx="{_n(mark.x)}" cy="{_n(mark.y)}" r="9"/>'
    ordered = sorted(scene.arrows, key=lambda arrow: arrow.transmission)
    for _, arrows in groupby(ordered, key=lambda arrow: arrow.transmission):
        yield '<g class="p">' + "".join(_arrow(arrow) for arrow in arrows) + "</g>"
    for mark in scene.marks:
        yield _mark(mark)
    for label in scene.labels:
        yield _label(label)
    for rule in scene.rules:
        yield _rule_words(rule)
    for y in scene.names:
        for column in scene.columns:
            yield (
                f'<text class="name l" x="{_n(column.x)}" y="{_n(y + 4.5)}">'
                f"<title>{_text(column.full_name)}</title>{_text(column.name)}</text>"
            )


def _axis(scene: Scene) -> Iterator[str]:
    if not scene.ticks:
        return
    x, end = scene.axis_x, scene.width - MARGIN
    top, bottom = scene.names[0], scene.names[-1]
    yield f'<path class="axis" d="M{_n(x)} {_n(top)}V{_n(bottom)}"/>'
    for tick in scene.ticks:
        yield _tick(tick, x, end)


def _tick(tick: Tick, x: float, end: float) -> str:
    return (
        f'<path class="grid" d="M{_n(x - 4)} {_n(tick.y)}H{_n(end)}"/>'
        f'<text class="tick" x="{_n(x - 7)}" y="{_n(tick.y + 3.5)}">{_text(tick.text)}</text>'
    )


def _band(band: Band) -> str:
    colour = band.colour % VIEW_COLOURS
    x, y, high = _n(band.x - BAND), _n(band.y0), _n(band.y1 - band.y0)
    fill = f'fill="url(#roundelay-h{colour})"' if band.transitional else f'class="v{colour}"'
    body = f'<rect x="{x}" y="{y}" width="{_n(2 * BAND)}" height="{high}" {fill}/>'
    if band.primary:
        body += "".join(
            f'<rect class="e{colour}" x="{_n(at)}" y="{y}" width="2.4" height="{high}"/>'
            for at in (band.x - BAND, band.x + BAND - 2.4)
        )
    # Views are not faded beside a witness: they show where its events happened.
    return f'<g class="band">{_tip(band.facts)}{body}</g>'


def _life(life: Life) -> str:
    return (
        f'<path class="{"life" if life.up else "down"}" '
        f'd="M{_n(life.x)} {_n(life.y0)}V{_n(life.y1)}"/>'
    )


def _hold(hold: Hold) -> str:
    return (
        f'<rect class="hold{_faded(hold.lit)}" x="{_n(hold.x - HOLD)}" y="{_n(hold.y0)}" '
        f'width="{_n(2 * HOLD)}" height="{_n(hold.y1 - hold.y0)}" rx="2">{_tip(hold.facts)}</rect>'
    )


def _rule(rule: Rule, scene: Scene) -> str:
    y = _n(rule.y)
    left, right = _n(scene.axis_x), _n(scene.width - MARGIN)
    return (
        f'<g class="rule {rule.kind}{_faded(rule.lit)}">{_tip(rule.facts)}'
        f'<path d="M{left} {y}H{right}"/></g>'
    )


def _rule_words(rule: Rule) -> str:
    """The text of a rule, which is drawn above the arrows while its line is below them."""
    middle = (rule.box.x0 + rule.box.x1) / 2
    return (
        f'<g class="rule {rule.kind}{_faded(rule.lit)}">{_tip(rule.facts)}'
        f'<text x="{_n(middle)}" y="{_n(rule.y + 4)}">{_text(rule.text)}</text></g>'
    )


def _arrow(arrow: Arrow) -> str:
    if arrow.loop:
        x, bulge = _n(arrow.x0), _n(arrow.x0 + 26)
        way = (
            f"M{x} {_n(arrow.y0)}C{bulge} {_n(arrow.y0)} {bulge} {_n(arrow.y1)} {x} {_n(arrow.y1)}"
        )
        head = _head(arrow.x1 + 4, arrow.y1, math.pi)
    else:
        knee = (arrow.x0 + arrow.x1) / 2, (arrow.y0 + arrow.y1) / 2 + 2 * arrow.bend
        start = knee if arrow.bend else (arrow.x0, arrow.y0)
        angle = math.atan2(arrow.y1 - start[1], arrow.x1 - start[0])
        short = 0.0 if arrow.kind is ArrowKind.LOST else 4.5
        x1, y1 = arrow.x1 - short * math.cos(angle), arrow.y1 - short * math.sin(angle)
        turn = f"Q{_n(knee[0])} {_n(knee[1])} " if arrow.bend else "L"
        way = f"M{_n(arrow.x0)} {_n(arrow.y0)}{turn}{_n(x1)} {_n(y1)}"
        head = _head(x1, y1, angle)
    if arrow.kind is ArrowKind.LOST:
        head = ""
    return (
        f'<g class="f {arrow.kind.value}{_faded(arrow.lit)}">{_tip(arrow.facts)}'
        f'<path class="hit" d="{way}"/><path class="way" d="{way}"/>{head}</g>'
    )


def _head(x: float, y: float, angle: float) -> str:
    back = [
        (x - HEAD * math.cos(angle + turn), y - HEAD * math.sin(angle + turn))
        for turn in (0.42, -0.42)
    ]
    path = "L".join(f"{_n(cx)} {_n(cy)}" for cx, cy in ((x, y), *back))
    return f'<path class="head" d="M{path}Z"/>'


def _mark(mark: Mark) -> str:
    return (
        f'<g class="m {mark.shape}{_faded(mark.lit)}" '
        f'transform="translate({_n(mark.x)} {_n(mark.y)})">'
        f"{_tip(mark.facts)}{SHAPES[mark.shape]}</g>"
    )


def _label(label: Label) -> str:
    x = label.box.x1 if label.end else label.box.x0
    kind = label.kind if label.kind.isalnum() else "other"
    end = " end" if label.end else ""
    return (
        f'<text class="l {kind}{end}{_faded(label.lit)}" x="{_n(x)}" y="{_n(label.y + 4)}">'
        f"{_text(label.text)}</text>"
    )


def _entry(entry: LegendEntry) -> str:
    middle = f"translate({_n(entry.x + GLYPH / 2 - 2)} {_n(entry.y)})"
    return (
        f'<g transform="{middle}">{_sample(entry.glyph)}</g>'
        f'<text class="legend" x="{_n(entry.x + GLYPH)}" y="{_n(entry.y + 4)}">'
        f"{_text(entry.text)}</text>"
    )


def _sample(glyph: str) -> str:
    if glyph in SHAPES and glyph not in ("lost",):
        return f'<g class="m {glyph}">{SHAPES[glyph]}</g>'
    match glyph:
        case "arrived" | "copy" | "refused" | "implied" | "open" | "lost":
            way = '<path class="way" d="M-10-3L8 3"/>'
            end = _head(10, 3.6, 0.32)
            if glyph == "lost":
                way = '<path class="way" d="M-10-3L4 2"/>'
                end = f'<g class="m lost" transform="translate(5 2)">{SHAPES["lost"]}</g>'
            return f'<g class="f {glyph}">{way}{end}</g>'
        case "regular" | "transitional" | "primary":
            fill = 'fill="url(#roundelay-h0)"' if glyph == "transitional" else 'class="v0"'
            edges = '<path class="e0" d="M-9-7H-6.6V7H-9ZM6.6-7H9V7H6.6Z"/>'
            body = f'<rect x="-9" y="-7" width="18" height="14" {fill}/>'
            return body + (edges if glyph == "primary" else "")
        case "hold":
            return '<rect class="hold" x="-10" y="-3.5" width="20" height="7" rx="2"/>'
        case "down":
            return '<path class="down" d="M-10 0H10"/>'
        case "witness":
            return '<circle class="halo" r="7"/>'
        case _:
            return f'<g class="rule {glyph}"><path d="M-11 0H11"/></g>'


def _patterns(scene: Scene) -> str:
    used = sorted({band.colour % VIEW_COLOURS for band in scene.bands if band.transitional})
    if any(entry.glyph == "transitional" for entry in scene.legend) and 0 not in used:
        used.insert(0, 0)
    patterns = "".join(
        f'<pattern id="roundelay-h{n}" width="6" height="6" patternUnits="userSpaceOnUse" '
        f'patternTransform="rotate(45)"><path class="h{n}" d="M1.5 0V6"/></pattern>'
        for n in used
    )
    return f"<defs>{patterns}</defs>" if patterns else ""


def _faded(lit: bool) -> str:
    return "" if lit else " faded"


def _tip(facts: str) -> str:
    return f"<title>{_text(facts)}</title>" if facts else ""


def _n(number: float) -> str:
    """A length with at most one decimal."""
    text = f"{number:.1f}"
    return "0" if text in ("0.0", "-0.0") else text.removesuffix(".0")


def _text(text: str) -> str:
    """The text with XML's characters escaped; characters that XML cannot hold are replaced."""
    return escape("".join(char if _allowed(ord(char)) else "\ufffd" for char in text))


def _allowed(code: int) -> bool:
    return (
        code in (0x9, 0xA)
        or 0x20 <= code <= 0xD7FF
        or 0xE000 <= code <= 0xFFFD
        or 0x10000 <= code <= 0x10FFFF
    )
