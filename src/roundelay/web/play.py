"""The part Play: faults on purpose, for groups behind a relay.

Nothing is done unless the dashboard was started with `--allow-faults`, and nothing to a group that
is not behind `roundelay chaos`: a real group must not be hurt by a click.
"""

import os
import signal
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from roundelay.runtime.client import ClientError
from roundelay.web.asked import AskedWrongError, document
from roundelay.web.relays import Relays
from roundelay.web.watching import Watching

SIGNALS = {"kill": signal.SIGKILL, "pause": signal.SIGSTOP, "resume": signal.SIGCONT}
SAID = {
    "kill": "kill -9 of {}",
    "pause": "{} is stopped (SIGSTOP)",
    "resume": "{} goes on (SIGCONT)",
    "restart": "{} is started again",
}
NETWORK = ("loss", "duplicate", "reorder", "delay", "cut", "partition", "heal")
"""Commands of a relay that the page may give."""


@dataclass(frozen=True)
class Own:
    """A group that this very command started, and what it can do with it besides faults."""

    group: str
    restart: Callable[[str], bool]
    """Start a node that was killed; False if its process runs, which it does for a while before the
    node answers."""
    load: Callable[[str], None]
    """Let the nodes send: `none`, `gentle` or `heavy`."""


Fault = Callable[[str, str, str, tuple[str, ...]], None]
"""Called with the group, the kind of what was done, a sentence, and the nodes that it was done
to."""


class Play:
    """Disturbs groups, if that is allowed."""

    def __init__(
        self,
        watching: Watching,
        relays: Relays,
        *,
        allowed: bool,
        own: Own | None = None,
        on_fault: Fault = lambda group, kind, sentence, nodes: None,
    ) -> None:
        self._watching = watching
        self._relays = relays
        self._allowed = allowed
        self._own = own
        self._on_fault = on_fault
        self._load = "gentle"
        self._one = threading.Lock()
        """One fault at a time."""

    def routes(self) -> list[Route]:
        return [Route("/api/play", self._do, methods=["POST"])]

    def told(self) -> Mapping[str, Any]:
        """What may be done to each group, by name."""
        with self._watching.lock:
            names = {watched.group for watched in self._watching.nodes()}
        return {name: self._of(name) for name in names}

    def _of(self, group: str) -> dict[str, Any]:
        relay = self._relay(group)
        own = self._own is not None and self._own.group == group
        why = ""
        if relay is None:
            why = "no relay is between the nodes of this group; start them behind `roundelay chaos`"
        elif not self._allowed:
            why = "this dashboard only looks; start it with --allow-faults to play"
        told = relay and {key: value for key, value in relay[1].items() if key != "peers"}
        document = {"allowed": not why, "why": why, "relay": told, "restart": own}
        return document | {"load": self._load if own else None}

    def _relay(self, group: str) -> tuple[Path, dict[str, Any]] | None:
        with self._watching.lock:
            peers = {
                watched.node: watched.status["peers"]
                for watched in self._watching.nodes()
                if watched.group == group and watched.status is not None
            }
        return self._relays.of(peers)

    async def _do(self, request: Request) -> Response:
        told = await document(request)
        group, do, node, line = (
            str(told.get(name, "")) for name in ("group", "do", "node", "line")
        )
        may = self._of(group)
        if not may["allowed"]:
            raise AskedWrongError(may["why"])
        await run_in_threadpool(self._act, group, do, node, line)
        return JSONResponse({"done": True, **self._of(group)})

    def _act(self, group: str, do: str, node: str, line: str) -> None:
        with self._one:
            if do == "network":
                self._disturb(group, line)
            elif do == "load":
                self._send(group, line)
            elif do == "restart":
                self._restart(group, node)
            elif do in SIGNALS:
                self._signal(group, node, do)
            else:
                raise AskedWrongError(f"{do!r} is nothing that can be done to a node")

    def _disturb(self, group: str, line: str) -> None:
        relay = self._relay(group)
        words = line.split()
        if relay is None or not words or words[0] not in NETWORK:
            raise AskedWrongError(f"{line!r} is no command of the relay")
        try:
            self._relays.command(relay[0], line)
        except ClientError as e:
            raise AskedWrongError(str(e)) from None
        self._on_fault(group, words[0], f"network: {line}", ())

    def _signal(self, group: str, node: str, do: str) -> None:
        watched = self._watching.find(group, node)
        if watched is None or watched.pid is None or watched.state not in ("up", "silent"):
            raise AskedWrongError(f"{node} does not run here")
        if not watched.is_here:  # The process that answers belongs to whoever brought it here.
            raise AskedWrongError(f"{node} runs on another machine; do that there")
        try:
            os.kill(watched.pid, SIGNALS[do])
        except OSError as e:
            raise AskedWrongError(f"{node} cannot be reached ({e.strerror})") from None
        if do == "pause":
            self._watching.expect(watched, "silent")
        self._on_fault(group, do, SAID[do].format(node), (node,))

    def _restart(self, group: str, node: str) -> None:
        watched = self._watching.find(group, node)
        if self._own is None or self._own.group != group or watched is None:
            raise AskedWrongError(f"start {node} again where you started it")
        if watched.state != "gone":
            raise AskedWrongError(f"{node} runs already")
        if not self._own.restart(node):
            raise AskedWrongError(f"{node} runs already, or starts just now")
        self._on_fault(group, "restart", SAID["restart"].format(node), (node,))

    def _send(self, group: str, line: str) -> None:
        if self._own is None or self._own.group != group:
            raise AskedWrongError("the load of this group is its own")
        if line not in ("none", "gentle", "heavy"):
            raise AskedWrongError(f"{line!r} is no load; there are none, gentle and heavy")
        self._own.load(line)
        self._load = line
