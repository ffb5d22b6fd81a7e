"""Putting a node together from its settings."""

import asyncio
from collections.abc import Mapping
from functools import partial

from roundelay import __version__
from roundelay.core.contract import Boot
from roundelay.core.ids import NodeId
from roundelay.group.engines import describe
from roundelay.runtime.core_setup import CoreSetup
from roundelay.runtime.descriptors import exhausted, exhausted_error
from roundelay.runtime.errors import ConfigError, ListenError, StartError
from roundelay.runtime.incarnation import wall_us
from roundelay.runtime.input_log import InputLog, record_name
from roundelay.runtime.instruments import Instruments
from roundelay.runtime.log.applying import StateMachine
from roundelay.runtime.log.driver import JournalSetup, length_of
from roundelay.runtime.log.opening import open_journal
from roundelay.runtime.machine import Machine
from roundelay.runtime.meter import Meter
from roundelay.runtime.node import Node
from roundelay.runtime.node_log import NodeLog
from roundelay.runtime.peer_addresses import PeerAddresses, look_up
from roundelay.runtime.port import Port
from roundelay.runtime.ports import Ports
from roundelay.runtime.recent import Recent
from roundelay.runtime.sealing import SealSetup
from roundelay.runtime.settings import DATAGRAM_BYTES, Settings
from roundelay.runtime.state import NoStorage, StateDirectory, Storage
from roundelay.runtime.terms import terms_of
from roundelay.runtime.tracing import Tracing
from roundelay.runtime.tuning import (
    engine_options,
    packet_bytes,
    tuned_options,
    wanted_window,
    window,
)
from roundelay.runtime.watched import Subject
from roundelay.trace.extras import EXTRAS, needs
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
"""How long a start waits for the addresses behind the names of peers, in seconds; the node looks
for those that are missing while it runs. Too small: a node takes peers on its own machine for
remote ones and uses small datagrams; too large: a dead name server holds up the start."""


def open_port(settings: Settings) -> Port:
    """The port of the node, shared with groups that use the same one; ListenError if its address
    cannot be used."""
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


async def make_node(
    settings: Settings,
    port: Port,
    machine: Machine,
    state_machine: StateMachine | None = None,
) -> Node:
    """A node that is ready to start, or a StartError or ConfigError. With a journal, its log is
    applied to `state_machine`."""
    peers = {p: parse_address(text) for p, text in settings.peers.items() if p != settings.node}
    found = await _resolve_peers(peers, port.socket.family, machine)
    all_local = len(found) == len(peers) and all(map(is_loopback, found.values()))
    local = all_local and settings.multicast is None
    size = settings.datagram_bytes or DATAGRAM_BYTES["loopback" if local else "network"]
    room = datagrams_that_fit(port.socket.receive_buffer, size)
    tuned = tuned_options(settings, size, room)
    try:
        terms = terms_of(settings, size, tuned)
    except ValueError as e:
        raise ConfigError(str(e)) from None
    journal: JournalSetup | None = None
    storage: Storage
    if settings.journal is not None:
        journal, storage = await open_journal(settings, machine, state_machine)
    else:
        storage = _open_storage(settings, machine)
    try:
        setup = CoreSetup(
            Boot(
                settings.group,
                settings.node,
                storage.incarnation,
                storage.stored,
                wall_us(storage.incarnation),
                traced=settings.trace is not None,
                journal=None if journal is None else journal.kept,
                session=0 if journal is None else machine.random_bits(63),
            ),
            tuple(sorted(settings.peers)),
            settings.engine,
            engine_options(settings, size, room),
            settings.timeout_s,
            packet_bytes(settings, size),
            settings.queue_bytes,
            terms,
            sealed=settings.key is not None,
            journal=journal is not None,
            catchup_bytes_per_s=settings.catchup_bytes_per_s,
            catchup_share=settings.catchup_share,
            application=state_machine is not None,
        )
        node_log = NodeLog(settings.group, settings.node, settings.timeout_s)
        where = PeerAddresses(setup.boot, peers, machine, port.socket.family, node_log, found)
        node = _build(settings, setup, port, storage, node_log, where, machine, journal)
    except BaseException:
        storage.close()
        if journal is not None:
            journal.journal.close()
        raise
    if journal is not None:
        assert node.log is not None
        node.log.session = setup.boot.session
        where_kept = (settings.journal, settings.fsync)
        for sentence in journal.repaired:
            node_log.trouble(sentence)
        node_log.journal(journal.kept, length_of(journal.kept), *where_kept)
    if settings.key is None:
        node_log.no_key()
    node.node_log.listening(settings.listen, size, storage.incarnation)
    wanted, (_, packets) = wanted_window(size)[1], window(size, room)
    if packets < wanted:
        node.node_log.small_buffer(port.socket.receive_buffer, packets, wanted)
    return node


