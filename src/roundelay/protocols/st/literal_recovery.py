"""The recovery of the paper, step by step: members agree on a line, and what was lost comes again.

Where it is then put is in `sort_line`.
"""

from abc import ABC, abstractmethod
from collections import deque

from roundelay.core.effects import CancelTimer
from roundelay.protocols.st.literal_messages import Ask, LiteralMessage, Ret, Rst, RstAck, RstPak
from roundelay.protocols.st.literal_state import ASK, Kept, LiteralState, Phase, epoch_of
from roundelay.protocols.st.messages import Name, Transmission
from roundelay.protocols.st.sort_line import least, losses, lowered, repaired, sort_point


class LiteralRecovery(LiteralState, ABC):
    """A member that recovers from losses as the paper says."""

    @abstractmethod
    def _take(self, peer: int, message: LiteralMessage) -> None:
        """Act on what was said in this epoch."""

    def _enter_paks(self, rst: Rst) -> None:
        """Step (2)."""
        self.phase = Phase.PAKS
        self._paks = {}
        self.order = ()
        log = [p.name for p in self.rrl]
        self._broadcast(RstPak(self.epoch, lowered(log, tuple(self.treq), rst.line)))

    def _on_pak(self, peer: int, m: RstPak) -> None:
        """Steps (3) and (4)."""
        if peer in self._paks:
            return
        self._paks[peer] = m.line
        self.order += (peer,)
        if len(self._paks) < self._size:
            return
        self.phase = Phase.ACKS
        self._acks = {}
        self.line = least(self._paks.values())
        preq, pseq = tuple(self.preq), tuple(self.pseq)
        self._broadcast(RstAck(self.epoch, self.line, preq, pseq, self.order))

    def _on_ack(self, peer: int, m: RstAck) -> None:
        """Steps (5) and (6)."""
        if self.phase is Phase.PAKS or (m.line, m.order) != (self.line, self.order):
            self._abort("members came to different lines")
            return
        self._acks[peer] = m
        if len(self._acks) == self._size:
            self._enter_rets()

    def _enter_rets(self) -> None:
        """All agree: what is before the sort point is delivered, and what was lost comes again."""
        got = {member: m.preq for member, m in self._acks.items()}
        sent = {member: m.pseq for member, m in self._acks.items()}
        self.phase = Phase.RETS
        self.fail = len(losses(got, sent))
        point = sort_point([p.name for p in self.rrl], self.line)
        for p in self.rrl[:point]:
            self._stable(p, 1)
        for p in (*self.prl, *self.rrl[:point]):
            self._deliver(p)
        self._rest = self.rrl[point:]
        self._passed = self._left
        self.prl.clear()
        self.rrl.clear()
        self._again = {}
        self._send_again(self.epoch, {k: got[k][self._me] for k in got})
        self._arm(ASK, self._config.repeat_s)
        self._go_on()

    def _send_again(self, epoch: int, lacking: dict[int, int]) -> None:
        """Retransmit own packets that are not below the number of one of these members."""
        for transmission, to in self._sent:
            if any(k in to and transmission.counts[k] + 1 >= n for k, n in lacking.items()):
                self._broadcast(Ret(epoch, transmission))

    def _on_again(self, t: Transmission) -> None:
        me, name = self._me, Name(t.source, t.number)
        assert t.packet is not None
        to, pseq = self._to(t.packet), t.counts[me] + 1
        if me in to and self.preq[t.source] <= pseq < self._acks[t.source].pseq[me]:
            self._again.setdefault(name, Kept(name, to, pseq, t.ack, t.packet))
            self._go_on()

    def _missing(self) -> list[tuple[int, int]]:
        """Sources of which packets are missing, with the number of the first."""
        found: list[tuple[int, int]] = []
        for j in range(self._size):
            here = {p.pseq for p in self._again.values() if p.name.source == j}
            wanted = range(self.preq[j], self._acks[j].pseq[self._me])
            found += [(j, number) for number in wanted if number not in here][:1]
        return found

    def _ask(self) -> None:
        if self.phase is Phase.RETS:
            for j, number in self._missing():
                self._broadcast(Ask(self.epoch, j, number))
            self._arm(ASK, self._config.repeat_s)

    def _go_on(self) -> None:
        """If all that was lost is here, put it into RRL, and begin the next epoch."""
        if self._missing():
            return
        again = sorted(self._again.values(), key=lambda p: p.name)
        place = {member: i for i, member in enumerate(self.order)}
        self.rrl.extend(
            repaired(self._rest, again, self.fail, lambda p: (place[p.name.source], p.pseq))
        )
        for p in again:
            j, number = p.name
            self.preq[j] = max(self.preq[j], p.pseq + 1)
            self.treq[j] = max(self.treq[j], number + 1)
        self._out.append(CancelTimer(ASK))
        self.phase = Phase.SEND
        self.epoch += 1
        self._asked = False
        early, self._early = self._early, deque()
        for i, (peer, message) in enumerate(early):
            if epoch_of(message) > self.epoch:
                self._early.extend(list(early)[i:])
                break
            self._take(peer, message)
