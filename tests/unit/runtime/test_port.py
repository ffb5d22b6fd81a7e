"""The port: whose a datagram is, and when it is read."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Sequence

import pytest
from tests.patience import LIMIT_S

import roundelay
from roundelay.core.contract import Boot
from roundelay.membership.codec import MembershipCodec
from roundelay.membership.messages import Join, Merge, Message
from roundelay.runtime.port import LINGER_BYTES, REFUSED_COST, TURN_DATAGRAMS, Port
from roundelay.transport.address import Address, SocketAddress
from roundelay.transport.udp import UdpSocket
from roundelay.wire.endpoint import Endpoint


class Listener:
    """A node that only takes note."""

    pause_s = 0.1
    stall_s = 100.0
    key_ids: Sequence[bytes] = ()

    def __init__(self, group: str = "g") -> None:
        self.group = group
        self.next_alarm = float("inf")
        self.backlog = False
        self.woken = False
        self.got: list[bytes] = []
        self.bursts = 0
        self.nobodys = 0
        self.stale: list[bytes] = []
        self.pauses: list[float] = []
        self.stalls: list[float] = []
        self.expiries = 0

    def receive(self, data: bytes, *, stale: bool = False) -> None:
        (self.stale if stale else self.got).append(data)

    def receive_many(self, datagrams: Sequence[bytes]) -> None:
        self.got += datagrams
        self.bursts += 1

    def woke_reader(self) -> bool:
        return self.woken

    def nobodys_key(self) -> None:
        self.nobodys += 1

    def after_pause(self, duration_s: float) -> None:
        self.pauses.append(duration_s)
        self.next_alarm = float("inf")

    def after_stall(self, duration_s: float) -> None:
        self.stalls.append(duration_s)

    def expire_timers(self) -> None:
        self.expiries += 1

    def backlogged(self) -> bool:
        return self.backlog

    def abandon(self) -> None:
        raise AssertionError("the event loop is open")


def frame(group: str, message: Message = Merge()) -> bytes:  # noqa: B008  # It never changes.
    endpoint: Endpoint[Message] = Endpoint(Boot(group, "b", 5), MembershipCodec())
    return endpoint.encode(message, None)[1]


@pytest.fixture
def sender() -> Iterator[UdpSocket]:
    sock = UdpSocket(Address("127.0.0.1", 0))
    yield sock
    sock.close()


def play(story: Callable[[Port], Awaitable[None]]) -> None:
    async def opened() -> None:
        port = Port(asyncio.get_running_loop(), Address("127.0.0.1", 0), None)
        try:
            await story(port)
        finally:
            port.close()

    asyncio.run(opened())


def test_each_datagram_goes_to_its_group(sender):
    async def story(port: Port) -> None:
        red, blue = Listener("red"), Listener("blue")
        port.attach(red)
        port.attach(blue)
        for data in (frame("blue"), frame("red"), frame("green"), b"", b"RD"):
            sender.send(data, (port.socket.address,))
        assert not port.read()
        assert (red.got, blue.got) == ([frame("red")], [frame("blue")])
        assert port.unknown_group == 3
        port.detach(red)
        sender.send(frame("red"), (port.socket.address,))
        port.read()  # Alone, blue is given everything, and will say whose it is.
        assert (len(red.got), len(blue.got)) == (1, 2)

    play(story)


def test_a_sealed_datagram_goes_to_the_group_that_has_its_key(sender):
    def sealed(key_id: bytes) -> bytes:
        return b"RS\x01\x01" + key_id + bytes(60)

    async def story(port: Port) -> None:
        red, blue, plain = Listener("red"), Listener("blue"), Listener("plain")
        red.key_ids, blue.key_ids = (b"new red.", b"old red."), (b"the blue",)
        for node in (red, blue, plain):
            port.attach(node)
        for key_id in (b"old red.", b"new red.", b"the blue", b"nobody's"):
            sender.send(sealed(key_id), (port.socket.address,))
        sender.send(b"RS", (port.socket.address,))
        sender.send(frame("plain"), (port.socket.address,))
        sender.send(frame("red"), (port.socket.address,))  # Which refuses it, and says why.
        port.read()
        assert red.got == [sealed(b"old red."), sealed(b"new red."), frame("red")]
        assert blue.got == [sealed(b"the blue")]
        assert plain.got == [frame("plain")]
        assert [node.nobodys for node in (red, blue, plain)] == [2, 2, 2]
        assert port.unknown_group == 2
        red.key_ids = red.key_ids[:1]
        sender.send(sealed(b"old red."), (port.socket.address,))
        port.read()
        assert port.unknown_group == 3

    play(story)


def test_a_turn_is_bounded(sender):
    async def story(port: Port) -> None:
        node = Listener()
        port.attach(node)
        for _ in range(TURN_DATAGRAMS + 1):
            sender.send(b"x", (port.socket.address,))
        assert port.read()
        assert len(node.got) == TURN_DATAGRAMS
        assert not port.read()
        assert len(node.got) == TURN_DATAGRAMS + 1

    play(story)


def test_what_a_seal_refuses_takes_a_small_part_of_a_turn_and_keeps_nobody_awake(sender):
    """A flood with one datagram of the group behind it: that one is read in the same turn."""

    async def story(port: Port) -> None:
        class Sealed(Listener):
            def receive(self, data: bytes, *, stale: bool = False) -> None:
                super().receive(data, stale=stale)
                port.refused += data.startswith(b"flood")

        node = Sealed()
        port.attach(node)
        size = LINGER_BYTES // 64
        for _ in range(2 * TURN_DATAGRAMS):
            sender.send(b"flood".ljust(size), (port.socket.address,))
        sender.send(b"of the group", (port.socket.address,))
        assert not port.read()
        assert node.got[-1] == b"of the group"
        assert not port.lingers
        many = TURN_DATAGRAMS * round(1 / REFUSED_COST)
        flood = [b"flood" for _ in range(many + 1)]
        port._sources = [lambda: [flood.pop()] if flood else wait()]
        assert port.read(), "a turn has an end in the longest flood"
        assert len(flood) == 1

    def wait() -> Sequence[bytes]:
        raise BlockingIOError

    play(story)


def test_where_a_datagram_came_from_is_known_while_it_is_handed_over(sender):
    async def story(port: Port) -> None:
        sources: list[SocketAddress | None] = []

        class Curious(Listener):
            def receive(self, data: bytes, *, stale: bool = False) -> None:
                sources.append(port.source)

        port.attach(Curious())
        sender.send(b"by the socket", (port.socket.address,))
        port.read()
        port._sources = [lambda: hear.receive()]
        with contextlib.closing(UdpSocket(Address("127.0.0.1", 0))) as hear:
            sender.send(b"by another way, as multicast does", (hear.address,))
            port.read()
        assert sources == [sender.address, None]

    play(story)


async def until(fits: Callable[[], bool]) -> None:
    async with asyncio.timeout(LIMIT_S):
        while not fits():  # noqa: ASYNC110  # Nobody tells of it.
            await asyncio.sleep(0)


def test_datagrams_that_came_together_go_to_the_only_node_together(sender):
    async def story(port: Port) -> None:
        node = Listener()
        port.attach(node)
        run = [bytes([i]) * 100 for i in range(5)]
        sender.send_all(run, (port.socket.address,))
        port.read()
        assert node.got == run
        assert node.bursts == (1 if port.socket.segmented else 0)
        other = Listener("other")
        port.attach(other)
        sender.send_all([frame("g"), frame("other")], (port.socket.address,))
        port.read()
        assert (node.got[5:], other.got) == ([frame("g")], [frame("other")])

    play(story)


def test_while_much_arrives_the_event_loop_stays_awake_for_a_moment(sender):
    async def story(port: Port) -> None:
        port.attach(Listener())
        sender.send(bytes(100), (port.socket.address,))
        port.read()
        assert not port.lingers
        sender.send(bytes(LINGER_BYTES), (port.socket.address,))
        port.read()
        assert port.lingers
        await until(lambda: not port.lingers)

    play(story)


def test_what_was_read_between_two_deliveries_keeps_it_awake_too(sender):
    async def story(port: Port) -> None:
        node = Listener()
        port.attach(node)
        sender.send(bytes(LINGER_BYTES), (port.socket.address,))
        port.poll(node)
        sender.send(bytes(100), (port.socket.address,))
        port.read()
        assert port.lingers

    play(story)


def test_a_port_that_stalls_or_is_closed_does_not_stay_awake(sender):
    async def story(port: Port) -> None:
        node = Listener()
        port.attach(node)
        sender.send(bytes(LINGER_BYTES), (port.socket.address,))
        port.read()
        node.backlog = True
        sender.send(bytes(LINGER_BYTES), (port.socket.address,))
        port.read()
        assert port.stalled
        await asyncio.sleep(0)
        assert not port.lingers
        node.backlog = False
        port.poll(node)
        sender.send(bytes(LINGER_BYTES), (port.socket.address,))
        port.read()
        assert port.lingers
        port.close()
        await asyncio.sleep(0)
        assert not port.lingers

    play(story)


def test_what_waited_during_a_pause_is_old(sender):
    async def story(port: Port) -> None:
        node = Listener()
        port.attach(node)
        node.next_alarm = asyncio.get_running_loop().time() - 1.0
        sender.send(b"old", (port.socket.address,))
        port.read()
        assert (node.stale, node.got) == ([b"old"], [])
        assert node.pauses[0] >= 1.0
        sender.send(b"new", (port.socket.address,))
        port.read()
        assert (node.stale, node.got, len(node.pauses)) == ([b"old"], [b"new"], 1)

    play(story)


def test_a_backlogged_node_is_not_read_for_until_it_has_room(sender):
    async def story(port: Port) -> None:
        node = Listener()
        port.attach(node)
        node.backlog = True
        for data in (b"1", b"2"):
            sender.send(data, (port.socket.address,))
            port.read()
            port.poll(node)
        assert (port.stalled, node.got) == (True, [b"1"])
        node.backlog = False
        port.poll(node)
        assert (port.stalled, node.got, len(node.stalls)) == (False, [b"1", b"2"], 1)

    play(story)


def test_a_stall_is_only_for_a_moment(sender):
    async def story(port: Port) -> None:
        node = Listener()
        node.stall_s = 0.001
        node.backlog = True
        port.attach(node)
        for count in (1, 2):
            sender.send(b"x", (port.socket.address,))
            await until(lambda: len(node.got) >= count)  # noqa: B023  # It is over before the next.
        assert node.stalls

    play(story)


def test_a_backlogged_node_does_not_hold_up_another_group(sender):
    async def story(port: Port) -> None:
        slow, quick = Listener("slow"), Listener("quick")
        port.attach(slow)
        port.attach(quick)
        slow.backlog = True
        for _ in range(3):
            for name in ("slow", "quick"):
                sender.send(frame(name), (port.socket.address,))
            port.read()
            port.poll(quick)
        assert (len(slow.got), len(quick.got)) == (1, 3)
        assert not port.stalled
        assert [port.stalls(node) for node in (slow, quick)] == [True, False]
        slow.backlog = False
        port.poll(slow)
        assert (len(slow.got), len(slow.stalls), quick.stalls) == (3, 1, [])
        assert not port.stalls(slow)

    play(story)


def test_what_is_held_for_a_backlogged_node_is_bounded(sender):
    async def story(port: Port) -> None:
        slow, quick = Listener("slow"), Listener("quick")
        port.attach(slow)
        port.attach(quick)
        slow.backlog = True
        port.socket.receive_buffer = 2 * len(frame("slow"))
        for _ in range(5):
            sender.send(frame("slow"), (port.socket.address,))
            port.read()
        assert port.overflowed == 2
        slow.backlog = False
        port.poll(slow)
        assert len(slow.got) == 3

    play(story)


def test_the_socket_is_not_read_while_all_nodes_stall(sender):
    async def story(port: Port) -> None:
        nodes = Listener("red"), Listener("blue")
        for node in nodes:
            port.attach(node)
            node.backlog = True
        for node in nodes:
            sender.send(frame(node.group), (port.socket.address,))
        port.read()
        assert port.stalled
        sender.send(frame("red"), (port.socket.address,))
        assert not port.read()
        port.detach(nodes[0])
        assert port.stalled  # The other one still does.
        nodes[1].backlog = False
        port.poll(nodes[1])
        assert not port.stalled
        assert len(nodes[1].got) == 2  # Alone, it is given everything.

    play(story)


def test_what_is_due_is_done_before_every_stall(sender):
    async def story(port: Port) -> None:
        node = Listener()
        node.backlog = True
        port.attach(node)
        for count in (1, 2, 3):
            sender.send(b"x", (port.socket.address,))
            port.read()
            assert (port.stalled, node.expiries) == (True, count)
            port._resume(port._attached[b"g"])

    play(story)


def test_a_node_that_ends_before_a_stall_leaves_nothing_to_wait_for(sender):
    async def story(port: Port) -> None:
        node = Listener()
        node.backlog = True
        node.expire_timers = lambda: port.detach(node)  # type: ignore[method-assign]
        port.attach(node)
        sender.send(b"x", (port.socket.address,))
        port.read()
        assert not port.stalled

    play(story)


def test_an_old_join_is_not_heard_and_anything_else_is():
    """The guard of a node against what waited while it was stopped."""

    async def story() -> None:
        peers = {"a": "127.0.0.1:0", "b": "127.0.0.1:9"}
        async with roundelay.join("g", node="a", peers=peers, timeout_s=30.0) as group:
            node = group._node
            assert node is not None
            join = frame("g", Join(("a", "b"), (), 4))
            node.receive(join, stale=True)
            assert node.meter.frames_received == 0
            node.receive(frame("g"), stale=True)
            assert node.meter.frames_received == 1
            node.receive(join)
            assert node.meter.frames_received == 2

    asyncio.run(story())


def test_an_application_that_waited_goes_before_the_next_datagram_of_a_quiet_group(sender):
    async def story(port: Port) -> None:
        node = Listener()
        port.attach(node)
        for _ in range(2):
            sender.send(frame("g"), (port.socket.address,))
        node.woken = True
        port.read(True)
        assert len(node.got) == 1
        node.woken = False
        port.read(True)
        assert len(node.got) == 2

    play(story)


def test_before_an_alarm_an_application_that_waited_does_not_go_first(sender):
    async def story(port: Port) -> None:
        node = Listener()
        port.attach(node)
        for _ in range(2):
            sender.send(frame("g"), (port.socket.address,))
        node.woken = True
        port.read()
        assert len(node.got) == 2

    play(story)


def test_in_a_busy_group_no_application_goes_before_what_waits(sender):
    async def story(port: Port) -> None:
        node = Listener()
        port.attach(node)
        sender.send(bytes(LINGER_BYTES), (port.socket.address,))
        port.read()
        assert port.lingers
        for _ in range(2):
            sender.send(frame("g"), (port.socket.address,))
        node.woken = True
        port.read(True)
        assert len(node.got) == 3

    play(story)
