"""Plain copies of replicated structures: what they are to do, written to be read.

A log that is applied to a plain copy gives the replies that clients should have got. So a history
is judged by something else than what was running; of `roundelay.structures` these share nothing but
how commands are written. They are slow, and are never stored.
"""

from collections.abc import Mapping
from typing import NamedTuple

from roundelay.core.ids import NodeId
from roundelay.structures.machine import Machine
from roundelay.structures.methods import read, write
from roundelay.structures.values import Value


class Who(NamedTuple):
    """Who asks for a turn or an item: a claim of a session, which is one life of a node."""

    session: int
    handle: int
    node: NodeId


class PlainLock(Machine):
    """One line: at its head who holds the lock, behind it those who wait."""

    def __init__(self) -> None:
        self.line: list[Who] = []
        self.tokens: dict[tuple[int, int], int] = {}
        """Of every claim that was ever granted, by session and handle."""
        self.token = -1

    @write
    def ask(self, handle: int, label: str = "", *, wait: bool = True) -> int | None:
        who = Who(self.now.session, handle, self.now.sender)
        if who not in self.line and (wait or not self.line):
            self.line.append(who)
            self._grant()
        return self.tokens[who[:2]] if who in self.line[:1] else None

    @write
    def give(self, handle: int) -> bool:
        who = Who(self.now.session, handle, self.now.sender)
        found = who in self.line
        self._keep([other for other in self.line if other != who])
        return found

    def on_term(self, sessions: Mapping[NodeId, int]) -> None:
        self._keep([who for who in self.line if who.session in sessions.values()])

    @read
    def granted(self, session: int, handle: int) -> int | None:
        """The token of a claim, also if it has ended."""
        return self.tokens.get((session, handle))

    def status(self) -> Mapping[str, object]:
        holders, waiting = [who.node for who in self.line[:1]], len(self.line[1:])
        return {"holders": holders, "waiting": waiting, "token": self.token}

    def _keep(self, line: list[Who]) -> None:
        before, self.line = self.line[:1], line
        if line[:1] != before:
            self._grant()

    def _grant(self) -> None:
        """Whoever is at the head has a token."""
        for who in self.line[:1]:
            if who[:2] not in self.tokens:
                self.token = self.tokens[who[:2]] = max(self.now.index, self.token + 1)


class PlainItem(NamedTuple):
    """An item, which sorts as it leaves."""

    priority: int
    id: int
    value: Value


class PlainTaken(NamedTuple):
    """An item that somebody has."""

    item: PlainItem
    token: int
    who: Who


class PlainQueue(Machine):
    """Whatever waits is sorted each time before an item leaves."""

    def __init__(self) -> None:
        self.waiting: list[PlainItem] = []
        self.takers: list[Who] = []
        self.taken: list[PlainTaken] = []
        self.done: list[PlainItem] = []
        self.jobs: dict[tuple[int, int], PlainTaken] = {}
        """What each claim was given last, by session and handle."""
        self.token = -1

    @write
    def put(self, value: Value, priority: int = 0) -> int:
        self.waiting.append(PlainItem(priority, self.now.index, value))
        self._hand_out()
        return self.now.index

    @write
    def ask(self, handle: int, *, wait: bool = True) -> bool:
        who = Who(self.now.session, handle, self.now.sender)
        if who not in [*self.takers, *self._owners()] and (wait or self.waiting):
            self.takers.append(who)
            self._hand_out()
        return who in self._owners()

    @write
    def withdraw(self, handle: int) -> bool:
        who = Who(self.now.session, handle, self.now.sender)
        found = who in [*self.takers, *self._owners()]
        self.takers = [taker for taker in self.takers if taker != who]
        self._take_back([taken for taken in self.taken if taken.who == who])
        return found

    @write
    def finish(self, id: int, token: int) -> bool:
        ended = self._found(id, token)
        self.taken = [taken for taken in self.taken if taken not in ended]
        self.done += [taken.item for taken in ended]
        return bool(ended)

    @write
    def give_back(self, id: int, token: int) -> bool:
        ended = self._found(id, token)
        self._take_back(ended)
        return bool(ended)

    def on_term(self, sessions: Mapping[NodeId, int]) -> None:
        alive = sessions.values()
        self.takers = [taker for taker in self.takers if taker.session in alive]
        self._take_back([taken for taken in self.taken if taken.who.session not in alive])

    @read
    def granted(self, session: int, handle: int) -> list[Value]:
        """Id, token and value of the item that a claim was given last."""
        item, token, _ = self.jobs[session, handle]
        return [item.id, token, item.value]

    def status(self) -> Mapping[str, object]:
        return {
            "size": len(self.waiting),
            "in work": len(self.taken),
            "takers": len(self.takers),
            "done": len(self.done),
        }

    def _owners(self) -> list[Who]:
        return [taken.who for taken in self.taken]

    def _found(self, id: int, token: int) -> list[PlainTaken]:
        return [taken for taken in self.taken if (taken.item.id, taken.token) == (id, token)]

    def _take_back(self, ended: list[PlainTaken]) -> None:
        self.taken = [taken for taken in self.taken if taken not in ended]
        self.waiting += [taken.item for taken in ended]
        self._hand_out()

    def _hand_out(self) -> None:
        while self.waiting and self.takers:
            self.waiting.sort(key=lambda item: (item.priority, item.id))
            self.token = max(self.now.index, self.token + 1)
            taken = PlainTaken(self.waiting.pop(0), self.token, self.takers.pop(0))
            self.taken.append(taken)
            self.jobs[taken.who[:2]] = taken


