"""FC refuses what no member can have said, and keeps a bounded part of the rest."""

from itertools import groupby
from operator import itemgetter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundelay.core.contract import Item
from roundelay.core.effects import Deliver, Record, Refuse, Send
from roundelay.core.ids import Packet, Service, Span
from roundelay.protocols.fc.asking import ANSWER_PACKETS
from roundelay.protocols.fc.ending import read_summary
from roundelay.protocols.fc.messages import (
    BATCH_MAX,
    FIRST_EPOCH,
    PART_DECISIONS,
    ROOT,
    Ask,
    Chain,
    Dec,
    DecisionId,
    Epoch,
    Promise,
    Regen,
    Rejoin,
    Req,
    Run,
    Stale,
    write_decision,
)
from roundelay.protocols.fc.state import EPOCHS_AHEAD_MAX
from roundelay.wire.packet import encode_packet
from roundelay.wire.primitives import I64_MAX, WireError, Writer

from .fed import SMALL, Circle, Fed, dec, numbers, packet, req

RULES = ("safe", "paper", "link")
NEXT = Epoch(2, 1)
"""A token that b made anew."""


def fed(rules: str = "safe", node: str = "b") -> Fed:
    return Fed(node, rules=rules, static=rules != "safe", **SMALL)


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize(
    "request_",
    [
        Req(2, 1, packet("a")),
        Req(7, 1, packet("a")),
        Req(0, 1, packet("ghost")),
        Req(0, 1, Packet(Span("a", 0, 0), Service.AGREED, b"x", ("b",))),
        req(1, 1),
    ],
    ids=["of another", "of nobody", "of a stranger", "for a few", "own, and never sent"],
)
def test_requests_under_the_name_of_another(rules, request_):
    assert fed(rules).refuses("a", request_)


def test_a_request_too_far_ahead_is_not_kept():
    member = fed()
    for number in (1, SMALL["buffer_packets"], SMALL["buffer_packets"] + 2, I64_MAX):
        member.hear("a", req(0, number))
    assert sorted(member.engine.requests.bodies[0]) == [1, SMALL["buffer_packets"]]


FORGED = {
    "under the name of another": dec(2),
    "by a stranger": dec(9),
    "in a ring without its maker": dec(0, ring=(1, 2)),
    "in a view of another size": dec(0, ring=(0, 1), have=(0, 0)),
    "of no epoch": dec(0, epoch=Epoch(0, 0)),
    "of the epoch of a stranger": dec(0, epoch=Epoch(2, 3)),
    "with a parent of a later epoch": dec(0, 2, parent=DecisionId(1, NEXT, 1)),
    "first, with a parent": dec(0, parent=DecisionId(0, FIRST_EPOCH, 1)),
    "with a parent of a stranger": dec(0, 2, parent=DecisionId(1, FIRST_EPOCH, 3)),
    "held before it is made": dec(0, have=(2, 0, 0)),
    "that confirms what comes later": dec(0, confirmed=ROOT._replace(number=2)),
    "of more requests than there may be": dec(0, 1, numbers(0, 1, BATCH_MAX + 1)),
    "of requests of a stranger": dec(0, 1, numbers(3, 1)),
    "of requests that its receiver never sent": dec(0, 1, numbers(1, 1)),
    "on a ring that changed more often than decisions were made": dec(0, version=I64_MAX),
}


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("decision", FORGED.values(), ids=FORGED)
def test_decisions_that_nobody_can_have_made(rules, decision):
    member = fed(rules)
    assert member.refuses("a", decision)
    if decision is not FORGED["under the name of another"]:
        assert member.refuses("a", Chain((decision,)))
    assert member.engine.chain.number == 0


@pytest.mark.parametrize(
    "decision",
    [
        dec(0, have=(1, 1, 0)),
        dec(0, epoch=Epoch(FIRST_EPOCH.counter + EPOCHS_AHEAD_MAX + 1, 0)),
        dec(0, epoch=Epoch(2, 1)),
    ],
    ids=["its receiver is said to hold it", "too far ahead", "an epoch that its receiver begins"],
)
def test_decisions_that_cannot_be_true_here(decision):
    assert fed().refuses("a", decision)


def test_a_number_has_one_decision_in_an_epoch():
    member = fed()
    member.hear("a", dec(0))
    assert member.refuses("c", dec(2))


def test_a_chain_that_orders_a_request_twice_or_not_in_turn_is_refused():
    for runs in ((numbers(0, 2),), (numbers(0, 1), numbers(0, 2))):
        member = fed()
        assert any(type(effect) is Refuse for effect in member.hear("a", dec(0, 1, *runs)))
        assert member.engine.chain.number == 0


