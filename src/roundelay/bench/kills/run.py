"""The leader of a soak with kills: its clients, the rounds, and the reading of the journals."""

import random
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from roundelay.bench.kills.damage import damage
from roundelay.bench.kills.jobs import GROUP, Job, client_payload, own_payload
from roundelay.bench.kills.judge import Held, Receipts, Verdict, judge
from roundelay.bench.kills.rounds import Kind, Round, draw
from roundelay.bench.ring.cluster import Cluster, RunError
from roundelay.bench.ring.runs import names
from roundelay.journal.directory import group_directory
from roundelay.journal.errors import BaseJournalError
from roundelay.journal.inspect import verify
from roundelay.journal.reader import Batch, Reader
from roundelay.transport.address import free_addresses

WINDOWS = (1, 1, 16, 64)
"""Clients, and how many appends of each are under way at most: some wait for each receipt, others
do not."""
PATIENCE_S = 1.0
"""How long a client waits for its oldest append before it tries another node, in seconds. Too
small: a busy node looks dead; too large: few appends are repeated while their first node lives."""
DOWN_S = 0.8
"""How long a node stays down at most, in seconds."""
BETWEEN_S = 0.6
"""How much time passes between the kills of one round at most, in seconds, unless all nodes are
killed at once."""
OPEN_S = 30.0
"""How many seconds the log may take to open, and a node to catch up; then the group counts as
stuck."""
FETCH_S = 1.0
"""How long it takes about to send a whole log to a node that lost its disk, in seconds. Too short:
the node is filled before its donors are killed; too long: rounds take long."""
FETCH_BYTES_PER_S_MIN = 1 << 17
"""How fast it is sent at least, while the log is short."""
LOOK_S = 0.02
"""How often clients are looked after, in seconds."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done."""

    nodes: int = 3
    rounds: int = 200
    engine: str = "totem"
    fsync: str = "always"
    seed: int = 1
    size: int = 100
    per_s: float = 500.0
    """Messages that each node appends by itself, per second."""


@dataclass(slots=True)
class Outcome:
    """What was done, how long the log was closed, and what the judge says."""

    plan: Plan
    rounds: int = 0
    rounds_of: dict[str, int] = field(default_factory=dict)
    """How many rounds of each kind there were."""
    kills: int = 0
    donors: int = 0
    """Of the kills those of nodes that just then filled another one's journal, or were about to."""
    damage_read: int = 0
    """Damaged records that no start found, but who read the log."""
    retries: int = 0
    """Appends that a client sent again, through another node."""
    outages_s: list[float] = field(default_factory=list)
    """Of each round, from the first kill until every client has had something confirmed since the
    last one."""
    stuck: str = ""
    """What did not happen in time; empty if all did."""
    verdict: Verdict | None = None

    @property
    def sound(self) -> bool:
        """Whether every promise was kept."""
        return not self.stuck and self.verdict is not None and self.verdict.kept


class Client:
    """One client: it appends under its own numbers, and repeats what its node leaves open."""

    def __init__(self, name: str, window: int, node: str) -> None:
        self.name = name
        self.window = window
        self.node = node
        self.next = 0
        self.waiting: dict[int, float] = {}
        """When each number that is not confirmed was last sent, in the order of numbers."""
        self.confirmed_s = 0.0
        """When something was confirmed last."""


class StuckError(Exception):
    """The group did not do in time what it has to do; the message says what."""


