"""Agreement and delivery: what all have is delivered, and receipts are given.

Services. `fifo`, `causal`, `agreed` and `safe` packets are all delivered once every member that
they are for has them, and is known to know that of the others.

Destinations. A packet for nobody of the view is not sent at all. The sender of a packet that is not
for itself has its receipt once all members that it is for are known to have it.
"""

from roundelay.core.effects import Deliver, Kind, Receipt, Record
from roundelay.protocols.st.messages import Poll
from roundelay.protocols.st.sending import Sending


class Delivery(Sending):
    """A member that agrees on packets and delivers them."""

    def _deliver(self) -> None:
        """Pre-acknowledge and deliver what may be."""
        logs, emit, view, traced = self.logs, self._out.append, self._id, self._traced
        gap = logs.gap
        if not gap and logs.accepted:
            for entry in logs.agree():
                self._news = True
                if traced:
                    emit(Record(Kind.STABLE, entry.packet.span, view, level=1))
        for source in gap:
            if source not in self._polled and source != self.me:
                self._polled.add(source)
                self._send(Poll(), source)
        if logs.agreed:
            for entry in logs.deliverable():
                if traced:
                    emit(Record(Kind.STABLE, entry.packet.span, view, level=2))
                emit(Deliver(entry.packet, view))
                self._delivered += 1
            if self._told_room < self.size <= self._room():
                self._news = True  # Others wait to hear that there is room.
            if self.size == 1:
                logs.forget()  # Nothing is ever repeated.
        self._give_receipts()

    def _give_receipts(self) -> None:
        """Of own packets that are not for this node, once those that they are for have them."""
        acks, me = self.logs.acks, self.me
        while self.afar:
            entry = self.afar[0]
            if any(acks[member][me] <= entry.name.number for member in entry.to):
                return
            self.afar.popleft()
            self._out.append(Receipt(entry.packet.span, self._id))
