"""Who holds what: the packets and acknowledgments that are not stable, and how far each is known
to hold everything.

A member *holds* a global number if it has the packet and the acknowledgment that orders it, and
those of every number before. What all are known to hold is stable and is forgotten.
"""

from collections.abc import Iterator

from roundelay.core.ids import Packet
from roundelay.protocols.dtp.messages import REQUEST_MAX, Ack, Msg, Req, Uid, show_uid


class Ledger:
    """What one member knows in one view."""

    __slots__ = (
        "_early",
        "_others",
        "_room",
        "acks",
        "expected",
        "held",
        "low",
        "me",
        "msgs",
        "next",
        "own_ready",
        "ready",
        "top",
        "waiting",
    )

    def __init__(self, members: int, me: int, room: int) -> None:
        self.me = me
        self.next = (me + 1) % members
        """The member after this one in the ring."""
        self._others: tuple[int, ...] = (*range(me + 1, members), *range(me))
        """All others, from that one on."""
        self.held = [0] * members
        """By member: it is known to hold everything up to this number. It never shrinks."""
        self.low = 0
        """The least of these: everybody holds everything up to here."""
        self.expected = [1] * members
        """By sender: the number of its next packet that is not here, all before being here or
        stable; own packets count from when they are sent."""
        self.ready = 0
        """Everything up to this number is here."""
        self.top = 0
        """The largest number that was heard of."""
        self.msgs: dict[Uid, Msg] = {}
        """Packets that are not stable, with a number or not."""
        self.acks: dict[int, Ack] = {}
        """By number, unless it is stable: an acknowledgment that gave it to a packet."""
        self.waiting: dict[Uid, None] = {}
        """Packets that wait for a number, as far as is known, in the order of their arrival."""
        self._early: dict[Uid, None] = {}
        """Packets that got a number before they could wait for one, unless that is stable."""
        self.own_ready = 0
        """The last own packet among what is here without gaps."""
        self._room = room

    def __str__(self) -> str:
        held = " ".join(map(str, self.held))
        waiting = " ".join(map(show_uid, self.waiting)) or "nothing"
        return (
            f"holds {held}, stable {self.low}, heard of {self.top}, waiting {waiting}, "
            f"{len(self.msgs)} MSG and {len(self.acks)} ACK kept"
        )

    def note(self, member: int, number: int) -> None:
        """A member says that it holds everything up to a number."""
        before = self.held[member]
        if before < number <= self.ready + self._room:
            self.held[member] = number
            if before == self.low:
                self.low = min(self.held)

    def store(self, m: Msg) -> bool:
        """Take in a packet. False if it is a copy, or further ahead than may be."""
        sender, number = uid = m.sender, m.number
        msgs, due = self.msgs, self.expected[sender]
        if number != due and (number < due or uid in msgs or number > due + self._room):
            return False
        msgs[uid] = m
        early = self._early
        while number == due:
            if early and uid in early:
                del early[uid]
            else:
                self.waiting[uid] = None
            due += 1
            uid = sender, due
            if uid in msgs:
                number = due  # It came before, and is due now.
        self.expected[sender] = due
        return True

    def contradicts(self, ack: Ack) -> bool:
        """Whether an acknowledgment gives a number to a packet that has another, to one twice, or
        to an own packet that was never sent. A packet waits here for its number from when it is
        due; one that does not, and has come, has got one."""
        uids = ack.uids
        number, waiting = ack.last - len(uids), self.waiting
        for uid in uids:
            number += 1
            if uid in waiting or number <= self.ready or number in self.acks:
                continue
            sender, count = uid
            if count < self.expected[sender] or sender == self.me or uid in self._early:
                return True
        return len(uids) > 1 and len(set(uids)) < len(uids)

    def learn(self, ack: Ack) -> bool:
        """Take in an acknowledgment. False if it is further ahead than may be."""
        last, ready = ack.last, self.ready
        if last > ready + self._room:
            return False
        if last > self.top:
            self.top = last
        number = last - len(ack.uids)
        for uid in ack.uids:
            number += 1
            if number > ready and number not in self.acks:
                self.acks[number] = ack
                if self.waiting.pop(uid, False) is False:
                    self._early[uid] = None
        return True

    def extend(self) -> bool:
        """See how far everything is here now, and hold it. Whether that is further than before."""
        number = self._whole()
        if number == self.ready:
            return False
        self.ready = number
        self.note(self.me, number)
        return True

    def _whole(self) -> int:
        number, acks, msgs, me = self.ready, self.acks, self.msgs, self.me
        while (ack := acks.get(number + 1)) is not None:
            uid = ack.uids[number - ack.last]
            if uid not in msgs:
                break
            number += 1
            if uid[0] == me and uid[1] > self.own_ready:
                self.own_ready = uid[1]
        return number

    def order(self, uids: tuple[Uid, ...], next_: int, hop: int) -> Ack:
        """Give packets that are here the next numbers; nothing may be missing."""
        number, me = self.top, self.me
        assert self.ready == number, "ordering with something missing"
        ack = Ack(me, uids, number + len(uids), next_, hop)
        for uid in uids:
            number += 1
            self.acks[number] = ack
            del self.waiting[uid]
            if uid[0] == me and uid[1] > self.own_ready:
                self.own_ready = uid[1]
        self.ready = self.top = number
        self.note(me, number)
        return ack

    @property
    def places(self) -> dict[Uid, int]:
        """By packet: its number, unless it is stable. Made anew, for what comes rarely."""
        return {self.uid(number): number for number in self.acks}

    def uid(self, number: int) -> Uid:
        """The packet that has a number, of those that are not stable."""
        ack = self.acks[number]
        return ack.uids[number - ack.last - 1]

    def known(self, number: int) -> Packet:
        """The packet with a number that is here and not stable."""
        return self.msgs[self.uid(number)].packet

    def drop(self, number: int) -> Packet | None:
        """Forget a stable number and what it was given to, which was here or nowhere."""
        ack = self.acks.pop(number, None)
        if ack is None:
            return None
        uid = ack.uids[number - ack.last - 1]
        if self._early:
            self._early.pop(uid, None)
        msg = self.msgs.pop(uid, None)
        return None if msg is None else msg.packet

    def request(self) -> Req:
        """Ask for what is missing."""
        msgs: list[Uid] = []
        acks: list[int] = []
        for number in range(self.ready + 1, self.top + 1):
            if number not in self.acks:
                acks.append(number)
            elif (uid := self.uid(number)) not in self.msgs:
                msgs.append(uid)
            if len(msgs) == REQUEST_MAX or len(acks) == REQUEST_MAX:
                break
        return Req(self.held[self.me], tuple(msgs), tuple(acks))

    def answers(self, req: Req) -> Iterator[Msg | Ack]:
        """What is here of what somebody asks for."""
        for number in req.acks:
            if number in self.acks:
                yield self.copy(number)
        for uid in req.msgs:
            if uid in self.msgs:
                yield self.msgs[uid]

    def copy(self, number: int) -> Ack:
        """An acknowledgment for somebody who missed it: it tells the order and nothing more."""
        return Ack(self.acks[number].holder, (self.uid(number),), number)

    def least(self) -> int:
        """Of all others, one that is known to hold least: the first such after this one."""
        held, low = self.held, self.low
        for member in self._others:
            if held[member] == low:
                return member
        return min(self._others, key=held.__getitem__)  # Nobody holds as little as this one.


class LiteralLedger(Ledger):
    """As the paper has it: who hears of a number says that it holds it, with the packet or
    without; and a copy of an acknowledgment hands on the token as the first one did."""

    def extend(self) -> bool:
        before = self.ready
        while self.ready < self.low and self.ready + 1 not in self.acks:
            self.ready += 1  # All are said to hold it, and nobody kept it.
        self.ready = self._whole()
        number = max(self.held[self.me], self.ready)
        while number + 1 in self.acks:
            number += 1
        self.note(self.me, number)
        return self.ready > before

    def copy(self, number: int) -> Ack:
        ack = self.acks[number]
        hop = 0 if ack.holder == self.me else ack.hop  # Of own ones none is told.
        return Ack(ack.holder, (self.uid(number),), number, ack.next, hop)
