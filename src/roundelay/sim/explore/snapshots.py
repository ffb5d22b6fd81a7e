"""Snapshots of a world, to which an exploration returns.

A world is pickled and loaded again, which takes a fraction of the time of a run from the beginning.
Objects that never change are shared and not copied: messages, packets, views, frames on the wire.
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
from roundelay.sim.runner import ScenarioRunner
from roundelay.sim.transmission import Transmission

_SHARED = (
    Transmission,
    ScenarioRunner,
    StackCodec,
    Choices,
    partial,
    types.FunctionType,
    types.MethodWrapperType,
)
"""Classes whose instances never change, or are the same for all branches."""

_shared_objects: list[Any] = []
"""The shared objects of the snapshot that is being loaded."""


@dataclass(frozen=True, slots=True)
class Frozen:
    """A snapshot, which can be loaded any number of times."""

    data: bytes
    shared: list[Any]


def freeze(value: object) -> Frozen:
    buffer = io.BytesIO()
    pickler = _Pickler(buffer)
    pickler.dump(value)
    return Frozen(buffer.getvalue(), pickler.shared)


def thaw(frozen: Frozen) -> Any:
    global _shared_objects
    _shared_objects = frozen.shared
    return pickle.loads(frozen.data)


def _thaw(place: int) -> Any:
    return _shared_objects[place]


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
