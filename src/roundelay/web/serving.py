"""Listens, and runs the application until it is interrupted."""

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import uvicorn

from roundelay.web.access import LOOPBACK

CLOSE_S = 2
"""Seconds that answers under way may take at the end. Too small: they are cut; too large: a page
that is open keeps the command from ending."""

EVERYWHERE = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}
"""Addresses that stand for all of this machine, and where a browser here finds them."""


class Serving:
    """A socket that listens, from before its address is told until the end."""

    def __init__(self, host: str, port: int) -> None:
        """OSError if that address is taken."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.host = host
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind((host, port))
            self._socket.listen()
        except OSError:
            self._socket.close()
            raise
        self.port: int = self._socket.getsockname()[1]

    @property
    def is_local(self) -> bool:
        """Whether only programs of this machine reach it."""
        return self.host in LOOPBACK

    def address(self, token: str) -> str:
        """Where the page is for a browser on this machine."""
        host = EVERYWHERE.get(self.host, self.host)
        host = f"[{host}]" if ":" in host else host
        return f"http://{host}:{self.port}/#token={quote(token)}"

    def run(self, app: Any, *, on_start: Callable[[], None], on_stop: Callable[[], None]) -> None:
        """Serve until Ctrl-C or SIGTERM; then `on_stop` is called, which ends what goes on for
        ever. `on_start` is called when requests are answered and both signals are heard."""
        config = uvicorn.Config(
            app,
            lifespan="off",
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=CLOSE_S,
        )
        asyncio.run(self._serve(_Server(config), on_start, on_stop))

    async def _serve(
        self, server: uvicorn.Server, on_start: Callable[[], None], on_stop: Callable[[], None]
    ) -> None:
        def stop() -> None:
            on_stop()
            server.should_exit = True

        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop)
        on_start()
        await server.serve([self._socket])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._socket.close()


class _Server(uvicorn.Server):
    """A server that leaves signals alone: uvicorn's own raises them again at its end, and SIGTERM
    would then end the command before it has stopped what it started."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
