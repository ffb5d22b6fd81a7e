"""The page of settings, made of `Settings`: each with its type, its default and its docstring."""

import dataclasses
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import griffe

from roundelay.runtime.settings import SETTINGS, Settings

MARK = "<!-- every setting -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put all settings where a page has the mark."""
    if MARK not in markdown:
        return markdown
    return markdown.replace(MARK, "\n\n".join(_sections()))


def _sections() -> Iterator[str]:
    path = Path(inspect.getfile(Settings))
    source = griffe.visit("settings", filepath=path, code=path.read_text())
    for name, field in SETTINGS.items():
        attribute = source["Settings"][name]
        docstring = attribute.docstring
        assert docstring is not None, f"{name} has no docstring"
        default = _default(field)
        yield f"## {name}\n\n`{attribute.annotation}`{default}\n\n{docstring.value}"


def _default(field: dataclasses.Field[Any]) -> str:
    """What a setting is if it is left out, in words."""
    if field.default_factory is not dataclasses.MISSING:
        return ", by default empty"
    if field.default is dataclasses.MISSING:
        return ", required"
    megabytes = isinstance(field.default, int) and field.default >= 1 << 20
    shown = f"{field.default >> 20} MB" if megabytes else f"`{field.default!r}`"
    return f", by default {shown}"
