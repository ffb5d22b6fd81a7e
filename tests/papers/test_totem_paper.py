"""Claims of [Totem95], one by one: set up, one input, compare effects.

First the ring (sections 5 and 8), then the engine on top of it (5 and 7). Members of a ring are
numbered by their place. Where Roundelay does otherwise than the paper on purpose, the test says
so.
"""

from collections.abc import Callable

import pytest
from tests.unit.protocols.outlet import Queue

from roundelay.core.contract import Item, Origin
from roundelay.core.effects import (
    CancelTimer,
    Deliver,
    Effect,
    Kind,
    Receipt,
    Record,
    Refuse,
    Send,
    SetTimer,
    Suspect,
)
from roundelay.core.ids import NodeId, Packet, Service, Span, View, ViewId
from roundelay.membership.ring import NOBODY, Ring, RingConfig, Token
from roundelay.protocols.totem import (
    Config,
    Data,
    HoldCancel,
    Message,
    TokenPass,
    TotemEngine,
)

# The ring


def a_ring(me: int = 0, *have: int, size: int = 3, **config: int) -> Ring[str]:
    """A member that holds these packets."""
    ring: Ring[str] = Ring(me, size, RingConfig(**config))
    for seq in have:
        ring.store(seq, f"p{seq}")
    return ring


def supply(count: int) -> Callable[[], str | None]:
    """So many packets to send."""
    packets = iter(f"new{i}" for i in range(count))
    return lambda: next(packets, None)


def visit(ring: Ring[str], token: Token, waiting: int = 0) -> Token:
    """Use a token and forward it."""
    hop = ring.visit(token, waiting, supply(waiting)).token
    ring.forward(hop)
    return hop


def test_new_packets_take_the_numbers_after_the_tokens():
    """§5: each new packet raises the token's seq by one; its sender has it from then on."""
    ring = a_ring(0, 1, 2)
    done = ring.visit(Token(7, seq=2, aru=2), 2, supply(2))
    assert done.fresh == [(3, "new0"), (4, "new1")]
    assert (done.token.seq, done.token.aru, done.token.aru_id) == (4, 4, NOBODY)
    assert ring.aru == ring.high_seq == 4


def test_every_hop_has_its_own_number():
    """§5: token_seq grows by one with every forwarding."""
    ring = a_ring()
    assert visit(ring, Token(7)).token_seq == ring.token_seq == 8


@pytest.mark.parametrize(
    ("have", "token", "forwarded"),
    [
        # Behind what the token says: lower it, and sign.
        ((1,), Token(1, seq=3, aru=3), (1, 0)),
        ((1,), Token(1, seq=3, aru=2, aru_id=2), (1, 0)),
        # Signed by this node: raise it to what is here, all the way or part of it.
        ((1, 2, 3), Token(1, seq=3, aru=1, aru_id=0), (3, NOBODY)),
        ((1, 2), Token(1, seq=3, aru=1, aru_id=0), (2, 0)),
        # Signed by another: not for this node to raise, however much is here.
        ((1, 2, 3), Token(1, seq=3, aru=1, aru_id=2), (1, 2)),
        # Just as far behind as another has said already: nothing to add.
        ((1,), Token(1, seq=3, aru=1, aru_id=2), (1, 2)),
    ],
)
def test_aru_is_lowered_by_anybody_and_raised_by_whoever_lowered_it(have, token, forwarded):
    """§5: aru is lowered to one's own, with one's id; only the node named there raises it."""
    hop = visit(a_ring(0, *have), token)
    assert (hop.aru, hop.aru_id) == forwarded


def test_aru_goes_along_with_seq_while_nobody_lacks_anything():
    """§5: where aru equals seq and nothing is missing, new packets raise both."""
    hop = visit(a_ring(1, 1), Token(1, seq=1, aru=1), waiting=2)
    assert (hop.seq, hop.aru, hop.aru_id) == (3, 3, NOBODY)


