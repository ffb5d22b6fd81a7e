"""What a member knows of an epoch: acceptance, agreement, delivery and what it lists."""

from roundelay.core.ids import Packet, Service, Span
from roundelay.protocols.st.lists import List
from roundelay.protocols.st.logs import Logs
from roundelay.protocols.st.messages import Name, Transmission

SIZE = 3
ONES = (1, 1, 1)


def packet(source: int, number: int) -> Packet:
    return Packet(Span(f"{source + 1}", 0, number - 1), Service.AGREED, b"")


def dt(
    source: int,
    number: int,
    counts: tuple[int, ...] = (0, 0, 0),
    ack: tuple[int, ...] = ONES,
    pack: tuple[int, ...] = ONES,
    done: tuple[int, ...] = ONES,
) -> Transmission:
    return Transmission(source, 0, number, counts, ack, pack, done, 9, packet(source, number))


def rr(
    source: int,
    number: int,
    counts: tuple[int, ...] = (0, 0, 0),
    ack: tuple[int, ...] = ONES,
    pack: tuple[int, ...] = ONES,
    done: tuple[int, ...] = ONES,
) -> Transmission:
    return Transmission(source, 0, number, counts, ack, pack, done, 9)


def hear(logs: Logs, t: Transmission, *to: int) -> bool:
    logs.note(t)
    return logs.hear(t, to)


def names(entries) -> list[str]:
    return [str(entry.name) for entry in entries]


def test_a_missed_packet_that_was_for_others_is_passed_over():
    logs = Logs(SIZE, 0, 0)
    assert hear(logs, dt(1, 1), 0)
    assert hear(logs, dt(1, 3, counts=(1, 0, 1)), 0)
    assert logs.expected == [1, 4, 1]
    assert logs.got == [0, 2, 0]


def test_what_others_send_to_others_tells_that_nothing_was_missed():
    logs = Logs(SIZE, 0, 0)
    assert hear(logs, dt(1, 2, counts=(0, 0, 1)), 2)
    assert logs.expected == [1, 3, 1]
    assert not logs.accepted


def test_a_missed_packet_that_was_for_this_member_is_noticed_and_nothing_moves_on():
    logs = Logs(SIZE, 0, 0)
    assert not hear(logs, dt(1, 2, counts=(1, 0, 0)), 0)
    assert logs.expected == [1, 1, 1]
    assert names(logs.accepted) == ["2.2"]
    assert not logs.agree()


def test_the_last_packet_of_a_source_is_missed_by_its_rr():
    logs = Logs(SIZE, 0, 0)
    assert not hear(logs, rr(1, 2, counts=(1, 0, 0)))
    assert hear(logs, rr(1, 2, counts=(0, 1, 0)))
    assert logs.expected == [1, 2, 1]


def test_somebody_else_has_heard_more():
    logs = Logs(SIZE, 0, 0)
    hear(logs, rr(2, 1, ack=(1, 2, 1)))
    assert logs.gap == (1,)
    hear(logs, rr(1, 2))
    assert not logs.gap


def test_a_packet_is_agreed_on_when_all_have_said_that_they_miss_nothing_before():
    """Those whom it is not for must say so, too: they may have missed an earlier one."""
    logs = Logs(SIZE, 0, 0)
    hear(logs, dt(1, 1), 0, 1)
    assert not logs.agree()
    hear(logs, rr(1, 2, counts=(1, 1, 0), ack=(1, 2, 1)))
    assert not logs.agree()
    hear(logs, rr(2, 1, ack=(1, 2, 1)))
    assert names(logs.agree()) == ["2.1"]


def test_the_first_packet_holds_the_others_back():
    logs = Logs(SIZE, 0, 0)
    hear(logs, dt(1, 1), 0, 2)
    hear(logs, dt(2, 1, ack=(1, 1, 1)), 0)
    hear(logs, rr(1, 2, counts=(1, 0, 1), ack=(1, 2, 2)))
    hear(logs, rr(2, 2, counts=(1, 0, 0), ack=(1, 1, 2)))
    assert not logs.agree()
    hear(logs, rr(2, 2, counts=(1, 0, 0), ack=(1, 2, 2)))
    assert names(logs.agree()) == ["2.1", "3.1"]


def told(logs: Logs, *, pack: tuple[int, ...] = ONES) -> None:
    """2 and 3 have heard the first packet of 2, and agreed on so much."""
    hear(logs, rr(1, 2, counts=(1, 0, 1), ack=(1, 2, 1), pack=pack))
    hear(logs, rr(2, 1, ack=(1, 2, 1), pack=pack))


def test_a_packet_is_delivered_after_everybody_was_heard_this_member_too():
    logs = Logs(SIZE, 0, 0)
    hear(logs, dt(1, 1), 0, 2)
    told(logs, pack=(1, 2, 1))
    assert names(logs.agree()) == ["2.1"]
    assert not logs.deliverable()
    hear(logs, rr(0, 1))
    assert names(logs.deliverable()) == ["2.1"]


def test_an_acknowledgment_is_no_agreement():
    """E4: what others have acknowledged they need not have agreed on."""
    logs = Logs(SIZE, 0, 0)
    hear(logs, dt(1, 1), 0, 2)
    told(logs)
    assert names(logs.agree()) == ["2.1"]
    hear(logs, rr(0, 1))
    assert not logs.deliverable()
    told(logs, pack=(1, 2, 1))
    assert names(logs.deliverable()) == ["2.1"]


def test_what_all_have_delivered_is_forgotten():
    logs = Logs(SIZE, 0, 0)
    hear(logs, dt(1, 1), 0, 2)
    logs.deliver(logs.accepted.popleft())
    logs.forget()
    assert logs.known
    hear(logs, rr(2, 1, ack=(1, 2, 1), pack=(1, 2, 1), done=(1, 2, 1)))
    logs.forget()
    assert not logs.known


def test_the_list_has_what_was_heard_in_its_order_and_own_packets_unheard_at_its_end():
    logs = Logs(SIZE, 0, 0)
    own = logs.make((1, 2), packet(0, 1))
    logs.count((1, 2))
    hear(logs, dt(2, 1), 0)
    hear(logs, dt(1, 1), 0)
    made = logs.stop()
    assert [str(item.name) for item in made.listed] == ["3.1", "2.1", "1.1"]
    assert [item.heard for item in made.listed] == [True, True, False]
    assert made.next == own.number + 1
    assert made.counts == (0, 1, 1)
    assert made.got == (0, 1, 1)


def test_the_next_epoch_begins_where_the_lists_end():
    logs = Logs(SIZE, 0, 0)
    hear(logs, dt(1, 1), 0)
    last = {
        member: List(0, member, 4 + member, (2, 0, 0), (0, 0, 0), ONES, ())
        for member in range(SIZE)
    }
    after = Logs.after(logs, last)
    assert after.epoch == 1
    assert after.expected == [4, 5, 6]
    assert after.got == [2, 2, 2]
    assert not after.gap
    assert after.stop().listed == ()


def test_names_read_as_in_the_paper():
    assert str(Name(0, 3)) == "1.3"
