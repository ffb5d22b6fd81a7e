"""How often the garbage collector looks while a simulation runs."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

OBJECTS, GENERATIONS = 20_000, (5, 2)
"""New objects until the collector looks at them, and how often until it looks at older ones too.
Fewer: it looks again and again through the rows of a trace, which have no cycles, and takes a fifth
of the time of a run. More: memory, as the worlds of runs that are over wait longer."""


@contextmanager
def rare_collection() -> Iterator[None]:
    """Let the garbage collector run less often: rows and snapshots are many objects without a
    cycle."""
    usual = gc.get_threshold()
    gc.set_threshold(OBJECTS, *GENERATIONS)
    try:
        yield
    finally:
        gc.set_threshold(*usual)
