"""What members bring along at the end of a view: some numbers, and one more for each member."""

from collections.abc import Callable, Mapping, Sequence
from struct import Struct
from typing import Any, TypeVar

from roundelay.core.contract import SUMMARY_BYTES_MAX
from roundelay.core.ids import NodeId
from roundelay.wire.primitives import I64_MAX, Reader, Reason, WireError, Writer

T = TypeVar("T")


def encode_summary(head: Struct, *values: int, by_member: Sequence[int]) -> bytes:
    """A summary: these values, in this form, and a number for each member of the view."""
    w = Writer()
    w.fields(head, *values)
    for number in by_member:
        w.u64(number)
    summary = w.done()
    assert len(summary) <= SUMMARY_BYTES_MAX, f"{len(by_member)} members are too many"
    return summary


def decode_summary(head: Struct, summary: bytes, members: int) -> tuple[Any, tuple[int, ...]]:
    """The values and the numbers of a summary as `encode_summary` wrote it, or WireError."""
    r = Reader(summary)
    values = r.fields(head)
    by_member = tuple(r.u64(I64_MAX) for _ in range(members))
    r.done()
    return values, by_member


def by_place(
    summaries: Mapping[NodeId, bytes], index: Mapping[NodeId, int], read: Callable[[bytes, int], T]
) -> dict[int, T]:
    """Summaries by the places of members in their view, which `index` tells. `read` is called with
    each, and how many members there are. WireError if one is of somebody else."""
    found: dict[int, T] = {}
    for node, summary in summaries.items():
        if node not in index:
            raise WireError(Reason.IMPLAUSIBLE, f"{node} was not in this view")
        found[index[node]] = read(summary, len(index))
    return found
