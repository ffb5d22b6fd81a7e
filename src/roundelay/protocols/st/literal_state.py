"""What a member knows under the rules of the paper, and how it speaks to the others."""

from collections import deque
from enum import Enum
from typing import TypeAlias

from roundelay.core.contract import Outlet
from roundelay.core.effects import (
    CancelTimer,
    Deliver,
    Effect,
    Kind,
    Record,
    Refuse,
    Send,
    SetTimer,
    Suspect,
)
from roundelay.core.ids import NodeId, Packet, View
from roundelay.core.value import value
from roundelay.protocols.st.config import Config
from roundelay.protocols.st.destinations import Destinations
from roundelay.protocols.st.literal_messages import (
    Abort,
    LiteralCodec,
    LiteralMessage,
    RstAck,
    Vector,
)
from roundelay.protocols.st.messages import Name, Placed, Transmission

READY = "ready"
"""Timers: to say that this node is there ..."""
PACK = "pack"
"""... to send the oldest own packet again that is not pre-acknowledged ..."""
HOLD = "hold"
"""... to deliver what is pre-acknowledged for too long ..."""
ASK = "ask"
"""... to ask for packets that do not come again ..."""
WATCH = "watch"
"""... and to look who is silent."""
WATCHES = 4
"""How often silence is looked at before it is too long."""

NO_MEMBER = Refuse("something that no member can have sent")

Out: TypeAlias = list[Effect[LiteralMessage]]


class Phase(Enum):
    """What a member is doing."""

    SEND = "send"
    PAKS = "collects RST_PAKs"
    ACKS = "collects RST_ACKs"
    RETS = "waits for packets"
    STOPPED = "stopped"

    def __str__(self) -> str:
        return self.value


@value
class Kept:
    """A packet in a log."""

    name: Name
    to: tuple[int, ...]
    pseq: int
    """Its number among those of its source for this member."""
    ack: Vector
    packet: Packet

    def __str__(self) -> str:
        return str(self.name)


class LiteralState:
    """One member of a static group that runs ST as the paper has it."""

    codec = LiteralCodec()
    selective = True

    def __init__(self, node: NodeId, outlet: Outlet, config: Config) -> None:
        self._node = node
        self._config = config
        self._outlet = outlet
        self._out: Out = []

    def _reset(self, view: View) -> None:
        """Fresh state for the group."""
        size = len(view.members)
        self._view = view
        self._size = size
        self._me = view.members.index(self._node)
        self._to = Destinations(view.members, self._config.buffer_packets)
        self._traced = self._outlet.traced
        self.phase = Phase.SEND
        self.epoch = 0
        """Recoveries that are over."""
        self.tseq = 1
        self.pseq = [1] * size
        self.treq = [1] * size
        self.preq = [1] * size
        self.al = [[1] * size for _ in range(size)]
        """`al[h][j]`: what j expects next from h; `pal` likewise."""
        self.pal = [[1] * size for _ in range(size)]
        self.buf = [self._config.buffer_packets] * size
        self.rrl: list[Kept] = []
        self.prl: list[Kept] = []
        self.line: Vector = ()
        """On which the last recovery agreed ..."""
        self.order: tuple[int, ...] = ()
        """... and ORDR."""
        self.fail = 0
        self._sent: deque[tuple[Transmission, tuple[int, ...]]] = deque()
        """SL: own packets that some member that they are for may lack."""
        self._paks: dict[int, Vector] = {}
        self._acks: dict[int, RstAck] = {}
        self._again: dict[Name, Kept] = {}
        self._rest: list[Kept] = []
        """RRL from the sort point on."""
        self._early: deque[tuple[int, LiteralMessage]] = deque()
        """What came for the next epoch, with its sender."""
        self._own: deque[LiteralMessage] = deque()
        """What a node that is alone says to itself."""
        self._quiet = [0] * size
        self._asked = False
        """Whether this node has sent an RST in this epoch."""
        self._passed = 0
        """Packets that were moved to PRL, those that left it, and those that may not wait there
        any longer."""
        self._left = 0
        self._overdue = 0
        self._timers: dict[str, object] = {}

    # What is delivered

    def _stable(self, p: Kept, level: int) -> None:
        if self._traced:
            self._out.append(Record(Kind.STABLE, p.packet.span, self._view.id, level=level))

    def _deliver(self, p: Kept) -> None:
        """Move the first packet of PRL to the application."""
        self._left += 1
        self._out.append(Deliver(p.packet, self._view.id))

    # The end of the group

    def _watch(self) -> None:
        """The paper aborts the group if a member fails."""
        self._quiet = [count + 1 for count in self._quiet]
        silent = [k for k in range(self._size) if k != self._me and self._quiet[k] > WATCHES]
        if silent:
            names = ", ".join(self._view.members[k] for k in silent)
            self._abort(f"nothing is heard of {names}")
        else:
            self._arm(WATCH, self._config.silence_s / WATCHES)

    def _abort(self, why: str) -> None:
        self._broadcast(Abort())
        self._stop(why)

    def _stop(self, why: str) -> None:
        self.phase = Phase.STOPPED
        self._out += [CancelTimer(timer) for timer in self._timers]
        self._timers.clear()
        self._out.append(Suspect((), f"aborted: {why}"))

    # Frames and timers

    def _broadcast(self, message: LiteralMessage) -> None:
        if self._size == 1:
            self._own.append(message)
        else:
            self._out.append(Send(message, self._view.id))

    def _arm(self, timer: str, delay_s: float, what: object = None) -> None:
        self._timers[timer] = what
        self._out.append(SetTimer(timer, delay_s))

    def _keep(self, timer: str, delay_s: float, what: object) -> bool:
        """See to it that the timer runs for this alone; whether it was set."""
        if what is None:
            if timer in self._timers:
                del self._timers[timer]
                self._out.append(CancelTimer(timer))
            return False
        if self._timers.get(timer) == what:
            return False
        self._arm(timer, delay_s, what)
        return True

    def _drain(self) -> Out:
        out = self._out
        self._out = []
        return out


def epoch_of(message: LiteralMessage) -> int:
    """The epoch that something was said in; 0 for what is of none."""
    if isinstance(message, Placed):
        return message.transmission.epoch
    return 0 if isinstance(message, Abort) else message.epoch
