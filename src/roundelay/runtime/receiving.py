"""Receiving: from a datagram to the core, and what keeps it from getting there.

A datagram is dropped if it is no frame of this group (`wire`), if its sender is not heard
(`admission`), or if the application left no room for what it brings (`backlog`).
"""

from collections.abc import Callable, Sequence
from typing import Any

from roundelay.core.contract import Core, Origin
from roundelay.core.effects import Effect
from roundelay.membership.messages import FIRST_TAG, Join
from roundelay.runtime.admission import Admission
from roundelay.runtime.backlog import Backlog, PacketsIn
from roundelay.runtime.input_log import Input, join_burst
from roundelay.runtime.instruments import Instruments
from roundelay.runtime.peer_addresses import PeerAddresses
from roundelay.runtime.port import Port
from roundelay.wire.endpoint import Endpoint
from roundelay.wire.frame import VERSION, Frame, version_of
from roundelay.wire.primitives import Reason


class Receiving:
    """Hands the frames that reach one node to its core."""

    def __init__(
        self,
        core: Core[Any],
        endpoint: Endpoint[Any],
        port: Port,
        admission: Admission,
        backlog: Backlog,
        peer_addresses: PeerAddresses,
        instruments: Instruments,
        packets_in: PacketsIn,
        *,
        clock: Callable[[], float],
        perform: Callable[[list[Effect[Any]]], None],
        fail: Callable[[Exception], None],
    ) -> None:
        """`perform` is given the effects of every input, `fail` whatever the core raises."""
        self.closed = False
        """Set when the node has ended: what is left of a burst is dropped."""
        self._core = core
        self._endpoint = endpoint
        self._port = port
        self._admission = admission
        self._lives = admission.known_peers.lives
        self._heard = admission.known_peers.heard
        self._inbox = backlog.inbox
        self._status = core.status
        self._backlog = backlog
        self._checked_above_bytes = backlog.checked_above_bytes
        self._peer_addresses = peer_addresses
        self._meter = instruments.meter
        self._node_log = instruments.node_log
        self._instruments = instruments
        self._input_log = instruments.input_log
        self._packets_in = packets_in
        self._clock = clock
        self._perform = perform
        self._fail = fail

    def receive(self, data: bytes, *, stale: bool = False) -> None:
        """Receive one datagram; a `stale` one may have waited while the process was stopped."""
        frame = self._endpoint.receive(data)
        if type(frame) is not Frame:
            assert isinstance(frame, Reason)
            self._on_drop(frame, data)
            return
        origin, message, meter, inbox = frame.origin, frame.message, self._meter, self._inbox
        if stale and isinstance(message, Join):
            return  # It is out of date, and its sender repeats it.
        # The usual answers are looked up here: a call for every frame would cost too much.
        life = origin.incarnation
        if self._lives.get(origin.node) != life and not self._admission.admits(origin, data):
            return
        self._heard[origin.node] = self._clock()
        if (
            inbox.waiting
            and inbox.bytes + self._status.incomplete_bytes > self._checked_above_bytes
            and self._backlog.refuses(frame)
        ):
            return
        meter.frames_received += 1
        if frame.tag < FIRST_TAG:
            meter.packets_received += self._packets_in(message)
        if self._instruments.tracing is not None:
            self._instruments.tracing.arrive(frame, self._endpoint)
        try:
            effects = self._core.receive(origin, message)
            if self._input_log is not None:
                self._input_log.write(Input.RECEIVE, data, effects)
            self._perform(effects)
        except Exception as e:
            self._fail(e)

    def receive_many(self, datagrams: Sequence[bytes]) -> None:
        """The same as `receive` for each; but the core is given each burst, the frames of one
        origin that follow each other, in one call."""
        size = len(datagrams) * len(datagrams[0])  # All but the last have the size of the first.
        if self._backlog.unread_bytes + size > self._checked_above_bytes:
            for data in datagrams:  # There may be no room for all of them.
                if not self.closed:
                    self.receive(data)
            return
        burst: list[Frame[Any]] = []
        burst_data: list[bytes] = []
        for data in datagrams:
            frame = self._endpoint.receive(data)
            if type(frame) is not Frame:
                assert isinstance(frame, Reason)
                self._on_drop(frame, data)
                continue
            if burst and frame.origin is not burst[0].origin:
                self._receive_burst(burst[0].origin, burst, burst_data)
                burst, burst_data = [], []
            burst.append(frame)
            burst_data.append(data)
        if burst:
            self._receive_burst(burst[0].origin, burst, burst_data)

    def _receive_burst(
        self, origin: Origin, burst: Sequence[Frame[Any]], burst_data: Sequence[bytes]
    ) -> None:
        if self.closed:
            return
        life = origin.incarnation
        if self._lives.get(origin.node) != life and not self._admission.admits(origin, None):
            return
        self._heard[origin.node] = self._clock()
        tracing = self._instruments.tracing
        if tracing is not None:
            for frame in burst:
                tracing.arrive(frame, self._endpoint)
            if len(burst) > 1:
                tracing.recorder.forget_frame()
        messages = [frame.message for frame in burst]
        self._meter.frames_received += len(messages)
        count = self._packets_in
        packets = [count(frame.message) for frame in burst if frame.tag < FIRST_TAG]
        self._meter.packets_received += sum(packets)
        try:
            effects = self._core.receive_many(origin, messages)
            if self._input_log is not None:
                self._input_log.write(Input.BURST, join_burst(burst_data), effects)
            self._perform(effects)
        except Exception as e:
            self._fail(e)

    def _on_drop(self, reason: Reason, data: bytes) -> None:
        """The wire's checks refused a datagram. Probes are among them: they are not for cores."""
        if reason is Reason.PROBE:
            self._peer_addresses.receive(data, self._port.source)
            return
        if self._instruments.tracing is not None:
            self._instruments.tracing.recorder.drop(reason)
        if reason is Reason.GROUP:
            self._node_log.wrong_group(self._endpoint.drops[reason])
        elif reason is Reason.SEALED:
            self._node_log.sealed_peer(self._port.source)
        elif reason is Reason.VERSION:
            self._node_log.version(version_of(data), VERSION, self._port.source)
