"""On which line of a TOML file something stands, for messages about it."""

import re

_HEADER = re.compile(r"\s*(\[\[?)\s*([A-Za-z0-9_.\-\"]+)\s*\]")
_KEY = re.compile(r"\s*([A-Za-z0-9_\-]+|\"[^\"]*\")\s*=")


class Lines:
    """The lines of a file that parses, by table and key.

    Good for the files people write: a table or key that is written inline is found where the
    inline value begins.
    """

    def __init__(self, text: str) -> None:
        self._lines: dict[tuple[str, int, str], int] = {}
        table, index = "", 0
        counts: dict[str, int] = {}
        for number, line in enumerate(text.splitlines(), 1):
            if header := _HEADER.match(line):
                table = header[2]
                parent, dot, _ = table.partition(".")
                index = counts.get(parent, 1) - 1 if dot else counts.get(table, 0)
                counts[table] = index + 1
                self._lines[table, index, ""] = number
            elif key := _KEY.match(line):
                self._lines.setdefault((table, index, key[1].strip('"')), number)

    def find(self, table: str = "", index: int = 0, key: str = "") -> int:
        """The line of a key of the `index`-th table of that name; of the table, if it is not in
        there; else 1. A table within another, like `grid.quick`, has the index of that one."""
        places = ((table, index, key), (table, index, ""), ("", 0, table))
        return next((self._lines[place] for place in places if place in self._lines), 1)
