"""Sending: packets as far as the window allows, and words in between."""

from roundelay.core.effects import Kind, Receipt, Record, SetTimer
from roundelay.core.ids import Packet
from roundelay.protocols.st.messages import Transmission
from roundelay.protocols.st.state import READY, State


class Sending(State):
    """A member that puts transmissions on the channel."""

    def _window(self) -> int:
        """How many more packets this node may send."""
        room = min(self.rooms)
        if room:
            room = max(1, room // self.size)
        logs = self.logs
        window = logs.least() + min(self.config.window_packets, room) - logs.next
        return min(window, self._kept_max - logs.kept)

    def _room(self) -> int:
        """Packets that this node has room for."""
        return max(0, self.config.buffer_packets - self.logs.waiting)

    def _transmit(self) -> None:
        """Send what waits, as far as the window allows."""
        if not self._more:
            return
        window = self._window()
        while window > 0:
            packet = self._outlet.pull()
            if packet is None:
                self._more = False
                return
            self._out.append(Record(Kind.ORIGINATE, packet, self._id))
            to = self._to(packet)
            if not to:
                if packet.span.count:
                    self._out.append(Receipt(packet.span, self._id))
                continue
            window -= 1
            name = self.logs.make(to, packet)
            if self.me not in to and packet.span.count:
                self.afar.append(self.logs.known[name])
            self._put(packet)
            self.logs.count(to)

    def _say(self) -> None:
        """Tell what was heard, without a packet."""
        self._put(None)

    def _put(self, packet: Packet | None) -> None:
        """Put a transmission on the channel."""
        logs = self.logs
        self._told_room = self._room()
        self.medium.send(
            Transmission(
                self.me,
                logs.epoch,
                logs.next,
                tuple(logs.sent),
                tuple(logs.expected),
                logs.pack(),
                logs.done(),
                self._told_room,
                packet,
            )
        )
        self._news = False
        self._untold = 0
        self._arm("ready")

    def _arm(self, what: str) -> None:
        """See to it that this node says something in time."""
        if self.size == 1 or self.frozen or self._armed == what == "ack":
            return
        self._armed = what
        delay_s = self.config.ack_s if what == "ack" else self.config.ready_s
        self._out.append(SetTimer(READY, delay_s))
