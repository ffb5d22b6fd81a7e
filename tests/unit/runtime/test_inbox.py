"""What waits to be read: where a reader stopped, and what counts."""

import pytest

from roundelay.core.effects import Deliver
from roundelay.core.ids import Packet, Service, Span, View, ViewId
from roundelay.group.assembler import Assembler
from roundelay.group.packer import GroupConfig, Packer
from roundelay.runtime.events import Batch, Message, Position
from roundelay.runtime.inbox import CHUNK_MESSAGES, MESSAGE_BYTES, Inbox

VIEW = View(ViewId(4, "a"), ("a", "b"))
MANY = tuple(b"%d" % number for number in range(2 * CHUNK_MESSAGES + 5))


def batch(payloads: tuple[bytes, ...], first: int = 0, body: bytes = b"") -> Batch:
    span = Span("a", 3, first, len(payloads))
    packet = Packet(span, Service.SAFE, body or b"".join(payloads))
    return Batch(Deliver(packet, VIEW.id, None, 10 + first, payloads), VIEW)


def read(inbox: Inbox, most: int) -> list[Message]:
    """The next messages, one by one."""
    found: list[Message] = []
    while len(found) < most:
        event = next(inbox.rest, None)
        if isinstance(event, Message):
            found.append(event)
        elif event is None and not inbox.refill():
            break
    return found


@pytest.mark.parametrize("read_before", [0, 1, CHUNK_MESSAGES, CHUNK_MESSAGES + 1, len(MANY) - 1])
def test_the_rest_of_a_batch_has_its_own_numbers_and_places(read_before):
    inbox = Inbox()
    inbox.put(batch(MANY))
    inbox.put(VIEW)
    before = read(inbox, read_before)
    rest = inbox.pop()
    assert isinstance(rest, Batch)
    assert [m.payload for m in (*before, *rest)] == list(MANY)
    assert [m.number for m in (*before, *rest)] == list(range(len(MANY)))
    assert rest.position == Position(VIEW.id, 10 + read_before)
    assert (rest.safe, rest.sender, rest.incarnation) == (True, "a", 3)
    assert inbox.pop() is VIEW
    assert inbox.pop() is None


def test_a_batch_of_which_all_was_read_is_over():
    inbox = Inbox()
    inbox.put(batch(MANY))
    assert len(read(inbox, len(MANY) + 1)) == len(MANY)
    assert inbox.pop() is None


def test_a_message_that_came_in_pieces_counts_whole():
    inbox = Inbox()
    inbox.put(batch((bytes(1_000_000),), body=bytes(1000)))
    assert inbox.bytes == 1_000_000 + MESSAGE_BYTES
    assert inbox.pop() is not None
    assert inbox.bytes == 0


def test_what_was_lent_counts_until_more_is_asked_for():
    inbox = Inbox()
    for first in range(4):
        inbox.put(batch((bytes(100),), first))
    each = 100 + MESSAGE_BYTES
    assert len(inbox.lend(2, 1000)) == 2
    assert inbox.bytes == 4 * each
    assert len(inbox.lend(9, 1)) == 1  # One at least, and no more than fits.
    assert inbox.bytes == 2 * each
    assert len(inbox.lend(9, 1000)) == 1
    assert inbox.lend(9, 1000) == []
    assert inbox.bytes == 0


def test_pieces_that_wait_for_others_are_counted_until_the_message_is_whole():
    packer = Packer("a", 0, GroupConfig(packet_bytes=1000))
    packer.accept(bytes(3500))
    assembler = Assembler(1 << 20)
    held = []
    while (packet := packer.pull()) is not None:
        whole = assembler.messages_of(packet)
        held.append(assembler.bytes)
    assert whole == (bytes(3500),)
    assert held[0] > 900
    assert held == [held[0], 2 * held[0], 3 * held[0], 0]
    packer.accept(bytes(3500))
    first = packer.pull()
    assert first is not None
    assembler.messages_of(first)
    assembler.forget()
    assert assembler.bytes == 0
