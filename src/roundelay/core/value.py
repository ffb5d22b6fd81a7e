"""`@value`: a small immutable record, at the price of a mutable one.

`dataclass(frozen=True)` builds its instances through `object.__setattr__`, which costs three times
as much as plain slots, and a run builds millions of effects. So immutability is promised to the
type checker, which enforces it over the whole code base, and not paid for at run time.
"""

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def value(cls: type[T]) -> type[T]:
    """Make `cls` a slotted, hashable dataclass that type checkers treat as frozen."""
    return dataclass(slots=True, unsafe_hash=True)(cls)
