"""`Set`: values that are in it or not."""

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from roundelay.structures.machine import Machine
from roundelay.structures.methods import read, write
from roundelay.structures.values import Value, dumps, pack_value

V = TypeVar("V", bound=Value)


class Set(Machine, Generic[V]):
    """Members are values, lists and dicts too: two are the same if their texts are, so 1, 1.0 and
    True are three members. They are listed in the order in which they came."""

    members: dict[str, Any]

    def __init__(self) -> None:
        self.members = {}

    @write
    def add(self, member: V) -> bool:
        """False if it was there already."""
        key = _key(member)
        if key in self.members:
            return False
        self.members[key] = member
        return True

    @write
    def discard(self, member: V) -> bool:
        """False if it was not there."""
        return self.members.pop(_key(member), _ABSENT) is not _ABSENT

    @write
    def clear(self) -> int:
        """How many there were."""
        count = len(self.members)
        self.members.clear()
        return count

    @read
    def contains(self, member: V) -> bool:
        """Whether it is in the set."""
        return _key(member) in self.members

    @read
    def items(self) -> list[V]:
        """All members."""
        return list(self.members.values())

    @read
    def size(self) -> int:
        """How many there are."""
        return len(self.members)

    def status(self) -> Mapping[str, object]:
        return {"size": len(self.members)}


_ABSENT = object()


def _key(member: object) -> str:
    return dumps(_ordered(pack_value(member))).decode()


def _ordered(packed: object) -> object:
    """With the keys of dicts in order, since dicts are equal in any."""
    if isinstance(packed, list):
        return [_ordered(item) for item in packed]
    if isinstance(packed, dict):
        return {key: _ordered(packed[key]) for key in sorted(packed)}
    return packed
