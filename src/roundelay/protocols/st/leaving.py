"""The end of a view, as a member goes through it; what follows from it all is in `ending`."""

from collections.abc import Mapping, Sequence

from roundelay.core.contract import Conclusion, Item
from roundelay.core.effects import Kind, Receipt, Record
from roundelay.core.ids import NodeId, View
from roundelay.protocols.st import ending
from roundelay.protocols.st.lists import Collected, List
from roundelay.protocols.st.messages import ListPart
from roundelay.protocols.st.recovery import Recovery
from roundelay.protocols.st.watching import Watching
from roundelay.wire.primitives import Reason, WireError
from roundelay.wire.summaries import by_place


class Leaving(Watching):
    """A member that ends a view with those who move on together."""

    def freeze(self) -> bytes:
        self.frozen = True
        if self.recovery is None:
            self.recovery = Recovery(self.logs)
        return ending.summarize(self.logs.epoch, self.logs.done())

    def seal(self, summaries: Mapping[NodeId, bytes]) -> Sequence[Item]:
        self._read(summaries)
        recovery = self.recovery
        assert recovery is not None, "a frozen member has a list"
        items = [
            item
            for collected in (self.last, recovery.collected, recovery.ahead)
            if collected is not None
            for _, made in sorted(collected.lists.items())
            for item in ending.list_items(made, self.config.part_bytes)
        ]
        packets = {name: entry.packet for name, entry in self.logs.known.items()} | recovery.late
        return [*items, *(ending.packet_item(name, packets[name]) for name in sorted(packets))]

    def absorb(self, item: Item) -> list[Record]:
        absorbed = ending.unpack(item, self.view.members)
        recovery = self.recovery
        assert recovery is not None, "a frozen member has a list"
        if isinstance(absorbed, ListPart):
            self._lists(absorbed.epoch).take(absorbed)
            return []
        name, packet = absorbed
        if name.source == self.me and name.number >= self.logs.next:
            raise WireError(Reason.IMPLAUSIBLE, "a packet that this node never sent")
        if name not in self.logs.known:
            recovery.late.setdefault(name, packet)
        return [Record(Kind.RECEIVE, packet, self._id)]

    def _lists(self, epoch: int) -> Collected:
        """Where lists of an epoch are kept at the end of a view: those of the epoch before, of this
        one, or of the next one, if others are ahead."""
        recovery = self.recovery
        assert recovery is not None
        if epoch == recovery.epoch:
            return recovery.collected
        if epoch == recovery.epoch - 1:
            self.last = self.last or Collected(self.size, epoch)
            return self.last
        if epoch == recovery.epoch + 1:
            if recovery.ahead is None:
                recovery.ahead = Collected(self.size, epoch)
            return recovery.ahead
        raise WireError(Reason.IMPLAUSIBLE, "a list of an epoch that is not here")

    def conclude(
        self,
        summaries: Mapping[NodeId, bytes],
        transitional: View,
        obligations: tuple[NodeId, ...],
    ) -> Conclusion:
        read = self._read(summaries)
        recovery = self.recovery
        assert recovery is not None, "a frozen member has a list"
        known = self.logs.known
        packets = {name: entry.packet for name, entry in known.items()} | recovery.late
        delivered = frozenset(name for name, entry in known.items() if entry.delivered)
        end = ending.End(self.me, self._id, read, packets, delivered)
        here = {*read, *(self._index[node] for node in obligations if node in self._index)}
        lists: Mapping[int, List] = recovery.collected.lists
        before: Mapping[int, List] = {} if self.last is None else self.last.lists
        ahead = {} if recovery.ahead is None else recovery.ahead.lists
        ahead = {member: made for member, made in ahead.items() if member in here}
        if ahead or max(summary.epoch for summary in read.values()) > recovery.epoch:
            end.earlier(lists)
            lists, before = ahead, lists
        elif len(lists) < self.size:
            lists = {member: made for member, made in lists.items() if member in here}
        end.last(lists, ending.heard(sorted(read), lists, before, self.size))
        receipts = [
            Receipt(entry.packet.span, self._id) for entry in self.afar if entry.packet.span.count
        ]
        return Conclusion(tuple(end.regular), (*end.late, *receipts))

    def _read(self, summaries: Mapping[NodeId, bytes]) -> dict[int, ending.Summary]:
        return by_place(summaries, self._index, ending.read_summary)
