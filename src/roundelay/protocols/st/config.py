"""What may be tuned."""

from roundelay.core.value import value
from roundelay.protocols.st.messages import PART_BYTES

RULES = ("safe", "paper")
MEDIA = ("reflector", "channel")


@value
class Config:
    """Timers for a LAN; counts."""

    rules: str = "safe"
    """`paper` for the literal rules, which break the order after a loss: to be shown, not used."""
    medium: str = "reflector"
    """How all members come to hear frames in one order: `reflector`, through the first member of
    the view, or `channel`, where the network itself is one channel."""
    ready_s: float = 0.020
    """A member that sends nothing shows that it is there so often. Longer: what was sent last is
    missed later."""
    ack_s: float = 0.001
    """How long a member that has something to acknowledge waits for something to send. Longer:
    messages are delivered later. Shorter: more frames."""
    repeat_s: float = 0.010
    """Until something is asked for, or told, again; more than a round trip."""
    silence_s: float = 0.100
    """A member that is not heard for so long is suspected; several times `ready_s`."""
    window_packets: int = 32
    """Own packets that some member may not have heard; W of the paper."""
    ack_packets: int = 8
    """After so many packets a member acknowledges them at once."""
    buffer_packets: int = 1024
    """Packets that a member keeps until they are delivered. Members together send at most as many
    as the fullest of them has room for."""
    part_bytes: int = PART_BYTES
    """Most bytes of a list that one frame carries; frames must not be larger than a datagram.
    Smaller: a recovery needs more frames. All members cut lists alike."""

    pack_s: float = 0.060
    """`paper` only: the sender of a packet that is not known to be with all whom it is for sends it
    again after so long; several times `ready_s`."""
    hold_s: float = 0.060
    """`paper` only: a packet that is pre-acknowledged is delivered after so long in any case."""

    def __post_init__(self) -> None:
        if self.rules not in RULES:
            raise ValueError(f"there are no rules {self.rules!r}; choose one of {', '.join(RULES)}")
        if self.medium not in MEDIA:
            raise ValueError(
                f"there is no medium {self.medium!r}; choose one of {', '.join(MEDIA)}"
            )
        if self.rules == "paper" and self.medium != "channel":
            raise ValueError("rules=paper is for a network that is one channel: add medium=channel")
        if min(self.window_packets, self.ack_packets, self.buffer_packets) < 1:
            raise ValueError("window_packets, ack_packets and buffer_packets are 1 at least")
        if not 1 <= self.part_bytes <= PART_BYTES:
            raise ValueError(f"part_bytes={self.part_bytes} is not between 1 and {PART_BYTES}")
        times = (self.ready_s, self.ack_s, self.repeat_s, self.pack_s, self.hold_s)
        if min(times) <= 0 or self.silence_s < 2 * self.ready_s:
            raise ValueError("all times are more than 0, and silence_s is twice ready_s at least")
