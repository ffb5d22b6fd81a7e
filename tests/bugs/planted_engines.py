"""Bugs in links, fifo, and the engines of the DTP family. Import this module to register them."""

from typing import Any

from roundelay.core.contract import Conclusion, Item
from roundelay.core.effects import SetTimer
from roundelay.links.ledger import Arrival
from roundelay.links.ledger import Ledger as LinkLedger
from roundelay.links.link import MISSING, Link
from roundelay.protocols.dtp.ending import End
from roundelay.protocols.dtp.engine import DtpEngine
from roundelay.protocols.dtp.ledger import Ledger
from roundelay.protocols.dtp.messages import Ack, Uid
from roundelay.protocols.dtp.token import EMPT, HOLD, Grip, Token
from roundelay.protocols.fifo import FifoEngine

from .planted import Patch, bug

# Links and fifo


@bug("A content is passed on as it comes, whether or not one before it is missing.")
def link_ignores_gaps() -> list[Patch]:
    def store(self: LinkLedger[Any], sender: int, number: int, content: Any) -> bool:
        early = number > self.received[sender] + 1
        stored = original(self, sender, number, content)
        if stored and early:
            self._arrived.append(Arrival(sender, number, content))
        return stored

    def pop_each_once(self: LinkLedger[Any]) -> list[Arrival[Any]]:
        taken = self.__dict__.setdefault("_taken", set())
        fresh = [a for a in pop_arrived(self) if (a.sender, a.number) not in taken]
        taken.update((a.sender, a.number) for a in fresh)
        return fresh

    original, pop_arrived = LinkLedger.store, LinkLedger.pop_arrived
    return [(LinkLedger, "store", store), (LinkLedger, "pop_arrived", pop_each_once)]


@bug("A heartbeat says how much its sender has sent, and nobody listens.")
def link_misses_the_last_loss() -> list[Patch]:
    def note_received(self: LinkLedger[Any], member: int, received: Any) -> bool:
        top = list(self.top)
        noted = original(self, member, received)
        self.top[:] = top
        return noted

    original = LinkLedger.note_received
    return [(LinkLedger, "note_received", note_received)]


