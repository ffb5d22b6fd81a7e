"""Copies of a world that is to be come back to.

A world is pickled and loaded again, which takes a fraction of the time of running it from the
beginning. Whatever never changes is not copied but shared: messages, packets, views, frames on the
wire.
"""

import io
import pickle
import types
from dataclasses import dataclass
from functools import partial
from typing import Any

from roundelay.group.stack import StackCodec
from roundelay.sim.explore.states import immutable
from roundelay.sim.faults import Choices
from roundelay.sim.host import Transmission
from roundelay.sim.story import Story

_SHARED = (
    Transmission,
    Story,
    StackCodec,
    Choices,
    partial,
    types.FunctionType,
    types.MethodWrapperType,
)
"""Never changed, or the same for all branches."""

_thawing: list[Any] = []
"""What is shared by the copy that is being loaded."""


@dataclass(frozen=True, slots=True)
class Frozen:
    """A copy, to be made use of any number of times."""

    data: bytes
    shared: list[Any]


def freeze(value: object) -> Frozen:
    buffer = io.BytesIO()
    pickler = _Pickler(buffer)
    pickler.dump(value)
    return Frozen(buffer.getvalue(), pickler.shared)


def thaw(frozen: Frozen) -> Any:
    global _thawing
    _thawing = frozen.shared
    return pickle.loads(frozen.data)


def _thaw(place: int) -> Any:
    return _thawing[place]


class _Pickler(pickle.Pickler):
    """Copies what changes and refers to what does not."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self.shared: list[Any] = []

    def reducer_override(self, value: Any) -> Any:
        if value is _thaw or not (immutable(type(value)) or isinstance(value, _SHARED)):
            return NotImplemented
        self.shared.append(value)
        return _thaw, (len(self.shared) - 1,)