def test_new_packets_do_not_raise_an_aru_that_another_holds_down():
    """§5: a sender that has everything still leaves the other's aru alone."""
    hop = visit(a_ring(1, 1), Token(1, seq=1, aru=0, aru_id=2), waiting=2)
    assert (hop.seq, hop.aru, hop.aru_id) == (3, 0, 2)


def test_what_is_missing_is_requested():
    """§5: every number up to the token's seq that is not here goes into the list."""
    hop = visit(a_ring(0, 1, 3), Token(1, seq=5, aru=5))
    assert hop.requests == (2, 4, 5)


def test_requests_are_served_by_whoever_can():
    """§5: what is here is sent again unchanged and leaves the list; the rest stays."""
    ring = a_ring(0, 1, 2)
    done = ring.visit(Token(1, seq=3, aru=0, aru_id=1, requests=(1, 2, 3)), 0, supply(0))
    assert done.again == [(1, "p1"), (2, "p2")]
    assert done.token.requests == (3,)


def test_the_list_of_requests_is_bounded():
    """The paper sets no limit; ours keeps the lowest, so that the token fits its datagram."""
    hop = visit(a_ring(requests_max=3), Token(1, seq=9, aru=9))
    assert hop.requests == (1, 2, 3)


def test_safe_needs_two_rotations():
    """§5.2: safe is what both of the last two tokens this node forwarded call received."""
    ring = a_ring(0, 1, 2)
    hop = visit(ring, Token(1, seq=2, aru=2))
    assert ring.safe_line == 0
    visit(ring, Token(hop.token_seq + 2, seq=2, aru=2))
    assert ring.safe_line == 2


def test_an_aru_that_was_raised_too_high_is_caught_by_the_second_rotation():
    """§5.2: one rotation would be wrong. Whoever raises aru does not know how others fare; one
    who is worse off lowers it a rotation later."""
    ring = a_ring(0, 1, 2)
    visit(ring, Token(1, seq=2, aru=2))
    visit(ring, Token(4, seq=2, aru=1, aru_id=1))
    assert ring.safe_line == 1


def test_what_was_safe_stays_safe():
    """§5.2: whatever later tokens say."""
    ring = a_ring(0, 1, 2)
    for token_seq in (1, 4):
        visit(ring, Token(token_seq, seq=2, aru=2))
    visit(ring, Token(7, seq=3, aru=1, aru_id=1))
    assert ring.safe_line == 2


@pytest.mark.parametrize("token_seq", [4, 5])
def test_copies_of_the_token_are_known(token_seq):
    """§5.2: a token whose number is not above the last one forwarded is a copy."""
    ring = a_ring()
    visit(ring, Token(4))
    assert not ring.accepts(Token(token_seq))
    assert ring.accepts(Token(7))


def test_a_packet_is_stored_once():
    """§5: what is here already, or was here and is safe everywhere, is dropped."""
    ring = a_ring(0, 1)
    assert not ring.store(1, "again")
    assert ring.have[1] == "p1"
    ring.discard(1)
    assert not ring.store(1, "again")
    assert ring.aru == 1


