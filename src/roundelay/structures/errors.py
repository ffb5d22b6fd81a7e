"""What can go wrong with a machine."""


class Refused(Exception):  # noqa: N818  # An answer, which the application gives.
    """A write or read of a machine says no; whoever called it gets this exception.

    A write that raises it should not have changed anything yet: what it changed stays changed, at
    all nodes alike. Any other exception in a write is a bug of the machine, and stops it.
    """

    index: int | None = None
    """Of the command in the log, for the caller of a write."""


class MachineError(Exception):
    """A machine cannot go on at this node. Other nodes that run the same version stop as well."""


class UpgradeError(MachineError):
    """The log holds what a newer version of the machine wrote. This node stops applying, so that
    its state does not differ from that of others; upgrade it first."""


class GapError(Exception):
    """A watcher missed changes. Read the present state, then watch again."""
