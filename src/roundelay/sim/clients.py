"""Replicated machines on the logs of simulated nodes, and the clients that use them.

Every node applies what is committed to a map, a counter, a lock and a queue. A client calls the
machines of one node, and waits for its answer; rows `invoke` and `reply` tell of it, so that the
properties of objects are judged. If its node ends, it never learns what became of its call.

A client that holds the lock gives it back when it is told to, as one that has taken an item does;
which of them does not matter, so a node keeps what its clients hold in the order of getting it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from roundelay.core.log import Entries, LogRecord, Mark
from roundelay.group.body import unpack
from roundelay.structures import Counter, Lock, Map, Queue, Refused
from roundelay.structures.machine import Machine
from roundelay.structures.replica import LogEntry, Replica, command_head

if TYPE_CHECKING:
    from roundelay.sim.host import Host

_MAKE: dict[str, Callable[[], Machine]] = {
    "map": Map[int],
    "counter": Counter,
    "lock": Lock,
    "queue": Queue[int],
}

CALLS = {
    "set": 2,
    "get": 1,
    "delete": 1,
    "add": 1,
    "value": 0,
    "acquire": 0,
    "release": 0,
    "put": 1,
    "take": 0,
    "done": 0,
    "back": 0,
}
"""What a client can do, and how many words go with it: a key and a number, or one of them."""


class Machines:
    """The machines' states at one node."""

    def __init__(self) -> None:
        self.replica = Replica({name: make() for name, make in _MAKE.items()})
        self.replies: list[tuple[int, int, int, bytes]] = []
        """Index, session, number and reply of each command since somebody last looked."""

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


@dataclass(slots=True)
class _Call:
    """A call that has no answer yet."""

    row: int
    """Of its `invoke`."""
    op: str
    obj: str
    arguments: tuple[Any, ...]


class Clients:
    """The clients of one life of a node."""

    def __init__(self, host: "Host", session: int) -> None:
        self._host = host
        self._session = session
        self._next = 0
        """A number for each call, which is also the handle of who asks for the lock."""
        self._calls: dict[int, _Call] = {}
        self._sent: dict[int, int] = {}
        """By number in the session of the node: the call."""
        self._asking: list[int] = []
        """Calls that wait for the lock, or for an item."""
        self._held: list[tuple[int, int]] = []
        """Handle and token of each turn of the lock."""
        self._jobs: list[tuple[int, int]] = []
        """Id and token of each item."""
        self._ticked: object = None
        """The last term for which this node has appended a tick."""

    @property
    def in_memory(self) -> tuple[object, ...]:
        """All that differs between two lives in which the machines' states are the same."""
        calls = tuple((id, call.op, call.arguments) for id, call in self._calls.items())
        holds = (tuple(self._asking), tuple(self._held), tuple(self._jobs))
        return (self._next, calls, tuple(self._sent.items()), *holds, self._ticked)

    def call(self, op: str, words: Sequence[str]) -> None:
        """A client calls."""
        self._next += 1
        call = self._made(op, words)
        if call is None:
            return  # There is nothing to give back.
        self._calls[self._next] = call
        if op in ("get", "value"):
            self._host.call(("sync", -self._next))
        else:
            self._host.call(("command", self._next))

    def _made(self, op: str, words: Sequence[str]) -> _Call | None:
        match op:
            case "set":
                key, value = words[0], int(words[1])
                return self._begun(op, key, (key, value), value)
            case "get" | "delete":
                return self._begun(op, words[0], (words[0],))
            case "add":
                return self._begun(op, "counter", (int(words[0]),), int(words[0]))
            case "put":
                return self._begun(op, "queue", (int(words[0]),), int(words[0]))
            case "release":
                if not self._held:
                    return None
                handle, token = self._held.pop(0)
                return self._begun(op, "lock", (handle,), token)
            case "done" | "back":
                if not self._jobs:
                    return None
                item, token = self._jobs.pop(0)
                return self._begun(op, "queue", (item, token), item)
        obj = {"value": "counter", "acquire": "lock", "take": "queue"}[op]
        return self._begun(op, obj, () if op == "value" else (self._next,))

    def _begun(
        self, op: str, obj: str, arguments: tuple[Any, ...], told: int | None = None
    ) -> _Call:
        row = self._host.recorder.invoke(obj, op, told)
        return _Call(row, op, obj, arguments)

    def send(self, id: int, append: Callable[[bytes], int]) -> None:
        """Append the command of a call."""
        call = self._calls[id]
        self._sent[append(_command(call))] = id

    def read(self, request: int, machines: Machines, length: int) -> None:
        """The state is fresh enough for a read."""
        call = self._calls.pop(-request)
        name = "map" if call.op == "get" else "counter"
        method = getattr(type(machines.state(name)), call.op)
        self._answer(call, method.function(machines.state(name), *call.arguments), length)

    def settle(self, machines: Machines) -> None:
        """Commands were applied."""
        for index, session, number, reply in machines.replies:
            if session == self._session and number in self._sent:
                self._replied(self._sent.pop(number), reply, index)
        machines.replies.clear()
        self._asking = [id for id in self._asking if not self._got(id, machines)]

    def _replied(self, id: int, reply: bytes, index: int) -> None:
        call = self._calls[id]
        if call.op in ("acquire", "take"):
            self._asking.append(id)
            return
        del self._calls[id]
        name, method = _METHODS[call.op]
        cls = type(_MAKE[name]())
        try:
            found = getattr(cls, method).arguments(cls).decode_reply(reply)
        except Refused:
            return
        self._answer(call, None if call.op == "set" else int(found), index + 1)

    def _got(self, id: int, machines: Machines) -> bool:
        """Whether somebody waits no longer: it has what it asked for, or the log forgot it."""
        call = self._calls[id]
        if call.op == "acquire":
            claim = machines.state("lock").claim(self._session, id)
            if claim is not None and not claim.number:
                return False
            if claim is not None:
                self._held.append((id, claim.token))
                self._answer(call, claim.token, machines.replica.index)
        else:
            queue = machines.state("queue")
            taken = queue.taken_by(self._session, id)
            if taken is None and any(
                (taker.session, taker.handle) == (self._session, id) for taker in queue.takers
            ):
                return False
            if taken is not None:
                self._jobs.append((taken.item.id, taken.token))
                self._answer(call, taken.item.id, taken.token)
        del self._calls[id]
        return True

    def _answer(self, call: _Call, result: int | None, length: int) -> None:
        self._host.recorder.reply(call.row, call.obj, call.op, result, length)

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


_METHODS = {
    "set": ("map", "set"),
    "delete": ("map", "delete"),
    "add": ("counter", "add"),
    "acquire": ("lock", "ask"),
    "release": ("lock", "give"),
    "put": ("queue", "put"),
    "take": ("queue", "ask"),
    "done": ("queue", "finish"),
    "back": ("queue", "give_back"),
}
"""By call: the machine and its write."""


def _command(call: _Call) -> bytes:
    name, method = _METHODS[call.op]
    cls = type(_MAKE[name]())
    arguments = getattr(cls, method).arguments(cls)
    made: bytes = arguments.command(arguments.ordered(call.arguments, {}))
    return command_head(name) + made
