"""The client of a node's control socket, for commands: plain blocking calls."""

import json
import os
import socket
import stat
import struct
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, unquote

CONNECT_S = 5.0
"""How long connecting may take, in seconds. Too small: a node on a loaded machine seems to be gone;
too large: a command hangs on a node that is stopped."""
ANSWER_S = 30.0
"""How long an answer may take, in seconds. Too small: a message that waits for its delivery seems
to fail; too large: a command hangs on a node that is stopped."""
LINE_BYTES_MAX = 128 * 1024 * 1024
"""Longest answer, in bytes: `tail` shows a large message as one line, in base64. Too small: such a
line is cut and makes no sense; without a limit, a foreign server could fill the memory."""


_CREDENTIALS = struct.Struct("3i")
"""Of the process that serves a socket: its id, its user and its group."""


class ClientError(Exception):
    """A node that does not answer, or that says no. Its message is a sentence for the user."""

    def __init__(self, message: str, kind: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        """The class of the node's error; empty if it is ours."""


class SilentError(ClientError):
    """A node that is there and does not answer in time."""


def control_directory() -> Path:
    """Where nodes put their control sockets by default."""
    base = os.environ.get("XDG_RUNTIME_DIR")
    if base:
        return Path(base) / "roundelay"
    return Path(tempfile.gettempdir()) / f"roundelay-{os.getuid()}"


def own_directory(*, make: bool = False) -> Path:
    """The control directory, or ClientError if it does not belong to this user alone: another owner
    could put sockets of their own there."""
    path = control_directory()
    try:
        if make:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = path.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            raise ClientError(
                f"{path}, where control sockets go, is not a directory of this user; remove it, or "
                "name a socket elsewhere with --control"
            )
        if found.st_mode & 0o077:
            path.chmod(0o700)
    except FileNotFoundError:
        pass
    except OSError as e:
        raise ClientError(
            f"cannot use {path} for control sockets ({e.strerror}); name one with --control"
        ) from None
    return path


def control_path(group: str, node: str) -> Path:
    return control_directory() / f"{_part(group)}-{_part(node)}.sock"


def controls() -> list[Path]:
    """The control sockets that nodes of this user made here; those of nodes that were killed are
    among them."""
    return sorted(own_directory().glob("*-*.sock"))


def named(path: Path) -> tuple[str, str]:
    """The group and the node that a control socket in its usual place is of."""
    group, _, node = path.stem.partition("-")
    return unquote(group), unquote(node)


def find_control(group: str | None = None, node: str | None = None) -> Path:
    """The control socket of the node of that group and name that runs here; None means any.
    ClientError if there is none, or more than one."""
    alive = [path for path in controls() if answers(path)]
    found = [path for path in alive if _fits(path, group, node)]
    if len(found) == 1:
        return found[0]
    if found:
        raise ClientError(
            f"several nodes run here; choose with --group and --node: {_names(found)}"
        )
    if alive:
        raise ClientError(f"no such node runs here; there are: {_names(alive)}")
    raise ClientError("no node runs here; start one with `roundelay node`, or give --control")


def _part(name: str) -> str:
    """A name as a part of a file name; the dash, which separates the parts, is escaped."""
    return quote(name, safe="").replace("-", "%2D")


def _fits(path: Path, group: str | None, node: str | None) -> bool:
    of_group, _, of_node = path.stem.partition("-")
    return (group is None or _part(group) == of_group) and (node is None or _part(node) == of_node)


def _names(paths: Iterable[Path]) -> str:
    """The nodes of these sockets, as `group/node`, in words."""
    return ", ".join("/".join(named(path)) for path in paths)


class Client:
    """A connection to a node; a context manager."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(CONNECT_S)
        try:
            self._socket.connect(str(path))
        except OSError as e:
            self._socket.close()
            raise ClientError(
                f"no node answers at {path} ({e.strerror or e}); is it running, and with this "
                "--control?"
            ) from None
        except ValueError as e:
            self._socket.close()
            raise ClientError(f"{str(path)!r} is no path of a socket ({e})") from None
        if not _trusted(self._socket):
            self._socket.close()
            raise ClientError(
                f"another user answers at {path}, so nothing is told to it; name the control "
                "socket of a node of your own"
            )
        self._file = self._socket.makefile("rb")

    def ask(self, *, patient: bool = False, **request: Any) -> dict[str, Any]:
        """Send a request and return its first answer; see `answer`."""
        self._send(request)
        return self.answer(patient=patient)

    def answer(self, *, patient: bool = False, timeout_s: float | None = None) -> dict[str, Any]:
        """The next answer; ClientError if the node says no, or goes away, or is silent for
        so long, which is `ANSWER_S` by default. With `patient` it may be silent for ever."""
        if timeout_s is None:
            timeout_s = ANSWER_S
        self._socket.settimeout(None if patient else timeout_s)
        try:
            line = self._file.readline(LINE_BYTES_MAX)
        except TimeoutError:
            raise SilentError(
                f"the node did not answer within {timeout_s:g} s; look at its status and its log"
            ) from None
        except OSError:
            line = b""
        if not line:
            raise ClientError("the node went away; look at its log")
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError):
            raise self.foreign() from None
        if not isinstance(answer, dict):
            raise self.foreign()
        if "error" in answer:
            raise ClientError(str(answer["error"]), str(answer.get("kind", "")))
        return answer

    def foreign(self) -> ClientError:
        """The error for an answer that no node gives."""
        return ClientError(
            f"what answers at {self.path} is no node of this version of Roundelay; give --control "
            "the socket of one"
        )

    def tail(self) -> Iterator[dict[str, Any]]:
        """The views and messages that arrive from now on."""
        self._send({"do": "tail"})
        while True:
            yield self.answer(patient=True)

    def log(self, from_index: int | str | None) -> Iterator[dict[str, Any]]:
        """The entries of the log from this index on, and those that are committed from now on."""
        self._send({"do": "log", "from": from_index})
        while True:
            yield self.answer(patient=True)

    def append_all(
        self,
        session: str,
        first: int,
        sizes: bytes,
        payloads: bytes | memoryview,
        timeout_s: float,
        answer_s: float | None = None,
    ) -> int | None:
        """Append many messages to the log under a named session and the numbers from `first` on,
        each once for ever; returns once all are committed: the index of the last one, or None if
        the log does not remember it. `sizes` has four bytes for each of the payloads, which lie one
        behind the other. ClientError if they are not known to be committed in time: repeat the call
        then, here or at another node. `timeout_s` is the node's limit; for its answer, the call
        waits `ANSWER_S` longer, or `answer_s` in all."""
        header = {
            "do": "append_all",
            "session": session,
            "first": first,
            "count": len(sizes) // 4,
            "bytes": len(payloads),
            "timeout_s": timeout_s,
        }
        self._send(header, sizes, payloads)
        answer = self.answer(timeout_s=timeout_s + ANSWER_S if answer_s is None else answer_s)
        index = answer.get("index")
        if answer.get("count") != header["count"] or not isinstance(index, int | None):
            raise self.foreign()
        return index

    def fileno(self) -> int:
        """The descriptor of the connection, which lasts while anybody has it open."""
        return self._socket.fileno()

    @property
    def pid(self) -> int | None:
        """The process that serves the socket; None where the system does not tell."""
        return _server_process(self._socket)

    def tell(self, **request: Any) -> None:
        """Send a request, and let others read its answers."""
        self._send(request)

    def _send(self, request: dict[str, Any], *data: bytes | memoryview) -> None:
        try:
            self._socket.sendall(json.dumps(request).encode() + b"\n")
            for part in data:
                self._socket.sendall(part)
        except OSError:
            raise ClientError("the node went away; look at its log") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._file.close()
        self._socket.close()


def _trusted(connection: socket.socket) -> bool:
    """Whether this user or root serves a socket. Root trusts everybody: it looks after the nodes
    of others."""
    here = os.geteuid()
    return here == 0 or _server_user(connection) in (here, 0, None)


def _server_user(connection: socket.socket) -> int | None:
    """The user who serves a socket; None where the system does not tell."""
    told = _credentials(connection)
    return None if told is None else told[1]


def _server_process(connection: socket.socket) -> int | None:
    """The process; None also if it is in a container of its own."""
    told = _credentials(connection)
    return None if told is None else told[0] or None


def _credentials(connection: socket.socket) -> tuple[int, ...] | None:
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return None
    raw = connection.getsockopt(socket.SOL_SOCKET, option, _CREDENTIALS.size)
    return _CREDENTIALS.unpack(raw)


def answers(path: Path) -> bool:
    """Whether somebody of this user serves a socket."""
    try:
        with Client(path):
            return True
    except ClientError:
        return False
