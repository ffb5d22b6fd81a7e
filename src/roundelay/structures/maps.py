"""`Map`: values under keys, with versions, watchers and times to live.

    await config.set("colour", "red")
    await config.set("lease", "x", ttl_s=30)
    async for change in config.watch("col"):
        ...

The version of a key is the index at which it was set last, so it never comes again, not even when
the key was deleted in between. A time to live ends at the first entry at or after it in log time,
which is the greatest clock of any sender: good for caches and leases of machines with sane clocks,
and not for locks.
"""

import heapq
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from roundelay.structures.errors import Refused
from roundelay.structures.kinds import kind_of
from roundelay.structures.machine import Machine
from roundelay.structures.methods import read, stream, write
from roundelay.structures.values import Value, copy_value
from roundelay.structures.watcher import Watcher

V = TypeVar("V", bound=Value)

TTL_S_MAX = 10.0 * 366 * 86_400
"""The longest time to live."""
_PIECE_ITEMS = 1_000
"""Keys in a piece of a snapshot. With more, encoding a piece keeps the event loop busy for longer;
with fewer, pieces cost more than what is in them."""


class Slot(NamedTuple, Generic[V]):
    """What is under a key."""

    value: V
    version: int
    due_us: int | None
    """Log time at which it ends."""


class Change(NamedTuple, Generic[V]):
    """What a watcher is told."""

    key: str
    """The key that changed."""
    value: V | None
    """None: the key was deleted, or its time ended."""
    version: int
    """The index at which it happened."""


_new = tuple.__new__
"""Makes a `Slot` in half the time that its class takes: keys are set by the million."""
_PIECE = kind_of(list[tuple[str, Slot[Any]]])


