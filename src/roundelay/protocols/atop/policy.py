"""Policies: who says with which weights the members of a view share its slots.

A policy hears of every packet that the link hands up: a packet takes one slot, however many
messages it holds. The *book-keeper*, the first member of the view, counts who sends how much, and
proposes new weights when the shares have changed. The policy *given* proposes once what its user
wrote.
"""

from collections import deque
from typing import Protocol

from roundelay.core.ids import NodeId, View
from roundelay.core.value import value
from roundelay.protocols.atop.slots import WEIGHT_RATIO_MAX, Weights


class Policy(Protocol):
    """What proposes weights in one view, at one member."""

    def observe(self, sender: int) -> None:
        """A packet of a member was handed up."""
        ...

    def propose(self) -> Weights | None:
        """New weights, if they are due: asked once at the start of the view and once in every
        period with traffic."""
        ...


class Silent:
    """Proposes nothing: the policy of all members but the one that decides."""

    def observe(self, sender: int) -> None:
        """Nothing is counted."""

    def propose(self) -> Weights | None:
        return None


class BookKeeper:
    """Counts the last packets of the view, and proposes weights by what each member sent.

    The weight of a member is `scale` for each of its packets, and 1 more, so that one that sends
    nothing keeps a few slots.
    """

    def __init__(self, members: int, factor: int, scale: int, threshold_permille: int) -> None:
        self._size = factor * members
        self._scale = scale
        self._threshold_permille = threshold_permille
        self._recent: deque[int] = deque()
        self._counts = [0] * members
        self._last: Weights = (1,) * members

    def observe(self, sender: int) -> None:
        self._recent.append(sender)
        self._counts[sender] += 1
        if len(self._recent) > self._size:
            self._counts[self._recent.popleft()] -= 1

    def propose(self) -> Weights | None:
        if len(self._recent) < self._size:
            return None
        weights = tuple(self._scale * count + 1 for count in self._counts)
        weights = tuple(max(w, -(-max(weights) // WEIGHT_RATIO_MAX)) for w in weights)
        mine, last = sum(weights), sum(self._last)
        difference = sum(abs(w * last - v * mine) for w, v in zip(weights, self._last, strict=True))
        if difference * 1000 <= self._threshold_permille * mine * last:
            return None
        self._last = weights
        return weights


class Given:
    """Proposes weights once: those that the user gave."""

    def __init__(self, weights: Weights) -> None:
        self._weights: Weights | None = weights

    def observe(self, sender: int) -> None:
        """Nothing is counted."""

    def propose(self) -> Weights | None:
        weights, self._weights = self._weights, None
        return weights if weights is not None and len({*weights}) > 1 else None


@value
class GivenWeights:
    """Weights by name, as a user writes them: `a:20,b:5`. Members that are not named have 1."""

    by_name: tuple[tuple[NodeId, int], ...]

    @classmethod
    def parse(cls, text: str) -> "GivenWeights":
        """ValueError, for the user, if it is not a list of names and weights."""
        pairs: dict[NodeId, int] = {}
        for word in text.split(","):
            name, colon, number = word.strip().rpartition(":")
            if not colon or not name or not number.isdecimal():
                raise ValueError(f"weights={text}: write names and weights, like weights=a:20,b:5")
            if name in pairs:
                raise ValueError(f"weights={text} names {name!r} twice")
            if not 1 <= int(number) <= WEIGHT_RATIO_MAX:
                raise ValueError(f"weights={text}: a weight is between 1 and {WEIGHT_RATIO_MAX}")
            pairs[name] = int(number)
        return cls(tuple(pairs.items()))

    def of(self, view: View) -> Weights:
        """The weights of the members of a view."""
        named = dict(self.by_name)
        return tuple(named.get(member, 1) for member in view.members)
