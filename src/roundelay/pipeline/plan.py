"""What is to be judged of a run, and on which of its parts.

The parts are described in `slices`, which makes them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from roundelay.trace.manifest import Manifest

SLICE_ROWS = 40_000
"""Rows about messages in a slice, about. A slice costs a task some fifty megabytes."""

ALL_ROWS_MAX = 1_500_000
"""The largest run that is judged in one piece where a property cannot be split."""

VIEWS = frozenset({"M1", "M2", "M4", "M5", "M6", "M7", "M8", "M9", "M10", "L2", "L3", "E4"})
"""About views and crashes alone."""

MESSAGES = frozenset(
    {
        *("T3", "T4", "M3", "D1", "D2", "D3", "D4s", "D4e", "D4t", "D5", "D6", "D7", "D8", "D8u"),
        *("D9", "D10", "O3f", "S1", "S1d", "S2", "S3", "S4", "S6", "K2", "N3", "L1", "L4", "L6"),
        *("L7", "E3"),
    }
)
"""About one message at a time."""

PACKETS = frozenset({"D11", "E6"})
"""About one row at a time and the one it goes back to."""

KEYS = frozenset({"K1", "N2"})
"""About one key at a time."""

TOKENS = frozenset({"K3"})
"""About one moment at a time, and who has the token."""

LIFE = frozenset({"T2"})

SUSPECT = frozenset({"O1", "O3i", "O4", "O5", "O5p", "O6"})
"""Broken by a run if broken by the deliveries of some of its messages."""

COMMON = frozenset({"D7", "E3"})
"""Properties of `MESSAGES` whose premise is in the skeleton: every slice counts the same ones."""

FRAMES = frozenset({"E2"})
"""Properties that look at frames."""

TWO_LAYERS = frozenset({"L5", "E5"})
"""Properties that look at the layer below as well."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be judged of one run, and what its rows are like."""

    run: str
    manifest: Manifest | None
    names: tuple[str, ...]
    """Properties that are open."""
    layer: str
    """The layer that its profile speaks of."""
    message_rows: int
    token_rows: int
    places: int
    """Behind the last place of the total order."""
    total: bool
    layers: tuple[str, ...]
    """Of rows about messages."""
    processes: tuple[int, ...]
    claims: bool
    """Whether there is any claim of stability."""
    rings: bool
    """Whether everybody who tells of a token says of which ring it is."""
    frames: bool
    """Whether there are frames, which tell what came first where there is no total order."""
    whole_rows: int
    """Rows about messages up to which a run is judged in one piece."""
    suspects: tuple[tuple[int, int, int], ...] = ()
    """Blocks of keys in which something may be wrong."""

    @property
    def too_large(self) -> frozenset[str]:
        """Properties that need the whole run in one place, where that is too much."""
        if self.message_rows <= self.whole_rows:
            return frozenset()
        return frozenset(self.names) - VIEWS - MESSAGES - PACKETS - KEYS - self._tokens - LIFE

    def withholds(self, slice_: str) -> bool:
        """Whether a slice lacks frames that could change its verdicts."""
        return self.frames and not self.total and slice_ != "all"

    @property
    def _tokens(self) -> frozenset[str]:
        return TOKENS if self.total and self.rings else frozenset()

    @property
    def skipped(self) -> frozenset[str]:
        return skipped_layers(self.layers, self.layer)

    def slices(self, slice_rows: int) -> dict[str, list[str]]:
        """The slices to make, with the properties to be judged in each."""
        names = set(self.names)
        made: dict[str, list[str]] = {}

        def put(slice_: str, chosen: frozenset[str] | set[str]) -> None:
            found = [name for name in self.names if name in names and name in chosen]
            if found:
                made[slice_] = made.get(slice_, []) + found
                names.difference_update(found)

        put("life", LIFE)
        small = self.message_rows + self.token_rows <= slice_rows
        # Without a total order, what happened before what is known from the frames of the run.
        in_one = (small or not self.total) and self.message_rows <= self.whole_rows
        if not in_one:
            put("views", VIEWS)
            put("m", MESSAGES)
            put("p", PACKETS)
            put("k", KEYS)
            put("t", self._tokens)
        if not self.too_large:
            put("all", names)
        elif self.suspects:
            put("s", SUSPECT)
        return made


def skipped_layers(layers: Sequence[str], layer: str) -> frozenset[str]:
    """Layers whose rows about messages are not what a run is judged by: those that the model
    of the local checker leaves out."""
    found = set(layers)
    if layer in found:
        return frozenset(found - {layer})
    return frozenset({"net"} if found <= {"vs", "net"} else {"vs", "net"})
