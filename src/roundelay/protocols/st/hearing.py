"""Acceptance: what a member makes of a transmission at its place on the channel."""

from roundelay.core.effects import Kind, Record
from roundelay.protocols.st.messages import Name, Transmission
from roundelay.protocols.st.recovering import Recovering
from roundelay.protocols.st.state import NO_MEMBER


class Hearing(Recovering):
    """A member that hears the channel."""

    def _sound(self, t: Transmission) -> bool:
        """Whether a member of this view can have sent this transmission."""
        packet = t.packet
        if t.source >= self.size or len(t.ack) != self.size:
            return False
        if packet is not None and packet.span.node != self.view.members[t.source]:
            return False
        return packet is None or bool(self._to(packet))

    def _hear(self, t: Transmission) -> None:
        """A transmission is heard at its place on the channel."""
        logs = self.logs
        self.quiet[t.source] = 0
        if t.epoch == logs.epoch + 1:
            self._all_done()
            logs = self.logs
        if t.epoch != logs.epoch:
            return
        if t.packet is not None and self._traced:
            self._out.append(Record(Kind.RECEIVE, t.packet, self._id))
        if self.recovery is not None:
            if t.packet is not None and self.me in self._to(t.packet):
                self.recovery.keep(Name(t.source, t.number), t.packet)
                self._plan(self.recovery)
            return
        if t.counts[self.me] < logs.got[t.source] or logs.goes_back(t) or self._invented(t):
            self._out.append(NO_MEMBER)
            return
        if self.behind:
            self.behind.discard(t.source)
            if not self.behind:
                self.last = None
        self.rooms[t.source] = t.room
        logs.note(t)
        to = () if t.packet is None else self._to(t.packet)
        if not logs.hear(t, to):
            self._stop()
            return
        if t.packet is not None:
            self._news = True
            if t.source != self.me:
                self._untold += 1

    def _invented(self, t: Transmission) -> bool:
        """Whether it tells of own packets that were never sent, is not this node's own, or is more
        than members can have sent."""
        logs = self.logs
        if t.ack[self.me] > logs.next or logs.too_far(t):
            return True
        if t.packet is not None and logs.waiting > 2 * (self.config.buffer_packets + self.size):
            return True  # Members send no more than there is room for.
        if t.source != self.me or t.packet is None:
            return False
        entry = logs.known.get(Name(self.me, t.number))
        return entry is None or entry.packet != t.packet
