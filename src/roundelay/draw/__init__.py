"""Space-time diagrams of traces, as SVG.

    draw.svg(rows, manifest)                                   the whole run, up to a limit
    draw.svg(rows, manifest, witness=verdict.witness, ...)     what a violation looks like

Time runs downwards. A hundred events are a page one scrolls, not a wall one pans over, and words
stand upright beside what they describe.
"""

from collections.abc import Iterable, Sequence

from roundelay.draw.clock import parse_time
from roundelay.draw.layout import layout
from roundelay.draw.render import render
from roundelay.draw.window import EVENTS_MAX, Window
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import Row

__all__ = ["EVENTS_MAX", "Window", "layout", "parse_time", "render", "svg"]


def svg(
    rows: Iterable[Row],
    manifest: Manifest,
    *,
    witness: Sequence[Row] = (),
    reason: str = "",
    title: str = "",
    window: Window | None = None,
) -> str:
    """A diagram of `rows`. Those of the `witness` stand out, `reason` says above why."""
    return render(
        layout(list(rows), manifest, witness=witness, reason=reason, title=title, window=window)
    )
