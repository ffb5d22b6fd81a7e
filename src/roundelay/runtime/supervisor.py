"""What a node tells the service manager that started it, by the protocol of systemd's `sd_notify`.

The manager names a datagram socket in `$NOTIFY_SOCKET`, and the node sends it lines `NAME=value`.
If the manager also names an interval in `$WATCHDOG_USEC`, it restarts a service that says nothing
for so long: the messages come from the event loop, so a node whose loop is stuck is restarted.
Without a manager all of this does nothing.
"""

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable, Mapping

EVERY_S = 1.0
"""Seconds between two looks at the node. Too small: the event loop is woken for nothing; too large:
the status that the manager shows is old."""


class Supervisor:
    """The service manager of this process, if there is one."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self._address = _address(environment.get("NOTIFY_SOCKET", ""))
        self._watchdog_s = _watchdog_s(environment)
        self._told = ""
        self._task: asyncio.Task[None] | None = None

    def ready(self, describe: Callable[[], str]) -> None:
        """The node has started. From now on the manager is told what `describe` says of it, in a
        line, and that the event loop still runs."""
        if self._address is None:
            return
        self._told = describe()
        self._tell("READY=1", f"STATUS={self._told}")
        self._task = asyncio.get_running_loop().create_task(self._repeat(describe))

    def stopping(self) -> None:
        """The node is about to leave its group, which may take seconds."""
        if self._task is not None:
            self._task.cancel()
        self._tell("STOPPING=1", "STATUS=leaves the group")

    async def _repeat(self, describe: Callable[[], str]) -> None:
        watched = self._watchdog_s is not None
        while True:
            await asyncio.sleep(min(EVERY_S, (self._watchdog_s or EVERY_S) / 3))
            lines = ["WATCHDOG=1"] if watched else []
            if (status := describe()) != self._told:
                self._told = status
                lines.append(f"STATUS={status}")
            self._tell(*lines)

    def _tell(self, *lines: str) -> None:
        if self._address is None or not lines:
            return
        with (
            contextlib.suppress(OSError),  # A manager that went away needs no answer.
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock,
        ):
            sock.setblocking(False)
            sock.sendto("\n".join(lines).encode(), self._address)


def _address(named: str) -> str | None:
    """The address of a socket: a path, or `@` and a name that is in no directory."""
    if named.startswith("@"):
        return "\0" + named[1:]
    return named if named.startswith("/") else None


def _watchdog_s(environment: Mapping[str, str]) -> float | None:
    """How long this process may say nothing; None if nobody counts, or another process is meant."""
    if environment.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    interval = environment.get("WATCHDOG_USEC", "")
    return int(interval) / 1e6 if interval.isascii() and interval.isdigit() else None
