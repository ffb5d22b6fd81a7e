"""Deliveries in transitional views: few, so that every one of them is a fact.

Some have no key: nobody is left to give them one. Such are *loose*. They come behind everything
that has a key of the same ring, and if they follow one order of their own, then so do all
deliveries together.
"""

from collections import Counter, defaultdict

from roundelay.check.acyclicity import find_cycle, follow_one
from roundelay.pipeline.proofs.intervals import Spans, merged
from roundelay.pipeline.proofs.views import Facts, Key, View, Views, regular, view_of

Message = tuple[int, int, int]
"""m_src, m_inc, m_seq."""
Owners = tuple[int, ...]
"""Nodes, sorted."""
Lists = dict[tuple[int, int, View], list[tuple[Message, Key]]]
"""By proc, inc and view: messages with their keys, in the order of delivery."""


def late_lists(facts: Facts) -> Lists:
    lists: Lists = defaultdict(list)
    for fact in facts["late"]:
        src, inc, first, last, keyed, k0, k1, k2, k3 = fact.v[4:]
        line = lists[*fact.life, view_of(fact.v)]
        for i in range(last - first + 1):
            line.append(((src, inc, first + i), (k0, k1, k2, k3 + i) if keyed else ()))
    return lists


def beginnings(lists: Lists, views: Views) -> int | None:
    """O6 in transitional views: how many deliveries follow a longer list; None if one does not, or
    if they were too many to be told."""
    told = {at: len(line) for at, line in lists.items()}
    if told != {at: stay.messages for at, stay in views.stays.items() if not regular(at[2])}:
        return None
    groups: dict[View, list[list[Message]]] = defaultdict(list)
    for (proc, inc, view), line in lists.items():
        entered = views.entered.get((proc, inc, view))
        if entered is None or entered.members is None or proc not in entered.members:
            return None
        groups[view].append([message for message, _ in line])
    if not all(map(follow_one, groups.values())):
        return None
    return sum(sum(map(len, group)) - max(map(len, group)) for group in groups.values())


def loose(facts: Facts, lists: Lists, views: Views) -> list[tuple[Owners, int]] | None:
    """Who has how many loose messages; None if they cannot be put behind all keys of their ring,
    or follow no one order there."""
    keyed = _keyed(facts)
    home: dict[Message, View] = {}
    lines: dict[View, list[list[Message]]] = defaultdict(list)
    owners: dict[Message, set[int]] = defaultdict(set)
    for (proc, inc, view), line in lists.items():
        entered = views.entered.get((proc, inc, view))
        if entered is None or entered.regular is None:
            return None
        ring = entered.regular
        keys = [key for _, key in line]
        if any(key and (not before or key[:2] != ring[:2]) for before, key in _steps(keys, ring)):
            return None
        found = [message for message, key in line if not key]
        for message in found:
            if _has(keyed[message[:2]], message[2]) or home.setdefault(message, ring) != ring:
                return None
            owners[message].add(proc)
        lines[ring].append(found)
    if any(find_cycle(group) for group in lines.values()):
        return None
    return list(Counter(tuple(sorted(nodes)) for nodes in owners.values()).items())


def _steps(keys: list[Key], ring: View) -> list[tuple[Key, Key]]:
    """Each key with the one before; the first with that of its ring."""
    return list(zip([ring, *keys], keys, strict=False))


def _keyed(facts: Facts) -> dict[tuple[int, ...], Spans]:
    spans: dict[tuple[int, ...], Spans] = defaultdict(list)
    for fact in facts["took"]:
        if fact.v[8]:
            spans[tuple(fact.v[4:6])].append((fact.v[6], fact.v[7]))
    return defaultdict(list, {sender: merged(group) for sender, group in spans.items()})


def _has(spans: Spans, number: int) -> bool:
    return any(first <= number <= last for first, last in spans)
