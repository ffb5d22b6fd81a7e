"""What a node asks of its machine, besides sockets and files: the time of day, random numbers and
the addresses of hosts. Tests give a node a machine whose clock is wrong, or whose name server
answers as they like.
"""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from roundelay.transport.address import Address, SocketAddress, resolve

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

Resolve = Callable[[Address, int], tuple[int, SocketAddress]]
"""The same as `transport.address.resolve`; it may take long, and runs in a thread of its own."""


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine; by default the real one."""

    wall_ns: Callable[[], int] = time.time_ns
    """Nanoseconds since the epoch. It may be wrong, and may be set back."""
    random_bits: Callable[[int], int] = secrets.randbits
    random_bytes: Callable[[int], bytes] = secrets.token_bytes
    resolve: Resolve = resolve
    cpu_info: Path = Path("/proc/cpuinfo")
    """Where the system tells what its processors can do."""
    boot: str | None = None
    """What `id` is, if not what the system says: for power cuts that are played."""

    def has_aes(self) -> bool:
        """Whether the processor encrypts with AES by itself. Where the system does not say, it is
        taken for one that does, as nearly all are."""
        try:
            words = self.cpu_info.read_text(encoding="ascii", errors="replace").split()
        except OSError:
            return True
        return "aes" in words

    @property
    def id(self) -> str:
        """Names the machine since it was last started; empty where the system does not say."""
        if self.boot is not None:
            return self.boot
        try:
            return BOOT_ID.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            return ""
