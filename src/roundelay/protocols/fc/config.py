"""What may be tuned."""

from roundelay.core.value import value
from roundelay.protocols.fc.messages import BATCH_MAX

RULES = ("safe", "paper", "link")


@value
class Config:
    """Timers for a LAN; counts."""

    rules: str = "safe"
    """`paper` and `link` make a token anew without asking anybody. They are for static groups, and
    keep their promises only inside the paper's assumptions."""
    k: int = 1
    """How many members that follow one another may fail together; `safe` has no such limit."""
    wait_s: float = 0.020
    """T: without a decision for so long, the member that follows makes the token anew. Too short: a
    slow member is taken for a dead one, which costs a round trip. Too long: deliveries pause."""
    stagger_s: float = 0.002
    """How much longer the member after that one waits, and so on; more than a frame takes."""
    idle_s: float = 0.005
    """How long a member with nothing to order keeps the token. Far less than T, because every
    decision starts the wait again. Shorter: idle nodes take more of their processors."""
    repeat_s: float = 0.005
    """Until something is asked for, or told, again."""
    silence_s: float = 0.100
    """A member that is off the ring and silent for so long is suspected; so is the view, without a
    majority. Several T, so that a failure is masked first and the view changes later."""
    window_packets: int = 64
    """Own requests that some member that is heard may lack."""
    batch_packets: int = 256
    """Most requests that one decision orders; 1 in the paper."""
    buffer_packets: int = 4096
    """Requests and decisions that are kept for members that are behind, and how far ahead of what
    is here without gaps a number may be."""

    def __post_init__(self) -> None:
        if self.rules not in RULES:
            raise ValueError(f"there are no rules {self.rules!r}; choose one of {', '.join(RULES)}")
        if self.k < 0:
            raise ValueError(f"k={self.k}; it is a number of nodes, 0 or more")
        if self.window_packets < 1 or not 1 <= self.batch_packets <= BATCH_MAX:
            raise ValueError(f"window_packets is 1 at least, batch_packets 1 to {BATCH_MAX}")
        if self.buffer_packets < max(self.batch_packets, self.window_packets):
            raise ValueError(
                f"buffer_packets={self.buffer_packets} is less than a batch or a window: nobody "
                f"could take them in"
            )
        if min(self.stagger_s, self.idle_s, self.repeat_s) <= 0 or self.wait_s < 2 * self.idle_s:
            raise ValueError("all times are more than 0, and wait_s is twice idle_s at least")
        if self.silence_s < self.wait_s:
            raise ValueError("silence_s is wait_s at least: a failure is masked first")
