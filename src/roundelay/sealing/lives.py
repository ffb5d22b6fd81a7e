"""What a node knows of its peers: which boot of each has proven to be alive, what it has sent, and
the challenge that it has not answered yet. Nothing else is kept, whatever arrives.
"""

from array import array

from roundelay.core.ids import NodeId

WINDOW = 4096
"""How many datagrams late, by its counter, one may come and still count; a power of two. Too small:
datagrams that overtake each other are lost; too large: memory, 8 bytes for each and peer."""
PROOF_S = 5.0
"""For how long a proof counts, from when its challenge was made, in seconds: nothing older than
this ever has an effect. Too small: a node on a slow path is lost between two proofs; too large: an
attacker may hold datagrams back for longer."""
RENEW_S = 2.0
"""When a proof is asked for again, in seconds after its challenge was made. Too small: challenges
without end; too close to `PROOF_S`: a few lost challenges end the proof."""
CHALLENGE_S = 2.0
"""For how long one challenge is repeated before a new one is made, in seconds. Too small: slow
answers come too late; too large: a late answer proves less."""

WINDOW_MASK = WINDOW - 1
_NEVER = float("-inf")


class Life:
    """One boot of a peer that has proven to be alive.

    A proof vouches for datagrams that were sent after its answer: those with a larger counter.
    While a proof is renewed, datagrams that were overtaken by the new answer are still on their
    way, so the proof before it counts until it expires.
    """

    __slots__ = (
        "_before",
        "_expires_before",
        "_floor",
        "boot",
        "expires",
        "newest",
        "origin",
        "peer",
        "renew_at",
        "seen",
        "top",
    )

    def __init__(self, peer: "Peer", boot: bytes, origin: bytes) -> None:
        self.peer = peer
        self.boot = boot
        self.origin = origin
        """How the origin of all its frames begins."""
        self.expires = _NEVER
        """When the last proof expires."""
        self.renew_at = _NEVER
        self.newest = b""
        """The newest key that it has, by its id."""
        self._floor = 0
        self._before = 0
        """The floor of the proof before the last."""
        self._expires_before = _NEVER
        self.top = 0
        """The largest counter seen; never below the floor."""
        self.seen = array("Q", bytes(8 * WINDOW))
        """The last counter seen at each place, which is the counter modulo `WINDOW`."""

    def prove(self, counter: int, asked_at: float, now: float) -> None:
        """It has answered a challenge made at `asked_at` with the datagram of this counter. An
        answer that comes while the last proof need not be renewed changes nothing: if many came,
        they would leave no time to the datagrams that they overtook."""
        self.mark(counter)
        if now < self.renew_at:
            return
        self._before, self._expires_before = self._floor, self.expires
        self._floor = max(self._floor, counter)
        self.expires = asked_at + PROOF_S
        self.renew_at = asked_at + RENEW_S

    def admits(self, counter: int, now: float) -> bool:
        """Whether a datagram is new, and not older than the proofs that vouch for it; asked before
        it is opened."""
        if counter <= self._floor and (counter <= self._before or now >= self._expires_before):
            return False
        if counter > self.top:
            return True
        return counter > self.top - WINDOW and self.seen[counter & WINDOW_MASK] != counter

    def mark(self, counter: int) -> None:
        """A datagram was opened: it is not admitted again."""
        self.seen[counter & WINDOW_MASK] = counter
        if counter > self.top:
            self.top = counter


class Peer:
    """One of the configured peers."""

    __slots__ = (
        "answer_from",
        "asked_at",
        "challenge",
        "challenged_at",
        "life",
        "name",
        "renewed_at",
    )

    def __init__(self, name: NodeId) -> None:
        self.name = name
        self.life: Life | None = None
        """The boot that has proven itself last; its proof may have expired."""
        self.challenge: bytes | None = None
        """What it has to answer."""
        self.asked_at = _NEVER
        """When that challenge was made."""
        # An attacker decides what is sent to boots that are not proven. So that nothing else has to
        # wait for it, each of these has its own limit.
        self.challenged_at = _NEVER
        """When it was last sent a challenge because of a boot that is unknown."""
        self.renewed_at = _NEVER
        """The same for the boot that has proven itself last."""
        self.answer_from = _NEVER
        """When a boot that is not proven may be sent an answer again."""

    def open_challenge(self, now: float) -> bytes | None:
        """The challenge that it may still answer."""
        return self.challenge if now < self.asked_at + CHALLENGE_S else None
