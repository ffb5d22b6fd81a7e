"""What a member of FC knows in one view."""

from collections import deque
from collections.abc import Sequence
from math import ceil
from typing import TypeAlias

from roundelay.core.contract import Outlet
from roundelay.core.effects import (
    Effect,
    Refuse,
    Send,
    SetTimer,
    Suspect,
)
from roundelay.core.ids import NodeId, View
from roundelay.protocols.fc.chain import Chain, Entry
from roundelay.protocols.fc.config import Config
from roundelay.protocols.fc.messages import (
    ROOT,
    DecisionId,
    FcCodec,
    Message,
    Run,
)
from roundelay.protocols.fc.requests import Requests

WAIT = "wait"
HOLD = "hold"
GRACE = "grace"
TICK = "tick"
"""Names of timers. Ticks come every `repeat_s`, for what is repeated and what is counted."""

EPOCHS_AHEAD_MAX = 2**32
"""By how much a member may count on: more than any group counts in a view."""

NO_DECISION = Refuse("a decision that no member can have made")
NOT_ASKED = Refuse("an answer to what nobody asked")

Out: TypeAlias = list[Effect[Message]]


class State:
    """One member of a group that runs FC. What it does is in the classes that build on this one:
    `asking`, `delivery` and `member`, and then `safe` or `literal`."""

    codec = FcCodec()
    selective = False

    def __init__(self, node: NodeId, outlet: Outlet, config: Config) -> None:
        self.node = node
        self.config = config
        self._outlet = outlet
        self._out: Out = []
        self._tick = SetTimer(TICK, config.repeat_s)
        self._hold = SetTimer(HOLD, config.idle_s)
        self._silence_ticks = (
            ceil(config.silence_s / config.repeat_s) + 1
        )  # The first is cut short.
        self._wait_ticks = ceil(config.wait_s / config.repeat_s)

    def _reset(self, view: View) -> None:
        """Fresh state for a view."""
        size, me = len(view.members), view.members.index(self.node)
        self.view = view
        self.size = size
        self.me = me
        self.frozen = False
        self.static = not view.id.seq
        """A static group is view 0, which never ends."""
        self.quorum = size // 2 + 1
        self.requests = Requests(size, self.config.buffer_packets)
        self.chain = Chain(size, self.config.buffer_packets)
        self.ring: tuple[int, ...] = tuple(range(size))
        """The members that the token visits, as the last decision says."""
        self.version = 1
        self.sent = 0
        """Own requests."""
        self.held = 0
        """The number up to which all requests on the chain are here."""
        self.confirmed: DecisionId = ROOT
        self.settled: deque[Entry] = deque()
        """Decisions that are confirmed and not delivered."""
        self.delivered = 0
        """Packets."""
        self.cause: DecisionId = ROOT
        """The last decision of which something is delivered."""
        self.done = 0
        """The number of the last decision that is delivered as a whole."""
        self.holds = [0] * size
        """By member: the confirmed number up to which it is known to hold everything."""
        self.stable = 0
        """The least of them."""
        self.holding = me == 0
        """Whether the token is here."""
        self.joiners: dict[int, None] = {}
        """Members that want to be on the ring again."""
        self.failures = 0
        """How often in a row the token was waited for in vain."""
        self.quiet = [0] * size
        """By member: ticks since it was heard."""
        self.stuck = [0] * size
        """By member: ticks since it was up to date, or got something."""
        self.idle_ticks = 0
        """Ticks since the chain has grown."""
        self._part = 0
        """How many packets of the first settled decision are delivered."""
        self._told = 0
        """The number of the last decision whose confirmation is recorded."""
        self._paced = False
        """Whether the token rests here."""
        self._asked = 0
        """Since the last tick: 1 if decisions were asked for, 2 if requests were."""
        self._asked_last = Run(me, 0, 0)
        """The last requests that were asked for."""
        self._attempts = 0
        """Ticks in a row at which something was asked for in vain."""
        self._unordered = 0
        """Ticks since an own request was sent that has no place."""
        self._more = True
        """Whether packets may wait in the outlet."""
        self._full = False
        """Whether as much is kept for others as may be."""
        self._id = view.id
        self._index = {member: i for i, member in enumerate(view.members)}
        self._traced = self._outlet.traced

    def _accuse(self, places: Sequence[int], reason: str) -> None:
        if places:
            self._out.append(Suspect(tuple(self.view.members[i] for i in places), reason))

    def _send(self, message: Message, to: int | None = None) -> None:
        peer = None if to is None else self.view.members[to]
        self._out.append(Send(message, self._id, peer))

    def _drain(self) -> Out:
        out, self._out = self._out, []
        return out


def runs_of(entry: Entry) -> tuple[Run, ...]:
    return () if entry.decision is None else entry.decision.runs
