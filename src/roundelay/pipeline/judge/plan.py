"""Which properties of a run are open, and on which of its slices they are judged."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from roundelay.pipeline.properties import BELOW, Slice, judged_also_on, judged_on
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import LOG_LAYER

SLICE_ROWS = 40_000
"""Rows about messages in a slice, about. A slice of this size costs a task some fifty megabytes;
smaller ones cost more time, since each has its own copy of the views."""

WHOLE_ROWS_MAX = 1_500_000
"""Rows about messages of the largest run that is judged in one piece. More would not fit into the
memory of a task; with fewer, more verdicts on large runs are `inconclusive`."""

SPLIT_SLICES = (
    *(Slice.VIEWS, Slice.LOSSES),
    *(Slice.MESSAGES, Slice.PACKETS, Slice.KEYS, Slice.DECISIONS),
    *(Slice.LOG, Slice.ENTRIES, Slice.SESSIONS),
)
"""What a run that is not judged in one piece is split into, besides the token."""


@dataclass(frozen=True, slots=True)
class CheckPlan:
    """What is to be judged of one run, and what its rows are like."""

    run: str
    manifest: Manifest | None
    names: tuple[str, ...]
    """The properties that are open."""
    layer: str
    """The layer that its profile is about."""
    message_rows: int
    """Rows about messages."""
    token_rows: int
    places: int
    """One more than the last place of a row in the total order."""
    total: bool
    """Whether the rows of all nodes have one total order."""
    layers: tuple[str, ...]
    """The layers of rows about messages."""
    processes: tuple[int, ...]
    claims: bool
    """Whether there is any claim of stability."""
    rings: bool
    """Whether every row about a token names the ring of that token."""
    frames: bool
    """Whether there are frames, which tell what came first where there is no total order."""
    whole_rows: int
    """Rows about messages up to which a run is judged in one piece."""
    suspects: tuple[tuple[int, int, int], ...] = ()
    """Blocks of keys in which something may be wrong."""
    accused: tuple[tuple[int, int, int], ...] = ()
    """Messages about which something may be wrong."""
    gap: tuple[tuple[int, int, int], ...] = ()
    """Blocks of keys around a number that was left out."""

    @property
    def too_large(self) -> frozenset[str]:
        """Open properties that need the whole run in one place, where the run is too large."""
        if self.message_rows <= self.whole_rows:
            return frozenset()
        whole = judged_on(Slice.WHOLE)
        if not self._splits_tokens:
            whole |= judged_on(Slice.TOKENS)
        return whole & frozenset(self.names)

    def withholds(self, slice_: Slice) -> bool:
        """Whether a slice lacks frames that could change its verdicts."""
        return self.frames and not self.total and slice_ is not Slice.WHOLE

    @property
    def _splits_tokens(self) -> bool:
        """Whether rows about the token can be split by time, ring by ring."""
        return self.total and self.rings

    @property
    def skipped(self) -> frozenset[str]:
        return skipped_layers(self.layers, self.layer)

    def slices(self, slice_rows: int) -> dict[Slice, list[str]]:
        """The slices to make, with the properties to be judged in each."""
        left = set(self.names)
        made: dict[Slice, list[str]] = {}

        def judge_on(slice_: Slice, chosen: AbstractSet[str]) -> None:
            found = [n for n in self.names if n in left and n.removeprefix(BELOW) in chosen]
            if found:
                made[slice_] = found
                left.difference_update(found)

        judge_on(Slice.LIVES, judged_on(Slice.LIVES))
        small = self.message_rows + self.token_rows <= slice_rows
        # Without a total order, what happened before what is known from the frames of the run.
        in_one = (small or not self.total) and self.message_rows <= self.whole_rows
        if not in_one:
            for slice_ in SPLIT_SLICES:
                judge_on(slice_, judged_on(slice_))
                if again := [n for n in self.names if n in judged_also_on(slice_)]:
                    made[slice_] = [*made.get(slice_, ()), *again]
            if self._splits_tokens:
                judge_on(Slice.TOKENS, judged_on(Slice.TOKENS))
        if not self.too_large:
            judge_on(Slice.WHOLE, {name.removeprefix(BELOW) for name in left})
        else:
            if self.suspects or self.accused:
                judge_on(Slice.SUSPECTS, judged_on(Slice.SUSPECTS))
            if self.gap:
                judge_on(Slice.GAPS, judged_on(Slice.GAPS))
        return made


def skipped_layers(layers: AbstractSet[str] | tuple[str, ...], layer: str) -> frozenset[str]:
    """Layers whose rows about messages are not what a run is judged by: those that the model
    of the local checker leaves out."""
    found = set(layers) - {LOG_LAYER}
    if layer in found:
        return frozenset(found - {layer})
    return frozenset({"net"} if found <= {"vs", "net"} else {"vs", "net"})
