"""`roundelay.replicate` and `roundelay.Replicas`: machines whose states are the same at all nodes
of a group."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from os import PathLike
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from roundelay.core.ids import NodeId
from roundelay.runtime.errors import ConfigError
from roundelay.runtime.group import Group, join
from roundelay.runtime.replicas.port import NodePort
from roundelay.runtime.replicas.site import Site
from roundelay.runtime.settings import Settings
from roundelay.structures.machine import Machine

M = TypeVar("M", bound=Machine)


class Replicas:
    """Several machines of one group, each with a name.

        shop = roundelay.Replicas("shop", node="a", peers=PEERS, journal="data/a")
        stock = shop.add("stock", Map[int])
        door = shop.add("door", Lock)
        async with shop:
            await stock.set("apples", 3)

    All nodes add machines of the same names. One log carries the commands of all, so what is
    written to one and then to another is seen in that order everywhere.
    """

    def __init__(
        self,
        group: str,
        *,
        node: NodeId,
        peers: Mapping[NodeId, str],
        journal: str | PathLike[str],
        **settings: Any,
    ) -> None:
        """`settings` are those of `roundelay.join`."""
        self._site = Site(node)
        self.group = join(
            group, node=node, peers=peers, journal=journal, machine=self._site, **settings
        )
        """The group under the machines, for its views and its status."""
        self._ending: asyncio.Task[None] | None = None

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """As `Replicas(...)`, of settings that were checked."""
        made = cls.__new__(cls)
        made._site = Site(settings.node)
        made.group = Group(settings, state_machine=made._site)
        made._ending = None
        return made

    def add(self, name: str, machine: Callable[[], M]) -> M:
        """Have a machine of this name, and return its face, which is of use once the group is
        joined. `machine` is a class, or a function that makes a new machine; it must make equal
        ones at all nodes. ConfigError once the group is joined."""
        return NodePort(self._site, name, machine).face

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def start(self) -> None:
        """Begin to run; `async with` does this."""
        if self._ending is not None:
            raise ConfigError("these machines run already; make others with Replicas(...)")
        await self.group.start()
        self.attach()

    def attach(self, runner: Callable[[Coroutine[Any, Any, Any]], Any] | None = None) -> None:
        """Connect the machines to their group, which runs; in the group's event loop."""
        self.group.ignore()  # Nobody reads messages of `send`, nor views.
        self._site.open(self.group.log, lambda: self.group.view.members, runner)
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
        """Tell whoever waits for the machines that their node has ended."""
        self._site.close(await self.group.wait_closed())


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
    replicas = Replicas(group, node=node, peers=peers, journal=journal, **settings)
    return Replicated(replicas, replicas.add("", machine))


class Replicated(Generic[M]):
    """The only machine of a group, and the group under it."""

    def __init__(self, replicas: Replicas, face: M) -> None:
        self.replicas = replicas
        """It, as one of several machines that a group can have."""
        self.face = face
        """What the application uses."""

    @property
    def group(self) -> Group:
        """The group under it, for its views and its status."""
        return self.replicas.group

    async def __aenter__(self) -> M:
        await self.replicas.start()
        return self.face

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.replicas.__aexit__(kind, error, traceback)
