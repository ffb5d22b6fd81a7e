"""The other end of the control socket, for commands: plain blocking calls."""

import json
import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

CONNECT_S = 5.0


class ClientError(Exception):
    """A node that does not answer, or that says no. Its message is a sentence for the user."""


def control_directory() -> Path:
    """Where nodes put their control sockets unless they are told otherwise."""
    base = os.environ.get("XDG_RUNTIME_DIR")
    if base:
        return Path(base) / "roundelay"
    return Path(tempfile.gettempdir()) / f"roundelay-{os.getuid()}"


def control_path(group: str, node: str) -> Path:
    return control_directory() / f"{quote(group, safe='')}-{quote(node, safe='')}.sock"


def find_control() -> Path:
    """The control socket of the one node that runs here; ClientError if that is not clear."""
    found = sorted(control_directory().glob("*.sock"))
    alive = [path for path in found if _answers(path)]
    if len(alive) == 1:
        return alive[0]
    if not alive:
        raise ClientError("no node runs here; start one with `roundelay node`, or give --control")
    names = ", ".join(str(path) for path in alive)
    raise ClientError(f"several nodes run here; choose one with --control: {names}")


class Client:
    """A connection to a node; a context manager."""

    def __init__(self, path: Path) -> None:
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
        self._file = self._socket.makefile("rb")

    def ask(self, **request: Any) -> dict[str, Any]:
        """Send a request and return its first answer."""
        self._send(request)
        return self.answer()

    def answer(self, timeout_s: float | None = 30.0) -> dict[str, Any]:
        """The next answer; ClientError if the node says no, goes away or keeps silent."""
        self._socket.settimeout(timeout_s)
        try:
            line = self._file.readline()
        except TimeoutError:
            raise ClientError(
                f"the node did not answer within {timeout_s:g} s; look at its status and its log"
            ) from None
        except OSError:
            line = b""
        if not line:
            raise ClientError("the node went away; look at its log")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise ClientError(str(answer["error"]))
        return answer

    def tail(self) -> Iterator[dict[str, Any]]:
        """Views and messages from now on."""
        self._send({"do": "tail"})
        while True:
            yield self.answer(None)

    def _send(self, request: dict[str, Any]) -> None:
        try:
            self._socket.sendall(json.dumps(request).encode() + b"\n")
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


def _answers(path: Path) -> bool:
    try:
        with Client(path):
            return True
    except ClientError:
        return False
