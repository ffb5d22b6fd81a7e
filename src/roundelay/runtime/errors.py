"""What can go wrong for an application, as a tree::

    RoundelayError
    +-- ConfigError         what was asked for makes no sense; correct the call (a ValueError too)
    +-- StartError          this machine does not allow it
    |   +-- ListenError     the address is taken or not ours, or a peer's is of another kind
    |   +-- StateError      the state directory is in use, read-only, or another node's
    +-- SendError           this message was not accepted; others may be
    |   +-- QueueFullError  too much waits already: `send_nowait` says so, `send` waits instead
    +-- ClosedError         the group was left, before the call or while it waited
        +-- FailedError     the node stopped by itself: its disk failed, or it met a bug
            +-- NameTakenError  another node of the group has this node's name

Each has one sentence that says what is wrong and what to do. Whatever else is raised is a bug.
"""


class RoundelayError(Exception):
    """Any failure that Roundelay foresees."""


class ConfigError(RoundelayError, ValueError):
    """What was asked for makes no sense; correct the call."""


class StartError(RoundelayError):
    """This machine does not allow a node to start as asked."""


class ListenError(StartError):
    """The node's address cannot be used, or that of a peer not together with it."""


class StateError(StartError):
    """The state directory is in use, cannot be written, or belongs to another node."""


class SendError(RoundelayError):
    """This message was not accepted; nothing else changed."""


class QueueFullError(SendError):
    """Too many messages wait to be sent. `send` waits in such a case."""


class ClosedError(RoundelayError):
    """The group was left."""


class FailedError(ClosedError):
    """The node stopped by itself, for a reason that the message tells."""


class NameTakenError(FailedError):
    """Another node of the group has this node's name; one of the two must be renamed."""