class Soak:
    """A context for one soak."""

    def __init__(self, plan: Plan, cluster: Cluster, journals: Path) -> None:
        """`journals` is a directory in which every node gets one of its own."""
        self.outcome = Outcome(plan)
        self.receipts = Receipts()
        self._plan = plan
        self._cluster = cluster
        self._journals = journals
        self._rounds = draw(names(plan.nodes), plan.fsync, plan.rounds, plan.seed)
        self._random = random.Random(plan.seed)
        self._members = names(plan.nodes)
        self._addresses = free_addresses(self._members)
        self._lives = dict.fromkeys(self._members, 0)
        self._boots = 0
        """How often all machines lost their power."""
        self._caught: set[str] = set()
        """Nodes that have caught up in their present life."""
        self._standing: dict[str, str] = {}
        """What nodes said last: that they are being filled, or that all have votes."""
        self._read: dict[str, bool] = {}
        """Nodes that were asked to read their whole log, and whether they could."""
        self._clients = {
            name: Client(name, window, self._members[i % plan.nodes])
            for i, window in enumerate(WINDOWS)
            for name in [f"client-{i}"]
        }
        self._quiet = False

    def run(self, report: Callable[[int, int], None]) -> Outcome:
        try:
            self._start(self._members)
            self._await_clients(since=time.monotonic())
            self.outcome.rounds_of = dict.fromkeys((r.kind for r in self._rounds), 0)
            for i, drawn in enumerate(self._rounds, 1):
                self._round(drawn)
                self.outcome.rounds = i
                self.outcome.rounds_of[drawn.kind] += 1
                report(i, self._plan.rounds)
            self._end()
        except StuckError as e:
            self.outcome.stuck = f"round {self.outcome.rounds + 1}: {e}"
        except RunError as e:
            self.outcome.stuck = f"round {self.outcome.rounds + 1}: {e}"
        return self.outcome

    # Rounds

    def _round(self, drawn: Round) -> None:
        chance, victims = self._random, list(drawn.victims)
        if drawn.kind != Kind.MINORITY:
            self._await_votes()
        if drawn.kind == Kind.POWER:
            self._hold_writes()
        if drawn.kind == Kind.DONORS:
            self._await_bytes(2 * FETCH_BYTES_PER_S_MIN)
        self._pass(chance.uniform(0, BETWEEN_S))
        first = time.monotonic()
        if drawn.kind == Kind.MINORITY:
            for victim in victims:
                self._pass(chance.uniform(0, BETWEEN_S))
                self._kill(victim)
        else:
            self._kill(*victims)
        self._harm(drawn)
        if drawn.alone and drawn.kind in (Kind.ALL, Kind.POWER):
            majority = len(victims) // 2 + 1
            self._start(victims[:majority])
            del victims[:majority]
        if drawn.alone:
            self._await_clients(since=time.monotonic())
        chance.shuffle(victims)
        for victim in victims:
            self._pass(chance.uniform(0, DOWN_S) if chance.random() < 0.5 else 0)
            self._start([victim])
        if drawn.kind == Kind.DONORS:
            self._kill_donors(*victims)
        if drawn.again:  # A node that has just begun to catch up is killed again.
            victim = chance.choice(victims)
            self._pass(chance.uniform(0, DOWN_S))
            self._kill(victim)
            self._start([victim])
        last = time.monotonic()
        self._await_clients(since=last)
        self.outcome.outages_s.append(time.monotonic() - first)
        self._await_caught()
        if drawn.kind == Kind.DAMAGED:
            self._read_back(*victims)

    def _harm(self, drawn: Round) -> None:
        """Do to the disks of killed nodes what the round says."""
        match drawn.kind:
            case Kind.POWER:
                self._boots += 1
            case Kind.WIPED | Kind.DONORS:
                for victim in drawn.victims:
                    shutil.rmtree(self._journals / victim)
            case Kind.DAMAGED:
                (victim,) = drawn.victims
                path = group_directory(self._journals / victim, GROUP)
                damage(path / "log", self._random)

    def _hold_writes(self) -> None:
        """Let every node begin a life in which its disk gets only what is synced."""
        self._kill(*self._members)
        self._start(self._members, hold=True)
        self._await_caught()
        self._await_votes()

    def _kill_donors(self, learner: str) -> None:
        """Kill the others, one after the other, as long as they fill this node's journal."""
        for donor in self._members:
            if donor == learner:
                continue
            self._standing.clear()
            limit = time.monotonic() + OPEN_S
            while learner not in self._caught and self._standing.get(learner) != "filling":
                self._look(limit, f"{learner} was not filled")
            if learner in self._caught:
                return
            self._kill(donor)
            self._start([donor])
            self.outcome.donors += 1

    def _read_back(self, node: str) -> None:
        """Let a node with a damaged journal read all of it. It finds by this what its start did not
        look at; then its next start repairs the journal."""
        self._cluster.tell_one(node, read=True)
        self._read.pop(node, None)
        limit = time.monotonic() + OPEN_S
        while node not in self._read:
            self._look(limit, f"{node} did not read its log")
        if not self._read[node]:
            self.outcome.damage_read += 1
            self._kill(node)
            self._start([node])
            self._await_caught()

    def _end(self) -> None:
        """Let everything be confirmed, and all nodes catch up and leave."""
        self._quiet = True
        self._cluster.tell(quiet=True)
        limit = time.monotonic() + OPEN_S
        while any(client.waiting for client in self._clients.values()):
            self._look(limit, "what clients had appended was not confirmed")
        self._caught.clear()
        self._cluster.tell(catch_up=True)
        self._await_caught()
        left: set[str] = set()
        self._cluster.tell(leave=True)
        limit = time.monotonic() + OPEN_S
        while left != set(self._members):
            name, words = self._hear(limit)
            if words.get("left"):
                left.add(name)
            elif not name:
                raise_after(limit, "not all nodes left in time")

    def _start(self, nodes: Sequence[str], *, hold: bool = False) -> None:
        plan = self._plan
        rate = max(FETCH_BYTES_PER_S_MIN, round(self._log_bytes / FETCH_S))
        for node in nodes:
            self._lives[node] += 1
            self._caught.discard(node)
            self._standing.pop(node, None)
            self._cluster.start(
                Job(
                    node,
                    self._addresses,
                    str(self._journals / node),
                    plan.engine,
                    plan.fsync,
                    self._lives[node],
                    plan.per_s,
                    plan.size,
                    f"boot {self._boots}",
                    hold,
                    rate,
                )
            )
            self._cluster.tell_one(node, catch_up=True)

    def _kill(self, *nodes: str) -> None:
        self._cluster.kill(*nodes)
        self.outcome.kills += len(nodes)

    # Waiting, while clients do their work

    def _pass(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self._serve(min(left, LOOK_S))

    def _await_clients(self, since: float) -> None:
        """Wait until something of every client was confirmed after `since`."""
        limit = time.monotonic() + OPEN_S
        while any(client.confirmed_s < since for client in self._clients.values()):
            self._look(limit, "clients had nothing confirmed")

    def _await_caught(self) -> None:
        limit = time.monotonic() + OPEN_S
        while self._caught != set(self._members):
            missing = ", ".join(sorted(set(self._members) - self._caught))
            self._look(limit, f"{missing} did not catch up")

    @property
    def _log_bytes(self) -> int:
        """A little less than what the log has in bytes."""
        return len(self.receipts.told) * self._plan.size

    def _await_bytes(self, size: int) -> None:
        """Wait until the log has so many bytes: to send it takes some time."""
        limit = time.monotonic() + OPEN_S
        while self._log_bytes < size:
            self._look(limit, f"less than {size:,} bytes were confirmed")

    def _await_votes(self) -> None:
        """Wait until all nodes have votes: only then any majority of them can go on, and the disks
        of the others are not needed."""
        self._standing.clear()
        limit = time.monotonic() + OPEN_S
        while any(self._standing.get(node) != "voting" for node in self._members):
            self._look(limit, "not all nodes got votes")

    def _look(self, limit: float, what: str) -> None:
        raise_after(limit, f"{what} within {OPEN_S:.0f} s")
        self._serve(LOOK_S)

    def _serve(self, seconds: float) -> None:
        """Take in what nodes say for so long, and let clients go on."""
        until = time.monotonic() + seconds
        for client in self._clients.values():
            self._move(client)
        while (left := until - time.monotonic()) > 0:
            self._hear(time.monotonic() + left)

    def _move(self, client: Client) -> None:
        """Let a client leave a node that is dead or silent, and append as much as it may."""
        now, running = time.monotonic(), self._cluster.running()
        if not running:
            return
        oldest = min(client.waiting.values(), default=now)
        if client.node not in running or now - oldest > PATIENCE_S:
            client.node = self._random.choice(running)
            for number in client.waiting:
                self._append(client, number)
                self.outcome.retries += 1
        while not self._quiet and len(client.waiting) < client.window:
            self._append(client, client.next)
            client.next += 1

    def _append(self, client: Client, number: int) -> None:
        client.waiting[number] = time.monotonic()
        self._cluster.tell_one(client.node, append=[client.name, number])

    def _hear(self, limit: float) -> tuple[str, dict[str, Any]]:
        """Take in the next thing that a node says; an empty name if it says nothing in time."""
        name, words = self._cluster.hear_within(limit - time.monotonic())
        if "acked" in words:
            self._note(name, words)
        elif words.get("life") == self._lives.get(name):
            self._note_state(name, words)
        return name, words

    def _note_state(self, node: str, words: dict[str, Any]) -> None:
        match words:
            case {"caught": _}:
                self._caught.add(node)
            case {"standing": str(standing)}:
                self._standing[node] = standing
            case {"read": bool(whole)}:
                self._read[node] = whole

    def _note(self, node: str, words: dict[str, Any]) -> None:
        size = self._plan.size
        for who, number, index in words["acked"]:
            client = self._clients[who]
            payload = client_payload(who, number, size)
            self.receipts.add(f"number {number} of {who}", payload, index)
            client.confirmed_s = max(client.confirmed_s, words["at_s"])
            if client.waiting.pop(number, None) is not None:
                self._move(client)
        for number, index in words["own"]:
            payload = own_payload(node, words["life"], number, size)
            name = f"number {number} of {node}, life {words['life']}"
            self.receipts.add(name, payload, index)


def raise_after(limit: float, what: str) -> None:
    """StuckError once the time is over."""
    if time.monotonic() > limit:
        raise StuckError(what)


def read(journals: Path, members: Sequence[str]) -> list[Held]:
    """What the journals of all nodes hold, as far as they know it to be committed."""
    return [_read(node, group_directory(journals / node, GROUP)) for node in members]


def _read(node: str, path: Path) -> Held:
    try:
        reader = Reader(path)
        reader.refresh()
    except BaseJournalError as e:
        held = Held(node)
        held.breaches.append(str(e))
        return held
    held = Held(node, reader.first)
    try:
        for batch in reader.read(reader.first):
            if isinstance(batch, Batch):
                held.add(batch.index, str(batch.term), batch.session, batch.number, batch.payloads)
            else:
                held.breaches.append(
                    f"{node} began anew at {batch.from_index}, which nobody wanted"
                )
        held.breaches += [str(damage)] if (damage := verify(path).damage) else []
    except BaseJournalError as e:
        held.breaches.append(str(e))
    finally:
        reader.close()
    return held


def soak(plan: Plan, journals: Path, report: Callable[[int, int], None]) -> Outcome:
    """Run a soak with journals below this directory, and judge them."""
    with Cluster("roundelay.bench.kills.member") as cluster:
        soak = Soak(plan, cluster, journals)
        outcome = soak.run(report)
    held = read(journals, names(plan.nodes))
    outcome.verdict = judge(soak.receipts, held, caught_up=not outcome.stuck)
    return outcome
