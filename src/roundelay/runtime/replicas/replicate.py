"""`roundelay.replicate`: a machine whose state is the same at all nodes of a group."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from os import PathLike
from types import TracebackType
from typing import Any, Generic, TypeVar

from roundelay.core.ids import NodeId
from roundelay.runtime.errors import ConfigError
from roundelay.runtime.group import Group, join
from roundelay.runtime.replicas.port import NodePort
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
    """A machine at a node of a group, to be used as `async with replicate(...) as machine`.

    `machine` is a class, or a function that makes a new machine; it must make equal ones at all
    nodes. The block's target is its face. `settings` are those of `roundelay.join`.
    """
    port = NodePort(machine, node)
    joined = join(group, node=node, peers=peers, journal=journal, machine=port, **settings)
    return Replicated(port, joined)


class Replicated(Generic[M]):
    """A machine and the group that it is a part of."""

    def __init__(self, port: NodePort[M], group: Group) -> None:
        self._port = port
        self.group = group
        """The group under it, for its views and its status."""
        self._ending: asyncio.Task[None] | None = None

    @property
    def face(self) -> M:
        """What the application uses."""
        return type(self._port.machine).bind(self._port)

    async def __aenter__(self) -> M:
        await self.start()
        return self.face

    async def start(self) -> None:
        """Begin to run; `async with` does this."""
        if self._ending is not None:
            raise ConfigError("this machine runs already; make another with replicate(...)")
        await self.group.start()
        self.attach()

    def attach(self, runner: Callable[[Coroutine[Any, Any, Any]], Any] | None = None) -> None:
        """Connect the machine to its group, which runs; in the group's event loop."""
        self.group.ignore()  # Nobody reads messages of `send`, nor views.
        self._port.open(self.group.log, lambda: self.group.view.members, runner)
        self._ending = asyncio.get_running_loop().create_task(self._end())

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            await self.group.__aexit__(kind, error, traceback)
        finally:
            if self._ending is not None:
                await self._ending

    async def _end(self) -> None:
        """Tell whoever waits for the machine that its node has ended."""
        self._port.close(await self.group.wait_closed())
