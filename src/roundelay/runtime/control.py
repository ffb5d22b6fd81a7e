"""The control socket: how `send`, `tail` and `status` reach a running node.

A Unix socket that only its owner can use. A request is one line of JSON, an answer is one too;
`tail` goes on answering. Payloads travel as base64.

    {"do": "status"}                                the status document
    {"do": "send", "payload": .., "safe": false}    {"number": 7}, then {"position": "12.a:3"}
    {"do": "tail"}                                  a line for every view and message from now on
"""

import asyncio
import base64
import contextlib
import json
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from roundelay.core.ids import Service, View
from roundelay.runtime.errors import ConfigError, RoundelayError, StartError
from roundelay.runtime.events import Arrival
from roundelay.runtime.node import Node

LINE_BYTES_MAX = 96 * 1024 * 1024
"""A request: a large message, in base64."""
TAIL_BYTES_MAX = 16 * 1024 * 1024
"""What may wait for a reader of `tail` before it is cut off."""
PATH_BYTES_MAX = 100
"""Of a Unix socket; systems allow little more."""


class ControlServer:
    """Answers requests about one node."""

    def __init__(self, path: Path, node: Node, status: Callable[[], dict[str, Any]]) -> None:
        if len(os.fsencode(path)) > PATH_BYTES_MAX:
            raise ConfigError(
                f"the control socket's path has more than {PATH_BYTES_MAX} bytes; name a shorter "
                "one, such as /tmp/node-a.sock"
            )
        self.path = path
        self._node = node
        self._status = status
        self._server: asyncio.Server | None = None
        self._clients: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Listen, or raise StartError."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            listener = _bind(self.path)
        except OSError as e:
            raise StartError(
                f"cannot listen at the control socket {self.path} ({e.strerror}); name another "
                "path, or stop the node that uses it"
            ) from None
        self._node.leftovers.append(listener.close)
        self._server = await asyncio.start_unix_server(
            self._serve, sock=listener, limit=LINE_BYTES_MAX
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
            while line := await reader.readline():
                await self._answer(line, reader, writer)
        except (OSError, ValueError, asyncio.CancelledError):
            pass  # The client went away, or sent a line without an end, or the node closes.
        finally:
            self._clients.discard(task)
            writer.close()

    async def _answer(
        self, line: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            request = json.loads(line)
            match request["do"]:
                case "status":
                    _reply(writer, self._status())
                case "send":
                    await self._send(request, writer)
                case "tail":
                    await self._tail(reader, writer)
                case unknown:
                    _reply(writer, {"error": f"there is no request {unknown!r}"})
        except RoundelayError as e:
            _reply(writer, {"error": str(e)})
        except (ValueError, KeyError, TypeError, RecursionError):
            _reply(writer, {"error": "the request makes no sense; use the roundelay command"})
        await writer.drain()

    async def _send(self, request: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        payload = base64.b64decode(request["payload"], validate=True)
        service = Service.SAFE if request.get("safe") else Service.AGREED
        number = self._node.accept(payload, service)
        receipt = self._node.receipts.give(number)
        _reply(writer, {"number": number})
        await writer.drain()
        _reply(writer, {"position": str(await receipt)})

    async def _tail(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Tell of every arrival until the client goes away, reads too slowly, or the node ends."""
        cut_off = asyncio.Event()

        def tap(arrival: Arrival) -> None:
            if writer.transport.get_write_buffer_size() > TAIL_BYTES_MAX:
                cut_off.set()
            elif not writer.is_closing() and not cut_off.is_set():
                for document in documents(arrival):
                    _reply(writer, document)

        if self._node.view is not None:
            tap(self._node.view)
        self._node.taps.append(tap)
        ends = [
            asyncio.ensure_future(end)
            for end in (cut_off.wait(), reader.read(1), self._node.ended.wait())
        ]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._node.taps.remove(tap)
            for end in ends:
                end.cancel()
        if cut_off.is_set():
            _reply(writer, {"error": "tail reads too slowly and was cut off; start it again"})
        elif self._node.error is not None:
            raise self._node.error


def documents(arrival: Arrival) -> list[dict[str, Any]]:
    """An arrival as `tail` shows it."""
    if isinstance(arrival, View):
        return [
            {
                "view": str(arrival.id),
                "members": list(arrival.members),
                "transitional": arrival.transitional,
                "primary": arrival.primary,
            }
        ]
    return [
        {
            "position": str(message.position),
            "sender": message.sender,
            "number": message.number,
            "safe": message.safe,
            "payload": base64.b64encode(message.payload).decode("ascii"),
        }
        for message in arrival
    ]


def _reply(writer: asyncio.StreamWriter, document: dict[str, Any]) -> None:
    writer.write(json.dumps(document).encode() + b"\n")


def _bind(path: Path) -> socket.socket:
    """A listening socket at `path`; one that a dead node left behind is removed."""
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISSOCK(path.stat().st_mode) and not _answers(path):
            path.unlink()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listener.bind(str(path))
        listener.listen()  # At once: what does not answer is taken for a dead node's.
    except OSError:
        listener.close()
        raise
    finally:
        os.umask(before)
    return listener


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
        return True
