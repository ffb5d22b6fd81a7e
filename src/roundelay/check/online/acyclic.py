"""O5: what all processes together delivered has no circle.

Theory of operation. Each delivery draws an arrow from what the process delivered before to what it
delivers now. There is one order that all processes follow if and only if the arrows form no
circle. The graph carries labels that grow along every arrow, so that most arrows need one
comparison. An arrow against the labels makes a search, ahead of its head and behind its tail and
only among labels in between: if the two meet there is a circle, if not the labels found are dealt
out anew (Pearce and Kelly 2006). Labels begin as order keys: where keys are right no arrow is
ever against them, however far apart the processes are.

A message that leaves the window takes its node with it; those before it are joined to those after
it, so that no path is lost. Only a delivery of a message that has already left cannot be placed.
"""

from typing import TYPE_CHECKING

from roundelay.check import sentences as say
from roundelay.check.names import Span
from roundelay.check.online.findings import DeliveryCheck, Findings
from roundelay.check.online.window import OrderKey, PacketRecord, Window
from roundelay.core.effects import Kind
from roundelay.trace.schema import Row

if TYPE_CHECKING:
    from roundelay.check.online.views import Process


JOINED = -1
"""Who drew an arrow that stands for a path through messages that have left."""


class Node:
    """A span of messages in the graph of deliveries."""

    __slots__ = ("ins", "label", "left", "outs", "span")

    def __init__(self, span: Span, label: tuple[int, ...]) -> None:
        self.span = span
        self.label = label
        """Unique, and smaller than that of every node an arrow leads to."""
        self.ins: list[Node] = []
        self.outs: dict[Node, int] = {}
        """Where arrows lead from here, and who drew each."""
        self.left = False
        """Whether its message has left the window."""

    def lead(self, to: "Node", by: int) -> None:
        self.outs[to] = by
        to.ins.append(self)


class Acyclic(DeliveryCheck):
    """O5: all processes, failed ones and those cut off included, deliver in one order."""

    names = ("O5",)

    def __init__(self, findings: Findings, window: Window) -> None:
        super().__init__(findings)
        (self.o5,) = self.tallies
        self._latest: dict[int, Node] = {}
        """What each process delivered last."""
        self._shared = 0
        """Messages that two processes or more delivered."""
        self._number = 0
        """Of the latest label."""
        window.on_split.append(self._split)
        window.on_leave.append(self._leave)

    def deliver(
        self, row: Row, process: "Process", record: PacketRecord, key: OrderKey | None
    ) -> None:
        node, delivered = record.node, record.delivered
        if delivered and not delivered & (delivered - 1):
            self._share(record.count)
        if node is None:
            if record.forgot():
                reason = f"after what {self.findings.label(record.span)} was delivered is forgotten"
                self.findings.doubt(self.o5, reason)
                return
            view = key or (*process.regular.rank, 0, 0)
            node = record.node = Node(record.span, (*view, self._next()))
        proc = process.number
        previous = self._latest.get(proc)
        self._latest[proc] = node
        if previous is None:
            return
        if node not in previous.outs:
            if node.label < previous.label and not self._reorder(previous, node):
                self._report_circle(row, previous, node)
                return
            previous.lead(node, proc)
        if previous.left:
            self._retire(previous)

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _share(self, more: int) -> None:
        """One shared message is not enough for a contradiction; it takes two."""
        self._shared += more
        self.o5.instances = self._shared if self._shared > 1 else 0

    def _reorder(self, tail: Node, head: Node) -> bool:
        """Make room for an arrow against the labels; False if it closes a circle."""
        ahead = _reach(head, tail.label)
        if tail in ahead:
            return False
        behind = _reach_back(tail, head.label)
        moved = sorted(behind, key=_label) + sorted(ahead, key=_label)
        for node, label in zip(moved, sorted(node.label for node in moved), strict=True):
            node.label = label
        return True

    def _report_circle(self, row: Row, tail: Node, head: Node) -> None:
        steps = [*_path(head, tail), (tail, row.proc, head)]
        rows = [
            self.findings.row(Kind.DELIVER, by, node.span)
            for one, by, then in steps
            for node in (one, then)
            if by != JOINED
        ]
        self.findings.report_breach(
            self.o5, ", ".join(self._told(*step) for step in steps), *rows, row
        )

    def _told(self, one: Node, by: int, then: Node) -> str:
        first, second = self.findings.label(one.span), self.findings.label(then.span)
        if by == JOINED:
            return f"{first} comes before {second} by way of older messages"
        return say.in_order(self.findings.name(by), "delivers", first, second)

    def _split(self, record: PacketRecord, tail: PacketRecord) -> None:
        """Cut a node in two, and put the new one right behind what is left of the old one."""
        node = record.node
        if node is None:
            return
        node.span = record.span
        # Longer than the label it begins with, and smaller than what was put there before.
        new = tail.node = Node(tail.span, (*node.label, -self._next()))
        new.outs, node.outs = node.outs, {}
        for after in new.outs:
            after.ins[after.ins.index(node)] = new
        some = (record.delivered & -record.delivered).bit_length() - 1
        node.lead(new, some)
        for proc, latest in self._latest.items():
            if latest is node:
                self._latest[proc] = new

    def _leave(self, record: PacketRecord) -> None:
        if record.node is not None:
            record.node.left = True
            self._retire(record.node)

    def _retire(self, node: Node) -> None:
        """Take a node out of the graph, unless the next arrow of some process begins there."""
        if node in self._latest.values():
            return
        for before in node.ins:
            del before.outs[node]
            for after in node.outs:
                if after not in before.outs:
                    before.lead(after, JOINED)
        for after in node.outs:
            after.ins.remove(node)
        node.ins.clear()
        node.outs.clear()


def _label(node: Node) -> tuple[int, ...]:
    return node.label


def _reach(start: Node, last: tuple[int, ...]) -> list[Node]:
    """What `start` leads to, itself included, with labels up to `last`."""
    found = {start: None}
    for node in (queue := [start]):  # Grows while it is walked.
        for after in node.outs:
            if after.label <= last and after not in found:
                found[after] = None
                queue.append(after)
    return queue


def _reach_back(start: Node, first: tuple[int, ...]) -> list[Node]:
    """What leads to `start`, itself included, with labels from `first` on."""
    found = {start: None}
    for node in (queue := [start]):  # Grows while it is walked.
        for before in node.ins:
            if before.label >= first and before not in found:
                found[before] = None
                queue.append(before)
    return queue


def _path(start: Node, goal: Node) -> list[tuple[Node, int, Node]]:
    """The fewest arrows from one node to another that it leads to, and who drew them."""
    came: dict[Node, tuple[Node, int] | None] = {start: None}
    for node in (queue := [start]):  # Grows while it is walked.
        for after, by in node.outs.items():
            if after not in came and after.label <= goal.label:
                came[after] = node, by
                queue.append(after)
    steps: list[tuple[Node, int, Node]] = []
    node = goal
    while (origin := came[node]) is not None:
        steps.append((*origin, node))
        node = origin[0]
    return steps[::-1]
