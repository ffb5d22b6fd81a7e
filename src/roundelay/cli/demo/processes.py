"""Real nodes as processes on this machine, with a relay between them and a load on each.

They are started, queried and stopped as a user would do it: by `roundelay node`, `roundelay chaos`
and the control sockets.
"""

import base64
import contextlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from roundelay.cli.errors import UserError
from roundelay.core.effects import Kind
from roundelay.core.ids import NodeId
from roundelay.runtime.client import Client, ClientError
from roundelay.runtime.collect import collect, world_recorder
from roundelay.runtime.relay import RelayError, RelayProcess
from roundelay.trace.schema import Row
from roundelay.transport.address import free_addresses

GROUP = "demo"
WAIT_S = 30.0
"""How many seconds to wait for something that must happen; then the demo fails."""
POLL_S = 0.02
"""How many seconds pass between two questions whether it has happened."""
QUIET_S = 1.0
"""For how many seconds nothing may be delivered before the run counts as quiet."""
IDLE_S = 0.1
"""Seconds between two looks whether there is something to send again."""
LOADS = {"none": None, "gentle": 0.1, "heavy": 0.0}
"""Seconds between two messages of one node."""
SAFE_EVERY = 4
"""Every so many-th message is a safe one."""


class Load:
    """Sends messages through one node until it is stopped, each after the one before is
    delivered."""

    def __init__(self, node: NodeId, control: Path, pause_s: float) -> None:
        self.delivered = 0
        """The number of messages with a receipt."""
        self.pause_s: float | None = pause_s
        """Seconds between two messages; None while nothing is to be sent."""
        self._node = node
        self._control = control
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"load on {node}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()

    def join(self) -> None:
        self._thread.join(WAIT_S)

    def _run(self) -> None:
        while not self._stopped.is_set():
            # A node that was killed does not answer: wait until it runs again.
            with contextlib.suppress(ClientError), Client(self._control) as client:
                self._talk(client)
            self._stopped.wait(0.1)

    def _talk(self, client: Client) -> None:
        while not self._stopped.wait(IDLE_S if self.pause_s is None else self.pause_s):
            if self.pause_s is None:
                continue
            text = base64.b64encode(f"{self._node} {self.delivered}".encode()).decode("ascii")
            client.ask(do="send", payload=text, safe=self.delivered % SAFE_EVERY == 0)
            client.answer()
            self.delivered += 1


