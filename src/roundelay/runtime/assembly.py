"""Putting a node together from its settings."""

import asyncio
from collections.abc import Mapping
from functools import partial

from roundelay import __version__
from roundelay.core.contract import Boot
from roundelay.core.ids import NodeId
from roundelay.runtime.descriptors import exhausted, exhausted_error
from roundelay.runtime.errors import ConfigError, ListenError, StartError
from roundelay.runtime.life import wall_us
from roundelay.runtime.machine import Machine
from roundelay.runtime.narrator import Narrator
from roundelay.runtime.node import Node
from roundelay.runtime.plan import Plan
from roundelay.runtime.port import Port, Ports
from roundelay.runtime.settings import DATAGRAM_BYTES, Settings
from roundelay.runtime.state import NoStorage, StateDirectory, Storage
from roundelay.runtime.tape import Tape, record_name
from roundelay.runtime.terms import terms_of
from roundelay.runtime.tracing import Tracing
from roundelay.runtime.tuning import (
    engine_options,
    packet_bytes,
    tuned_options,
    wanted_window,
    window,
)
from roundelay.runtime.whereabouts import Whereabouts, look_up
from roundelay.trace.manifest import TraceError
from roundelay.transport.address import (
    Address,
    AddressError,
    SocketAddress,
    is_literal,
    is_loopback,
    parse_address,
    resolve,
)
from roundelay.transport.udp import datagrams_that_fit

LOOKUP_S = 5.0
"""How long a start waits for names of peers; after that they are looked up while the node runs."""


def open_port(settings: Settings) -> Port:
    """The port that the node is to use, shared with other groups that use the same; ListenError
    if it cannot be had."""
    loop = asyncio.get_running_loop()
    multicast = None if settings.multicast is None else parse_address(settings.multicast)
    try:
        port = Ports.of(loop).open(loop, settings.listen, multicast)
    except AddressError as e:
        raise ListenError(str(e)) from None
    except OSError as e:
        if not exhausted(e):
            raise
        raise exhausted_error() from None
    if port.has(settings.group):
        Ports.of(loop).close(port)
        raise ConfigError(
            f"this process is in group {settings.group!r} on {settings.listen} already; join "
            "another group, or use another port"
        )
    return port


async def make_node(settings: Settings, port: Port, machine: Machine) -> Node:
    """A node that is ready to start, or a StartError or ConfigError."""
    peers = {p: parse_address(text) for p, text in settings.peers.items() if p != settings.node}
    found = await _find(peers, port.socket.family, machine)
    near = len(found) == len(peers) and all(map(is_loopback, found.values()))
    local = near and settings.multicast is None
    size = settings.datagram_bytes or DATAGRAM_BYTES["loopback" if local else "network"]
    room = datagrams_that_fit(port.socket.receive_buffer, size)
    tuned = tuned_options(settings, size, room)
    try:
        terms = terms_of(settings, size, tuned)
    except ValueError as e:
        raise ConfigError(str(e)) from None
    storage = _open_storage(settings, machine)
    try:
        plan = Plan(
            Boot(
                settings.group,
                settings.node,
                storage.incarnation,
                storage.stored,
                wall_us(storage.incarnation),
                traced=settings.trace is not None,
            ),
            tuple(sorted(settings.peers)),
            settings.engine,
            engine_options(settings, size, room),
            settings.timeout_s,
            packet_bytes(settings, size),
            settings.queue_bytes,
            terms,
        )
        narrator = Narrator(settings.group, settings.node, settings.timeout_s)
        where = Whereabouts(plan.boot, peers, machine, port.socket.family, narrator, found)
        node = _build(settings, plan, port, storage, narrator, where, machine)
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
    narrator: Narrator,
    whereabouts: Whereabouts,
    machine: Machine,
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
        if settings.trace is not None or settings.check:
            tracing = Tracing(settings, plan, __version__, machine.id)
    except OSError as e:
        if exhausted(e):
            raise exhausted_error() from None
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
        narrator,
        whereabouts,
        timeout_s=settings.timeout_s,
        backlog_bytes=settings.backlog_bytes,
        tracing=tracing,
        tape=tape,
    )


def _open_storage(settings: Settings, machine: Machine) -> Storage:
    if settings.state is None:
        return NoStorage(machine)
    return StateDirectory(settings.state, settings.group, settings.node, machine)


async def _find(
    peers: Mapping[NodeId, Address], family: int, machine: Machine
) -> dict[NodeId, SocketAddress]:
    """Where the other nodes are. Names are looked up, all at once; those that do not resolve, or
    not soon, are left out. ListenError for a numeric address of the wrong kind."""
    found: dict[NodeId, SocketAddress] = {}
    left = {peer for peer, address in peers.items() if not is_literal(address)}
    done = asyncio.Event()

    def tell(peer: NodeId, answer: SocketAddress | None) -> None:
        left.discard(peer)
        if answer is not None and not done.is_set():
            found[peer] = answer
        if not left:
            done.set()

    for peer, address in peers.items():
        if peer in left:
            look_up(machine, address, family, partial(tell, peer))
            continue
        try:
            found[peer] = resolve(address, family)[1]
        except AddressError as e:
            raise ListenError(f"peer {peer!r}: {e}") from None
    if left:
        try:
            async with asyncio.timeout(LOOKUP_S):
                await done.wait()
        except TimeoutError:
            done.set()
    return found
