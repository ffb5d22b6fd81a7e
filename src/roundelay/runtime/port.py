"""One UDP socket of a process, shared by the nodes of several groups.

Theory of operation
===================

The event loop says when there is something to read. Then datagrams are read until none is left, a
bounded number in one turn, and each goes through its node at once: what the core wants sent leaves
before the next one is read. The application's reader reads the socket between two deliveries, so
that a token never waits for an application.

In a quiet group an application that waited for a message has its turn before the next datagram is
read, which is mostly the token: the message is there earlier, and the answer of the application
leaves with that token.

Lingering: while much arrives, the event loop does not go to sleep at once when nothing is left to
read. To wake a process up takes longer than a peer needs to send the next packets, and the token
would wait for that at every hop. Other processes that want this processor go first.

Stalls: an application that reads its deliveries too slowly makes its node stall. The node gets no
datagrams for a moment, `stall_s`; the token waits here for so long, and its group slows down. A
moment is too short for the node to be suspected. Between two moments expired timers are handled,
because the engine has to ask again for packets that were refused. A node does not stall while a
task of its application waits in `send` or for a receipt: that task may be the one that reads.

Groups that share a port do not wait for each other. While all nodes stall, the socket is not read.
While some do, datagrams for those are held here, as many as a receive buffer holds, and the other
nodes go on.

Pauses: a process that was stopped for a while finds old datagrams and expired timers when it goes
on. The datagrams are handed over first, without the Joins among them, which are out of date; and
the time of the pause does not count for timers, or this node would suspect others for its own
silence.
"""

import asyncio
import os
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from roundelay.transport.address import Address, SocketAddress
from roundelay.transport.udp import MulticastListener, UdpSocket
from roundelay.wire.frame import SEALED_MAGIC, group_of, key_id_of

TURN_DATAGRAMS = 64
"""Datagrams after which a turn of the event loop stops reading. Too small: many turns, each with a
cost of its own; too large: tasks of the application wait for their turn."""
POLL_DATAGRAMS = 16
"""The same for a look at the socket between two deliveries to the application. Too small: the group
waits for the reader; too large: the reader waits for the group."""
REFUSED_COST = 1 / 16
"""What a datagram that does not pass the seal of its node costs, in datagrams that do. Too large: a
flood keeps the datagrams of the group waiting behind it; too small: a turn with a flood in it takes
long."""
LINGER_BYTES = 8192
"""Bytes read in one turn from which on the event loop lingers. Too small: a quiet group keeps its
processor busy; too large: a busy group pays for waking up at every hop of the token."""
LINGER_S = 0.000_2
"""How long the event loop lingers after the last turn that read anything, in seconds. Too small: a
busy group pays for waking up; too large: the processor is kept busy for nothing."""
WAKE_DATAGRAMS = 16_384
"""Datagrams read after a pause: more than a receive buffer holds, so that every datagram that
waited during the pause is known to be old."""

_let_others_run: Callable[[], None] = getattr(os, "sched_yield", lambda: None)


class PortUser(Protocol):
    """A node, as its port sees it."""

    group: str
    pause_s: float
    """If the process goes on so many seconds later than planned, it counts as paused."""
    stall_s: float
    """How long the node may keep the token without being suspected, in seconds."""

    @property
    def key_ids(self) -> Sequence[bytes]:
        """The keys that it accepts, by their ids; empty for a node without a key."""
        ...

    @property
    def next_alarm(self) -> float:
        """When its timers call it at the latest, on the clock of the event loop."""
        ...

    def receive(self, data: bytes, *, stale: bool = False) -> None:
        """A datagram; a `stale` one may have waited here while the process was stopped."""
        ...

    def receive_many(self, datagrams: Sequence[bytes]) -> None:
        """Datagrams that came together, in order."""
        ...

    def nobodys_key(self) -> None:
        """A sealed datagram came, and no node at this port accepts its key."""
        ...

    def after_pause(self, duration_s: float) -> None:
        """This process was stopped for so long."""
        ...

    def after_stall(self, duration_s: float) -> None:
        """This node stalled for so long."""
        ...

    def expire_timers(self) -> None:
        """Handle timers that have expired. The port calls this during stalls, when they raise no
        alarm."""
        ...

    def woke_reader(self) -> bool:
        """Whether an application that waited for something to read has got it, since the last
        call."""
        ...

    def backlogged(self) -> bool:
        """Whether its application has so much to read that the group has to slow down."""
        ...

    def abandon(self) -> None:
        """Its event loop was closed under it: release files and locks."""
        ...


class _Attached:
    """A node at its port, and the datagrams that are held for it while it stalls."""

    def __init__(self, node: PortUser) -> None:
        self.node = node
        self.stall_end: asyncio.TimerHandle | None = None
        """Set while it stalls."""
        self.stalled_at = 0.0
        self.held: deque[bytes] = deque()
        self.held_bytes = 0

    @property
    def stalls(self) -> bool:
        return self.stall_end is not None