class Nodes:
    """The nodes of one group; a context manager that leaves no process behind."""

    def __init__(
        self, directory: Path, names: Sequence[NodeId], engine: str, *, traced: bool = True
    ) -> None:
        self.names = tuple(sorted(names))
        self.loads: dict[NodeId, Load] = {}
        self._directory = directory
        self._engine = engine
        self._traced = traced
        self._rows: list[Row] = []
        self._world = world_recorder(self._rows, self.names)
        self._processes: dict[NodeId, subprocess.Popen[bytes]] = {}
        self._restarting = threading.Lock()
        self._relay: RelayProcess
        self._sockets: Path

    def __enter__(self) -> Self:
        shutil.rmtree(self._directory, ignore_errors=True)
        self._directory.mkdir(parents=True)
        self._sockets = Path(tempfile.mkdtemp(prefix="rd"))  # Paths of sockets must be short.
        self._relay = RelayProcess(free_addresses(self.names), self.relay_control)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for load in self.loads.values():
            load.stop()
        for process in self._processes.values():
            if process.poll() is None:
                process.kill()
            process.wait()
        self._relay.close()
        shutil.rmtree(self._sockets, ignore_errors=True)

    # Acting on the nodes

    def start(self, *names: NodeId) -> None:
        """Start nodes that do not run; UserError for one that does."""
        for node in names:
            if self._runs(node):
                raise UserError(f"{node} runs already")
            self._done("start", {"node": node})
            flags = [
                f"--group={GROUP}",
                f"--node={node}",
                f"--engine={self._engine}",
                f"--control={self._sockets / node}",
                f"--state={self._directory / 'state' / node}",
                *(self._tracing if self._traced else ()),
                *(f"--peer={name}={at}" for name, at in self._relay.peers[node].items()),
            ]
            with self._log(node).open("ab") as log:
                self._processes[node] = subprocess.Popen(
                    [sys.executable, "-m", "roundelay", "node", *flags], stdout=log, stderr=log
                )

    def restart(self, node: NodeId) -> bool:
        """Start a node whose process has ended; False if it runs. Threads may call it at once."""
        with self._restarting:
            if self._runs(node):
                return False
            self.start(node)
            return True

    def _runs(self, node: NodeId) -> bool:
        process = self._processes.get(node)
        return process is not None and process.poll() is None

    @property
    def _tracing(self) -> tuple[str, ...]:
        return f"--trace={self.traces}", "--trace-every-row", "--trace-frames"

    def send_from(self, *names: NodeId, pause_s: float) -> None:
        """Send messages through these nodes from now on."""
        for node in names:
            self.loads[node] = Load(node, self._sockets / node, pause_s)

    def kill(self, node: NodeId) -> None:
        self._done("crash", {"node": node})
        self._processes[node].kill()
        self._processes[node].wait()

    def pause(self, node: NodeId) -> None:
        self._done("pause", {"node": node})
        self._processes[node].send_signal(signal.SIGSTOP)

    def resume(self, node: NodeId) -> None:
        self._done("resume", {"node": node})
        self._processes[node].send_signal(signal.SIGCONT)

    def partition(self, *components: Sequence[NodeId]) -> None:
        self._done("partition", {"components": [list(names) for names in components]})
        self._tell_relay(" ".join(["partition", *(",".join(names) for names in components)]))

    def merge(self) -> None:
        """Undo the partition."""
        self._done("merge", {})
        self._tell_relay("heal")

    def _done(self, what: str, detail: Mapping[str, object]) -> None:
        """Write into the trace what is done to the nodes, in the words of the simulator."""
        self._world.fault(what, detail)

    def _tell_relay(self, command: str) -> None:
        try:
            self._relay.command(command)
        except RelayError as e:
            raise UserError(f"{e}; please report this") from None

    # Watching the nodes

    @property
    def pids(self) -> dict[NodeId, int]:
        """The processes that were started last."""
        return {node: process.pid for node, process in self._processes.items()}

    def control(self, node: NodeId) -> Path:
        """The control socket of a node."""
        return self._sockets / node

    @property
    def relay_control(self) -> Path:
        """The control socket of the relay."""
        return self._sockets / "relay.sock"

    @property
    def clock_s(self) -> float:
        """Seconds since the first start, on the clock of the trace. Its first event is that start,
        so reports and diagrams show the same times."""
        return (time.monotonic_ns() - self._rows[0].t_ns) / 1e9

    @property
    def fault_s(self) -> float:
        """When the last fault was, on this clock."""
        return (self._rows[-1].t_ns - self._rows[0].t_ns) / 1e9

    @property
    def faults(self) -> int:
        """How many faults there were; `roundelay draw --around fault:N` counts them in this way."""
        return len([row for row in self._rows if row.kind == Kind.FAULT]) - len(self.names)

    def status(self, node: NodeId) -> dict[str, Any] | None:
        try:
            with Client(self._sockets / node) as client:
                return client.ask(do="status")
        except ClientError:
            return None

    def primary(self, node: NodeId) -> bool:
        """Whether the node is in a primary view."""
        found = self.status(node)
        return found is not None and bool(found["view"]["primary"])

    def wait_for_view(self, *names: NodeId) -> float:
        """Wait until these nodes are in a view of their own; returns the seconds that took."""

        def condition() -> bool:
            return all(self._members(node) == names for node in names)

        return self._until(condition, f"{', '.join(names)} did not come together")

    def wait_until_quiet(self) -> None:
        """Stop the load and wait until nothing is under way; then the run is over."""
        self._world.fault("heal")
        for load in self.loads.values():
            load.stop()
        since = time.monotonic()
        seen: list[int] = []

        def condition() -> bool:
            nonlocal since, seen
            counts = [self._delivered(node) for node in self.names]
            if counts != seen:
                since, seen = time.monotonic(), counts
            return time.monotonic() - since >= QUIET_S

        self._until(condition, "the nodes did not come to rest")
        for load in self.loads.values():
            load.join()
        self._world.end(self.names)

    def collect(self) -> Path:
        """Stop everybody and put their traces together."""
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            process.wait(WAIT_S)
        output = self._directory / "trace"
        collect(self.traces, output, self._rows, bound_ns=round(QUIET_S * 1e9))
        return output

    @property
    def traces(self) -> Path:
        """The directory of the traces that the nodes write."""
        return self._directory / "traces"

    def _members(self, node: NodeId) -> tuple[NodeId, ...]:
        found = self.status(node)
        if found is None or found["phase"] != "operational" or found["view"]["transitional"]:
            return ()
        return tuple(found["view"]["members"])

    def _delivered(self, node: NodeId) -> int:
        found = self.status(node)
        return -1 if found is None else int(found["counters"]["messages_delivered"])

    def _until(self, condition: Callable[[], bool], what: str) -> float:
        start = time.monotonic()
        while not condition():
            self._raise_if_one_ended()
            if time.monotonic() - start > WAIT_S:
                raise UserError(f"{what} within {WAIT_S:g} s; their logs are in {self._directory}")
            time.sleep(POLL_S)
        return time.monotonic() - start

    def _raise_if_one_ended(self) -> None:
        for node, process in self._processes.items():
            if process.poll() not in (None, -signal.SIGKILL):
                lines = self._log(node).read_text().splitlines() or ["it left no word"]
                raise UserError(f"node {node} stopped by itself: {lines[-1]}")

    def _log(self, node: NodeId) -> Path:
        return self._directory / f"{node}.log"
