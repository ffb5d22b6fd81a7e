"""Changes to a message that keep its form: numbers, names, views, lists and bytes, field by field.

A message is a tree: records have fields, tuples have elements. One node of the tree is replaced by
a variant of it, or by a value of the same type that was seen in another message. What comes out may
make no sense, which is the point; whether it can be encoded is for the caller to find out.
"""

import dataclasses
from collections import deque
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from roundelay.core.ids import NODE_NAME_BYTES_MAX, NodeId, Service, ViewId
from roundelay.group.body import pack, pack_piece
from roundelay.wire.primitives import I64_MAX, U16_MAX, U32_MAX

NUMBERS = (
    *(0, 1, 2, 20, 80, 4096, 8192),
    *(U16_MAX - 1, U16_MAX, U16_MAX + 1, 2**31 - 1, 2**31, U32_MAX - 1, U32_MAX, U32_MAX + 1),
    *(2**62 - 1, 2**62, I64_MAX - U16_MAX, I64_MAX - 1, I64_MAX),
)
"""Where ranges, limits and widths end."""
NEAR = (-32, -8, -4, -3, -2, -1, -1, 1, 1, 2, 3, 4, 8, 32)
STRANGER = "ghost"
POOL_MAX = 64
"""Values of one type that are kept to be put in the place of another."""
NODES_MAX = 400
"""Parts of one message that are told apart; what lies behind them is left as it is."""
LONG = 1030
"""More elements than any list on the wire may have."""


