"""Operations of clients, and what a judge says of them."""

from dataclasses import dataclass, field
from typing import Any

from roundelay.check.verdict import Validity


@dataclass(frozen=True, slots=True)
class Operation:
    """One call of a client."""

    client: str
    key: str
    """The object that it is about. Objects are judged one by one, since operations on different
    ones do not hide each other's faults."""
    op: str
    argument: Any
    called: float
    returned: float | None = None
    """None: it never returned, or its client was told that its fate is not known. Then it may have
    happened at any time after the call, or not at all."""
    reply: Any = None
    """Means nothing if it did not return."""
    index: int | None = None
    """Where it stands in the log: of a write its own index, of a read the length of the log that it
    saw."""
    reads: bool = False
    """Whether it changes nothing."""
    source: tuple[Any, ...] = field(default=(), compare=False, repr=False)
    """What it was read from, such as rows of a trace, for whoever shows a witness."""

    def __str__(self) -> str:
        came = "did not return" if self.returned is None else f"= {self.reply!r}"
        where = "" if self.index is None else f" at {self.index}"
        return f"{self.client}: {self.op}({self.argument!r}) {came}{where}"


@dataclass(frozen=True, slots=True)
class Judgement:
    """What one property says of one history."""

    property: str
    validity: Validity
    instances: int = 0
    """Operations that were judged."""
    witness: tuple[Operation, ...] = ()
    """Operations that show the violation."""
    reason: str = ""
