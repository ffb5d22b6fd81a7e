"""Figures of a run, taken from the rows of its trace as they are written; none is kept."""

from roundelay.core.effects import Kind
from roundelay.trace.schema import LOWER_LAYER, Row


class Meter:
    """Throughput, latency and rotation time of a run, from `start_ns` on.

    Latency runs from the moment the application hands a message over, which the meter is told by
    `submitted`: the `submit` row is written when the node's processor gets to it, and on a busy
    one that is later. It ends with the `deliver` row, at each node, the sender included. A message
    counts if it was handed over in the measured time, whenever it is delivered.
    """

    def __init__(self, nodes: int, start_ns: int = 0, end_ns: int | None = None) -> None:
        self.nodes = nodes
        self.deliveries = 0
        """Messages delivered in the measured time, over all nodes."""
        self.latency_ns: list[int] = []
        """One for each delivery of each message that counts."""
        self.wait_ns: list[int] = []
        """One for each such message: until it is first broadcast."""
        self.visits = 0
        """How often the first node got the token in the measured time."""
        self.flying: dict[tuple[int, int], list[int]] = {}
        """By sender and number, messages that count: when handed over, deliveries yet to come."""
        self._start = start_ns
        self._end = end_ns
        self._first_visit = 0
        self._last_visit = 0
        self.submissions = [0] * nodes
        """By node: messages handed over, counted or not."""

    def submitted(self, node: int, time_ns: int) -> None:
        """The application of that node hands over its next message."""
        number = self.submissions[node]
        self.submissions[node] = number + 1
        if self._measures(time_ns):
            self.flying[node, number] = [time_ns, self.nodes]

    def append(self, row: Row) -> None:
        """Take the next row of the run."""
        kind = row.kind
        if row.layer == LOWER_LAYER:
            return  # Of a message that other rows tell of too.
        if kind == Kind.DELIVER:
            self._deliver(row)
        elif kind == Kind.TOKEN:
            if row.proc == 0 and row.tag == "acquire" and self._measures(row.t_ns):
                self._first_visit = self._first_visit if self.visits else row.t_ns
                self._last_visit = row.t_ns
                self.visits += 1
        elif kind == Kind.ORIGINATE:
            for message in self._messages(row):
                if message in self.flying:
                    self.wait_ns.append(row.t_ns - self.flying[message][0])

    @property
    def rotation_ns(self) -> float:
        """The mean time between two visits of the token."""
        return (self._last_visit - self._first_visit) / (self.visits - 1)

    def _deliver(self, row: Row) -> None:
        if self._measures(row.t_ns):
            self.deliveries += row.count
        for message in self._messages(row):
            flying = self.flying.get(message)
            if flying is None:
                continue
            self.latency_ns.append(row.t_ns - flying[0])
            flying[1] -= 1
            if not flying[1]:
                del self.flying[message]

    def _messages(self, row: Row) -> list[tuple[int, int]]:
        assert row.m_src is not None
        assert row.m_seq is not None
        return [(row.m_src, row.m_seq + i) for i in range(row.count)]

    def _measures(self, time_ns: int) -> bool:
        return time_ns >= self._start and (self._end is None or time_ns < self._end)
