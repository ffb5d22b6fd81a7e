"""What spans prove of causes and effects: O1r, O2, O2r, O9 and O11.

A *stream* is what one life of a node sent in one regular view; so much of it as is not withdrawn is
*owed* to the members of the view. Spans tell exactly which messages of a stream a node delivered.
With the help of properties that are proved or judged elsewhere, and that each conclusion names,
this is enough. Why, is said where it is concluded.

If anything is unusual, nothing is concluded: it is then open, not broken.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from roundelay.pipeline.proofs.intervals import Spans, above, below, common, merged, size, without
from roundelay.pipeline.proofs.streams import Stream, Streams, Taken, UnusualError, demand
from roundelay.pipeline.proofs.transitional import Owners
from roundelay.pipeline.proofs.view_order import crashed, restarted
from roundelay.pipeline.proofs.views import Facts, Key, Life, View, Views, regular


class Implied(NamedTuple):
    """A property that holds if others do."""

    property: str
    instances: int
    needs: tuple[str, ...]


def conclude_causes(
    facts: Facts,
    views: Views,
    streams: Streams | None,
    ring_lasts: Sequence[tuple[View, int, Key]] | None,
    loose: list[tuple[Owners, int]] | None,
) -> list[Implied]:
    """What can be concluded of a run whose senders climb in every history (O1, D2)."""
    if streams is None or (views.static and restarted(facts)):
        return []
    found: list[Implied] = []
    try:
        run = _Run(facts, views, streams)
        found.append(run.reliable_fifo())
        found.append(run.no_contamination())
        if ring_lasts is not None and loose is not None:
            keys = _Keys(run, {(ring, proc): key for ring, proc, key in ring_lasts})
            found.append(keys.respect_causality())
            found.append(keys.reliable_causal())
            found.append(keys.causal())
    except UnusualError:
        pass
    return found


# Without keys.


class _Run:
    """Conclusions that need no keys."""

    def __init__(self, facts: Facts, views: Views, streams: Streams) -> None:
        self.facts = facts
        self.views = views
        self.streams = streams
        self._correct = {life[0] for life in views.paths()} - crashed(facts)
        self._members = views.members()

    # That a message was sent in the view of its delivery, and before.
    needs = ("D1", "D2", "D4e", "O1")

    def owed_to(self, stream: Stream, proc: int) -> Spans:
        """What a node is owed of a stream."""
        return stream.owed if self.is_member(stream.view, proc) else []

    def is_member(self, view: View, proc: int) -> bool:
        members = self._members[view]
        return members is None or proc in members

    def reliable_fifo(self) -> Implied:
        """Messages of a sender climb (O1): what a node delivered of a stream before some message
        is what it has of it below that one. Nothing owed may be lacking there."""
        count = 0
        for stream in self.streams.values():
            for life in stream.taken:
                owed, has = self.owed_to(stream, life[0]), stream.by(life)
                demand(not without(below(owed, has[-1][1]), has))
                count += size(above(has, owed[0][0])) if owed else 0
        return Implied("O1r", count, self.needs)

    def no_contamination(self) -> Implied:
        """In a regular view, all deliver beginnings of one sequence (O6). A sender delivers its
        own message after what it had delivered when it sent it, or not in the view at all; either
        way the message stands behind that in the sequence, and so for all who deliver it there."""
        count = 0
        for stream in self.streams.values():
            for life in stream.taken:
                if life[0] in self._correct and life[0] != stream.sender[0]:
                    count += size(common(stream.by(life, regular=True), stream.after))
        return Implied("O11", count, (*self.needs, "O6"))


# With keys.


class _Keys:
    """Conclusions about runs whose keys are of the view in which a message was sent, and whose
    loose messages come behind all keys of their ring."""

    def __init__(self, run: _Run, lasts: dict[tuple[View, int], Key]) -> None:
        self._run = run
        self._views = run.views
        self._lasts = lasts
        self._first: dict[Life, int] = {}
        """The lseq of the first delivery with a key."""
        for fact in run.facts["order"]:
            self._first.setdefault(fact.life, fact.first)
        self._paths = self._views.paths()
        self._stays: dict[Life, dict[View, int]] = defaultdict(dict)
        """By life and view, the lseq of the first delivery."""
        for (proc, inc, view), stay in self._views.stays.items():
            self._stays[proc, inc][view] = stay.first
        for path in self._paths.values():
            ids = [entered.view[:2] for entered in path if regular(entered.view)]
            demand(self._views.static or all(a < b for a, b in pairwise(ids)))
        for stream in run.streams.values():
            known = stream.known
            demand(not known or not stream.withdrawn or known[-1][1] < stream.withdrawn[0][0])
            demand(all(self._run.is_member(stream.view, proc) for proc, _ in stream.taken))

    def respect_causality(self) -> Implied:
        """O9. Of two messages of a sender, the later one has a greater key: of streams of two
        views because views climb, and within a stream because who delivers the later has delivered
        the earlier (O1r), in the order of keys (O4).

        What a sender had delivered when it sent a message has smaller keys: if it delivers the
        message itself, because it does so later (D1, O4). If it does not, whoever delivers it in
        the same view does so beyond where the sender got (O6), and whoever does so later has got
        as far as the sender."""
        count = 0
        needs = {*self._run.needs, "O1r", "O3f", "O3i", "O4"}
        begun: dict[Life, int] = {}
        for stream in self._run.streams.values():
            known = stream.known
            if not known:
                continue
            count += size(known)
            first = min(sent.first for sent in stream.sent if common([sent.span], known))
            begun[stream.sender] = min(first, begun.get(stream.sender, first))
            if orphans := without(known, stream.by(stream.sender)):
                needs.add("O6")
                self._beyond(stream, orphans)
        # Before the first message with a key that it sends or delivers there is nothing to respect.
        count -= sum(row < self._first.get(life, row + 1) for life, row in begun.items())
        return Implied("O9", count, tuple(sorted(needs)))

    def _beyond(self, stream: Stream, orphans: Spans) -> None:
        """Nodes that deliver orphans in a transitional view got as far in the regular one as their
        sender did."""
        own = self._views.stay(stream.sender, stream.view)
        if own is None:
            return
        for life, taken in stream.taken.items():
            for part in taken:
                if part.regular or not part.keyed or not common([part.span], orphans):
                    continue
                theirs = self._views.stay(life, stream.view)
                demand(theirs is not None and theirs.messages >= own.messages)

    def reliable_causal(self) -> Implied:
        """O2r. A cause has a smaller key than its effect (O9), and who delivers the effect goes
        further in the ring than the cause, so it has it (rings); a cause that nobody delivered
        would be of the effect's own sender, and is not lacking (O1r). Loose messages have no key:
        who delivers one must have got as far in the ring as anybody."""
        count = 0
        furthest: dict[View, Key] = {}
        for (ring, _), key in self._lasts.items():
            furthest[ring] = max(key, furthest.get(ring, ()))
        for stream in self._run.streams.values():
            ring = stream.view[:2]
            for life, taken in stream.taken.items():
                if any(not part.keyed for part in taken):
                    demand(self._lasts.get((ring, life[0])) == furthest.get(ring))
                owed = self._run.owed_to(stream, life[0])
                if owed:
                    has = stream.by(life)
                    late = common(has, stream.after)
                    count += size(late) + size(above(without(has, late), owed[0][0]))
        return Implied("O2r", count, ("O1r", "O9", "rings"))

    def causal(self) -> Implied:
        """O2. Keys respect causality (O9) and every history climbs (O4); loose messages come
        behind all that may be their cause. An instance is a delivery that has a cause among what
        that life delivered before: every one but, perhaps, the first of each sender."""
        count = 0
        for sender, streams in self._of_senders():
            firsts: dict[Life, tuple[int, Stream, Taken]] = {}
            for stream in streams:
                for life, taken in stream.taken.items():
                    count += size(stream.by(life))
                    part = min(taken)
                    if life not in firsts:
                        firsts[life] = (part.span[0], stream, part)
            for life, (number, stream, part) in firsts.items():
                count -= not self._has_cause(sender, streams, life, number, stream, part)
        return Implied("O2", count, ("O1r", "O9", "rings"))

    def _of_senders(self) -> Iterator[tuple[Life, list[Stream]]]:
        """The streams of each life, in order; what is not sent again is sent upwards."""
        groups: dict[Life, list[Stream]] = defaultdict(list)
        for stream in self._run.streams.values():
            groups[stream.sender].append(stream)
        for sender, streams in groups.items():
            streams.sort(key=lambda stream: stream.view)
            known: Spans = []
            for sent in (sent for stream in streams for sent in stream.sent):
                new = without([sent.span], known)
                demand(not new or not known or new[0][0] > known[-1][1])
                known = merged([*known, sent.span])
            yield sender, streams

    def _has_cause(
        self,
        sender: Life,
        streams: list[Stream],
        life: Life,
        number: int,
        stream: Stream,
        part: Taken,
    ) -> bool:
        """Whether a life delivered a cause of the first message that it has of a sender."""
        origin, sent = next(
            (one, sent)
            for one in streams
            for sent in one.sent
            if sent.span[0] <= number <= sent.span[1]
        )
        for entered in self._paths[sender]:
            if not regular(entered.view) or entered.view[:2] > origin.view[:2]:
                continue
            if entered.view == origin.view and not sent.after:
                continue
            ring = self._ring(entered.view)
            both = (ring, sender[0]) in self._lasts and (ring, life[0]) in self._lasts
            if both and (*life, entered.view) in self._views.entered:
                return True  # Both have the first of that view.
        delivered = self._stays[life]
        if min(delivered.values()) == part.first and part.span[0] == number:
            return False  # It had delivered nothing.
        if sent.last < min(self._stays[sender].values(), default=sent.last + 1):
            return False  # The sender had delivered nothing.
        demand(origin is stream and not any(view[:2] < stream.view[:2] for view in delivered))
        return False  # The sender had delivered only what is of views before.

    def _ring(self, view: View) -> View:
        """The view of keys."""
        if not self._views.static:
            return view[:2]
        return next((ring for ring, _ in self._lasts), ())
