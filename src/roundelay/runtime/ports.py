"""The ports that a process has open, by event loop and address, so that groups can share one."""

import asyncio
import weakref

from roundelay.runtime.port import Port
from roundelay.transport.address import Address, AddressError


class Ports:
    """The ports of one event loop, by the address they were bound to."""

    def __init__(self) -> None:
        self._ports: dict[tuple[Address, Address | None], tuple[Port, int]] = {}
        """Each with the number of nodes that use it."""

    @classmethod
    def of(cls, loop: asyncio.AbstractEventLoop) -> "Ports":
        return _PORTS.setdefault(loop, cls())

    def open(
        self, loop: asyncio.AbstractEventLoop, bind: Address, multicast: Address | None
    ) -> Port:
        """The port at this address, bound now if nobody uses it yet. Every `open` is followed by a
        `close`."""
        _close_abandoned_ports()
        port, users = self._ports.get((bind, multicast), (None, 0))
        if port is None:
            try:
                port = Port(loop, bind, multicast)
            except AddressError as e:
                groups = _groups_elsewhere(loop, bind)
                if groups:
                    raise AddressError(
                        f"{bind} is in use by this very process, for group "
                        f"{' and '.join(groups)} of another event loop; leave it there first"
                    ) from None
                raise e from None
        self._ports[bind, multicast] = (port, users + 1)
        return port

    def close(self, port: Port) -> None:
        """End one use of the port; the last one closes the socket."""
        where, users = next((w, n) for w, (p, n) in self._ports.items() if p is port)
        if users > 1:
            self._ports[where] = (port, users - 1)
        else:
            del self._ports[where]
            port.close()


_PORTS: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Ports]" = weakref.WeakKeyDictionary()


def _close_abandoned_ports() -> None:
    """Close the ports of event loops that ended without leaving their groups."""
    for loop in [loop for loop in _PORTS if loop.is_closed()]:
        for port, _ in _PORTS.pop(loop)._ports.values():
            port.abandon()


def _groups_elsewhere(loop: asyncio.AbstractEventLoop, bind: Address) -> list[str]:
    """The groups that use this address in another event loop of this process."""
    return [
        repr(group)
        for other, ports in _PORTS.items()
        if other is not loop
        for (address, _), (port, _) in ports._ports.items()
        if address == bind
        for group in port.groups
    ]