@pytest.mark.parametrize(
    ("token", "sent", "left", "waiting", "requests", "expected"),
    [
        # Nobody else has sent: as much as one visit may, which here is less than the window.
        (Token(1), 0, 0, 50, (), (0, 20)),
        # Others have used up 70 of a window of 80.
        (Token(1, fcc=70), 0, 0, 50, (), (0, 10)),
        # Of the 70, 20 were this node's own, a rotation ago: they do not count.
        (Token(1, fcc=70), 20, 0, 50, (), (0, 20)),
        # The window is used up, and more than that.
        (Token(1, fcc=80), 0, 0, 5, (), (0, 0)),
        (Token(1, fcc=95), 0, 0, 5, (), (0, 0)),
        # Ten of a hundred that wait everywhere are here: a tenth of the window.
        (Token(1, backlog=90), 0, 0, 10, (), (0, 8)),
        # The same, where four of the backlog were this node's own at its last visit.
        (Token(1, backlog=94), 0, 4, 10, (), (0, 8)),
        # A share that rounds down to nothing is one nevertheless.
        (Token(1, backlog=999), 0, 0, 1, (), (0, 1)),
        # So it is after a visit that sent, unless the window is full: then others have their turn.
        (Token(1, fcc=79, backlog=999), 1, 0, 1, (), (0, 1)),
        (Token(1, fcc=80, backlog=999), 1, 0, 1, (), (0, 0)),
        # Nothing waits anywhere: no division, and nothing to send.
        (Token(1), 0, 0, 0, (), (0, 0)),
        # Retransmissions come out of the allowance first.
        (Token(1, fcc=75), 0, 0, 50, (1, 2, 3), (3, 2)),
        (Token(1, fcc=78), 0, 0, 50, (1, 2, 3), (2, 0)),
    ],
)
def test_flow_control(token, sent, left, waiting, requests, expected):
    """§8: the window less what others sent since the last visit, at most a visit's maximum, and
    of new packets a share by what waits. Deviations: a node's own last visit does not count, and
    a share that rounds to nothing is one, in turns if the window is full."""
    ring = a_ring(0, 1, 2, 3, window_packets=80, visit_packets=20)
    ring.sent, ring.left = sent, left
    token = Token(1, 3, 3, NOBODY, requests, token.fcc, token.backlog)
    done = ring.visit(token, waiting, supply(waiting))
    assert (len(done.again), len(done.fresh)) == expected
    total = sum(expected)
    assert done.token.fcc == token.fcc + total - sent
    assert done.token.backlog == token.backlog + waiting - expected[1] - left
    assert (ring.sent, ring.left) == (total, waiting - expected[1])


def test_the_counters_of_the_token_are_sums_over_the_ring():
    """§8: fcc is what all sent in their last visits, within the window; backlog is what they left
    waiting."""
    rings = [a_ring(me, window_packets=10, visit_packets=6) for me in range(3)]
    waiting = [40, 5, 0]
    token = Token(0)
    for turn in range(30):
        me = turn % 3
        done = rings[me].visit(token, waiting[me], supply(waiting[me]))
        waiting[me] -= len(done.fresh)
        for other in rings:
            for seq, packet in done.fresh:
                other.store(seq, packet)
        token = done.token
        rings[me].forward(token)
        assert token.fcc == sum(ring.sent for ring in rings) <= 10
        assert token.backlog == sum(ring.left for ring in rings)
    assert waiting == [0, 0, 0]
    assert token.seq == 45


@pytest.mark.parametrize(
    ("window", "waiting"), [(4, [99] * 6), (1, [99] * 3), (8, [999, 3, 99, 2])]
)
def test_everybody_sends_however_small_the_window_is(window, waiting):
    """The paper leaves open what a node does whose share rounds to nothing."""
    rings = [
        Ring[str](me, len(waiting), RingConfig(window_packets=window)) for me in range(len(waiting))
    ]
    token, sent = Token(0), [0] * len(rings)
    for _ in range(4 * len(rings)):
        for me, ring in enumerate(rings):
            done = ring.visit(token, waiting[me], supply(waiting[me]))
            for other in rings:
                for seq, packet in done.fresh:
                    other.store(seq, packet)
            token = done.token
            ring.forward(token)
            assert token.fcc <= window
            waiting[me] -= len(done.fresh)
            sent[me] += len(done.fresh)
    assert all(packets >= 2 for packets in sent)
    assert sum(sent) >= 4 * len(rings) * window // 2


def test_nothing_new_is_sent_past_the_buffer():
    """The paper has unbounded buffers; here new packets wait until the slowest member has let
    old ones be forgotten."""
    ring = a_ring(0, 1, 2, 3, buffer_packets=5)
    done = ring.visit(Token(1, seq=3, aru=0, aru_id=1), 9, supply(9))
    assert [seq for seq, _ in done.fresh] == [4, 5]


