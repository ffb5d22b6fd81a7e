"""Addresses of nodes: `host:port` as people write it, and as a socket takes it."""

import contextlib
import ipaddress
import random
import socket
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

SocketAddress: TypeAlias = tuple[str, int] | tuple[str, int, int, int]
"""Numeric host and port, as `sendto` takes them: two fields for IPv4, four for IPv6."""

FREE_PORTS = range(20_000, 32_768)
"""Where `free_addresses` looks: Linux gives higher ones to sockets that ask for none."""
PORTS_TRIED = 16

_RANDOM = random.SystemRandom()
"""Whatever a program seeds: processes that start together must not try the same ports."""


class AddressError(ValueError):
    """An address cannot be used. The message is a sentence for the user."""


class Address(NamedTuple):
    """`host:port`; the host may be a name or, in brackets, an IPv6 address."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_address(text: str) -> Address:
    """Read `host:port`, or raise AddressError."""
    host, colon, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    host = host[1:-1] if bracketed else host
    if not colon or not host or (":" in host and not bracketed):
        raise AddressError(f"{text!r} is no address; write host:port, like 127.0.0.1:5401")
    if not port.isascii() or not port.isdigit() or not 0 <= int(port) <= 65_535:
        raise AddressError(f"{text!r} has no port between 0 and 65535; write host:port")
    return Address(host, int(port))


_KIND: dict[int, str] = {
    socket.AF_INET: " to an IPv4 address",
    socket.AF_INET6: " to an IPv6 address",
}


def resolve(address: Address, family: int = socket.AF_UNSPEC) -> tuple[int, SocketAddress]:
    """The family and the numeric form of an address. This may ask a name server and take
    seconds."""
    try:
        found = socket.getaddrinfo(address.host, address.port, family, socket.SOCK_DGRAM)
    except (OSError, UnicodeError):
        raise AddressError(
            f"{address.host!r} does not resolve{_KIND.get(family, '')}; "
            "correct the name, or write its numeric address"
        ) from None
    chosen, _, _, _, numeric = found[0]
    return chosen, numeric  # type: ignore[return-value]  # Both families are IP.


def free_addresses(
    names: Iterable[str], kind: socket.SocketKind = socket.SOCK_DGRAM
) -> dict[str, str]:
    """For each name an address of this machine, at a port that no process uses now, and that the
    system gives to none that does not ask for it."""
    with contextlib.ExitStack() as stack:
        found = {}
        for name in names:
            probe = stack.enter_context(socket.socket(socket.AF_INET, kind))
            _bind_somewhere(probe)
            found[name] = str(Address(*probe.getsockname()))
        return found


def _bind_somewhere(probe: socket.socket) -> None:
    for port in _RANDOM.sample(FREE_PORTS, PORTS_TRIED):
        with contextlib.suppress(OSError):  # It is taken.
            probe.bind(("127.0.0.1", port))
            return
    probe.bind(("127.0.0.1", 0))


def is_literal(address: Address) -> bool:
    """Whether the host is a numeric address. A name could resolve to another address later."""
    try:
        ipaddress.ip_address(address.host.partition("%")[0])
    except ValueError:
        return False
    return True


def is_loopback(address: SocketAddress) -> bool:
    return ipaddress.ip_address(address[0].partition("%")[0]).is_loopback
