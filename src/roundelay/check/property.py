"""What a property is: a name, a title, whose rows it needs, and a function that checks a trace."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from roundelay.check.model import Event, Model
from roundelay.check.verdict import Validity, Verdict
from roundelay.trace.schema import Row


@dataclass(frozen=True, slots=True)
class Finding:
    """What a property found: how often its premise occurred, and the first breach if any."""

    instances: int
    reason: str = ""
    """The breach in one sentence, with names of nodes and messages; empty if there is none."""
    witness: tuple[Event | Row, ...] = ()
    """The fewest events that show the breach."""
    unknown: str = ""
    """Why the trace cannot tell; empty if it can."""


class Scope(StrEnum):
    """Whose rows a property needs."""

    NODE = "one node"
    """It speaks of what each node does by itself. Rows of one node that break it break it in the
    whole trace too, whatever the others did, so a running node can check it on its own rows."""
    GROUP = "all nodes"
    """It compares nodes, or asks what another node did first. On the rows of one node alone it
    would report breaches that are none, such as a message that nobody sent, or find nothing."""


Check = Callable[[Model], Finding]


@dataclass(frozen=True, slots=True)
class Property:
    """A registered property."""

    name: str
    title: str
    check: Check
    scope: Scope = Scope.GROUP

    def judge(self, model: Model) -> Verdict:
        """The verdict on a trace that is well-formed and inside the protocol's assumptions."""
        finding = self.check(model)
        if finding.reason:
            rows = {_place(row): row for row in map(_row, finding.witness)}
            order = sorted(rows.values(), key=_order)
            return Verdict(
                self.name, Validity.VIOLATED, finding.instances, tuple(order), finding.reason
            )
        if finding.unknown:
            return Verdict(
                self.name, Validity.INCONCLUSIVE, finding.instances, reason=finding.unknown
            )
        if not finding.instances:
            return Verdict(self.name, Validity.VACUOUS, reason="its premise never occurred")
        return Verdict(self.name, Validity.OK, finding.instances)


PROPERTIES: dict[str, Property] = {}
"""All properties by name, filled by the modules that declare them."""


def declare(name: str, title: str, *, scope: Scope = Scope.GROUP) -> Callable[[Check], Check]:
    """Register the function below as the property `name`."""

    def register(check: Check) -> Check:
        assert name not in PROPERTIES, f"two properties are called {name}"
        PROPERTIES[name] = Property(name, title, check, scope)
        return check

    return register


def _row(item: Event | Row) -> Row:
    return item.row if isinstance(item, Event) else item


def _place(row: Row) -> tuple[int, int, int, int | None]:
    return row.proc, row.inc, row.lseq, row.m_seq


def _order(row: Row) -> tuple[int, ...]:
    if row.gseq is not None:
        return (row.gseq, row.m_seq or 0)
    return (row.t_ns, row.proc, row.inc, row.lseq)
