"""What replicated machines do, against plain copies of them: asserted while a run goes on.

The clients of a node see little of a queue that turned its order round, since every node does so
alike, and what is lost is never answered. A plain copy has the order, and what there is to take.
"""

from collections.abc import Mapping

from roundelay.check.histories.plain import PlainLock, PlainMap, PlainQueue
from roundelay.sim.clients import Machines
from roundelay.structures.replica import Replica

_PLAIN = {"map": PlainMap, "lock": PlainLock, "leader": PlainLock, "queue": PlainQueue}


class MachineWatch:
    """Follows the log of a world with plain copies, and with one more copy of other machines."""

    def __init__(self) -> None:
        fresh = Machines().replica.machines
        plain = {name: make() for name, make in _PLAIN.items()}
        self._copy = Replica({**fresh, **plain})
        self._known: list[tuple[bytes | None, Mapping[str, Mapping[str, object]]]] = []
        """By index: the reply, and what the copies then tell of themselves."""

    def look(self, node: str, machines: Machines) -> None:
        """A node has applied more."""
        for marks, entry, reply in machines.applied:
            if entry.index == len(self._known):
                for mark in marks:
                    self._copy.begin_term(
                        mark.term, dict(zip(mark.members, mark.sessions, strict=True))
                    )
                self._known.append((self._copy.apply(entry), self._copy.status()))
            expected, _ = self._known[entry.index]
            assert reply == expected, (
                f"{node} replies {reply!r} at {entry.index}, "
                f"where a plain copy replies {expected!r}"
            )
        if machines.applied:
            _, told = self._known[machines.replica.index - 1]
            for name, status in machines.replica.status().items():
                assert status == told[name], (
                    f"{node} has {status} in its {name}, where a plain copy has {told[name]}"
                )
