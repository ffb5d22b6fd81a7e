"""Token ordering on one ring: who may send, what is missing, what everybody has.

Follows [Totem95] section 5; numbers with § refer to it. Recovery exchanges its items over a ring
of its own, and the totem engine is a ring with delivery rules on top.

    paper              here                      meaning
    my_aru             ring.aru                  all received up to this sequence number
    my_high_seq        ring.high_seq             highest sequence number heard of
    token.rtr          token.requests            sequence numbers that somebody lacks
    token.fcc          token.fcc                 packets sent in the last rotation
    token.backlog      token.backlog             packets that waited in the last rotation
    my_trc, my_pbl     ring.sent, ring.left      this node's part in those two
    aru_id             token.aru_id              who lowered aru; NOBODY if it equals seq

Deviations: flow control does not count this node's own last visit against it, shares are at least
one, and nobody accuses itself of failing to receive.
"""

import struct
from collections.abc import Callable
from typing import Generic, TypeVar

from roundelay.core.value import value
from roundelay.wire.primitives import I64_MAX, Reader, Reason, WireError, Writer

P = TypeVar("P")

_TOKEN = struct.Struct(">QQQIIHBH")
REQUESTS_MAX = 1024
"""That a token can carry at all."""

NOBODY = 0xFFFF
"""aru_id when aru equals seq: nobody lacks anything."""


@value
class RingConfig:
    """Flow control of a ring. Packets are counted, whatever their size."""

    window_packets: int = 80
    """Sent by all in one rotation. Too small: idle wire; too large: receivers overrun."""
    visit_packets: int = 20
    """Sent by one node in one visit. Too small: more rotations; too large: others wait longer."""
    requests_max: int = 30
    """Retransmission requests in a token. Too small: slow repair; too large: a token that does
    not fit its datagram."""
    buffer_packets: int = 4096
    """Kept for retransmission before new ones must wait for the slowest member."""
    fail_to_receive_visits: int = 250
    """Visits without progress of aru before its holder-back is accused. Too small: a burst of
    loss expels a member; too large: one deaf member stops everybody."""


@value
class Token:
    """The right to send, and what all know of each other."""

    token_seq: int
    """Grows at every hop: copies of an older hop are known as such."""
    seq: int = 0
    aru: int = 0
    aru_id: int = NOBODY
    requests: tuple[int, ...] = ()
    fcc: int = 0
    backlog: int = 0
    flag: bool = False
    """Recovery: somebody has items left to exchange."""

    def write(self, w: Writer) -> None:
        w.rest(
            _TOKEN.pack(
                self.token_seq,
                self.seq,
                self.aru,
                self.fcc,
                self.backlog,
                self.aru_id,
                self.flag,
                len(self.requests),
            )
        )
        for seq in self.requests:
            w.u64(seq)

    @classmethod
    def read(cls, r: Reader) -> "Token":
        token_seq, seq, aru, fcc, backlog, aru_id, flag, count = r.fields(_TOKEN)
        if max(token_seq, seq, aru) > I64_MAX or flag > 1 or count > REQUESTS_MAX:
            raise WireError(Reason.MALFORMED, "a token out of range")
        requests = tuple(r.u64(I64_MAX) for _ in range(count))
        return cls(token_seq, seq, aru, aru_id, requests, fcc, backlog, flag == 1)

    def __str__(self) -> str:
        by = "" if self.aru_id == NOBODY else f" by #{self.aru_id}"
        lacking = f" lacking {' '.join(map(str, self.requests))}" if self.requests else ""
        flag = " exchanging" if self.flag else ""
        return f"hop {self.token_seq} seq {self.seq} aru {self.aru}{by}{lacking}{flag}"


@value
class Visit(Generic[P]):
    """What one visit of the token did."""

    again: tuple[tuple[int, P], ...]
    """Packets to retransmit, with their numbers."""
    fresh: tuple[tuple[int, P], ...]
    """New packets, with their numbers."""
    token: Token
    """To be forwarded; `Ring.forward` stamps it."""
    accused: int | None
    """The member whose failure to receive holds everybody up; then nothing is forwarded."""