class Map(Machine, Generic[V]):
    """Keys are text; values are any but None, which means that there is none."""

    def __init__(self) -> None:
        self._slots: dict[str, Slot[V]] = {}
        self._due: list[tuple[int, str]] = []
        """A heap of the times at which keys end; some have been set anew since."""

    @write
    def set(self, key: str, value: V, ttl_s: float | None = None) -> int:
        """The new version."""
        return self._set(key, value, ttl_s)

    @write
    def setdefault(self, key: str, value: V, ttl_s: float | None = None) -> V:
        """What is under the key afterwards: `value` only if there was nothing."""
        if (slot := self._slots.get(key)) is not None:
            return slot.value
        self._set(key, value, ttl_s)
        return value

    @write
    def compare_and_set(
        self, key: str, expected: V | None, value: V | None, ttl_s: float | None = None
    ) -> bool:
        """Set the key if it has the expected value, and tell whether it had. None is no value: as
        expected, the key must not be there; as value, the key is deleted. Values are compared as
        Python does, so 1 and 1.0 are equal."""
        slot = self._slots.get(key)
        if (None if slot is None else slot.value) != expected:
            return False
        self._put(key, value, ttl_s)
        return True

    @write
    def set_if(
        self, key: str, value: V | None, version: int | None, ttl_s: float | None = None
    ) -> int | None:
        """Set the key if it still has this version, or None if it must not be there; the new
        version, or None if it had another. A value of None deletes the key."""
        slot = self._slots.get(key)
        if (None if slot is None else slot.version) != version:
            return None
        self._put(key, value, ttl_s)
        return self.now.index

    @write
    def update(self, items: Mapping[str, V], ttl_s: float | None = None) -> int:
        """Set several keys at once: nobody sees a part of them. The version of all."""
        if None in items.values():
            raise Refused("None is no value of a map")
        for key, value in items.items():
            self._set(key, value, ttl_s)
        return self.now.index

    @write
    def delete(self, key: str) -> bool:
        """False if it was not there."""
        return self._delete(key) is not None

    @write
    def pop(self, key: str) -> V | None:
        """What was under the key, which is gone."""
        slot = self._delete(key)
        return None if slot is None else slot.value

    @write
    def clear(self, prefix: str = "") -> int:
        """Delete all keys that begin so; how many there were."""
        keys = [key for key in self._slots if key.startswith(prefix)]
        for key in keys:
            self._delete(key)
        return len(keys)

    @read
    def get(self, key: str) -> V | None:
        """What is under the key."""
        slot = self._slots.get(key)
        return None if slot is None else slot.value

    @read
    def slot(self, key: str) -> Slot[V] | None:
        """What is under the key, with its version and its end."""
        return self._slots.get(key)

    @read
    def keys(self, prefix: str = "") -> list[str]:
        """The keys that begin so, those that came first before the others."""
        return [key for key in self._slots if key.startswith(prefix)]

    @read
    def items(self, prefix: str = "") -> dict[str, V]:
        """The keys that begin so, and their values."""
        return {key: s.value for key, s in self._slots.items() if key.startswith(prefix)}

    @read
    def present(self, prefix: str = "") -> list[Change[V]]:
        """As `items`, in the form that `watch` tells changes in."""
        return [
            Change(key, slot.value, slot.version)
            for key, slot in self._slots.items()
            if key.startswith(prefix)
        ]

    @read
    def size(self) -> int:
        """How many keys there are."""
        return len(self._slots)

    @stream
    def watch(self, prefix: str = "") -> Watcher[Change[V]]:
        """Each change of a key that begins so, in order, from this call on. `GapError` if some
        were missed: then read `items` and watch again. To miss nothing at the beginning, watch
        first and read afterwards."""
        changes = self.port.changes()

        async def take() -> Change[V]:
            while True:
                change = await changes.take()
                if isinstance(change, Change) and change.key.startswith(prefix):
                    return change._replace(value=copy_value(change.value))

        return Watcher(take, changes.close)

    def due_us(self) -> int | None:
        if not self._due:
            return None
        self._forget_old()
        return self._due[0][0] if self._due else None

    def on_time(self) -> None:
        while (due_us := self.due_us()) is not None and due_us <= self.now.time_us:
            self._delete(heapq.heappop(self._due)[1])

    def snapshot(self) -> Iterator[bytes]:
        items = list(self._slots.items())  # Slots never change, so this is a copy of all.
        starts = range(0, len(items), _PIECE_ITEMS)
        return (_PIECE.encode(items[n : n + _PIECE_ITEMS]) for n in starts)

    def restore(self, chunks: Iterable[bytes]) -> None:
        for chunk in chunks:
            self._slots.update(_PIECE.decode(chunk))
        dues = ((slot.due_us, key) for key, slot in self._slots.items())
        self._due = sorted((due_us, key) for due_us, key in dues if due_us is not None)

    def status(self) -> Mapping[str, object]:
        return {"size": len(self._slots)}

    def _set(self, key: str, value: V, ttl_s: float | None) -> int:
        if value is None:
            raise Refused("None is no value of a map: delete the key")
        due_us = None
        if ttl_s is not None:
            if not 0 < ttl_s <= TTL_S_MAX:
                raise Refused(f"a time to live is between 0 and {TTL_S_MAX:.0f} s")
            due_us = self.now.time_us + round(ttl_s * 1_000_000)
            heapq.heappush(self._due, (due_us, key))
        index = self.now.index
        self._slots[key] = _new(Slot, (value, index, due_us))
        if self.told is not None:
            self.tell(Change(key, value, index))
        return index

    def _put(self, key: str, value: V | None, ttl_s: float | None) -> None:
        if value is None:
            self._delete(key)
        else:
            self._set(key, value, ttl_s)

    def _delete(self, key: str) -> Slot[V] | None:
        slot = self._slots.pop(key, None)
        if slot is not None:
            self.tell(Change(key, None, self.now.index))
        return slot

    def _forget_old(self) -> None:
        """Take from the top of the heap what is not the end of a key any more."""
        due, slots = self._due, self._slots
        while due and ((slot := slots.get(due[0][1])) is None or slot.due_us != due[0][0]):
            heapq.heappop(due)
        if len(due) > 2 * len(slots) + 64:
            dues = ((slot.due_us, key) for key, slot in slots.items())
            self._due = sorted((due_us, key) for due_us, key in dues if due_us is not None)