class PlainSlot(NamedTuple):
    """What is under a key of a map."""

    value: Value
    version: int
    due_us: int | None


class PlainMap(Machine):
    """A dict, without what is over in log time."""

    def __init__(self) -> None:
        self.slots: dict[str, PlainSlot] = {}

    @write
    def set(self, key: str, value: Value, ttl_s: float | None = None) -> int:
        self._become(key, value, ttl_s)
        return self.now.index

    @write
    def setdefault(self, key: str, value: Value, ttl_s: float | None = None) -> Value:
        if key not in self.slots:
            self._become(key, value, ttl_s)
        return self.slots[key].value

    @write
    def compare_and_set(
        self, key: str, expected: Value, value: Value, ttl_s: float | None = None
    ) -> bool:
        same = self._value(key) == expected
        if same:
            self._become(key, value, ttl_s)
        return same

    @write
    def set_if(
        self, key: str, value: Value, version: int | None, ttl_s: float | None = None
    ) -> int | None:
        found = self.slots[key].version if key in self.slots else None
        if found != version:
            return None
        self._become(key, value, ttl_s)
        return self.now.index

    @write
    def update(self, items: dict[str, Value], ttl_s: float | None = None) -> int:
        for key, value in items.items():
            self._become(key, value, ttl_s)
        return self.now.index

    @write
    def delete(self, key: str) -> bool:
        return self.slots.pop(key, None) is not None

    @write
    def pop(self, key: str) -> Value:
        found = self._value(key)
        self.slots.pop(key, None)
        return found

    @write
    def clear(self, prefix: str = "") -> int:
        before = len(self.slots)
        self.slots = {k: slot for k, slot in self.slots.items() if not k.startswith(prefix)}
        return before - len(self.slots)

    @read
    def get(self, key: str) -> Value:
        return self._value(key)

    @read
    def items(self, prefix: str = "") -> dict[str, Value]:
        return {k: slot.value for k, slot in self.slots.items() if k.startswith(prefix)}

    @read
    def size(self) -> int:
        return len(self.slots)

    def due_us(self) -> int | None:
        return min((s.due_us for s in self.slots.values() if s.due_us is not None), default=None)

    def on_time(self) -> None:
        now_us = self.now.time_us
        self.slots = {
            k: slot for k, slot in self.slots.items() if slot.due_us is None or slot.due_us > now_us
        }

    def status(self) -> Mapping[str, object]:
        return {"size": len(self.slots)}

    def _value(self, key: str) -> Value:
        return self.slots[key].value if key in self.slots else None

    def _become(self, key: str, value: Value, ttl_s: float | None) -> None:
        """Set the key, or delete it: None is no value."""
        if value is None:
            self.slots.pop(key, None)
            return
        due_us = None if ttl_s is None else self.now.time_us + round(ttl_s * 1_000_000)
        self.slots[key] = PlainSlot(value, self.now.index, due_us)
