"""Token ordering on one ring: which member may send, what is missing, what all members have.

Follows [Totem95] section 5; numbers with § refer to it. Recovery exchanges its items over a ring
of its own, and the totem engine is a ring with delivery rules on top.

    paper              here                      meaning
    my_aru             ring.aru                  all received up to this sequence number
    my_high_seq        ring.high_seq             highest sequence number heard of
    token.rtr          token.requests            sequence numbers that somebody lacks
    token.fcc          token.fcc                 packets sent in the last rotation
    token.backlog      token.backlog             packets that waited in the last rotation
    my_trc, my_pbl     ring.sent, ring.left      this node's part in those two
    aru_id             token.aru_id              member that lowered aru; NOBODY if none did

In an accelerated ring, as in [BabayAmir16], the token leaves before the last packets of a visit. So
a number up to the token's seq may not have been sent yet; but one rotation later all has been that
this member's last token told of. Only that is `due`, and only that is asked for. Where the token
overtakes nothing, aru grows as on any ring. Otherwise a member that may raise it raises it to what
is due, which everybody has unless it was lost. Whoever has less than aru says lowers it, due or
not, and nobody but that member raises it again. So what two visits in a row forward is what all
have, and where packets follow the token that takes a rotation more.

Deviations: flow control does not count this node's own last visit against it. A share of the
window that rounds to zero is one packet, or zero for a node that sent in its last visit while the
window is full, so that such nodes take turns. No member accuses itself of failing to receive.

A token may be forged. `accepts` refuses what this member knows to be false. Forged values of `fcc`
and `backlog`, which each member hands on, are corrected once the ring is idle: see `_of_others`.
"""

import struct
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from roundelay.core.value import value
from roundelay.wire.primitives import I64_MAX, U32_MAX, Reason, WireError

P = TypeVar("P")

_TOKEN = struct.Struct(">QQQIIHBH")
_HOPS_MAX = I64_MAX - 1
REQUESTS_MAX = 1024
"""Retransmission requests in a token, whatever the configuration says. A token with more is
malformed."""

NOBODY = 0xFFFF
"""aru_id when nobody lacks anything that is due. Where nothing follows tokens, aru equals seq."""


@value
class RingConfig:
    """Flow control of a ring. Packets are counted, whatever their size."""

    window_packets: int = 80
    """Packets that all members together send in one rotation. Too small: the network is idle while
    packets wait; too large: receivers lose frames because their buffers are full."""
    visit_packets: int = 20
    """Packets that one node sends in one visit. Too small: more rotations; too large: others wait
    longer for the token."""
    requests_max: int = 30
    """Retransmission requests in a token. Too small: slow repair; too large: a token that does
    not fit its datagram."""
    buffer_packets: int = 4096
    """Packets kept for retransmission. Too small: new packets wait for the slowest member; too
    large: memory."""
    fail_to_receive_visits: int = 250
    """Visits without progress of aru before the member that holds it back is accused. Too small: a
    burst of loss expels a member; too large: one deaf member stops everybody for longer."""
    accelerated_packets: int = 0
    """New packets of a visit, its last ones, that leave behind the token and not before it; 0 is
    the ring of [Totem95]. Too small: the network waits for the token. Too large: packets of several
    members are on their way together, and buffers of receivers must hold them. With any but 0, what
    is lost is asked for a rotation later."""


@value
class Token:
    """The right to send, and what all know of each other."""

    token_seq: int
    """Grows by one at every hop, so that a copy of an older hop is recognised."""
    seq: int = 0
    aru: int = 0
    aru_id: int = NOBODY
    requests: tuple[int, ...] = ()
    fcc: int = 0
    backlog: int = 0
    flag: bool = False
    """Recovery: somebody has items left to exchange."""

    def encode(self) -> bytes:
        requests = self.requests
        head = _TOKEN.pack(
            self.token_seq,
            self.seq,
            self.aru,
            self.fcc,
            self.backlog,
            self.aru_id,
            self.flag,
            len(requests),
        )
        return head + struct.pack(f">{len(requests)}Q", *requests) if requests else head

    @classmethod
    def decode(cls, data: bytes, start: int) -> "Token":
        """The token that is all of `data[start:]`, or WireError."""
        try:
            fields = _TOKEN.unpack_from(data, start)
        except struct.error:
            raise WireError(Reason.MALFORMED, "the token is too short") from None
        token_seq, seq, aru, fcc, backlog, aru_id, flag, count = fields
        if token_seq > _HOPS_MAX or seq > I64_MAX or aru > seq or flag > 1 or count > REQUESTS_MAX:
            raise WireError(Reason.MALFORMED, "a token out of range")
        if len(data) - start != _TOKEN.size + 8 * count:
            raise WireError(Reason.MALFORMED, "requests that do not fit their number")
        requests = struct.unpack_from(f">{count}Q", data, start + _TOKEN.size) if count else ()
        if count and not 0 < min(requests) <= max(requests) <= seq:
            raise WireError(Reason.MALFORMED, "a request for what was never sent")
        return cls(token_seq, seq, aru, aru_id, requests, fcc, backlog, flag == 1)

    def __str__(self) -> str:
        by = "" if self.aru_id == NOBODY else f" by #{self.aru_id}"
        lacking = f" lacking {' '.join(map(str, self.requests))}" if self.requests else ""
        flag = " exchanging" if self.flag else ""
        return f"hop {self.token_seq} seq {self.seq} aru {self.aru}{by}{lacking}{flag}"


