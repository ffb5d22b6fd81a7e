"""The DTP family, one input at a time: books, token, timers, nonsense, and the end of a view."""

from random import Random

import pytest

from roundelay.core.contract import Conclusion, Item, Origin
from roundelay.core.effects import Deliver, Kind, Record, Send, SetTimer, Suspect
from roundelay.core.ids import Packet, Service, Span, View, ViewId
from roundelay.group.engines import engine_factory
from roundelay.membership.config import TIMERS
from roundelay.protocols.dtp import engine as machine
from roundelay.protocols.dtp.engine import DtpEngine
from roundelay.protocols.dtp.ledger import Ledger
from roundelay.protocols.dtp.messages import BATCH_MAX, NOBODY, Ack, DtpCodec, Message, Msg, Req
from roundelay.protocols.dtp.policy import CM, DTP, PINWHEEL, Config, PinwheelConfig, Policy
from roundelay.protocols.dtp.token import Grip
from roundelay.wire.primitives import WireError

ABC = View(ViewId(8, "a"), ("a", "b", "c"))
STATIC = View(ViewId(0, "a"), ("a", "b", "c"))


class Queue:
    """Packets that wait, as the group layer would hold them."""

    traced = True

    def __init__(self) -> None:
        self.packets: list[Packet] = []

    @property
    def waiting(self) -> int:
        return len(self.packets)

    def pull(self) -> Packet | None:
        return self.packets.pop(0) if self.packets else None


def packet(node="a", number=0, service=Service.AGREED) -> Packet:
    return Packet(Span(node, 0, number), service, b"x")


def msg(sender: int, number: int, held=0, service=Service.AGREED, members="abcde") -> Msg:
    return Msg(sender, number, held, packet(members[sender], number, service))


class Member:
    """An engine and what it has done so far."""

    def __init__(self, node="a", view=ABC, policy: Policy = DTP, config=None, **options) -> None:
        self.queue = Queue()
        kind = PinwheelConfig if policy is PINWHEEL else Config
        config = config or kind(**options)
        self.engine = DtpEngine(node, self.queue, config, policy=policy)
        self.view = view
        self.said = 0
        self.log: list[Deliver] = []
        self._did(self.engine.start(view))

    def say(self, count=1, service=Service.AGREED):
        for _ in range(count):
            self.queue.packets.append(packet(self.engine.node, self.said, service))
            self.said += 1
        return self._did(self.engine.submit())

    def hear(self, peer: str, message):
        return self._did(self.engine.receive(Origin("g", peer, 0, self.view.id), message))

    def expire(self, timer: str):
        return self._did(self.engine.expire(timer))

    def _did(self, out):
        self.out = out
        self.log += [effect for effect in out if isinstance(effect, Deliver)]
        return out

    @property
    def sent(self):
        return [effect.message for effect in self.out if isinstance(effect, Send)]

    @property
    def delivered(self):
        return [e.key[0] for e in self.out if isinstance(e, Deliver) and e.key is not None]

    def recorded(self, kind: Kind):
        return [e for e in self.out if isinstance(e, Record) and e.kind is kind]


# On the wire


@pytest.mark.parametrize(
    "message",
    [
        msg(2, 7, 3),
        Ack(1, (), 0, 2, 1),
        Ack(1, ((2, 7), (0, 1)), 9, 2, 4),
        Ack(1, ((2, 7),), 9),
        Req(4, ((1, 2), (0, 9)), (5, 6)),
    ],
)
def test_messages_survive_the_wire(message):
    codec = DtpCodec()
    tag, data = codec.encode(message)
    assert codec.decode(tag, b"xx" + data, 2) == message
    assert str(message)
    for end in range(len(data)):
        with pytest.raises(WireError):
            codec.decode(tag, data[:end], 0)
    with pytest.raises(WireError):
        codec.decode(tag, data + b"x", 0)


