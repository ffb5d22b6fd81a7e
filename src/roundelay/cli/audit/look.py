"""What to do with the runs that an audit found."""

from collections.abc import Sequence
from pathlib import Path


def look(broken: int, written: Sequence[Path]) -> str:
    """The next command, if any of the runs broke a promise."""
    if written:
        path = written[0]
        return f"look at one: roundelay sim run {path} --trace {path.with_suffix('')}\n"
    return "look at them: with -o DIR they are written as scenarios\n" if broken else ""
