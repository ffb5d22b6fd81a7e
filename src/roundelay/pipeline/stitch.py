"""Stitching: the facts of a run put together, and what they prove.

The facts of a node's segments are put in the order of their rows: the last key of one must be
smaller than the first key of the next, and so on. Then, for a run:

    D2, O1    the messages of every sender climb in every history; so none comes twice
    O4        so do the keys
    O3f, O3i  a block of keys that is the same at all who have it holds the same messages at the
              same keys. A message could still be in two such blocks, but then nobody has both.
              The few other blocks, at the edges of crashes and partitions, are left to `edges`
    O6        a node that goes further in a view than a block has the whole block
    D7        all that go from one view to the same next one have one fingerprint

What is not proved is open, not broken: facts only say where something may be wrong, in which blocks
of keys. Instances are counted as the local checker counts them.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import NamedTuple

from roundelay.pipeline.facts import BLOCK_KEYS
from roundelay.pipeline.writers import Log

View = tuple[int, ...]
"""c_seq, c_rep, c_kind."""
Key = tuple[int, ...]
"""k0, k1, k2, k3."""
Block = tuple[int, int, int]
"""k0, k1, number."""
Owners = tuple[int, ...]
"""Nodes, sorted."""

SUSPECTS_MAX = 40
"""Blocks of a run that are looked at to convict it."""

NOWHERE: View = ()
"""The view of rows that name none, and of a static group."""


class Fact(NamedTuple):
    """A row of facts."""

    fact: str
    proc: int
    inc: int
    first: int
    v: list[int]


@dataclass(slots=True)
class Stitched:
    """One run."""

    logs: list[Log] = field(default_factory=list)
    deliveries: int = 0
    steps: int = 0
    """From one delivery of a node to its next."""
    proved: dict[str, int] = field(default_factory=dict)
    """By property, how often its premise occurred."""
    edges: list[Block] = field(default_factory=list)
    """Blocks to be compared message by message, before anything is known of O3, O5 and O6."""
    classes: list[tuple[Owners, int]] = field(default_factory=list)
    """Of all other blocks: who has them, and how many messages they hold."""
    places: int | None = None
    """Instances of O6, if only the edges can tell whether it holds; None if it is open."""
    suspects: list[Block] = field(default_factory=list)
    """Blocks in which something is wrong, if anywhere: enough of them to convict."""
    lasts: list[tuple[View, int, Key]] = field(default_factory=list)
    """How far each node got in each view that O6 is about."""


def stitch(facts: Iterable[Fact]) -> Stitched:
    """What the facts of a run say together."""
    by_fact: dict[str, list[Fact]] = defaultdict(list)
    for fact in facts:
        by_fact[fact.fact].append(fact)
    for group in by_fact.values():
        group.sort(key=lambda fact: (fact.proc, fact.inc, fact.first, fact.v))
    run = Stitched(logs=list(_logs(by_fact["writer"])))
    climbs = _histories(run, by_fact["order"])
    unique = _senders(run, by_fact["source"])
    installs = by_fact["install"]
    stays = _stays(by_fact["stay"], static=not installs)
    placed = _placed(installs, stays)
    if climbs and unique and run.deliveries:
        run.proved["O4"] = run.steps
        _blocks(run, by_fact["block"])
        if placed:
            _reach(run, installs, stays, by_fact["block"])
    if unique and placed and run.deliveries:
        _moves(run, installs, stays)
    if not (climbs and unique):
        run.suspects = _suspects(by_fact)
    return run


def _suspects(by_fact: dict[str, list[Fact]]) -> list[Block]:
    """Blocks from one side of a fall to the other, and blocks that differ between nodes."""
    falls = [(fact.v[:3], fact.v[3:6]) for fact in by_fact["fall"]]
    for one, next_ in pairwise(by_fact["order"]):
        if one.proc == next_.proc and one.v[9:13] >= next_.v[5:9]:
            falls.append((one.v[9:12], next_.v[5:8]))
    for one, next_ in pairwise(sorted(by_fact["source"], key=lambda f: (f.proc, f.v[0], f.inc))):
        if (one.proc, one.v[0]) == (next_.proc, next_.v[0]) and one.v[6:8] >= next_.v[4:6]:
            falls.append((one.v[11:14], next_.v[8:11]))
    blocks: dict[Block, None] = {}
    for sides in falls:
        low, high = sorted(_block_of(tuple(side)) for side in sides)
        near = range(low[2], high[2] + 1) if low[:2] == high[:2] else ()
        if len(near) <= SUSPECTS_MAX:
            blocks.update(((*low[:2], number), None) for number in near)
        blocks.update({low: None, high: None})
    scratch = Stitched()
    _blocks(scratch, by_fact["block"])
    blocks.update(dict.fromkeys(scratch.edges))
    return list(blocks)[:SUSPECTS_MAX]


def _logs(facts: list[Fact]) -> Iterator[Log]:
    lives: dict[tuple[int, int], list[Fact]] = defaultdict(list)
    for fact in facts:
        lives[fact.proc, fact.inc].append(fact)
    for (proc, inc), parts in sorted(lives.items()):
        expected, missing, first_missing, repeated = 0, 0, -1, 0
        disorder = 0
        place: int | None = None
        for part in parts:
            last, _, holes, first_hole, again, _, falls, first_place, last_place, _ = part.v
            if part.first > expected:
                missing += part.first - expected
                first_missing = expected if first_missing < 0 else first_missing
            if holes and first_missing < 0:
                first_missing = first_hole
            missing += holes
            repeated += again + (part.first < expected)
            disorder += falls + (place is not None and place >= first_place)
            expected, place = max(expected, last + 1), last_place
        yield Log(
            proc,
            inc,
            rows=sum(part.v[1] for part in parts),
            missing=missing,
            first_missing=max(first_missing, 0),
            repeated=repeated,
            ordered=not disorder,
            unplaced=sum(part.v[5] for part in parts),
            message_rows=sum(part.v[9] for part in parts),
        )


def _tangled(one: Fact, next_: Fact, last: int) -> bool:
    """Whether rows of one life overlap that lie in two files: then their order is another one."""
    return one.inc == next_.inc and last >= next_.first


def _histories(run: Stitched, facts: list[Fact]) -> bool:
    """Whether every delivery has a key and keys climb in every history."""
    run.deliveries = sum(fact.v[2] for fact in facts)
    climbs = not any(fact.v[3] or fact.v[4] for fact in facts)
    for one, next_ in pairwise(facts):
        if one.proc == next_.proc:
            climbs &= one.v[9:13] < next_.v[5:9] and not _tangled(one, next_, one.v[0])
    run.steps = run.deliveries - len({fact.proc for fact in facts})
    return climbs


def _senders(run: Stitched, facts: list[Fact]) -> bool:
    """Whether the messages of every sender climb in every history."""
    paths: dict[tuple[int, int], list[Fact]] = defaultdict(list)
    for fact in facts:
        paths[fact.proc, fact.v[0]].append(fact)
    unique = not any(fact.v[3] for fact in facts)
    for path in paths.values():
        for one, next_ in pairwise(path):
            unique &= one.v[6:8] < next_.v[4:6] and not _tangled(one, next_, one.v[1])
    if unique and facts:
        sent = {at: path for at, path in paths.items() if at[1] >= 0}
        pairs = sum(sum(fact.v[2] for fact in path) - 1 for path in sent.values())
        run.proved |= {"D2": run.deliveries, "O1": pairs}
    return unique


# Keys.

_Print = tuple[int, int, int]
"""Messages, and a fingerprint in two parts."""


def _added(one: _Print, messages: int, first: int, second: int) -> _Print:
    return one[0] + messages, one[1] ^ first, one[2] ^ second


def _blocks(run: Stitched, facts: list[Fact]) -> None:
    """Tell blocks that are the same at all who have them from the edges."""
    prints: dict[Block, dict[int, _Print]] = defaultdict(dict)
    for fact in facts:
        k0, k1, number = fact.v[:3]
        having = prints[k0, k1, number]
        having[fact.proc] = _added(having.get(fact.proc, (0, 0, 0)), *fact.v[7:10])
    classes: dict[Owners, list[Block]] = defaultdict(list)
    messages: dict[Block, int] = {}
    for block, having in sorted(prints.items()):
        first, *others = having.values()
        if all(other == first for other in others):
            classes[tuple(sorted(having))].append(block)
            messages[block] = first[0]
        else:
            run.edges.append(block)
    for one, other in combinations(list(classes), 2):
        if not set(one) & set(other):  # Nobody has both: a message may be in both.
            run.edges += [*classes.pop(one, []), *classes.pop(other, [])]
    run.edges.sort()
    run.classes = [
        (owners, sum(messages[block] for block in blocks)) for owners, blocks in classes.items()
    ]


def conclude_keys(run: Stitched, found: "Edges") -> None:
    """O3 and O5, once it is known what the edges hold."""
    inner = sum(count for _, count in run.classes)
    apart = any(
        not set(owners) & set(others)
        for owners, count in found.owners
        for others, _ in run.classes
        if count
    )
    if not found.torn_messages and not apart:
        distinct = inner + sum(count for _, count in found.owners)
        run.proved["O3f"] = run.deliveries - distinct
    if not found.torn_keys:
        run.proved["O3i"] = inner + found.keys
    if "O3f" not in run.proved or "O3i" not in run.proved:
        run.suspects = run.edges[:SUSPECTS_MAX]
        return
    owners = [*run.classes, *found.owners]
    shared = sum(count for nodes, count in owners if len(nodes) > 1)
    pairs: Counter[tuple[int, int]] = Counter()
    for nodes, count in owners:
        for pair in combinations(nodes, 2) if count else ():
            pairs[pair] += count
    run.proved["O5"] = shared if shared > 1 else 0
    run.proved["O5p"] = sum(count - 1 for count in pairs.values())
    if found.skipped:
        run.suspects = run.edges[:SUSPECTS_MAX]
    elif run.places is not None:
        run.proved["O6"] = run.places


@dataclass(slots=True)
class Edges:
    """What the edges of a run hold."""

    owners: list[tuple[Owners, int]] = field(default_factory=list)
    """Who has how many messages."""
    torn_messages: int = 0
    """Messages with two keys."""
    keys: int = 0
    torn_keys: int = 0
    """Keys with two messages."""
    skipped: int = 0
    """Keys that somebody lacks who went further in the same view."""


# Views.


@dataclass(slots=True)
class _Stay:
    """What one life of a node delivered in a view, as its rows say."""

    first: int
    last: int
    print: _Print
    key: Key


_Life = tuple[int, int, View]
"""proc, inc, view."""


def _view(values: list[int]) -> View:
    *view, there = values
    return tuple(view) if there else NOWHERE


def _stays(facts: list[Fact], *, static: bool) -> dict[_Life, _Stay]:
    stays: dict[_Life, _Stay] = {}
    for fact in facts:
        last, messages, one, two, *key = fact.v[4:]
        life = (fact.proc, fact.inc, NOWHERE if static else _view(fact.v[:4]))
        stay = stays.setdefault(life, _Stay(fact.first, last, (0, 0, 0), ()))
        stay.first, stay.last = min(stay.first, fact.first), max(stay.last, last)
        stay.print = _added(stay.print, messages, one, two)
        stay.key = max(stay.key, tuple(key))
    return stays


def _paths(installs: list[Fact]) -> Iterator[list[Fact]]:
    """The installs of each life of a node."""
    lives: dict[tuple[int, int], list[Fact]] = defaultdict(list)
    for fact in installs:
        lives[fact.proc, fact.inc].append(fact)
    yield from lives.values()


def _placed(installs: list[Fact], stays: dict[_Life, _Stay]) -> bool:
    """Whether every delivery names the view that its node was in."""
    if not installs:
        return True
    spans: dict[_Life, tuple[int, float]] = {}
    for path in _paths(installs):
        ends = [*(fact.first for fact in path[1:]), float("inf")]
        for fact, end in zip(path, ends, strict=True):
            life = (fact.proc, fact.inc, tuple(fact.v[:3]))
            if life in spans:
                return False
            spans[life] = (fact.first, end)
    for life, stay in stays.items():
        start, end = spans.get(life, (0, -1))
        if not (start < stay.first and stay.last < end):
            return False
    return True


def _moves(run: Stitched, installs: list[Fact], stays: dict[_Life, _Stay]) -> None:
    """D7: who goes from one view to the next together has delivered the same."""
    groups: dict[tuple[View, View], list[_Print]] = defaultdict(list)
    for path in _paths(installs):
        for one, next_ in pairwise(path):
            stay = stays.get((one.proc, one.inc, tuple(one.v[:3])))
            delivered = (0, 0, 0) if stay is None else stay.print
            groups[tuple(one.v[:3]), tuple(next_.v[:3])].append(delivered)
    if all(len(set(group)) == 1 for group in groups.values()):
        run.proved["D7"] = sum(len(group) - 1 for group in groups.values())


def _reach(
    run: Stitched, installs: list[Fact], stays: dict[_Life, _Stay], blocks: list[Fact]
) -> None:
    """O6: how far each node got in each view, and whether anybody skipped a block on the way.

    Keys climb in every history, so what a node delivered in a view is a beginning of the view's
    order if and only if it has whatever others have below the last key that it has.
    """
    members: dict[View, set[int]] = {}
    for fact in sorted(installs, key=lambda fact: fact.first):
        members.setdefault(tuple(fact.v[:3]), set(fact.v[3:]))
    reached: dict[View, dict[int, tuple[int, Key]]] = defaultdict(dict)
    for (proc, _, view), stay in stays.items():
        if view and view[2] and proc not in members[view]:
            continue  # In a transitional view this binds its members only.
        messages, key = reached[view].get(proc, (0, ()))
        reached[view][proc] = (messages + stay.print[0], max(key, stay.key))
    prints: dict[tuple[View, Block], dict[int, _Print]] = defaultdict(dict)
    for fact in blocks:
        view = _view(fact.v[3:7]) if installs else NOWHERE
        k0, k1, number = fact.v[:3]
        having = prints[view, (k0, k1, number)]
        having[fact.proc] = _added(having.get(fact.proc, (0, 0, 0)), *fact.v[7:10])
    edges = set(run.edges)
    for (view, block), having in prints.items():
        if block in edges:
            continue
        bound = {proc: print_ for proc, print_ in having.items() if proc in reached[view]}
        beyond = [p for p, (_, key) in reached[view].items() if _block_of(key) > block]
        if len(set(bound.values())) > 1 or not bound.keys() >= set(beyond):
            return
    run.places = sum(
        sum(n for n, _ in nodes.values()) - max(n for n, _ in nodes.values())
        for nodes in reached.values()
        if nodes
    )
    run.lasts = [(view, p, key) for view, nodes in reached.items() for p, (_, key) in nodes.items()]


def _block_of(key: Key) -> Block:
    return key[0], key[1], key[2] // BLOCK_KEYS
