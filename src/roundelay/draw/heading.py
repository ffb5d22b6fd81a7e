"""The part of a diagram above the lifelines: title, reason of a witness, legend."""

import dataclasses
from collections.abc import Iterator

from roundelay.core.effects import Kind
from roundelay.draw.clock import Clock
from roundelay.draw.flights import ArrowKind
from roundelay.draw.scene import Heading, LegendEntry, Scene
from roundelay.draw.text import width, wrap
from roundelay.draw.window import Selection
from roundelay.draw.wording import Wording
from roundelay.trace.manifest import Manifest

MARGIN = 14.0
"""The margin of a diagram to the left and right, in pixels."""
SIZES = {"title": 17.0, "subtitle": 12.0, "reason": 13.0, "note": 12.0}
LEGEND_SIZE = 11.0
GLYPH = 26.0
"""The width of the sample of a legend entry, in pixels."""
_LEGEND_LINE = 19.0

_MEANINGS = {
    "submit": "submitted",
    "originate": "originated",
    "send": "frame sent",
    "arrived": "frame on its way",
    "copy": "arrived again",
    "lost": "lost",
    "refused": "dropped on arrival",
    "implied": "delivered there; no receipt recorded",
    "open": "other end not shown",
    "receive": "received",
    "tentative": "order proposed",
    "order": "order decided",
    "confirm": "order confirmed",
    "deliver": "delivered",
    "stable": "stable",
    "stable2": "stable, level 2",
    "withdraw": "withdrawn",
    "hold": "has the token",
    "token": "token acquired or released",
    "expire": "timer expired",
    "suspect": "suspects",
    "drop": "frame dropped by the node",
    "crash": "crash",
    "down": "down",
    "recover": "recovered",
    "install": "view installed",
    "gather": "begins to agree on a view",
    "freeze": "old view frozen",
    "regular": "regular view",
    "transitional": "transitional view",
    "primary": "primary view (!)",
    "append": "appended to the log",
    "entry": "entry of the log, with its index",
    "stored": "on disk, so many entries",
    "commit": "committed, so many entries",
    "truncate": "entries taken away from the end",
    "opening": "view opens",
    "caught": "has caught up",
    "snapshot": "snapshot",
    "restore": "snapshot restored",
    "invoke": "operation begins",
    "reply": "reply",
    "fault": "fault",
    "end": "quiet end",
    "pause": "pause, not to scale",
    "cut": "left out",
    "other": "other event",
    "witness": "",  # What is marked may be something else.
}


def add_heading(
    body: Scene,
    manifest: Manifest,
    selection: Selection,
    wording: Wording,
    clock: Clock,
    *,
    title: str,
    reason: str,
) -> Scene:
    """Add the heading and the legend to the body."""
    room = body.width - 2 * MARGIN
    title = title or (f"Run {manifest.run}" if manifest.run not in ("", "mini") else "Events")
    texts = [
        ("title", title),
        ("subtitle", _subtitle(manifest, selection, clock)),
        ("reason", reason),
        ("note", selection.note),
    ]
    headings: list[Heading] = []
    y = MARGIN
    for style, text in texts:
        size = SIZES[style]
        for part in wrap(text, room, size, bold=style in ("title", "reason")):
            y += size * 1.3
            headings.append(Heading(style, part, y - size * 0.3))
        y += 4.0 if text else 0.0
    legend: list[LegendEntry] = []
    x, y = MARGIN, y + 10
    for glyph, text in _legend(body, selection):
        need = GLYPH + width(text, LEGEND_SIZE) + 14
        if x > MARGIN and x + need > body.width - MARGIN:
            x, y = MARGIN, y + _LEGEND_LINE
        legend.append(LegendEntry(glyph, text, x, y))
        x += need
    top = y + (_LEGEND_LINE if legend else 0.0) + 2
    return dataclasses.replace(
        body,
        height=body.height + top,
        title=title,
        description=_description(body, selection, wording, reason),
        headings=tuple(headings),
        legend=tuple(legend),
        body_top=top,
        note=selection.note,
    )


def _subtitle(manifest: Manifest, selection: Selection, clock: Clock) -> str:
    parts = [
        manifest.protocol,
        f"{manifest.rules} rules" if manifest.protocol and manifest.rules != "safe" else "",
        f"seed {manifest.seed}" if manifest.seed is not None else "",
        _count(len(selection.procs), "node"),
        _count(len(selection.shown), "event"),
        "time runs downwards, one event a step"
        if clock.stepped
        else "time runs downwards, not to scale",
        "times since the first event" if clock.origin_ns else "",
    ]
    return ", ".join(part for part in parts if part)


def _description(body: Scene, selection: Selection, wording: Wording, reason: str) -> str:
    kinds: dict[str, int] = {}
    for i in selection.shown:
        kind = str(selection.rows[i].kind)
        kinds[kind] = kinds.get(kind, 0) + 1
    names = ", ".join(wording.node(proc) for proc in selection.procs[:20])
    parts = [
        f"Space-time diagram: one vertical lifeline for each of {_count(len(body.columns), 'node')}"
        f" ({names or 'none'}), time downwards, {_count(len(selection.shown), 'event')}.",
        "Events by kind: " + ", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items())) + "."
        if kinds
        else "",
        f"Highlighted: {reason}" if reason else "",
        selection.note,
    ]
    return " ".join(part for part in parts if part)


def _legend(body: Scene, selection: Selection) -> Iterator[tuple[str, str]]:
    """The samples and meanings of what occurs in the diagram."""
    occurs = {mark.shape for mark in body.marks} | {rule.kind for rule in body.rules}
    occurs |= {arrow.kind.value for arrow in body.arrows}
    occurs |= {"transitional" for band in body.bands if band.transitional}
    occurs |= {"primary" for band in body.bands if band.primary}
    occurs |= {"regular" for band in body.bands if not (band.transitional or band.primary)}
    occurs |= {"down" for life in body.lives if not life.up}
    occurs |= {"hold"} if body.holds else set()
    occurs |= {"witness"} if body.has_witness else set()
    occurs -= {"send"} if occurs & {kind.value for kind in ArrowKind} else set()
    occurs -= {"token"} if body.holds else set()
    occurs -= {"install"} if body.bands else set()
    occurs -= {"drop"} if "refused" in occurs else set()
    shown = [selection.rows[i] for i in selection.shown]
    frames = any(row.kind in (Kind.SEND, Kind.ARRIVE) for row in shown)
    keys = any(row.kind == Kind.DELIVER and row.k2 is not None for row in shown)
    for glyph, meaning in _MEANINGS.items():
        if glyph in occurs:
            if glyph == "arrived" and not frames:
                meaning = "message on its way"
            if glyph == "deliver" and keys:
                meaning = "delivered (#: its order key)"
            if glyph == "witness":
                meaning = selection.marked_as
            yield glyph, meaning


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
