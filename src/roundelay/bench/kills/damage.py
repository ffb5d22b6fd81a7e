"""Damages the journal of a node that does not run."""

import random
from pathlib import Path

from roundelay.journal.files import OsFiles
from roundelay.journal.segment import open_segment, segment_files


def damage(log: Path, chance: random.Random) -> Path:
    """Flip all bits of one byte of a record in this directory of segment files, and return the file
    that it is in. Whole records follow it: one at the very end would be taken for what a crash left
    of a write, as no disk may lose what it has synced."""
    files = OsFiles()
    places: list[tuple[Path, int, int]] = []
    """Of each record its file, and where it begins and ends there."""
    for path in segment_files(log):
        segment = open_segment(files, path)
        if segment is None:
            continue  # The node was killed when it had just begun this file.
        walk = segment.walk()
        found = [(path, walk.offset, walk.offset + f.end + 1 - f.at) for f in walk]
        segment.close()
        places += found
    (path, start, end) = chance.choice([place for place in places if place != places[-1]])
    with path.open("r+b") as file:
        offset = chance.randrange(start, end)
        file.seek(offset)
        (byte,) = file.read(1)
        file.seek(offset)
        file.write(bytes([byte ^ 0xFF]))
    return path
