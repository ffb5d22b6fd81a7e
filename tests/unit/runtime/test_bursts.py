"""Datagrams that came together: a node takes them as it takes them one by one."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from socket import AF_INET
from typing import Any, cast

import pytest
from tests.patience import LIMIT_S

from roundelay.core.contract import Boot, Core
from roundelay.core.effects import Suspect
from roundelay.group.engines import describe, engine_factory
from roundelay.group.packer import GroupConfig
from roundelay.group.stack import Stack
from roundelay.protocols.totem import HoldCancel
from roundelay.runtime.errors import FailedError
from roundelay.runtime.events import Batch
from roundelay.runtime.instruments import Instruments
from roundelay.runtime.machine import Machine
from roundelay.runtime.meter import Meter
from roundelay.runtime.node import Node
from roundelay.runtime.node_log import NodeLog
from roundelay.runtime.peer_addresses import PeerAddresses
from roundelay.runtime.port import Port
from roundelay.runtime.state import NoStorage
from roundelay.transport.address import Address
from roundelay.wire.endpoint import Endpoint
from roundelay.wire.primitives import Reason

NAMES = ("a", "b")
BACKLOG = 100_000


class Net:
    """Two nodes whose datagrams wait until they are handed over; a list is a burst."""

    everybody = ()
    segmented = True
    source = None

    def __init__(self, engine: str, wrap: Callable[[Core[Any]], Any] = lambda core: core) -> None:
        """`wrap` replaces the core of each node by one that may look at its inputs."""
        self.socket = self
        self.under_way: deque[tuple[Any, bytes | list[bytes]]] = deque()
        loop = asyncio.get_running_loop()
        factory = engine_factory(engine, {})
        self.nodes = {}
        for name in NAMES:
            boot = Boot("g", name, traced=False)
            stack = Stack(boot, NAMES, factory, None, GroupConfig(packet_bytes=1000))
            others: dict[str, Any] = {other: other for other in NAMES if other != name}
            node_log = NodeLog("g", name, 5.0)
            peers = dict.fromkeys(others, Address("127.0.0.1", 1))
            where = PeerAddresses(boot, peers, Machine(), AF_INET, node_log, others)
            self.nodes[name] = Node(
                loop,
                cast("Port", self),
                wrap(stack),
                boot,
                NoStorage(Machine()),
                where,
                Instruments(Meter(), node_log),
                packets_in=describe(engine).packets_in,
                timeout_s=5.0,
                backlog_bytes=BACKLOG,
            )

    def attach(self, node: Node) -> None: ...
    def detach(self, node: Node) -> None: ...
    def stalls(self, node: Node) -> bool:
        return False

    def read(self) -> bool:
        return False

    def send(self, data: bytes, addresses: Sequence[Any]) -> None:
        self.under_way.extend((address, data) for address in addresses)

    def send_all(self, burst: Sequence[bytes], addresses: Sequence[Any]) -> None:
        self.under_way.extend((address, list(burst)) for address in addresses)

    def hand_over(self, steps: int = 1000) -> None:
        while self.under_way and steps:
            address, data = self.under_way.popleft()
            node = self.nodes[address]
            node.receive(data) if isinstance(data, bytes) else node.receive_many(data)
            steps -= 1

    async def until(self, fits: Callable[[], bool]) -> None:
        """Run the group; its timers need real time."""
        async with asyncio.timeout(LIMIT_S):
            while not fits():
                self.hand_over()
                await asyncio.sleep(0.001)

    async def form(self) -> None:
        for node in self.nodes.values():
            node.start()
        await self.until(
            lambda: all(n.view and len(n.view.members) == 2 for n in self.nodes.values())
        )

    def payloads(self, name: str) -> list[bytes]:
        waiting = self.nodes[name].deliveries.inbox.waiting
        return [p for batch in waiting if isinstance(batch, Batch) for p in batch.payloads]


def run(story: Callable[[Net], Any], engine: str = "totem") -> None:
    async def told() -> None:
        net = Net(engine)
        await net.form()
        await story(net)
        for node in net.nodes.values():
            node.leave()

    asyncio.run(told())


MESSAGES = [f"message {i:02}".ljust(700).encode() for i in range(12)]
"""One to a packet."""


async def next_burst(net: Net, messages: Sequence[bytes] = MESSAGES) -> list[bytes]:
    """Let a send all messages; what leaves for b together is held back and returned."""
    for message in messages:
        net.nodes["a"].sending.accept(message)
    found: list[list[bytes]] = []

    def seen() -> bool:
        found.extend(data for to, data in net.under_way if to == "b" and isinstance(data, list))
        return bool(found)

    async with asyncio.timeout(LIMIT_S):
        while not seen():
            net.hand_over(1)
            await asyncio.sleep(0)
    held = [entry for entry in net.under_way if entry[1] is found[0]]
    net.under_way.remove(held[0])
    return found[0]


@pytest.mark.parametrize("engine", ["totem", "dtp", "fifo"])
def test_all_of_a_burst_is_delivered_in_order(engine: str) -> None:
    async def story(net: Net) -> None:
        for message in MESSAGES:
            net.nodes["a"].sending.accept(message)
        await net.until(lambda: len(net.payloads("b")) == len(MESSAGES))
        assert net.payloads("b") == net.payloads("a") == MESSAGES

    run(story, engine)


@pytest.mark.parametrize("segmented", [True, False])
def test_frames_of_a_burst_have_one_size_if_that_lets_them_leave_together(segmented: bool) -> None:
    messages = [bytes(900 - 20 * i) for i in range(12)]

    async def story(net: Net) -> None:
        net.segmented = segmented
        datagrams = await next_burst(net, messages)
        assert len(datagrams) > 5
        sizes = {len(data) for data in datagrams[:-1]}
        assert (len(sizes) == 1) == segmented
        net.nodes["b"].receive_many(datagrams)
        await net.until(lambda: len(net.payloads("b")) == len(messages))
        assert net.payloads("b") == messages
        assert not net.nodes["b"].endpoint.drops

    run(story)


@pytest.mark.parametrize("engine", ["totem", "dtp", "fifo"])
def test_packets_are_counted_also_where_frames_of_a_link_carry_them(engine: str) -> None:
    async def story(net: Net) -> None:
        for message in MESSAGES:
            net.nodes["a"].sending.accept(message)
        await net.until(lambda: len(net.payloads("b")) == len(MESSAGES))
        meter = net.nodes["b"].meter
        assert meter.packets_received == meter.packets_delivered == len(MESSAGES)

    run(story, engine)


def test_a_burst_goes_through_the_core_at_once() -> None:
    async def story(net: Net) -> None:
        datagrams = await next_burst(net)
        assert len(datagrams) > 5
        node, calls = net.nodes["b"], []
        plain = node.core.receive_many

        def counted(origin: Any, messages: Any) -> Any:
            calls.append(len(messages))
            return plain(origin, messages)

        node.core.receive_many = counted  # type: ignore[method-assign]
        before = node.meter.packets_received
        node.receive_many(datagrams)
        assert calls == [len(datagrams)]
        assert node.meter.packets_received - before == len(datagrams)
        assert net.payloads("b") == MESSAGES[: len(datagrams)]

    run(story)


def test_what_is_damaged_in_a_burst_is_counted_and_asked_for_again() -> None:
    async def story(net: Net) -> None:
        datagrams = await next_burst(net)
        node = net.nodes["b"]
        damaged = bytes([*datagrams[2][:-1], datagrams[2][-1] ^ 1])
        node.receive_many([*datagrams[:2], damaged, b"rubbish", *datagrams[3:]])
        assert node.endpoint.drops == {Reason.CHECKSUM: 1, Reason.FOREIGN: 1}
        assert net.payloads("b") == MESSAGES[:2]
        await net.until(lambda: len(net.payloads("b")) == len(MESSAGES))
        assert net.payloads("b") == MESSAGES

    run(story)


def test_a_burst_that_comes_twice_is_delivered_once() -> None:
    async def story(net: Net) -> None:
        datagrams = await next_burst(net)
        net.nodes["b"].receive_many(datagrams)
        net.nodes["b"].receive_many(datagrams[::-1])
        await net.until(lambda: len(net.payloads("b")) >= len(MESSAGES))
        assert net.payloads("b") == MESSAGES

    run(story)


def test_where_the_application_left_no_room_a_burst_is_refused_as_its_frames_are() -> None:
    async def story(net: Net) -> None:
        datagrams = await next_burst(net)
        node = net.nodes["b"]
        waits = node.deliveries.inbox.bytes
        node.deliveries.inbox.bytes = BACKLOG + 1  # As if so much waited to be read.
        node.receive_many(datagrams)
        assert node.backlog.refused == len(datagrams)
        assert net.payloads("b") == []
        node.deliveries.inbox.bytes = waits
        await net.until(lambda: len(net.payloads("b")) == len(MESSAGES))
        assert net.payloads("b") == MESSAGES

    run(story)


def test_a_burst_that_ends_the_node_is_not_read_to_its_end() -> None:
    async def story(net: Net) -> None:
        datagrams = await next_burst(net)
        node = net.nodes["b"]

        def broken(origin: Any, messages: Any) -> Any:
            raise AssertionError("a bug")

        node.core.receive_many = broken  # type: ignore[method-assign]
        stranger: Endpoint[Any] = Endpoint(Boot("g", "a", 7), node.core.codec)
        other = stranger.encode(HoldCancel(), None)[1]
        before = node.meter.frames_received
        node.receive_many([*datagrams[:3], other, *datagrams[3:]])
        assert isinstance(node.error, FailedError)
        assert node.meter.frames_received == before + 3
        node.deliveries.inbox.bytes = BACKLOG  # The other way: one by one.
        node.receive_many(datagrams)
        assert node.meter.frames_received == before + 3

    run(story)


def test_a_burst_that_ends_the_view_leaves_the_next_one_running() -> None:
    async def story(net: Net) -> None:
        datagrams = await next_burst(net)
        node = net.nodes["b"]
        core: Any = node.core
        engine = core.engine
        engine.receive_many = lambda origin, messages: [Suspect(("a",), "it fails to receive")]
        node.receive_many(datagrams)
        assert node.view is not None
        assert node.view.members == ("b",)
        assert not core.membership.waiting, "the new view's engine was not started"
        node.sending.accept(b"alone")
        node.sending.flush()
        assert net.payloads("b") == [b"alone"]

    run(story)