@value
class Visit(Generic[P]):
    """What one visit of the token did."""

    again: Sequence[tuple[int, P]]
    """Packets to retransmit, with their numbers."""
    fresh: Sequence[tuple[int, P]]
    """New packets, with their numbers."""
    behind: int
    """How many of these, the last ones, are to leave behind the token."""
    token: Token
    """To be forwarded, one hop further."""
    accused: int | None
    """The member whose failure to receive holds everybody up; then nothing is forwarded."""


class Ring(Generic[P]):
    """One member's part in the ordering of one ring. Members are numbered by their place."""

    def __init__(self, me: int, size: int, config: RingConfig) -> None:
        self.me = me
        self.size = size
        self.successor = (me + 1) % size
        self.config = config
        self.have: dict[int, P] = {}
        """Packets held, by sequence number: everything above `discarded` that came."""
        self.discarded = 0
        self.limit = 2 * config.buffer_packets
        """No honest member sends packets with larger numbers while this one lacks packets."""
        self.aru = 0
        self.high_seq = 0
        self.safe_line = 0
        """All members have all packets up to this number: the lesser aru of two visits in a row."""
        self.token_seq = 0
        self.hops = me
        """Hops from `token_seq` until the token comes here. A new token comes by the members before
        this one; later it comes by all others."""
        self.last: Token | None = None
        """The token as it was forwarded, for retransmission."""
        self.sent = 0
        self.left = 0
        self._quiet = 0
        """Rotations in a row in which nothing was sent and nobody lacked anything."""
        self._last_aru = 0
        """aru as forwarded at the previous visit."""
        self._stalled_aru = 0
        self._stalled_visits = 0

    def store(self, seq: int, packet: P) -> bool:
        """Keep a packet; False if it was known, or is too far ahead to be true."""
        have = self.have
        if seq <= self.discarded or seq in have or seq > self.limit:
            return False
        have[seq] = packet
        if seq > self.high_seq:
            self.high_seq = seq
        if seq == self.aru + 1:
            while seq + 1 in have:
                seq += 1
            self.aru = seq
        return True

    def accepts(self, token: Token) -> bool:
        """Whether this is the token, and not a copy of one that was here, nor a forged one. The
        token comes here after as many hops as there are other members, so that two tokens cannot go
        round side by side; its seq covers every packet that was sent, and aru_id is a member."""
        return (
            token.token_seq == self.token_seq + self.hops
            and self.high_seq <= token.seq <= self.limit
            and (token.aru_id == NOBODY or token.aru_id < self.size)
        )

    def visit(
        self,
        token: Token,
        waiting: int,
        pull: Callable[[], P | None],
        *,
        accuse: bool = True,
        rested: bool = False,
    ) -> Visit[P]:
        """Use the token: serve requests, send what waits, say what is missing here. Behind a token
        that has `rested` nothing follows: others wait for the packet more than for the token."""
        seq, requests = token.seq, token.requests
        others, backlog = self._of_others(token)
        again: list[tuple[int, P]] = []
        fresh: list[tuple[int, P]] = []
        if requests or waiting:  # Most visits of an idle ring find neither.
            allowed = self._allowed(others)
            again = [(wanted, self.have[wanted]) for wanted in requests if wanted in self.have]
            del again[allowed:]
            limit = min(
                self._share(others, backlog, waiting),
                allowed - len(again),
                self.config.buffer_packets - (seq - self.discarded),
            )
            while len(fresh) < limit and (packet := pull()) is not None:
                seq += 1
                fresh.append((seq, packet))
                stored = self.store(seq, packet)
                assert stored, f"a new packet got the number {seq}, which was taken"  # `accepts`.
        if seq > self.high_seq:
            self.high_seq = seq
        accelerated = self.config.accelerated_packets
        behind = 0 if rested else min(accelerated, len(fresh))
        sent = self._sent(token)
        if requests or self.aru < sent:
            requests = self._requests(token, again, sent)
        due = sent if accelerated else seq
        all_here = self.aru >= token.seq
        aru, aru_id = self._lower(token, seq - behind if all_here else min(self.aru, due), due)
        accused = self._stalled(aru, aru_id) if accuse else None
        used, left = len(again) + len(fresh), waiting - len(fresh)
        visited = Token(
            token.token_seq + 1,
            seq,
            aru,
            aru_id,
            requests,
            min(others + used, U32_MAX),
            min(backlog + left, U32_MAX),
            token.flag,
        )
        assert aru <= seq, f"aru {aru} is past seq {seq}"
        assert aru_id != NOBODY or aru >= due, f"nobody lacks anything, and aru is {aru} of {due}"
        assert self.discarded <= self.aru <= self.high_seq, "received more than there is"
        self.sent = used
        self.left = left
        return Visit(again, fresh, behind, visited, accused)

    def forward(self, token: Token) -> None:
        """Remember the token as it goes on; moves the safe line."""
        self.token_seq = token.token_seq
        self.hops = self.size - 1
        self.last = token
        aru = token.aru
        safe = aru if aru < self._last_aru else self._last_aru
        if safe > self.safe_line:
            self.safe_line = safe
        self._last_aru = aru

    def discard(self, upto: int) -> None:
        """Forget packets that nobody will ask for again."""
        for seq in range(self.discarded + 1, upto + 1):
            del self.have[seq]
        self.discarded = max(self.discarded, upto)
        self.limit = self.discarded + 2 * self.config.buffer_packets

    def _of_others(self, token: Token) -> tuple[int, int]:
        """§8: fcc and backlog without this node's part: what the others sent in their last visits,
        and what they left waiting. If a whole rotation brings no new packet and no member lacks
        one, nothing was sent in it, new or again; a member that could not send in that rotation,
        for want of room, could in the next. So after some such rotations both numbers are zero,
        whatever a forged token said; also if it asks for packets, since nobody lacks any."""
        seq, last = token.seq, self.last
        still = last is not None and not self.sent and last.seq == seq == token.aru == last.aru
        if not still:
            self._quiet = 0
        else:
            self._quiet += 1
            if self._quiet > 2:
                return 0, 0
        return max(0, token.fcc - self.sent), max(0, token.backlog - self.left)

    def _allowed(self, others: int) -> int:
        """§8: how many packets this visit may send, retransmissions included."""
        return max(0, min(self.config.visit_packets, self.config.window_packets - others))

    def _share(self, others: int, backlog: int, waiting: int) -> int:
        """§8: this node's part of the window, by how much waits everywhere."""
        everywhere, window = backlog + waiting, self.config.window_packets
        if everywhere <= 0:
            return window
        if (share := window * waiting // everywhere) or not waiting:
            return share
        # Rounded up to one, the shares of many nodes can be more than the window. A node that has
        # just sent makes room, otherwise the first nodes would fill the window for ever.
        return 0 if self.sent and others + self.sent >= window else 1

    def _sent(self, token: Token) -> int:
        """All numbers up to this one have certainly been sent before the token came."""
        if not self.config.accelerated_packets:
            return token.seq
        return 0 if self.last is None else self.last.seq

    def _lower(self, token: Token, here: int, due: int) -> tuple[int, int]:
        """§5.1: lower aru to what is here; or raise it, if nobody but this node holds it down, to
        `here`, what all have unless it was lost."""
        aru, aru_id = token.aru, token.aru_id
        if self.aru < aru:
            return self.aru, self.me
        if aru_id == NOBODY or aru_id == self.me:
            return max(aru, here), NOBODY if here >= due else self.me
        return aru, aru_id

    def _stalled(self, aru: int, aru_id: int) -> int | None:
        """§6.2: count visits without progress; past the limit, name the member behind it."""
        if aru_id == NOBODY or aru != self._stalled_aru:
            self._stalled_visits = 0
            self._stalled_aru = aru
            return None
        self._stalled_visits += 1
        stalled = self._stalled_visits > self.config.fail_to_receive_visits
        return aru_id if stalled and aru_id != self.me else None

    def _requests(self, token: Token, again: Sequence[tuple[int, P]], sent: int) -> tuple[int, ...]:
        """What others still lack, and what is lacking here of numbers up to `sent`, lowest
        first."""
        served = {seq for seq, _ in again}
        wanted = {seq for seq in token.requests if seq not in served and seq > self.discarded}
        for seq in range(self.aru + 1, sent + 1):
            if len(wanted) >= self.config.requests_max:
                break
            if seq not in self.have:
                wanted.add(seq)
        return tuple(sorted(wanted)[: self.config.requests_max])
