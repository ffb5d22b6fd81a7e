"""Which messages of a large run to look at where properties are open: those that may convict it.

What a property says of pairs of messages, and of views, holds of a run only if it holds of any of
its messages with all their rows. So a run is convicted by a few messages, if they are the right
ones: a message that somebody lacks, with what that node has beyond it; one that its sender never
delivered, with the last that the sender did; and what was delivered in transitional views. The
local checker judges them; here they are only chosen.

O10 speaks of what lies between two keys, and needs all keys of a range: those around the first
number that no message explains.
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import chain, islice, pairwise

from roundelay.pipeline.expressions import BLOCK_KEYS
from roundelay.pipeline.proofs.intervals import Spans, above, below, merged, without
from roundelay.pipeline.proofs.streams import Stream, Streams
from roundelay.pipeline.proofs.views import Fact, Facts, Key, Life, View, Views, regular, view_of

Message = tuple[int, int, int]
"""Sender, its life, number."""
Block = tuple[int, int, int]

ACCUSED_MAX = 400
"""Messages that are chosen of a run, at most. Each costs its rows at all nodes; with fewer, a run
that breaks a property is more often only `inconclusive`."""

ENDS_MAX = 2
"""Holes in what a node has of a sender that are looked at, from the first on."""

GAP_BLOCKS_MAX = 16
"""Blocks of keys around a gap that are judged, at most; a wider gap stays open."""


def accused(facts: Facts, views: Views, streams: Streams | None) -> list[Message]:
    """Messages of a run that may convict it, if any do."""
    sources = (
        *(_fallen(facts), _from_elsewhere(facts, views), _lacked(views, streams or {})),
        _transitional(facts),
    )
    chosen: dict[Message, None] = {}
    for message in chain(*(islice(source, ACCUSED_MAX // 2) for source in sources)):
        if len(chosen) < ACCUSED_MAX:
            chosen.setdefault(message)
    return list(chosen)


def _fallen(facts: Facts) -> Iterator[Message]:
    """Messages that somebody delivered in another order than that of their numbers or keys."""
    for fact in facts["fall"]:
        yield fact.v[6], fact.v[7], fact.v[8]
        yield fact.v[9], fact.v[10], fact.v[11]
    parts = sorted(facts["source"], key=lambda f: (f.proc, f.v[0], f.inc, f.first))
    for one, next_ in pairwise(parts):
        if (one.proc, one.v[0]) == (next_.proc, next_.v[0]) and one.v[6:8] >= next_.v[4:6]:
            yield one.v[0], one.v[6], one.v[7]
            yield one.v[0], next_.v[4], next_.v[5]


def _from_elsewhere(facts: Facts, views: Views) -> Iterator[Message]:
    """Messages that somebody delivered who was not in the view that they were sent in."""
    sent: dict[tuple[View | None, Life], Spans] = defaultdict(list)
    for fact in facts["sent"]:
        sent[_regular(views, fact), fact.life].append((fact.v[6], fact.v[7]))
    whole = defaultdict(list, {at: merged(spans) for at, spans in sent.items()})
    for fact in facts["delivered"]:
        own = whole[_regular(views, fact), (fact.v[4], fact.v[5])]
        for span in without([(fact.v[6], fact.v[7])], own):
            yield fact.v[4], fact.v[5], span[0]
            yield fact.v[4], fact.v[5], span[1]


def _regular(views: Views, fact: Fact) -> View | None:
    entered = views.at(fact.life, fact.v)
    return None if entered is None else entered.regular


def _transitional(facts: Facts) -> Iterator[Message]:
    for fact in facts["transitional"]:
        yield fact.v[4], fact.v[5], fact.v[6]
        yield fact.v[4], fact.v[5], fact.v[7]


def _lacked(views: Views, streams: Streams) -> Iterator[Message]:
    """What a member of a view lacks of it although it goes on, and the first and last that it has
    beyond that, of every sender in that view."""
    members = views.members()
    there: dict[View, list[Stream]] = {}
    for stream in streams.values():
        there.setdefault(stream.view, []).append(stream)
    for view, group in there.items():
        lives = {life for stream in group for life in stream.delivered}
        for life in sorted(lives):
            told = members[view]
            if told is not None and life[0] not in told:
                continue
            holes = [(stream, _holes(stream, life)) for stream in group]
            if not any(found for _, found in holes):
                continue
            for stream, found in holes:
                yield from (_of(stream, number) for span in found for number in {*span})
                has = stream.delivered_by(life)
                for first, _ in found:
                    yield from (_of(stream, span[0]) for span in above(has, first)[:1])
                if has:
                    yield _of(stream, has[-1][1])


def _holes(stream: Stream, life: Life) -> Spans:
    """What a life lacks of what others have of a stream, and of what is owed below its last."""
    has = stream.delivered_by(life)
    end = has[-1][1] if has else 0
    others = [part.span for part in stream.parts()]
    lacking = [*without(below(stream.owed, end), has), *without(sorted(others), has)]
    return sorted(set(lacking))[:ENDS_MAX]


def _of(stream: Stream, number: int) -> Message:
    return (*stream.sender, number)


def orphans(views: Views, streams: Streams | None) -> Iterator[tuple[Message, Block]]:
    """Messages with a key that their sender never delivered, and the block of the last key that
    it did deliver in that view."""
    for stream in (streams or {}).values():
        own = views.stay(stream.sender, stream.view)
        if own is None or not own.high:
            continue
        k0, k1, k2 = own.high[:3]
        for span in without(stream.known, stream.delivered_by(stream.sender))[:ENDS_MAX]:
            yield _of(stream, span[0]), (k0, k1, k2 // BLOCK_KEYS)


def gap(facts: Facts) -> list[Block]:
    """The blocks around the first number between keys of a regular view that is neither a
    message's nor known to be empty. The facts are about deliveries, or about confirmations."""
    for one, next_ in _leaps(facts):
        if one[:2] != next_[:2]:
            continue
        first, last = one[2] // BLOCK_KEYS - 1, next_[2] // BLOCK_KEYS + 1
        if last - first < GAP_BLOCKS_MAX:
            return [(one[0], one[1], number) for number in range(first, last + 1)]
    return []


