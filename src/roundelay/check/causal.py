"""O1 and O2: order that follows from who sent and saw what.

A message comes directly before another if the same node sent both in that order, or if the node
that sent the second had delivered the first. A node that restarts remembers nothing, so neither
passes through a crash: a sender is one life of a node.

Theory of operation. What comes before a message, in any number of steps, contains with a message
of a sender all that this sender had sent earlier. It is therefore told by a number for each sender:
how many of its messages come before. A node's numbers grow with each message it delivers, and are
written down when it sends one. The weak property compares deliveries with the numbers of all that
was delivered before them, so that a chain through nodes and messages the receiver never saw is
found as well. The reliable one asks that whatever they count was delivered already.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from roundelay.check import sentences as say
from roundelay.check.events import about, addressed, sending
from roundelay.check.model import Config, Event, Message, Model
from roundelay.check.property import Finding, Scope, declare
from roundelay.core.effects import Kind
from roundelay.trace.schema import WORLD

Stream = tuple[Config | None, int, int]
"""What one life of a node, (proc, inc), sent in one view; or in all its views, with None."""


@declare("O1", "Messages of one sender are delivered in the order it sent them", scope=Scope.NODE)
def fifo(model: Model) -> Finding:
    count = 0
    for history in model.histories.values():
        latest: dict[int, Event] = {}
        for event in history:
            message = about(event)
            if message.src == WORLD:
                continue  # Nobody sent it; D1 says so.
            other = latest.get(message.src)
            if other is not None:
                count += 1
                if about(other) > message:
                    reason = say.later_first(
                        model.name(event.proc),
                        model.label(about(other)),
                        model.label(message),
                        model.name(message.src),
                    )
                    return Finding(count, reason, (other, event))
            latest[message.src] = event
    return Finding(count)


@declare("O1r", "A message is delivered after all that its sender sent before it in the view")
def reliable_fifo(model: Model) -> Finding:
    sendings = Sendings(model, lambda origin: origin.reg)
    count = 0
    for proc, history in model.histories.items():
        owed = Arrears(model, sendings, proc)
        for event in history:
            origin = sending(model, event)
            if origin is None:
                continue  # D1 says so.
            stream, rank = sendings.place[origin]
            count += owed.any_of(stream, rank)
            if missing := owed.lacking(stream, rank):
                reason = (
                    f"{model.name(proc)} delivers {model.label(about(event))} without "
                    f"{model.label(about(missing))}, which {model.name(origin.proc)} sent to "
                    "it earlier in the same view"
                )
                return Finding(count, reason, (missing, origin, event))
            owed.deliver(origin)
    return Finding(count)


class Sendings:
    """All that was sent, each in its stream and with its rank there."""

    def __init__(self, model: Model, scope: Callable[[Event], Config | None]) -> None:
        self.streams: dict[Stream, list[Event]] = {}
        self.place: dict[Event, tuple[Stream, int]] = {}
        for event in model.by_kind.get(Kind.ORIGINATE, ()):
            if event.message is not None:
                stream = (scope(event), event.proc, event.row.inc)
                sent = self.streams.setdefault(stream, [])
                self.place[event] = (stream, len(sent))
                sent.append(event)


class Arrears:
    """What a process must have delivered of each stream before it may go on.

    That is what was addressed to it, without what the sender withdrew: that is owed to nobody.
    """

    def __init__(self, model: Model, sendings: Sendings, proc: int) -> None:
        self._model = model
        self._proc = proc
        self._streams = sendings.streams
        self._next: dict[Stream, int] = {}
        self._least: dict[Stream, int] = {}
        self._delivered: set[Event] = set()

    def deliver(self, origin: Event) -> None:
        self._delivered.add(origin)

    def lacking(self, stream: Stream, number: int) -> Event | None:
        """The first of the stream's first `number` that is owed and was not delivered."""
        sent = self._streams[stream]
        rank = self._next.get(stream, 0)
        while rank < number and (sent[rank] in self._delivered or not self._owed(sent[rank])):
            rank += 1
        self._next[stream] = rank
        return sent[rank] if rank < number else None

    def any_of(self, stream: Stream, number: int) -> bool:
        """Whether any of the stream's first `number` is owed, delivered or not."""
        if stream not in self._least:
            sent = self._streams[stream]
            owed = (rank for rank, origin in enumerate(sent) if self._owed(origin))
            self._least[stream] = next(owed, len(sent))
        return self._least[stream] < number

    def _owed(self, origin: Event) -> bool:
        if self._proc not in addressed(self._model, origin):
            return False
        return not (self._model.withdraws and self._model.withdrawn(origin))


