"""A trace, read once and indexed as the properties speak of it.

    cfg(e)     the view a process was in when e happened: its last install in that incarnation
    reg(e)     that view if it is regular, else the regular one before it
    block(e)   a process's stretch from one regular install to the next, its crash or the end
    D_p        what process p delivered, in order

A trace without any install is of a static group: one implicit view of all its processes. Rows of
frames and timers are no events of the model; they serve only to order processes where the trace
has no total order of its own. Rows of the replicated log are events about no message: they name
entries, which `log.history` follows.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from roundelay.check.causality import Causality
from roundelay.check.names import Names
from roundelay.core.effects import Kind
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import LOG_LAYER, REGULAR, WORLD, Row, expand


class Message(NamedTuple):
    """A message's identity."""

    src: int
    inc: int
    seq: int


class Config(NamedTuple):
    """A view's identity and kind."""

    seq: int
    rep: int
    kind: int

    @property
    def regular(self) -> bool:
        return self.kind == REGULAR


STATIC = Config(0, 0, REGULAR)
"""The one implicit view of a static group."""

Key = tuple[int, int, int, int]


class Ending(StrEnum):
    """How a block ended."""

    INSTALL = "install"
    CRASH = "crash"
    END = "end"


@dataclass(slots=True)
class Block:
    """A process in one regular view and the transitional one after it."""

    proc: int
    number: int
    """Counts the blocks of its process, over all incarnations."""
    config: Config | None
    """None before the first install of an incarnation."""
    ending: Ending = Ending.END


@dataclass(slots=True, eq=False)
class Event:
    """A row and what the trace around it says."""

    row: Row
    at: int
    """Place in the trace; comparable across processes only where the trace has a total order."""
    kind: str
    proc: int
    message: Message | None
    cfg: Config | None
    reg: Config | None
    block: Block
    key: Key | None


NET_KINDS = frozenset({Kind.SEND, Kind.ARRIVE, Kind.DROP, Kind.EXPIRE, Kind.SUSPECT})
"""What the network and the timers did: no property is about these rows themselves."""

_HOLDING = frozenset({Kind.ORIGINATE, Kind.RECEIVE, Kind.DELIVER})


@dataclass(slots=True)
class _Walk:
    """Where a process is while its rows are read."""

    cfg: Config | None
    reg: Config | None
    block: Block
    alive: bool = True