def test_a_chain_that_contradicts_what_is_confirmed_is_refused():
    member = fed()
    member.hear("a", dec(0, have=(1, 0, 0)))
    assert member.engine.confirmed.number == 1
    effects = member.hear("c", dec(2, epoch=Epoch(2, 2), version=2))
    assert Refuse in map(type, effects)
    assert member.engine.chain.at(1).id == dec(0).id


@pytest.mark.parametrize(
    "message",
    [
        Promise(NEXT, ROOT),
        Promise(Epoch(9, 1), ROOT),
        Promise(Epoch(2, 0), ROOT),
        Regen(Epoch(2, 0), 0, FIRST_EPOCH, 0),
        Regen(Epoch(2, 2), 0, Epoch(2, 2), 0),
        Regen(Epoch(2 + EPOCHS_AHEAD_MAX, 2), 0, FIRST_EPOCH, 0),
        Stale(Epoch(2 + EPOCHS_AHEAD_MAX, 2)),
        Stale(Epoch(I64_MAX, 2)),
    ],
    ids=str,
)
def test_words_that_nobody_waits_for_or_that_count_too_far(message):
    member = fed()
    assert member.refuses("c", message)
    assert member.engine.promised == FIRST_EPOCH


@pytest.mark.parametrize("rules", ["paper", "link"])
def test_nobody_is_asked_for_promises_under_the_rules_of_the_paper(rules):
    for word in (Promise(NEXT, ROOT), Regen(NEXT, 0, FIRST_EPOCH, 0), Stale(NEXT)):
        assert fed(rules).refuses("c", word)


def test_a_promise_counts_once_and_with_a_chain_that_can_be():
    member = Fed("b", "abcde", **SMALL)
    member.expire("wait")
    promised = member.engine.promised
    ahead = DecisionId(3, promised, 2)
    stranger = DecisionId(3, FIRST_EPOCH, 7)
    alien = FORGED["in a view of another size"]
    for promise in (
        Promise(promised, ahead),
        Promise(promised, stranger),
        Promise(promised, ROOT, (alien,)),
    ):
        assert member.refuses("c", promise)
    assert member.hear("c", Promise(promised, ROOT)) == []
    assert member.hear("c", Promise(promised, ROOT)) == []
    assert set(member.engine.promises) == {1, 2}


def test_who_says_rejoin_is_believed_up_to_what_there_is():
    member = fed()
    member.hear("a", dec(0))
    member.hear("c", Rejoin(FIRST_EPOCH, I64_MAX))
    assert member.engine.have[2] == 0
    member.hear("c", Rejoin(Epoch(I64_MAX, 2), 1))
    assert member.engine.have[2] == 0
    assert not member.engine.joiners


def test_an_answer_is_bounded_whatever_is_asked_for():
    circle = Circle("ab", **{**SMALL, "window_packets": 64, "buffer_packets": 4096})
    for _ in range(60):
        circle.submit("a")
    circle.run(10)
    member = circle.members["a"]
    effects = member.hear("b", Ask(0, I64_MAX, tuple(numbers(0, 1, 60) for _ in range(9))))
    sent = [effect.message for effect in effects if isinstance(effect, Send)]
    assert all(len(m.decisions) <= PART_DECISIONS for m in sent if isinstance(m, Chain))
    assert 0 < sum(isinstance(m, Req) for m in sent) <= ANSWER_PACKETS
    assert member.refuses("b", Ask(0, 0, (numbers(2, 1),)))


@pytest.mark.parametrize("rules", RULES)
def test_decisions_without_parents_are_kept_up_to_a_limit(rules):
    """They are of one number in many epochs, of many numbers, and in chains without a beginning."""
    member = fed(rules)
    room = SMALL["buffer_packets"]
    for i in range(20 * room):
        epoch = Epoch(2 + i, 0)
        member.hear("a", dec(0, 3, epoch=epoch, parent=DecisionId(2, epoch, 2)))
        member.hear("a", dec(0, 4 + i, epoch=epoch, parent=DecisionId(3 + i, epoch, 2)))
        parts = tuple(
            dec(2, 5 + n, epoch=epoch, parent=DecisionId(4 + n, epoch, 0)) for n in range(16)
        )
        member.hear("c", Chain(parts))
    check_memory(member)


