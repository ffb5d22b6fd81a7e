"""`Counter`: a number that all nodes add to."""

from collections.abc import Mapping

from roundelay.structures.errors import Refused
from roundelay.structures.machine import Machine
from roundelay.structures.methods import read, write
from roundelay.structures.values import INT_BITS_MAX


class Counter(Machine):
    """Begins at 0."""

    number: int

    def __init__(self) -> None:
        self.number = 0

    @write
    def add(self, amount: int = 1) -> int:
        """The number afterwards. Two that add get different numbers."""
        return self._become(self.number + amount)

    @write
    def set(self, number: int) -> int:
        """The number before."""
        before = self.number
        self._become(number)
        return before

    @write
    def compare_and_set(self, expected: int, number: int) -> bool:
        """Set it if it is as expected; False if not."""
        if self.number != expected:
            return False
        self._become(number)
        return True

    @read
    def value(self) -> int:
        """The number."""
        return self.number

    def status(self) -> Mapping[str, object]:
        return {"value": self.number}

    def _become(self, number: int) -> int:
        if number.bit_length() > INT_BITS_MAX:
            raise Refused(f"a counter has at most {INT_BITS_MAX} bits")
        self.number = number
        return number