@dataclass(eq=False)
class Model:
    """The indexed trace. Lists are in trace order; every table is keyed by process or message."""

    manifest: Manifest | None
    rows: list[Row]
    """As given, ranges not expanded, in trace order."""
    skipped: frozenset[str] = frozenset()
    """Layers whose rows about messages have no event here."""
    processes: tuple[int, ...] = ()
    static: bool = True
    total: bool = True
    """Whether the trace has a total order of all its events."""
    events: list[Event] = field(default_factory=list)
    by_proc: dict[int, list[Event]] = field(default_factory=dict)
    by_kind: dict[str, list[Event]] = field(default_factory=dict)
    originates: dict[Message, list[Event]] = field(default_factory=dict)
    receives: dict[Message, list[Event]] = field(default_factory=dict)
    delivers: dict[Message, list[Event]] = field(default_factory=dict)
    deliveries: dict[int, list[Event]] = field(default_factory=dict)
    """D_p, by process, in order; processes that delivered nothing are there too."""
    withdraws: dict[Message, list[Event]] = field(default_factory=dict)
    installs: dict[int, list[Event]] = field(default_factory=dict)
    """By process."""
    members: dict[Config, tuple[int, ...]] = field(default_factory=dict)
    """Of each view, as its first install has them."""
    blocks: dict[int, list[Block]] = field(default_factory=dict)
    components: list[tuple[int, ...]] = field(default_factory=list)
    """Live connected components at a quiet end; empty if the trace does not end quietly."""
    faults: list[Row] = field(default_factory=list)
    healed: Row | None = None
    """The last `heal` with no fault after it."""
    withheld: bool = False
    """Whether the trace has frames that are not among these rows, and no total order: what they
    would show of the order of events is then unknown."""
    guessed: bool = False
    """Whether that was asked for in vain since it was last set to False."""
    log: object = None
    """What `log.committed` found in this trace; it is asked by several properties."""
    crashed: frozenset[int] = frozenset()
    """Processes that crashed and did not recover."""

    @property
    def correct(self) -> tuple[int, ...]:
        """Processes that are up at the end."""
        return tuple(p for p in self.processes if p not in self.crashed)

    def originate(self, message: Message) -> Event | None:
        """The first time a message was sent."""
        events = self.originates.get(message)
        return events[0] if events else None

    def origins(self, event: Event) -> list[Event]:
        """The sendings that `event`, about a message, may refer to, the latest first.

        A message is sent once, unless its sender withdrew it from an old view and sent it again in
        the next. Members of the old view that were cut off may deliver the first sending even
        later than that: every sending before the event counts.
        """
        if event.message is None:
            return []
        sent = self.originates.get(event.message, ())
        return [origin for origin in reversed(sent) if self.before(origin, event)]

    def withdrawn(self, origin: Event) -> Event | None:
        """Where the sender took back the message that it sent at `origin`."""
        assert origin.message is not None
        for event in self.withdraws.get(origin.message, ()):
            if event.proc == origin.proc and event.at > origin.at:
                return event
        return None

    def group(self, config: Config | None) -> tuple[int, ...]:
        """The members of a view; of a static group all its processes."""
        if config is None:
            return ()
        return self.processes if self.static else self.members.get(config, ())

    def destinations(self, message: Message) -> tuple[int, ...]:
        """Who is to deliver a message: its own list, or the members of its view of origin."""
        event = self.originate(message)
        if event is None:
            return ()
        return event.row.dst if event.row.dst is not None else self.group(event.reg)

    def before(self, first: Event, second: Event) -> bool:
        """Whether `first` may be taken to have happened before `second`.

        With a total order that is the truth. Without one, the benefit of the doubt: it is denied
        only if the opposite is certain, by the order at one process and by frames.
        """
        if self.total:
            return first.at < second.at
        if first.proc == second.proc:
            return first.at < second.at
        return not self.certain(second.row, first.row)

    def certain(self, first: Row, second: Row) -> bool:
        """Whether, without a total order, `first` certainly happened before `second`, of another
        process. Where frames are withheld the answer is no, and a guess unless the Lamport clocks
        of the two exclude it."""
        if not self.withheld:
            return self.causality.happened_before(first, second)
        if not self.excluded(first, second):
            self.guessed = True
        return False

    def excluded(self, first: Row, second: Row) -> bool:
        """Whether Lamport clocks show that `first` did not happen before `second`, of another
        process. They show nothing in a run in which a process began its clock again."""
        return first.lam > second.lam and not self._restarted

    @cached_property
    def _restarted(self) -> bool:
        """Whether a process has several lives: its Lamport clock began again with each."""
        lives = {(row.proc, row.inc) for row in self.rows if row.proc != WORLD and row.lseq >= 0}
        return len(lives) > len({proc for proc, _ in lives})

    @cached_property
    def histories(self) -> dict[int, list[Event]]:
        """D_p without repetitions, which are the business of D2 alone."""
        histories: dict[int, list[Event]] = {}
        for proc, events in self.deliveries.items():
            first: dict[Message | None, Event] = {}
            for event in events:
                first.setdefault(event.message, event)
            histories[proc] = list(first.values())
        return histories

    @cached_property
    def holders(self) -> dict[Message, dict[int, Event]]:
        """Who ever had a message, and since when: it sent, received or delivered it."""
        holders: dict[Message, dict[int, Event]] = {}
        for event in self.events:
            if event.message is not None and event.kind in _HOLDING:
                holders.setdefault(event.message, {}).setdefault(event.proc, event)
        return holders

    @cached_property
    def causality(self) -> Causality:
        """What is certain about order between processes, in a trace without a total order."""
        return Causality(self.rows)

    # Words for people

    @cached_property
    def words(self) -> Names:
        if self.manifest is None:
            return Names(())
        written = self.manifest.config.get("messages")
        return Names(self.manifest.nodes, written if isinstance(written, Mapping) else None)

    def name(self, proc: int) -> str:
        return self.words.node(proc)

    def names(self, procs: Iterable[int]) -> str:
        return self.words.nodes(procs)

    def label(self, message: Message) -> str:
        return self.words.messages((*message, 1))

    def view(self, config: Config | None) -> str:
        return "no view" if config is None else self.words.view(*config)


