"""The instruments of a node: what observes its work, and changes nothing of it."""

from dataclasses import dataclass

from roundelay.runtime.input_log import InputLog
from roundelay.runtime.meter import Meter
from roundelay.runtime.node_log import NodeLog
from roundelay.runtime.tracing import Tracing
from roundelay.runtime.watched import WatchedTracing


@dataclass(slots=True)
class Instruments:
    """Counters and a log, which every node has; a trace and a record, where the settings ask for
    them. Others begin to watch a node while it runs: read `tracing` here whenever it is needed."""

    meter: Meter
    node_log: NodeLog
    tracing: Tracing | WatchedTracing | None = None
    input_log: InputLog | None = None

    def __post_init__(self) -> None:
        if isinstance(self.tracing, Tracing):
            self.tracing.trouble = self.node_log.trouble
        if self.input_log is not None:
            self.input_log.trouble = self.node_log.trouble

    def flush(self) -> None:
        """Write what the files hold back, so that a killed node loses little."""
        if self.input_log is not None:
            self.input_log.flush()
        if self.tracing is not None:
            self.tracing.save()

    def close(self) -> None:
        if self.input_log is not None:
            self.input_log.close()
        if self.tracing is not None:
            self.tracing.close()
