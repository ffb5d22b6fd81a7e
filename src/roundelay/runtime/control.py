"""The control socket: how `send`, `tail` and `status` reach a running node.

A Unix socket that only its owner can use. A request is one line of JSON, an answer is one too;
`tail` goes on answering. Payloads travel as base64.

    {"do": "status"}                                the status document
    {"do": "recent", "since": 17, "record": true}   what happened, from that number on, and
                                                    `next`, the number to go on with; with "record",
                                                    rows of the trace are kept from now on, until
                                                    nobody asks for 15 s
    {"do": "recent", "at_ns": 12345}                the rows that are kept of about that time
    {"do": "send", "payload": .., "safe": false}    {"number": 7}, then {"position": "12.a:3"};
                                                    with "to", a list of names, for these alone
    {"do": "append", "payload": ..}                 {"number": 7}, then {"index": 41}; with
                                                    "session", a name, and "number", once for ever;
                                                    with "timeout_s" it does not wait for longer
    {"do": "append_all", "session": .., "first": 7, "count": 2, "bytes": 9}
                                                    followed by `count` sizes, 4 bytes each, the
                                                    greatest byte first, and `bytes` bytes, the
                                                    payloads: each once for ever, with the numbers
                                                    from `first` on. One answer, once all of them
                                                    are committed: {"count": 2, "index": 42}, the
                                                    index of the last one, or null if the log does
                                                    not remember it; "timeout_s" as above
    {"do": "tail"}                                  a line for every view and message from now on
    {"do": "log", "from": 40}                       a line for every entry of the log from there on;
                                                    without "from", from now on
    {"do": "reload_key"}                            read the key file again; the state of the seal
    {"do": "kv", ..}, {"do": "lock", ..}            see `runtime.replicas.tools`; of nodes that have
                                                    these machines

An error is {"error": .., "kind": ..} with a sentence and the name of its class.
"""

import asyncio
import base64
import contextlib
import json
import os
import socket
import stat
import struct
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from roundelay.core.ids import NodeId, Service, View
from roundelay.runtime.addressees import addressees
from roundelay.runtime.errors import ConfigError, RoundelayError, StartError
from roundelay.runtime.events import Arrival
from roundelay.runtime.log.api import Log
from roundelay.runtime.log.entries import LogArrival, Lossy
from roundelay.runtime.log.receipts import LogReceipt, SessionReceipt
from roundelay.runtime.node import Node
from roundelay.runtime.sealing import no_key
from roundelay.structures.errors import GapError, Refused

