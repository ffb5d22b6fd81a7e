"""Asks running nodes how they are, again and again, as `roundelay status` does.

There is a thread for each control socket: clients are plain blocking calls, and a node that is
stopped answers nobody. What was told last is kept under a lock; the server only reads it.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from roundelay.runtime.client import Client, ClientError, SilentError, answers, controls, named
from roundelay.runtime.machine import Machine

EVERY_S = 0.25
"""Seconds between two questions to a node while somebody looks at the page. Too small: nodes work
for the page; too large: what happens to a group is seen late."""
IDLE_S = 1.0
"""The same while nobody does: what happened is still noted."""
LINGER_S = 60.0
"""Seconds for which nodes go on to keep rows after the last page was closed. Too small: a page that
is loaded anew finds none; too large: nodes pay although nobody looks."""
ANSWER_S = 0.6
"""Seconds without an answer after which a node counts as silent. Too small: a busy machine makes
nodes seem to be stopped; too large: one that is stopped is seen late."""
SILENT_S = 5.0
"""For how long a silent node is then waited for, at a time."""
FIND_S = 1.0
"""Seconds between two looks for new control sockets."""
KEPT = 48
"""Answers that are kept for rates and percentiles: twelve seconds. Too few: numbers jump; too many:
they are of long ago."""
FORGET_S = 300.0
"""Seconds after which a node that is gone is forgotten, unless its socket was named. Too small: it
vanishes before anybody has looked; too large: nodes of long ago fill the page."""
NODES_MAX = 200
"""Nodes that are watched; each has a thread. For one more, the one that is gone for longest is
forgotten."""
FOREIGN = "what answers there is no node of this version of Roundelay"

State = Literal["unknown", "up", "silent", "gone"]
Told = Callable[["Watched", dict[str, Any]], None]


@dataclass
class Watched:
    """One control socket, and what answered there. All but the path is guarded by the lock of
    `Watching`."""

    path: Path
    group: str
    node: str
    state: State = "unknown"
    since: float = 0.0
    """When it got into that state, on the monotonic clock."""
    status: dict[str, Any] | None = None
    """The last status that it told."""
    kept: deque[tuple[float, dict[str, Any]]] = field(default_factory=lambda: deque(maxlen=KEPT))
    """The last answers, with their times."""
    pid: int | None = None
    """The process that serves the socket: the node's own only if it is on this machine."""
    is_here: bool = True
    """Whether it runs on this machine; else its socket was brought here, and another process
    answers for it."""
    shift_ns: int = 0
    """What to add to its times for those of this machine."""
    next: int = 0
    """The number of what happened to go on with."""
    life: int | None = None
    """The incarnation that `next` is of."""
    trouble: str = ""
    """Why it cannot be watched, if it answers something else than expected."""