def downwards(facts: Facts) -> list[Block]:
    """The blocks between two keys of which a node delivered the greater one first."""
    for fact in facts["fall"]:
        one, next_ = fact.v[:3], fact.v[3:6]
        first, last = sorted(key[2] // BLOCK_KEYS for key in (one, next_))
        if one[:2] == next_[:2] and one >= next_ and last - first < GAP_BLOCKS_MAX:
            return [(one[0], one[1], number) for number in range(first, last + 1)]
    return []


def _leaps(facts: Facts) -> Iterator[tuple[Key, Key]]:
    """Keys on both sides of a number that is left out, or next to it."""
    empty: dict[Block, int] = {}
    for name in ("empty", "hole"):
        for fact in facts[name]:
            words = b"".join(word.to_bytes(8, "little", signed=True) for word in fact.v[3:])
            bits = int.from_bytes(words, "little")
            block = (fact.v[0], fact.v[1], fact.v[2])
            if name == "empty":
                empty[block] = empty.get(block, 0) | bits
            elif left := bits & ~empty.get(block, 0):
                number = block[2] * BLOCK_KEYS + (left & -left).bit_length() - 1
                yield (*block[:2], number - 1), (*block[:2], number + 1)
    stays = [fact for fact in facts["stay"] if regular(view_of(fact.v))]
    for one, next_ in pairwise(stays):
        last, first = tuple(one.v[13:16]), tuple(next_.v[10:13])
        if one.proc == next_.proc and one.v[:4] == next_.v[:4] and last[2] + 1 < first[2]:
            yield last, first
