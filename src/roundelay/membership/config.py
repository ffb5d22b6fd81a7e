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
"""A timer, followed by a node's name: until it runs out we do not merge with that node, which was
expelled because it does not receive."""
APART = "apart "
"""A timer, followed by a node's name: until it runs out we do not merge with that node, because of
a link that carries nothing."""

TIMERS = frozenset({JOIN, CONSENSUS, LOSS, RETRANSMIT, MERGE, FORGIVE, SETTLE, CAUGHT_UP})
"""Names that no engine may use."""


@value
class MembershipConfig:
    """Times in seconds, for a LAN."""

    join_s: float = 0.010
    """Between two Joins of a node during Gather. Several must fit into `consensus_s`: too large,
    and a node whose Joins were lost is given up; too small, and Joins fill the network."""
    consensus_s: float = 0.120
    """From the beginning of a Gather until nodes that have not agreed are given up. At least 1.2
    times `ring_loss_s`, because a peer whose Commit token was lost needs that long to come back to
    Gather: too small, and such a peer is given up; too large, and every crash interrupts the group
    for longer."""
    ring_loss_s: float = 0.100
    """From sending a Commit token, or the token of a forming ring, until it is taken for lost. Too
    small: slow members make the formation of a ring fail; too large: a failed formation is begun
    again late."""
    ring_retransmit_s: float = 0.015
    """Between two transmissions of such a token. At least four must fit into `ring_loss_s`: too
    large, and a few lost frames make the formation fail; too small, and tokens are sent again that
    were merely slow."""
    merge_detect_s: float = 0.200
    """Within this time a ring whose engine sends nothing to everyone shows that it is there. Too
    small: needless frames; too large: idle rings find each other late."""
    settle_s: float = 0.030
    """How long a ring that has just given up a node answers no outsider. Joins of the Gather that
    led to it are still under way, and answering one would begin that Gather again. Too small, which
    is less than a round trip: views follow each other; too large, which is more than a quarter of
    `consensus_s`: outsiders that wait for an answer give us up."""
    repeat_limit: int = 3
    """Attempts in a row to form a ring of the same members that may fail before its largest member
    is given up. Too small: a burst of loss costs a member; too large: a membership that cannot form
    a ring goes on trying."""
    pause_s: float = 0.200
    """How long we do not merge with a node after its second expulsion for not receiving; doubles
    with every further one. Too small: a deaf node costs the group many views; too large: a node
    that hears again is let in late."""
    pause_max_s: float = 40.0
    """The longest such pause. Every attempt costs the group a view; a node that hears again is let
    in only after the pause."""
    apart_max_s: float = 40.0
    """The longest pause of a node that is kept out by a link that carries nothing; it begins with
    `pause_s` too. Every attempt costs the group a view; a link that was mended is used only after
    the pause."""
    forgive_s: float = 5.0
    """A view that lasts this long clears the counts of expulsions and broken links of its members.
    Too small: pauses never grow; too large: trouble of long ago makes a pause long."""
    caught_up_s: float = 1.0
    """From installing a primary view without a vote in it until a member that may have a vote in
    the next asks for another view. Too small: views follow each other while nodes come back one by
    one; too large: the group can lose fewer members meanwhile."""
    members_max: int = 32
    """Members of one ring. The Commit token carries an entry of each of them in a single datagram:
    32 fit with room to spare, 64 do not. Outsiders beyond that are not merged with."""
    early_frames_max: int = 1024
    """Frames of a view that are kept until the view is installed here too. Frames beyond that are
    lost, and the engine has them sent again. Too large: memory that a forger may fill."""
    ring: RingConfig = RingConfig()
    """The ring over which items of old views are exchanged."""
