"""How each property is decided on Spark: one declaration for every property, all in one place.

A property has a *slice*: the parts of a run on which the local checker's own function judges it,
one part at a time, so that together they give the verdict on the run. A property whose slice is the
whole run is judged only where the run fits into one task; `judge.plan` has the limit.

A property may have a *proof* too, which shows that a run of any size keeps it, or proves nothing.
What is proved is not judged.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Slice(StrEnum):
    """Parts of a run; `judge.slices` makes them. The value begins the name of such a part."""

    NONE = "-"
    """Not judged on rows at all."""
    WHOLE = "all"
    """The whole run in one piece: nobody knows how to split it for this property."""
    MESSAGES = "m"
    """Some messages with all their rows, split by a hash of the message."""
    PACKETS = "p"
    """Some rows as they are written, each about one or more messages, split by a hash."""
    KEYS = "k"
    """Assignments and confirmations of some order keys, split by a hash of the key."""
    DECISIONS = "d"
    """Decisions and confirmations of some numbers, with the first later decision of every node."""
    TOKENS = "t"
    """What happened to the token in a stretch of the total order."""
    SUSPECTS = "s"
    """Messages in blocks of keys in which the proofs found something odd, and other messages that
    they accuse, with all their rows."""
    GAPS = "g"
    """What has keys in a range in which the proofs found a number left out."""
    VIEWS = "views"
    """Views, crashes, faults and the end of the run, without any row about a message."""
    LOG = "log"
    """What nodes knew of their replicated logs: all of its rows that are about no entry, with the
    last entry that every life of a node wrote, and operations on objects."""
    ENTRIES = "e"
    """The entries of the log at some indexes, in blocks that are split by a hash, with what is
    known to be committed."""
    SESSIONS = "i"
    """Entries of some sessions and what was appended in them, split by a hash, with the same."""
    LIVES = "life"
    """The same with the first and the last row of every life of a node."""
    LOSSES = "lost"
    """The same with the first decision of each node that was lost on its way to each other one."""


class Proof(StrEnum):
    """How a property is shown to hold without judging it."""

    NONE = "-"
    FACTS = "facts"
    """From the facts of a run, whatever its size."""
    IMPLIED = "other properties"
    """From facts and from other properties that hold; for runs too large for one piece."""
    JOIN = "a join"
    """From a join of rows with rows; for runs too large for one piece."""
    PARTS = "its parts"
    """From verdicts on what it consists of; for runs too large for one piece. This can convict
    too."""
    COUNTS = "counts of rows"
    """From how many rows each node wrote; this can convict too."""


@dataclass(frozen=True, slots=True)
class Method:
    """How one property is decided."""

    slice: Slice
    proof: Proof = Proof.NONE
    module: str = ""
    """The module of the pipeline that has the proof, and says why it is one."""
    suspects: bool = False
    """Whether a run breaks it if the deliveries of some of its messages do: then a run too large
    for one piece can be convicted by its suspect messages, though not acquitted."""
    gaps: bool = False
    """Whether a run breaks it if what has keys in some range does: the same, by gaps."""
    counted_once: bool = False
    """Whether every slice counts the same instances, since all of them have the views."""
    frames: bool = False
    """Whether it looks at frames."""
    two_layers: bool = False
    """Whether it looks at the messages of the layer below as well."""
    also: Slice = Slice.NONE
    """Where one way to split a run does not bring together all that belongs together, another one
    on which the property is judged as well. Its instances are counted on the first."""


def _each(names: str, method: Method) -> dict[str, Method]:
    return dict.fromkeys(names.split(), method)


METHODS: Mapping[str, Method] = {
    "T1": Method(Slice.NONE, Proof.COUNTS, "judge/completeness"),
    "T2": Method(Slice.LIVES),
    **_each("M1 M2 M4 M5 M6 M7 M8 M9 M10 L2 L3 E4", Method(Slice.VIEWS)),
    **_each("T3 T4 M3 D1 D3 D4s D4e D4t D5 D6 D8 D8u D9 D10", Method(Slice.MESSAGES)),
    **_each("S1 S1d S2 S3 S4 S6 S7 K2 N3 L1 L4 L6 L7", Method(Slice.MESSAGES)),
    "E3": Method(Slice.MESSAGES, counted_once=True),
    **_each("D2 O3f", Method(Slice.MESSAGES, Proof.FACTS, "proofs/stitch")),
    "D7": Method(Slice.MESSAGES, Proof.FACTS, "proofs/stitch", counted_once=True),
    **_each("D11 E6", Method(Slice.PACKETS)),
    **_each("K1 N2", Method(Slice.KEYS)),
    "K3": Method(Slice.TOKENS),
    **_each(
        "O1 O3i O4 O5 O5p O6",
        Method(Slice.WHOLE, Proof.FACTS, "proofs/stitch", suspects=True),
    ),
    "O8": Method(Slice.WHOLE, Proof.FACTS, "proofs/view_order", suspects=True),
    "O10": Method(Slice.WHOLE, Proof.FACTS, "proofs/view_order", gaps=True),
    "O5w": Method(Slice.WHOLE, Proof.IMPLIED, "proofs/view_order", suspects=True),
    **_each(
        "O1r O2 O2r O9 O11", Method(Slice.WHOLE, Proof.IMPLIED, "proofs/causality", suspects=True)
    ),
    **_each("S5 K4", Method(Slice.WHOLE, Proof.JOIN, "judge/joins", suspects=True)),
    "N1": Method(Slice.KEYS, also=Slice.MESSAGES),
    "N4": Method(Slice.DECISIONS),
    "E1": Method(Slice.WHOLE),
    "E2": Method(Slice.LOSSES, frames=True),
    "J1": Method(Slice.ENTRIES),
    **_each("J2 J11 L8", Method(Slice.SESSIONS)),
    **_each("J3 J8 J10 H1 H2 H3 H4", Method(Slice.WHOLE)),
    **_each("J4 J5 J6 J7 J9 J12 L9", Method(Slice.LOG)),
    "L5": Method(Slice.MESSAGES, two_layers=True),
    "E5": Method(Slice.WHOLE, Proof.PARTS, "judge/layer_below", two_layers=True),
}
"""By the name of the property; `tests/pipeline/test_properties.py` sees that none is missing."""


BELOW = "below/"
"""What the name of a property begins with if it is judged in the layer below the ordering. Both
layers have the same slices."""


def judged_on(slice_: Slice) -> frozenset[str]:
    """The properties that are judged on these parts of a run, and counted there."""
    if slice_ is Slice.SUSPECTS:
        return frozenset(name for name, method in METHODS.items() if method.suspects)
    if slice_ is Slice.GAPS:
        return frozenset(name for name, method in METHODS.items() if method.gaps)
    return frozenset(name for name, method in METHODS.items() if method.slice is slice_)


def judged_also_on(slice_: Slice) -> frozenset[str]:
    """The properties that are judged on these parts of a run, and counted on others."""
    return frozenset(name for name, method in METHODS.items() if method.also is slice_)


COUNTED_ONCE = frozenset(name for name, method in METHODS.items() if method.counted_once)
FRAMES = frozenset(name for name, method in METHODS.items() if method.frames)
TWO_LAYERS = frozenset(name for name, method in METHODS.items() if method.two_layers)


def needs_lower_layer(name: str) -> bool:
    """Whether a property looks at the messages of the layer below."""
    return name in TWO_LAYERS or name.startswith(BELOW)
