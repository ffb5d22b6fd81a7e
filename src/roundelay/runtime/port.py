"""One UDP socket of a process, shared by the nodes of several groups.

Theory of operation
===================

The event loop says when there is something to read. Then datagrams are read until none is left, a
bounded number in one turn, and each goes through its node at once: what the core wants sent leaves
before the next one is read. Whoever reads deliveries reads the socket in between, so that a token
never waits for an application.

While much arrives, the event loop does not go to sleep at once when nothing is left to read: it
*lingers*. To wake a process up takes longer than a peer needs to send the next packets, and the
token would wait for it at every hop. Whoever else wants to run on this processor goes first.

An application that takes its deliveries too slowly makes the port *stall*: it does not read for a
moment. The token waits here for so long, and the group slows down; a moment is short enough for
nobody to be suspected. Between two moments timers that are due have their turn: what there was no
room for has to be asked for again. Nobody who waits for the group, in `send` or for a receipt, is
ever made to wait by a stall: it would wait for itself.

A process that was stopped for a while finds old datagrams and expired timers when it goes on. The
datagrams are handed over first, without the Joins among them, which tell of a time gone by; and the
time asleep does not count for timers, or others would be suspected for this node's own silence.
"""

import asyncio
import os
import weakref
from collections.abc import Callable, Sequence
from typing import Protocol

from roundelay.transport.address import Address, SocketAddress
from roundelay.transport.udp import MulticastListener, UdpSocket
from roundelay.wire.frame import group_of

TURN_DATAGRAMS = 64
"""Read in one turn of the event loop, and what came together with the last of them."""
POLL_DATAGRAMS = 16
"""Read between two deliveries to the application."""
LINGER_BYTES = 8192
"""Read in one turn: then more is likely to come soon ..."""
LINGER_S = 0.000_2
"""... and is waited for awake for so long."""
WAKE_DATAGRAMS = 16_384
"""Read after a pause: more than a receive buffer holds."""

_let_others_run: Callable[[], None] = getattr(os, "sched_yield", lambda: None)


class Occupant(Protocol):
    """A node, as its port sees it."""

    group: str
    pause_s: float
    """Who sleeps for so long, beyond what it meant to, was stopped."""
    stall_s: float
    """How long it may keep the token, so that nobody is suspected."""

    @property
    def wake(self) -> float:
        """When it wants to be called at the latest, on the clock of the event loop."""
        ...

    def receive(self, data: bytes, *, stale: bool = False) -> None:
        """A datagram; a `stale` one may have waited here while the process was stopped."""
        ...

    def receive_run(self, run: Sequence[bytes]) -> None:
        """Datagrams that came together, in order."""
        ...

    def slept(self, duration_s: float) -> None:
        """This process was stopped for so long."""
        ...

    def stalled(self, duration_s: float) -> None:
        """This node had to wait for its application for so long."""
        ...

    def expire(self) -> None:
        """Whatever is due: nobody looks at the clock during a stall."""
        ...

    def crowded(self) -> bool:
        """Whether its application has enough to read."""
        ...


