"""Goals of ATOP: slots that are skipped, distributions that change, and what dummies fill."""

from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from roundelay.core.ids import ViewId
from roundelay.protocols.atop.atom import Tag
from roundelay.protocols.atop.atop import SLOT_BITS
from roundelay.protocols.atop.slots import owners
from roundelay.sim.coverage.evidence import Evidence, Life, life, view
from roundelay.sim.coverage.links import first_sent

Distribution = tuple[ViewId, int]
"""A distribution in its view."""


class Used(NamedTuple):
    """What became of a member's slots, up to the last one in which anything was delivered."""

    owned: int
    """How many there were."""
    filled: int
    """How many slots it filled with all that it sent."""
    moved_on: bool
    """Whether it sent anything in a later distribution."""


def slot_skipped(run: Evidence) -> bool:
    """A slot is skipped, since its owner has gone on to a newer distribution."""
    return any(used.owned > used.filled and used.moved_on for _, used in _slots(run))


def skipped_at_the_end(run: Evidence) -> bool:
    """A view ends, and slots are skipped that their owners might still have filled."""
    return any(used.owned > used.filled and not used.moved_on for _, used in _slots(run))


def _slots(run: Evidence) -> Iterator[tuple[tuple[Distribution, int], Used]]:
    """By distribution and member, what became of the member's slots."""
    sent: dict[tuple[Distribution, int], int] = defaultdict(int)
    newest: dict[tuple[ViewId, int], int] = defaultdict(int)
    weights: dict[Distribution, tuple[int, ...]] = {}
    for of, sender, tag in _tags(run):
        sent[(of, tag.distribution), sender] += tag.count
        newest[of, sender] = tag.distribution
        if tag.weights is not None:
            weights[of, tag.distribution] = tag.weights
    for (of, number), last in _last_slots(run).items():
        size = len(run.members(of))
        owner = owners(of.seq, number, weights.get((of, number), (1,) * size))
        owned = [0] * size
        for slot in range(last + 1):
            owned[owner(slot)] += 1
        for member in range(size):
            key = (of, number), member
            yield key, Used(owned[member], sent[key], newest[of, member] > number)


def _last_slots(run: Evidence) -> dict[Distribution, int]:
    """By distribution: the last slot in which anything was delivered, in views of several."""
    last: dict[Distribution, int] = {}
    for delivery in run.deliveries:
        of, place = delivery.ordered, delivery.place
        if of is not None and place is not None and len(run.members(of)) > 1:
            distribution, slot = place >> SLOT_BITS, place & ((1 << SLOT_BITS) - 1)
            last[of, distribution] = max(last.get((of, distribution), 0), slot)
    return last


def _tags(run: Evidence) -> Iterator[tuple[ViewId, int, Tag]]:
    """Views, senders and tags of contents, in the order in which they were first sent."""
    for sent in first_sent(run):
        assert sent.view is not None
        yield sent.view, sent.message.sender, sent.message.content.tag


def distribution_changed(run: Evidence) -> bool:
    """While a view lasts, a member delivers what was sent with a newer distribution."""
    steps: dict[tuple[Life, int | None, int | None], set[int | None]] = defaultdict(set)
    for row in run.kinds["deliver"]:
        if row.k2 is not None and row.k2 >> SLOT_BITS:
            # At the end of a view all is delivered in one step: two show that it lasted.
            steps[life(row), row.k0, row.k1].add(row.cause)
    return any(len(causes) > 1 for causes in steps.values())


def distribution_passed_over(run: Evidence) -> bool:
    """A member goes on to a newer distribution, and never sends with the one between."""
    last: dict[tuple[ViewId, int], int] = defaultdict(int)
    for of, sender, tag in _tags(run):
        if tag.distribution > last[of, sender] + 1:
            return True
        last[of, sender] = tag.distribution
    return False


