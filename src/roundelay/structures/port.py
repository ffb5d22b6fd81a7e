"""What a machine's face needs of the node that it stands on: a log, and a way to wait.

A *face* is an instance of a machine's class that has no state of its own. Its methods become
commands and reads, and it reaches the state that this node keeps through its port. A node has a
port on asyncio, a blocking one has a thread, and tests have one in memory; machines do not know
which.
"""

from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from roundelay.core.ids import NodeId
from roundelay.core.value import value

if TYPE_CHECKING:
    from roundelay.structures.arguments import Arguments
    from roundelay.structures.machine import Machine

R = TypeVar("R")


class Placed(NamedTuple, Generic[R]):
    """A reply, and where in the log it belongs."""

    reply: R
    """What the method returned."""
    index: int  # type: ignore[assignment]  # A tuple's method, of no use here.
    """Of a write its own index, which no other has; of a read how many entries were in the state
    that it saw. What is at a smaller index came before."""


class Stale(NamedTuple, Generic[R]):
    """What a node knew, which may be old."""

    reply: R
    """What the method returned."""
    index: int  # type: ignore[assignment]  # As above.
    """How many entries were in the state that it saw."""
    primary: bool
    """Whether the node could commit then: if not, others may have written what it does not know."""


@value
class Options:
    """How one call is made."""

    timeout_s: float | None = None
    """After this long the call fails: with `NotPrimaryError` if nothing was sent, and with
    `UncertainError` if a command was sent and may or may not be in the log. None: it waits."""
    session: str | None = None
    """The name of the session in which the command is numbered, so that it can be repeated through
    any node and counts once. None: the session of this node."""
    number: int | None = None
    """The command's number within the named session."""
    placed: bool = False
    """Whether the reply comes as `Placed`."""


NO_OPTIONS = Options()


class Changes(Protocol):
    """What a state tells one who watches it."""

    async def take(self) -> object:
        """The next change, once it is there. When those that came before have been taken:
        `GapError` if more came than may wait, or if the state was replaced by a snapshot; or why
        the node has ended."""

    def close(self) -> None:
        """Nobody watches any more."""


class Port(Protocol):
    """The log under one face, and this node's copy of the state."""

    @property
    def machine(self) -> "Machine":
        """The state of this node. Whoever changes it other than by commands breaks the group."""

    @property
    def lock(self) -> AbstractContextManager[object]:
        """Held while the state changes, and by whoever looks at it from any thread."""

    @property
    def node(self) -> NodeId: ...

    @property
    def session(self) -> int:
        """Of this life of the node; what `Now.session` shows in commands that it sends."""

    @property
    def index(self) -> int:
        """Entries below this index are in the state."""

    @property
    def primary(self) -> bool:
        """Whether the log is open here: commands can be committed, and no other part of the group
        can commit any, as far as this node knows."""

    def fresh(self) -> int:
        """A number that this life of the node never used before."""

    def write(
        self, method: "Arguments", given: tuple[Any, ...], options: Options
    ) -> Awaitable[Any]:
        """The reply of a write with these arguments, once its command is committed and applied
        here; `Refused`, with its index, if the method refused."""

    async def sync(self, options: Options) -> None:
        """Return once all that was committed before the call is applied here."""

    def look(self, run: Callable[[Any], R]) -> R:
        """What `run` finds in the present state, without waiting for anything."""

    async def until(self, ready: Callable[[Any], R | None]) -> R:
        """What `ready` returns for the state as soon as it is not None. It is asked now, and again
        whenever a command or mark was applied or the log was opened or closed."""

    async def limited(self, work: Coroutine[Any, Any, R], timeout_s: float | None) -> R:
        """What `work` returns; TimeoutError, and the end of `work`, after `timeout_s`."""

    def background(self, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Do what `work` makes, without anybody waiting for it and unless the port is closed. If it
        fails nobody is told."""

    def changes(self) -> "Changes":
        """What the state tells from this call on."""

    def run(self, work: Coroutine[Any, Any, R]) -> R:
        """Wait for `work` outside of the event loop of the port."""