class Port:
    """A socket and the nodes that use it."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, bind: Address, multicast: Address | None
    ) -> None:
        """Bind, or raise AddressError."""
        self.socket = UdpSocket(bind)
        self.stalled = False
        """The application has to take something before more is read."""
        self.unknown_group = 0
        """Datagrams of groups that nobody here is in, or that are not frames at all."""
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
        self._nodes: dict[bytes, Occupant] = {}
        self._only: Occupant | None = None
        """The one node, if there is just one: it is given everything."""
        self._unicast = True
        """Whether what is handed over now came by the socket, and not by multicast."""
        self._sources: list[Callable[[], Sequence[bytes]]] = [self.socket.receive]
        if self._listener is not None:
            self._sources.insert(0, self._listener.receive)  # Data before the token.
        self._bytes = 0
        """Read since the last turn, by that and in between."""
        self.lingers = False
        """Nothing is left to read, and the event loop is kept awake ..."""
        self._awake_until = 0.0
        """... at most until then."""
        self._stall_end: asyncio.TimerHandle | None = None
        self._stalled_at = 0.0
        self._reading = False

    @property
    def everybody(self) -> tuple[SocketAddress, ...]:
        """Where multicast goes; nothing without it."""
        return () if self._listener is None else (self._listener.address,)

    @property
    def source(self) -> SocketAddress | None:
        """Where what is handed over now came from; None if it came by multicast."""
        return self.socket.source if self._unicast else None

    def attach(self, node: Occupant) -> None:
        self._nodes[node.group.encode()] = node
        self._only = node if len(self._nodes) == 1 else None
        if not self.stalled:
            self._listen()

    def detach(self, node: Occupant) -> None:
        """Let nothing more go to this node."""
        self._nodes.pop(node.group.encode(), None)
        self._only = next(iter(self._nodes.values())) if len(self._nodes) == 1 else None

    def close(self) -> None:
        self._ignore()
        if self._stall_end is not None:
            self._stall_end.cancel()
        self.socket.close()
        if self._listener is not None:
            self._listener.close()

    def has(self, group: str) -> bool:
        return group.encode() in self._nodes

    # Reading

    def read(self) -> bool:
        """One turn: called by the event loop, and by nodes before they look at their timers.
        True if there may be more to read."""
        if self.stalled:
            return False
        late = self._late()
        if late:
            self._wake_up(late)
            return False
        count = self._read(TURN_DATAGRAMS)
        if count and self._must_stall():
            self._stall()
        else:
            self._stay_awake()
        return count >= TURN_DATAGRAMS

    def poll(self) -> None:
        """Look at the socket between two deliveries, unless enough waits already."""
        if self._must_stall():
            return
        if self.stalled:
            self._go_on()
        self._read(POLL_DATAGRAMS)

    def _read(self, limit: int, *, stale: bool = False) -> int:
        """Hand over what waits; returns how many datagrams that were."""
        total = 0
        for receive in self._sources:
            self._unicast = receive == self.socket.receive
            count = 0
            while count < limit:
                try:
                    datagrams = receive()
                except BlockingIOError:
                    break
                except OSError:
                    count += 1  # What an earlier datagram met with, told to us late.
                    continue
                count += len(datagrams)
                self._bytes += sum(map(len, datagrams))
                if len(datagrams) > 1 and self._only is not None and not stale:
                    self._only.receive_run(datagrams)
                    continue
                for data in datagrams:
                    node = self._only or self._nodes.get(group_of(data))
                    if node is None:
                        self.unknown_group += 1
                    elif stale:
                        node.receive(data, stale=True)
                    else:
                        node.receive(data)
            total += count
        return total

    # Lingering

    def _stay_awake(self) -> None:
        """For a while, if much has come lately."""
        much = self._bytes >= LINGER_BYTES
        self._bytes = 0
        if much or self.lingers:
            self._awake_until = self._loop.time() + LINGER_S
        if much and not self.lingers:
            self.lingers = True
            self._loop.call_soon(self._linger)

    def _linger(self) -> None:
        """A callback that waits to be run keeps the event loop awake."""
        self.lingers = self._reading and self._loop.time() < self._awake_until
        if self.lingers:
            _let_others_run()
            self._loop.call_soon(self._linger)

    # Pauses

    def _late(self) -> float:
        """How long this process slept beyond what it meant to; 0 if not for long."""
        now = self._loop.time()
        for node in self._nodes.values():
            if now - node.wake > node.pause_s:
                return now - node.wake
        return 0.0

    def _wake_up(self, late: float) -> None:
        for node in list(self._nodes.values()):
            node.slept(late)
        self._read(WAKE_DATAGRAMS, stale=True)

    # Stalls

    def _must_stall(self) -> bool:
        for node in self._nodes.values():  # noqa: SIM110  # A generator for each turn costs more.
            if node.crowded():
                return True
        return False

    def _stall(self) -> None:
        for node in list(self._nodes.values()):
            node.expire()
        if not self._nodes:
            return  # That was the end of them.
        self.stalled = True
        self._stalled_at = self._loop.time()
        self._ignore()
        stall_s = min(node.stall_s for node in self._nodes.values())
        self._stall_end = self._loop.call_later(stall_s, self._end_stall)

    def _end_stall(self) -> None:
        """The moment is over: take one turn."""
        self._go_on()
        self.read()

    def _go_on(self) -> None:
        if self._stall_end is not None:
            self._stall_end.cancel()
            self._stall_end = None
        self.stalled = False
        duration = self._loop.time() - self._stalled_at
        for node in list(self._nodes.values()):
            node.stalled(duration)
        self._listen()

    def _listen(self) -> None:
        if not self._reading:
            self._reading = True
            for source in (self.socket, self._listener):
                if source is not None:
                    self._loop.add_reader(source.fileno(), self.read)

    def _ignore(self) -> None:
        if self._reading:
            self._reading = False
            for source in (self.socket, self._listener):
                if source is not None:
                    self._loop.remove_reader(source.fileno())


class Ports:
    """The ports of one event loop, by the address they were bound to."""

    def __init__(self) -> None:
        self._ports: dict[tuple[Address, Address | None], tuple[Port, int]] = {}
        """With the number of their users."""

    @classmethod
    def of(cls, loop: asyncio.AbstractEventLoop) -> "Ports":
        return _PORTS.setdefault(loop, cls())

    def open(
        self, loop: asyncio.AbstractEventLoop, bind: Address, multicast: Address | None
    ) -> Port:
        """The port at this address, bound now if it is the first use of it; each `open` wants a
        `close`."""
        port, users = self._ports.get((bind, multicast), (None, 0))
        if port is None:
            port = Port(loop, bind, multicast)
        self._ports[bind, multicast] = (port, users + 1)
        return port

    def close(self, port: Port) -> None:
        """One user less; the last one closes the socket."""
        where, users = next((w, n) for w, (p, n) in self._ports.items() if p is port)
        if users > 1:
            self._ports[where] = (port, users - 1)
        else:
            del self._ports[where]
            port.close()


_PORTS: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Ports]" = weakref.WeakKeyDictionary()
