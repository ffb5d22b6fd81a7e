"""Putting a node together from its settings."""

import asyncio
import time

from roundelay import __version__
from roundelay.core.contract import Boot
from roundelay.runtime.errors import ConfigError, ListenError, StartError
from roundelay.runtime.node import Node
from roundelay.runtime.plan import Plan
from roundelay.runtime.port import Port, Ports
from roundelay.runtime.settings import DATAGRAM_BYTES, Settings
from roundelay.runtime.state import NoStorage, StateDirectory, Storage
from roundelay.runtime.tape import Tape, record_name
from roundelay.runtime.tracing import Tracing
from roundelay.runtime.tuning import engine_options, packet_bytes, wanted_window, window
from roundelay.trace.manifest import TraceError
from roundelay.transport.address import (
    AddressError,
    SocketAddress,
    is_loopback,
    parse_address,
    resolve,
)
from roundelay.transport.udp import datagrams_that_fit


def open_port(settings: Settings) -> Port:
    """The port that the node is to use, shared with other groups that use the same; ListenError
    if it cannot be had."""
    loop = asyncio.get_running_loop()
    multicast = None if settings.multicast is None else parse_address(settings.multicast)
    try:
        port = Ports.of(loop).open(loop, settings.listen, multicast)
    except AddressError as e:
        raise ListenError(str(e)) from None
    if port.has(settings.group):
        Ports.of(loop).close(port)
        raise ConfigError(
            f"this process is in group {settings.group!r} on {settings.listen} already; join "
            "another group, or use another port"
        )
    return port


async def make_node(settings: Settings, port: Port) -> Node:
    """A node that is ready to start, or a StartError or ConfigError."""
    addresses = await asyncio.to_thread(_resolve_peers, settings, port.socket.family)
    local = all(map(is_loopback, addresses.values())) and settings.multicast is None
    size = settings.datagram_bytes or DATAGRAM_BYTES["loopback" if local else "network"]
    room = datagrams_that_fit(port.socket.receive_buffer, size)
    storage = _open_storage(settings)
    try:
        plan = Plan(
            Boot(
                settings.group,
                settings.node,
                storage.incarnation,
                storage.stored,
                time.time_ns() // 1000,
                traced=settings.trace is not None,
            ),
            tuple(sorted(settings.peers)),
            settings.engine,
            engine_options(settings, size, room),
            settings.timeout_s,
            packet_bytes(settings, size),
            settings.queue_bytes,
        )
        node = _build(settings, plan, port, storage, addresses)
    except BaseException:
        storage.close()
        raise
    node.narrator.listening(settings.listen, size, storage.incarnation)
    wanted, (_, packets) = wanted_window(size)[1], window(size, room)
    if packets < wanted:
        node.narrator.small_buffer(port.socket.receive_buffer, packets, wanted)
    return node


def _build(
    settings: Settings,
    plan: Plan,
    port: Port,
    storage: Storage,
    addresses: dict[str, SocketAddress],
) -> Node:
    try:
        stack = plan.stack()
    except ValueError as e:
        raise ConfigError(str(e)) from None
    tape = tracing = None
    try:
        if settings.record is not None:
            path = settings.record / record_name(settings.node, plan.boot.incarnation)
            tape = Tape(path, plan.to_json(), stack.codec)
        if settings.trace is not None:
            tracing = Tracing(settings, plan, __version__)
    except OSError as e:
        raise StartError(
            f"cannot write a record to {settings.record} ({e.strerror}); name another directory"
        ) from None
    except TraceError as e:
        raise StartError(str(e)) from None
    return Node(
        asyncio.get_running_loop(),
        port,
        stack,
        plan.boot,
        storage,
        addresses,
        timeout_s=settings.timeout_s,
        backlog_bytes=settings.backlog_bytes,
        tracing=tracing,
        tape=tape,
    )


def _open_storage(settings: Settings) -> Storage:
    if settings.state is None:
        return NoStorage()
    return StateDirectory(settings.state, settings.group, settings.node)


def _resolve_peers(settings: Settings, family: int) -> dict[str, SocketAddress]:
    """Where the other nodes are; names are looked up, which may take a while."""
    addresses = {}
    for peer, text in settings.peers.items():
        if peer == settings.node:
            continue
        try:
            addresses[peer] = resolve(parse_address(text), family)[1]
        except AddressError as e:
            raise ListenError(f"peer {peer!r}: {e}") from None
    return addresses