Handler = Callable[[dict[str, Any], asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
"""Answers one kind of request; what it raises is told to the client."""

LINE_BYTES_MAX = 2 * 1024 * 1024
"""Longest request, in bytes: a message of 1.5 MB in base64. Too small: larger messages need the
API; too large: the event loop parses a request for so long that the group waits."""
BATCH_BYTES_MAX = 16 * 1024 * 1024
"""Most bytes of payloads in one request. Too small: a sink waits for the disks more often than it
needs to; too large: clients together take the memory of the node."""
BATCH_COUNT_MAX = 65_536
"""Most payloads in one request: each takes some memory beyond its bytes."""
READ_BYTES, READS_MAX = 65536, 2048
"""Bytes read at a time, and how often, of the rest of a request that is too long; they are thrown
away. If this is too little, the client is cut off while it writes and never reads the answer."""
CLIENTS_MAX = 32
"""Clients at a time. Each takes a file descriptor of the process and some memory, so too many could
keep the application from opening files; too few: clients are refused."""
TAIL_BYTES_MAX = 4 * 1024 * 1024
"""Bytes that may wait for a reader of `tail` before it is cut off. Too small: a burst of messages
cuts it off; too large: slow readers take the memory of the node."""
CUT_OFF_S = 30.0
"""How long a reader that was cut off may take to read the reason, in seconds; then its connection
is aborted. Too small: it never learns the reason; too large: it occupies a place for longer."""
PATH_BYTES_MAX = 100
"""Longest path of a control socket, in bytes. Systems allow little more (104 to 108), and a longer
one fails when it is bound, with an error that names no cause."""


class ControlServer:
    """Answers requests about one node."""

    def __init__(
        self,
        path: Path,
        node: Node,
        peers: Collection[NodeId],
        status: Callable[[], dict[str, Any]],
        more: Mapping[str, Handler],
    ) -> None:
        """`more` answers requests that are not those of every node."""
        check_path(path)
        self.path = path
        self._node = node
        self._peers = peers
        self._status = status
        self._more = more
        self._server: asyncio.Server | None = None
        self._clients: set[asyncio.Task[None]] = set()
        self._idle: dict[asyncio.Task[None], None] = {}
        """Clients that have no request under way, in the order in which they became idle."""
        self._tails: list[_Tail] = []

    async def start(self) -> None:
        """Listen, or raise StartError."""
        listener = listen(self.path)
        self._node.on_abandon.append(listener.close)
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
        if not self._admit():
            _reply(writer, {"error": f"{CLIENTS_MAX} commands are connected to the node already"})
            writer.close()
            return
        self._clients.add(task)
        try:
            while line := await self._request(task, reader, writer):
                await self._answer(line, reader, writer)
        except (OSError, asyncio.CancelledError):
            pass  # The client went away, or made room for another, or the node closes.
        finally:
            self._clients.discard(task)
            self._idle.pop(task, None)
            writer.close()

    def _admit(self) -> bool:
        """Whether one more client can be served; if need be, an idle one is disconnected for it."""
        if len(self._clients) >= CLIENTS_MAX and self._idle:
            longest = next(iter(self._idle))
            del self._idle[longest]
            self._clients.discard(longest)
            longest.cancel()
        return len(self._clients) < CLIENTS_MAX

    async def _request(
        self, task: asyncio.Task[None], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bytes:
        """The next line; empty at the end, or after a line that is too long."""
        self._idle[task] = None
        try:
            return await reader.readline()
        except ValueError:
            most = LINE_BYTES_MAX // 1_000_000
            _reply(writer, {"error": f"a request has {most} MB at most; use the API for more"})
            for _ in range(READS_MAX):  # A client that is cut off while it writes reads no answer.
                if not await reader.read(READ_BYTES):
                    break
            return b""
        finally:
            self._idle.pop(task, None)

    async def _answer(
        self, line: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            request = json.loads(line)
            match request["do"]:
                case "status":
                    _reply(writer, self._status())
                case "recent" if self._node.recent is not None:
                    _reply(writer, self._node.recent.answer(request, self._node))
                case "send":
                    await self._send(request, writer)
                case "tail":
                    await self._tail(reader, writer)
                case "append":
                    await self._append(request, writer)
                case "append_all":
                    await self._append_all(request, reader, writer)
                case "log":
                    await self._read_log(request, reader, writer)
                case "reload_key":
                    if self._node.sealing is None:
                        raise no_key()
                    _reply(writer, self._node.sealing.reload())
                case other if other in self._more:
                    await self._more[other](request, reader, writer)
                case "kv" | "lock":
                    raise ConfigError(
                        "this node has no map and no locks; start all nodes of the group with "
                        "--tools"
                    )
                case unknown:
                    _reply(writer, {"error": f"there is no request {unknown!r}"})
        except _OutOfStepError:
            _reply(
                writer,
                {
                    "error": f"a request has at most {BATCH_COUNT_MAX} payloads of "
                    f"{BATCH_BYTES_MAX} bytes together"
                },
            )
            await writer.drain()
            raise ConnectionResetError("what follows the request is not read") from None
        except (RoundelayError, TimeoutError, Refused, GapError) as e:
            _reply(writer, {"error": str(e), "kind": type(e).__name__})
        except (ValueError, KeyError, TypeError, RecursionError):
            _reply(writer, {"error": "the request makes no sense; use the roundelay command"})
        await writer.drain()

    async def _send(self, request: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        payload = base64.b64decode(request["payload"], validate=True)
        service = Service.SAFE if request.get("safe") else Service.AGREED
        destinations = addressees(request.get("to"), self._peers)
        number = self._node.sending.accept(payload, service, destinations)
        receipt = self._node.sending.receipts.give(number)
        _reply(writer, {"number": number})
        await writer.drain()
        _reply(writer, {"position": str(await receipt)})

    async def _append(self, request: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        log = self._log()
        payload = base64.b64decode(request["payload"], validate=True)
        timeout_s, name, number = (request.get(key) for key in ("timeout_s", "session", "number"))
        if not isinstance(timeout_s, int | float | None) or not isinstance(number, int | None):
            raise TypeError("not a number")
        receipt: LogReceipt | SessionReceipt
        if name is None:
            receipt = await log.append(payload, timeout_s)
        else:
            session = await log.session(str(name), timeout_s)
            receipt = await session.append(payload, number, timeout_s)
        _reply(writer, {"number": receipt.number})
        await writer.drain()
        _reply(writer, {"index": await receipt})

    async def _append_all(
        self,
        request: dict[str, Any],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        count, size, first = (request[key] for key in ("count", "bytes", "first"))
        if not (type(count) is int and type(size) is int and type(first) is int):
            raise _OutOfStepError("not a number")
        if not (0 < count <= BATCH_COUNT_MAX and 0 <= size <= BATCH_BYTES_MAX and first >= 0):
            raise _OutOfStepError("too much")
        try:
            sizes = struct.unpack(f">{count}I", await reader.readexactly(4 * count))
            data = await reader.readexactly(size)
        except asyncio.IncompleteReadError:
            raise ConnectionResetError("the client went away") from None
        if sum(sizes) != size:
            raise ValueError("sizes do not add up")
        timeout_s, name = request.get("timeout_s"), request["session"]
        if not isinstance(timeout_s, int | float | None) or not isinstance(name, str):
            raise TypeError("no time or no name")
        session = await self._log().session(name, timeout_s)
        ends = accumulate(sizes, initial=0)
        payloads = [data[start:end] for start, end in pairwise(ends)]
        del data
        index = await session.append_all(payloads, first, timeout_s)
        _reply(writer, {"count": count, "index": index})

    def _log(self) -> Log:
        if self._node.log is None:
            raise ConfigError("this node keeps no log; start it with a journal")
        return Log(self._node.log)

    async def _read_log(
        self,
        request: dict[str, Any],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        """Write every entry until the client goes away or the node ends; it reads at its own
        pace."""
        batches = self._log().batches(request.get("from"))
        writer.transport.set_write_buffer_limits(high=0)

        async def write_all() -> None:
            async for arrival in batches:
                writer.write(b"".join(map(_line, log_documents(arrival))))
                await writer.drain()

        writing = asyncio.create_task(write_all())
        gone = asyncio.create_task(reader.read(1))
        try:
            await asyncio.wait((writing, gone), return_when=asyncio.FIRST_COMPLETED)
            if writing.done():
                writing.result()
        finally:
            for task in (writing, gone):
                task.cancel()
            await asyncio.gather(writing, gone, return_exceptions=True)
        if self._node.error is not None:
            raise self._node.error

    async def _tail(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Write every arrival until the client goes away, reads too slowly, or the node ends."""
        tail = _Tail(writer)
        if self._node.view is not None:
            tail.put(_lines(self._node.view))
        if not self._tails:
            self._node.deliveries.listeners.append(self._on_arrival)
        self._tails.append(tail)
        writing = asyncio.create_task(tail.write_all())
        ends = [asyncio.create_task(end) for end in (reader.read(1), self._node.ended.wait())]
        try:
            await asyncio.wait((writing, *ends), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._tails.remove(tail)
            if not self._tails:
                self._node.deliveries.listeners.remove(self._on_arrival)
            for end in (writing, *ends):
                end.cancel()
            await asyncio.gather(writing, *ends, return_exceptions=True)
        if not tail.cut_off and self._node.error is not None:
            raise self._node.error

    def _on_arrival(self, arrival: Arrival) -> None:
        """Give an arrival to every reader of `tail`, as the same bytes."""
        lines = _lines(arrival)
        for tail in self._tails:
            tail.put(lines)


class _OutOfStepError(Exception):
    """What follows the line of a request is too much, or nobody knows how much."""


class _Tail:
    """The lines that wait for one reader of `tail`, besides those in the system's buffers."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.cut_off = False
        self._writer = writer
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._more = asyncio.Event()
        writer.transport.set_write_buffer_limits(
            high=0
        )  # So `drain` waits until the system has all.

    def put(self, lines: bytes) -> None:
        if self.cut_off:
            return
        if self._bytes and self._bytes + len(lines) > TAIL_BYTES_MAX:
            self.cut_off = True
            self._waiting.clear()
            lines = _line({"error": "tail reads too slowly and was cut off; start it again"})
            asyncio.get_running_loop().call_later(CUT_OFF_S, self._writer.transport.abort)
        self._waiting.append(lines)
        self._bytes += len(lines)
        self._more.set()

    async def write_all(self) -> None:
        """Write as fast as the reader reads; ends after a reader that is cut off was told so."""
        while self._waiting or not self.cut_off:
            await self._more.wait()
            self._more.clear()
            while self._waiting:
                lines = self._waiting.popleft()
                self._writer.write(lines)
                await self._writer.drain()
                self._bytes -= len(lines)


def documents(arrival: Arrival) -> list[dict[str, Any]]:
    """An arrival as `tail` shows it."""
    if isinstance(arrival, View):
        return [
            {
                "view": str(arrival.id),
                "members": list(arrival.members),
                "transitional": arrival.transitional,
                "primary": arrival.primary,
                "voters": list(arrival.voters),
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


def log_documents(arrival: LogArrival) -> list[dict[str, Any]]:
    """What `tail --log` shows of a batch of entries."""
    if isinstance(arrival, Lossy):
        return [{"lossy_from": arrival.from_index, "generation": arrival.generation}]
    return [
        {
            "index": entry.index,
            "sender": entry.sender,
            "term": str(entry.term),
            "payload": base64.b64encode(entry.payload).decode("ascii"),
        }
        for entry in arrival
    ]


def _lines(arrival: Arrival) -> bytes:
    return b"".join(map(_line, documents(arrival)))


def _line(document: dict[str, Any]) -> bytes:
    return json.dumps(document).encode() + b"\n"


def _reply(writer: asyncio.StreamWriter, document: dict[str, Any]) -> None:
    writer.write(_line(document))


def check_path(path: Path) -> None:
    """ConfigError if a control socket cannot have that path."""
    if len(os.fsencode(path)) > PATH_BYTES_MAX:
        raise ConfigError(
            f"the control socket's path has more than {PATH_BYTES_MAX} bytes; name a shorter "
            "one, such as /tmp/node-a.sock"
        )


def listen(path: Path) -> socket.socket:
    """A socket of this user alone that listens at `path`, or a StartError."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        check_place(path)
        return _bind(path)
    except OSError as e:
        raise StartError(
            f"cannot listen at the control socket {path} ({e.strerror}); name another path, or "
            "stop the node that uses it"
        ) from None


def check_place(path: Path) -> None:
    """StartError if another user could take the place of the socket at `path`: commands would talk
    to a node of that user then. In a directory such as /tmp, where everybody may only remove what
    is theirs, the place must be free."""
    directory = path.parent.stat()
    if directory.st_uid not in (os.geteuid(), 0):
        raise StartError(
            f"{path.parent}, where the control socket goes, belongs to another user; name a "
            "socket in a directory of your own"
        )
    if directory.st_mode & 0o022 and not directory.st_mode & stat.S_ISVTX:
        raise StartError(
            f"others can write to {path.parent}, where the control socket goes, and could put "
            f"one of theirs in its place; take that away with: chmod go-w {path.parent}; or name "
            "a socket elsewhere"
        )
    with contextlib.suppress(FileNotFoundError):
        if path.lstat().st_uid != os.geteuid():
            raise StartError(
                f"{path}, where the control socket goes, belongs to another user; name a socket "
                "in a directory of your own"
            )


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