def check_memory(member: Fed) -> None:
    engine = member.engine
    room, size = engine.config.buffer_packets, engine.size
    assert len(list(engine.chain.aside)) <= room
    assert len(engine.chain) <= 4 * room
    assert all(len(bodies) <= 3 * room for bodies in engine.requests.bodies)
    assert set(engine.joiners) <= set(range(size))
    if engine.config.rules != "safe":
        assert len(engine.decisions) <= 4 * room + 1
        assert len(engine.forward._later) <= 4 * room + 1
        assert len(engine.log) <= 4 * room


# Whatever comes

small = st.integers(0, 5)
counts = st.one_of(small, small, small, st.sampled_from((17, 40, 2**33, I64_MAX)))
places = st.sampled_from((0, 0, 1, 1, 2, 2, 3))
epochs = st.one_of(
    st.just(FIRST_EPOCH), st.just(FIRST_EPOCH), st.builds(Epoch, st.integers(0, 4), places)
)
runs = st.lists(
    st.builds(Run, places, st.integers(1, 4), st.sampled_from((1, 1, 2, 9))), max_size=2
).map(tuple)
rings = st.sampled_from(((0, 1, 2),) * 4 + ((0, 1), (1, 2), (0,), (1,), (2,)))


@st.composite
def decisions(draw: st.DrawFn) -> Dec:
    number = draw(st.one_of(st.integers(1, 5), st.sampled_from((17, I64_MAX))))
    epoch = draw(epochs)
    ring = draw(rings)
    return Dec(
        draw(st.sampled_from((*ring, draw(places)))),
        draw(runs),
        number,
        draw(st.sampled_from((1, 1, 2, I64_MAX))),
        ring,
        draw(st.booleans()),
        epoch,
        DecisionId(number - 1, draw(st.one_of(st.just(epoch), epochs)), draw(places))
        if number > 1
        else ROOT,
        tuple(draw(st.lists(small, min_size=3, max_size=3))),
        DecisionId(draw(small), draw(epochs), draw(places)),
    )


chains = st.lists(decisions(), max_size=4).map(tuple)
packets = st.builds(
    lambda node, number, safe: packet(node, number, safe=safe),
    st.sampled_from("abbccd"),
    small,
    st.booleans(),
)
frames = st.one_of(
    st.builds(Req, places, st.one_of(st.integers(1, 5), st.sampled_from((17, I64_MAX))), packets),
    st.builds(lambda place, number: req(place, number), st.integers(1, 2), st.integers(1, 6)),
    decisions(),
    decisions(),
    st.builds(Regen, epochs, counts, epochs, counts),
    st.builds(Promise, epochs, st.builds(DecisionId, counts, epochs, places), chains),
    st.builds(Stale, epochs),
    st.builds(Ask, counts, counts, runs),
    st.builds(Chain, chains),
    st.builds(Rejoin, epochs, counts),
)
steps = st.sampled_from(("submit", "submit", "wait", "hold", "tick", "grace"))
scripts = st.lists(st.tuples(st.sampled_from("bc"), st.one_of(frames, frames, steps)), max_size=40)


class Watched:
    """Member a of a group whose other members say anything, and what must hold of it."""

    def __init__(self, rules: str) -> None:
        self.member = Fed("a", rules=rules, static=rules != "safe", **SMALL)
        self.keys: list[tuple[int, int]] = []
        self.own: list[int] = []

    def step(self, node: str, what: Any) -> None:
        member = self.member
        if what == "submit":
            effects = member.submit(safe=member.submitted % 3 == 2)
        elif isinstance(what, str):
            if what not in member.timers:
                return
            effects = member.expire(what)
        else:
            try:
                what = member.engine.codec.decode(*member.engine.codec.encode(what), 0)
            except WireError:
                return
            effects = member.hear(node, what)
        for effect in effects:
            if isinstance(effect, Deliver):
                self.deliver(effect)
            elif isinstance(effect, Send):
                codec = member.engine.codec
                sent = effect.message
                assert codec.decode(*codec.encode(sent), 0) == sent, "what is sent can be read"
            elif isinstance(effect, Record):
                assert effect.view == member.view.id
        check_memory(member)

    def deliver(self, effect: Deliver) -> None:
        node, number = effect.packet.span.node, effect.packet.span.first
        assert node in self.member.view.members
        if node == "a":
            self.own.append(number)
            assert self.own == list(range(1, len(self.own) + 1)), "own packets in their order"
        if effect.key is not None:
            assert not self.keys or effect.key > self.keys[-1]
            self.keys.append(effect.key)

    def end(self) -> None:
        """The view ends for a alone: whatever came before, it can."""
        engine = self.member.engine
        summaries = {"a": engine.freeze()}
        for item in engine.seal(summaries):
            engine.absorb(item)
        rest = engine.conclude(summaries, self.member.view, ("a",))
        for effect in (*rest.regular, *rest.transitional):
            self.deliver(effect)
        sent = self.member.submitted - self.member.queue.waiting
        assert len(self.own) == sent, "whatever it sent, it delivers"


