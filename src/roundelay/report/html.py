"""Elements as text, and the page around them.

Whatever comes from outside goes through `text`; a function here returns HTML that is safe.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from html import escape
from importlib.resources import files
from typing import Any

from roundelay import __version__

POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
)
"""The browser itself sees to it that the page loads nothing."""


def text(value: object) -> str:
    return escape(str(value), quote=True)


def element(name: str, *children: str, **attributes: object) -> str:
    """An element; `class_` is its class, and `aria_label` becomes `aria-label`."""
    said = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{said}>{''.join(children)}</{name}>"


def paragraph(sentence: str, class_: str | None = None) -> str:
    return element("p", text(sentence), class_=class_)


def heading(level: int, title: str, anchor: str | None = None) -> str:
    return element(f"h{level}", text(title), id=anchor)


def section(title: str, anchor: str, *children: str) -> str:
    """A part of the page that the list at its top links to."""
    return element(
        "section", heading(2, title, anchor), *children, aria_labelledby=anchor, class_="part"
    )


def folded(summary: str, *children: str) -> str:
    """Something to open."""
    return element("details", element("summary", text(summary)), *children)


def scrolled(label: str, *children: str) -> str:
    """Something wide or long, that can be scrolled with the keyboard too; where there is more to
    see, its edge is shaded."""
    inner = element("div", *children, class_="scroll", tabindex=0, role="region", aria_label=label)
    return element("div", inner, class_="scrolled")


class Markup(str):
    """HTML that this package made, for places that otherwise take text."""

    __slots__ = ()


def table(label: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table that scrolls by itself; numbers stand to the right, under their headers."""
    known = list(rows)
    numeric = [_is_numeric([row[i] for row in known]) for i in range(len(head))]
    kinds = ["number" if yes else None for yes in numeric]
    columns = "".join(
        element("th", text(name), scope="col", class_=kind)
        for name, kind in zip(head, kinds, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(
            element("td", _cell(cell), class_=kind) for cell, kind in zip(row, kinds, strict=True)
        )
        + "</tr>"
        for row in known
    )
    return scrolled(label, f"<table><thead><tr>{columns}</tr></thead><tbody>{body}</tbody></table>")


def _cell(cell: object) -> str:
    return cell if isinstance(cell, Markup) else text(show(cell))


def _is_numeric(cells: Sequence[object]) -> bool:
    """Whether a column holds numbers, and nothing else where it holds anything."""
    known = [cell for cell in cells if cell is not None]
    return bool(known) and all(
        isinstance(cell, int | float) and not isinstance(cell, bool) for cell in known
    )


def show(value: object) -> str:
    """A value for people: three digits that mean something, whole numbers from a hundred on."""
    if value is None:
        return "-"
    if isinstance(value, float):
        if value != value:
            return "-"
        return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
    if isinstance(value, list | tuple):
        return " ".join(show(item) for item in value)
    return str(value)


def data(value: object) -> str:
    """JSON within a page: nothing in it can end the script it stands in."""
    encoded = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return encoded.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def page(title: str, lead: str, parts: Mapping[str, str], plots: Sequence[Any]) -> str:
    """The whole document. `parts` are sections by their anchors and titles, as `anchor|title`."""
    links = [key.split("|", 1) for key in parts]
    contents = element(
        "nav",
        element("ul", *(element("li", element("a", text(t), href=f"#{a}")) for a, t in links)),
        aria_label="Contents",
    )
    contents = contents if len(links) > 1 else ""
    script = f"<script>{_plotly()}</script>" if plots else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{text(POLICY)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{text(title)}</title><style>{_resource('report.css')}</style></head><body>"
        f'<a class="skip" href="#main">Skip to the results</a>'
        f"<header><h1>{text(title)}</h1>{lead}{contents}</header>"
        f'<main id="main" tabindex="-1">{"".join(parts.values())}</main>'
        f"<footer><p>Made by <code>roundelay report</code>, version {__version__}, on "
        f"{datetime.now():%Y-%m-%d}. Everything is in this file.</p></footer>"
        f'<script type="application/json" id="plots">{data(plots)}</script>{script}'
        f"<script>{_resource('report.js')}</script></body></html>\n"
    )


def _resource(name: str) -> str:
    return (files("roundelay.report") / "page" / name).read_text(encoding="utf-8")


def _plotly() -> str:
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs()).replace("</script", "<\\/script")
