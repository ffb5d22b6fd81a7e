"""The texts of a diagram: a label beside the mark of an event, and its facts as a tooltip."""

import json
from collections.abc import Iterable, Mapping, Sequence

from roundelay.core.effects import Kind
from roundelay.core.ids import Service, life_mark
from roundelay.draw.clock import Clock
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import TRANSITIONAL, WORLD, Row

_VERBS: Mapping[str, str] = {
    Kind.SUBMIT: "submits",
    Kind.ORIGINATE: "originates",
    Kind.RECEIVE: "receives",
    Kind.ORDER: "orders",
    Kind.CONFIRM: "confirms",
    Kind.DELIVER: "delivers",
    Kind.STABLE: "knows to be stable:",
    Kind.WITHDRAW: "withdraws",
    Kind.INSTALL: "installs",
    Kind.GATHER: "begins to gather:",
    Kind.FREEZE: "freezes its view for",
    Kind.CRASH: "crashes",
    Kind.RECOVER: "recovers",
    Kind.SUSPECT: "suspects",
    Kind.EXPIRE: "has a timer expire:",
    Kind.SEND: "sends a frame",
    Kind.ARRIVE: "gets a frame",
    Kind.DROP: "drops a frame",
    Kind.APPEND: "appends",
    Kind.ENTRY: "gives an index to",
    Kind.STORED: "has on disk",
    Kind.COMMIT: "knows to be committed",
    Kind.CUT: "cuts its log to",
    Kind.CAUGHT: "has caught up, with",
    Kind.OPEN: "finds open",
    Kind.SNAPSHOT: "takes a snapshot after",
    Kind.RESTORE: "restores a snapshot after",
    Kind.INVOKE: "begins",
    Kind.REPLY: "has the reply of",
}

LONG = 1_000_000
"""A view's number from which on its last digits stand for it."""

_PLAIN_LOSSES = ("loss", "lost", "cut", "down")
"""Reasons of a loss that the diagram shows anyway: a cross, a partition, a node that is down."""