def read_model(
    rows: Iterable[Row],
    manifest: Manifest | None = None,
    layer: str = "",
    skipped: frozenset[str] | None = None,
) -> Model:
    """Index a trace. Nothing is judged here: a malformed trace gives a model all the same.

    Where a trace tells of two layers, the model is of the upper one, or of the one called `layer`.
    Whoever has only a part of a trace says which layers are `skipped`: the part may not show it.
    """
    ordered = _in_order(list(rows))
    model = Model(manifest, ordered, total=all(row.gseq is not None for row in ordered))
    model.processes = _processes(ordered, manifest)
    model.static = not any(row.kind == Kind.INSTALL for row in ordered)
    walks: dict[int, _Walk] = {}
    for proc in model.processes:
        start = STATIC if model.static else None
        block = Block(proc, 0, start)
        walks[proc] = _Walk(start, start, block)
        model.blocks[proc] = [block]
        model.deliveries[proc] = []
        model.installs[proc] = []
        model.by_proc[proc] = []
    at = 0
    if skipped is None:
        skipped = _other_layers(ordered, layer)
    model.skipped = skipped
    for row in expand(ordered):
        if row.proc == WORLD:
            _read_world(model, row)
        elif row.kind not in NET_KINDS and not (row.layer in skipped and row.m_src is not None):
            _read_event(model, walks[row.proc], row, at)
            at += 1
    model.crashed = frozenset(proc for proc, walk in walks.items() if not walk.alive)
    return model


def _processes(rows: Iterable[Row], manifest: Manifest | None) -> tuple[int, ...]:
    """All that the manifest names, or rows: also those of whom there is not a row."""
    named = set(range(len(manifest.nodes))) if manifest is not None else set()
    for row in rows:
        named.add(row.proc)
        if row.members is not None:
            named.update(row.members)
        if row.dst is not None:
            named.update(row.dst)
    return tuple(sorted(named - {WORLD}))


def _other_layers(rows: Iterable[Row], layer: str) -> frozenset[str]:
    """Layers whose rows about messages are not those of the model. Views are common to all."""
    found = {
        row.layer
        for row in rows
        if row.m_src is not None and row.kind != Kind.SUBMIT and row.layer != LOG_LAYER
    }
    if layer in found:
        return frozenset(found - {layer})
    return frozenset({"net"} if found <= {"vs", "net"} else {"vs", "net"})


def _in_order(rows: list[Row]) -> list[Row]:
    """By the total order, where there is one; else process by process."""
    if all(row.gseq is not None for row in rows):
        return sorted(rows, key=lambda row: row.gseq or 0)
    return sorted(rows, key=lambda row: (row.proc, row.inc, row.lseq))


def _read_world(model: Model, row: Row) -> None:
    if row.kind == Kind.END and row.members is not None:
        model.components.append(row.members)
    elif row.kind == Kind.FAULT:
        model.faults.append(row)
        model.healed = row if row.tag == "heal" else None


def _read_event(model: Model, walk: _Walk, row: Row, at: int) -> None:
    kind, proc = row.kind, row.proc
    if kind == Kind.INSTALL:
        walk.cfg = Config(row.c_seq or 0, row.c_rep or 0, row.c_kind or 0)
        model.members.setdefault(walk.cfg, row.members or ())
        if walk.cfg.regular:
            walk.reg = walk.cfg
            _next_block(model, walk, Ending.INSTALL)
    elif kind == Kind.RECOVER:
        # Nothing of the earlier life goes on; a static group has its one view at once.
        walk.alive = True
        walk.cfg = walk.reg = STATIC if model.static else None
        _next_block(model, walk, Ending.CRASH)
    elif kind == Kind.CRASH:
        walk.alive = False
        walk.block.ending = Ending.CRASH
    message = None
    if row.m_src is not None and row.m_seq is not None and row.layer != LOG_LAYER:
        message = Message(row.m_src, row.m_inc or 0, row.m_seq)
    key = None
    if row.k2 is not None:
        key = (row.k0 or 0, row.k1 or 0, row.k2, row.k3 or 0)
    event = Event(row, at, kind, proc, message, walk.cfg, walk.reg, walk.block, key)
    model.events.append(event)
    model.by_proc[proc].append(event)
    model.by_kind.setdefault(kind, []).append(event)
    if kind == Kind.INSTALL:
        model.installs[proc].append(event)
    elif message is None:
        pass
    elif kind == Kind.DELIVER:
        model.deliveries[proc].append(event)
        model.delivers.setdefault(message, []).append(event)
    elif kind == Kind.RECEIVE:
        model.receives.setdefault(message, []).append(event)
    elif kind == Kind.ORIGINATE:
        model.originates.setdefault(message, []).append(event)
    elif kind == Kind.WITHDRAW:
        model.withdraws.setdefault(message, []).append(event)


def _next_block(model: Model, walk: _Walk, ending: Ending) -> None:
    """The process enters a new block; the one it leaves ended so."""
    if walk.block.ending is not Ending.CRASH:
        walk.block.ending = ending
    blocks = model.blocks[walk.block.proc]
    walk.block = Block(walk.block.proc, len(blocks), walk.reg)
    blocks.append(walk.block)