def stall(ring: Ring[str], times: int, aru_id: int = 2) -> list[int | None]:
    """Visits of a token whose aru does not move; whom each one accuses."""
    accused = []
    for turn in range(times):
        done = ring.visit(Token(turn * 3, seq=2, aru=1, aru_id=aru_id), 0, supply(0))
        ring.forward(done.token)
        accused.append(done.accused)
    return accused


def test_a_member_that_does_not_receive_is_accused():
    """§6.2: when aru has not moved for so many visits, whoever holds it down is accused."""
    # The first visit shows the value, and `fail_to_receive_visits` repeat it without consequence.
    assert stall(a_ring(0, 1, 2, fail_to_receive_visits=3), 5) == [None, None, None, None, 2]


def test_nobody_accuses_itself():
    """§6.2 says another processor is accused; the paper's figure 3 has the node accuse itself,
    which would leave it without any membership."""
    assert stall(a_ring(2, 1, fail_to_receive_visits=3), 9, aru_id=2) == [None] * 9


def test_progress_clears_the_accused():
    """§6.2: the count begins again when aru moves."""
    ring = a_ring(0, 1, 2, 3, fail_to_receive_visits=3)
    stall(ring, 4)
    moved = ring.visit(Token(12, seq=3, aru=2, aru_id=2), 0, supply(0))
    assert moved.accused is None
    ring.forward(moved.token)
    assert stall(ring, 4) == [None] * 4


def test_an_idle_ring_accuses_nobody():
    """§6.2: an aru that stands still because it equals seq is no failure to receive."""
    assert stall(a_ring(0, 1, 2, fail_to_receive_visits=3), 9, aru_id=NOBODY) == [None] * 9


# The engine

VIEW = View(ViewId(8, "a"), ("a", "b", "c"))
PASSING = View(ViewId(11, "a"), ("a", "b"), transitional=True, previous=VIEW.id)


class Member:
    """An engine in a view, with a queue; inputs return what it does."""

    def __init__(self, node: NodeId = "a", view: View = VIEW, **config: float) -> None:
        self.queue = Queue()
        self.engine = TotemEngine(node, self.queue, Config(**config))  # type: ignore[arg-type]
        self.begun = self.engine.start(view)

    def data(self, seq: int, packet: Packet) -> list[Effect[Message]]:
        return self.engine.receive(_from(packet.span.node), Data(seq, packet))

    def token(
        self, token_seq: int, seq: int, aru: int | None = None, aru_id: int = NOBODY
    ) -> list[Effect[Message]]:
        token = Token(token_seq, seq, seq if aru is None else aru, aru_id)
        return self.engine.receive(_from("c"), TokenPass(token))

    def submit(self, *packets: Packet) -> list[Effect[Message]]:
        self.queue.packets += packets
        return self.engine.submit()

    def hold(self, **packets: Packet) -> None:
        """Packets that arrive: `m3=packet` at number 3."""
        for name, packet in packets.items():
            self.data(int(name[1:]), packet)

    def rest(self) -> None:
        """Let the token come until it rests here."""
        for turn in range(1, 6):
            self.token(turn * 3, 0)
        assert self.engine.held is not None


def _from(node: NodeId) -> Origin:
    return Origin("g", node, 0, VIEW.id)


def packet(node: NodeId, number: int = 0, *, safe: bool = False) -> Packet:
    service = Service.SAFE if safe else Service.AGREED
    return Packet(Span(node, 0, number), service, f"{node}{number}".encode())


def delivered(effects: list[Effect[Message]]) -> list[Packet]:
    return [effect.packet for effect in effects if isinstance(effect, Deliver)]


def sent(effects: list[Effect[Message]]) -> list[Message]:
    return [effect.message for effect in effects if isinstance(effect, Send)]


