"""Estimates the width of a text without a font.

The table has the widths of DejaVu Sans, the widest of the usual screen fonts: a text that fits in
it fits in Helvetica or Arial too.
"""

_WIDTHS = bytes.fromhex(  # The characters 32 to 126, in hundredths of the font size.
    "20282e54405f4e1b272732542024202240404040404040404040222254545435"
    "644445464d3f3a4d4b1d1d4238564b4f3c4f453f3d494463453d452722275432"
    "323d3f373f3e233f3f1c1c3a1c613f3d3f3f2934273f3b523b3b3440224054"
)
_OTHER = 100
"""The width of any other character, in hundredths of the font size."""
LENGTH_MAX = 300
"""The most characters of a text that are kept; no diagram has room for more."""
_BOLD = 1.14
"""How many times as wide bold text is."""


def width(text: str, size: float, *, bold: bool = False) -> float:
    """The most pixels that `text` takes."""
    total = 0
    for char in text:
        code = ord(char) - 32
        total += _WIDTHS[code] if 0 <= code < len(_WIDTHS) else _OTHER
    return total * size / 100 * (_BOLD if bold else 1.0)


def fit(text: str, room: float, size: float, *, bold: bool = False) -> str:
    """`text`, shortened with an ellipsis if it is wider than `room`."""
    if width(text, size, bold=bold) <= room:
        return text
    kept = text[:LENGTH_MAX]
    while kept and width(kept + "\u2026", size, bold=bold) > room:
        kept = kept[:-1]
    return kept.rstrip() + "\u2026"


def wrap(text: str, room: float, size: float, *, bold: bool = False) -> list[str]:
    """`text` in lines no wider than `room`; words longer than that are shortened."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and width(longer, size, bold=bold) <= room:
            lines[-1] = longer
        else:
            lines.append(fit(word, room, size, bold=bold))
    return lines