@dataclass(slots=True)
class Pasts:
    """What came before each sending: the number of messages of each stream."""

    sendings: Sendings
    slot: dict[Stream, int]
    """Where a stream has its number in the list of its view."""
    streams: dict[Config | None, list[Stream]]
    """The other way round."""
    of: dict[Event, list[int]] = field(default_factory=dict)


def _pasts(model: Model, scope: Callable[[Event], Config | None], origin: "Origin") -> Pasts:
    """Walk the trace, every sending before its deliveries, and let everybody's numbers grow."""
    sendings = Sendings(model, scope)
    streams: dict[Config | None, list[Stream]] = {}
    slot: dict[Stream, int] = {}
    for stream in sendings.streams:
        group = streams.setdefault(stream[0], [])
        slot[stream] = len(group)
        group.append(stream)
    pasts = Pasts(sendings, slot, streams)
    known: dict[Stream, list[int]] = {}
    for event, sent in _senders_first(model, origin):
        if sent not in sendings.place:
            continue
        stream, rank = sendings.place[sent]
        own = (stream[0], event.proc, event.row.inc)
        numbers = known.get(own)
        if numbers is None:
            numbers = [0] * len(streams[stream[0]])
        if event is sent:
            pasts.of[sent] = numbers
        elif sent in pasts.of:
            numbers = list(map(max, numbers, pasts.of[sent]))
        else:
            continue  # Delivered before it was sent; D1 says so.
        if numbers[slot[stream]] <= rank:
            numbers = numbers.copy()
            numbers[slot[stream]] = rank + 1
        known[own] = numbers
    return pasts


Origin = Callable[[Model, Event], Event | None]
"""Which sending a delivery is of."""


def _first_sending(model: Model, event: Event) -> Event | None:
    return model.originate(about(event))


def _senders_first(model: Model, origin: Origin) -> Iterator[tuple[Event, Event]]:
    """Every sending with itself and every delivery with its sending, in an order that respects
    each process's own and, where that is possible, has sendings before deliveries."""
    chains = {proc: _chain(model, proc, origin) for proc in model.processes}
    if model.total:
        yield from sorted((pair for c in chains.values() for pair in c), key=lambda p: p[0].at)
        return
    next_ = dict.fromkeys(chains, 0)
    waiting: dict[Event, list[int]] = {}
    sent: set[Event] = set()
    ready = sorted(chains, reverse=True)
    while ready:
        proc = ready.pop()
        chain = chains[proc]
        while next_[proc] < len(chain):
            event, source = chain[next_[proc]]
            if event is not source and source not in sent:
                waiting.setdefault(source, []).append(proc)
                break
            next_[proc] += 1
            yield event, source
            if event is source:
                sent.add(event)
                ready += waiting.pop(event, [])
        if not ready and waiting:
            # What they wait for waits for them: D1 does not hold. Let one go on regardless.
            source, stuck = next(iter(waiting.items()))
            sent.add(source)
            del waiting[source]
            ready += stuck


def _chain(model: Model, proc: int, origin: Origin) -> list[tuple[Event, Event]]:
    """A process's sendings and first deliveries, in order."""
    fresh = set(model.histories[proc])
    chain: list[tuple[Event, Event]] = []
    for event in model.by_proc[proc]:
        if event.kind == Kind.ORIGINATE and event.message is not None:
            chain.append((event, event))
        elif event in fresh and (source := origin(model, event)) is not None:
            chain.append((event, source))
    return chain


@declare("O2", "A node that delivers two messages delivers the cause before the effect")
def causal(model: Model) -> Finding:
    """A message that was withdrawn and sent again comes after what came before its first sending:
    it is what the sender had to say then."""
    pasts = _pasts(model, lambda origin: None, _first_sending)
    width = len(pasts.streams.get(None, ()))
    count = 0
    for history in model.histories.values():
        life = -1
        for event in history:
            if event.row.inc != life:
                # `before` are the numbers of all delivered so far, `least` the ranks of the first.
                life, before, least = event.row.inc, [0] * width, [len(model.events)] * width
            origin = _first_sending(model, event)
            if origin is None or origin not in pasts.of:
                continue
            stream, rank = pasts.sendings.place[origin]
            slot, past = pasts.slot[stream], pasts.of[origin]
            count += any(map(int.__lt__, least, past))
            if rank < before[slot]:
                return _effect_first(model, count + 1, pasts, origin, event)
            before = list(map(max, before, past))
            least[slot] = min(least[slot], rank)
    return Finding(count)


