"""Choices that bytes decide, for a fuzzer that changes the bytes and looks at what comes of it.

Each choice takes the next bytes, as few as it needs. A byte that changes then changes one choice,
and only what follows from that one, as long as the choices after it need as many bytes as before.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, TypeVar

T = TypeVar("T")
DIRECT_BYTES_MAX = 8
"""Random bytes that are taken as they are; more are drawn from a seed, to save the input."""
SEED_BYTES = 2
LOAD_BYTES = 2
"""Bytes of an input that are the seed of load and faults; the others decide what is forged."""
SIZES_FROM = 256
"""New inputs have this many bytes at least."""


class Choices(Random):
    """What the fuzzer uses of `Random`, out of bytes. When they are spent, a fixed sequence goes
    on in their place: equal bytes, equal choices."""

    def __init__(self, data: bytes) -> None:
        super().__init__(0)
        self._data = data
        self._at = 0
        self._rest = Random(0)
        self.spent = not data
        """No byte decides anything any more."""

    def _take(self, count: int) -> bytes:
        taken = self._data[self._at : self._at + count]
        self._at += len(taken)
        self.spent = self._at >= len(self._data)
        missing = count - len(taken)
        return taken + self._rest.getrandbits(8 * missing).to_bytes(missing) if missing else taken

    def _below(self, n: int) -> int:
        """A number under `n`. Where there is no choice, no byte is spent on it."""
        return int.from_bytes(self._take(((n - 1).bit_length() + 7) // 8)) % n

    def random(self) -> float:
        return self._below(256) / 256

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        numbers = range(start) if stop is None else range(start, stop, step)
        return numbers[self._below(len(numbers))]

    def randint(self, a: int, b: int) -> int:
        return self.randrange(a, b + 1)

    def choice(self, seq: Any) -> Any:
        return seq[self._below(len(seq))]

    def sample(
        self, population: Sequence[T], k: int, *, counts: Any = None
    ) -> list[T]:  # One choice among all orders, however long the list is.
        return self._seeded().sample(population, k, counts=counts)

    def randbytes(self, n: int) -> bytes:
        return self._take(n) if n <= DIRECT_BYTES_MAX else self._seeded().randbytes(n)

    def _seeded(self) -> Random:
        return Random(int.from_bytes(self._take(SEED_BYTES)))


def another(data: bytes, size_max: int, seed: int, change: Callable[[bytes, int], bytes]) -> bytes:
    """An input made of one that reached new code: often by `change`, the fuzzer's own way, and
    otherwise by ways that know what the bytes mean."""
    random = Random(seed)
    size = random.randint(min(SIZES_FROM, size_max), size_max)
    match random.randrange(4):
        case 0:  # A new one.
            return random.randbytes(size)
        case 1:  # The same beginning, and then something else.
            kept = data[: random.randint(min(LOAD_BYTES, len(data)), len(data))]
            return (kept + random.randbytes(size))[:size_max]
        case 2:  # The same choices under other load and faults.
            return (random.randbytes(LOAD_BYTES) + data[LOAD_BYTES:])[:size_max]
        case _:
            return change(data, size_max)
