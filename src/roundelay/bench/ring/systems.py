"""The systems that can be measured: Roundelay, and the peers that are installed."""

import ctypes
import importlib
import importlib.util
import os
import shutil
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from roundelay.trace.extras import install

LIBRARY = "libcpg.so.4"
"""Corosync's library for closed process groups."""


@dataclass(frozen=True, slots=True)
class System:
    """One way to order messages between processes."""

    name: str
    module: str
    """The module whose process is a node."""
    ports: socket.SocketKind
    missing: Callable[[], str | None]
    """Returns a sentence that says how to install the system; None if it is installed."""
    variant: str = ""
    """Which kind of the system, if the module can be several."""
    kind: str = ""
    """The name under which a user asks for all variants; empty if that is its own name."""

    @property
    def asked_for_by(self) -> tuple[str, ...]:
        return (self.name, self.kind) if self.kind else (self.name,)

    def unusual(self) -> dict[str, Any]:
        """The settings that differ from the system's defaults in these runs."""
        found: dict[str, Any] = importlib.import_module(self.module).unusual(self.variant)
        return found


def _pysyncobj() -> str | None:
    if importlib.util.find_spec("pysyncobj") is None:
        return f"PySyncObj is not installed: {install('bench')}"
    return None


def _corosync() -> str | None:
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        return "several corosyncs on one machine take root, on Linux"
    try:
        ctypes.CDLL(LIBRARY)
    except OSError:
        return "corosync's library libcpg is not installed: apt install corosync libcpg4"
    for program in ("corosync", "unshare", "nsenter", "setpriv", "ip"):
        if shutil.which(program) is None:
            return f"there is no {program} here: apt install corosync util-linux iproute2"
    return None


OURS = System("roundelay", "roundelay.bench.ring.member", socket.SOCK_DGRAM, lambda: None)

LOGGED = System("roundelay", "roundelay.bench.ring.log_member", socket.SOCK_DGRAM, lambda: None)
"""Nodes with journals."""

FLOOR = System("bare UDP", "roundelay.bench.ring.peers.bare", socket.SOCK_DGRAM, lambda: None)
"""Orders nothing, so that only its latencies mean something: the shortest time of one hop on this
machine."""

PEERS = {
    "pysyncobj": System(
        "pysyncobj", "roundelay.bench.ring.peers.pysyncobj", socket.SOCK_STREAM, _pysyncobj
    ),
    **{
        f"corosync-{transport}": System(
            f"corosync-{transport}",
            "roundelay.bench.ring.peers.corosync",
            socket.SOCK_DGRAM,
            _corosync,
            variant=transport,
            kind="corosync",
        )
        for transport in ("knet", "udpu")
    },
}
