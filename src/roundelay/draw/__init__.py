"""Space-time diagrams of traces, as SVG.

    draw.svg(rows, manifest)                                   the whole run, up to a limit
    draw.svg(rows, manifest, witness=verdict.witness, ...)     what a violation looks like
    draw.svg(..., window=Window(at=Place("fault:2")))          a fault, and what followed

Time runs downwards, so that a hundred events are a page to scroll, and labels are horizontal texts
beside their events.
"""

from collections.abc import Iterable, Sequence

from roundelay.draw.clock import parse_time
from roundelay.draw.layout import layout
from roundelay.draw.moments import Place
from roundelay.draw.render import render
from roundelay.draw.window import EVENTS_MAX, Window
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import Row

__all__ = ["EVENTS_MAX", "Place", "Window", "layout", "parse_time", "render", "svg"]


def svg(
    rows: Iterable[Row],
    manifest: Manifest,
    *,
    witness: Sequence[Row] = (),
    reason: str = "",
    title: str = "",
    window: Window | None = None,
) -> str:
    """A diagram of `rows`. The rows of `witness` stand out, and `reason` above the diagram says
    why. ValueError if the window is about a moment that the trace does not have."""
    return render(
        layout(list(rows), manifest, witness=witness, reason=reason, title=title, window=window)
    )
