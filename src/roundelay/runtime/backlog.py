"""What the application has not read yet, and what follows from it for the group.

Deliveries wait in the inbox until the application reads them. Two limits bound what waits:

- Above the first, the node is *backlogged*: its port stalls it for a moment between two turns of
  reading (see `port`), and the group slows down to the pace of this application.
- Above the second, frames that bring packets are refused. A refused frame counts as lost on its
  way, so the engine's own flow control makes the group wait, and the engine asks again for every
  packet that fits by then.
"""

from collections.abc import Callable
from typing import Any

from roundelay.core.contract import CoreStatus
from roundelay.membership.messages import FIRST_TAG
from roundelay.runtime.inbox import Inbox
from roundelay.runtime.node_log import NodeLog
from roundelay.runtime.sending import Sending
from roundelay.wire.frame import Frame

PacketsIn = Callable[[Any], int]
"""How many packets a message of the engine brings; 0 for a token or an acknowledgement."""

SLOW_PACKETS = 300
"""Unread packets above which the node is backlogged. Too small: a reader that is busy for a moment
slows the group down; too large: a slow reader has much to catch up with."""
SLOW_BYTES = 4 * 1024 * 1024
"""Unread bytes above which the node is backlogged; half of `backlog_bytes` if that is less. Too
small or too large: as `SLOW_PACKETS`."""
SMALL_FRAME_BYTES = 600
"""Frames of up to so many bytes are admitted longer than others: tokens and acknowledgements are
among them, without which a group does not go on. Too small: tokens are refused, and a node with a
slow application is given up; too large: packets fill the room that is reserved for small frames."""
RESERVED_SHARE = 0.25
"""The share of `backlog_bytes` that only small frames may fill, and all frames while a task of the
application waits for the group: it may be the one that reads. Too small: such an application waits
for itself in vain; too large: packets are refused although there is memory for them."""


class Backlog:
    """Knows how much waits for the application of one node, and which frames there is room for."""

    def __init__(
        self,
        inbox: Inbox,
        status: CoreStatus,
        sending: Sending,
        backlog_bytes: int,
        packets_in: PacketsIn,
        node_log: NodeLog,
    ) -> None:
        self.inbox = inbox
        self.refused = 0
        """Frames that were refused because the application left no room for them."""
        self.checked_above_bytes = int(backlog_bytes * (1 - RESERVED_SHARE))
        """Every frame is admitted while no more bytes than these are unread."""
        self._status = status
        self._sending = sending
        self._most_bytes = backlog_bytes
        self._slow_bytes = min(SLOW_BYTES, backlog_bytes // 2)
        self._packets_in = packets_in
        self._node_log = node_log

    @property
    def unread_bytes(self) -> int:
        """Bytes that wait to be read, and pieces of large messages that are not complete."""
        return self.inbox.bytes + self._status.incomplete_bytes

    def backlogged(self) -> bool:
        """Whether the group has to slow down for this application. It never does while a task of
        the application waits for the group: that task may be the one that reads."""
        packets = len(self.inbox.waiting)
        many = packets > SLOW_PACKETS or (packets and self.unread_bytes > self._slow_bytes)
        return bool(many) and not self._sending.awaited

    def refuses(self, frame: Frame[Any]) -> bool:
        """Whether a frame brings packets for which there is no room; asked only when more than
        `checked_above_bytes` are unread."""
        small = frame.size <= SMALL_FRAME_BYTES
        if frame.tag >= FIRST_TAG or (small and not self._packets_in(frame.message)):
            return False  # It is of membership, or keeps the engine going.
        if not self.inbox.waiting:
            return False  # Only incomplete messages take room, and the frame may complete one.
        if (small or not self.backlogged()) and self.unread_bytes <= self._most_bytes:
            return False
        self.refused += 1
        self._node_log.full(self.unread_bytes)
        return True