@bug("What most members have counts as what all have.")
def link_stable_by_majority() -> list[Patch]:
    def raise_to(self: LinkLedger[Any], sender: int, line: int) -> None:
        most = sorted(self.known[sender])[self.size // 2]
        original(self, sender, max(line, min(most, self.received[sender])))

    original = LinkLedger._raise
    return [(LinkLedger, "_raise", raise_to)]


@bug("At the end of a view nobody offers what others lack.")
def link_exchanges_nothing() -> list[Patch]:
    def seal(self: Link[Any], summaries: Any) -> list[Item]:
        original(self, summaries)
        return []

    original = Link.seal
    return [(Link, "seal", seal)]


@bug("Nobody suspects a member that is silent.")
def link_never_suspects() -> list[Patch]:
    def on_silence(self: Link[Any]) -> None:
        self._missed = [0] * len(self._missed)
        original(self)

    original = Link._on_silence
    return [(Link, "_on_silence", on_silence)]


@bug("What is missing is asked for once.")
def link_asks_once() -> list[Patch]:
    def on_missing(self: Link[Any]) -> None:
        original(self)
        self.out = [e for e in self.out if not (isinstance(e, SetTimer) and e.timer == MISSING)]

    original = Link._on_missing
    return [(Link, "_on_missing", on_missing)]


@bug("A safe packet is delivered in the old view, whoever of it is not here.")
def fifo_safe_in_the_old_view() -> list[Patch]:
    def conclude(self: FifoEngine, summaries: Any, transitional: Any, owed: Any) -> Conclusion:
        end = original(self, summaries, transitional, owed)
        return Conclusion((*end.regular, *end.transitional), ())  # type: ignore[arg-type]

    original = FifoEngine.conclude
    return [(FifoEngine, "conclude", conclude)]


@bug("At the end of a view each member goes by what it alone knows to be stable.")
def fifo_own_stable_line() -> list[Patch]:
    def freeze(self: Link[Any]) -> bytes:
        self.__dict__["own_line"] = list(self.ledger.stable)
        return original(self)

    def agreed(self: Link[Any], summaries: Any) -> list[int]:
        return list(self.__dict__["own_line"])

    original = Link.freeze
    return [(Link, "freeze", freeze), (Link, "agreed_stable", agreed)]


# DTP, CM and Pinwheel


@bug("A transfer of the token counts as often as it is heard.")
def dtp_transfer_counts_again() -> list[Patch]:
    def note_transfer(self: Token, ack: Ack, held: int) -> Grip:
        if self.grip is not HOLD:
            self.hop, self.next = max(ack.hop, self.hop), ack.next
            self.grip = HOLD if ack.next == self.me else EMPT
        return self.grip

    return [(Token, "note_transfer", note_transfer)]


@bug("A member says that it holds a number whose packet it never got.")
def dtp_holds_without_the_packet() -> list[Patch]:
    def extend(self: Ledger) -> bool:
        further = original(self)
        number = self.ready
        while number + 1 in self.acks:
            number += 1
        self.note(self.me, number)
        return further

    original = Ledger.extend
    return [(Ledger, "extend", extend)]


@bug("A packet is delivered once F members hold it, not F + 1.")
def dtp_one_holder_too_few() -> list[Patch]:
    def deliver(self: DtpEngine) -> None:
        self.resilience -= 1 if self.resilience else 0
        original(self)
        self.resilience = min(self.config.resilience, self.size - 1)

    original = DtpEngine._deliver
    return [(DtpEngine, "_deliver", deliver)]


@bug("A safe packet is delivered like any other.")
def dtp_safe_is_not_awaited() -> list[Patch]:
    def deliver(self: DtpEngine) -> None:
        low = self.ledger.low
        self.ledger.low = self.ledger.ready
        original(self)
        self.ledger.low = low

    original = DtpEngine._deliver
    return [(DtpEngine, "_deliver", deliver)]


@bug("With a large F a packet is delivered although its sender may not know its number.")
def dtp_sender_need_not_know() -> list[Patch]:
    def conclude(self: End, delivered: int, *, sender_first: bool) -> Conclusion:
        return original(self, delivered, sender_first=False)

    original = End.conclude
    return [(End, "conclude", conclude)]


@bug("At the end of a view each member delivers in it only what it had delivered itself.")
def dtp_own_line_at_the_end() -> list[Patch]:
    def conclude(self: End, delivered: int, *, sender_first: bool) -> Conclusion:
        end = original(self, delivered, sender_first=sender_first)
        return Conclusion((), (*end.regular, *end.transitional), end.withdrawn)

    original = End.conclude
    return [(End, "conclude", conclude)]


@bug("What has no number here is taken back, though another side may have given it one.")
def dtp_withdrawn_in_doubt() -> list[Patch]:
    return [(End, "_doubtful", property(lambda self: False))]


@bug("Packets without a number are taken as they came, which differs from member to member.")
def dtp_left_over_as_they_came() -> list[Patch]:
    def left(self: End) -> list[Uid]:
        chosen = set(original(self))
        return [uid for uid in self._ledger.msgs if uid in chosen]

    original = End._left
    return [(End, "_left", left)]


@bug("At the end of a view nobody offers what others lack.")
def dtp_exchanges_nothing() -> list[Patch]:
    def seal(self: DtpEngine, summaries: Any) -> list[Item]:
        original(self, summaries)
        return []

    original = DtpEngine.seal
    return [(DtpEngine, "seal", seal)]


@bug("An acknowledgment that nobody takes the token from is not sent again.")
def dtp_token_not_repeated() -> list[Patch]:
    def repeat(self: DtpEngine) -> None:
        self._out.append(self._arm["repeat_ack"])

    return [(DtpEngine, "_repeat_ack", repeat)]


@bug("The token goes to the member that is known to hold most.")
def dtp_token_to_who_holds_most() -> list[Patch]:
    def least(self: Ledger) -> int:
        return max(self._others, key=self.held.__getitem__)

    return [(Ledger, "least", least)]


@bug("The token passes over the next member of the ring.")
def cm_token_skips_a_member() -> list[Patch]:
    def choose(self: DtpEngine) -> int:
        if not self._rotates:
            return original(self)
        return (self.ledger.me + 2) % self.size if self.size > 2 else self.ledger.next

    original = DtpEngine._choose
    return [(DtpEngine, "_choose", choose)]


@bug("Who hears an acknowledgment of several packets numbers them from the last to the first.")
def pinwheel_batch_read_backwards() -> list[Patch]:
    def learn(self: Ledger, ack: Ack) -> bool:
        return original(self, Ack(ack.holder, ack.uids[::-1], ack.last, ack.next, ack.hop))

    original = Ledger.learn
    return [(Ledger, "learn", learn)]


@bug("Packets are given numbers in reverse, the last to come first.")
def pinwheel_orders_backwards() -> list[Patch]:
    def order(self: Ledger, uids: tuple[Uid, ...], next_: int, hop: int) -> Ack:
        return original(self, uids[::-1], next_, hop)

    original = Ledger.order
    return [(Ledger, "order", order)]


@bug("Packets are forgotten as soon as they are delivered here.")
def dtp_forgets_too_early() -> list[Patch]:
    def deliver(self: DtpEngine) -> None:
        original(self)
        for number in range(self.ledger.low + 1, self.delivered + 1):
            uid = self.ledger.uid(number)
            self.ledger.msgs.pop(uid, None) if uid[0] != self.ledger.me else None

    original = DtpEngine._deliver
    return [(DtpEngine, "_deliver", deliver)]
