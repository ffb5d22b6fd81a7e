"""Engines on links, whatever a peer sends: no exception, and what always holds goes on to hold."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.protocols.link_members import VIEW, engine, packet

from roundelay.core.contract import Item, Origin
from roundelay.core.effects import Deliver, Record, Send
from roundelay.core.ids import Packet, Service, Span
from roundelay.links.messages import Data, Heartbeat, Request
from roundelay.protocols import allack, causal
from roundelay.protocols.atop.atom import COUNT_MAX, DISTRIBUTION_MAX, Tag
from roundelay.protocols.atop.messages import Content
from roundelay.protocols.atop.slots import WEIGHT_RATIO_MAX, valid
from roundelay.wire.primitives import I64_MAX, WireError

PROTOCOLS = ("atop", "allack", "causal")

SLOTS_MAX = 200_000
"""More slots than any of the inputs below may walk; an endless walk passes them."""

small = st.integers(0, 5)
numbers = st.one_of(small, small, small, st.sampled_from((64, 4096, 4097, I64_MAX)))
vectors = st.one_of(st.tuples(small, small, small), st.lists(numbers, max_size=4).map(tuple))
packets = st.builds(
    lambda node, first, count, safe, to: Packet(
        Span(node, 0, first, count), Service.SAFE if safe else Service.AGREED, b"x", to
    ),
    st.sampled_from("abbbbcccd"),
    small,
    st.sampled_from((0, 1, 1, 3)),
    st.booleans(),
    st.sampled_from((None, None, None, None, ("b",))),
)
maybe = st.one_of(packets, st.none())
weights = st.one_of(
    st.just((5, 2, 1)),
    st.just((5, 2, 1)),
    st.sampled_from(((1, 1, 1), (5, 2, 0), (5, 2), (WEIGHT_RATIO_MAX, 1, 1), (4097, 1, 1))),
)
tags = st.builds(
    lambda distribution, number, count, told: Tag(
        distribution, number, count, told if distribution and not number else None
    ),
    st.sampled_from((0, 0, 0, 1, 1, 2, 3, DISTRIBUTION_MAX)),
    numbers,
    st.sampled_from((1, 1, 1, 2, 5, COUNT_MAX)),
    weights,
)
contents: dict[str, st.SearchStrategy[Any]] = {
    "atop": st.builds(
        lambda tag, content: Content(tag, content if tag.count == 1 else None), tags, maybe
    ),
    "allack": st.builds(allack.Content, st.sampled_from((1, 2, 3, 4, 5, 9, 2**20, 2**40)), maybe),
    "causal": st.builds(causal.Content, vectors, packets),
}


def frames(protocol: str) -> st.SearchStrategy[Any]:
    data = st.builds(
        lambda sender, number, behind, received, content: Data(
            sender, max(1, number), max(0, max(1, number) - behind), received, content
        ),
        st.sampled_from((1, 1, 2, 2, 0, 3)),
        numbers,
        st.integers(1, 9),
        vectors,
        contents[protocol],
    )
    heartbeats = st.builds(Heartbeat, vectors)
    requests = st.builds(Request, small, st.lists(numbers, max_size=5).map(tuple))
    steps = st.sampled_from(("submit", "hold", "period", "missing", "heartbeat", "silence"))
    return st.lists(
        st.tuples(
            st.sampled_from("bbcc"), st.one_of(data, data, data, heartbeats, requests, steps)
        ),
        max_size=40,
    )


class Watched:
    """Member a of a group whose other members say anything, and what must hold of it."""

    def __init__(self, protocol: str) -> None:
        self.protocol = protocol
        self.member, self.queue = engine(protocol, "a", window_packets=4)
        self.keys: list[int] = []
        self.own: list[int] = []
        self.sent = 0

    def step(self, node: str, what: Any) -> None:
        before = self._slot()
        match what:
            case "submit":
                self.sent += 1
                self.queue.packets.append(packet("a", self.sent, safe=self.sent % 3 == 0))
                effects = self.member.submit()
            case "hold" | "period" if what not in self._timers():
                return
            case str():
                effects = self.member.expire(what)
            case _:
                try:
                    tag, body = self.member.codec.encode(what)
                    frame = self.member.codec.decode(tag, body, 0)
                except WireError:
                    return
                effects = self.member.receive(Origin("g", node, 0, VIEW.id), frame)
        assert self._slot() - before < SLOTS_MAX
        self.check(effects)

    def _timers(self) -> tuple[str, ...]:
        return {"atop": ("hold", "period"), "allack": ("hold",), "causal": ()}[self.protocol]

    def _slot(self) -> int:
        return self.member.atom.slot if self.protocol == "atop" else 0

    def check(self, effects: Any) -> None:
        for effect in effects:
            if isinstance(effect, Deliver):
                self.deliver(effect)
            elif isinstance(effect, Send):
                assert self.member.codec.encode(effect.message), "what is sent can be written"
            elif isinstance(effect, Record):
                assert effect.view == VIEW.id
        assert 0 <= self.member.own_waiting <= 4
        if self.protocol == "atop":
            atom = self.member.atom
            assert all(valid(told, 3) for told in atom.known.values())
            assert atom.newest == max(atom.known)
            assert atom.distribution in atom.known
            assert atom.waiting >= 0
        elif self.protocol == "causal":
            assert all(
                map(int.__le__, self.member.causal.delivered, self.member.link.ledger.received)
            )

    def deliver(self, effect: Deliver) -> None:
        assert effect.packet.span.node in VIEW.members
        if effect.packet.span.node == "a":
            self.own.append(effect.packet.span.first)
            assert self.own == list(range(1, len(self.own) + 1)), "own packets in their order"
        if effect.key is not None:
            assert 0 <= effect.key[0] <= I64_MAX
            assert not self.keys or effect.key[0] > self.keys[-1]
            self.keys.append(effect.key[0])

    def end(self) -> None:
        """The view ends for a alone: whatever came before, it can."""
        summaries = {"a": self.member.freeze()}
        for item in self.member.seal(summaries):
            self.member.absorb(item)
        rest = self.member.conclude(summaries, VIEW, ("a",))
        for effect in (*rest.regular, *rest.transitional):
            self.deliver(effect)
        waiting = self.sent - self.queue.waiting
        assert len(self.own) == waiting, "whatever it sent, it delivers"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_whatever_comes_an_engine_goes_on(protocol):
    @given(frames(protocol))
    def goes_on(script: list[tuple[str, Any]]) -> None:
        watched = Watched(protocol)
        for node, what in script:
            watched.step(node, what)
        watched.end()

    goes_on()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_whatever_is_sealed_is_taken_in_or_refused(protocol):
    @given(st.lists(st.tuples(small, small, contents[protocol]), max_size=20))
    def takes_in(items: list[tuple[int, int, Any]]) -> None:
        watched = Watched(protocol)
        watched.step("a", "submit")
        watched.member.freeze()
        for sender, number, content in items:
            try:
                watched.member.absorb(Item((sender, number), watched.member.codec.pack(content)))
            except WireError:
                continue
        watched.end()

    takes_in()


# Bursts


def honest(protocol: str, script: list[tuple[int, bool, bool]]) -> list[Any]:
    """Frames of b, as an engine sends them that hears now and then of c."""
    sender, queue = engine(protocol, "b")
    made: list[Any] = []
    heard = 0
    for number, (kind, safe, null) in enumerate(script):
        if kind == 0:
            heard += 1
            content = {
                "atop": Content(Tag(0, heard - 1), packet("c", heard)),
                "allack": allack.Content(10 * heard, packet("c", heard)),
                "causal": causal.Content((0, 0, heard - 1), packet("c", heard)),
            }[protocol]
            effects = sender.receive(
                Origin("g", "c", 0, VIEW.id), Data(2, heard, 0, (0, 0, heard), content)
            )
        elif kind == 1:
            effects = sender.expire("heartbeat")
        elif kind == 2 and null and protocol != "causal":
            effects = sender.expire("hold")
        else:
            queue.packets.append(packet("b", number, safe=safe))
            effects = sender.submit()
        made += [effect.message for effect in effects if isinstance(effect, Send)]
    return made


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_burst_is_its_frames_one_by_one(protocol):
    """For a member that sends nothing itself: what it would send depends on what it has."""

    @given(
        st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.booleans()), max_size=25),
        st.integers(1, 6),
    )
    def alike(script: list[tuple[int, bool, bool]], size: int) -> None:
        messages = honest(protocol, script)
        peer = Origin("g", "b", 0, VIEW.id)
        one, many = engine(protocol, "a")[0], engine(protocol, "a")[0]
        singly: list[Any] = []
        together: list[Any] = []
        for start in range(0, len(messages), size):
            burst = messages[start : start + size]
            singly += [effect for message in burst for effect in one.receive(peer, message)]
            together += many.receive_many(peer, burst)
            assert one.link.ledger.received == many.link.ledger.received
            assert one.link.ledger.stable == many.link.ledger.stable
        for kind in (Deliver, Record):
            assert sorted(map(repr, of(singly, kind))) == sorted(map(repr, of(together, kind)))
        assert of(singly, Deliver) == of(together, Deliver)

    alike()


def of(effects: list[Any], kind: type) -> list[Any]:
    return [effect for effect in effects if isinstance(effect, kind)]
