"""Bugs in ST. Import this module to register them.

Some rules guard the same thing twice: since a packet waits for the word of all members, and not
only of those whom it is for, the cut and the edges of deliveries are hardly ever needed. A bug that
takes such a rule away therefore takes away that word too (`_of_destinations_alone`).
"""

from collections.abc import Mapping
from typing import Any

from roundelay.core.contract import Conclusion
from roundelay.core.effects import Effect, SetTimer
from roundelay.core.ids import Packet, View
from roundelay.protocols.st import ending, recovery
from roundelay.protocols.st.ending import End
from roundelay.protocols.st.lists import List, Listed, union_order
from roundelay.protocols.st.logs import Entry, Logs
from roundelay.protocols.st.member import StMember
from roundelay.protocols.st.messages import Done, Message, Name, Transmission
from roundelay.protocols.st.recovery import Recovery
from roundelay.protocols.st.state import REPEAT

from .planted import Patch, bug


def _of_destinations_alone(*, cut: bool = True) -> list[Patch]:
    """As in the paper: a packet needs the word of those whom it is for, and no others."""

    def agree(self: Logs) -> list[Entry]:
        found: list[Entry] = []
        while self.accepted:
            entry = self.accepted[0]
            source, number = entry.name
            others = [k for k in entry.to if k != self.me]
            if number >= self.expected[source]:
                break
            if any(self.acks[k][source] <= number for k in others):
                break
            self._open[source].popleft()
            entry.agreed = True
            self.agreed.append(self.accepted.popleft())
            found.append(entry)
        return found

    def deliverable(self: Logs) -> list[Entry]:
        found: list[Entry] = []
        while self.agreed:
            entry = self.agreed[0]
            source, number = entry.name
            if cut and entry.place >= min(self.heard_at):
                break
            if any(self.packs[k][source] <= number for k in entry.to if k != self.me):
                break
            self.agreed.popleft()
            self.deliver(entry)
            found.append(entry)
        return found

    return [(Logs, "agree", agree), (Logs, "deliverable", deliverable)]


@bug("A packet waits for the word of those whom it is for, and not of the others.")
def st_asks_destinations_alone() -> list[Patch]:
    return _of_destinations_alone()


@bug("A packet is delivered before everybody was heard after it.")
def st_no_cut() -> list[Patch]:
    return _of_destinations_alone(cut=False)


@bug("A member does not wait when another has seen more of a source than itself; nor for the cut.")
def st_no_gate() -> list[Patch]:
    return [*_of_destinations_alone(cut=False), (Logs, "gap", property(lambda _: ()))]


@bug("A member need not hear itself after a packet, nor wait when others have seen more of it.")
def st_not_heard_itself() -> list[Patch]:
    def deliverable(self: Logs) -> list[Entry]:
        own, self.heard_at[self.me] = self.heard_at[self.me], self.clock + 1
        found = original(self)
        self.heard_at[self.me] = own
        return found

    original = Logs.deliverable
    return [(Logs, "deliverable", deliverable), (Logs, "gap", property(lambda _: ()))]


@bug("What a member has heard counts as what it has pre-acknowledged, as in the paper.")
def st_heard_is_agreed() -> list[Patch]:
    def note(self: Logs, t: Transmission) -> None:
        original(self, t)
        self.packs[t.source] = t.ack

    original = Logs.note
    return [(Logs, "note", note)]


@bug("What a member hears after it has stopped goes on its list.")
def st_list_changes() -> list[Patch]:
    def hear(self: StMember, t: Transmission) -> None:
        stopped = self.recovery
        original(self, t)
        if stopped is not None and self.recovery is stopped and t.epoch == self.logs.epoch:
            self.logs.hear(t, () if t.packet is None else self._to(t.packet))
            stopped.list = stopped.collected.lists[self.me] = self.logs.stop()

    original = StMember._hear
    return [(StMember, "_hear", hear)]


