"""From the application to the application: own requests are sent, confirmed ones delivered.

Services. `fifo`, `causal` and `agreed` packets are delivered when their decision is confirmed. A
`safe` packet is delivered once every member of the view is known to hold it, also one that is off
the ring, and what is ordered after it waits behind it.
"""

from roundelay.core.effects import (
    Deliver,
    Kind,
    Record,
    Send,
)
from roundelay.core.ids import Packet, Service
from roundelay.protocols.fc.asking import Asking
from roundelay.protocols.fc.chain import Entry
from roundelay.protocols.fc.messages import (
    Req,
    Run,
)
from roundelay.protocols.fc.state import runs_of

_SAFE = Service.SAFE


class Delivery(Asking):
    """A member that sends requests and delivers what is confirmed."""

    def _fresh_runs(self, entry: Entry) -> tuple[Run, ...] | None:
        """The requests of a confirmed decision that are to be delivered; None if that must not
        go on."""
        assert entry.decision is not None
        return entry.decision.runs

    def _advance_held(self) -> None:
        chain, requests, held = self.chain, self.requests, self.held
        tip = chain.tip.id.number
        while held < tip and requests.here(runs_of(chain.at(held + 1))):
            held += 1
        self.held = held

    def _deliver(self) -> None:
        """Deliver confirmed decisions whose requests are here, up to a safe packet that somebody
        may lack."""
        settled, requests, emit, view = self.settled, self.requests, self._out.append, self._id
        while settled:
            entry = settled[0]
            if not requests.here(runs_of(entry)):
                return
            number = entry.id.number
            runs = self._fresh_runs(entry)
            if runs is None:
                return
            if self._traced and number > self._told:
                self._tell_confirmed(number, runs)
            safe = number > self.stable
            place, index, part = 0, 0, self._part
            for sender, first, count in runs:
                bodies = requests.bodies[sender]
                for request in range(first, first + count):
                    packet = bodies[request]
                    place += 1
                    if place > part:
                        if safe and packet.service is _SAFE:
                            self._part = place - 1
                            return
                        self.delivered += 1
                        self.cause = entry.id
                        emit(Deliver(packet, view, (number, index)))
                    index += packet.span.count or 1
            self._part = 0
            self.done = number
            settled.popleft()

    def _tell_confirmed(self, number: int, runs: tuple[Run, ...]) -> None:
        self._told = number
        if not runs:
            self._out.append(Record(Kind.CONFIRM, None, self._id, (number, 0)))
        for packet, index in self._indexed(runs):
            self._out.append(Record(Kind.CONFIRM, packet.span, self._id, (number, index)))

    def _indexed(self, runs: tuple[Run, ...]) -> list[tuple[Packet, int]]:
        """The packets of a decision, and by how many messages each comes behind the first."""
        found: list[tuple[Packet, int]] = []
        index = 0
        for sender, first, count in runs:
            bodies = self.requests.bodies[sender]
            for request in range(first, first + count):
                packet = bodies[request]
                found.append((packet, index))
                index += packet.span.count or 1
        return found

    def _forget(self) -> None:
        """Forget what every member holds. If too much is kept for those who are behind, nothing new
        is sent: they are suspected. A static group goes on without them."""
        chain = self.chain
        if self.stable <= chain.floor and len(chain) < self.config.buffer_packets // 8:
            return
        line = min(self.stable, self.done)
        kept = chain.tip.packets - chain.at(chain.floor).packets + len(chain)
        if kept > self.config.buffer_packets and self.static:
            there = [n for i, n in enumerate(self.holds) if self._counts(i)]
            line = min(self.done, *there)
        if line > chain.floor:
            entry = chain.forget(line)
            for sender, number in enumerate(entry.ordered):
                self.requests.forget(sender, number)
            kept = chain.tip.packets - entry.packets + len(chain)
        self._full = kept > self.config.buffer_packets

    def _counts(self, member: int) -> bool:
        """Whether the group waits for this member: it is on the ring, or it is heard."""
        return member in self.ring or self.quiet[member] <= self._wait_ticks

    def _window(self) -> int:
        """How many more requests this node may send."""
        low = min(n for i, n in enumerate(self.holds) if i == self.me or self._counts(i))
        entry = self.chain.at(max(low, self.chain.floor))
        return self.config.window_packets - (self.sent - entry.ordered[self.me])

    def _allowance(self) -> int:
        """How many packets this node may send now. While an own request has no place yet, the last
        packet that waits is left to be filled: its request could get no place before that one."""
        if self.sent > self.chain.tip.ordered[self.me]:
            waiting = self._outlet.waiting - 1
            return min(waiting, self._window()) if waiting > 0 else 0
        return self._window()

    def _pump(self) -> None:
        """Send what waits, as far as the window allows."""
        if self._full:
            return
        alone = self.size == 1
        room = self.config.batch_packets if alone else self._allowance()
        while room > 0:
            packet = self._outlet.pull()
            if packet is None:
                self._more = False
                return
            room -= 1
            self.sent += 1
            if self._traced:
                self._out.append(Record(Kind.ORIGINATE, packet, self._id))
            self.requests.store(self.me, self.sent, packet)
            if not alone:
                self.requests.causes[self.me][self.sent] = self.cause
                self._out.append(Send(Req(self.me, self.sent, packet, self.cause), self._id))
