"""What the log needs of the membership below it, and of the packer beside it."""

from typing import Any, Protocol

from roundelay.core.effects import Effect
from roundelay.core.ids import NodeId, Packet, View, ViewId


class Ground(Protocol):
    """Membership, as the log sees it."""

    @property
    def frozen(self) -> bool:
        """Whether the view is about to end: neither acknowledgment nor answer may leave in it."""
        ...

    @property
    def able(self) -> bool:
        """Whether this node has a vote."""
        ...

    @property
    def last_open(self) -> ViewId | None:
        """The last primary view that this node has noted as open."""
        ...

    @property
    def journals(self) -> tuple[NodeId, ...]:
        """The members of the view that have journals."""
        ...

    @property
    def able_members(self) -> tuple[NodeId, ...]:
        """Those that brought a vote into the view."""
        ...

    def note_open(self, view: View) -> list[Effect[Any]]:
        """A primary view is open, and this node is ready in it: from now on it is the last one, and
        this node is able. The effects write that to stable storage."""
        ...


class Queue(Protocol):
    """The packer, as the log sees it."""

    def enqueue(self, bodies: list[bytes], count: int) -> None:
        """Queue packets with these bodies, the last of which completes so many messages."""
        ...

    @property
    def log_packets(self) -> int:
        """Log packets that the engine has not pulled."""
        ...

    def drop_log_packets(self) -> list[Packet]:
        """Take all log packets out of the queue."""
        ...
