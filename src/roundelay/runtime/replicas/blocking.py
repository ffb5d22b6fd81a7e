"""Replicated machines for programs without asyncio.

with roundelay.blocking.replicate(Counter, "hits", node="a", ...) as hits:
    hits.add.wait()
"""

from collections.abc import Callable, Mapping
from os import PathLike
from types import TracebackType
from typing import Any, Generic, TypeVar

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
    """A machine and the group that it is a part of, whose node runs in a thread of its own."""

    def __init__(self, inner: replicas.Replicated[M]) -> None:
        self._inner = inner
        self.group = blocking.Group(inner.group)
        """The group under it, for its views and its status."""

    @property
    def face(self) -> M:
        """What the application uses."""
        return self._inner.face

    def __enter__(self) -> M:
        group = self.group.__enter__()
        try:
            group._run(lambda: self._inner.attach(group._call))
        except BaseException as e:
            group.__exit__(type(e), e, e.__traceback__)
            raise
        return self.face

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.group.__exit__(kind, error, traceback)
