"""What distinguishes DTP, CM and Pinwheel, and what may be tuned."""

from roundelay.core.value import value
from roundelay.protocols.dtp.messages import BATCH_MAX

RULES = ("safe", "paper")


@value
class Policy:
    """One of the three protocols."""

    name: str
    rotates: bool
    """The token goes round the ring; else to the member that is known to hold least."""
    listens: bool
    """Also messages and requests tell what their sender holds; else acknowledgments alone."""


DTP = Policy("dtp", rotates=False, listens=True)
CM = Policy("cm", rotates=True, listens=False)
PINWHEEL = Policy("pinwheel", rotates=True, listens=True)


@value
class Config:
    """Timers for a LAN; counts."""

    resilience: int = 0
    """F: a packet is delivered once F + 1 members, or all of a smaller view, are known to hold it.
    0 is agreed delivery, n - 1 is safe delivery for every packet. More costs time, up to a silence
    period for each member that has nothing to say."""
    silence_s: float = 0.100
    """T: how long the token stays where nothing is to be ordered. Too short: an idle group talks
    all the time. Too long: what was sent last becomes stable late."""
    ack_repeat_s: float = 0.150
    """Until an acknowledgment whose token nobody shows to have got is sent again. Longer than the
    silence period and a round trip, or an idle group sends everything twice."""
    msg_repeat_s: float = 0.100
    """Until a message that has no number is sent again. Too short: a burst is sent twice."""
    req_repeat_s: float = 0.020
    """Until missing things are asked for again; more than a round trip."""
    attempts: int = 5
    """Repetitions of an acknowledgment before whoever does not take the token is suspected. Too
    few: a bad network changes views all the time. Too many: a crash is noticed late."""
    asking_attempts: int = 50
    """The same for one that asks for what it lacks: it is there, and may be slow. Too few: an
    application that reads slowly costs its node the view. Too many: a group waits long for one
    that small frames reach and large ones do not."""
    watch_s: float = 1.000
    """Without a transfer of the token, a number for a message or an answer to a request for so
    long, the view is suspected; while somebody asks for what it lacks, by that member alone. More
    than `attempts` repetitions of an acknowledgment, so that a single member that is to blame is
    found out first."""
    buffer_packets: int = 4096
    """How far ahead of what is here without gaps a number may be; what is beyond is dropped, to
    come again. Far more than an honest group needs."""
    window_packets: int = 1
    """Own packets that may be without a number at a time. 1, as in the paper of DTP and CM: a node
    waits for the number of each packet before it sends the next. More: less waiting, and the
    bounds of the paper on what a node has to keep grow with it; too many: receivers overrun."""
    batch_packets: int = 1
    """Most packets that one acknowledgment orders: 1 in DTP and CM, as in their paper. More: fewer
    acknowledgments, if nodes have that many under way. The token is passed on less often then, and
    so less often somebody tells what it holds."""
    rules: str = "safe"
    """`paper` for the literal rules, which break under loss: to be shown, not used."""

    def __post_init__(self) -> None:
        if self.rules not in RULES:
            raise ValueError(f"there are no rules {self.rules!r}; choose one of {', '.join(RULES)}")
        if self.resilience < 0:
            raise ValueError(f"resilience={self.resilience}; it is a number of nodes, 0 or more")
        if min(self.attempts, self.asking_attempts, self.buffer_packets) < 1:
            raise ValueError("attempts, asking_attempts and buffer_packets are 1 at least")
        if not 1 <= self.window_packets <= self.buffer_packets:
            raise ValueError(
                f"window_packets={self.window_packets}; it is 1 at least, and at most "
                f"buffer_packets, which is {self.buffer_packets}"
            )
        if not 1 <= self.batch_packets <= BATCH_MAX:
            raise ValueError(f"batch_packets={self.batch_packets}; it is 1 to {BATCH_MAX}")
        if self.batch_packets > self.buffer_packets:
            raise ValueError(
                f"batch_packets={self.batch_packets} is more than buffer_packets="
                f"{self.buffer_packets}: nobody could take in such a batch"
            )


@value
class PinwheelConfig(Config):
    """The same; an acknowledgment orders what waits."""

    batch_packets: int = 256
