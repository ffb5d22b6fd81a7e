"""For whom a message is: names that an application gave, checked."""

from collections.abc import Collection, Iterable

from roundelay.core.ids import NodeId
from roundelay.runtime.errors import SendError


def addressees(to: Iterable[NodeId] | None, peers: Collection[NodeId]) -> tuple[NodeId, ...] | None:
    """The names in `to`, each once and in order; None means everybody. SendError if they name
    nobody, or somebody who is no peer."""
    if to is None:
        return None
    known = ", ".join(sorted(peers))
    names = list(to)
    if isinstance(to, str) or not all(isinstance(name, str) for name in names):
        raise SendError(f"`to` is a list of names, not {to!r}; the peers are {known}")
    if not names:
        raise SendError(f"`to` names nobody; name some of the peers ({known}), or leave it out")
    for name in names:
        if name not in peers:
            raise SendError(f"`to` names {name!r}, which is no peer; the peers are {known}")
    return tuple(sorted(set(names)))
