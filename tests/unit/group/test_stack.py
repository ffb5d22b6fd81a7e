"""A stack that takes in many messages at a time does the same as one that takes them singly."""

from roundelay.core.contract import Boot, Origin, submit
from roundelay.core.effects import Deliver, Kind, Receipt, Record, Send
from roundelay.core.ids import Packet, Service, Span
from roundelay.group.body import pack
from roundelay.group.engines import engine_factory
from roundelay.group.stack import Stack
from roundelay.group.static import StaticStack
from roundelay.links.messages import Heartbeat


def alone() -> StaticStack:
    stack = StaticStack(Boot("g", "a"), ("a",), engine_factory("totem"))
    stack.start()
    return stack


def _submitted(
    first: int, count: int, service: Service = Service.AGREED, to: tuple[str, ...] | None = None
) -> Record:
    return Record(Kind.SUBMIT, Packet(Span("a", 0, first, count), service, b"", to))


def test_accepted_messages_wait_for_the_flush():
    stack = alone()
    assert [stack.accept(payload) for payload in (b"x", b"yy", b"")] == [0, 1, 2]
    effects = stack.flush()
    assert effects[0] == _submitted(0, 3)
    (delivered,) = [effect for effect in effects if isinstance(effect, Deliver)]
    assert delivered.payloads == (b"x", b"yy", b"")
    assert [e.span for e in effects if isinstance(e, Receipt)] == [Span("a", 0, 0, 3)]


def test_a_flush_without_messages_records_nothing():
    assert alone().flush() == []


def test_a_submission_tells_of_itself_alone():
    stack = alone()
    submitted = submit(stack, b"x")[0]
    assert isinstance(submitted, Record)
    assert submitted.subject is not None
    assert stack.flush() == []
    stack.accept(b"y")
    assert stack.flush()[0] == _submitted(1, 1)


def test_a_submission_behind_accepted_messages_tells_of_them_too():
    stack = alone()
    stack.accept(b"x")
    assert submit(stack, b"y")[0] == _submitted(0, 2)
    assert stack.flush() == []


def test_records_tell_messages_of_different_kinds_apart():
    stack = StaticStack(Boot("g", "a"), ("a", "b"), engine_factory("fifo"))
    stack.start()
    for number in range(6):
        safe = Service.SAFE if number in (2, 3) else Service.AGREED
        stack.accept(b"x", safe, ("b",) if number == 3 else None)
    records = [e for e in stack.flush() if isinstance(e, Record) and e.kind is Kind.SUBMIT]
    assert records == [
        _submitted(0, 2),
        _submitted(2, 1, Service.SAFE),
        _submitted(3, 1, Service.SAFE, ("b",)),
        _submitted(4, 2),
    ]
    stack.accept(b"x")
    assert _submitted(6, 1) in stack.flush()


def test_without_a_trace_nothing_is_kept_for_records():
    stack = StaticStack(Boot("g", "a", traced=False), ("a",), engine_factory("totem"))
    stack.start()
    for service in (Service.AGREED, Service.SAFE, Service.AGREED):
        submit(stack, b"x", service)
    assert vars(stack.delivery.packer)["_changes"] == []


def test_before_a_view_is_there_messages_wait():
    stack = Stack(Boot("g", "a"), ("a", "b"), engine_factory("totem"))
    stack.start()
    stack.accept(b"x")
    assert not [effect for effect in stack.flush() if isinstance(effect, Deliver)]


def test_a_forged_packet_under_our_name_gives_no_receipt():
    stack = StaticStack(Boot("g", "a"), ("a", "b"), engine_factory("totem"))
    stack.start()
    submit(stack, b"x")
    for first, count in ((1, 1), (0, 2), (2**40, 1)):
        forged = Packet(Span("a", 0, first, count), Service.AGREED, pack([b""] * count))
        finished = stack.delivery.to_driver([Deliver(forged, stack.view.id)])
        assert [type(effect) for effect in finished] == [Deliver]


def test_what_is_for_others_is_forgotten_with_its_receipt():
    stack = StaticStack(Boot("g", "a"), ("a", "b"), engine_factory("fifo"))
    stack.start()
    submit(stack, b"x" * 10_000, destinations=("b",))
    submit(stack, b"y", destinations=("b",))
    assert stack.delivery.packer.next == 2
    pieces = len([e for e in submit(stack, b"z") if isinstance(e, Send)]) + 10
    effects = stack.receive(Origin("g", "b", 0, stack.view.id), Heartbeat((pieces, 0)))
    assert [e.span for e in effects if isinstance(e, Receipt)] == [
        Span("a", 0, 0, 1),
        Span("a", 0, 1, 1),
    ]
    packer = vars(stack.delivery.packer)
    assert not packer["_contents"]
    assert not packer["_sent_large"]
