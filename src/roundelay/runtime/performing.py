"""Performing effects: what the core wants done, with real sockets, timers, disk and queues.

The core is never called from inside an effect: effects only send, store, arm timers and append to
queues.
"""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, assert_never

from roundelay.core.effects import (
    Appended,
    CancelTimer,
    Committed,
    Cut,
    Deliver,
    Differ,
    Effect,
    Fork,
    Install,
    Kind,
    Load,
    LoadSnapshot,
    LogChanged,
    Persist,
    Receipt,
    Record,
    Refuse,
    Reset,
    Send,
    SetTimer,
    Store,
    StoreSnapshot,
    Suspect,
    Synced,
)
from roundelay.core.ids import NodeId, Span, Terms
from roundelay.runtime.deliveries import Deliveries
from roundelay.runtime.instruments import Instruments
from roundelay.runtime.log.driver import LogDriver
from roundelay.runtime.peer_addresses import PeerAddresses
from roundelay.runtime.port import Port
from roundelay.runtime.sending import Sending
from roundelay.runtime.state import Storage
from roundelay.runtime.terms import peers_differ, settings_differ
from roundelay.runtime.timers import Timers
from roundelay.transport.address import SocketAddress
from roundelay.wire.endpoint import Endpoint
from roundelay.wire.frame import filled_up
from roundelay.wire.primitives import Reason

if TYPE_CHECKING:  # Only nodes with a key need the package `cryptography`.
    from roundelay.sealing.seal import Seal

_TOKEN = Kind.TOKEN

SEND_BYTES = 32_768
"""Bytes of frames for everybody that are gathered before they are sent with one call of the system.
Too small: every frame costs a call; too large: the other nodes idle while this one encodes."""


class Performer:
    """Performs the effects of one node's core, in their order."""

    def __init__(
        self,
        endpoint: Endpoint[Any],
        port: Port,
        timers: Timers,
        storage: Storage,
        sending: Sending,
        deliveries: Deliveries,
        peer_addresses: PeerAddresses,
        instruments: Instruments,
        terms: Terms,
        seal: "Seal | None",
        log: LogDriver | None = None,
    ) -> None:
        """`terms` are this node's own settings, as its core compares them with those of others;
        `log` performs the effects of a core with a journal."""
        self._endpoint = endpoint
        self._port = port
        self._timers = timers
        self._storage = storage
        self._sending = sending
        self._receipts = sending.receipts
        self._deliveries = deliveries
        self._deliver = deliveries.deliver
        self._peer_addresses = peer_addresses
        self._meter = instruments.meter
        self._node_log = instruments.node_log
        self._instruments = instruments
        self._terms = terms
        self._seal = seal
        self._log = log
        self._addresses: dict[NodeId, tuple[SocketAddress]] = {}
        """Where a frame for one node goes."""
        self._everybody: tuple[SocketAddress, ...] = ()
        """Where a frame for all nodes goes: the multicast address, or the address of each."""
        self.update_addresses()

    def update_addresses(self) -> None:
        """The address of a peer has changed."""
        addresses = self._peer_addresses.addresses
        self._addresses = {node: (address,) for node, address in addresses.items()}
        self._everybody = self._port.everybody or tuple(addresses.values())

    def perform(self, effects: list[Effect[Any]]) -> None:
        tracing, socket = self._instruments.tracing, self._port.socket
        frames: list[bytes] = []  # For everybody; they may leave with one call of the system.
        size = 0
        delivered: Span | None = None  # The last own messages among the effects.
        for effect in effects:
            # By type, the most frequent first: this loop runs for every packet.
            if type(effect) is Deliver:
                if tracing is not None:
                    tracing.recorder.deliver(effect)
                    tracing.write_out()
                self._deliver(effect)
            elif type(effect) is SetTimer:
                self._timers.set(effect.timer, effect.delay_s)
            elif type(effect) is Send:
                if effect.to is None:
                    frames.append(self._encode(effect))
                    size += len(frames[-1])
                if frames and (effect.to is not None or size >= SEND_BYTES):
                    self._send_all(frames)
                    frames, size = [], 0
                if effect.to is not None:
                    data = self._sealed(self._encode(effect))
                    socket.send(data, self._addresses.get(effect.to, ()))
            elif type(effect) is Record:
                if tracing is not None:
                    tracing.recorder.record(effect)
                if effect.kind is _TOKEN and effect.tag == "acquire":
                    self._meter.token(time.monotonic())
            elif type(effect) is Receipt:
                delivered = effect.span
                if self._receipts.may_concern(delivered):
                    self._sending.resolve(effect, self._deliveries.view)
            elif type(effect) is Store:
                assert self._log is not None, "a core without a journal keeps no log"
                self._log.perform(effect)
            else:
                self._perform_rare(effect)
        if frames:
            self._send_all(frames)
        if delivered is not None:
            self._sending.on_delivered(delivered.first + delivered.count)
        if self._log is not None:
            self._log.after_effects()

    def _perform_rare(self, effect: Effect[Any]) -> None:
        tracing = self._instruments.tracing
        match effect:
            case CancelTimer():
                self._timers.cancel(effect.timer)
            case Install():
                if tracing is not None:
                    tracing.recorder.install(effect.view, able=effect.able)
                    tracing.write_out()
                self._node_log.install(effect)
                self._deliveries.install(effect)
                self._sending.wake_waiting()
            case Persist():
                self._storage.save(effect.state)
            case Refuse():
                self._endpoint.refuse(Reason.IMPLAUSIBLE)
                if tracing is not None:
                    tracing.recorder.refuse(Reason.IMPLAUSIBLE, effect.why)
            case Differ():
                self._on_differ(effect)
            case Suspect():
                if tracing is not None:
                    tracing.recorder.suspect(effect.members, effect.reason)
                self._meter.suspicions += 1
                self._node_log.suspect(effect)
            case Record() | SetTimer() | Send() | Deliver() | Receipt() | Store():
                raise AssertionError("`perform` handles these itself")
            case (
                Cut()
                | Reset()
                | Load()
                | StoreSnapshot()
                | LoadSnapshot()
                | Committed()
                | Appended()
                | Synced()
                | LogChanged()
                | Fork()
            ):
                assert self._log is not None, "a core without a journal keeps no log"
                self._log.perform(effect)
            case _:
                assert_never(effect)

    def _on_differ(self, effect: Differ) -> None:
        if effect.refused:
            self._endpoint.refuse(Reason.SETTINGS)
            if self._instruments.tracing is not None:
                self._instruments.tracing.recorder.refuse(Reason.SETTINGS, effect.terms.settings)
            sentence = settings_differ(effect.node, self._terms, effect.terms)
            self._node_log.settings(effect.node, sentence)
        else:
            sentence = peers_differ(effect.node, self._terms, effect.terms)
            self._node_log.peers(effect.node, sentence)

    def _encode(self, effect: Send[Any]) -> bytes:
        tag, data = self._endpoint.encode(effect.message, effect.view)
        if self._instruments.tracing is not None:
            self._instruments.tracing.send(effect.to, tag, len(data), self._endpoint)
        self._meter.frames_sent += 1
        self._meter.frames[tag] += 1
        return data

    def _sealed(self, data: bytes) -> bytes:
        return data if self._seal is None else self._seal.seal(data)

    def _send_all(self, frames: Sequence[bytes]) -> None:
        """Send frames to everybody."""
        socket = self._port.socket
        if socket.segmented and len(frames) > 2:
            frames = filled_up(frames)
        if self._seal is not None:
            frames = [self._seal.seal(frame) for frame in frames]
        socket.send_all(frames, self._everybody)
