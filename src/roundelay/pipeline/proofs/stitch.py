"""Stitching: the facts of a run put together, and what they prove.

The facts of a node's segments are put in the order of their rows: the last key of one must be
smaller than the first key of the next, and so on. Then, for a run:

    D2, O1    the messages of every sender climb in every history; so none comes twice
    O4        so do the keys, of all deliveries that have one; `transitional` is about those without
    O3f, O3i  a block of keys that is the same at all who have it holds the same messages at the
              same keys. A message could still be in two such blocks, but then nobody has both.
              The few other blocks, at the edges of crashes and partitions, are left to `edges`
    O6        a node that goes further in a view than a block has the whole block
    D7        all that go from one view to the same next one have one fingerprint
    O5w, O8, O10                `view_order`
    O1r, O2, O2r, O9, O11       `causality`

What is not proved is open, not broken: facts only say where something may be wrong, in which blocks
of keys. Instances are counted as the local checker counts them.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations, islice, pairwise

from roundelay.pipeline.expressions import BLOCK_KEYS
from roundelay.pipeline.proofs.accused import Message, accused, downwards, gap, orphans
from roundelay.pipeline.proofs.batch_facts import BELOW, CONFIRMED
from roundelay.pipeline.proofs.causality import Implied, conclude_causality
from roundelay.pipeline.proofs.streams import one_ring_each, read_streams
from roundelay.pipeline.proofs.transitional import Lists, beginnings, delivery_lists, unkeyed_owners
from roundelay.pipeline.proofs.view_order import contiguous, together, views_in_line
from roundelay.pipeline.proofs.views import (
    NOWHERE,
    Fact,
    Facts,
    Key,
    Print,
    View,
    Views,
    added,
    read_views,
    regular,
    view_of,
)
from roundelay.pipeline.proofs.writer_logs import Log, read_logs

Block = tuple[int, int, int]
"""k0, k1, number."""
Owners = tuple[int, ...]
"""Nodes, sorted."""

Ring = tuple[int, ...]
"""k0, k1."""
Class = tuple[Ring, Owners, int]
"""A ring, nodes that have all of some messages of it, and how many these are."""

RINGS = "rings"
"""A name among the proved properties that is none of the checker's: a node that goes further in a
ring than a message has that message, if anybody has it."""

ABOUT_DELIVERIES = (
    *("D2", "O1", "O1r", "O2", "O2r", "O3f", "O3i", "O4", "O5", "O5p", "O5w", "O6", "O9"),
    "O11",
)
"""Properties of which a run without deliveries has no instance."""

SUSPECTS_MAX = 16
"""Blocks of a run in which a violation is looked for, at most. More take longer to judge; with
fewer, a run that breaks a property is more often only `inconclusive`."""


@dataclass(slots=True)
class RunProofs:
    """What the facts of one run say, and what they prove."""

    logs: list[Log] = field(default_factory=list)
    deliveries: int = 0
    keyed: int = 0
    """Deliveries that have a key."""
    steps: int = 0
    """From one of these of a node to its next."""
    proved: dict[str, int] = field(default_factory=dict)
    """By property, how often its premise occurred."""
    edges: list[Block] = field(default_factory=list)
    """Blocks to be compared message by message, before anything is known of O3, O5 and O6."""
    classes: list["Class"] = field(default_factory=list)
    """Of all other blocks: who has them, and how many messages they hold."""
    placed: bool = False
    """Whether deliveries name the view they are in."""
    one_ring_each: bool = False
    """Whether no message has keys of two rings."""
    places: int | None = None
    """Instances of O6, if only the edges can tell whether it holds; None if it is open."""
    suspects: list[Block] = field(default_factory=list)
    """Blocks in which something is wrong, if anywhere: enough of them to convict."""
    accused: list[Message] = field(default_factory=list)
    """Messages that may convict the run."""
    gap: list[Block] = field(default_factory=list)
    """Blocks around a number that keys leave out."""
    lasts: list[tuple[View, int, Key]] = field(default_factory=list)
    """How far each node got in each regular view."""
    ring_lasts: list[tuple[View, int, Key]] | None = None
    """How far each node got in each ring, the view of the keys; None if nobody needs to know."""
    unkeyed_owners: list[tuple[Owners, int]] | None = None
    """Who has how many messages without a key; None if these are in the way of an order."""
    common_views: int | None = None
    """Instances of O8 that are views; None if they cannot be put in line with the keys."""
    implied: list[Implied] = field(default_factory=list)
    """What holds if something else does."""
    below: list[Implied] = field(default_factory=list)
    """The same of the layer below the ordering."""


def stitch(facts: Iterable[Fact]) -> RunProofs:
    """What the facts of a run say together."""
    by_fact: Facts = defaultdict(list)
    for fact in facts:
        by_fact[fact.fact].append(fact)
    for group in by_fact.values():
        group.sort(key=lambda fact: (fact.proc, fact.inc, fact.first, fact.v))
    run = RunProofs(logs=list(read_logs(by_fact["writer"])))
    for one, next_ in pairwise(by_fact["writer"]):
        if one.proc == next_.proc and _tangled(one, next_, one.v[0]):
            by_fact["unusual"].append(next_)
    run.deliveries = sum(fact.v[5] for fact in by_fact["stay"])
    climbs = _histories(run, by_fact["order"])
    unique = _senders(run, by_fact["source"])
    views = read_views(by_fact)
    named = {tuple(fact.v[:4]) for fact in by_fact["stay"]}
    run.placed = views.clear and (not views.static or len(named) <= 1)
    streams = read_streams(by_fact, views) if views.clear else None
    run.one_ring_each = one_ring_each(streams)
    if climbs and unique:
        run.proved["O4"] = run.steps
        _blocks(run, by_fact["block"])
        if views.clear:
            _conclude_views(run, by_fact, views)
    if unique and views.clear and run.deliveries:
        _moves(run, views)
        run.implied += conclude_causality(
            by_fact, views, streams, run.ring_lasts, run.unkeyed_owners
        )
    if not run.deliveries:
        run.proved |= dict.fromkeys(ABOUT_DELIVERIES, 0)
    if not (climbs and unique):
        run.suspects = _suspects(by_fact)
    if views.clear:
        run.accused = accused(by_fact, views, streams)
        for message, block in islice(orphans(views, streams), SUSPECTS_MAX):
            run.accused.append(message)
            if block not in run.suspects:
                run.suspects.append(block)
        if not (
            climbs or _called(CONFIRMED, by_fact) or any(s.turns for s in views.stays.values())
        ):
            # Who goes up and down in a ring leaves a gap, or falls, between any two keys.
            run.gap = downwards(by_fact)
    run.below = _conclude_below(by_fact)
    return run


def _conclude_below(by_fact: Facts) -> list[Implied]:
    """What spans say of the layer below the ordering. It has the same views, and no keys."""
    below = _called(BELOW, by_fact)
    if not below:
        return []
    for name in ("writer", "install", "end", "life"):
        below[name] = by_fact[name]
    below["unusual"] = [*below["unusual"], *by_fact["unusual"]]
    views = read_views(below)
    if not views.clear or not _senders(RunProofs(), below["source"]):
        return []
    return conclude_causality(below, views, read_streams(below, views), None, None)


def _called(prefix: str, by_fact: Facts) -> Facts:
    """The facts whose names begin with this, without it."""
    found: Facts = defaultdict(list)
    for name, facts in by_fact.items():
        if name.startswith(prefix):
            found[name.removeprefix(prefix)] = facts
    return found


def _conclude_views(run: RunProofs, facts: Facts, views: Views) -> None:
    """What follows where keys climb, every message comes once, and views are known."""
    lists = delivery_lists(facts)
    _reach(run, facts, views, lists)
    if facts["unusual"]:
        return
    if not any(regular(view) and stay.unkeyed for (*_, view), stay in views.stays.items()):
        run.unkeyed_owners = unkeyed_owners(facts, lists, views)
    _rings(run, facts, views, lists)
    numbered = _numbered(run, facts, views)
    if numbered is not None:
        if (count := contiguous(numbered)) is not None:
            run.proved["O10"] = count
        else:
            run.gap = gap(numbered)
    if (count := together(facts, views)) is not None:
        run.implied.append(Implied("O5w", count, ("O6",)))
    run.common_views = views_in_line(views)


def _numbered(run: RunProofs, facts: Facts, views: Views) -> Facts | None:
    """The facts that O10 is about: of confirmations, where there are any, else of deliveries. None
    if keys do not climb there, or rows may be in other views than they say."""
    confirmed = _called(CONFIRMED, facts)
    if not confirmed:
        return facts if run.placed else None
    stays = confirmed["stay"]
    if views.static:
        placed = len({tuple(fact.v[:4]) for fact in stays}) <= 1
    else:
        placed = all(views.within(fact, fact.v[4]) is not None for fact in stays)
    confirmed["empty"] = facts["empty"]
    return confirmed if placed and _climb(confirmed["order"]) else None


def _suspects(by_fact: Facts) -> list[Block]:
    """Blocks from one side of a fall to the other, and blocks that differ between nodes."""
    falls = [(fact.v[:3], fact.v[3:6]) for fact in by_fact["fall"]]
    for one, next_ in pairwise(by_fact["order"]):
        if one.proc == next_.proc and one.v[7:11] >= next_.v[3:7]:
            falls.append((one.v[7:10], next_.v[3:6]))
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
    scratch = RunProofs()
    _blocks(scratch, by_fact["block"])
    blocks.update(dict.fromkeys(scratch.edges))
    return list(blocks)[:SUSPECTS_MAX]


def _tangled(one: Fact, next_: Fact, last: int) -> bool:
    """Whether rows of one life overlap that lie in two files: then their order is another one."""
    return one.inc == next_.inc and last >= next_.first


def _histories(run: RunProofs, facts: list[Fact]) -> bool:
    """Whether keys climb in every history."""
    run.keyed = sum(fact.v[1] for fact in facts)
    run.steps = run.keyed - len({fact.proc for fact in facts})
    return _climb(facts)


def _climb(facts: list[Fact]) -> bool:
    """Whether keys climb at every node."""
    climbs = not any(fact.v[2] for fact in facts)
    for one, next_ in pairwise(facts):
        if one.proc == next_.proc:
            climbs &= one.v[7:11] < next_.v[3:7] and not _tangled(one, next_, one.v[0])
    return climbs


def _senders(run: RunProofs, facts: list[Fact]) -> bool:
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


def _blocks(run: RunProofs, facts: list[Fact]) -> None:
    """Tell blocks that are the same at all who have them, by view as well, from the edges."""
    prints: dict[Block, dict[int, Print]] = defaultdict(dict)
    for fact in facts:
        having = prints[_block(fact)]
        having[fact.proc] = added(having.get(fact.proc, (0, 0, 0)), *fact.v[7:10])
    torn = {block for (_, block), having in _in_views(facts).items() if _differ(having)}
    classes: dict[tuple[Ring, Owners], list[Block]] = defaultdict(list)
    messages: dict[Block, int] = {}
    for block, having in sorted(prints.items()):
        if not _differ(having) and block not in torn:
            classes[block[:2], tuple(sorted(having))].append(block)
            messages[block] = next(iter(having.values()))[0]
        else:
            run.edges.append(block)
    for one, other in combinations(list(classes), 2):
        if _may_share(run, one, other):
            run.edges += [*classes.pop(one, []), *classes.pop(other, [])]
    run.edges.sort()
    run.classes = [
        (*where, sum(messages[block] for block in blocks)) for where, blocks in classes.items()
    ]


def _in_views(facts: list[Fact]) -> dict[tuple[View, Block], dict[int, Print]]:
    """What nodes have of each block in each regular view."""
    prints: dict[tuple[View, Block], dict[int, Print]] = defaultdict(dict)
    for fact in facts:
        view = view_of(fact.v[3:7])
        if regular(view):
            having = prints[view, _block(fact)]
            having[fact.proc] = added(having.get(fact.proc, (0, 0, 0)), *fact.v[7:10])
    return prints


def _differ(having: dict[int, Print]) -> bool:
    return len(set(having.values())) > 1


def _may_share(run: RunProofs, one: tuple[Ring, Owners], other: tuple[Ring, Owners]) -> bool:
    """Whether a message may be in two classes of blocks: if a node had both, it would have
    delivered the message twice."""
    apart = run.one_ring_each and one[0] != other[0]
    return not apart and not set(one[1]) & set(other[1])


def conclude_keys(run: RunProofs, found: "Edges") -> None:
    """O3, O5, O6 and O8, once it is known what the edges hold."""
    inner = sum(count for *_, count in run.classes)
    doubtful = any(
        _may_share(run, (ring, owners), (other, others))
        for ring, owners, _ in found.owners
        for other, others, _ in run.classes
    )
    if not found.torn_messages and not doubtful:
        distinct = inner + sum(count for *_, count in found.owners)
        run.proved["O3f"] = run.keyed - distinct
    if not found.torn_keys:
        run.proved["O3i"] = inner + found.keys
        # Keys climb and tell messages: who has all keys on the way has all messages on it.
        if run.places is not None and not found.skipped:
            run.proved["O6"] = run.places
        if run.ring_lasts is not None and not found.ring_skipped:
            run.proved[RINGS] = 0
    if "O3f" in run.proved and "O3i" in run.proved:
        _one_order(run, [(nodes, count) for _, nodes, count in (*run.classes, *found.owners)])
    if not run.proved.keys() >= {"O3f", "O3i", "O6", "O8"}:
        run.suspects = [*dict.fromkeys([*run.suspects, *run.edges])][:SUSPECTS_MAX]


def _one_order(run: RunProofs, owners: list[tuple[Owners, int]]) -> None:
    """O5 and O5p: all follow the order of the keys; messages without a key follow an order of
    their own behind all keys of their ring."""
    if run.keyed < run.deliveries:
        if run.unkeyed_owners is None:
            return
        owners = owners + run.unkeyed_owners
    shared = sum(count for nodes, count in owners if len(nodes) > 1)
    pairs: Counter[tuple[int, int]] = Counter()
    for nodes, count in owners:
        for pair in combinations(nodes, 2) if count else ():
            pairs[pair] += count
    run.proved["O5"] = shared if shared > 1 else 0
    run.proved["O5p"] = sum(count - 1 for count in pairs.values())
    if run.common_views is not None:
        run.proved["O8"] = shared + run.common_views if shared and run.common_views else 0


@dataclass(slots=True)
class Edges:
    """What the edges of a run hold."""

    owners: list[Class] = field(default_factory=list)
    """Who has how many messages of a ring."""
    torn_messages: int = 0
    """Messages with two keys."""
    keys: int = 0
    torn_keys: int = 0
    """Keys with two messages."""
    skipped: int = 0
    """Keys that somebody lacks who went further in the same view."""
    ring_skipped: int = 0
    """Keys that somebody lacks who went further in the same ring."""


# Views.


def _moves(run: RunProofs, views: Views) -> None:
    """D7: who goes from one view to the next together has delivered the same."""
    groups: dict[tuple[View, View], list[Print]] = defaultdict(list)
    for life, path in views.paths().items():
        for one, next_ in pairwise(path):
            stay = views.stay(life, one.view)
            groups[one.view, next_.view].append((0, 0, 0) if stay is None else stay.print)
    if all(len(set(group)) == 1 for group in groups.values()):
        run.proved["D7"] = sum(len(group) - 1 for group in groups.values())


def _reach(run: RunProofs, facts: Facts, views: Views, lists: Lists) -> None:
    """O6: how far each node got in each view, and whether anybody skipped a block on the way.

    Keys climb in every history, so what a node delivered in a view is a beginning of the view's
    order if and only if it has whatever others have below the last key that it has. In a
    transitional view, all that was delivered is there to be compared.
    """
    late = beginnings(lists, views)
    reached: dict[View, dict[int, tuple[int, Key]]] = defaultdict(dict)
    for (proc, _, view), stay in views.stays.items():
        if not regular(view):
            continue
        if stay.unkeyed:
            return
        messages, key = reached[view].get(proc, (0, ()))
        reached[view][proc] = (messages + stay.messages, max(key, stay.high))
    edges = set(run.edges)
    for (named, block), having in _in_views(facts["block"]).items():
        view = NOWHERE if views.static else named
        beyond = (p for p, (_, key) in reached[view].items() if _block_of(key) > block)
        if block not in edges and not having.keys() >= set(beyond):
            return
    if late is None:
        return
    run.places = late + sum(
        sum(n for n, _ in nodes.values()) - max(n for n, _ in nodes.values())
        for nodes in reached.values()
    )
    run.lasts = [(view, p, key) for view, nodes in reached.items() for p, (_, key) in nodes.items()]


def _rings(run: RunProofs, facts: Facts, views: Views, lists: Lists) -> None:
    """How far each node got in each ring, unless somebody skipped a block on the way."""
    reached: dict[View, dict[int, Key]] = defaultdict(dict)
    keys = [(proc, key) for (proc, *_), line in lists.items() for _, key in line]
    for (proc, _, view), stay in views.stays.items():
        if regular(view):
            if stay.turns or stay.unkeyed:
                return
            keys.append((proc, stay.high))
    for proc, key in keys:
        if key:
            nodes = reached[key[:2]]
            nodes[proc] = max(key, nodes.get(proc, key))
    owners: dict[Block, set[int]] = defaultdict(set)
    for fact in facts["block"]:
        owners[_block(fact)].add(fact.proc)
    edges = set(run.edges)
    for block, having in owners.items():
        beyond = (p for p, key in reached[block[:2]].items() if _block_of(key) > block)
        if block not in edges and not having.issuperset(beyond):
            return
    run.ring_lasts = [(ring, p, key) for ring, nodes in reached.items() for p, key in nodes.items()]


def _block(fact: Fact) -> Block:
    k0, k1, number = fact.v[:3]
    return k0, k1, number


def _block_of(key: Key) -> Block:
    return key[0], key[1], key[2] // BLOCK_KEYS