def learned_late(run: Evidence) -> bool:
    """A member sends with an old distribution when another has sent with a newer one."""
    newest: dict[ViewId, int] = defaultdict(int)
    for of, _, tag in _tags(run):
        if tag.distribution < newest[of]:
            return True
        newest[of] = tag.distribution
    return False


def packed_dummy(run: Evidence) -> bool:
    """A dummy fills several slots of its sender."""
    return any(tag.count > 1 for _, _, tag in _tags(run))


def switched_by_a_dummy(run: Evidence) -> bool:
    """A member that has nothing to send tells by a dummy that it uses the new distribution."""
    return any(
        sent.message.content.packet is None and sent.message.content.tag.weights is not None
        for sent in first_sent(run)
    )


# How an old view ends


def ends_in_a_change(run: Evidence) -> bool:
    """A view ends when some members use a newer distribution than others."""
    newest: dict[tuple[int, int], dict[int, int]] = defaultdict(partial(defaultdict, int))
    sizes: dict[tuple[int, int], int] = {}
    for of, sender, tag in _tags(run):
        place = (of.seq, run.number(of.rep))
        newest[place][sender] = tag.distribution
        sizes[place] = len(run.members(of))
    for before, _ in run.steps:
        assert before.c_seq is not None
        assert before.c_rep is not None
        place = (before.c_seq, before.c_rep)
        if len({newest[place][member] for member in range(sizes.get(place, 0))}) > 1:
            return True
    return False


def dummy_partly_used(run: Evidence) -> bool:
    """A view ends when a member has used some slots of a dummy and needs no others."""
    weights = {(of, tag.distribution): tag.weights for of, _, tag in _tags(run) if tag.weights}
    last: dict[tuple[Life, Distribution], int] = defaultdict(int)
    for delivery in run.deliveries:
        if delivery.ordered is not None and delivery.place is not None:
            distribution = (delivery.ordered, delivery.place >> SLOT_BITS)
            last[delivery.life, distribution] = delivery.place & ((1 << SLOT_BITS) - 1)
    left = {(life(before), view(before)) for before, _ in run.steps}
    for row in run.kinds["arrive"]:
        sent = run.frame(row)
        if row.tag != "DATA" or sent.message.content.tag.count == 1:
            continue
        assert sent.view is not None
        tag = sent.message.content.tag
        distribution = (sent.view, tag.distribution)
        if (life(row), (sent.view.seq, run.number(sent.view.rep))) not in left:
            continue
        shares = weights.get(distribution, (1,) * len(run.members(sent.view)))
        owner = owners(sent.view.seq, tag.distribution, shares)
        slots = range(last[life(row), distribution] + 1)
        used = sum(owner(slot) == sent.message.sender for slot in slots)
        if tag.number < used < tag.number + tag.count:
            return True
    return False


def half_told(run: Evidence) -> bool:
    """The book-keeper crashes when one other member has heard of its last distribution."""
    crashed = {life(row) for row in run.kinds["crash"]}
    last: dict[Life, Distribution] = {}
    for sent in first_sent(run):
        if sent.message.sender == 0:  # The book-keeper is the first member of its view.
            assert sent.view is not None
            keeper = (run.number(sent.frame.sender), sent.frame.incarnation)
            last[keeper] = (sent.view, sent.message.content.tag.distribution)
    told: dict[Distribution, set[Life]] = defaultdict(set)
    for row in run.kinds["arrive"]:
        if row.tag == "DATA":
            sent = run.frame(row)
            assert sent.view is not None
            told[sent.view, sent.message.content.tag.distribution].add(life(row))
    return any(
        keeper in crashed and distribution[1] > 0 and len(told[distribution] - {keeper}) == 1
        for keeper, distribution in last.items()
    )


ALWAYS = (
    slot_skipped,
    distribution_changed,
    distribution_passed_over,
    learned_late,
    packed_dummy,
    switched_by_a_dummy,
)
IN_VIEWS = (skipped_at_the_end, ends_in_a_change, dummy_partly_used, half_told)