class Ring(Generic[P]):
    """One member's part in the ordering of one ring. Members are numbered by their place."""

    def __init__(self, me: int, size: int, config: RingConfig) -> None:
        self.me = me
        self.size = size
        self.config = config
        self.have: dict[int, P] = {}
        """Packets held, by sequence number: everything above `discarded` that came."""
        self.discarded = 0
        self.aru = 0
        self.high_seq = 0
        self.safe_line = 0
        """Everybody has everything up to here: the lesser aru of two visits in a row."""
        self.token_seq = 0
        self.last: Token | None = None
        """As forwarded, for retransmission."""
        self.sent = 0
        self.left = 0
        self._last_aru = 0
        """aru as forwarded at the previous visit."""
        self._stalled_aru = 0
        self._stalled_visits = 0

    @property
    def successor(self) -> int:
        return (self.me + 1) % self.size

    def store(self, seq: int, packet: P) -> bool:
        """Keep a packet; False if it was known, or is too far ahead to be true."""
        if seq <= self.discarded or seq in self.have or seq > self.limit:
            return False
        self.have[seq] = packet
        self.high_seq = max(self.high_seq, seq)
        while self.aru + 1 in self.have:
            self.aru += 1
        return True

    @property
    def limit(self) -> int:
        """No honest member sends past this while we lack what is below."""
        return self.discarded + 2 * self.config.buffer_packets

    def accepts(self, token: Token) -> bool:
        """Whether this is the token, and not a copy of one that was here."""
        return token.token_seq > self.token_seq and token.seq <= self.limit

    def visit(
        self, token: Token, waiting: int, pull: Callable[[], P | None], *, accuse: bool = True
    ) -> Visit[P]:
        """Use the token: serve requests, send what waits, say what is missing here."""
        allowed = self._allowed(token)
        again = tuple((seq, self.have[seq]) for seq in token.requests if seq in self.have)[:allowed]
        served = {seq for seq, _ in again}
        limit = min(self._share(token, waiting), allowed - len(again))
        limit = min(limit, self.config.buffer_packets - (token.seq - self.discarded))
        fresh: list[tuple[int, P]] = []
        seq = token.seq
        while len(fresh) < limit and (packet := pull()) is not None:
            seq += 1
            fresh.append((seq, packet))
            stored = self.store(seq, packet)
            assert stored, f"a new packet got the number {seq}, which was taken"
        self.high_seq = max(self.high_seq, seq)
        aru, aru_id = self._lower(token, seq)
        accused = self._stalled(aru, aru_id) if accuse else None
        left = waiting - len(fresh)
        visited = Token(
            token.token_seq,
            seq,
            aru,
            aru_id,
            self._requests(token, served),
            max(0, token.fcc + len(again) + len(fresh) - self.sent),
            max(0, token.backlog + left - self.left),
            token.flag,
        )
        assert visited.aru <= visited.seq, f"aru {visited.aru} is past seq {visited.seq}"
        assert aru_id != NOBODY or aru == seq, f"nobody lacks anything, and aru is {aru} of {seq}"
        assert self.discarded <= self.aru <= self.high_seq, "received more than there is"
        self.sent = len(again) + len(fresh)
        self.left = left
        return Visit(again, tuple(fresh), visited, accused)

    def forward(self, token: Token) -> Token:
        """The token as it goes on, remembered; moves the safe line."""
        hop = Token(
            token.token_seq + 1,
            token.seq,
            token.aru,
            token.aru_id,
            token.requests,
            token.fcc,
            token.backlog,
            token.flag,
        )
        self.token_seq = hop.token_seq
        self.last = hop
        self.safe_line = max(self.safe_line, min(token.aru, self._last_aru))
        self._last_aru = token.aru
        return hop

    def discard(self, upto: int) -> None:
        """Forget packets that nobody will ask for again."""
        while self.discarded < upto:
            self.discarded += 1
            del self.have[self.discarded]

    def _allowed(self, token: Token) -> int:
        """§8: how many packets this visit may send, retransmissions included."""
        others = max(0, token.fcc - self.sent)
        return max(0, min(self.config.visit_packets, self.config.window_packets - others))

    def _share(self, token: Token, waiting: int) -> int:
        """§8: this node's part of the window, by how much waits everywhere; never nothing."""
        everywhere = token.backlog + waiting - self.left
        if everywhere <= 0:
            return self.config.window_packets
        return max(1, self.config.window_packets * waiting // everywhere)

    def _lower(self, token: Token, seq: int) -> tuple[int, int]:
        """§5.1: lower aru to what is here, or raise it if it was this node that held it down."""
        if self.aru < token.aru or token.aru_id in (self.me, NOBODY):
            return self.aru, NOBODY if self.aru == seq else self.me
        return token.aru, token.aru_id

    def _stalled(self, aru: int, aru_id: int) -> int | None:
        """§6.2: count visits without progress, and name who is behind it."""
        if aru == self._stalled_aru and aru_id != NOBODY:
            self._stalled_visits += 1
        else:
            self._stalled_visits = 0
        self._stalled_aru = aru
        stalled = self._stalled_visits > self.config.fail_to_receive_visits
        return aru_id if stalled and aru_id != self.me else None

    def _requests(self, token: Token, served: set[int]) -> tuple[int, ...]:
        """What others still lack, and what is lacking here, lowest first."""
        wanted = {seq for seq in token.requests if seq not in served and seq > self.discarded}
        for seq in range(self.aru + 1, token.seq + 1):
            if len(wanted) >= self.config.requests_max:
                break
            if seq not in self.have:
                wanted.add(seq)
        return tuple(sorted(wanted)[: self.config.requests_max])