class Mutator:
    """Makes variants of messages. It remembers values that it saw, by type."""

    def __init__(self, random: Random, names: Sequence[NodeId]) -> None:
        self._random = random
        self.names = (*names, *names, STRANGER, "", "0", "zz", "n" * NODE_NAME_BYTES_MAX)
        self._pool: dict[type, deque[Any]] = {}
        self._numbers: deque[int] = deque([0, 1], maxlen=POOL_MAX)
        self.views: deque[ViewId] = deque([ViewId(0, names[0])], maxlen=POOL_MAX)

    def see(self, value: Any) -> None:
        """Remember the parts of a message for later."""
        if isinstance(value, ViewId) and value not in self.views:
            self.views.append(value)
        elif type(value) is int:
            self._numbers.append(value)
        elif dataclasses.is_dataclass(value):
            self._pool.setdefault(type(value), deque(maxlen=POOL_MAX)).append(value)
        for child in _children(value)[:8]:
            self.see(child)

    def mutate(self, message: Any) -> Any:
        """The message with one to three parts changed."""
        for _ in range(self._random.choice((1, 1, 1, 2, 3))):
            size = min(_size(message), NODES_MAX)
            message = self._replace(message, self._random.randrange(size))
        return message

    def _replace(self, value: Any, place: int) -> Any:
        if place == 0:
            return self.variant(value)
        place -= 1
        for i, child in enumerate(_children(value)):
            size = _size(child)
            if place < size:
                return _rebuilt(value, i, self._replace(child, place))
            place -= size
        return value

    def variant(self, value: Any) -> Any:
        """Another value of about the same type."""
        random = self._random
        match value:
            case bool():
                return not value
            case Service():
                return random.choice(tuple(Service))
            case int():
                return self.number(value)
            case str():
                return random.choice(self.names)
            case bytes():
                return self._bytes(value)
            case ViewId():
                return self.view(value)
            case tuple() if not hasattr(value, "_fields"):
                return self._list(value)
            case None:
                return random.choice((self.view(None), (random.choice(self.names),), (), 1))
            case _:
                return self._record(value)

    def number(self, n: int) -> int:
        random = self._random
        match random.randrange(4):
            case 0:
                return random.choice(NUMBERS)
            case 1:
                return random.choice(self._numbers)
            case 2:
                return n ^ 1 << random.randrange(64)
            case _:
                return max(0, n + random.choice(NEAR))

    def view(self, view: ViewId | None) -> ViewId:
        random = self._random
        known = random.choice(self.views)
        match random.randrange(4):
            case 0:
                return ViewId(self.number(known.seq), known.rep)
            case 1:
                return ViewId((view or known).seq, random.choice(self.names))
            case 2:
                near = (view or known).seq + random.choice((-4, -1, 1, 4))
                return ViewId(max(0, near), known.rep)
            case _:
                return known

    def _record(self, value: Any) -> Any:
        """A record of the same type that was seen before, or this one with every field changed."""
        pool = self._pool.get(type(value))
        if pool and self._random.random() < 0.8:
            return self._random.choice(pool)
        children = _children(value)
        for i, child in enumerate(children):
            if self._random.random() < 0.5:
                value = _rebuilt(value, i, self.variant(child))
        return value

    def _list(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        random = self._random
        if not values:
            return random.choice(
                ((random.choice(self.names),), (random.choice(NUMBERS),), (random.choice(NEAR),))
            )
        i = random.randrange(len(values))
        ways: tuple[Callable[[], tuple[Any, ...]], ...] = (
            tuple,
            lambda: values[:i] + values[i + 1 :],
            lambda: (*values, values[i]),
            lambda: tuple(random.sample(values, len(values))),
            lambda: (*values, self.variant(values[i])),
            lambda: (*values[:i], self.variant(values[i]), *values[i + 1 :]),
            lambda: values * random.choice((2, 40, LONG // len(values) + 1)),
            lambda: (*values, *(self._another(values[i], n) for n in range(random.randrange(50)))),
        )
        made = random.choice(ways)()
        return _in_order(made) if random.random() < 0.7 else made

    def _another(self, value: Any, n: int) -> Any:
        match value:
            case str():
                return f"x{n:02}"
            case int():
                return value + n + 1
            case _:
                return self.variant(value)

    def _bytes(self, data: bytes) -> bytes:
        random = self._random
        count = random.choice((0, 1, 2, 300))
        match random.randrange(8):
            case 0:
                return data[: random.randrange(len(data) + 1)]
            case 1:
                return data + random.randbytes(random.choice((1, 8, 2000)))
            case 2:
                return random.randbytes(random.choice((0, 1, 16, 100)))
            case 3:
                return pack([bytes(random.choice((0, 1, 5)))] * (count or 1))
            case 4:
                pieces = random.choice((1, 2, 3, 70_000, U32_MAX))
                index = min(random.choice((0, 1, 2, pieces - 1)), pieces - 1)
                piece = pack_piece(b"", index, pieces, 1, self.number(0) & U32_MAX)
                return piece + random.randbytes(random.choice((0, 1, 1000)))
            case _:  # A number somewhere within.
                width = random.choice((1, 2, 4, 8))
                at = random.randrange(max(1, len(data) // width)) * width
                number = self.number(int.from_bytes(data[at : at + width])) % (1 << 8 * width)
                return data[:at] + number.to_bytes(width) + data[at + width :]


def _in_order(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Each once and sorted, where the wire wants it so: names, and entries by their names."""
    if all(isinstance(value, str) for value in values):
        return tuple(sorted(set(values)))
    if all(hasattr(value, "node") for value in values):
        by_name = {value.node: value for value in values}
        return tuple(by_name[name] for name in sorted(by_name))
    return values


def _children(value: Any) -> Sequence[Any]:
    if isinstance(value, tuple):
        return value
    if dataclasses.is_dataclass(value):
        return [getattr(value, field.name) for field in dataclasses.fields(value)]
    return ()


def _size(value: Any) -> int:
    """How many parts a value has, itself among them."""
    return 1 + sum(map(_size, _children(value)))


def _rebuilt(value: Any, place: int, child: Any) -> Any:
    """The same record or tuple with one child replaced."""
    children = [*_children(value)]
    children[place] = child
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple(children)
    return type(value)(*children)
