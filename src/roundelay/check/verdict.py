"""What a property says of a trace."""

from dataclasses import dataclass
from enum import StrEnum

from roundelay.trace.schema import Row


class Validity(StrEnum):
    """The five verdicts. Only OK is a pass."""

    OK = "ok"
    VIOLATED = "violated"
    VACUOUS = "vacuous"
    """The premise never occurred: nothing was shown."""
    INCONCLUSIVE = "inconclusive"
    """The trace cannot tell: cut short, rows missing, never quiet."""
    OUTSIDE = "outside-envelope"
    """The protocol's assumptions failed first, so it promised nothing."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One property's verdict on one trace."""

    property: str
    """Its short name: D7, O5, S3 ..."""
    validity: Validity
    instances: int = 0
    """How often the premise occurred; coverage, not only for vacuity."""
    witness: tuple[Row, ...] = ()
    """The fewest rows that show the violation, in trace order."""
    reason: str = ""
    """One sentence that names nodes and messages; empty when ok."""
