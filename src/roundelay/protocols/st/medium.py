"""The one channel: how all members come to hear transmissions in one order.

A real network has no such order, so the first member of the view is the *reflector*. Members send
it their transmissions, numbered, and again until they hear of them. It takes those of each member
in their order, once each, gives every one the next hop number, and sends it to all. A member drops
what is not newer than the last hop that it heard: frames that overtake each other become losses,
which the protocol makes good. It uses hop numbers for nothing else.

Where the network itself is one channel, as one of the simulator's is, nobody reflects.
"""

from collections import deque
from typing import Protocol, TypeAlias

from roundelay.core.effects import Effect, Refuse, Send
from roundelay.core.ids import View
from roundelay.protocols.st.messages import Message, Placed, Raised, Taken, Transmission

REFLECTOR = 0
"""The place of the member that reflects."""

REPEATED_MAX = 8
"""Most transmissions that are sent to the reflector again at a time."""

EARLY_MAX = 1024
"""How far ahead of its turn a transmission is kept."""

_NOT_REFLECTED = Refuse("a hop number that its sender cannot have given out")
_NOT_SENT = Refuse("a transmission that its sender cannot have sent")

Out: TypeAlias = list[Effect[Message]]


class Medium(Protocol):
    """What puts transmissions on the channel. Its effects go where it was told to put them."""

    heard: deque[Transmission]
    """Transmissions that this member hears, in their order, for the engine to take out."""

    @property
    def waiting(self) -> int:
        """Own transmissions that are not known to be on the channel."""
        ...

    def send(self, sent: Transmission) -> None: ...

    def receive(self, peer: int, message: Placed | Raised | Taken) -> None: ...

    def repeat(self) -> None:
        """Time has passed: send again what is not known to be on the channel."""
        ...


class Channel:
    """The network is the channel: it shows every member its own frames, too."""

    waiting = 0

    def __init__(self, view: View, me: int, out: Out) -> None:
        self._view = view.id
        self._me = me
        self._alone = len(view.members) == 1
        self._out = out
        self.heard: deque[Transmission] = deque()

    def send(self, sent: Transmission) -> None:
        if self._alone:
            self.heard.append(sent)
        else:
            self._out.append(Send(Placed(0, 0, sent), self._view))

    def receive(self, peer: int, message: Placed | Raised | Taken) -> None:
        if type(message) is not Placed or message.hop:
            self._out.append(_NOT_REFLECTED)
        elif message.transmission.source != peer:
            self._out.append(_NOT_SENT)
        else:
            self.heard.append(message.transmission)

    def repeat(self) -> None:
        """What was sent is on the channel."""


class Reflected:
    """The first member of the view makes the channel."""

    def __init__(self, view: View, me: int, out: Out) -> None:
        self._view = view.id
        self._reflector = view.members[REFLECTOR]
        self._members = view.members
        self._me = me
        self._out = out
        self.heard: deque[Transmission] = deque()
        self._hop = 0
        """The last one that was heard, or at the reflector given out."""
        self._turn = 0
        """Own transmissions."""
        self._outstanding: dict[int, Transmission] = {}
        """Own ones, by turn, that are not known to be on the channel."""
        self._old = 0
        """The last turn at the last repetition: what came later is not repeated yet."""
        self._turns = [0] * len(view.members)
        """At the reflector, by member: the last turn that was taken ..."""
        self._early: list[dict[int, Transmission]] = [{} for _ in view.members]
        """... and what came before its turn."""

    @property
    def waiting(self) -> int:
        return len(self._outstanding)

    def send(self, sent: Transmission) -> None:
        self._turn += 1
        if self._me == REFLECTOR:
            self._place(self._turn, sent)
        else:
            self._outstanding[self._turn] = sent
            self._out.append(Send(Raised(self._turn, sent), self._view, self._reflector))

    def receive(self, peer: int, message: Placed | Raised | Taken) -> None:
        if type(message) is Placed:
            if peer != REFLECTOR or not message.hop:
                self._out.append(_NOT_REFLECTED)
            elif message.hop > self._hop:
                self._hop = message.hop
                if message.transmission.source == self._me:
                    if message.turn > self._turn:
                        self._out.append(_NOT_SENT)
                        return
                    self._taken(message.turn)
                self.heard.append(message.transmission)
        elif type(message) is Raised:
            self._raise(peer, message)
        elif type(message) is Taken:
            if peer != REFLECTOR or message.turn > self._turn:
                self._out.append(_NOT_REFLECTED)
            else:
                self._taken(message.turn)

    def repeat(self) -> None:
        for turn in list(self._outstanding)[:REPEATED_MAX]:
            if turn <= self._old:
                raised = Raised(turn, self._outstanding[turn])
                self._out.append(Send(raised, self._view, self._reflector))
        self._old = self._turn

    def _taken(self, turn: int) -> None:
        """The reflector has everything up to this turn."""
        while self._outstanding and (first := next(iter(self._outstanding))) <= turn:
            del self._outstanding[first]

    def _raise(self, peer: int, m: Raised) -> None:
        """A member wants something on the channel."""
        if self._me != REFLECTOR or m.transmission.source != peer:
            self._out.append(_NOT_SENT)
            return
        last, early = self._turns[peer], self._early[peer]
        if m.turn <= last:
            self._out.append(Send(Taken(last), self._view, self._members[peer]))
        elif m.turn <= last + EARLY_MAX:
            early[m.turn] = m.transmission
            while (sent := early.pop(last + 1, None)) is not None:
                last += 1
                self._place(last, sent)
            self._turns[peer] = last

    def _place(self, turn: int, sent: Transmission) -> None:
        self._hop += 1
        if len(self._members) > 1:
            self._out.append(Send(Placed(self._hop, turn, sent), self._view))
        self.heard.append(sent)
