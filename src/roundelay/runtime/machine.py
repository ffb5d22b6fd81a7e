"""What a node asks of the machine it runs on, besides its sockets and files: the time of day,
chance and names of hosts. Tests give it a machine whose clock is wrong, or whose name server says
what they like.
"""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from roundelay.transport.address import Address, SocketAddress, resolve

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

Resolve = Callable[[Address, int], tuple[int, SocketAddress]]
"""As `transport.address.resolve`; it may take long, and runs in a thread of its own."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The real one, unless told otherwise."""

    wall_ns: Callable[[], int] = time.time_ns
    """Nanoseconds since the epoch. It may be wrong, and may be set back."""
    random_bits: Callable[[int], int] = secrets.randbits
    resolve: Resolve = resolve

    @property
    def id(self) -> str:
        """Names the machine since it was last started; empty where the system does not say."""
        try:
            return BOOT_ID.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            return ""
