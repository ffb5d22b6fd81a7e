"""Replicated machines on the logs of simulated nodes, and the clients that use them.

Every node applies what is committed to structures of most kinds, and to a machine as an application
would write one. A client calls the machines of one node, and waits for its answer; rows `invoke`
and `reply` tell of it, so that the properties of objects are judged. If its node ends, it never
learns what became of its call.

A client that holds a turn gives it back when it is told to, as one that has taken an item does;
which of them does not matter, so a node keeps what its clients hold in the order of getting it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from roundelay.core.log import Entries, LogRecord, Mark
from roundelay.group.body import unpack
from roundelay.structures import Counter, Leader, Lock, Map, Queue, Refused, Semaphore, Set
from roundelay.structures.arguments import Arguments
from roundelay.structures.machine import Machine
from roundelay.structures.methods import read, write
from roundelay.structures.replica import LogEntry, Replica, command_head
from roundelay.structures.turns import Turns

if TYPE_CHECKING:
    from roundelay.sim.host import Host

TURNS = 2
"""Of the semaphore."""
LENT_S = 0.2
"""How long what is lent stays."""
HALF = -1
"""What a client says of a pair whose keys differ; nobody ever sets this."""
_PAIR = ("pair.1", "pair.2")


class Highest(Machine):
    """A machine of an application's own: the greatest number that was ever offered."""

    number: int

    def __init__(self) -> None:
        self.number = 0

    @write
    def offer(self, number: int) -> int:
        self.number = max(self.number, number)
        return self.number

    @read
    def highest(self) -> int:
        return self.number


def _semaphore() -> Semaphore:
    made = Semaphore()
    made.limit = TURNS
    return made


_MAKE: dict[str, Callable[[], Machine]] = {
    "map": Map[int],
    "counter": Counter,
    "lock": Lock,
    "queue": Queue[int],
    "semaphore": _semaphore,
    "leader": Leader,
    "set": Set[str],
    "own": Highest,
}


@dataclass(frozen=True, slots=True)
class Kind:
    """What a client can do."""

    machine: str
    method: str
    words: int = 0
    """How many go with it: a key and a number, or one of them."""
    op: str = ""
    """As rows have it, if it is not named so itself."""
    obj: str = ""
    """In rows; empty: as the machine. Braces stand for the key."""


CALLS = {
    "set": Kind("map", "set", 2, obj="{}"),
    "revise": Kind("map", "set_if", 2, obj="{}"),
    "get": Kind("map", "get", 1, obj="{}"),
    "pop": Kind("map", "pop", 1, obj="{}"),
    "delete": Kind("map", "delete", 1, obj="{}"),
    "pair": Kind("map", "update", 1, "set", "pair"),
    "both": Kind("map", "items", 0, "get", "pair"),
    "lend": Kind("map", "set", 2, obj="{} for a while"),
    "recall": Kind("map", "get", 1, obj="{} for a while"),
    "add": Kind("counter", "add", 1),
    "value": Kind("counter", "value"),
    "acquire": Kind("lock", "ask"),
    "release": Kind("lock", "give"),
    "lead": Kind("leader", "ask", op="acquire"),
    "resign": Kind("leader", "give", op="release"),
    "enter": Kind("semaphore", "ask"),
    "leave": Kind("semaphore", "give"),
    "put": Kind("queue", "put", 1),
    "take": Kind("queue", "ask"),
    "done": Kind("queue", "finish"),
    "back": Kind("queue", "give_back"),
    "include": Kind("set", "add", 1, obj="{} in the set"),
    "exclude": Kind("set", "discard", 1, obj="{} in the set"),
    "contains": Kind("set", "contains", 1, obj="{} in the set"),
    "offer": Kind("own", "offer", 1),
    "highest": Kind("own", "highest"),
}


