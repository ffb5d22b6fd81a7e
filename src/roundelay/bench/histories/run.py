"""Runs: three nodes with clients, through kills, pauses and partitions, and the verdict on what the
clients saw."""

import json
import random
import signal
import subprocess
import sys
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from roundelay.bench.histories.member import BEAT_S, BRIEF, KEYS, KINDS, Purse
from roundelay.bench.histories.replay import KeptLog, LogReplay, log_of
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
    warned,
)
from roundelay.check.histories.plain import PlainLock, PlainMap, PlainQueue
from roundelay.check.verdict import Validity
from roundelay.runtime.relay import RelayProcess
from roundelay.structures import Counter, Machine
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
AWAKE_S = 1.2
"""How long a holder must have run without a pause to be told in time that it lost the lock. Shorter
than a node needs to know that it is cut off, and a pause counts against it that made the others
give it up; too long, and hardly any holder counts."""
STEADY_S = 3 * BEAT_S
"""Between two beats of a process that runs. So late may be what it notes."""
_BADNESS = (Validity.OK, Validity.VACUOUS, Validity.INCONCLUSIVE, Validity.VIOLATED)
_PLAIN: dict[str, Callable[[], Machine]] = {
    "map": PlainMap,
    "counter": Counter,
    "lock": PlainLock,
    "queue": PlainQueue,
    "own": Purse,
}
"""By kind: to what the log is applied."""


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
    return Outcome(run, judge(run.kind, directory, log_of(directory, NODES)), counted)


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
        time.sleep(2 * lasts)  # Nodes need most of a second to know of it.
        group.relay("heal")


def judge(kind: str, directory: Path, log: KeptLog | None = None) -> Judgement:
    """The verdict on what the clients of a run wrote down: the worst of all, also of what the log
    says where it is given."""
    notes = [_lines(path) for path in sorted(directory.glob("saw-*[0-9]"))]
    history = [operation for lines in notes for operation in _operations(lines)]
    judged = []
    if kind == "lock":
        lives = {n: _holdings(lines) for n, lines in enumerate(notes)}
        holdings = [holding for found in lives.values() for holding in found]
        beats = {h.token: [x["beat"] for x in notes[n] if "beat" in x]
                 for n, found in lives.items() for h in found}  # fmt: skip
        judged += [
            fenced(holdings),
            warned(holdings, lambda holding, at: _was_awake(beats[holding.token], at), STEADY_S),
        ]
    elif kind == "queue":
        judged.append(done_once([taking for lines in notes for taking in _takings(lines)]))
    else:
        judged.append(_searched(kind, history))
    if log is not None:
        granted = [operation for lines in notes for operation in _granted(lines)]
        replay = LogReplay(log, _PLAIN[kind])
        judged.append(certified([*history, *granted], replay, len(log.entries)))
        judged.append(_same_end(kind, log, replay))
    return max(judged, key=lambda found: (_BADNESS.index(found.validity), found.instances))


def _searched(kind: str, history: Sequence[Operation]) -> Judgement:
    """Whether there is an order, whatever the log says. What tells of a whole object is left to the
    log, or divided by keys."""
    history = [o for o in history if o.op not in ("status", "size") and o.key != BRIEF]
    match kind:
        case "map":
            return linearizable([each for o in history for each in _by_key(o)], register)
        case "counter":
            return linearizable(history, counter)
    return linearizable(history, lambda: machine(Purse))


def _by_key(operation: Operation) -> Iterator[Operation]:
    """What an operation does to each key of a map by itself."""
    match operation.op:
        case "update":
            for key, value in operation.argument.items():
                yield replace(operation, key=key, op="set", argument=value)
        case "clear":
            for key in KEYS:
                yield replace(operation, key=key, op="set", argument=None)
        case "items":
            for key in KEYS:
                yield replace(operation, key=key, op="get", reply=operation.reply.get(key))
        case _:
            yield operation


def _same_end(kind: str, log: KeptLog, plain: LogReplay) -> Judgement:
    """Whether the log makes of the machine itself what it makes of a plain copy: of a queue, that
    as many items wait, are taken and are done, so that none is lost that was put."""
    found, wanted = LogReplay(log, KINDS[kind][0]).ended(), plain.ended()
    if found != wanted:
        reason = f"at its end the log gives {dict(found)}, and a plain copy has {dict(wanted)}"
        return Judgement("H2", Validity.VIOLATED, len(log.entries), reason=reason)
    return Judgement("H2", Validity.OK, len(log.entries))


def _was_awake(beats: Sequence[float], moment: float) -> bool:
    """Whether a process ran all the time before a moment, and was not killed then."""
    begin, end = bisect_left(beats, moment - AWAKE_S), bisect_left(beats, moment)
    if begin == 0 or end == len(beats):
        return False
    around = beats[begin - 1 : end + 1]
    return all(later - earlier < STEADY_S for earlier, later in pairwise(around))


def _lines(path: Path) -> list[dict[str, Any]]:
    """A killed node may leave half a line."""
    return [json.loads(line) for line in path.read_text().splitlines(True) if line.endswith("\n")]


def _operations(lines: Iterable[Mapping[str, Any]]) -> list[Operation]:
    calls: dict[int, Operation] = {}
    for line in lines:
        if "call" in line:
            client, key, op, argument, reads = line["call"]
            given = tuple(argument) if isinstance(argument, list) else argument
            calls[line["id"]] = Operation(client, key, op, given, line["at"], reads=reads)
        elif "not done" in line:
            del calls[line["id"]]
        elif "id" in line:
            o, reply = calls[line["id"]], line["reply"]
            told = tuple(reply) if isinstance(reply, list) else reply
            calls[line["id"]] = replace(o, returned=line["at"], reply=told, index=line.get("index"))
    # A read that did not return changes nothing and tells nothing.
    return [o for o in calls.values() if o.returned is not None or not o.reads]


def _granted(lines: Iterable[Mapping[str, Any]]) -> Iterator[Operation]:
    """What clients were granted, as reads of the machine that began when they asked for it."""
    for line in lines:
        found = line.get("hold", line.get("took"))
        if found is not None:
            told = tuple(found) if isinstance(found, list) else found
            yield Operation(line["client"], "", "granted", tuple(line["claim"]), line["asked"],
                            line["got"], told, line["index"], reads=True)  # fmt: skip


def _holdings(lines: Iterable[Mapping[str, Any]]) -> list[Holding]:
    found: dict[int, Holding] = {}
    for line in lines:
        match line:
            case {"hold": token}:
                found[token] = Holding(line["client"], line["asked"], line["got"], token)
            case {"lost": token}:
                found[token] = replace(found[token], lost=line["at"])
            case {"giving": token}:
                found[token] = replace(found[token], gave=line["at"])
            case {"gave": token}:
                found[token] = replace(found[token], gave=line["at"], confirmed=True)
    return list(found.values())


def _takings(lines: Iterable[Mapping[str, Any]]) -> list[Taking]:
    found: dict[int, Taking] = {}
    for line in lines:
        if "took" in line:
            item, token, _ = line["took"]
            found[token] = Taking(
                line["client"], item, line["asked"], line["got"], token, lost=True
            )
        elif "ended" in line:
            token = line["ended"]
            found[token] = replace(found[token], ended=line["at"], done=line["done"], lost=False)
    return list(found.values())


def plan(count: int, seconds: float, seed: int, kinds: Iterable[str] = tuple(KINDS)) -> list[Run]:
    """So many runs, the kinds in turn."""
    names = list(kinds)
    return [Run(names[n % len(names)], seed + n // len(names), seconds) for n in range(count)]
