"""`@value`: an immutable record that is built as fast as a mutable one.

`dataclass(frozen=True)` sets the fields of an instance through `object.__setattr__`, which takes
three times as long as plain slots, and a run builds millions of effects. So only the type checker
enforces immutability, over the whole code base, and nothing is checked at run time.
"""

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def value(cls: type[T]) -> type[T]:
    """Make `cls` a slotted, hashable dataclass that type checkers treat as frozen."""
    return dataclass(slots=True, unsafe_hash=True)(cls)