@pytest.mark.parametrize("rules", RULES)
def test_whatever_comes_a_member_goes_on(rules):
    @given(scripts)
    def goes_on(script: list[tuple[str, Any]]) -> None:
        watched = Watched(rules)
        for node, what in script:
            watched.step(node, what)
        if rules == "safe":
            watched.end()

    goes_on()


@given(st.lists(st.tuples(places, st.integers(1, 4), packets)), chains, scripts)
def test_whatever_is_sealed_is_taken_in_or_refused(requests, brought, script):
    watched = Watched("safe")
    watched.step("a", "submit")
    for node, what in script[:9]:
        watched.step(node, what)
    watched.member.engine.freeze()
    items = [
        Item((0, sender, number), encode_packet(packet)) for sender, number, packet in requests
    ]
    for decision in brought:
        w = Writer()
        write_decision(w, decision)
        items.append(Item((1, decision.number, *decision.epoch), w.done()))
    for item in items:
        try:
            watched.member.engine.absorb(item)
        except WireError:
            continue
    watched.end()


def test_items_that_nobody_can_have_sealed():
    member = fed()
    member.engine.freeze()
    w = Writer()
    write_decision(w, dec(0))
    made = w.done()
    alien = Writer()
    write_decision(alien, FORGED["in a view of another size"])
    own, other = encode_packet(packet("b")), encode_packet(packet("a"))
    for item in (
        Item((0, 1, 1), own),
        Item((0, 0, 0), other),
        Item((0, 2, 1), other),
        Item((0, 3, 1), other),
        Item((1, 1, 1, 1), made),
        Item((1, 1, 1, 0), made + b"more"),
        Item((1, 1, 1, 0), alien.done()),
        Item((2, 1), made),
    ):
        with pytest.raises(WireError):
            member.engine.absorb(item)
    member.engine.absorb(Item((0, 0, 1), other))
    member.engine.absorb(Item((1, 1, 1, 0), made))


def test_a_summary_of_a_stranger_is_none():
    member = fed()
    own = member.engine.freeze()
    with pytest.raises(WireError):
        member.engine.seal({"b": own, "ghost": own})
    for bad in (own[:-1], own + b"x", b"\xff" * len(own)):
        with pytest.raises(WireError):
            read_summary(bad, 3)


def test_a_view_ends_with_what_is_here_whatever_a_summary_promised():
    member = fed()
    member.hear("a", req(0, 1))
    member.hear("a", dec(0, 1, numbers(0, 1), have=(1, 0, 0)))
    own = member.engine.freeze()
    other = Writer()
    for number in (9, 7):
        other.u64(number)
    for place in (2, 2):
        other.u16(place)
    for number in (9, 9, 9, 9, 9):
        other.u64(number)
    summaries = {"a": other.done(), "b": own}
    assert read_summary(summaries["a"], 3).confirmed == 9
    member.engine.seal(summaries)
    end = member.engine.conclude(summaries, member.view, ("a", "b"))
    ended = [*member.delivered, *end.regular, *end.transitional]
    assert [effect.key for effect in ended] == [(1, 0)]


# Bursts


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), min_size=1, max_size=12),
    st.lists(st.integers(1, 40), min_size=1, max_size=12),
)
def test_a_burst_is_its_frames_one_by_one(submits, hops):
    """For a member off the ring, which has nothing to decide."""
    circle = Circle("abcd", deaf="d", window_packets=4, batch_packets=4)
    circle.run(60)
    for i, (node, safe) in enumerate(submits):
        circle.submit(node, safe=safe)
        circle.run(hops[i % len(hops)])
    circle.run(40)
    one, many = (Fed("d", "abcd") for _ in range(2))
    assert circle.members["a"].engine.ring == (0, 1, 2)
    for sender, said in groupby(circle.said, key=itemgetter(0)):
        burst = [message for _, message in said]
        for message in burst:
            one.hear(sender, message)
        many.hear(sender, *burst, *burst[-1:])  # The last one comes as a copy, too.
        assert one.delivered == many.delivered
        assert state(one) == state(many)
    assert one.engine.chain.number > 10
    assert one.delivered


def state(member: Fed) -> tuple[Any, ...]:
    engine = member.engine
    return (
        engine.chain.tip.id,
        engine.held,
        engine.confirmed,
        engine.promised,
        engine.accepted,
        engine.holds,
        engine.ring,
        engine.requests.arrived,
    )
