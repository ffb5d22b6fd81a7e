"""What the views of a run prove together with the order of its keys: O5w, O8 and O10."""

from collections import Counter, defaultdict
from itertools import pairwise

from roundelay.pipeline.expressions import BLOCK_KEYS
from roundelay.pipeline.proofs.views import Facts, Key, Life, View, Views, regular, view_of


def crashed(facts: Facts) -> frozenset[int]:
    """Who crashed and did not recover."""
    up = {fact.proc: fact.v[0] for fact in facts["life"]}
    return frozenset(proc for proc, alive in up.items() if not alive)


def restarted(facts: Facts) -> bool:
    """Whether anybody had a second life."""
    return any(alive for fact in facts["life"] for alive in fact.v)


# O5w.


def together(facts: Facts, views: Views) -> int | None:
    """How often nodes that move on together have messages in common; None if O6 says nothing
    of it.

    O6 implies O5w: what nodes deliver in a view are then beginnings of one sequence, so any of
    them agree, and two have in common as much as the shorter one has.
    """
    if views.static and restarted(facts):
        return None  # A life begins in the middle of the sequence.
    for (proc, *_), entered in views.entered.items():
        if entered.members is not None and proc not in entered.members:
            return None  # O6 does not bind it.
    groups: dict[tuple[View, object], list[int]] = defaultdict(list)
    ends = {proc: number for number, fact in enumerate(facts["end"]) for proc in fact.v}
    down = crashed(facts)
    last_life = dict(sorted(fact.life for fact in facts["writer"]))
    for life, path in views.paths().items():
        for one, next_ in pairwise(path):
            if stay := views.stay(life, one.view):
                groups[one.view, next_.view].append(stay.messages)
        stay = views.stay(life, path[-1].view)
        if stay and last_life[life[0]] == life[1] and life[0] in ends and life[0] not in down:
            groups[path[-1].view, ends[life[0]]].append(stay.messages)
    seconds = [sorted(group)[-2] for group in groups.values() if len(group) > 1]
    return sum(count for count in seconds if count > 1)


# O8.


def views_in_line(views: Views) -> int | None:
    """How many views two nodes or more have installed; None if some cannot be put in line.

    Everything is given a place: a message its key, a regular view the place before all keys of
    its own, and a transitional view the place behind the last key that was delivered before it.
    If that place is the same for all, and everybody goes upwards, then all go one way.
    """
    if views.static:
        return 0
    places: dict[View, tuple[View, Key]] = {}
    installed: dict[View, set[int]] = defaultdict(set)
    latest: dict[int, tuple[int, ...]] = {}
    for life, path in sorted(views.paths().items()):
        for before, one in pairwise([None, *path]):
            assert one is not None
            installed[one.view].add(life[0])
            if one.regular is None or not _own_keys(views, life, one.view, one.regular):
                return None
            if regular(one.view):
                if one.view[:2] <= latest.get(life[0], ()):
                    return None
                latest[life[0]] = one.view[:2]
                continue
            if before is None or not regular(before.view):
                return None
            stay = views.stay(life, before.view)
            place = (before.view, stay.high if stay else ())
            if places.setdefault(one.view, place) != place:
                return None
    return sum(1 for nodes in installed.values() if len(nodes) > 1)


def _own_keys(views: Views, life: Life, view: View, ring: View) -> bool:
    """Whether what a life delivered in a view has keys of that view."""
    stay = views.stay(life, view)
    if stay is None or stay.unkeyed == stay.messages:
        return stay is None or not regular(view)
    if stay.unkeyed:
        return not regular(view)  # Who looks at late deliveries sees to these.
    return not stay.turns and stay.low[:2] == ring[:2] == stay.high[:2]


# O10.


def contiguous(facts: Facts) -> int | None:
    """How often one key follows another within a regular view; None unless what lies between is
    known to be empty. The facts are about deliveries, or about confirmations; their keys climb."""
    if any(regular(view_of(fact.v)) and fact.v[8] for fact in facts["stay"]):
        return None  # Some have no key.
    if facts["leap"]:
        return None
    holes, empty = _bits(facts, "hole"), _bits(facts, "empty")
    if any(bits & ~empty[block] for block, bits in holes.items()):
        return None
    stays = [fact for fact in facts["stay"] if regular(view_of(fact.v))]
    count = sum(fact.v[5] - 1 - fact.v[9] for fact in stays)
    for one, next_ in pairwise(stays):
        (*ring, last, _), (*other, first) = one.v[13:17], next_.v[10:13]
        if one.proc != next_.proc or one.v[:4] != next_.v[:4] or ring != other:
            continue
        count += 1
        if not all(_is_empty(empty, (*ring, number)) for number in range(last + 1, first)):
            return None
    return count


_Blocks = Counter[tuple[int, ...]]


def _bits(facts: Facts, name: str) -> _Blocks:
    """Numbers as bits, by block."""
    blocks: _Blocks = Counter()
    for fact in facts[name]:
        words = b"".join(word.to_bytes(8, "little", signed=True) for word in fact.v[3:])
        blocks[tuple(fact.v[:3])] |= int.from_bytes(words, "little")
    return blocks


def _is_empty(empty: _Blocks, key: tuple[int, ...]) -> bool:
    *ring, number = key
    block, place = divmod(number, BLOCK_KEYS)
    return bool(empty[*ring, block] >> place & 1)