def _without_deliveries(lists: Mapping[int, List]) -> list[Listed]:
    def strip(made: List) -> List:
        items = tuple(
            Listed(i.name, i.to, i.counts, i.ack, i.heard, False, i.agreed) for i in made.listed
        )
        return List(made.epoch, made.member, made.next, made.counts, made.got, made.done, items)

    return union_order({member: strip(made) for member, made in lists.items()})


@bug("What somebody has delivered need not come first.")
def st_deliveries_are_no_edges() -> list[Patch]:
    return [
        *_of_destinations_alone(),
        (recovery, "union_order", _without_deliveries),
        (ending, "union_order", _without_deliveries),
    ]


@bug("A member says that it is done when it has all lists, whether or not it has all packets.")
def st_done_too_early() -> list[Patch]:
    return [(Recovery, "complete", property(lambda self: self.order is not None))]


@bug("A packet that is sent again is taken as if it were heard now, after all others.")
def st_again_is_heard_now() -> list[Patch]:
    def left(self: Recovery) -> list[Listed]:
        return sorted(original(self), key=lambda item: item.name in self.late)

    original = Recovery.left
    return [(Recovery, "left", left)]


@bug("Words about the end of an epoch are taken for words about this one.")
def st_epoch_is_not_checked() -> list[Patch]:
    return [(StMember, "_concerns", lambda self, epoch: True)]


@bug("At the end of a view each member goes by its own list.")
def st_ends_with_its_own_list() -> list[Patch]:
    def last(self: End, lists: Mapping[int, List], got: Any) -> None:
        own = {k: made for k, made in lists.items() if k == self._me}
        original(self, own, got)

    original = End.last
    return [(End, "last", last)]


@bug("At the end of a view, who is an epoch behind leaves out what it owes of that epoch.")
def st_skips_what_others_ended() -> list[Patch]:
    return [(End, "earlier", lambda self, lists: None)]


@bug("At the end of a view nothing is owed to a member that may have ended it and is gone.")
def st_owes_nothing() -> list[Patch]:
    def conclude(self: StMember, summaries: Any, transitional: Any, obligations: Any) -> Conclusion:
        return original(self, summaries, transitional, ())

    original = StMember.conclude
    return [(StMember, "conclude", conclude)]


@bug("Who has gone on answers one that says that it is done.")
def st_answers_answers() -> list[Patch]:
    def receive(self: StMember, peer: int, message: Message) -> None:
        original(self, peer, message)
        if isinstance(message, Done) and message.epoch < self.logs.epoch and peer != self.me:
            self._send(Done(message.epoch, self._to.everybody), peer)

    original = StMember._receive
    return [(StMember, "_receive", receive)]


@bug("All members repeat themselves at the same time, from the beginning of a view on.")
def st_repeats_in_step() -> list[Patch]:
    def start(self: StMember, view: View) -> list[Effect[Message]]:
        effects = original(self, view)
        timers = [e for e in effects if isinstance(e, SetTimer) and e.timer == REPEAT]
        return [self._repeat if effect in timers else effect for effect in effects]

    original = StMember.start
    return [(StMember, "start", start)]


@bug("Whatever is lacking is asked for again whenever a packet comes.")
def st_asks_again_and_again() -> list[Patch]:
    def keep(self: Recovery, name: Name, packet: Packet) -> None:
        original(self, name, packet)
        self.asked.clear()

    original = Recovery.keep
    return [(Recovery, "keep", keep)]


@bug("A member that has no room says so, and everybody goes on sending to it.")
def st_window_never_closes() -> list[Patch]:
    def window(self: StMember) -> int:
        return self.logs.least() + self.config.window_packets - self.logs.next

    return [(StMember, "_window", window)]


@bug("What a recovery delivers is claimed by nobody, though all have it.")
def st_recovery_claims_nothing() -> list[Patch]:
    def go_on(self: StMember, done: Recovery) -> None:
        traced, self._traced = self._traced, False
        original(self, done)
        self._traced = traced

    original = StMember._go_on
    return [(StMember, "_go_on", go_on)]
