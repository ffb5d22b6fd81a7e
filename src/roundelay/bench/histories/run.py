"""Runs: three nodes with clients, through kills, pauses and partitions, and the verdict on what the
clients saw."""

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from roundelay.bench.histories.member import KINDS, Purse
from roundelay.bench.histories.replay import LogReplay, entries_of
from roundelay.check.histories import (
    Holding,
    Judgement,
    Operation,
    Taking,
    certified,
    counter,
    done_once,
    fenced,
    linearizable,
    machine,
    register,
)
from roundelay.check.verdict import Validity
from roundelay.runtime.relay import RelayProcess
from roundelay.structures.replica import LogEntry
from roundelay.transport.address import free_addresses

NODES = "abc"
STOP_S = 20.0
"""How long a process may take to end."""
OPEN_S = 60.0
"""How long the log may take to open at the beginning of a run."""
LOOK_S = 0.05
"""How often is looked whether it is open."""
SETTLE_S = 1.5
"""How long nodes have to find each other again before a run ends."""
_BADNESS = (Validity.OK, Validity.VACUOUS, Validity.INCONCLUSIVE, Validity.VIOLATED)


@dataclass(frozen=True)
class Run:
    """One run."""

    kind: str
    seed: int
    seconds: float
    """Of trouble."""


@dataclass(frozen=True)
class Outcome:
    """What came of it."""

    run: Run
    judgement: Judgement
    counted: dict[str, int]
    """How often each trouble was made."""


class Group:
    """The processes of one run."""

    def __init__(self, run: Run, directory: Path) -> None:
        self._run = run
        self._directory = directory
        self._relay = RelayProcess(free_addresses(NODES))
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._lives = 0

    def start(self, node: str) -> None:
        self._lives += 1
        told = {
            "node": node,
            "peers": self._relay.peers[node],
            "journal": str(self._directory / node),
            "kind": self._run.kind,
            "out": str(self._directory / f"saw-{node}-{self._lives}"),
            "seed": f"{self._run.seed}.{self._lives}",
        }
        module = "roundelay.bench.histories.member"
        with (self._directory / "log").open("ab") as log:
            self._processes[node] = subprocess.Popen(
                [sys.executable, "-m", module, json.dumps(told)], stderr=log, stdout=log
            )

    def await_open(self) -> None:
        """Wait until commands can be committed at all nodes, none of which was restarted yet."""
        limit = time.monotonic() + OPEN_S
        while len(list(self._directory.glob("saw-*.open"))) < len(NODES):
            if ended := self.ended():
                raise RuntimeError(
                    f"node {ended[0]} ended by itself; see {self._directory / 'log'}"
                )
            if time.monotonic() > limit:
                raise RuntimeError(f"the log did not open within {OPEN_S:.0f} s")
            time.sleep(LOOK_S)

    def kill(self, node: str) -> None:
        self._processes[node].kill()
        self._processes[node].wait()

    def signal(self, node: str, number: int) -> None:
        self._processes[node].send_signal(number)

    def relay(self, command: str) -> None:
        self._relay.command(command)

    def stop(self) -> None:
        """End the nodes in good order."""
        for process in self._processes.values():
            process.terminate()
        for node, process in self._processes.items():
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                raise RuntimeError(f"node {node} did not end within {STOP_S:.0f} s") from None

    def close(self) -> None:
        for process in self._processes.values():
            if process.poll() is None:
                process.kill()
                process.wait()
        self._relay.close()

    def ended(self) -> list[str]:
        """Nodes that ended by themselves."""
        return [node for node, process in self._processes.items() if process.poll() is not None]


def perform(run: Run, directory: Path) -> Outcome:
    """One run in a new directory. RuntimeError if a node ended by itself."""
    directory.mkdir(parents=True)
    chance = random.Random(f"{run.kind} {run.seed}")
    counted = dict.fromkeys(("kill", "kill all", "pause", "partition"), 0)
    group = Group(run, directory)
    try:
        for node in NODES:
            group.start(node)
        group.await_open()
        end = time.monotonic() + run.seconds
        while time.monotonic() < end:
            what = chance.choices(list(counted), (4, 1, 2, 3))[0]
            _trouble(group, what, chance)
            counted[what] += 1
            if ended := group.ended():
                raise RuntimeError(f"node {ended[0]} ended by itself; see {directory / 'log'}")
            time.sleep(chance.uniform(0.1, 0.6))
        time.sleep(SETTLE_S)
        group.stop()
    finally:
        group.close()
    return Outcome(run, judge(run.kind, directory, entries_of(directory, NODES)), counted)