class Port:
    """A socket and the nodes that use it."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, bind: Address, multicast: Address | None
    ) -> None:
        """Bind, or raise AddressError."""
        self.socket = UdpSocket(bind)
        self.stalled = False
        """Whether every node stalls: then the socket is not read."""
        self.overflowed = 0
        """Datagrams that were dropped because too much was held for a stalled node already."""
        self.unknown_group = 0
        """Datagrams of groups that no node here is in, or that are not frames at all."""
        self._listener: MulticastListener | None = None
        if multicast is not None:
            try:
                self._listener = MulticastListener(
                    multicast, self.socket.address, self.socket.family
                )
                self.socket.send_multicast_from()
            except Exception:
                self.socket.close()
                raise
        self._loop = loop
        self._attached: dict[bytes, _Attached] = {}
        self._single: PortUser | None = None
        """The node, if there is exactly one: it is given every datagram."""
        self._from_socket = True
        """Whether the datagram that is handed over now came by the socket, not by multicast."""
        self._sources: list[Callable[[], Sequence[bytes]]] = [self.socket.receive]
        if self._listener is not None:
            self._sources.insert(0, self._listener.receive)  # Data before the token.
        self.refused = 0
        """Datagrams among those read last that a node refused at its seal. Nodes count them here,
        so that a flood takes no more than its share of a turn and keeps nobody awake."""
        self._bytes_read = 0
        """Bytes read since the last turn of the event loop ended."""
        self.lingers = False
        """Whether the event loop is kept awake although nothing is left to read."""
        self._awake_until = 0.0
        """When that ends, on the clock of the event loop, unless more is read before."""
        self._reading = False

    @property
    def everybody(self) -> tuple[SocketAddress, ...]:
        """The multicast address; empty without multicast."""
        return () if self._listener is None else (self._listener.address,)

    @property
    def source(self) -> SocketAddress | None:
        """Where the datagram that is handed over now came from; None if it came by multicast."""
        return self.socket.source if self._from_socket else None

    def attach(self, node: PortUser) -> None:
        self._attached[node.group.encode()] = _Attached(node)
        self._update_nodes()

    def detach(self, node: PortUser) -> None:
        """Hand nothing more to this node."""
        attached = self._attached.pop(node.group.encode(), None)
        if attached is not None and attached.stall_end is not None:
            attached.stall_end.cancel()
        self._update_nodes()

    def _update_nodes(self) -> None:
        """Called when a node was attached or detached, or began or ended a stall."""
        nodes = list(self._attached.values())
        self._single = nodes[0].node if len(nodes) == 1 else None
        self.stalled = bool(nodes) and all(attached.stalls for attached in nodes)
        if self.stalled:
            self._stop_reading()
        elif nodes:
            self._start_reading()

    def close(self) -> None:
        self._stop_reading()
        for attached in self._attached.values():
            if attached.stall_end is not None:
                attached.stall_end.cancel()
        self._close_sockets()

    def abandon(self) -> None:
        """Close the socket and the files of the nodes: all that can be done once the event loop is
        closed."""
        for attached in self._attached.values():
            attached.node.abandon()
        self._close_sockets()

    def _close_sockets(self) -> None:
        self.socket.close()
        if self._listener is not None:
            self._listener.close()

    def has(self, group: str) -> bool:
        return group.encode() in self._attached

    @property
    def groups(self) -> list[str]:
        return sorted(attached.node.group for attached in self._attached.values())

    def stalls(self, node: PortUser) -> bool:
        """Whether this node is in a stall."""
        attached = self._attached.get(node.group.encode())
        return attached is not None and attached.stalls

    # Reading

    def read(self, quietly: bool = False) -> bool:
        """Read for one turn; called by the event loop, and by nodes before they handle timers.
        Returns whether there may be more to read. The event loop calls it `quietly`: then an
        application that waited goes first, and the event loop calls again."""
        if self.stalled:
            return False
        overslept_s = self._overslept_s()
        if overslept_s:
            self._resume_after_pause(overslept_s)
            return False
        count = self._read(TURN_DATAGRAMS, quietly=quietly and not self.lingers)
        if count:
            self._stall_backlogged()
        if not self.stalled:
            self._stay_awake()
        return count >= TURN_DATAGRAMS

    def poll(self, node: PortUser) -> None:
        """Read between two deliveries to this node's application, unless the application has
        enough to read already."""
        if node.backlogged():
            return
        if self._single is None:
            self._stall_backlogged()
        attached = self._attached.get(node.group.encode())
        if attached is not None and attached.stalls:
            self._resume(attached)
        self._read(POLL_DATAGRAMS)

    def _read(self, limit: int, *, stale: bool = False, quietly: bool = False) -> float:
        """Hand over up to about `limit` datagrams of each source; returns how many there were. A
        datagram that its node refuses at the seal counts as `REFUSED_COST`. If that is done
        `quietly`, it ends when an application that waited got something."""
        total = 0.0
        self.refused = 0
        for receive in self._sources:
            self._from_socket = receive == self.socket.receive
            count = 0.0
            while count < limit:
                try:
                    datagrams = receive()
                except BlockingIOError:
                    break
                except OSError:
                    count += 1  # The system reports late what happened to an earlier datagram.
                    continue
                count += len(datagrams)
                if len(datagrams) > 1 and self._single is not None and not stale:
                    self._single.receive_many(datagrams)
                else:
                    self._hand_over(datagrams, stale=stale)
                if self.refused:
                    count -= self.refused * (1 - REFUSED_COST)
                    self.refused = 0
                else:
                    self._bytes_read += sum(map(len, datagrams))
                if quietly and self._single is not None and self._single.woke_reader():
                    return total + count
            total += count
        return total

    def _hand_over(self, datagrams: Sequence[bytes], *, stale: bool) -> None:
        """Give each datagram to the node that it is for."""
        for data in datagrams:
            node = self._single or self._recipient(data)
            if node is None:
                continue
            if stale:
                node.receive(data, stale=True)
            else:
                node.receive(data)

    def _recipient(self, data: bytes) -> PortUser | None:
        """The node that a datagram is for; None if there is none, or if the datagram is held
        because that node stalls."""
        if data[:2] == SEALED_MAGIC:
            attached = self._sealed_with(key_id_of(data))
            if attached is None:
                for found in self._attached.values():  # It may be meant for any of them.
                    found.node.nobodys_key()
        else:
            attached = self._attached.get(group_of(data))
        if attached is None:
            self.unknown_group += 1
            return None
        if not attached.stalls:
            return attached.node
        if attached.held_bytes < self.socket.receive_buffer:
            attached.held.append(data)
            attached.held_bytes += len(data)
        else:
            self.overflowed += 1
        return None

    def _sealed_with(self, key_id: bytes) -> _Attached | None:
        """The node that accepts this key: its id differs from group to group."""
        nodes = self._attached.values()
        return next((found for found in nodes if key_id in found.node.key_ids), None)

    # Lingering

    def _stay_awake(self) -> None:
        """Linger, or go on lingering, if much was read."""
        much = self._bytes_read >= LINGER_BYTES
        self._bytes_read = 0
        if much or self.lingers:
            self._awake_until = self._loop.time() + LINGER_S
        if much and not self.lingers:
            self.lingers = True
            self._loop.call_soon(self._linger)

    def _linger(self) -> None:
        """Schedule itself again: a callback that is due keeps the event loop awake."""
        self.lingers = self._reading and self._loop.time() < self._awake_until
        if self.lingers:
            _let_others_run()
            self._loop.call_soon(self._linger)

    # Pauses

    def _overslept_s(self) -> float:
        """By how much this process missed its next alarm, in seconds; 0 if that is no pause."""
        now = self._loop.time()
        for attached in self._attached.values():
            if now - attached.node.next_alarm > attached.node.pause_s:
                return now - attached.node.next_alarm
        return 0.0

    def _resume_after_pause(self, pause_s: float) -> None:
        for attached in list(self._attached.values()):
            if not attached.stalls:  # The end of a stall tells its node how long it was.
                attached.node.after_pause(pause_s)
        self._read(WAKE_DATAGRAMS, stale=True)

    # Stalls

    def _stall_backlogged(self) -> None:
        for attached in list(self._attached.values()):
            if not attached.stalls and attached.node.backlogged():
                self._stall(attached)

    def _stall(self, attached: _Attached) -> None:
        node = attached.node
        node.expire_timers()
        if self._attached.get(node.group.encode()) is not attached:
            return  # A timer ended the node.
        attached.stalled_at = self._loop.time()
        attached.stall_end = self._loop.call_later(node.stall_s, self._end_stall, attached)
        self._update_nodes()

    def _end_stall(self, attached: _Attached) -> None:
        """The moment is over: read for one turn."""
        self._resume(attached)
        self.read()

    def _resume(self, attached: _Attached) -> None:
        if attached.stall_end is not None:
            attached.stall_end.cancel()
            attached.stall_end = None
        self._update_nodes()
        attached.node.after_stall(self._loop.time() - attached.stalled_at)
        held, attached.held, attached.held_bytes = attached.held, deque(), 0
        while held and self.has(attached.node.group):
            attached.node.receive(held.popleft())

    def _start_reading(self) -> None:
        if not self._reading:
            self._reading = True
            for source in (self.socket, self._listener):
                if source is not None:
                    self._loop.add_reader(source.fileno(), self.read, True)

    def _stop_reading(self) -> None:
        if self._reading:
            self._reading = False
            for source in (self.socket, self._listener):
                if source is not None:
                    self._loop.remove_reader(source.fileno())