class Wording:
    """Words the events of one trace, with the names of its nodes and messages."""

    def __init__(self, manifest: Manifest, rows: Sequence[Row], clock: Clock) -> None:
        self._nodes = tuple(str(name) for name in manifest.nodes)
        config: object = manifest.config
        given = config.get("messages") if isinstance(config, Mapping) else None
        self._messages: Mapping[str, object] = given if isinstance(given, Mapping) else {}
        self._written = isinstance(given, Mapping)
        entries = config.get("entries") if isinstance(config, Mapping) else None
        self._entries: Mapping[str, object] = entries if isinstance(entries, Mapping) else {}
        self._clock = clock
        self._fine_keys = any(row.k2 is not None and row.k3 for row in rows)
        self._views = _short({row.c_seq for row in rows if row.kind == Kind.INSTALL})

    @property
    def node_count(self) -> int:
        return len(self._nodes)

    def node(self, proc: int | None) -> str:
        if proc is None or proc == WORLD:
            return "nobody" if proc is None else "world"
        return self._nodes[proc] if 0 <= proc < len(self._nodes) else f"node {proc}"

    def group(self, procs: Sequence[int] | None) -> str:
        return "{" + ",".join(self.node(proc) for proc in procs or ()) + "}"

    def message(self, row: Row) -> str:
        """The messages of the row: `a:3`, `a:3..7`, or the name that a written trace gave."""
        if row.m_src is None or row.m_seq is None:
            return ""
        name = self._messages.get(f"{row.m_src}.{row.m_inc or 0}.{row.m_seq}")
        if name is not None and row.count == 1:
            return str(name)
        life = life_mark(row.m_inc or 0)
        last = f"..{row.m_seq + row.count - 1}" if row.count > 1 else ""
        return f"{self.node(row.m_src)}{life}:{row.m_seq}{last}"

    def entry(self, row: Row) -> str:
        """The entries of the row: who appended them and their numbers in their session."""
        name = self._entries.get(f"{row.obj}.{row.m_seq}")
        return str(name) if name is not None and row.count == 1 else self.message(row)

    def key(self, row: Row) -> str:
        """The order key within its view, as `#7` or `#7.2`."""
        if row.k2 is None:
            return ""
        return f"#{row.k2}.{row.k3 or 0}" if self._fine_keys else f"#{row.k2}"

    def view(self, row: Row) -> str:
        """The view of the row: `R4.a` is regular, `T6.a` transitional. Of the long numbers that
        real nodes make, the last digits, which tell the views of the trace apart."""
        if row.c_seq is None:
            return ""
        kind = "T" if row.c_kind == TRANSITIONAL else "R"
        # A written trace names views by their number alone.
        rep = f".{self.node(row.c_rep)}" if row.c_rep is not None and not self._written else ""
        return f"{kind}{self._views.get(row.c_seq, row.c_seq)}{rep}"

    def ring(self, row: Row) -> str:
        """The ring that a freeze is for, as `R8.a`."""
        rep = f".{self.node(row.k1)}" if row.k1 is not None and not self._written else ""
        return f"R{self._views.get(row.k0, row.k0)}{rep}"

    def labels(self, row: Row) -> tuple[str, ...]:
        """The texts to choose a label from, the best one first; none if the mark says it all."""
        message = self.message(row)
        match row.kind:
            case Kind.SUBMIT | Kind.RECEIVE | Kind.WITHDRAW:
                texts = [message]
            case Kind.ORIGINATE:
                safe = " safe" if row.svc == Service.SAFE else ""
                to = f" to {self.group(row.dst)}" if row.dst is not None else ""
                texts = [message + safe + to, message + safe, message]
            case Kind.ORDER | Kind.CONFIRM | Kind.DELIVER:
                texts = [f"{message} {self.key(row)}".strip(), message]
            case Kind.STABLE:
                texts = [f"{message} level {row.level}" if row.level else message, message]
            case Kind.INSTALL:
                mark = "!" if row.primary else ""
                view = self.view(row) or "view"
                count = len(row.members or ())
                texts = [f"{view} {self.group(row.members)}{mark}", f"{view} ({count}){mark}", view]
            case Kind.GATHER:
                texts = [f"gathers: {_spaced(row.tag)}", "gathers"]
            case Kind.FREEZE:
                texts = [f"freezes for {self.ring(row)}", "freezes"]
            case Kind.CRASH:
                how = row.tag.replace("-", " ")
                texts = [f"crash, {how}", "crash"] if how else ["crash"]
            case Kind.RECOVER:
                lost = ", standing lost" if row.level == 0 else ""
                life = f", life {row.inc}" if row.inc else ""
                texts = [f"recover{life}{lost}", f"recover{lost}", "recover"]
            case Kind.SUSPECT:
                texts = [f"suspects {self.group(row.members)}", "suspects"]
            case Kind.DROP if row.proc == WORLD:
                texts = [] if row.tag in _PLAIN_LOSSES else [row.tag]
            case Kind.EXPIRE | Kind.SEND | Kind.DROP:
                texts = [row.tag]
            case Kind.FAULT | Kind.END:
                texts = [self.headline(row)]
            case Kind.ARRIVE | Kind.TOKEN:
                texts = []
            case Kind.APPEND:
                texts = [f"{self.entry(row)} {row.tag}".rstrip()]
            case Kind.ENTRY:
                texts = [f"{self.entry(row)} @{_indexes(row)}", f"@{_indexes(row)}"]
            case Kind.OPEN:
                base = f"{row.tag or 'open'} @{row.idx}"  # Its view is the one the node is in.
                voters = "" if row.tag == "follows" else f", voters {self.group(row.members)}"
                texts = [f"{base}{voters}", base, row.tag or "open"]
            case Kind.STORED | Kind.COMMIT | Kind.CAUGHT:
                texts = [f"{row.kind} {row.idx}"]
            case Kind.CUT:
                texts = [f"cut to {row.idx}", "cut"]
            case Kind.SNAPSHOT | Kind.RESTORE:
                texts = [f"{row.kind} {row.idx}", row.kind]
            case Kind.INVOKE:
                texts = [f"{row.obj}.{row.op}", row.op or ""]
            case Kind.REPLY:
                texts = ["reply" if row.idx is None else f"reply @{row.idx}"]
            case _:
                texts = [f"{row.kind} {message or row.tag}".strip(), row.kind]
        return tuple(dict.fromkeys(text for text in texts if text))

    def headline(self, row: Row) -> str:
        """The text of a line across all nodes: a fault or the end of the run."""
        if row.kind == Kind.END:
            return f"end {self.group(row.members)}"
        return f"{row.tag or 'fault'} {_arguments(row.x)}".strip()

    def facts(self, row: Row) -> str:
        """Everything that is known of the event, one fact per line."""
        lines = [self.sentence(row), f"at {self._clock.exact(row.t_ns)}"]
        if row.gseq is not None:
            lines[-1] += f", event {row.gseq} of the run"
        lines.append(f"event {row.lseq} of {self.node(row.proc)}, incarnation {row.inc}")
        if row.c_seq is not None and row.kind != Kind.INSTALL:
            lines.append(f"in view {self.view(row)}")
        if row.kind in (Kind.SEND, Kind.ARRIVE, Kind.DROP) or row.pkt is not None:
            other = "everyone" if row.kind == Kind.SEND and row.peer is None else None
            lines.append(f"frame {row.pkt}, peer {other or self.node(row.peer)}")
        facts = {
            "view number": row.c_seq if row.c_seq in self._views else None,
            "service": _service(row.svc),
            "to": None if row.dst is None else self.group(row.dst),
            "level": row.level,
            "bytes": row.size,
            "digest": None if row.digest is None else f"{row.digest:08x}",
            "messages": row.count if row.count != 1 else None,
            "Lamport clock": row.lam or None,
            "caused by own event": row.cause,
        }
        lines += [f"{name} {fact}" for name, fact in facts.items() if fact is not None]
        if row.x:
            lines.append(row.x)
        return "\n".join(lines)

    def sentence(self, row: Row) -> str:
        node = self.node(row.proc)
        match row.kind:
            case Kind.INSTALL:
                kind = "transitional" if row.c_kind == TRANSITIONAL else "regular"
                primary = "primary " if row.primary else ""
                about = f"{primary}{kind} view {self.view(row)} {self.group(row.members)}"
                about += "" if row.voters is None else f", voters {self.group(row.voters)}"
            case Kind.GATHER:
                about = _spaced(row.tag)
            case Kind.FREEZE:
                about = f"the ring {self.ring(row)}"
            case Kind.TOKEN:
                return f"{node}: token {row.tag or 'event'}"
            case Kind.SUSPECT:
                about = self.group(row.members)
            case Kind.SEND | Kind.ARRIVE | Kind.DROP | Kind.EXPIRE:
                about = row.tag
            case Kind.FAULT | Kind.END:
                return self.headline(row)
            case Kind.RECOVER:
                number = [] if row.k0 is None else [f"with ring sequence number {row.k0}"]
                lost = ["without its standing"] if row.level == 0 else []
                about = " ".join(number + lost)
            case Kind.CRASH:
                about = f"({row.tag})" if row.tag else ""
            case Kind.APPEND | Kind.ENTRY:
                about = self.entry(row)
                about += (
                    f", {_indexes(row)}, of term {self.ring(row)}" if row.idx is not None else ""
                )
                about += f", session {row.obj}"
                about += ", which is forgotten" if row.tag else ""
            case Kind.OPEN:
                about = (
                    f"{self.ring(row)} from index {row.idx} on, voters {self.group(row.members)}"
                )
            case Kind.STORED | Kind.COMMIT | Kind.CUT | Kind.CAUGHT | Kind.SNAPSHOT | Kind.RESTORE:
                about = "1 entry" if row.idx == 1 else f"{row.idx} entries"
            case Kind.INVOKE | Kind.REPLY:
                about = f"{row.op or 'the operation'} on {row.obj}"
                about += "" if row.idx is None else f", as of length {row.idx}"
            case _:
                key = self.key(row)
                about = self.message(row) + (f", order key {key}" if key else "")
        return f"{node} {_VERBS.get(row.kind, row.kind)} {about}".rstrip()


