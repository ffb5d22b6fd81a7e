"""How much a seal keeps."""

from array import array
from typing import Any


def footprint(thing: Any, seen: set[int] | None = None) -> int:
    """How many items all containers hold that can be reached from here, arrays as one each."""
    seen = set() if seen is None else seen
    if id(thing) in seen or callable(thing) or isinstance(thing, bytes | str | array):
        return 1
    seen.add(id(thing))
    if isinstance(thing, dict):
        inside = [*thing.keys(), *thing.values()]
    elif isinstance(thing, list | tuple | set | frozenset):
        inside = list(thing)
    else:
        slots = [slot for kind in type(thing).__mro__ for slot in getattr(kind, "__slots__", ())]
        inside = [getattr(thing, slot) for slot in slots if hasattr(thing, slot)]
        inside += vars(thing).values() if hasattr(thing, "__dict__") else ()
    return 1 + sum(footprint(each, seen) for each in inside)