def _effect_first(model: Model, count: int, pasts: Pasts, origin: Event, event: Event) -> Finding:
    """Something delivered before `event` has its message among its causes."""
    early: dict[Event, Event] = {}
    for other in model.histories[event.proc]:
        if other is event:
            break
        if other.row.inc == event.row.inc and (source := _first_sending(model, other)) is not None:
            early[source] = other
    way = _Search(model, pasts, _first_sending).way(origin, set(early))
    effect = early[way[-1]]
    reason = (
        f"{model.name(event.proc)} delivers {model.label(about(effect))} before its cause "
        f"{model.label(about(event))}: {_story(model, way)}"
    )
    return Finding(count, reason, (*way, effect, event))


@declare("O2r", "A message is delivered after all its causes, within the view")
def reliable_causal(model: Model) -> Finding:
    pasts = _pasts(model, lambda origin: origin.reg, sending)
    count = 0
    for proc, history in model.histories.items():
        owed = Arrears(model, pasts.sendings, proc)
        for event in history:
            origin = sending(model, event)
            if origin is None or origin not in pasts.of:
                continue
            past = list(zip(pasts.streams[origin.reg], pasts.of[origin], strict=True))
            count += any(owed.any_of(stream, number) for stream, number in past)
            for stream, number in past:
                if missing := owed.lacking(stream, number):
                    return _cause_missing(model, count, pasts, missing, event, origin)
            owed.deliver(origin)
    return Finding(count)


def _cause_missing(
    model: Model, count: int, pasts: Pasts, missing: Event, event: Event, origin: Event
) -> Finding:
    way = _Search(model, pasts, sending).way(missing, {origin})
    reason = (
        f"{model.name(event.proc)} delivers {model.label(about(event))} without its cause "
        f"{model.label(about(missing))}: {_story(model, way)}"
    )
    return Finding(count, reason, (*way, event))


class _Search:
    """Looks for the shortest way from a cause to an effect, once it is known that there is one."""

    def __init__(self, model: Model, pasts: Pasts, origin: Origin) -> None:
        self._sent: dict[Stream, list[Event]] = pasts.sendings.streams
        self._place = pasts.sendings.place
        self._seen: dict[Event, list[tuple[Event, Stream, int]]] = {}
        """Where a sending was delivered, and how many that node had sent by then."""
        number: dict[Stream, int] = {}
        for proc in model.processes:
            for event, source in _chain(model, proc, origin):
                if source not in self._place:
                    continue
                own = (self._place[source][0][0], proc, event.row.inc)
                if event is source:
                    number[own] = self._place[source][1] + 1
                elif own in self._sent:
                    here = (event, own, number.get(own, 0))
                    self._seen.setdefault(source, []).append(here)

    def way(self, cause: Event, effects: set[Event]) -> list[Event]:
        """Sendings and, where another node takes over, deliveries, from the cause to an effect."""
        came: dict[Event, tuple[Event, Event | None]] = {}
        done: dict[Stream, int] = {}
        queue = [cause]
        for sent in queue:  # Grows while it is walked.
            if sent in effects and sent is not cause:
                return self._back(came, cause, sent)
            stream, rank = self._place[sent]
            nodes: list[tuple[Event | None, Stream, int]] = [(None, stream, rank + 1)]
            for delivery, other, number in (*nodes, *self._seen.get(sent, ())):
                end = done.get(other, len(self._sent[other]))
                for next_ in self._sent[other][number:end]:
                    if next_ not in came and next_ is not cause:
                        came[next_] = (sent, delivery)
                        queue.append(next_)
                done[other] = min(end, number)
        raise AssertionError("there is no way from the cause to an effect")

    @staticmethod
    def _back(
        came: dict[Event, tuple[Event, Event | None]], cause: Event, effect: Event
    ) -> list[Event]:
        way = [effect]
        while way[-1] is not cause:
            source, delivery = came[way[-1]]
            way += [source] if delivery is None else [delivery, source]
        return way[::-1]


def _story(model: Model, way: list[Event]) -> str:
    """The way in words, one part for each node on it."""
    parts: list[str] = []
    for cause, effect in pairwise(way):
        if effect.kind != Kind.ORIGINATE:
            continue
        verb = "delivered" if cause.kind == Kind.DELIVER else "sent"
        parts.append(
            f"{model.name(effect.proc)} {verb} {_label(model, cause)} before it sent "
            f"{_label(model, effect)}"
        )
    return ", ".join(parts)


def _label(model: Model, event: Event) -> str:
    message: Message = about(event)
    return model.label(message)
