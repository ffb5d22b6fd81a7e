"""A node: drives one core, as the simulator's host does, with real time, disk and network.

`Node` ties its parts together, each of which has a module of its own:

    port, sealing                          from a datagram to a frame
    receiving, admission, backlog          from a frame to an input of the core
    sending                                messages of the application, also inputs
    timers                                 deadlines that expire, also inputs
    performing                             the effects of every input
    deliveries, inbox                      what was delivered, until the application reads it
    housekeeping                           what is done once a second
    log/driver                             the replicated log of a node with a journal
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

from roundelay.core.contract import Boot, Core, LogCore
from roundelay.core.effects import Effect
from roundelay.core.ids import View
from roundelay.runtime.admission import Admission
from roundelay.runtime.backlog import Backlog, PacketsIn
from roundelay.runtime.deliveries import Deliveries
from roundelay.runtime.errors import (
    ClosedError,
    DiskError,
    FailedError,
    JournalError,
    StateError,
)
from roundelay.runtime.housekeeping import Housekeeping
from roundelay.runtime.input_log import Input
from roundelay.runtime.instruments import Instruments
from roundelay.runtime.log.driver import JournalSetup, LogDriver
from roundelay.runtime.node_log import log
from roundelay.runtime.peer_addresses import PeerAddresses
from roundelay.runtime.performing import Performer
from roundelay.runtime.port import Port
from roundelay.runtime.receiving import Receiving
from roundelay.runtime.recent import Recent
from roundelay.runtime.sealing import Sealing, SealSetup
from roundelay.runtime.sending import Sending
from roundelay.runtime.state import Storage
from roundelay.runtime.timers import Timers
from roundelay.wire.endpoint import Endpoint

READ_TURNS = 8
"""Turns of reading before timers that have expired are handled, even if there is more to read. Too
small: a timer expires although the frame that cancels it waits in the socket; too large: under load
timers expire late."""


class Node:
    """One member of one group, from its start until it is closed.

    Whatever the core raises, apart from its refusal of a message, is a bug in it, and ends the
    node.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        port: Port,
        core: Core[Any],
        boot: Boot,
        storage: Storage,
        peer_addresses: PeerAddresses,
        instruments: Instruments,
        *,
        packets_in: PacketsIn,
        timeout_s: float,
        backlog_bytes: int,
        sealed: SealSetup | None = None,
        journal: JournalSetup | None = None,
        recent: Recent | None = None,
    ) -> None:
        """`peer_addresses` are those of all other nodes of the group. With a `journal` the core is
        a `LogCore`."""
        seal = None if sealed is None else sealed.seal
        self.group = boot.group
        self.name = boot.node
        self.incarnation = boot.incarnation
        self.core = core
        self.pause_s = timeout_s / 4
        self.stall_s = timeout_s / (2 * (len(peer_addresses.peers) + 1))
        self.error: ClosedError | None = None
        """Why it does not run any more; None while it does."""
        self.ended = asyncio.Event()
        self.on_close: Callable[[ClosedError], None] = lambda error: None
        self.on_abandon: list[Callable[[], None]] = []
        """Called to release more resources if the event loop is closed under this node."""
        self.instruments = instruments
        self.recent = recent
        """What it keeps for those who watch it."""
        self.meter = meter = instruments.meter
        self.node_log = node_log = instruments.node_log
        self.endpoint: Endpoint[Any] = Endpoint(boot, core.codec, sealed=seal is not None)
        self.peer_addresses = peer_addresses
        self.deliveries = deliveries = Deliveries(boot.node, meter)
        self.sending = sending = Sending(
            loop, core, instruments, self._flush_core, with_log=journal is not None
        )
        self.backlog = Backlog(
            deliveries.inbox, core.status, sending, backlog_bytes, packets_in, node_log
        )
        self.log: LogDriver | None = None
        """Of a node with a journal."""
        if journal is not None:
            self.log = LogDriver(
                loop,
                cast("LogCore[Any]", core),
                journal,
                instruments,
                step=self._step,
                flush=self._flush_core,
                fail=self._fail,
                name=f"{boot.group}/{boot.node}",
            )
        self._port = port
        self._storage = storage
        self._timers = Timers(loop, self._on_alarm)
        performer = Performer(
            self.endpoint,
            port,
            self._timers,
            storage,
            sending,
            deliveries,
            peer_addresses,
            instruments,
            core.status.terms,
            seal,
            self.log,
        )
        self._perform = performer.perform
        self.admission = Admission(
            boot,
            core.status,
            port,
            deliveries,
            peer_addresses,
            node_log,
            loop.time,
            answer_s=timeout_s / 2,
            receive=lambda frame: self._receiving.receive(frame),
            close=self.close,
        )
        self._receiving = Receiving(
            core,
            self.endpoint,
            port,
            self.admission,
            self.backlog,
            peer_addresses,
            instruments,
            packets_in,
            clock=loop.time,
            perform=self._perform,
            fail=self._fail,
        )
        self.sealing: Sealing | None = None
        if sealed is not None:
            self.sealing = Sealing(
                sealed,
                self._receiving,
                self.endpoint,
                port,
                peer_addresses,
                node_log,
                loop.time,
            )
        # The port calls these directly: there is a datagram for each call.
        receiving = self._receiving if self.sealing is None else self.sealing
        self.receive = receiving.receive
        self.receive_many = receiving.receive_many
        self.backlogged = self.backlog.backlogged
        self._housekeeping = Housekeeping(
            loop,
            deliveries,
            self.admission.known_peers,
            peer_addresses,
            instruments,
            more=self._look_around,
        )
        peer_addresses.serve(
            lambda data, address: port.socket.send(
                data if seal is None else seal.seal(data), (address,)
            ),
            performer.update_addresses,
        )

    @property
    def view(self) -> View | None:
        return self.deliveries.view

    @property
    def key_ids(self) -> Sequence[bytes]:
        return () if self.sealing is None else self.sealing.seal.key_ids

    @property
    def next_alarm(self) -> float:
        return self._timers.next_alarm

    def woke_reader(self) -> bool:
        inbox = self.deliveries.inbox
        woken, inbox.woken = inbox.woken, False
        return woken

    def nobodys_key(self) -> None:
        self.node_log.nobodys_key(self._port.source)

    # Life

    def start(self) -> None:
        self._port.attach(self)
        self._housekeeping.start()
        if self.log is not None:
            self.log.start()
        self._step(Input.START, b"", self.core.start)

    def leave(self) -> None:
        """Tell the others, and stop."""
        if self.error is None:
            self._step(Input.LEAVE, b"", self.core.leave)
            self.close(ClosedError(f"group {self.group!r} was left"))

    def close(self, error: ClosedError) -> None:
        """Stop at once; every task that waits for this node is told `error`."""
        if self.error is not None:
            return
        self.error = error
        self._receiving.closed = True
        self._port.detach(self)
        self._timers.clear()
        self._housekeeping.stop()
        self.node_log.sum_up_views(last=True)
        self.deliveries.inbox.close(error)
        self.sending.close(error)
        if self.log is not None:
            self.log.close(error)
        self.ended.set()
        self.on_close(error)
        self._close_files()

    def abandon(self) -> None:
        """The event loop was closed under this node: release files and locks for the next one."""
        if self.error is None:
            self.error = ClosedError(f"the event loop of group {self.group!r} ended without leave")
            self.sending.error = self.error  # Nobody is told: no task can run any more.
            if self.log is not None:
                self.log.abandon()
            self._close_files()
            for release in self.on_abandon:
                release()

    def _close_files(self) -> None:
        self._storage.close()
        self.instruments.close()

    # Inputs of the core; those with frames are in `receiving`.

    def _step(self, kind: Input, data: bytes, call: Callable[[], list[Effect[Any]]]) -> None:
        """Give the core one input and perform its effects; `data` is the input in the record."""
        try:
            effects = call()
            if self.instruments.input_log is not None:
                self.instruments.input_log.write(kind, data, effects)
            self._perform(effects)
        except Exception as e:
            self._fail(e)

    def _flush_core(self) -> None:
        if self.log is not None:
            self.log.appending.flush_due = False  # What was appended leaves with it too.
        self._step(Input.FLUSH, b"", self.core.flush)

    def expire_timers(self) -> None:
        for timer in self._timers.pop_expired():
            if self.instruments.tracing is not None:
                self.instruments.tracing.recorder.expire(timer)
            self._step(Input.EXPIRE, timer.encode(), partial(self.core.expire, timer))

    def _fail(self, error: Exception) -> None:
        """Storage failed, or there is a bug in the core: this node cannot go on."""
        if isinstance(error, FailedError):
            log.error("%s/%s stops: %s", self.group, self.name, error)
            self.close(error)
            return
        if isinstance(error, StateError | JournalError):
            failed = FailedError if self.log is None else DiskError
            self.close(failed(str(error)))
            return
        log.error("%s/%s stops: a bug in its core", self.group, self.name, exc_info=error)
        self.close(
            FailedError(f"this node stopped on a bug ({error!r}); please report it with its log")
        )

    def _look_around(self) -> None:
        """Once a second."""
        if self.log is not None:
            self.log.look_at_disk()
        if self.recent is not None:
            self.recent.ease(self)

    # Time

    def _on_alarm(self) -> None:
        """Timers may have expired; frames that arrived before that go first."""
        if self._port.stalls(self):
            self._timers.suspend()  # The end of the stall resumes them.
            return
        for _ in range(READ_TURNS):
            if not self._port.read():
                break
        self.expire_timers()
        if self.error is None:
            self._timers.resume()

    def after_pause(self, duration_s: float) -> None:
        self.meter.pauses += 1
        self.node_log.paused(duration_s)
        self._timers.postpone(duration_s)

    def after_stall(self, duration_s: float) -> None:
        self.meter.stalls += 1
        if duration_s >= self.stall_s:
            self.node_log.slow_reader(self.deliveries.inbox.bytes)
        self._timers.postpone_bounded(duration_s)
