"""Streams: what one life of a node sent in one regular view, and who delivered which of it."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from roundelay.pipeline.proofs.intervals import Span, Spans, common, merged, without
from roundelay.pipeline.proofs.views import Fact, Facts, Life, View, Views, regular


@dataclass(frozen=True, slots=True)
class Sent:
    """Consecutive messages that a node sent."""

    span: Span
    first: int
    """lseq of the first row, and of the last."""
    last: int
    after: bool
    """Whether the sender had delivered anything in that view before."""


@dataclass(slots=True)
class Stream:
    """What one life of a node sent in one regular view."""

    view: View
    sender: Life
    sent: list[Sent] = field(default_factory=list)
    all: Spans = field(default_factory=list)
    """The same without the rest."""
    withdrawn: Spans = field(default_factory=list)
    taken: dict[Life, list["Taken"]] = field(default_factory=lambda: defaultdict(list))
    """By who delivered it."""

    @property
    def owed(self) -> Spans:
        return without(self.all, self.withdrawn)

    @property
    def after(self) -> Spans:
        """What was sent after a delivery in the view."""
        return merged(sent.span for sent in self.sent if sent.after)

    @property
    def known(self) -> Spans:
        """What anybody delivered with a key."""
        return merged(part.span for part in self.parts() if part.keyed)

    def parts(self) -> Iterator["Taken"]:
        """What anybody delivered of it."""
        for taken in self.taken.values():
            yield from taken

    def by(self, life: Life, *, regular: bool = False) -> Spans:
        """What a life delivered; in the regular view, or at all."""
        return merged(t.span for t in self.taken.get(life, ()) if t.regular or not regular)


class Taken(NamedTuple):
    """Consecutive messages that a node delivered."""

    span: Span
    view: View
    first: int
    """lseq of the first row."""
    keyed: bool
    regular: bool


Streams = dict[tuple[View, Life], Stream]


class UnusualError(Exception):
    """The spans of this run are no ground for conclusions."""


def read_streams(facts: Facts, views: Views) -> Streams | None:
    """The streams of a run; None if a delivery is not of what was sent in its view."""
    try:
        demand(not facts["odd"])
        return _streams(facts, views)
    except UnusualError:
        return None


def one_ring_each(streams: Streams | None) -> bool:
    """Whether every message is known to have keys of one ring only: they are of the view it was
    sent in, and of what was sent again only one sending was delivered."""
    if streams is None:
        return False
    spans: dict[Life, list[Span]] = defaultdict(list)
    for stream in streams.values():
        spans[stream.sender] += stream.known
    return all(a[1] < b[0] for known in spans.values() for a, b in pairwise(sorted(known)))


def _streams(facts: Facts, views: Views) -> Streams:
    members = views.members()
    demand(all(e.members == members[e.view] for e in views.entered.values()))
    streams: Streams = {}
    for fact in facts["sent"]:
        _send(streams, views, fact)
    for stream in streams.values():
        stream.all = merged(sent.span for sent in stream.sent)
    for fact in facts["back"]:
        demand(tuple(fact.v[:2]) == fact.life)
        own = [stream for stream in streams.values() if stream.sender == fact.life]
        _withdraw(own, fact.first, (fact.v[2], fact.v[3]))
    for fact in facts["took"]:
        _take(streams, views, fact)
    if views.static:
        rings = {tuple(fact.v[9:11]) for fact in facts["took"] if fact.v[8]}
        demand(len(rings) <= 1)
    if facts["order"]:
        demand(all(t.keyed or not t.regular for s in streams.values() for t in s.parts()))
    return streams


def _send(streams: Streams, views: Views, fact: Fact) -> None:
    src, inc, first, last, last_row = fact.v[4:]
    entered = views.within(fact, last_row)
    if entered is None or not regular(entered.view) or (src, inc) != fact.life:
        raise UnusualError
    stream = streams.setdefault((entered.view, fact.life), Stream(entered.view, fact.life))
    demand(not stream.sent or stream.sent[-1].span[1] < first)
    stay = views.stay(fact.life, entered.view)
    after = stay is not None and stay.first < fact.first
    stream.sent.append(Sent((first, last), fact.first, last_row, after))


def _take(streams: Streams, views: Views, fact: Fact) -> None:
    src, inc, first, last, keyed, k0, k1 = fact.v[4:]
    entered = views.at(fact.life, fact.v)
    if entered is None or entered.regular is None:
        raise UnusualError
    stream = streams.get((entered.regular, (src, inc)))
    if stream is None or without([(first, last)], stream.all):
        raise UnusualError
    demand(not keyed or views.static or entered.regular[:2] == (k0, k1))
    taken = Taken((first, last), entered.view, fact.first, bool(keyed), regular(entered.view))
    stream.taken[fact.life].append(taken)


def _withdraw(streams: list[Stream], row: int, span: Span) -> None:
    """A sender withdraws what it sent up to here."""
    for stream in streams:
        for sent in stream.sent:
            if part := common([sent.span], [span]):
                demand(not sent.first <= row <= sent.last)
                if row > sent.last:
                    stream.withdrawn = merged([*stream.withdrawn, *part])


def demand(usual: bool) -> None:
    """Give up unless something is as it usually is."""
    if not usual:
        raise UnusualError
