"""The engine under the safe rules: its inputs, and what it does after each of them.

After every input `_advance` does whatever has become possible: hear what is on the channel, agree,
deliver, send. If a packet was missed, the epoch ends (`recovering`).
"""

from collections.abc import Sequence

from roundelay.core.contract import Origin
from roundelay.core.effects import SetTimer
from roundelay.core.ids import View
from roundelay.protocols.st.leaving import Leaving
from roundelay.protocols.st.messages import (
    Again,
    Done,
    ListPart,
    Message,
    Placed,
    Poll,
    Raised,
    Reset,
    Taken,
    Want,
)
from roundelay.protocols.st.state import NO_MEMBER, REPEAT, Out


class StMember(Leaving):
    """One member of a group that runs ST."""

    def start(self, view: View) -> Out:
        self._reset(view)
        size, me = self.size, self.me
        if size > 1:
            # Members begin a view together, and must not all repeat themselves at the same time:
            # what answers one of them would again and again be lost among what the others say.
            first_s = self.config.repeat_s * (size + me) / size
            self._out += (SetTimer(REPEAT, first_s), self._watch)
            self._arm("ready")
        self._advance()
        return self._drain()

    def submit(self) -> Out:
        self._more = True
        if self.recovery is None and not self.medium.heard:
            self._transmit()  # Nothing else can have become possible.
        if self.medium.heard:  # This node reflects: what it sends, it hears at once.
            self._advance()
        return self._drain()

    def receive(self, origin: Origin, message: Message) -> Out:
        self._receive(self._index[origin.node], message)
        if not self.frozen:
            self._advance()
        return self._drain()

    def receive_many(self, origin: Origin, messages: Sequence[Message]) -> Out:
        peer = self._index[origin.node]
        for message in messages:
            self._receive(peer, message)
        if not self.frozen:
            self._advance()
        return self._drain()

    def expire(self, timer: str) -> Out:
        match timer:
            case "ready":
                self._armed = ""
                if self.recovery is None and not self.medium.waiting:
                    self._say()
                else:
                    self._arm("ready")
            case "repeat":
                self._out.append(self._repeat)
                self.medium.repeat()
                self._polled.clear()
                self.logs.forget()
                if self.recovery is not None:
                    self._repeat_recovery(self.recovery)
            case "watch":
                self._out.append(self._watch)
                self._suspect()
            case _:
                raise AssertionError(f"unknown timer {timer}")
        self._advance()
        return self._drain()

    # What others say

    def _receive(self, peer: int, message: Message) -> None:
        self.quiet[peer] = 0
        if self.frozen:
            return
        if isinstance(message, Placed | Raised | Taken):
            if isinstance(message, Taken) or self._sound(message.transmission):
                self.medium.receive(peer, message)
            else:
                self._out.append(NO_MEMBER)
            return
        if peer == self.me:
            return
        match message:
            case Poll():
                self._news = True
                self._arm("ack")
            case Reset():
                if self._concerns(message.epoch):
                    self._stop()
                elif message.epoch == self.logs.epoch - 1:
                    self._send(Done(message.epoch, self._to.everybody), peer)
            case ListPart():
                if self._concerns(message.epoch):
                    self._take_part(message)
            case Want():
                self._answer(peer, message)
            case Again():
                self._take_again(message)
            case Done():
                if peer not in message.members or max(message.members) >= self.size:
                    self._out.append(NO_MEMBER)
                elif self._concerns(message.epoch) and self.recovery is not None:
                    done = self.recovery.done
                    if self.me in done or self.me not in message.members:
                        done.update(message.members)

    # What can be done now

    def _advance(self) -> None:
        heard = self.medium.heard
        while True:
            while heard:
                self._hear(heard.popleft())
            if self.recovery is None:
                self._deliver()
                self._transmit()
            elif len(self.recovery.done) == self.size:
                self._go_on(self.recovery)
                continue
            if not heard:
                break
        if self.recovery is None and self.size > 1 and self._news:
            if self._untold >= self.config.ack_packets and not self.medium.waiting:
                self._say()
            else:
                self._arm("ack")