def _short(numbers: Iterable[int | None]) -> dict[int | None, str]:
    """The last digits of numbers that are too long to read, as many as tell them apart."""
    known = [number for number in numbers if number is not None]
    if not known or max(known) < LONG:
        return {}
    for digits in range(3, 20):
        ends: dict[int | None, str] = {
            number: f"{number % 10**digits:0{digits}d}" for number in known
        }
        if len(set(ends.values())) == len(known):
            return ends
    return {}


def _spaced(tag: str) -> str:
    return tag.replace("_", " ")


def _indexes(row: Row) -> str:
    """The index of the first entry, and of the last if there are several."""
    first = row.idx or 0
    return str(first) if row.count == 1 else f"{first}..{first + row.count - 1}"


def _service(svc: int | None) -> str | None:
    if svc is None:
        return None
    try:
        return Service(svc).name.lower()
    except ValueError:
        return str(svc)


def _arguments(x: str | None) -> str:
    """The arguments of a fault as words; a text that is no JSON stays as it is."""
    if not x:
        return ""
    try:
        return _plain(json.loads(x))
    except (ValueError, RecursionError):
        return x


def _plain(thing: object) -> str:
    if isinstance(thing, Mapping):
        told = {key: item for key, item in thing.items() if item is not None}
        if len(told) == 1 and isinstance(about := next(iter(told.values())), (str, list)):
            return _plain(about)  # What the fault is about: `crash c`, `partition {a,b} {c}`.
        return ", ".join(f"{key} {_plain(item)}" for key, item in told.items())
    if isinstance(thing, list):
        if thing and all(isinstance(item, list) for item in thing):
            return " ".join(_plain(item) for item in thing)
        return "{" + ",".join(_plain(item) for item in thing) + "}"
    return str(thing)
