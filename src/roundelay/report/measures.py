"""The measures of runs as a table that says what each of them is."""

from collections.abc import Sequence
from typing import Any

from roundelay.pipeline.measure.words import MEANINGS, words_of
from roundelay.report.html import Markup, element, folded, table, text

MEASURES_MAX = 2000
TOLD_MAX = 24
"""Rows of a table up to which each says what it is; otherwise a list above the table does."""
ABOUT = ("run", "protocol", "rules", "mode", "nodes", "resilience", "seed")
"""Columns that are shown only where they differ; the overview of the runs has them all."""
HEADS = {"p50": "median", "p90": "90 of 100 within", "p99": "99 of 100 within", "max": "largest"}
UNITS = {"per message": "a message", "per byte": "a byte", "Jain": "0 to 1"}


def measures_table(measures: Any) -> str:
    """A table of `roundelay measure`, for readers."""
    known = sorted(measures.slice(0, MEASURES_MAX).to_pylist(), key=_rank)
    columns = {name: [row[name] for row in known] for name in measures.column_names}
    shown = {n: c for n, c in columns.items() if n not in ABOUT or len(set(c)) > 1}
    names = columns["measure"]
    inline = len(names) <= TOLD_MAX
    shown["measure"] = [_named(name, told=inline) for name in names]
    shown["unit"] = [UNITS.get(unit, unit) for unit in columns["unit"]]
    rows = list(zip(*shown.values(), strict=True))
    head = [HEADS.get(name, name) for name in shown]
    meanings = "" if inline else folded("What the measures are", _meanings(names))
    return meanings + table("Measures", head, rows)


def _rank(row: dict[str, Any]) -> tuple[str, int]:
    """Run by run, what matters most first."""
    order = [*MEANINGS]
    place = order.index(row["measure"]) if row["measure"] in MEANINGS else len(order)
    return row["run"], place


def _named(name: str, *, told: bool) -> Markup:
    words = words_of(name)
    meaning = element("span", text(words.meaning), class_="meaning") if told else ""
    return Markup(element("strong", text(words.title)) + meaning)


def _meanings(names: Sequence[str]) -> str:
    items = (
        element("dt", text(words.title)) + element("dd", text(words.meaning))
        for words in map(words_of, dict.fromkeys(names))
    )
    return element("dl", *items, class_="meanings")
