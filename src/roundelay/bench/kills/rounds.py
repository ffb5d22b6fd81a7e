"""What happens in each round of a soak, drawn before the first node is started.

The seed alone decides it; only the moments depend on how fast the machine is.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from roundelay.journal.policy import parse_policy


class Kind(StrEnum):
    """What befalls the nodes in a round."""

    MINORITY = "minority"
    ALL = "all"
    POWER = "power"
    WIPED = "wiped"
    DONORS = "donors"
    DAMAGED = "damaged"


WORDS: Mapping[Kind, str] = {
    Kind.MINORITY: "kill -9 of a minority, one node after the other",
    Kind.ALL: "kill -9 of all at once",
    Kind.POWER: "power cut of all: what was not synced is gone",
    Kind.WIPED: "kill -9 of a minority at once, whose disks are lost",
    Kind.DONORS: "a disk lost, and kill -9 of those that fill it again",
    Kind.DAMAGED: "kill -9 of one node, and damage in the middle of its journal",
}
DECK = (
    *[Kind.MINORITY] * 3,
    *[Kind.ALL] * 2,
    *[Kind.POWER] * 2,
    Kind.WIPED,
    Kind.DONORS,
    Kind.DAMAGED,
)
"""The kinds of so many rounds, in an order that is drawn anew each time: so even a short soak has
most of them."""


@dataclass(frozen=True, slots=True)
class Round:
    """What befalls whom."""

    kind: Kind
    victims: tuple[str, ...]
    """In the order in which they are killed. At most a minority of them loses what its disk holds,
    and only while all others have votes: else nobody could go on, ever."""
    alone: bool
    """Whether a majority must go on before the others come back."""
    again: bool
    """Whether one of the victims is killed once more, shortly after its start."""


def draw(nodes: Sequence[str], fsync: str, rounds: int, seed: int) -> list[Round]:
    """Rounds that break no promise of this policy: only `always` promises anything for a power cut
    of all nodes."""
    chance = random.Random(seed)
    survives_power = parse_policy(fsync).survives_power
    deck: list[Kind] = []
    drawn = []
    for _ in range(rounds):
        if not deck:
            deck = [kind for kind in DECK if kind != Kind.POWER or survives_power]
            chance.shuffle(deck)
        drawn.append(_round(chance, deck.pop(), nodes))
    return drawn


def _round(chance: random.Random, kind: Kind, nodes: Sequence[str]) -> Round:
    victims = list(nodes)
    chance.shuffle(victims)
    match kind:
        case Kind.MINORITY | Kind.WIPED:
            del victims[chance.randint(1, (len(nodes) - 1) // 2) :]
        case Kind.DONORS | Kind.DAMAGED:
            del victims[1:]
    return Round(kind, tuple(victims), chance.random() < 0.5, chance.random() < 0.3)
