"""The end of an epoch, as a member goes through it: what it tells, asks and answers.

What it knows meanwhile, and when it has all, is in `recovery`.
"""

from collections.abc import Mapping

from roundelay.core.effects import Deliver, Kind, Record, Refuse
from roundelay.core.ids import Packet
from roundelay.protocols.st.delivery import Delivery
from roundelay.protocols.st.lists import List, parts
from roundelay.protocols.st.logs import Logs
from roundelay.protocols.st.messages import Again, Done, ListPart, Name, Reset, Want
from roundelay.protocols.st.recovery import Recovery
from roundelay.protocols.st.state import NO_MEMBER
from roundelay.wire.primitives import WireError

_NO_LIST = Refuse("a list that no member can have made")


class Recovering(Delivery):
    """A member that ends epochs together with the others."""

    def _stop(self) -> None:
        """A recovery begins."""
        if self.recovery is not None:
            return
        self.recovery = Recovery(self.logs)
        self._send(Reset(self.logs.epoch))
        self._tell_list(self.recovery.list, None)
        self._plan(self.recovery)

    def _tell_list(self, made: List, peer: int | None) -> None:
        for part in parts(made, self.config.part_bytes):
            self._send(part, peer)

    def _take_part(self, m: ListPart) -> None:
        self._stop()
        recovery = self.recovery
        assert recovery is not None
        try:
            if recovery.collected.take(m):
                self._plan(recovery)
        except WireError:
            self._out.append(_NO_LIST)

    def _plan(self, recovery: Recovery) -> None:
        """See whether something more is here, and say so if it is all."""
        recovery.plan()
        if recovery.order is None or self.me in recovery.done:
            return
        if recovery.complete:
            recovery.done.add(self.me)
            self._tell_done(recovery)
        else:
            self._ask(recovery)

    def _tell_done(self, recovery: Recovery, peer: int | None = None) -> None:
        self._send(Done(recovery.epoch, tuple(sorted(recovery.done))), peer)

    def _ask(self, recovery: Recovery) -> None:
        for peer, want in recovery.questions():
            if peer != self.me:
                self._send(want, peer)

    def _repeat_recovery(self, recovery: Recovery) -> None:
        if recovery.young:
            recovery.young = False
            return
        if recovery.collected.missing:
            self._send(Reset(recovery.epoch))
        if self.me in recovery.done:
            self._tell_done(recovery)
            self._send(Want(recovery.epoch, ()))  # Who has gone on says so.
        else:
            recovery.attempts += 1
            recovery.asked.clear()
            self._ask(recovery)

    def _answer(self, peer: int, m: Want) -> None:
        """Give another what it lacks at the end of an epoch."""
        recovery, last = self.recovery, self.last
        if recovery is not None and m.epoch == recovery.epoch:
            lists: Mapping[int, List] = recovery.collected.lists
            if self.me in recovery.done:
                self._tell_done(recovery, peer)
        elif m.epoch == self.logs.epoch - 1 and last is not None:
            lists = last.lists
            self._send(Done(m.epoch, self._to.everybody), peer)
        else:
            if m.epoch == self.logs.epoch - 1:
                self._send(Done(m.epoch, self._to.everybody), peer)
            elif m.epoch == self.logs.epoch:
                self._stop()
            return
        for member in m.lists:
            if member in lists:
                self._tell_list(lists[member], peer)
        for name in m.packets:
            packet = self._packet(name)
            if packet is not None:
                self._send(Again(m.epoch, name, packet), peer)

    def _packet(self, name: Name) -> Packet | None:
        if self.recovery is not None:
            return self.recovery.packet(name)
        entry = self.logs.known.get(name)
        return None if entry is None else entry.packet

    def _take_again(self, m: Again) -> None:
        recovery = self.recovery
        if recovery is None or m.epoch != recovery.epoch or recovery.order is None:
            return
        source = m.name.source
        if source >= self.size or self.view.members[source] != m.packet.span.node:
            self._out.append(NO_MEMBER)
            return
        if m.name in recovery.lacking():
            if self._traced:
                self._out.append(Record(Kind.RECEIVE, m.packet, self._id))
            recovery.keep(m.name, m.packet)
            self._plan(recovery)

    def _concerns(self, epoch: int) -> bool:
        """Whether something is about the end of this epoch. What is about the next one tells that
        everybody is done with this one."""
        if epoch == self.logs.epoch + 1:
            self._all_done()
        return epoch == self.logs.epoch

    def _all_done(self) -> None:
        """Somebody is in the next epoch, so everybody is done with this one."""
        recovery = self.recovery
        if recovery is not None and self.me in recovery.done:
            recovery.done.update(range(self.size))
            self._go_on(recovery)

    def _go_on(self, recovery: Recovery) -> None:
        """All have all: deliver what is left, and begin the next epoch."""
        claimed = {entry.name for entry in self.logs.agreed}
        for item in recovery.left():
            packet = recovery.packet(item.name)
            assert packet is not None, "a member was done without a packet"
            if self._traced and item.name not in claimed:
                self._out.append(Record(Kind.STABLE, packet.span, self._id, level=1))
            self._out.append(Deliver(packet, self._id))
        self.last = recovery.collected
        self.recovery = None
        self.logs = Logs.after(self.logs, recovery.collected.lists)
        self.behind = set(range(self.size)) - {self.me}
        self._give_receipts()
        self._arm("ack")
        self._news = True
        self._more = True
