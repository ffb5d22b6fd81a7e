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

An application that takes its deliveries too slowly makes its node *stall*: for a moment nothing is
handed to it. The token waits here for so long, and its group slows down; a moment is short enough
for nobody to be suspected. Between two moments timers that are due have their turn: what there was
no room for has to be asked for again. Nobody who waits for the group, in `send` or for a receipt,
is ever made to wait by a stall: it would wait for itself.

Groups that share a port do not wait for each other. While all nodes stall, the socket is not read;
while some do, what comes for those is held here for them, as much as a receive buffer holds, and
the others go on.

A process that was stopped for a while finds old datagrams and expired timers when it goes on. The
datagrams are handed over first, without the Joins among them, which tell of a time gone by; and the
time asleep does not count for timers, or others would be suspected for this node's own silence.
"""

import asyncio
import os
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from roundelay.transport.address import Address, AddressError, SocketAddress
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

    def receive_many(self, run: Sequence[bytes]) -> None:
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

    def abandon(self) -> None:
        """Its event loop was closed under it: let go of files and locks."""
        ...


class _Seat:
    """A node at its port, and what is held for it while it stalls."""

    def __init__(self, node: Occupant) -> None:
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
        """Every application has to take something before more is read."""
        self.overflowed = 0
        """Datagrams that were dropped since too much was held for a node already."""
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
        self._seats: dict[bytes, _Seat] = {}
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
        self._seats[node.group.encode()] = _Seat(node)
        self._count_nodes()

    def detach(self, node: Occupant) -> None:
        """Let nothing more go to this node."""
        seat = self._seats.pop(node.group.encode(), None)
        if seat is not None and seat.stall_end is not None:
            seat.stall_end.cancel()
        self._count_nodes()

    def _count_nodes(self) -> None:
        """One came or went, or began or ceased to stall."""
        seats = self._seats
        self._only = next(iter(seats.values())).node if len(seats) == 1 else None
        self.stalled = bool(seats) and all(seat.stalls for seat in seats.values())
        if self.stalled:
            self._ignore()
        elif seats:
            self._listen()

    def close(self) -> None:
        self._ignore()
        for seat in self._seats.values():
            if seat.stall_end is not None:
                seat.stall_end.cancel()
        self._let_go()

    def abandon(self) -> None:
        """Let go of the address, and the nodes of their files: all that can be done once the event
        loop is closed."""
        for seat in self._seats.values():
            seat.node.abandon()
        self._let_go()

    def _let_go(self) -> None:
        self.socket.close()
        if self._listener is not None:
            self._listener.close()

    def has(self, group: str) -> bool:
        return group.encode() in self._seats

    @property
    def groups(self) -> list[str]:
        return sorted(seat.node.group for seat in self._seats.values())

    def stalls(self, node: Occupant) -> bool:
        """Whether this node has to wait for its application."""
        seat = self._seats.get(node.group.encode())
        return seat is not None and seat.stalls

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
        if count:
            self._stall_who_must()
        if not self.stalled:
            self._stay_awake()
        return count >= TURN_DATAGRAMS

    def poll(self, node: Occupant) -> None:
        """Look at the socket between two deliveries to this node's application, unless it has
        enough to read already."""
        if node.crowded():
            return
        if self._only is None:
            self._stall_who_must()
        seat = self._seats.get(node.group.encode())
        if seat is not None and seat.stalls:
            self._go_on(seat)
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
                    self._only.receive_many(datagrams)
                    continue
                for data in datagrams:
                    node = self._only or self._awake(data)
                    if node is None:
                        continue
                    if stale:
                        node.receive(data, stale=True)
                    else:
                        node.receive(data)
            total += count
        return total

    def _awake(self, data: bytes) -> Occupant | None:
        """Whose a datagram is; None if it is nobody's, or held for a node that stalls."""
        seat = self._seats.get(group_of(data))
        if seat is None:
            self.unknown_group += 1
            return None
        if not seat.stalls:
            return seat.node
        if seat.held_bytes < self.socket.receive_buffer:
            seat.held.append(data)
            seat.held_bytes += len(data)
        else:
            self.overflowed += 1
        return None

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
        for seat in self._seats.values():
            if now - seat.node.wake > seat.node.pause_s:
                return now - seat.node.wake
        return 0.0

    def _wake_up(self, late: float) -> None:
        for seat in list(self._seats.values()):
            if not seat.stalls:  # Who stalls is told how long that was.
                seat.node.slept(late)
        self._read(WAKE_DATAGRAMS, stale=True)

    # Stalls

    def _stall_who_must(self) -> None:
        for seat in list(self._seats.values()):
            if not seat.stalls and seat.node.crowded():
                self._stall(seat)

    def _stall(self, seat: _Seat) -> None:
        node = seat.node
        node.expire()
        if self._seats.get(node.group.encode()) is not seat:
            return  # That was its end.
        seat.stalled_at = self._loop.time()
        seat.stall_end = self._loop.call_later(node.stall_s, self._end_stall, seat)
        self._count_nodes()

    def _end_stall(self, seat: _Seat) -> None:
        """The moment is over: take one turn."""
        self._go_on(seat)
        self.read()

    def _go_on(self, seat: _Seat) -> None:
        if seat.stall_end is not None:
            seat.stall_end.cancel()
            seat.stall_end = None
        self._count_nodes()
        seat.node.stalled(self._loop.time() - seat.stalled_at)
        held, seat.held, seat.held_bytes = seat.held, deque(), 0
        while held and self.has(seat.node.group):
            seat.node.receive(held.popleft())

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
        _free_what_was_left_behind()
        port, users = self._ports.get((bind, multicast), (None, 0))
        if port is None:
            try:
                port = Port(loop, bind, multicast)
            except AddressError as e:
                groups = _held_elsewhere(loop, bind)
                if groups:
                    raise AddressError(
                        f"{bind} is in use by this very process, for group "
                        f"{' and '.join(groups)} of another event loop; leave it there first"
                    ) from None
                raise e from None
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


def _free_what_was_left_behind() -> None:
    """Programs may end their event loop without leaving their groups."""
    for loop in [loop for loop in _PORTS if loop.is_closed()]:
        for port, _ in _PORTS.pop(loop)._ports.values():
            port.abandon()


def _held_elsewhere(loop: asyncio.AbstractEventLoop, bind: Address) -> list[str]:
    """The groups that use this address in another event loop of this process."""
    return [
        repr(group)
        for other, ports in _PORTS.items()
        if other is not loop
        for (address, _), (port, _) in ports._ports.items()
        if address == bind
        for group in port.groups
    ]
