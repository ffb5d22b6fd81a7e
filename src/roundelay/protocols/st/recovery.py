"""The end of an epoch: all stop, tell what they heard, fetch what they lack, and go on together.

    stop     a member that missed a packet, or hears of a recovery, sends nothing more and makes its
             list; what it hears of this epoch from now on counts as lost, though it is kept
    lists    with the lists of all members, everybody comes to the same order (`lists`)
    fetch    packets that are for a member and not there are asked for, first of their source
    done     who has all says so; when all have said so, everybody delivers what is left of the
             order, and the next epoch begins

Every step is repeated until it is over. A member that has gone on still answers those who have not:
it tells them that it is done, and gives them lists. It never answers an answer, or two members that
are done would talk for ever.
"""

from collections.abc import Sequence

from roundelay.core.ids import Packet
from roundelay.protocols.st.lists import Collected, Listed, union_order
from roundelay.protocols.st.logs import Logs
from roundelay.protocols.st.messages import WANTED_MAX, Name, Want

LATE_MAX = 4096
"""How far ahead of what is expected the number of a late packet may be, as long as the list of its
source is not here."""


class Recovery:
    """One member's part in the end of an epoch."""

    def __init__(self, logs: Logs) -> None:
        self.epoch = logs.epoch
        self._logs = logs
        self.collected = Collected(logs.size, logs.epoch)
        self.list = logs.stop()
        self.collected.lists[logs.me] = self.list
        self.late: dict[Name, Packet] = {}
        """Packets that came after this member had stopped."""
        self.done: set[int] = set()
        """Who has everything."""
        self.order: list[Listed] | None = None
        """The order of all packets of the epoch, once all lists are here."""
        self.ahead: Collected | None = None
        """At the end of a view: lists of the next epoch, from members that have gone on."""
        self.young = True
        """Whether it began since the timer of repetitions last ran out: answers are under way."""
        self.attempts = 0
        """Repetitions, of which each asks another member."""
        self.asked: set[Name] = set()
        """Packets that were asked for since the last repetition."""

    @property
    def complete(self) -> bool:
        """Whether all lists and all packets for this member are here."""
        return self.order is not None and not self.lacking()

    def plan(self) -> None:
        """All lists are here: come to the order."""
        if self.order is None and not self.collected.missing:
            self.order = union_order(self.collected.lists)

    def left(self) -> list[Listed]:
        """Packets for this member that are not delivered, in order."""
        me, known = self._logs.me, self._logs.known
        own = self._logs.done()
        left: list[Listed] = []
        for item in self.order or ():
            if me not in item.to:
                continue
            entry = known.get(item.name)
            if entry is None:
                delivered = item.name.number < own[item.name.source]
            else:
                delivered = entry.delivered
            if not delivered:
                left.append(item)
        return left

    def packet(self, name: Name) -> Packet | None:
        """A packet, if it is here."""
        entry = self._logs.known.get(name)
        return entry.packet if entry is not None else self.late.get(name)

    def lacking(self) -> list[Name]:
        """Packets for this member that are not here."""
        return [item.name for item in self.left() if self.packet(item.name) is None]

    def keep(self, name: Name, packet: Packet) -> None:
        """Keep a packet that came late, if it can be of use: its source can have sent it, and it is
        not delivered."""
        source, number = name
        made = self.collected.lists.get(source)
        end = self._logs.expected[source] + LATE_MAX if made is None else made.next
        if self.list.done[source] <= number < end:
            self.late.setdefault(name, packet)

    def questions(self) -> list[tuple[int | None, Want]]:
        """What to ask for now, and whom; None for everybody. Packets are asked for once between two
        repetitions: every one that arrives would else bring another copy of all others."""
        if missing := self.collected.missing:
            return [(None, Want(self.epoch, missing))]
        lacking = self.lacking()
        room = WANTED_MAX - sum(name in self.asked for name in lacking)
        asked: dict[int, list[Name]] = {}
        for name in lacking:
            if room > 0 and name not in self.asked:
                room -= 1
                self.asked.add(name)
                asked.setdefault(self._holder(name), []).append(name)
        return [
            (member, Want(self.epoch, (), tuple(names))) for member, names in sorted(asked.items())
        ]

    def _holder(self, name: Name) -> int:
        """Whom to ask for a packet: its source, then those who list it, in turn."""
        listers: Sequence[int] = [
            member
            for member, made in sorted(self.collected.lists.items())
            if member not in (name.source, self._logs.me)
            and any(item.name == name and item.heard for item in made.listed)
            and any(item.name == name and member in item.to for item in made.listed)
        ]
        holders = [name.source, *listers]
        return holders[self.attempts % len(holders)]
