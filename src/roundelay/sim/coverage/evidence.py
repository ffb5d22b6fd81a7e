"""What a run showed: its rows, and of each frame and delivery what rows leave out.

Evidence is collected from outside, through the `watch` of a story: cores know nothing of it. Rows
name nodes by number and frames by `pkt`; `frames` gives the frame itself, `cause` the input that a
row is the doing of.
"""

import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from roundelay.check.primary import begins_generation
from roundelay.core.effects import Kind
from roundelay.core.ids import NodeId, Span, View, ViewId
from roundelay.group.stack import Stack
from roundelay.sim.capture import Captured
from roundelay.sim.transmission import Intrusion, Transmission
from roundelay.sim.world import World
from roundelay.trace.schema import LOWER_LAYER, REGULAR, TRANSITIONAL, Row, frame_key
from roundelay.wire.primitives import Reason

Life = tuple[int, int]
"""A node in one incarnation: `proc` and `inc` of its rows."""

Message = tuple[int | None, int | None, int | None]
"""The first message of a packet, as rows name it."""


class Sent(NamedTuple):
    """A frame that was sent."""

    frame: Transmission
    waiting: int
    """Packets that its sender had waiting afterwards."""

    @property
    def tag(self) -> str:
        return self.frame.tag

    @property
    def view(self) -> ViewId | None:
        return self.frame.frame.origin.view

    @property
    def message(self) -> Any:
        return self.frame.frame.message


class Delivery(NamedTuple):
    """A packet that was delivered, be it a piece of which no row tells."""

    life: Life
    ordered: ViewId | None
    """The view that ordered it."""
    place: int | None
    """Its number in that view's order, where there is one."""
    span: Span
    entered: View | None
    """The view, perhaps a transitional one, in which it was delivered."""


class Opened(NamedTuple):
    """A sealed datagram that a node believed."""

    time_ns: int
    life: Life
    """Of the node."""
    sender: Life
    sent_ns: int


class Refused(NamedTuple):
    """A datagram that a node refused."""

    time_ns: int
    life: Life
    reason: Reason
    act: str
    """What an intruder did to send it; empty if it came from a host by itself."""
    sent: Captured | None
    """What a host had sent in just these bytes, if any had."""


class LogEvent(NamedTuple):
    """Something that happened to a log and that no row tells."""

    time_ns: int
    life: Life
    verb: str
    what: Any


_OF_LOGS = frozenset({"log", "appended", "asks", "waits", "reads", "found", "forks", "begins"})


