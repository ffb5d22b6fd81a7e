"""A run of a scenario, divided into steps while it goes on.

A step is one thing that happens to one node, or to the world, and what follows from it at once: a
frame arrives, a timer runs out, an application submits a message, a node crashes. It begins with a
row of the trace that tells of an input; the rows that this input caused belong to it, and so do the
frames that were sent then and got lost at once.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from roundelay.core.effects import Deliver, Kind
from roundelay.core.ids import NodeId
from roundelay.sim.runner import ScenarioRunner
from roundelay.sim.transcript import brief
from roundelay.sim.transmission import Transmission
from roundelay.trace.schema import WORLD, Row
from roundelay.web.lab.errors import LaboratoryError
from roundelay.web.lab.state import State, of_core, of_host

STEPS_MAX = 4000
"""The most steps of a walkthrough. Fewer: long scenarios break off before their point; more: the
page gets slow, and nobody walks through them."""
STATE_CHARACTERS_MAX = 6_000_000
"""The most text about states in a walkthrough: it may end before it has `STEPS_MAX` steps. More:
it takes long to reach the page."""
ROWS_MAX = 400_000
"""The most events of a run that is played to its end. Fewer: no verdict on the longest scenarios;
more: the laboratory is busy for longer than anybody waits."""
TEXT_MAX = 240
"""The most characters of a sentence about a frame."""

_INPUTS = frozenset({Kind.ARRIVE, Kind.EXPIRE, Kind.SUBMIT, Kind.FAULT, Kind.END, Kind.INVOKE})

_BEFORE_THE_CORE = frozenset({Kind.ARRIVE, Kind.EXPIRE})
"""Inputs whose row is written before the core is told; all other rows come when it has changed."""


@dataclass(slots=True)
class Frame:
    """A frame that was sent."""

    sender: NodeId
    to: NodeId | None
    """None: everybody."""
    tag: str
    size: int
    step: int
    """In which it was sent."""
    text: str = ""


@dataclass(slots=True)
class Flight:
    """A copy of a frame on its way."""

    frame: int
    to: NodeId
    sent: int
    """The step in which it was sent ..."""
    ended: int | None = None
    """... and the one in which it arrived or was lost."""
    fate: str = ""
    """How it ended: "arrived", "lost" or "refused"."""


@dataclass(slots=True)
class Step:
    """What happens at one moment to one node, or to the world."""

    t_ns: int
    line: int
    """The line of the scenario with the command in which it happens."""
    command: str
    node: NodeId
    """Empty: the world."""
    incarnation: int
    rows: list[int] = field(default_factory=list)
    """Indices of its rows; the first row is why it happens."""
    flight: int | None = None
    """The copy of a frame that arrives, or is lost on its way."""
    sent: list[int] = field(default_factory=list)
    """The frames sent in it."""
    changes: dict[NodeId, dict[str, str | None]] = field(default_factory=dict)
    """By node: the values that are different after it; None: it is gone."""
    cuts: list[str] | None = None
    """The links that carry nothing from now on, if that changed, as `a>b`."""


class SteppingRunner(ScenarioRunner):
    """Plays a scenario and divides what happens into steps."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[Step] = []
        self.frames: list[Frame] = []
        self.flights: list[Flight] = []
        self.complete = True
        """Whether the steps reach the end of the run."""
        self.texts: dict[tuple[int, int, int], str] = {}
        """By message, as rows name it: what it says."""
        self.step_of_row: dict[int, int] = {}
        """By the index of a row."""
        self._line = 0
        self._command = ""
        self._open: Step | None = None
        self._root: Row | None = None
        self._core_told = False
        """Whether the state of the core after this step is known."""
        self._states: dict[NodeId, State] = {}
        self._cuts: list[str] = []
        self._frame_of: dict[int, int] = {}
        """By the `pkt` of a frame's rows."""
        self._under_way: dict[tuple[int, NodeId], int] = {}
        """By frame and receiver: the flight that has not ended."""
        self._characters = 0
        self._given_to: dict[NodeId, list[str]] = {}
        """By node: the messages that its application was given."""
        self._holders: set[NodeId] = set()
        """The nodes that have a token."""

    def finish(self) -> None:
        """The scenario is over."""
        self._close(None)

    # Called while the scenario is played

    def _do(self, line: int, command: str) -> None:
        before = self._line, self._command
        self._line, self._command = line, command
        super()._do(line, command)
        self._line, self._command = before

    def _append_row(self, row: Row) -> None:
        super()._append_row(row)
        if len(self.rows) > ROWS_MAX:
            raise LaboratoryError(
                f"this scenario has more than {ROWS_MAX} events, too many to look at; run it with: "
                "roundelay sim run"
            )
        if not self.complete:
            return
        if self._open is None or not self._belongs(row):
            self._close(row)
            if not self.complete:
                return
            self._begin(row)
        self._add(row)

    def _observe(self, node: NodeId, verb: str, what: Any) -> None:
        super()._observe(node, verb, what)
        if isinstance(what, Deliver):
            self._given_to.setdefault(node, []).extend(brief(what))
            self._learn(what)  # Earlier steps tell of the message too.
        elif isinstance(what, Transmission) and verb == "sends" and self.complete and self.frames:
            frame = self.frames[-1]
            if frame.sender == node and not frame.text:
                frame.text = _cut(f"{frame.tag} {what}")

    # Steps

    def _belongs(self, row: Row) -> bool:
        """Whether a row tells of something that belongs to the open step."""
        step, root = self._open, self._root
        assert step is not None
        assert root is not None
        if step.t_ns != row.t_ns or step.line != self._line:
            return False
        if row.kind == Kind.DROP and row.proc == WORLD:
            frame = None if row.pkt is None else self._frame_of.get(row.pkt)
            return frame is not None and frame in step.sent
        if row.kind in _INPUTS:
            return False
        if row.kind == Kind.DROP and row.cause is None:
            return False  # A frame that was refused as it came.
        if not step.node:  # A fault: what it does to a node follows at once.
            return root.kind == Kind.FAULT and row.proc != WORLD and row.cause is None
        if (row.proc, row.inc) != (self.world.numbers[step.node], step.incarnation):
            return False
        if row.kind == Kind.CRASH:
            return True
        return row.cause == self._cause(root)

    def _cause(self, root: Row) -> int | None:
        if root.kind in (Kind.ARRIVE, Kind.EXPIRE, Kind.SUBMIT):
            return root.lseq
        return root.cause

    def _begin(self, row: Row) -> None:
        node = "" if row.proc == WORLD else self.world.nodes[row.proc]
        self._open = Step(row.t_ns, self._line, self._command, node, row.inc)
        self._root = row
        self._core_told = False
        self.steps.append(self._open)

    def _add(self, row: Row) -> None:
        step, number = self._open, len(self.steps) - 1
        assert step is not None
        step.rows.append(len(self.rows) - 1)
        self.step_of_row[len(self.rows) - 1] = number
        if not step.node and row.proc != WORLD:
            step.node, step.incarnation = self.world.nodes[row.proc], row.inc
        if row.kind == Kind.SEND and row.proc != WORLD:
            self._send(row, step, number)
        elif row.kind in (Kind.ARRIVE, Kind.DROP):
            ended = self._end_flight(row, number)
            if row is self._root:
                step.flight = ended
        elif row.kind == Kind.TOKEN and row.tag == "acquire":
            self._holders.add(step.node)
        elif row.kind in (Kind.TOKEN, Kind.CRASH, Kind.INSTALL):
            self._holders.discard(step.node)
        if row.proc != WORLD and row.kind not in _BEFORE_THE_CORE and not self._core_told:
            self._tell_core(step)

    def _close(self, next_row: Row | None) -> None:
        """The open step is over: `next_row` does not belong to it."""
        step, root = self._open, self._root
        if step is None or root is None:
            return
        if step.node and not self._core_told:
            # The next message or disk write of the same node has changed its core already.
            mixed = (
                next_row is not None
                and next_row.proc == root.proc
                and next_row.kind not in _BEFORE_THE_CORE
            )
            if not mixed:
                self._tell_core(step)
        done_to_all = root.kind in (Kind.FAULT, Kind.END)
        for node in self.world.nodes if done_to_all else filter(None, (step.node,)):
            given = self._given_to.get(node, ())
            now = of_host(self.world.hosts[node], given, node in self._holders)
            self._tell(step, node, now, core=False)
        if root.kind == Kind.FAULT:
            cuts = sorted(f"{a}>{b}" for a, b in self.world.cuts)
            if cuts != self._cuts:
                step.cuts = self._cuts = cuts
        self._open = None
        if len(self.steps) >= STEPS_MAX or self._characters > STATE_CHARACTERS_MAX:
            self.complete = next_row is None

    def _tell_core(self, step: Step) -> None:
        host = self.world.hosts[step.node]
        if host.incarnation >= 0:
            self._core_told = True
            self._tell(step, step.node, of_core(host.core), core=True)

    def _tell(self, step: Step, node: NodeId, now: State, *, core: bool) -> None:
        """Keep what is different from the state before: of the core, or of the rest of a node."""
        before = self._states.setdefault(node, {})
        known = {name for name in before if (name in _OF_HOST) != core}
        changed: dict[str, str | None] = {
            name: value for name, value in now.items() if before.get(name) != value
        }
        changed.update(dict.fromkeys(sorted(known - now.keys())))
        for name, value in changed.items():
            if value is None:
                del before[name]
            else:
                before[name] = value
            self._characters += len(name) + len(value or "")
        if changed:
            step.changes.setdefault(node, {}).update(changed)

    # Frames

    def _send(self, row: Row, step: Step, number: int) -> None:
        nodes = self.world.nodes
        sender = nodes[row.proc]
        to = None if row.peer is None else nodes[row.peer]
        frame = len(self.frames)
        self.frames.append(Frame(sender, to, row.tag, row.size or 0, number))
        step.sent.append(frame)
        if row.pkt is not None:
            self._frame_of[row.pkt] = frame
        receivers: Iterable[NodeId] = nodes if to is None else (to,)
        for receiver in receivers:
            if to is None and receiver == sender and not self.world.network.reflects:
                continue
            self._under_way[frame, receiver] = len(self.flights)
            self.flights.append(Flight(frame, receiver, number))

    def _end_flight(self, row: Row, number: int) -> int | None:
        """A copy has arrived, was refused or got lost; its flight, if the frame is known."""
        frame = None if row.pkt is None else self._frame_of.get(row.pkt)
        proc = row.peer if row.proc == WORLD else row.proc
        if frame is None or proc is None or proc == WORLD:
            return None
        receiver = self.world.nodes[proc]
        at = self._under_way.pop((frame, receiver), None)
        if at is None:
            if row.cause is not None:
                return None  # It was refused after it had arrived.
            at = len(self.flights)  # A further copy, which the network or an intruder has made.
            self.flights.append(Flight(frame, receiver, number))
        flight = self.flights[at]
        flight.ended = number
        flight.fate = (
            "arrived" if row.kind == Kind.ARRIVE else "lost" if row.proc == WORLD else "refused"
        )
        return at

    def _learn(self, delivery: Deliver) -> None:
        span = delivery.packet.span
        source = self.world.numbers.get(span.node)
        if source is None:
            return
        for number, payload in enumerate(delivery.payloads, span.first):
            said = payload.rstrip(b"\0").decode(errors="replace")
            if 0 < len(said) <= 24 and said.isprintable():
                self.texts[source, span.incarnation, number] = said


_OF_HOST = frozenset({"is", "life", "token", "delivered", "timers"})
"""What `of_host` tells; the rest is of the core."""


def sent_words(frame: Frame) -> str:
    """A frame, worded as the output of a scenario."""
    return f"{frame.sender} -> {frame.to or '*'} {frame.text or frame.tag}"


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_MAX else text[: TEXT_MAX - 1] + "…"
