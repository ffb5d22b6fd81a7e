"""Real nodes as processes, a relay between them, and what is left of a run."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from tests.patience import LIMIT_S, until
from tests.process.wiretap import Wiretap

from roundelay.check import Report, check
from roundelay.check.text import table
from roundelay.core.effects import Kind
from roundelay.runtime.client import Client, ClientError
from roundelay.runtime.collect import collect, world_recorder
from roundelay.runtime.relay import RelayProcess
from roundelay.runtime.replay import replay
from roundelay.trace import reader
from roundelay.trace.schema import LOWER_LAYER, Row
from roundelay.transport.address import free_addresses

WORKER = Path(__file__).with_name("worker.py")
SETTLE_NS = 1_000_000_000


class Nursery:
    """A process that forks nodes: they start much faster than from nothing."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(WORKER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def fork(self, told: dict[str, object], log: Path) -> "Forked":
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([told, str(log)]) + "\n")
        self._process.stdin.flush()
        return Forked(int(self._process.stdout.readline()))

    def close(self) -> None:
        self._process.communicate()


class Forked:
    """A node that was forked: what `Cluster` needs of `subprocess.Popen`."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def poll(self) -> int | None:
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return 0
        return None

    def wait(self, timeout: float | None = None) -> int:
        until(lambda: self.poll() is not None, "its end", timeout or LIMIT_S)
        return 0

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)


class Cluster:
    """Nodes of one group; a context manager that leaves no process behind."""

    def __init__(
        self,
        directory: Path,
        nodes: Sequence[str],
        engine: str = "totem",
        *,
        rate: float = 40,
        safe_every: int = 5,
        timeout_s: float = 0.4,
        relay: bool = True,
        state: bool = True,
        check: bool = False,
        key: Path | None = None,
        tap: bool = False,
        old_key_s: float | None = None,
    ) -> None:
        """With `key` all traffic is sealed with that file; with `tap` it goes through a wiretap
        instead of a relay."""
        self.directory = directory
        self.nodes = tuple(sorted(nodes))
        self.rows: list[Row] = []
        self.world = world_recorder(self.rows, self.nodes)
        self._engine = engine
        self._rate = rate
        self._safe_every = safe_every
        self._timeout_s = timeout_s
        self._state = state
        self._check = check
        self.keys: dict[str, Path | None] = dict.fromkeys(self.nodes, key)
        """The key files of nodes that are started next."""
        self._old_key_s = old_key_s
        self.clocks_s: dict[str, float] = {}
        """By how much the clocks of nodes that are started next are wrong."""
        self._tap = Wiretap(self.nodes) if tap else None
        addresses = free_addresses(self.nodes)
        self._relay = RelayProcess(addresses) if relay and not tap else None
        between = self._tap or self._relay
        self._peers = between.peers if between else dict.fromkeys(self.nodes, addresses)
        self._sockets = Path(tempfile.mkdtemp(prefix="rd"))  # Paths of sockets must be short.
        self._processes: dict[str, subprocess.Popen[bytes] | Forked] = {}
        self._nursery: Nursery | None = None
        self._lives = dict.fromkeys(self.nodes, 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:  # Shown with the failure.
            for path in sorted(self.directory.glob("log-*")):
                sys.stdout.write(f"{path.name}:\n{path.read_text()}\n")
        for process in self._processes.values():
            if process.poll() is None:
                process.kill()
            process.wait()
        if self._relay is not None:
            self._relay.close()
        if self._tap is not None:
            self._tap.close()
        if self._nursery is not None:
            self._nursery.close()
        for path in self._sockets.iterdir():
            path.unlink()
        self._sockets.rmdir()

    # What is done to nodes

    def start(self, *nodes: str) -> None:
        for node in nodes or self.nodes:
            told, log = self._next_life(node)
            with log.open("wb") as file:
                self._processes[node] = subprocess.Popen(
                    [sys.executable, str(WORKER), json.dumps(told)], stderr=file
                )

    def start_command(self, node: str, *more: str) -> None:
        """Start `roundelay node`, which sends nothing, with these arguments too."""
        told, log = self._next_life(node)
        peers = [f"--peer={peer}={address}" for peer, address in self._peers[node].items()]
        given = [f"--{name}={told[name]}" for name in ("group", "node", "key", "control")]
        command = [sys.executable, "-m", "roundelay", "node", *given, *peers, *more]
        with log.open("wb") as file:
            self._processes[node] = subprocess.Popen(command, stderr=file)

    def fork(self, node: str) -> None:
        """The same as `start`, much faster: the process is a copy of one that is ready."""
        if self._nursery is None:
            self._nursery = Nursery()
        self._processes[node] = self._nursery.fork(*self._next_life(node))

    def _next_life(self, node: str) -> tuple[dict[str, object], Path]:
        """What the next process of a node is told, and where its log goes."""
        life = self._lives[node]
        self._lives[node] = life + 1
        key = self.keys[node]
        told = {
            "group": "g",
            "node": node,
            "peers": self._peers[node],
            "engine": self._engine,
            "timeout_s": self._timeout_s,
            "key": None if key is None else str(key),
            "old_key_s": self._old_key_s,
            "state": str(self.state(node)) if self._state else None,
            "trace": str(self.directory / "traces"),
            "trace_every_row": True,
            "trace_frames": True,
            "check": self._check,
            "record": str(self.directory / "records"),
            "control": str(self.control(node)),
            "rate": self._rate,
            "safe_every": self._safe_every,
            "receipts": str(self.directory / f"receipts-{node}-{life}"),
            "clock_s": self.clocks_s.get(node, 0.0),
        }
        return told, self.directory / f"log-{node}-{life}"

    @property
    def tap(self) -> Wiretap:
        assert self._tap is not None
        return self._tap

    def control(self, node: str) -> Path:
        """The control socket of a node."""
        return self._sockets / node

    def state(self, node: str) -> Path:
        """Where a node keeps its state."""
        return self.directory / "state" / node

    def exit_code(self, node: str) -> int:
        """Of a node that ends by itself."""
        return self._processes[node].wait(LIMIT_S)

    def signal(self, node: str, number: signal.Signals) -> None:
        self.world.fault(number.name.lower(), {"node": node})
        self._processes[node].send_signal(number)

    def kill(self, node: str) -> None:
        self.signal(node, signal.SIGKILL)
        self._processes[node].wait()

    def stop(self, node: str) -> None:
        """In good order."""
        self.signal(node, signal.SIGTERM)
        assert self._processes[node].wait(LIMIT_S) == 0, self.log(node)

    def relay(self, command: str) -> None:
        """Give the relay a command; `heal` ends the faults."""
        assert self._relay is not None
        self._relay.command(command)
        self.world.fault(command.split()[0], {"command": command})

    # What can be seen of them

    def status(self, node: str) -> dict[str, Any] | None:
        try:
            with Client(self.control(node)) as client:
                return client.ask(do="status")
        except ClientError:
            return None

    def members(self, node: str) -> tuple[str, ...]:
        """Of the view it is in; none while it does not answer, or is changing views."""
        found = self.status(node)
        if found is None or found["phase"] != "operational" or found["view"]["transitional"]:
            return ()
        return tuple(found["view"]["members"])

    def view(
        self, *members: str, at: Sequence[str] | None = None, limit_s: float = LIMIT_S
    ) -> None:
        """Wait until these nodes, or all of its members, are in a view of exactly these."""
        wanted = tuple(sorted(members or self.nodes))
        until(
            lambda: all(self.members(node) == wanted for node in at or wanted),
            f"a view of {', '.join(wanted)}",
            limit_s,
        )

    def counters(self, node: str) -> dict[str, int]:
        """All zero while it does not answer."""
        found = self.status(node)
        return Counter() if found is None else found["counters"]

    def delivered(self, node: str) -> int:
        return self.counters(node)["messages_delivered"]

    def traffic(self, *nodes: str, messages: int = 20) -> None:
        """Wait until each of these nodes has delivered so many more messages."""
        before = {node: self.delivered(node) for node in nodes or self.nodes}
        until(
            lambda: all(self.delivered(n) >= count + messages for n, count in before.items()),
            "traffic",
        )

    def log(self, node: str) -> str:
        path = self.directory / f"log-{node}-{self._lives[node] - 1}"
        return path.read_text() if path.exists() else ""  # Its process may not have begun yet.

    # The end

    def finish(self) -> Path:
        """Let the load end, wait until all is quiet, kill everybody; returns the whole trace."""
        self.world.fault("heal")
        for process in self._processes.values():
            process.send_signal(signal.SIGUSR1)
        quiet = time.monotonic()
        state: list[int] = []
        while time.monotonic() - quiet < SETTLE_NS / 1e9:
            now = [self.delivered(node) for node in self.nodes]
            if now != state:
                state, quiet = now, time.monotonic()
            time.sleep(0.05)
        self.view()
        self.world.end(self.nodes)
        for node in self.nodes[1:]:
            os.kill(self._processes[node].pid, signal.SIGKILL)
        self._processes[self.nodes[0]].terminate()  # One of them leaves a manifest.
        for process in self._processes.values():
            process.wait(LIMIT_S)
        output = self.directory / "whole"
        collect(self.directory / "traces", output, self.rows, bound_ns=SETTLE_NS, format="jsonl")
        return output

    @property
    def records(self) -> list[Path]:
        return sorted(self.directory.glob("records/*.record"))

    @property
    def receipts(self) -> list[tuple[str, int, dict[str, Any]]]:
        """Of safe messages: the sender, its incarnation and what it was told."""
        found: list[tuple[str, int, dict[str, Any]]] = []
        for path in sorted(self.directory.glob("receipts-*")):
            node = path.name.split("-")[1]
            entries = map(json.loads, path.read_text().splitlines())
            found.extend((node, entry["incarnation"], entry) for entry in entries)
        return found


def judge(cluster: Cluster) -> list[Row]:
    """The trace keeps its promises, the records replay, the receipts are honoured; its rows."""
    whole = reader.read(cluster.finish())
    report = check(whole.rows, whole.manifest, problems=whole.problems)
    assert report.ok, table(report, whole.manifest)
    assert delivers(report)
    for verdict in report.verdicts:  # With frames in the trace, what a link does is in it too.
        assert verdict.instances or verdict.property not in ("E5", "L5")
    replays = {record.name: replay(record) for record in cluster.records}
    for name, found in replays.items():
        assert found.differs_at is None, f"{name}: {found}"
    # The record of a life of less than a second may be empty: it is written in batches.
    assert sum(found.inputs for found in replays.values()) > 20 * len(cluster.nodes)
    assert cluster.receipts
    assert unhonoured(whole.rows, cluster) == []
    return whole.rows


def delivers(report: Report) -> bool:
    """Whether it was judged that what is sent is delivered: by L1, or L6 where there are
    confirmations."""
    return any(v.instances for v in report.verdicts if v.property in ("L1", "L6"))


def unhonoured(rows: Sequence[Row], cluster: Cluster) -> list[str]:
    """Receipts of safe messages that a surviving member of their view never delivered."""
    number = {node: i for i, node in enumerate(cluster.nodes)}
    lives: dict[int, Row] = {}
    """The last row of each node: the order of incarnations says nothing."""
    members: dict[tuple[int | None, ...], set[tuple[int, int]]] = {}
    delivered: set[tuple[int, int, int, int]] = set()
    for row in rows:
        if row.proc >= 0:
            lives[row.proc] = max(row, lives.get(row.proc, row), key=lambda row: row.t_ns)
        if row.kind == Kind.INSTALL:
            view = (row.c_seq, row.c_rep, row.c_kind)
            members.setdefault(view, set()).add((row.proc, row.inc))
        if row.kind == Kind.DELIVER and row.layer != LOWER_LAYER:
            assert row.m_seq is not None
            assert row.m_src is not None
            assert row.m_inc is not None
            for m in range(row.m_seq, row.m_seq + row.count):
                delivered.add((row.proc, row.m_src, row.m_inc, m))
    missing = []
    for node, life, receipt in cluster.receipts:
        seq, rep = receipt["view"]
        view = (seq, number[rep], int(receipt["transitional"]))
        assert members[view], "a receipt of a view that nobody installed"
        for proc, inc in sorted(members[view]):
            told = (proc, number[node], life, receipt["number"])
            if lives[proc].inc == inc and told not in delivered:
                missing.append(f"{cluster.nodes[proc]} lacks {node}'{life}:{receipt['number']}")
    return missing
