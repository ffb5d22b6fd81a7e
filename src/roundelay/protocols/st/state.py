"""What a member of ST knows in one view, and how it speaks to the others.

`sending`, `delivery`, `recovering`, `hearing`, `watching` and `leaving` build on this, each on the
one before, and `member` on them all.
"""

from collections import deque
from typing import TypeAlias

from roundelay.core.contract import Outlet
from roundelay.core.effects import Effect, Refuse, Send, SetTimer
from roundelay.core.ids import NodeId, View
from roundelay.protocols.st.config import Config
from roundelay.protocols.st.destinations import Destinations
from roundelay.protocols.st.lists import Collected, own_max
from roundelay.protocols.st.logs import Entry, Logs
from roundelay.protocols.st.medium import Channel, Medium, Reflected
from roundelay.protocols.st.messages import Message, StCodec
from roundelay.protocols.st.recovery import Recovery

READY = "ready"
REPEAT = "repeat"
WATCH = "watch"
"""Names of timers."""

WATCHES = 4
"""How often silence is looked at before it is too long."""

NO_MEMBER = Refuse("a transmission that no member can have sent")

Out: TypeAlias = list[Effect[Message]]


class State:
    """One member of a group that runs ST."""

    codec = StCodec()
    selective = True

    def __init__(self, node: NodeId, outlet: Outlet, config: Config) -> None:
        self.node = node
        self.config = config
        self._outlet = outlet
        self._out: Out = []
        self._repeat = SetTimer(REPEAT, config.repeat_s)
        self._watch = SetTimer(WATCH, config.silence_s / WATCHES)

    def _reset(self, view: View) -> None:
        """Fresh state for a view."""
        size, me = len(view.members), view.members.index(self.node)
        self.view = view
        self.size = size
        self.me = me
        self.frozen = False
        make = Reflected if self.config.medium == "reflector" else Channel
        self.medium: Medium = make(view, me, self._out)
        self.logs = Logs(size, me, 0)
        self.recovery: Recovery | None = None
        self.last: Collected | None = None
        """Lists of the epoch before, as long as somebody may still be in it."""
        self.behind: set[int] = set()
        """Members that may still be in the epoch before: they were not heard in this one."""
        self.afar: deque[Entry] = deque()
        """Own packets that are not for this node and whose receipt is due."""
        self.rooms = [self.config.buffer_packets] * size
        """By member: packets that it has room for."""
        self.quiet = [0] * size
        """By member: how often in a row it was not heard between two looks."""
        self.stuck = 0
        """Looks at which something waited, and nothing had been delivered since the one before."""
        self._delivered = 0
        self._seen_done = (0, 0)
        """The epoch and how much was delivered, at the last look."""
        self._told_room = self.config.buffer_packets
        """What this node last said that it had room for."""
        self._untold = 0
        """Packets that were heard since this node last said something."""
        self._news = False
        """Whether there is something to acknowledge."""
        self._armed = ""
        """What the timer waits for: a word that is due soon, or that this node is there."""
        self._polled: set[int] = set()
        """Members that were asked for a word since the last repetition."""
        self._more = True
        """Whether packets may wait in the outlet."""
        self._kept_max = own_max(size)
        """Own packets that this node may keep: a list of them must be one that others can read."""
        self._id = view.id
        self._to = Destinations(view.members, self.config.buffer_packets)
        self._index = self._to.index
        self._traced = self._outlet.traced

    def _send(self, message: Message, to: int | None = None) -> None:
        if self.size > 1:
            peer = None if to is None else self.view.members[to]
            self._out.append(Send(message, self._id, peer))

    def _drain(self) -> Out:
        out = self._out.copy()
        self._out.clear()
        return out