class Evidence:
    """Everything that detectors read of one run. Pass it what is watched, then the rows."""

    def __init__(self) -> None:
        self.nodes: tuple[NodeId, ...] = ()
        self.rows: list[Row] = []
        self.frames: dict[int, Sent] = {}
        """By `pkt`, in the order they were sent."""
        self.deliveries: list[Delivery] = []
        self.obligations: dict[tuple[Life, tuple[int, int, int]], frozenset[int]] = {}
        """By node and the view it wanted to leave: whose messages it was bound to deliver."""
        self.window = 0
        """The engine's window, in packets; 0 if it has none."""
        self.resilience = 0
        """F of the engine, if it has one."""
        self.opened: list[Opened] = []
        """Where traffic is sealed."""
        self.refused: list[Refused] = []
        """Where traffic is sealed: what reached nodes and was not believed."""
        self.proofs: list[tuple[int, Transmission]] = []
        """Challenges and answers, and when they were sent."""
        self.numbers: Mapping[NodeId, int] = {}
        self.of_logs: list[LogEvent] = []
        """Where there are logs."""
        self._entered: dict[Life, View] = {}
        self._members: dict[ViewId, tuple[NodeId, ...]] = {}

    def __call__(self, world: World, node: NodeId, verb: str, what: Any) -> None:
        """Something happened."""
        self.nodes = world.nodes
        host = world.hosts[node]
        life = (world.numbers[node], host.incarnation)
        if verb == "sends":
            self._send(world, life, host.core, what)
        elif verb == "delivers":
            place = None if what.key is None else what.key[0]
            entered = self._entered.get(life)
            self.deliveries.append(Delivery(life, what.view, place, what.packet.span, entered))
        elif verb == "installs":
            self._entered[life] = what
            self._members.setdefault(what.id, what.members)
        elif verb in _OF_LOGS:
            self.of_logs.append(LogEvent(world.loop.now, life, verb, what))
        elif world.capture is not None:
            self._on_sealed(world, life, verb, what)

    def _on_sealed(self, world: World, life: Life, verb: str, what: Any) -> None:
        """Something was believed or not, or proven."""
        assert world.capture is not None
        now = world.loop.now
        self.numbers = world.numbers
        if verb == "opens":
            sent = world.capture.sent(what)
            if sent is not None:
                sender, incarnation = sent.life
                sender_life = (world.numbers[sender], incarnation)
                self.opened.append(Opened(now, life, sender_life, sent.time_ns))
        elif verb == "refuses":
            transmission, reason = what
            act = transmission.kind if isinstance(transmission, Intrusion) else ""
            sent = world.capture.sent(transmission.data)
            self.refused.append(Refused(now, life, reason, act, sent))
        elif verb == "proves":
            self.proofs.append((now, what))

    def _send(self, world: World, life: Life, core: Any, frame: Transmission) -> None:
        if not self.frames:
            config = getattr(core.engine, "config", None)
            self.window = getattr(config, "window_packets", 0)
            self.resilience = getattr(config, "resilience", 0)
        self.frames[frame_key(*life, frame.number)] = Sent(frame, core.delivery.packer.waiting)
        if frame.tag == "JOIN" and isinstance(core, Stack):
            old = frame.frame.origin.view
            assert old is not None
            owed = frozenset(world.numbers[peer] for peer in core.membership.obligation)
            if owed:  # A node that goes on alone has installed, and owes nothing, before we look.
                self.obligations[life, (old.seq, world.numbers[old.rep], REGULAR)] = owed

    def close(self, rows: list[Row]) -> None:
        """The run is over, and these are its rows."""
        self.rows = rows

    # Rows, sorted for those who read only some

    @cached_property
    def kinds(self) -> dict[str, list[Row]]:
        """By kind, the rows of all layers but the one below the ordering; of `open` those of views
        that opened."""
        kinds: dict[str, list[Row]] = {kind: [] for kind in Kind}
        for row in self.rows:
            if row.layer != LOWER_LAYER and not begins_generation(row):
                kinds[row.kind].append(row)
        return kinds

    @cached_property
    def dropped(self) -> set[int]:
        """`pkt` of frames that did not reach somebody they were sent to."""
        return {row.pkt for row in self.kinds["drop"] if row.pkt is not None}

    @cached_property
    def regular(self) -> list[Row]:
        """Installations of regular views."""
        return [row for row in self.kinds["install"] if row.c_kind == REGULAR]

    @cached_property
    def transitional(self) -> list[Row]:
        """Installations of transitional views."""
        return [row for row in self.kinds["install"] if row.c_kind == TRANSITIONAL]

    @cached_property
    def joins(self) -> list[Row]:
        """Where nodes sent Joins: nobody does while it is content with its view."""
        return [row for row in self.kinds["send"] if row.tag == "JOIN"]

    @cached_property
    def steps(self) -> list[tuple[Row, Row]]:
        """Installations of regular views, each with the one before it at the same node."""
        last: dict[Life, Row] = {}
        steps = []
        for row in self.regular:
            if (before := last.get(life(row))) is not None:
                steps.append((before, row))
            last[life(row)] = row
        return steps

    def sent(self, tag: str) -> Iterator[Sent]:
        """Frames of a type, in the order they were sent."""
        return (sent for sent in self.frames.values() if sent.tag == tag)

    def lost(self, tag: str) -> Iterator[Sent]:
        """Frames of a type that somebody did not get."""
        return (
            sent for pkt, sent in self.frames.items() if sent.tag == tag and pkt in self.dropped
        )

    def frame(self, row: Row) -> Sent:
        """The frame that a row of kind send, arrive or drop is about."""
        assert row.pkt is not None
        return self.frames[row.pkt]

    def cause(self, row: Row) -> Row | None:
        """The frame that arrived, or the timer that ran out, in the handling of which this was
        written."""
        return None if row.cause is None else self._inputs.get((row.proc, row.inc, row.cause))

    @cached_property
    def _inputs(self) -> dict[tuple[int, int, int], Row]:
        inputs = (*self.kinds["arrive"], *self.kinds["expire"])
        return {(row.proc, row.inc, row.lseq): row for row in inputs}

    def faults(self) -> Iterator[tuple[Row, dict[str, Any]]]:
        """What was done to the run, with its arguments."""
        return ((row, json.loads(row.x or "{}")) for row in self.kinds["fault"])

    def members(self, view: ViewId | None) -> tuple[NodeId, ...]:
        """The members of a view, sorted; of a static group all nodes."""
        assert view is not None
        return self._members.get(view, tuple(sorted(self.nodes)))

    def number(self, node: NodeId) -> int:
        return self.nodes.index(node)


def life(row: Row) -> Life:
    return row.proc, row.inc


def when(row: Row) -> int:
    """The place of a row in the run."""
    assert row.gseq is not None
    return row.gseq


def message(row: Row) -> Message:
    return row.m_src, row.m_inc, row.m_seq


def view(row: Row) -> tuple[int | None, int | None]:
    """The view that a row was written in."""
    return row.c_seq, row.c_rep


def members(row: Row) -> tuple[int, ...]:
    assert row.members is not None
    return row.members


def reason(row: Row) -> str:
    """Why somebody is suspected."""
    return str(json.loads(row.x or "{}").get("reason", ""))
