"""Control sockets that answer as a test wants, and no node behind them."""

import json
import socketserver
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.web.test_told import status

Answer = Callable[[dict[str, Any]], object]


class Answering:
    """Serves a control socket until it is closed."""

    def __init__(self, path: Path, answer: Answer) -> None:
        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                for line in self.rfile:
                    self.wfile.write(json.dumps(one.answer(json.loads(line))).encode() + b"\n")

        one = self
        self.answer = answer
        """What is said to a request; a test may change it."""
        self._server = socketserver.ThreadingUnixStreamServer(str(path), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        """Listen no more. The socket stays behind, as that of a node that was killed."""
        self.answer = lambda request: {"error": "this node is gone"}
        self._server.shutdown()
        self._server.server_close()


def node(name: str, group: str = "g", **more: Any) -> Answer:
    """The answers of a node that does nothing."""

    def answer(request: dict[str, Any]) -> object:
        if request["do"] == "status":
            return {**status(name), "group": group, **more}
        return {"now_ns": 0, "machine": "", "happened": [], "next": 0, "columns": [], "rows": []}

    return answer
