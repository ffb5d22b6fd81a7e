"""Replicated machines for programs without asyncio.

with roundelay.blocking.replicate(Counter, "hits", node="a", ...) as hits:
    hits.add.wait()
"""

from collections.abc import Callable, Mapping
from os import PathLike
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from roundelay.core.ids import NodeId
from roundelay.runtime import blocking
from roundelay.runtime.replicas import replicate as replicas
from roundelay.structures.machine import Machine

M = TypeVar("M", bound=Machine)


def replicate(
    machine: Callable[[], M],
    group: str,
    *,
    node: NodeId,
    peers: Mapping[NodeId, str],
    journal: str | PathLike[str],
    **settings: Any,
) -> "Replicated[M]":
    """As `roundelay.replicate`, for `with replicate(...) as machine`; calls of its face are made
    with `wait`, from any thread."""
    inner = replicas.replicate(machine, group, node=node, peers=peers, journal=journal, **settings)
    return Replicated(inner)


class Replicated(Generic[M]):
    """The only machine of a group, and the group under it, whose node runs in its own thread."""

    def __init__(self, inner: replicas.Replicated[M]) -> None:
        self._replicas = Replicas.around(inner.replicas)
        self.group = self._replicas.group
        """The group under it, for its views and its status."""
        self.face = inner.face
        """What the application uses."""

    def __enter__(self) -> M:
        self._replicas.__enter__()
        return self.face

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._replicas.__exit__(kind, error, traceback)


class Replicas:
    """As `roundelay.Replicas`, for `with Replicas(...)`; calls of faces are made with `wait`, from
    any thread."""

    def __init__(
        self,
        group: str,
        *,
        node: NodeId,
        peers: Mapping[NodeId, str],
        journal: str | PathLike[str],
        **settings: Any,
    ) -> None:
        self._take(replicas.Replicas(group, node=node, peers=peers, journal=journal, **settings))

    @classmethod
    def around(cls, inner: replicas.Replicas) -> Self:
        """The same machines, without asyncio."""
        made = cls.__new__(cls)
        made._take(inner)
        return made

    def _take(self, inner: replicas.Replicas) -> None:
        self._inner = inner
        self.group = blocking.Group(inner.group)
        """The group under the machines, for its views and its status."""

    def add(self, name: str, machine: Callable[[], M]) -> M:
        """Have a machine of this name, and return its face."""
        return self._inner.add(name, machine)

    def __enter__(self) -> Self:
        group = self.group.__enter__()
        try:
            group._run(lambda: self._inner.attach(group._call))
        except BaseException as e:
            group.__exit__(type(e), e, e.__traceback__)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.group.__exit__(kind, error, traceback)