class Machines:
    """The machines' states at one node."""

    def __init__(self) -> None:
        self.replica = Replica({name: make() for name, make in _MAKE.items()})
        self.replies: list[tuple[int, int, int, bytes]] = []
        """Index, session, number and reply of each command since somebody last looked."""
        self.applied: list[tuple[list[Mark], LogEntry, bytes | None]] = []
        """Of each entry since the watch last looked: the marks before it, and its reply."""

    def apply(self, records: Sequence[LogRecord], length: int) -> None:
        """Apply what is new in these records, below an index. A term is told to machines with its
        first entry that is committed."""
        replica, marks = self.replica, list[Mark]()
        for record in records:
            if isinstance(record, Mark):
                marks.append(record)
            elif isinstance(record, Entries) and record.head.count:
                head = record.head
                if head.index + head.count <= replica.index:
                    continue
                found = unpack(record.body, head.count)
                payloads = found if isinstance(found, tuple) else (b"",)
                for i, payload in enumerate(payloads):
                    if not head.index + i == replica.index < length:
                        continue
                    for mark in marks:
                        sessions = dict(zip(mark.members, mark.sessions, strict=True))
                        replica.begin_term(mark.term, sessions)
                    entry = LogEntry(
                        head.index + i,
                        payload,
                        head.term,
                        head.sender,
                        head.session,
                        head.number + i,
                        head.stamp_us,
                    )
                    reply = replica.apply(entry)
                    self.applied.append((marks[:], entry, reply))
                    if reply is not None:
                        self.replies.append((entry.index, entry.session, entry.number, reply))

    def state(self, name: str) -> Any:
        return self.replica.machines[name]

    def snapshot(self) -> bytes:
        return b"".join(self.replica.snapshot())

    def restore(self, data: bytes) -> None:
        self.replica = Replica({name: make() for name, make in _MAKE.items()})
        self.replica.restore([data])
        self.replies.clear()
        self.applied.clear()


@dataclass(slots=True)
class _Call:
    """A call that has no answer yet."""

    row: int
    """Of its `invoke`."""
    op: str
    kind: Kind
    obj: str
    arguments: tuple[Any, ...]