@pytest.mark.parametrize(
    "message",
    [msg(1, 0), Ack(1, ((0, 1), (0, 2)), 1, 2, 3), Ack(0, ((0, 0),), 1), Req(0, ((0, 0),), ())],
)
def test_numbers_that_nobody_gives_out_are_refused(message):
    codec = DtpCodec()
    with pytest.raises(WireError):
        codec.decode(*codec.encode(message), 0)
    with pytest.raises(WireError):
        codec.decode(9, b"", 0)


def test_timers_are_not_those_of_membership():
    names = {machine.MSG, machine.ACK, machine.REQ, machine.SILENCE, machine.WATCH}
    assert len(names) == 5
    assert not names & TIMERS


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"rules": "link"}, "there are no rules 'link'; choose one of safe, paper"),
        ({"resilience": "-1"}, "resilience=-1; it is a number of nodes"),
        ({"attempts": "0"}, "1 at least"),
        ({"batch_packets": str(BATCH_MAX + 1)}, f"batch_packets 1 to {BATCH_MAX}"),
        ({"window_packets": "0"}, "window_packets is 1 at least"),
    ],
)
def test_settings_that_make_no_sense_are_a_sentence(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        engine_factory("pinwheel", options)


def test_windows_and_batches_are_pinwheels_alone():
    for name in ("dtp", "cm"):
        with pytest.raises(ValueError, match="has no option 'window_packets'"):
            engine_factory(name, {"window_packets": "2"})


# The books


def test_a_packet_is_held_with_its_number_and_all_before():
    ledger = Ledger(3, 0, 100)
    ledger.learn(Ack(1, ((1, 1),), 1))
    ledger.learn(Ack(1, ((2, 1),), 2))
    ledger.store(msg(2, 1))
    ledger.extend()
    assert (ledger.ready, ledger.held[0], ledger.top) == (0, 0, 2)
    assert ledger.request() == Req(0, ((1, 1),), ())
    ledger.store(msg(1, 1))
    ledger.extend()
    assert (ledger.ready, ledger.held[0]) == (2, 2)


def test_a_sender_is_heard_in_its_order():
    ledger = Ledger(3, 0, 100)
    ledger.store(msg(1, 2))
    assert list(ledger.waiting) == []
    ledger.store(msg(2, 1))
    ledger.store(msg(1, 1))
    assert list(ledger.waiting) == [(2, 1), (1, 1), (1, 2)]
    assert not ledger.store(msg(1, 2))


def test_what_a_member_holds_never_shrinks():
    ledger = Ledger(3, 0, 100)
    ledger.note(1, 5)
    ledger.note(1, 3)
    assert ledger.held[1] == 5


def test_the_least_active_member_is_the_next_in_the_ring_among_equals():
    ledger = Ledger(5, 2, 100)
    ledger.held = [1, 2, 0, 3, 1]
    assert ledger.least() == 4
    ledger.held = [1, 2, 0, 3, 2]
    assert ledger.least() == 0
    ledger.held = [4, 4, 0, 4, 4]
    assert ledger.least() == 3


def test_what_is_too_far_ahead_is_dropped_to_come_again():
    member = Member("b", buffer_packets=8)
    ledger = member.engine.ledger
    member.hear("a", Ack(0, ((2, 1),), 9, 1, 1))
    assert (ledger.top, ledger.held, member.engine.token.grip) == (0, [0, 0, 0], Grip.EMPT)
    member.hear("c", msg(2, 10, 9))
    assert not ledger.msgs
    assert ledger.held == [0, 0, 0]
    member.hear("a", Ack(0, ((2, 1),), 8, 1, 1))
    assert (ledger.top, member.engine.token.grip) == (8, Grip.HOLD)


def test_a_request_asks_for_so_much_at_a_time():
    member = Member("b")
    member.hear("a", Ack(0, (), 1000, 2, 1))
    (req,) = member.sent
    assert req.acks == tuple(range(1, 65))


# Sending and ordering


@pytest.mark.parametrize("policy", [DTP, CM])
def test_one_packet_is_under_way_at_a_time(policy):
    member = Member("b", policy=policy)
    member.say(3)
    assert [m.number for m in member.sent] == [1]
    assert member.say() == []
    member.hear("a", Ack(0, ((1, 1),), 1, 2, 1))
    assert [(m.number, m.held) for m in member.sent] == [(2, 1)]


def test_pinwheel_sends_as_many_as_its_window_and_orders_all_that_wait():
    member = Member("b", policy=PINWHEEL, window_packets=2)
    member.say(3)
    assert [m.number for m in member.sent] == [1, 2]
    holder = Member("a", policy=PINWHEEL, batch_packets=2)
    holder.engine.token.grip = Grip.EMPT
    for message in (msg(1, 1), msg(1, 2), msg(2, 1)):
        holder.hear("bbc"[message.number - 1 + message.sender - 1], message)
    holder.hear("c", Ack(2, (), 0, 0, 1))
    assert holder.sent == [Ack(0, ((1, 1), (1, 2)), 2, 1, 2)]
    assert [record.key for record in holder.recorded(Kind.ORDER)] == [(1, 0), (2, 0)]


def test_alone_everything_is_ordered_and_stable_at_once():
    member = Member("a", View(ViewId(4, "a"), ("a",)), resilience=3)
    out = member.say(2, Service.SAFE)
    assert member.delivered == [1, 2]
    assert len(member.recorded(Kind.STABLE)) == 2
    assert not [effect for effect in out if isinstance(effect, Send | SetTimer | Suspect)]


def test_what_is_announced_was_delivered_before():
    """A crash between two effects must not leave others with a false belief."""
    holder = Member("a")
    holder.hear("b", msg(1, 1))
    kinds = [e.kind if isinstance(e, Record) else type(e) for e in holder.out]
    assert kinds.index(Kind.ORDER) < kinds.index(Deliver) < kinds.index(Send)
    assert kinds.index(Kind.TOKEN) < kinds.index(Send)


def test_who_lacks_something_orders_nothing():
    member = Member("b")
    member.hear("c", msg(2, 1))
    member.hear("a", Ack(0, ((0, 1),), 1, 1, 1))
    assert member.engine.token.grip is Grip.HOLD
    assert [type(m) for m in member.sent] == [Req]
    member.hear("a", msg(0, 1))
    assert [(m.last, m.uids) for m in member.sent] == [(2, ((2, 1),))]


def test_cm_believes_acknowledgments_alone():
    for policy, believed in ((CM, 0), (PINWHEEL, 1), (DTP, 1)):
        member = Member("a", policy=policy)
        member.say()
        member.hear("b", msg(1, 1, held=1))
        assert member.engine.ledger.held[1] == believed


# What may be delivered


def test_delivery_waits_for_as_many_as_the_resilience_says():
    view = View(ViewId(0, "a"), tuple("abcde"))
    member = Member("d", view, resilience=2)
    member.hear("b", msg(1, 1))
    member.hear("a", Ack(0, ((1, 1),), 1, 1, 1))
    assert member.delivered == []
    member.hear("c", msg(2, 1, held=1))
    assert member.delivered == [1]


@pytest.mark.parametrize(("view", "waits"), [(8, True), (0, False)])
def test_in_views_many_must_hold_a_packet_and_its_sender_too(view, waits):
    """A static group has no other side on which its sender might take it back."""
    members = View(ViewId(view, "a"), tuple("abcde"))
    member = Member("d", members, resilience=2)
    member.hear("b", msg(1, 1))
    member.hear("a", Ack(0, ((1, 1),), 1, 1, 1))
    member.hear("c", msg(2, 1, held=1))
    assert (member.delivered == []) is waits
    member.hear("b", Ack(1, ((2, 1),), 2, 4, 2))
    assert member.engine.delivered == 1


def test_a_safe_packet_waits_for_all_and_others_wait_behind_it():
    member = Member("c", STATIC)
    member.hear("a", msg(0, 1, service=Service.SAFE))
    member.hear("b", msg(1, 1))
    member.hear("a", Ack(0, ((0, 1),), 1, 1, 1))
    member.hear("b", Ack(1, ((1, 1),), 2, 0, 2))
    assert member.engine.delivered == 2
    late = Member("c", STATIC)
    late.hear("a", msg(0, 1, service=Service.SAFE))
    late.hear("b", msg(1, 1))
    late.hear("a", Ack(0, ((0, 1), (1, 1)), 2, 1, 1))
    assert late.engine.delivered == 0
    late.hear("b", Ack(1, (), 2, 2, 2))
    assert late.delivered == [1, 2]


def test_the_level_of_a_claim_says_what_is_known():
    """2, delivered by all, only where holding is delivering: F = 0, and no safe packet before."""
    for resilience, service, level in (
        (0, Service.AGREED, 2),
        (0, Service.SAFE, 1),
        (1, Service.AGREED, 1),
    ):
        member = Member("c", STATIC, resilience=resilience)
        member.hear("a", msg(0, 1, service=service))
        member.hear("a", Ack(0, ((0, 1),), 1, 1, 1))
        member.hear("b", Ack(1, (), 1, 2, 2))
        assert [record.level for record in member.recorded(Kind.STABLE)] == [level]
        assert not member.engine.ledger.msgs
        assert not member.engine.ledger.acks


# The token


def test_a_transfer_counts_once_and_only_from_who_had_the_token():
    member = Member("b")
    transfer = Ack(0, (), 0, 1, 1)
    grips = []
    for peer in "caa":
        member.hear(peer, transfer)
        grips.append(member.engine.token.grip)
        if member.engine.token.grip is Grip.HOLD:
            member.expire("silence")
    assert grips == [Grip.EMPT, Grip.HOLD, Grip.TRST]


def test_a_copy_for_somebody_who_asked_hands_on_nothing():
    holder = Member("a")
    holder.hear("b", msg(1, 1))
    holder.hear("b", Ack(1, (), 1, 0, 2))
    holder.hear("b", msg(1, 1))
    assert holder.sent == [Ack(0, ((1, 1),), 1)]
    receiver = Member("b")
    receiver.hear("a", Ack(0, ((1, 1),), 1))
    assert receiver.engine.token.grip is Grip.EMPT
    assert receiver.engine.ledger.held[0] == 1


def test_the_silence_period_begins_once():
    holder = Member("a")
    assert [e for e in holder.out if isinstance(e, SetTimer) and e.timer == "silence"]
    for effect in holder.hear("b", Req(0, (), ())):
        assert not isinstance(effect, SetTimer)


def test_only_who_has_the_token_answers_and_who_handed_it_to_the_one_that_asks():
    holder = Member("a")
    holder.say()
    assert holder.engine.token.grip is Grip.TRST
    (ack,) = [m for m in holder.sent if isinstance(m, Ack)]
    request = Req(0, ((0, 1),), (1,))
    holder.hear("c", request)
    assert holder.sent == []
    holder.hear("b", request)
    assert [type(m) for m in holder.sent] == [Ack, Msg, Ack]
    assert holder.sent[-1] == ack
    assert holder.sent[0].next == NOBODY
    bystander = Member("c")
    bystander.hear("a", msg(0, 1))
    bystander.hear("b", Req(0, ((0, 1),), ()))
    assert bystander.sent == []


# What takes too long


def suspects(member):
    return [effect for effect in member.out if isinstance(effect, Suspect)]


def test_a_successor_that_does_not_answer_is_suspected_again_and_again():
    member = Member("a", attempts=2)
    member.say()
    found = []
    for _ in range(4):
        member.expire("repeat_ack")
        found.append(suspects(member))
        assert member.engine.token.sent in member.sent
    b = Suspect(("b",), "it does not take the token")
    assert found == [[], [b], [], [b]]


def test_a_successor_that_speaks_and_does_not_answer_fails_to_receive():
    member = Member("a", attempts=1)
    member.say()
    member.hear("b", Req(0, ((0, 1),), ()))
    member.expire("repeat_ack")
    assert suspects(member) == [Suspect(("b",), "it fails to receive")]


def test_what_is_not_ordered_or_does_not_come_puts_the_view_in_doubt():
    member = Member("b", watch_s=2.0, msg_repeat_s=1.0, req_repeat_s=1.0)
    member.say()
    member.expire("repeat_msg")
    assert suspects(member) == []
    assert [m.number for m in member.sent] == [1]
    member.expire("repeat_msg")
    assert suspects(member) == [Suspect((), "nobody orders what was sent")]
    member.hear("a", Ack(0, ((0, 1),), 1, 2, 1))
    member.expire("repeat_req")
    member.expire("repeat_req")
    assert suspects(member) == [Suspect((), "what is missing does not come")]


def test_progress_is_an_answer():
    member = Member("b", watch_s=2.0, req_repeat_s=1.0)
    member.hear("a", Ack(0, ((0, 1), (0, 2)), 2, 2, 1))
    member.expire("repeat_req")
    member.hear("a", msg(0, 1))
    member.expire("repeat_req")
    assert suspects(member) == []


def test_a_token_that_nobody_repeats_is_missed():
    member = Member("b")
    member.hear("a", Ack(0, (), 0, 2, 1))
    member.expire("watch")
    assert suspects(member) == []
    member.expire("watch")
    assert suspects(member) == [Suspect((), "the token is lost")]
    with pytest.raises(AssertionError):
        member.expire("token_loss")


# Nonsense


def test_forged_messages_change_little_and_raise_nothing():
    random = Random(5)
    for policy in (DTP, CM, PINWHEEL):
        member = Member("b", policy=policy, buffer_packets=50)
        for _ in range(4000):
            number = random.choice((0, 1, 2, 3, 60, 10**17))
            member.hear(random.choice("ac"), forged(random, number))
        ledger = member.engine.ledger
        assert len(ledger.msgs) <= 4 * 52
        assert len(ledger.acks) <= ledger.ready + 50
        assert ledger.top <= ledger.ready + 50


def forged(random: Random, number: int):
    uid = random.choice((0, 1, 2, 7)), random.choice((1, 2, 3, 90))
    match random.randrange(3):
        case 0:
            name = random.choice(("a", "b", "c", "zz"))
            return Msg(uid[0], uid[1], number, packet(name, number % 5))
        case 1:
            uids = (uid,) if number else ()
            next_ = random.choice((0, 1, 2, 9, NOBODY))
            return Ack(random.choice((0, 1, 2, 9)), uids, number, next_, random.randrange(4))
        case _:
            return Req(number, (uid,), (number,))


# The end of a view


def part(*members: Member, obliged="", rounds=2) -> list[Conclusion]:
    """These move on together, after an attempt that came to nothing."""
    names = tuple(member.engine.node for member in members)
    for _ in range(rounds):
        summaries = {member.engine.node: member.engine.freeze() for member in members}
        items = [item for member in members for item in member.engine.seal(summaries)]
        for member in members:
            for item in items:
                member.engine.absorb(item)
    transitional = View(ViewId(11, names[0]), names, transitional=True)
    duty = tuple(sorted({*names, *obliged}))
    return [member.engine.conclude(summaries, transitional, duty) for member in members]


def shown(delivers) -> list[str]:
    """Each delivery as its number, if it has one, and whose packet it is."""
    return [f"{d.key[0] if d.key else '?'}:{d.packet.span.node}" for d in delivers]


def spans(packets) -> list[str]:
    return [str(packet.span) for packet in packets]


def test_a_frozen_member_stores_and_does_nothing_else():
    member = Member("b")
    member.engine.freeze()
    member.hear("a", msg(0, 1))
    assert [effect.kind for effect in member.out] == [Kind.RECEIVE]
    assert member.hear("a", Ack(0, ((0, 1),), 1, 1, 1)) == []
    assert member.hear("c", Req(0, ((0, 1),), ())) == []
    assert member.engine.token.grip is Grip.EMPT
    assert shown(part(member)[0].transitional) == ["1:a"]


def test_what_one_delivered_is_delivered_by_all_in_the_old_view():
    a, b = Member("a"), Member("b")
    a.say()
    one, two = part(a, b)
    assert (one.regular, shown(two.regular)) == ((), ["1:a"])
    assert one.transitional == two.transitional == ()


def test_where_the_token_is_here_what_has_no_number_is_withdrawn():
    a, b = Member("a"), Member("b")
    b.say()
    one, two = part(a, b)
    assert spans(two.withdrawn) == ["b:0"]
    assert (one.withdrawn, one.transitional, two.transitional) == ((), (), ())


def test_where_the_token_went_to_somebody_else_it_is_delivered_without_a_number():
    a, b = Member("a"), Member("b")
    a.engine.token.pass_on(Ack(0, (), 0, 2))
    b.say()
    for end in part(a, b):
        assert shown(end.transitional) == ["?:b"]
        assert end.withdrawn == ()


def test_a_token_on_its_way_to_somebody_here_is_here():
    a, b = Member("a"), Member("b")
    a.engine.token.pass_on(Ack(0, (), 0, 1))
    b.say()
    assert spans(part(a, b)[1].withdrawn) == ["b:0"]


def test_what_an_earlier_attempt_may_have_delivered_is_not_withdrawn():
    """a and c may have ended the view without a token: then c has delivered what a sent."""
    a, b = Member("a"), Member("b")
    b.say()
    for end in part(a, b, obliged="c"):
        assert shown(end.transitional) == ["?:b"]


def test_an_unknown_number_may_be_anybodys():
    """The token is here, and number 1 was given out, to whom nobody here knows."""
    a, b = Member("a"), Member("b")
    b.say()
    b.hear("c", Ack(2, (), 1, 0, 2))
    for end in part(a, b):
        assert shown(end.transitional) == ["?:b"]


def test_behind_a_gap_those_who_are_here_deliver_their_own():
    """Number 1 is c's, which is gone with its packet. b's came after it, and c's second too."""
    a, b = Member("a"), Member("b")
    b.say()
    for member in (a, b):
        member.hear("c", Ack(2, ((2, 1), (1, 1), (2, 2)), 3, 0, 2))
        member.hear("c", msg(2, 2))
    for end in part(a, b):
        assert end.regular == ()
        assert shown(end.transitional) == ["2:b"]
        assert end.withdrawn == ()


def test_a_sender_is_followed_in_its_order_behind_a_gap():
    """The number of b's first packet is not known, that of its second is."""
    a = Member("a", policy=PINWHEEL)
    b = Member("b", policy=PINWHEEL, window_packets=2)
    b.say(2)
    for member in (a, b):
        member.hear("c", Ack(2, ((1, 2),), 2, 2, 5))
    for end in part(a, b):
        assert [(d.key, d.packet.span.first) for d in end.transitional] == [(None, 0), ((2, 0), 1)]


def test_where_many_hold_packets_nothing_is_delivered_without_a_number():
    a, b = Member("a", resilience=1), Member("b", resilience=1)
    a.engine.token.pass_on(Ack(0, (), 0, 2))
    b.say()
    one, two = part(a, b)
    assert one.transitional == two.transitional == ()
    assert spans(two.withdrawn) == ["b:0"]


def both_hear(one: Member, other: Member, *said) -> None:
    for peer, message in said:
        for member in (one, other):
            if member.engine.node != peer:
                member.hear(peer, message)


def test_where_many_hold_packets_an_absent_sender_must_be_known_to():
    """c's packet has number 1, and c may not know: it might send it again. b's has number 2."""
    a, b = Member("a", resilience=1), Member("b", resilience=1)
    both_hear(a, b, ("c", msg(2, 1)), ("b", msg(1, 1)))
    b.say()
    both_hear(a, b, ("a", Ack(0, ((2, 1), (1, 1)), 2, 2, 1)))
    a.engine.ledger.learn(Ack(0, ((2, 1), (1, 1)), 2))
    for end in part(a, b):
        assert shown((*end.regular, *end.transitional)) == ["2:b"]


def test_where_many_hold_packets_word_of_an_absent_sender_is_enough():
    a, b = Member("a", resilience=1), Member("b", resilience=1)
    both_hear(a, b, ("c", msg(2, 1)))
    (ack,) = [m for m in a.sent if isinstance(m, Ack)] or [Ack(0, ((2, 1),), 1, 1, 1)]
    b.hear("a", ack)
    b.hear("c", msg(2, 2, held=1))
    one, two = part(a, b)
    assert shown((*one.regular, *one.transitional)) == ["1:c"]
    assert b.engine.delivered + len(two.regular) + len(two.transitional) == 1


def a_group_at_random(random: Random) -> dict[str, Member]:
    """Four members of some policy and resilience, and some of what they said reached some."""
    policy = random.choice((DTP, CM, PINWHEEL))
    options = {"resilience": random.randrange(4)}
    if policy is PINWHEEL:
        options["window_packets"] = random.choice((1, 3))
    view = View(ViewId(8, "a"), tuple("abcd"))
    group = {node: Member(node, view, policy, **options) for node in view.members}
    rumour(random, group)
    return group


@pytest.mark.parametrize("seed", range(200))
def test_whoever_moves_on_with_whom_they_decide_alike_and_nothing_is_done_twice(seed):
    random = Random(seed)
    group = a_group_at_random(random)
    cut = random.randint(1, 4)
    mixed = random.sample("abcd", 4)
    sides = [sorted(mixed[:cut]), sorted(mixed[cut:])]
    withdrawn: list[Packet] = []
    histories: list[list[Deliver]] = []
    for side in filter(None, sides):
        members = [group[node] for node in side]
        ends = part(*members, rounds=random.choice((1, 2)))
        for member, end in zip(members, ends, strict=True):
            assert shown(end.transitional) == shown(ends[0].transitional)
            history = [*member.log, *end.regular, *end.transitional]
            keys = [deliver.key for deliver in history if deliver.key]
            assert keys == sorted(set(keys))
            packets = [deliver.packet for deliver in history]
            own = [p for p in (*packets, *end.withdrawn) if p.span.node == member.engine.node]
            pulled = member.said - member.queue.waiting
            assert sorted(p.span.first for p in own) == list(range(pulled))
            withdrawn += end.withdrawn
            histories.append(history)
        lengths = {
            len(member.log) + len(end.regular) for member, end in zip(members, ends, strict=True)
        }
        assert len(lengths) == 1
    delivered = {deliver.packet for history in histories for deliver in history}
    assert delivered.isdisjoint(withdrawn)
    if group["a"].engine.sender_first:
        assert all(deliver.key for history in histories for deliver in history)


def rumour(random: Random, group: dict[str, Member]) -> None:
    """Let members speak over a network that loses a third of all frames."""
    flying: list[tuple[str, str, Message]] = []
    for _ in range(random.randint(5, 80)):
        if random.random() < 0.3 or not flying:
            node = random.choice(sorted(group))
            group[node].say()
        else:
            sender, node, message = flying.pop(random.randrange(len(flying)))
            if random.random() < 0.33:
                continue
            group[node].hear(sender, message)
        for effect in group[node].out:
            if isinstance(effect, Send):
                others = [other for other in group if other != node]
                receivers = others if effect.to is None else [effect.to]
                flying += [(node, receiver, effect.message) for receiver in receivers]


def test_what_is_absorbed_must_make_sense():
    member = Member("b")
    other = Member("a")
    other.say()
    other.engine.freeze()
    member.engine.freeze()
    summaries = {"a": other.engine.freeze(), "b": member.engine.freeze()}
    good = other.engine.seal(summaries)
    assert [item.key for item in good] == [(0, 0, 1), (1, 1)]
    for item in (
        Item((0, 1, 1), good[0].body),
        Item((0, 9, 1), good[0].body),
        Item((1, 1), b"\xff" * 10),
        Item((2, 1), b""),
        Item((0,), b""),
    ):
        with pytest.raises(WireError):
            member.engine.absorb(item)
    for bad in (b"", summaries["a"] + b"x", b"\xff" * len(summaries["a"])):
        with pytest.raises(WireError):
            member.engine.seal({**summaries, "a": bad})
    records = [record for item in good for record in member.engine.absorb(item)]
    assert [record.kind for record in records] == [Kind.RECEIVE]
