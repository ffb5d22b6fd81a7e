"""The control socket of a relay: how a dashboard tells it what to disturb.

A Unix socket that only its owner can use, with requests and answers as those of a node:

    {"do": "relay"}                          the nodes, their peers, and the faults that hold now
    {"do": "command", "line": "loss 5%"}     carries out a command; the same
"""

import asyncio
import contextlib
import json
import os
from pathlib import Path
from typing import Any

from roundelay.runtime.chaos import CommandError, Relay
from roundelay.runtime.client import own_directory
from roundelay.runtime.control import check_path, listen

LINE_BYTES_MAX = 65_536
"""Longest request, in bytes: a partition of many nodes with long names."""
CLIENTS_MAX = 8
"""Clients at a time. Too few: a second dashboard is refused; too many: file descriptors."""


def usual_path() -> Path:
    """Where the relay of this process listens by default; ClientError if it cannot."""
    return own_directory(make=True) / f"relay.{os.getpid()}.sock"


def usual_paths() -> list[Path]:
    """The sockets of all relays of this user, dead ones too."""
    return sorted(own_directory().glob("relay.*.sock"))


class RelayControl:
    """Answers requests about one relay."""

    def __init__(self, path: Path, relay: Relay) -> None:
        """ConfigError for a path that is too long."""
        check_path(path)
        self.path = path
        self._relay = relay
        self._server: asyncio.Server | None = None
        self._clients: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Listen, or raise StartError."""
        self._server = await asyncio.start_unix_server(
            self._serve, sock=listen(self.path), limit=LINE_BYTES_MAX
        )

    async def close(self) -> None:
        if self._server is None:
            return
        self._server.close()
        for task in list(self._clients):
            task.cancel()
        await asyncio.gather(*self._clients, return_exceptions=True)
        with contextlib.suppress(OSError):
            self.path.unlink()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._clients.add(task)
        try:
            while len(self._clients) <= CLIENTS_MAX and (line := await reader.readline()):
                writer.write(json.dumps(self._answer(line)).encode() + b"\n")
                await writer.drain()
        except (OSError, ValueError, asyncio.CancelledError):
            pass  # The client went away, or sent a line that is too long, or the relay ends.
        finally:
            self._clients.discard(task)
            writer.close()

    def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            request = json.loads(line)
            if request["do"] == "command":
                self._relay.command(str(request["line"]))
            elif request["do"] != "relay":
                return {"error": f"there is no request {request['do']!r}"}
        except CommandError as e:
            return {"error": str(e)}
        except (ValueError, KeyError, TypeError, RecursionError):
            return {"error": "the request makes no sense"}
        return self._relay.document()
