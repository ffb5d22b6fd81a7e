"""The states of membership, and of the engine under it."""

from enum import StrEnum


class Phase(StrEnum):
    """What membership is doing."""

    OPERATIONAL = "operational"
    GATHER = "gather"
    COMMIT = "commit"
    RECOVERY = "recovery"


class GatherReason(StrEnum):
    """Why a node begins, or begins again, to agree with others on the next view."""

    STARTED = "started"
    """The node has just started."""
    ENGINE_SUSPECTS = "engine_suspects"
    """The engine reports members that do not answer, or a view that got stuck; or the replicated
    log does."""
    MEMBER_LEAVES = "member_leaves"
    """A member of the view says that it is about to stop."""
    STRANGER_HEARD = "stranger_heard"
    """A node that is not in the view, or not in the proposal, sent a frame."""
    JOIN_HEARD = "join_heard"
    """A Join that concerns the view found this node operational."""
    PROPOSAL_GREW = "proposal_grew"
    """A Join named nodes, or failed nodes, that this node did not know of."""
    SILENT_GIVEN_UP = "silent_given_up"
    """Nodes that did not agree within the consensus time were given up."""
    SETTINGS_DIFFER = "settings_differ"
    """A node of the proposal turned out to have other settings, and was given up."""
    COMMIT_MISSING = "commit_missing"
    """All agreed, and no Commit token came."""
    COMMIT_LOST = "commit_lost"
    """The Commit token did not come back."""
    RING_STUCK = "ring_stuck"
    """The token of the ring being formed did not come back."""
    RING_ABANDONED = "ring_abandoned"
    """A member of the ring being formed sent a Join: it has abandoned that ring."""
    FAILS_TO_RECEIVE = "fails_to_receive"
    """A member of the ring being formed does not receive what is exchanged."""
    CAUGHT_UP = "caught_up"
    """This node has caught up with a primary view, and wants a view in which it has a vote."""


class Hold(StrEnum):
    """What the engine may still do in the view that was last installed."""

    LIVE = "live"
    FROZEN = "frozen"
    SEALED = "sealed"


LIVE, FROZEN, SEALED = Hold  # Asked for with every frame, and slow to get at in an Enum.