def timers(effects: list[Effect[Message]]) -> list[SetTimer | CancelTimer]:
    return [effect for effect in effects if isinstance(effect, SetTimer | CancelTimer)]


def test_the_representative_makes_the_first_token():
    """§6: the token of a new ring starts at the representative; the others wait for it."""
    assert sent(Member("a").begun) == [TokenPass(Token(1))]
    assert sent(Member("b").begun) == []


def test_the_token_goes_to_the_successor():
    """§5: packets go to everybody, the token to the next member alone."""
    member = Member("b")
    member.submit(packet("b"))
    sends = [effect for effect in member.token(1, 0) if isinstance(effect, Send)]
    assert [(type(send.message), send.to) for send in sends] == [(Data, None), (TokenPass, "c")]


def test_only_the_holder_of_the_token_sends():
    """§5: a message waits for the token."""
    assert sent(Member("b").submit(packet("b"))) == []


def test_agreed_packets_are_delivered_as_soon_as_nothing_is_missing_before_them():
    """§5.2: agreed order needs no more than all earlier packets."""
    member = Member("b")
    first, second = packet("a"), packet("c")
    assert delivered(member.data(2, second)) == []
    assert delivered(member.data(1, first)) == [first, second]


def test_a_safe_packet_is_delivered_in_the_second_visit_that_finds_it_everywhere():
    """§5.2: not when it arrives, not after one rotation, but after two."""
    member = Member("b")
    safe = packet("a", safe=True)
    assert delivered(member.data(1, safe)) == []
    assert delivered(member.token(1, 1)) == []
    assert delivered(member.token(4, 1)) == [safe]


def test_a_safe_packet_holds_back_what_is_behind_it():
    """§5.2: order comes before speed; an agreed packet behind a safe one waits with it."""
    member = Member("b")
    safe, agreed = packet("a", safe=True), packet("c")
    member.data(1, safe)
    assert delivered(member.data(2, agreed)) == []
    member.token(1, 2)
    assert delivered(member.token(4, 2)) == [safe, agreed]


def test_the_originator_delivers_its_own_packet_by_the_same_rules():
    """§5.2: an agreed one in the visit that sends it, a safe one two rotations later."""
    member = Member("b")
    agreed, safe = packet("b", 0), packet("b", 1, safe=True)
    member.submit(agreed, safe)
    assert delivered(member.token(1, 0)) == [agreed]
    assert delivered(member.token(4, 2)) == [safe]


def test_a_retransmission_is_the_packet_unchanged():
    """§5: sender, number and service are the originator's, whoever sends it again."""
    member = Member("b")
    safe = packet("a", safe=True)
    member.data(1, safe)
    asked = Token(1, seq=1, aru=0, aru_id=2, requests=(1,))
    again = sent(member.engine.receive(_from("a"), TokenPass(asked)))
    assert again == [Data(1, safe), TokenPass(Token(2, 1, 0, 2, (), 1))]


def test_a_copy_of_the_token_does_nothing():
    """§5.2: it is dropped, and restarts no timer."""
    member = Member("b")
    member.token(1, 0)
    assert member.token(1, 0) == []


def test_a_copy_of_a_packet_is_not_delivered_again():
    """§5: and restarts no timer either; that it came is recorded."""
    member = Member("b")
    first = packet("a")
    member.data(1, first)
    assert member.data(1, first) == [Record(Kind.RECEIVE, first, VIEW.id)]


def test_a_packet_of_a_stranger_is_no_packet_of_this_ring():
    assert [type(effect) for effect in Member("b").data(1, packet("z"))] == [Refuse]


def test_a_token_that_may_be_lost_is_sent_again_unchanged():
    """§5.2: and again, until something shows that it went on."""
    member = Member("b")
    (forwarded,) = sent(member.token(1, 0))
    again = member.engine.expire("token_retransmit")
    assert sent(again) == [forwarded]
    assert timers(again) == [SetTimer("token_retransmit", 0.015)]


