"""H3 and H4: locks whose tokens grow, and items of queues that are done once.

A holder that was cut off may believe for a while that it holds a lock which another has already:
only its token tells. So what is judged is what the log confirmed: tokens, and the holds whose
release was confirmed, which were held up to that release.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Any

from roundelay.check.histories.history import Judgement, Operation
from roundelay.check.verdict import Validity


@dataclass(frozen=True, slots=True)
class Holding:
    """A turn that a client got."""

    client: str
    asked: float
    got: float
    token: int
    gave: float | None = None
    """When it called to give it back; None if it never did."""
    confirmed: bool = False
    """Whether it was told that it had held the turn up to then."""
    lost: float | None = None
    """When it was told that it may have lost the turn; None if it never was."""
    source: tuple[Any, ...] = field(default=(), compare=False, repr=False)
    """As that of an operation."""

    def believes(self, moment: float) -> bool:
        """Whether its client takes itself for the holder then."""
        return all(end is None or end > moment for end in (self.gave, self.lost))


@dataclass(frozen=True, slots=True)
class Taking:
    """An item that a client took from a queue."""

    client: str
    item: int
    asked: float
    got: float
    token: int
    ended: float | None = None
    """When it called to end the work or to give it back, or when its node was lost; None: never."""
    done: bool = False
    """Whether it was told that the item is done by it."""
    lost: bool = False
    """Whether its node ended, or was cut off, at `ended` or some time after it got the item."""
    source: tuple[Any, ...] = field(default=(), compare=False, repr=False)
    """As that of an operation."""


def fenced(holdings: Sequence[Holding], limit: int = 1, *, clock: bool = True) -> Judgement:
    """Tokens of one lock, or of a semaphore with this limit. `clock` says whether times can be
    compared; if not, all that shows is whether a token was given twice."""
    if not holdings:
        return Judgement("H3", Validity.VACUOUS, reason="nobody held it")
    by_token: dict[int, Holding] = {}
    for holding in holdings:
        other = by_token.setdefault(holding.token, holding)
        if other is not holding:
            return _judge(
                "H3", holdings, f"the token {holding.token} was given twice", other, holding
            )
    if not clock:
        return Judgement("H3", Validity.OK, len(holdings))
    latest: Holding | None = None
    at, by_got = 0, sorted(holdings, key=lambda holding: holding.got)
    for holding in sorted(holdings, key=lambda holding: holding.asked):
        while at < len(by_got) and by_got[at].got < holding.asked:
            if latest is None or by_got[at].token > latest.token:
                latest = by_got[at]
            at += 1
        if latest is not None and latest.token > holding.token:
            reason = "the second was asked for after the first was got, and has a smaller token"
            return _judge("H3", holdings, reason, latest, holding)
    return _at_once(holdings, limit) or Judgement("H3", Validity.OK, len(holdings))


def _at_once(holdings: Sequence[Holding], limit: int) -> Judgement | None:
    """Confirmed holds lasted from `got` to `gave` at least. A later one that was got before an
    earlier one was given back was got while that one was held."""
    for holding in holdings:
        others = [
            other
            for other in holdings
            if other.confirmed
            and other.gave is not None
            and other.token < holding.token
            and other.got < holding.got < other.gave
        ]
        if len(others) >= limit:
            reason = f"it was got while {limit} held it, as was confirmed to them later"
            return _judge("H3", holdings, reason, *others, holding)
    return None


def warned(
    holdings: Sequence[Holding], awake: Callable[[Holding, float], bool], late_s: float = 0.0
) -> Judgement:
    """Whether holders of one lock were told before another got it, or so little later that their
    notes may be late. `awake` says whether the process of a holder ran at a moment and for long
    enough before: who was stopped could not be told."""
    in_order = sorted(holdings, key=lambda holding: holding.token)
    count = 0
    for holding, following in pairwise(in_order):
        if holding.gave is None or holding.gave > following.got:
            count += 1
            moment = following.got + late_s
            if holding.believes(moment) and awake(holding, moment):
                reason = "the second got it while the first was not told that it had lost it"
                return _judge("H3", holdings, reason, holding, following)
    return Judgement("H3", Validity.OK, count)


def done_once(takings: Sequence[Taking], *, clock: bool = True) -> Judgement:
    """Items of one queue. `clock` says whether times can be compared."""
    if not takings:
        return Judgement("H4", Validity.VACUOUS, reason="nothing was taken")
    for item, group in groupby(sorted(takings, key=lambda t: (t.item, t.token)), lambda t: t.item):
        of_item = list(group)
        finished = [taking for taking in of_item if taking.done]
        if len(finished) > 1:
            return _judge("H4", takings, f"item {item} was done twice", *finished)
        for earlier, later in pairwise(of_item):
            if earlier.token == later.token:
                reason = f"item {item} was taken twice with one token"
            elif earlier.done:
                reason = f"item {item} was taken again after it was done"
            elif clock and _had(earlier, later.got):
                reason = f"item {item} was taken again while somebody had it"
            else:
                continue
            return _judge("H4", takings, reason, earlier, later)
    return Judgement("H4", Validity.OK, len(takings))


def _had(taking: Taking, moment: float) -> bool:
    """Whether nobody else can have been given the item yet."""
    return not taking.lost and (taking.ended is None or taking.ended > moment)


def _judge(
    name: str,
    judged: Sequence[Holding] | Sequence[Taking],
    reason: str,
    *shown: Holding | Taking,
) -> Judgement:
    witness = tuple(_operation(one) for one in shown)
    return Judgement(name, Validity.VIOLATED, len(judged), witness, reason)


def _operation(shown: Holding | Taking) -> Operation:
    key = str(shown.item) if isinstance(shown, Taking) else ""
    op = "take" if isinstance(shown, Taking) else "acquire"
    return Operation(shown.client, key, op, None, shown.asked, shown.got, shown.token,
                     source=shown.source)  # fmt: skip
