"""All-Ack: the order of stamps, null messages, and how a view ends."""

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.protocols.link_members import (
    delivered,
    end,
    engine,
    hear,
    packet,
    refused,
    sent,
    suspicions,
)

from roundelay.core.effects import SetTimer
from roundelay.links.messages import Data
from roundelay.protocols.allack import CLOCK_STEP_MAX, ClockOrder, Content
from roundelay.wire.primitives import I64_MAX

ALL = [I64_MAX] * 4


@given(
    st.integers(1, 4),
    st.lists(
        st.tuples(st.booleans(), st.booleans(), st.integers(0, 3), st.integers(0, 3)), max_size=60
    ),
)
def test_everybody_orders_by_stamps_whatever_arrives_when(size, script):
    orders = [ClockOrder(size, me) for me in range(size)]
    flying: list[list[list[tuple[int, Content]]]] = [[[] for _ in range(size)] for _ in range(size)]
    logs: list[list[int]] = [[] for _ in range(size)]
    places: list[int] = []
    numbers = [0] * size

    def arrive(receiver, sender, number, content):
        orders[receiver].arrive(sender, number, content)
        deliver(receiver)

    def deliver(receiver):
        keys = [ordered.key for ordered in orders[receiver].ready(ALL)]
        logs[receiver] += [key[0] for key in keys if key is not None]

    for sending, null, one, other in script:
        member = one % size
        if sending:
            clock = orders[member].next_stamp()
            numbers[member] += 1
            content = Content(clock, None if null else packet("abcd"[member], numbers[member]))
            if not null:
                places.append(clock * size + member)
            for receiver in range(size):
                if receiver != member:
                    flying[receiver][member].append((numbers[member], content))
            arrive(member, member, numbers[member], content)
        elif flying[member][other % size]:
            arrive(member, other % size, *flying[member][other % size].pop(0))
    before = [list(log) for log in logs]
    for receiver in range(size):
        for sender in range(size):
            for number, content in flying[receiver][sender]:
                arrive(receiver, sender, number, content)
        orders[receiver].close()
        deliver(receiver)
        assert logs[receiver] == sorted(places)
        assert before[receiver] == logs[receiver][: len(before[receiver])]


def test_equal_stamps_are_ordered_by_sender():
    order = ClockOrder(3, 0)
    for sender in (2, 1):
        order.arrive(sender, 1, Content(1, packet("abc"[sender])))
    assert [ordered.sender for ordered in order.ready(ALL)] == [1, 2]


def test_a_packet_waits_for_a_word_of_every_other_member():
    member, _ = engine("allack", "a", [packet("a")])
    assert delivered(hear(member, "b", Data(1, 1, 0, (0, 1, 0), Content(5, packet("b"))))) == []
    effects = hear(member, "c", Data(2, 1, 0, (0, 1, 1), Content(4)))
    assert delivered(effects) == ["a:0"], "c may still send something with a stamp of 5"
    effects = hear(member, "c", Data(2, 2, 0, (0, 1, 2), Content(5)))
    assert delivered(effects) == ["b:0"]


def test_a_silent_member_tells_its_clock_after_a_while_and_once():
    member, _ = engine("allack", "a", hold_s=0.003)
    effects = hear(member, "b", Data(1, 1, 0, (0, 1, 0), Content(5, packet("b"))))
    assert SetTimer("hold", 0.003) in effects
    (null,) = [message for message in sent(member.expire("hold")) if isinstance(message, Data)]
    assert null.content == Content(6)
    assert not [m for m in sent(member.expire("hold")) if isinstance(m, Data)]


def test_who_sends_something_need_not_tell_its_clock():
    member, queue = engine("allack", "a")
    hear(member, "b", Data(1, 1, 0, (0, 1, 0), Content(5, packet("b"))))
    queue.packets.append(packet("a"))
    member.submit()
    assert not sent(member.expire("hold"))


def test_a_null_message_calls_for_no_other():
    member, _ = engine("allack", "a")
    effects = hear(member, "b", Data(1, 1, 0, (0, 1, 0), Content(5)))
    assert not [e for e in effects if isinstance(e, SetTimer) and e.timer == "hold"]


def test_without_null_messages_a_silent_member_stays_silent():
    member, _ = engine("allack", "a", nulls=False)
    effects = hear(member, "b", Data(1, 1, 0, (0, 1, 0), Content(5, packet("b"))))
    assert not [e for e in effects if isinstance(e, SetTimer) and e.timer == "hold"]


def test_a_safe_packet_waits_for_all_and_the_next_ones_behind_it():
    member, _ = engine("allack", "a", [packet("a", 0, safe=True), packet("a", 1)])
    effects = hear(member, "b", Data(1, 1, 0, (2, 1, 0), Content(9)))
    effects += hear(member, "c", Data(2, 1, 0, (0, 1, 1), Content(9)))
    assert delivered(effects) == []
    effects = hear(member, "c", Data(2, 2, 0, (1, 1, 2), Content(10)))
    assert delivered(effects) == ["a:0", "a:1"]


def test_at_the_end_of_a_view_nobody_is_waited_for():
    a, _ = engine("allack", "a", [packet("a")])
    b, _ = engine("allack", "b", [packet("b"), packet("b", 1, safe=True), packet("b", 2)])
    both = (["a:0", "b:0"], ["b:1", "b:2"])
    assert end(a, b) == [both, both]


def test_a_stamp_far_ahead_is_refused_and_one_that_goes_back_ends_the_view():
    member, _ = engine("allack", "a")
    far = Data(1, 1, 0, (0, 1, 0), Content(CLOCK_STEP_MAX + 1, packet("b")))
    assert refused(hear(member, "b", far))
    assert member.clocks.clock == 0
    hear(member, "b", Data(1, 1, 0, (0, 1, 0), Content(5, packet("b"))))
    back = hear(member, "b", Data(1, 2, 0, (0, 2, 0), Content(5, packet("b", 1))))
    assert suspicions(back) == ["what b sends does not fit together"]
    again = hear(member, "b", Data(1, 3, 0, (0, 3, 0), Content(4, packet("b", 2))))
    assert suspicions(again) == [], "once is enough"
