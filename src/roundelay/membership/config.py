"""Timers and limits of membership."""

from roundelay.core.value import value
from roundelay.membership.ring import RingConfig

JOIN = "join"
CONSENSUS = "consensus"
LOSS = "ring_loss"
RETRANSMIT = "ring_retransmit"
MERGE = "merge_detect"
FORGIVE = "forgive"
SETTLE = "settle"
CAUGHT_UP = "caught_up"
PAUSE = "pause "
"""Timer, followed by a node's name: until then we do not merge with that node."""
APART = "apart "
"""The same, of a node that another member does not hear."""

TIMERS = frozenset({JOIN, CONSENSUS, LOSS, RETRANSMIT, MERGE, FORGIVE, SETTLE, CAUGHT_UP})
"""Names that no engine may use."""


@value
class MembershipConfig:
    """Timers in seconds, for a LAN."""

    join_s: float = 0.010
    """Between Joins. Several must fit into `consensus_s`."""
    consensus_s: float = 0.120
    """Until silent nodes are given up. At least 1.2 times `ring_loss_s`: a peer that is stuck in
    Commit needs that long to come back."""
    ring_loss_s: float = 0.100
    """Until a Commit token or the token of a forming ring is taken for lost."""
    ring_retransmit_s: float = 0.015
    """Between its retransmissions; at least four must fit into `ring_loss_s`."""
    merge_detect_s: float = 0.200
    """Within this time a ring whose representative has nothing to say shows that it is there."""
    settle_s: float = 0.030
    """How long a ring that gave somebody up leaves outsiders alone. Joins of the quarrel that led
    to it are still under way: who heeds them starts it anew. A round trip, and less than a
    quarter of `consensus_s`, or those who wait for an answer give us up."""
    repeat_limit: int = 3
    """Failures of one membership before its largest member is given up."""
    pause_s: float = 0.200
    """How long a node expelled twice is left alone; doubles with every further time."""
    pause_max_s: float = 40.0
    """That pause at its longest. Every try costs the group a view, and a node that hears again is
    taken in only at the next."""
    apart_max_s: float = 40.0
    """The same pause at its longest, of a node that another member does not hear. Every try costs
    the group a view, and a link that was mended is used only at the next."""
    forgive_s: float = 5.0
    """A view that lasts this long clears its members of having been expelled."""
    caught_up_s: float = 1.0
    """Until a member that has no vote in the present primary view, though it may have one in the
    next, asks for another view. Too short: views follow each other while nodes come back one by
    one; too long: the group can lose fewer members meanwhile."""
    members_max: int = 32
    """Of one ring. The Commit token carries what each of them brings along in a single datagram:
    32 fit with room to spare, 64 do not."""
    early_frames_max: int = 1024
    """Frames of a view kept until it is installed here too."""
    ring: RingConfig = RingConfig()