def test_a_later_packet_shows_that_the_token_went_on():
    """§5.2 stops retransmitting for any packet, and in one figure starts the timer anew. Here it
    is started anew, by packets that were sent after our token alone."""
    member = Member("b")
    member.token(1, 1)
    assert SetTimer("token_retransmit", 0.015) in timers(member.data(2, packet("c")))
    assert timers(member.data(1, packet("a"))) == []


def test_the_first_packet_of_each_next_sender_puts_off_the_loss_of_the_token():
    """§6.2.1 has messages put it off, figure 3 only tokens. Here the first new packet of a sender
    does, until another one sends: it had the token since. Further packets of it, and those that
    come again, say nothing about where the token is now."""
    member = Member("b")
    loss = SetTimer("token_loss", 0.1)
    assert loss in member.token(1, 0)
    assert loss in timers(member.data(1, packet("c")))
    assert loss not in timers(member.data(2, packet("c", 1)))
    assert loss not in timers(member.data(1, packet("c")))
    assert loss in timers(member.data(3, packet("a")))


def test_without_a_token_the_view_is_over():
    """§6.2: nobody is accused, the ring as a whole is."""
    (effect,) = Member("b").engine.expire("token_loss")
    assert effect == Suspect((), "the token is lost")


def test_a_deaf_member_is_named_and_the_token_kept():
    """§6.2: whoever notices the failure to receive does not forward the token."""
    member = Member("a", fail_to_receive_visits=2)
    member.data(1, packet("b"))
    for turn in range(1, 3):
        member.token(turn * 3, 1, aru=0, aru_id=2)
    effects = member.token(9, 1, aru=0, aru_id=2)
    assert Suspect(("c",), "it fails to receive") in effects
    assert sent(effects) == []
    # The token is out of the ring: a copy of it, sent again by whoever passed it on, is nothing.
    assert member.token(9, 1, aru=0, aru_id=2) == []
    assert member.token(12, 1, aru=0, aru_id=2) == []


# An idle ring, of which the paper says nothing


def test_the_token_of_an_idle_ring_rests():
    """A ring with nothing to do must not keep every processor busy: after some idle rotations the
    token stays unused where the last packet came from, at first with the representative."""
    member = Member("a")
    for turn in range(1, 4):
        assert sent(member.token(turn * 3, 0))
    effects = member.token(12, 0)
    assert sent(effects) == []
    assert SetTimer("token_hold", 0.008) in effects
    assert CancelTimer("token_retransmit") in effects
    assert member.engine.held == Token(12)


def test_the_token_rests_with_the_last_sender_alone():
    member = Member("b")
    for turn in range(1, 9):
        assert sent(member.token(turn * 3 - 2, 0))


def test_the_token_does_not_rest_while_something_is_not_yet_safe():
    """Or a safe message would wait for the rest to be over."""
    member = Member("a", idle_rotations=0)
    member.submit(packet("a", safe=True))
    assert sent(member.token(3, 0))
    assert sent(member.token(6, 1))
    assert member.engine.delivered == 1
    assert sent(member.token(9, 1)) == []


def test_the_rest_ends_by_itself():
    member = Member("a")
    member.rest()
    assert sent(member.engine.expire("token_hold")) == [TokenPass(Token(13))]


def test_the_rest_ends_when_the_holder_has_something_to_say():
    member = Member("a")
    member.rest()
    mine = packet("a")
    assert sent(member.submit(mine)) == [
        Data(1, mine),
        TokenPass(Token(13, 1, 1, NOBODY, (), 1)),
    ]


def test_the_rest_ends_when_somebody_asks():
    member = Member("a")
    member.rest()
    assert sent(member.engine.receive(_from("b"), HoldCancel())) == [TokenPass(Token(13))]
    assert member.engine.receive(_from("b"), HoldCancel()) == []