class Clients:
    """The clients of one life of a node."""

    def __init__(self, host: "Host", session: int) -> None:
        self._host = host
        self._session = session
        self._next = 0
        """A number for each call, which is also the handle of who asks for a turn or an item."""
        self._calls: dict[int, _Call] = {}
        self._sent: dict[int, int] = {}
        """By number in the session of the node: the call."""
        self._asking: list[int] = []
        """Calls that wait for a turn, or for an item."""
        self._held: dict[str, list[tuple[int, int]]] = {"lock": [], "leader": [], "semaphore": []}
        """By machine: handle and token of each turn."""
        self._jobs: list[tuple[int, int]] = []
        """Id and token of each item."""
        self._ticked: object = None
        """The last term for which this node has appended a tick."""

    @property
    def in_memory(self) -> tuple[object, ...]:
        """All that differs between two lives in which the machines' states are the same."""
        calls = tuple((id, call.op, call.arguments) for id, call in self._calls.items())
        held = tuple(map(tuple, self._held.values()))
        holds = (tuple(self._asking), held, tuple(self._jobs))
        return (self._next, calls, tuple(self._sent.items()), *holds, self._ticked)

    def call(self, op: str, words: Sequence[str]) -> None:
        """A client calls."""
        self._next += 1
        call = self._made(op, words)
        if call is None:
            return  # There is nothing to give back.
        self._calls[self._next] = call
        if _reads(call.kind):
            self._host.call(("sync", -self._next))
        else:
            self._host.call(("command", self._next))

    def _made(self, op: str, words: Sequence[str]) -> _Call | None:
        match op:
            case "set":
                key, value = words[0], int(words[1])
                return self._begun(op, (key, value), value, key)
            case "revise":
                key, value = words[0], int(words[1])
                return self._begun(op, (key, value, self._version(key)), value, key)
            case "lend":
                key, value = words[0], int(words[1])
                return self._begun(op, (f"lent {key}", value, LENT_S), value, key)
            case "recall":
                return self._begun(op, (f"lent {words[0]}",), None, words[0])
            case "get" | "pop" | "delete" | "include" | "exclude" | "contains":
                return self._begun(op, (words[0],), None, words[0])
            case "pair":
                value = int(words[0])
                return self._begun(op, (dict.fromkeys(_PAIR, value),), value)
            case "both":
                return self._begun(op, ("pair.",))
            case "add" | "put" | "offer":
                return self._begun(op, (int(words[0]),), int(words[0]))
            case "value" | "highest":
                return self._begun(op, ())
            case "release" | "resign" | "leave":
                held = self._held[CALLS[op].machine]
                if not held:
                    return None
                handle, token = held.pop(0)
                return self._begun(op, (handle,), token)
            case "done" | "back":
                if not self._jobs:
                    return None
                item, token = self._jobs.pop(0)
                return self._begun(op, (item, token), item)
        return self._begun(op, (self._next,), TURNS if op == "enter" else None)

    def _begun(
        self, op: str, arguments: tuple[Any, ...], told: int | None = None, key: str = ""
    ) -> _Call:
        kind = CALLS[op]
        obj = kind.obj.format(key) if kind.obj else kind.machine
        row = self._host.recorder.invoke(obj, kind.op or op, told)
        return _Call(row, op, kind, obj, arguments)

    def _version(self, key: str) -> int | None:
        """Of a key, as this node knows it."""
        machines = self._host.log.application.machines if self._host.log is not None else None
        assert machines is not None
        slot = Map.slot.function(machines.state("map"), key)
        return None if slot is None else slot.version

    def send(self, id: int, append: Callable[[bytes], int]) -> None:
        """Append the command of a call."""
        call = self._calls[id]
        self._sent[append(_command(call))] = id

    def read(self, request: int, machines: Machines, length: int) -> None:
        """The state is fresh enough for a read."""
        call = self._calls.pop(-request)
        state = machines.state(call.kind.machine)
        found = getattr(type(state), call.kind.method).function(state, *call.arguments)
        if call.op == "both":
            values = {found.get(key) for key in _PAIR}
            found = values.pop() if len(values) == 1 else HALF
        self._answer(call, found, length)

    def settle(self, machines: Machines) -> None:
        """Commands were applied."""
        for index, session, number, reply in machines.replies:
            if session == self._session and number in self._sent:
                self._replied(self._sent.pop(number), reply, index)
        machines.replies.clear()
        self._asking = [id for id in self._asking if not self._got(id, machines)]

    def _replied(self, id: int, reply: bytes, index: int) -> None:
        call = self._calls[id]
        if call.kind.method == "ask":
            self._asking.append(id)
            return
        del self._calls[id]
        try:
            found = _write(call.kind).decode_reply(reply)
        except Refused:
            return
        if call.op in ("set", "pair", "lend"):
            found = None
        self._answer(call, found, index + 1)

    def _got(self, id: int, machines: Machines) -> bool:
        """Whether somebody waits no longer: it has what it asked for, or the log forgot it."""
        call = self._calls[id]
        state = machines.state(call.kind.machine)
        if isinstance(state, Turns):
            claim = state.claim(self._session, id)
            if claim is not None and not claim.number:
                return False
            if claim is not None:
                self._held[call.kind.machine].append((id, claim.token))
                self._answer(call, claim.token, machines.replica.index)
        else:
            taken = state.taken_by(self._session, id)
            if taken is None and any(
                (taker.session, taker.handle) == (self._session, id) for taker in state.takers
            ):
                return False
            if taken is not None:
                self._jobs.append((taken.item.id, taken.token))
                self._answer(call, taken.item.id, taken.token)
        del self._calls[id]
        return True

    def _answer(self, call: _Call, result: int | None, length: int) -> None:
        told = None if result is None else int(result)
        self._host.recorder.reply(call.row, call.obj, call.kind.op or call.op, told, length)

    def tick(self, machines: Machines) -> bool:
        """Whether this node is to append a tick, so that machines are told of a term."""
        status = self._host.core.status
        log = status.log
        if log is None or log.state != "open" or log.term in (self._ticked, machines.replica.term):
            return False
        present = [node for node in log.voters if node in status.lives]
        if not present or min(present) != self._host.name:
            return False
        self._ticked = log.term
        return True


def _reads(kind: Kind) -> bool:
    return kind.method not in _WRITES[kind.machine]


def _write(kind: Kind) -> Arguments:
    return _WRITES[kind.machine][kind.method]


_WRITES = {name: make().write_arguments() for name, make in _MAKE.items()}


def _command(call: _Call) -> bytes:
    arguments = _write(call.kind)
    return command_head(call.kind.machine) + arguments.command(
        arguments.ordered(call.arguments, {})
    )
