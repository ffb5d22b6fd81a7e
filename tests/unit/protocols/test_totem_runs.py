"""Totem given many frames at once does what it does when given one after the other."""

import copy
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.protocols.outlet import Queue

from roundelay.core.contract import Origin
from roundelay.core.effects import CancelTimer, Deliver, Effect, Send, SetTimer
from roundelay.core.ids import Packet, Service, Span, View, ViewId
from roundelay.membership.ring import NOBODY, Token
from roundelay.protocols.totem import Config, Data, HoldCancel, Message, TokenPass, TotemEngine

VIEW = View(ViewId(4, "a"), ("a", "b", "c"))
PEER = Origin("g", "b", 0, VIEW.id)


def packet(sender: str, number: int, *, safe: bool = False) -> Packet:
    service = Service.SAFE if safe else Service.AGREED
    return Packet(Span(sender, 0, number), service, b"x")


def engine(waiting: int, accelerated: int = 0) -> TotemEngine:
    """Of node c, with so many packets of its own to send."""
    outlet = Queue(traced=False)
    outlet.packets = [packet("c", number) for number in range(waiting)]
    member = TotemEngine("c", outlet, Config(accelerated=accelerated))
    member.start(VIEW)
    return member


data = st.builds(
    lambda seq, safe: Data(seq, packet("b", seq, safe=safe)), st.integers(1, 12), st.booleans()
)
tokens = st.builds(
    lambda hop, seq, aru: TokenPass(Token(hop, seq, min(aru, seq), NOBODY if aru >= seq else 1)),
    st.integers(0, 12),
    st.integers(0, 12),
    st.integers(0, 12),
)
frames = st.lists(st.one_of(data, data, data, tokens, st.just(HoldCancel())), max_size=30)
lengths = st.lists(st.integers(1, 8), min_size=30, max_size=30)


def split(effects: Sequence[Effect[Any]]) -> tuple[list[Any], list[Any]]:
    """What others and the application see, and timers."""
    timers = [e for e in effects if isinstance(e, SetTimer | CancelTimer)]
    return [e for e in effects if e not in timers], timers


@given(frames, lengths, st.integers(0, 5))
def test_a_run_is_its_frames_one_by_one(
    messages: list[Message], sizes: list[int], waiting: int
) -> None:
    one, many = engine(waiting), engine(waiting)
    singly = [effect for message in messages for effect in one.receive(PEER, message)]
    together: list[Effect[Message]] = []
    for start, end in pairwise(accumulate(sizes, initial=0)):
        together += many.receive_many(PEER, messages[start:end])
    assert split(together) == split(singly)
    assert vars(many.ring) == vars(one.ring)
    assert vars(many.next) == vars(one.next)
    apart = ("ring", "next", "_outlet")
    ours = {name: v for name, v in vars(many).items() if name not in apart}
    theirs = {name: v for name, v in vars(one).items() if name not in apart}
    assert ours == theirs


@given(frames, st.integers(0, 5), st.integers(1, 4))
def test_on_an_accelerated_ring_packets_of_a_run_come_before_the_token_that_tells_of_them(
    messages: list[Message], waiting: int, accelerated: int
) -> None:
    """As if they had come so: in what order the network gives them is nobody's promise."""
    one, many = engine(waiting, accelerated), engine(waiting, accelerated)
    told = next((m.token.seq for m in messages if isinstance(m, TokenPass)), 0)
    ordered = sorted(messages, key=lambda m: not (isinstance(m, Data) and m.seq <= told))
    singly = [effect for message in ordered for effect in one.receive(PEER, message)]
    assert split(many.receive_many(PEER, messages)) == split(singly)
    assert vars(many.ring) == vars(one.ring)


def test_packets_behind_the_token_come_first_if_they_are_here_with_it() -> None:
    member = engine(3, accelerated=2)
    effects = member.receive_many(PEER, [TokenPass(Token(2, 1, 0)), Data(1, packet("b", 0))])
    sent = [effect.message for effect in effects if isinstance(effect, Send)]
    doing = [effect for effect in effects if not isinstance(effect, SetTimer)]
    assert isinstance(doing[0], Deliver)
    assert sent == [
        Data(2, packet("c", 0)),
        TokenPass(Token(3, 4, 2, backlog=0, fcc=3)),
        Data(3, packet("c", 1)),
        Data(4, packet("c", 2)),
    ]


def test_packets_of_a_run_that_came_before_the_token_are_delivered_before_it_goes_on() -> None:
    member = engine(1)
    effects = member.receive_many(
        PEER, [Data(1, packet("b", 0)), TokenPass(Token(2, 1, 1)), Data(3, packet("b", 1))]
    )
    seen = [type(effect).__name__ for effect in split(effects)[0]]
    assert seen == ["Deliver", "Record", "Send", "Record", "Send", "Deliver", "Deliver"]


def test_a_copy_of_an_engine_takes_runs_too() -> None:
    member = copy.deepcopy(engine(0))
    assert len(split(member.receive_many(PEER, [Data(1, packet("b", 0))]))[0]) == 1