def test_whoever_has_something_to_say_asks_once():
    """And only where the token may be resting: on an idle ring, at whoever sent last."""
    member = Member("b")
    for turn in range(4):
        assert sent(member.submit()) == []
        member.token(turn * 3 + 1, 0)
    assert member.submit(packet("b")) == [Send(HoldCancel(), VIEW.id, "a")]
    assert member.submit(packet("b", 1)) == []


def test_a_copy_of_the_token_does_not_disturb_its_rest():
    member = Member("a")
    member.rest()
    assert member.token(12, 0) == []
    assert member.token(15, 0) == []


def test_a_token_that_rests_here_is_not_sent_again():
    """Its last copy went to a successor that passed it on: it came back."""
    member = Member("a")
    member.rest()
    assert member.engine.expire("token_retransmit") == []


# A ring of one


def test_a_ring_of_one_delivers_at_once():
    """§5 passes a token from a node to itself; here nothing goes over the wire and no timer runs.
    Both services are satisfied by the only member's having it."""
    alone = Member("a", View(ViewId(8, "a"), ("a",)))
    assert alone.begun == []
    agreed, safe, last = packet("a", 0), packet("a", 1, safe=True), packet("a", 2)
    effects = alone.submit(agreed, safe, last)
    assert delivered(effects) == [agreed, safe, last]
    assert not sent(effects)
    assert not timers(effects)


def test_a_ring_of_one_begins_with_what_waited():
    """§7: messages submitted while the ring was formed are sent on it."""
    queue = Queue()
    queue.packets.append(packet("a", safe=True))
    effects = TotemEngine("a", queue).start(View(ViewId(8, "a"), ("a",)))
    assert delivered(effects) == [packet("a", safe=True)]


# The end of a view


def summary(aru: int, last: int) -> bytes:
    """What a member says of itself: all received up to `aru`, delivered up to `last`."""
    return aru.to_bytes(8) + last.to_bytes(8)


def end(member: Member, *others: bytes, obligations: str = "ab") -> tuple[str, str]:
    """What is delivered at the end, in the old view and after it, for a and b who move on."""
    own = member.engine.freeze()
    summaries = dict(zip("bcd", others, strict=False)) | {"a": own}
    member.engine.seal(summaries)
    conclusion = member.engine.conclude(summaries, PASSING, tuple(obligations))
    return words(conclusion.regular), words(conclusion.transitional)


def words(effects: tuple[Deliver | Receipt, ...]) -> str:
    deliveries = [effect for effect in effects if isinstance(effect, Deliver)]
    return " ".join(f"m{d.key[0]}" for d in deliveries if d.key is not None)


def test_a_frozen_engine_stores_and_does_no_more():
    """§6: what a member reports in the Commit token must stay true: nothing is delivered from
    then on, and the old token is dropped."""
    member = Member("a")
    assert member.engine.freeze() == summary(0, 0)
    late = packet("b")
    assert member.data(1, late) == [Record(Kind.RECEIVE, late, VIEW.id)]
    assert member.token(3, 1) == []
    assert member.engine.freeze() == summary(1, 0)


def test_what_somebody_may_lack_is_offered():
    """§7.1: everything above the lowest aru of those who come from the same ring."""
    member = Member("a")
    member.hold(m1=packet("b"), m2=packet("b", 1), m4=packet("c"))
    summaries = {"a": member.engine.freeze(), "b": summary(1, 1)}
    assert [item.key for item in member.engine.seal(summaries)] == [(2,), (4,)]


def test_what_was_offered_is_taken_in_once():
    """§7.1: exchanged packets keep their old numbers, and copies of them change nothing."""
    giver, taker = Member("b"), Member("a")
    giver.hold(m1=packet("c"))
    summaries = {"a": taker.engine.freeze(), "b": giver.engine.freeze()}
    (item,) = giver.engine.seal(summaries)
    assert isinstance(item, Item)
    for _ in range(2):
        (record,) = taker.engine.absorb(item)
        assert record.kind is Kind.RECEIVE
        assert taker.engine.ring.have == {1: packet("c")}