def _trouble(group: Group, what: str, chance: random.Random) -> None:
    node = chance.choice(NODES)
    lasts = chance.uniform(0.2, 1.2)
    if what == "kill":
        group.kill(node)
        time.sleep(lasts)
        group.start(node)
    elif what == "kill all":
        for each in NODES:
            group.kill(each)
        for each in NODES:
            group.start(each)
        time.sleep(lasts)
    elif what == "pause":
        group.signal(node, signal.SIGSTOP)
        time.sleep(lasts)
        group.signal(node, signal.SIGCONT)
    else:
        others = ",".join(other for other in NODES if other != node)
        group.relay(f"partition {node} {others}")
        time.sleep(lasts)
        group.relay("heal")


def judge(kind: str, directory: Path, entries: Sequence[LogEntry] | None = None) -> Judgement:
    """The verdict on what the clients of a run wrote down: the worse of two where the `entries` of
    the log are given."""
    notes = [_lines(path) for path in sorted(directory.glob("saw-*[0-9]"))]
    if kind == "lock":
        return fenced([holding for lines in notes for holding in _holdings(lines)])
    if kind == "queue":
        return done_once([taking for lines in notes for taking in _takings(lines)])
    history = [operation for lines in notes for operation in _operations(lines)]
    models = {"map": register, "counter": counter, "own": lambda: machine(Purse)}
    searched = linearizable(history, models[kind])
    if entries is None:
        return searched
    replay = LogReplay(entries, KINDS[kind][0])
    replayed = certified(history, replay, len(entries))
    return max(searched, replayed, key=lambda judgement: _BADNESS.index(judgement.validity))


def _lines(path: Path) -> list[dict[str, Any]]:
    """A killed node may leave half a line."""
    return [json.loads(line) for line in path.read_text().splitlines(True) if line.endswith("\n")]


def _operations(lines: Iterable[dict[str, Any]]) -> list[Operation]:
    calls: dict[int, Operation] = {}
    for line in lines:
        id = line["id"]
        if "call" in line:
            client, key, op, argument, reads = line["call"]
            given = tuple(argument) if isinstance(argument, list) else argument
            calls[id] = Operation(client, key, op, given, line["at"], reads=reads)
        elif "not done" in line:
            del calls[id]
        else:
            o, reply = calls[id], line["reply"]
            told = tuple(reply) if isinstance(reply, list) else reply
            calls[id] = replace(o, returned=line["at"], reply=told, index=line.get("index"))
    # A read that did not return changes nothing and tells nothing.
    return [o for o in calls.values() if o.returned is not None or not o.reads]


def _holdings(lines: Iterable[dict[str, Any]]) -> list[Holding]:
    found: dict[int, Holding] = {}
    for line in lines:
        if "hold" in line:
            token = line["hold"]
            found[token] = Holding(line["client"], line["asked"], line["got"], token)
        else:
            h = found[line["gave"]]
            found[h.token] = Holding(h.client, h.asked, h.got, h.token, line["at"], confirmed=True)
    return list(found.values())


def _takings(lines: Iterable[dict[str, Any]]) -> list[Taking]:
    found: dict[int, Taking] = {}
    for line in lines:
        if "took" in line:
            token = line["token"]
            found[token] = Taking(
                line["client"], line["took"], line["asked"], line["got"], token, lost=True
            )
        else:
            t = found[line["ended"]]
            found[t.token] = Taking(
                t.client, t.item, t.asked, t.got, t.token, line["at"], line["done"]
            )
    return list(found.values())


def plan(count: int, seconds: float, seed: int, kinds: Iterable[str] = tuple(KINDS)) -> list[Run]:
    """So many runs, the kinds in turn."""
    names = list(kinds)
    return [Run(names[n % len(names)], seed + n // len(names), seconds) for n in range(count)]
