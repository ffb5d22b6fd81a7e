"""The states of membership, and of the engine under it."""

from enum import StrEnum


class Phase(StrEnum):
    """What membership is doing."""

    OPERATIONAL = "operational"
    GATHER = "gather"
    COMMIT = "commit"
    RECOVERY = "recovery"


class Hold(StrEnum):
    """What the engine may still do in the view that was last installed."""

    LIVE = "live"
    FROZEN = "frozen"
    SEALED = "sealed"


LIVE, FROZEN, SEALED = Hold  # Asked for with every frame, and slow to get at in an Enum.