class Watching:
    """Watches all nodes that run here, or those of some control sockets."""

    def __init__(self, paths: Sequence[Path] = (), group: str | None = None) -> None:
        """With `paths` those alone; with `group` only nodes of that group."""
        self.lock = threading.Lock()
        self.machine = Machine().id
        """This machine, as nodes name theirs."""
        self.version = 0
        """Grows with every answer."""
        self.left_out = 0
        """Nodes that run and are not watched, as there are too many."""
        self.viewers = 0
        """Pages that are open."""
        self.on_told: list[Told] = []
        """Called with what a node answered to `recent`, under the lock. LookupError, TypeError or
        ValueError says that no node of this version answers so; then nothing of it is kept."""
        self.on_state: list[Callable[[Watched, State], None]] = []
        """Called when a node's state has changed, with the one before, under the lock."""
        self._viewed = -LINGER_S
        """When a page was open last, on the monotonic clock."""
        self._paths = tuple(paths)
        self._group = group
        self._nodes: dict[Path, Watched] = {}
        self._ended = threading.Event()

    def start(self) -> None:
        self._begin(self._find)

    def stop(self) -> None:
        self._ended.set()

    def nodes(self) -> list[Watched]:
        """Every node that was found; call it under the lock."""
        return list(self._nodes.values())

    def find(self, group: str, node: str) -> Watched | None:
        """The node of that name; the one that runs, if there are several."""
        with self.lock:
            found = [n for n in self._nodes.values() if (n.group, n.node) == (group, node)]
        return next((n for n in found if n.state in ("up", "silent")), found[0] if found else None)

    def expect(self, watched: Watched, state: State) -> None:
        """Something was done to a node that brings it into that state; what it answers next
        counts."""
        self._become(watched, state)

    def ask(self, watched: Watched, **request: Any) -> dict[str, Any]:
        """Ask a node something else, now; ClientError."""
        with Client(watched.path) as client:
            client.tell(**request)
            return client.answer(timeout_s=ANSWER_S)

    def _begin(self, work: Callable[..., None], *args: Any) -> None:
        thread = threading.Thread(target=work, args=args, daemon=True)
        thread.start()

    def _find(self) -> None:
        while True:
            new = [path for path in self._paths or self._found() if path not in self._nodes]
            added = sum(self._add(path) for path in new)
            with self.lock:
                self.left_out = len(new) - added
                self.version += 1
            if self._ended.wait(FIND_S):
                return

    def _found(self) -> list[Path]:
        """The sockets at which somebody answers; nodes that were killed leave theirs behind."""
        try:
            paths = controls()
        except ClientError:
            return []
        ours = [path for path in paths if self._group in (None, named(path)[0])]
        return [path for path in ours if path in self._nodes or answers(path)]

    def _add(self, path: Path) -> bool:
        """Watch a socket, unless there are too many."""
        with self.lock:
            if len(self._nodes) >= NODES_MAX:
                gone = [watched for watched in self._nodes.values() if watched.state == "gone"]
                if not gone:
                    return False
                del self._nodes[min(gone, key=lambda watched: watched.since).path]
            watched = self._nodes[path] = Watched(path, *named(path))
        self._begin(self._watch, watched)
        return True

    def _watch(self, watched: Watched) -> None:
        while self._nodes.get(watched.path) is watched:
            try:
                with Client(watched.path) as client:
                    self._talk(watched, client)
                    return  # The dashboard ends.
            except SilentError:
                self._become(watched, "silent")
            except ClientError:
                self._become(watched, "gone")
                self._forget(watched)
            except (LookupError, TypeError, ValueError, AttributeError):
                with self.lock:
                    watched.trouble, watched.status = FOREIGN, None
                    watched.kept.clear()
                self._become(watched, "unknown")
            if self._ended.wait(EVERY_S):
                return

    def _forget(self, watched: Watched) -> None:
        """Forget a node that is gone for long, or of which nothing was ever heard."""
        with self.lock:
            is_old = time.monotonic() - watched.since > FORGET_S or watched.status is None
            if is_old and not self._paths and self._nodes.get(watched.path) is watched:
                del self._nodes[watched.path]
                self.version += 1

    def _talk(self, watched: Watched, client: Client) -> None:
        """Ask until the node goes away, which raises, or the dashboard ends."""
        while True:
            patience = SILENT_S if watched.state == "silent" else ANSWER_S
            client.tell(do="status")
            status = client.answer(timeout_s=patience)
            if status["incarnation"] != watched.life:
                watched.life, watched.next = status["incarnation"], 0
            client.tell(do="recent", since=watched.next, record=self.is_watched())
            recent = client.answer(timeout_s=patience)
            self._take_in(watched, client.pid, status, recent)
            if self._ended.wait(EVERY_S if self.viewers else IDLE_S):
                return

    def is_watched(self) -> bool:
        """Whether somebody looks at the page, or did a moment ago."""
        now = time.monotonic()
        if self.viewers:
            self._viewed = now
        return now - self._viewed < LINGER_S

    def _take_in(
        self, watched: Watched, pid: int | None, status: dict[str, Any], recent: dict[str, Any]
    ) -> None:
        now = time.monotonic()
        with self.lock:
            if (
                watched.status is not None
                and status["incarnation"] != watched.status["incarnation"]
            ):
                watched.kept.clear()
            watched.group, watched.node = str(status["group"]), str(status["node"])
            watched.status, watched.pid, watched.trouble = status, pid, ""
            watched.is_here = recent["machine"] == self.machine
            watched.shift_ns = 0 if watched.is_here else time.monotonic_ns() - recent["now_ns"]
            watched.next = int(recent["next"])
            watched.kept.append((now, status))
            for hear in self.on_told:
                hear(watched, recent)
        self._become(watched, "up")

    def _become(self, watched: Watched, state: State) -> None:
        with self.lock:
            self.version += 1
            before = watched.state
            if before == state:
                return
            watched.state, watched.since = state, time.monotonic()
            if state != "up":
                watched.kept.clear()  # Rates of before say nothing.
            for hear in self.on_state:
                hear(watched, before)