def _build(
    settings: Settings,
    setup: CoreSetup,
    port: Port,
    storage: Storage,
    node_log: NodeLog,
    peer_addresses: PeerAddresses,
    machine: Machine,
    journal: JournalSetup | None,
) -> Node:
    sealed = None if settings.key is None else _seal_setup(settings, setup.boot, machine)
    try:
        core = setup.make_core()
    except ValueError as e:
        raise ConfigError(str(e)) from None
    input_log = tracing = None
    try:
        if settings.record is not None:
            path = settings.record / record_name(settings.node, setup.boot.incarnation)
            input_log = InputLog(path, setup.to_json(), core.codec)
            if journal is not None:
                input_log.kept(journal.kept)
        if settings.trace is not None or settings.check:
            tracing = Tracing(settings, setup, __version__, machine.id)
    except OSError as e:
        if exhausted(e):
            raise exhausted_error() from None
        raise StartError(
            f"cannot write a record to {settings.record} ({e.strerror}); name another directory"
        ) from None
    except TraceError as e:
        raise StartError(str(e)) from None
    names, life = tuple(sorted(settings.peers)), setup.boot.incarnation
    subject = Subject(names, settings.node, life, machine.id)
    return Node(
        asyncio.get_running_loop(),
        port,
        core,
        setup.boot,
        storage,
        peer_addresses,
        Instruments(Meter(), node_log, tracing, input_log),
        packets_in=describe(setup.engine).packets_in,
        timeout_s=settings.timeout_s,
        backlog_bytes=settings.backlog_bytes,
        sealed=sealed,
        journal=journal,
        recent=Recent(subject, settings.recent_s, node_log.happened),
    )


def _seal_setup(settings: Settings, boot: Boot, machine: Machine) -> SealSetup:
    try:
        from roundelay.runtime.seal_setup import seal_setup
    except ModuleNotFoundError as e:
        if (package := (e.name or "").partition(".")[0]) not in EXTRAS:
            raise
        raise StartError(f"a node with a key cannot start; {needs(package)}") from None
    return seal_setup(settings, boot, machine)


def _open_storage(settings: Settings, machine: Machine) -> Storage:
    if settings.state is None:
        return NoStorage(machine)
    return StateDirectory(settings.state, settings.group, settings.node, machine)


async def _resolve_peers(
    peers: Mapping[NodeId, Address], family: int, machine: Machine
) -> dict[NodeId, SocketAddress]:
    """The addresses of the other nodes. All names are looked up at the same time; those that do not
    resolve within `LOOKUP_S` are left out. ListenError for a numeric address of the wrong
    family."""
    found: dict[NodeId, SocketAddress] = {}
    left = {peer for peer, address in peers.items() if not is_literal(address)}
    done = asyncio.Event()

    def on_found(peer: NodeId, answer: SocketAddress | None) -> None:
        left.discard(peer)
        if answer is not None and not done.is_set():
            found[peer] = answer
        if not left:
            done.set()

    for peer, address in peers.items():
        if peer in left:
            look_up(machine, address, family, partial(on_found, peer))
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