def test_agreed_packets_up_to_the_first_gap_belong_to_the_old_view():
    """§7.2: everything before a gap and before an undecided safe packet is delivered there."""
    member = Member("a")
    member.engine.freeze()
    member.hold(m1=packet("b"), m2=packet("c"))
    assert end(member, summary(2, 0)) == ("m1 m2", "")


def test_safe_for_one_survivor_is_safe_for_all():
    """§7.2: if any of them delivered it, all deliver it in the old view."""
    member = Member("a")
    member.hold(m1=packet("b", safe=True), m2=packet("c"))
    assert end(member, summary(2, 1)) == ("m1 m2", "")


def test_safe_for_nobody_is_delivered_among_those_who_are_left():
    """§7.2: what none of them has delivered follows in the transitional view, and so does what
    waited behind it, whoever sent it."""
    member = Member("a")
    member.hold(m1=packet("b", safe=True), m2=packet("c"))
    assert end(member, summary(2, 0)) == ("", "m1 m2")


def test_what_a_member_alone_knows_to_be_safe_counts_for_nothing():
    """§7.2 lets a member use that it saw the token twice, which not all who move on together may
    have seen. Here only reports count: what was safe was delivered, and is in them."""
    member = Member("a")
    member.hold(m1=packet("b", safe=True))
    member.token(3, 1)
    member.engine.freeze()
    member.engine.ring.safe_line = 1
    assert end(member, summary(1, 0)) == ("", "m1")


def test_behind_a_gap_only_messages_of_those_who_are_left():
    """§7.2: a message may depend on what is missing, unless its sender, who is with us, would
    have it. m2 is missing; c is gone."""
    member = Member("a")
    member.hold(m1=packet("b"), m3=packet("c"), m4=packet("b", 1), m5=packet("c", 1))
    assert end(member, summary(1, 1)) == ("", "m4")


def test_behind_a_gap_also_messages_of_those_an_earlier_attempt_owed():
    """§7.2: a member that took part in an attempt which somebody may have completed delivers what
    would have been delivered then. The paper leaves open how that is remembered."""
    member = Member("a")
    member.hold(m2=packet("c"))
    assert end(member, summary(0, 0), obligations="abc") == ("", "m2")


def test_the_worked_example_of_the_paper():
    """§7.3, at q, who moves on with r, s and t. After the exchange it holds all but m5, of which
    p, who is gone, sent m1, m5 and m6; m3 is safe. m1 and m2 were delivered before."""
    q = Member("q", View(ViewId(16, "p"), tuple("pqrst")))
    senders = {1: "p", 2: "q", 3: "r", 4: "q", 6: "p", 7: "s"}
    for seq, node in senders.items():
        if node == "q":  # Its own are here from when it sent them.
            q.engine.ring.store(seq, packet(node, seq))
        else:
            q.data(seq, packet(node, seq, safe=seq == 3))
    assert q.engine.delivered == 2
    reports = {"q": q.engine.freeze()} | dict.fromkeys("rst", summary(1, 1))
    q.engine.seal(reports)
    passing = View(ViewId(19, "q"), tuple("qrst"), transitional=True)
    conclusion = q.engine.conclude(reports, passing, tuple("qrst"))
    assert (words(conclusion.regular), words(conclusion.transitional)) == ("", "m3 m4 m7")


def test_a_new_view_starts_from_nothing():
    """§7: the counters of a ring begin anew, and nothing of the old one is left in it."""
    member = Member("a")
    member.hold(m1=packet("b"))
    end(member, summary(1, 1))
    member.engine.start(View(ViewId(12, "a"), ("a", "b")))
    assert (member.engine.delivered, member.engine.ring.have) == (0, {})
    assert delivered(member.data(1, packet("b", 1))) == [packet("b", 1)]
