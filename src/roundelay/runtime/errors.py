"""What can go wrong for an application, as a tree::

    RoundelayError
    +-- ConfigError         what was asked for makes no sense; correct the call (a ValueError too)
    +-- StartError          this machine does not allow it
    |   +-- ListenError     the address is taken or not ours, or a peer's is of another kind
    |   +-- StateError      the state directory is in use, read-only, or another node's
    |   +-- JournalError    the journal is in use, another node's or log's, or cannot be read
    +-- SendError           this message was not accepted; others may be
    |   +-- QueueFullError  too much waits already: `send_nowait` says so, `send` waits instead
    |   +-- NotPrimaryError nothing was sent, since no view is open here
    |   +-- UncertainError  the message was sent, and may or may not be in the log
    |   +-- SessionForgottenError  the log remembers the message's session no more
    |   +-- VersionError    another node runs an older machine, which would stop at the command
    +-- LogError            what was to be read is not in this log, or could not be stored
    |   +-- TruncatedError  it was removed; `first` is the first entry that is left
    |   +-- ForeignLogError  it is of another log, or of another generation of this one
    +-- ClosedError         the group was left, before the call or while it waited
        +-- FailedError     the node stopped by itself: its disk failed, or it met a bug
            +-- NameTakenError  another node of the group has this node's name
            +-- DiskError   the journal could not be written
            +-- ForkError   this node's log and that of a peer contradict each other

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


class JournalError(StartError):
    """The journal is in use, belongs to another node or log, or cannot be read."""


class SendError(RoundelayError):
    """This message was not accepted; nothing else changed."""


class QueueFullError(SendError):
    """Too many messages wait to be sent. `send` waits in such a case."""


class NotPrimaryError(SendError):
    """No view is open here, and nothing was sent."""


class UncertainError(SendError):
    """The message was sent, and may or may not be in the log. With a named session it can be sent
    again, and is still in the log once."""


class SessionForgottenError(SendError):
    """The log remembers this session no more, so it cannot tell whether the message is there."""


class VersionError(SendError):
    """Another node runs an older version of the machine, and would stop at this command. Nothing
    was sent."""


class LogError(RoundelayError):
    """What was to be read is not in this log; or a snapshot that was asked for is not stored."""


class TruncatedError(LogError):
    """These entries were removed from the journal."""

    def __init__(self, index: int, first: int) -> None:
        super().__init__(
            f"entry {index} was removed from the journal; the first that is left is {first}: read "
            "from there, or begin with a snapshot"
        )
        self.first = first
        """The first entry that is left."""


class ForeignLogError(LogError):
    """This is of another log, or of another generation of the same one."""


class ClosedError(RoundelayError):
    """The group was left. Of a message that was appended and has no index yet, nobody knows here
    whether it is in the log."""


class FailedError(ClosedError):
    """The node stopped by itself, for a reason that the message tells."""


class NameTakenError(FailedError):
    """Another node of the group has this node's name; one of the two must be renamed."""


class DiskError(FailedError):
    """The journal could not be written. What was confirmed is on the disks of other nodes."""


class ForkError(FailedError):
    """This node's log and that of a peer contradict each other."""
