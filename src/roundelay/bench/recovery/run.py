"""The leader: it starts nodes, drivers and a cluster, kills them, and has the rest judged."""

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Self

from roundelay.bench.recovery.driver import Job, checkpoint
from roundelay.bench.recovery.judge import faults, in_files, in_journal
from roundelay.bench.stream import NODES, Group, write
from roundelay.pipeline.standalone import executors, standalone
from roundelay.runtime.client import Client, ClientError

PER_BATCH = 50
"""Rows that are appended in one batch: few, so that many batches are under way when something is
killed."""
BYTES = 100
"""Of a row that is appended."""
LIMIT_S = 600.0
"""How long one thing may take, in seconds, before the run counts as stuck."""
PAUSE_S = 0.3
"""How long a driver goes on at most before it is killed, in seconds: about the time of a batch.
Shorter: it dies right behind a batch; longer: it has nothing left to append."""
LOOK_S = 0.02
"""How often is looked whether it is done, in seconds."""

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done."""

    rounds: int = 1
    rows: int = 3000
    """That a query appends in all."""
    rate: float = 100.0
    """Entries that a client appends by the way, per second."""
    fsync: str = "always"
    seed: int = 0
    """Of the moments at which drivers are killed."""


@dataclass(slots=True)
class Outcome:
    """What was done, and what is wrong."""

    plan: Plan
    node_kills: int = 0
    driver_kills: int = 0
    in_batches: int = 0
    """Drivers of these that were killed while a batch of a query was under way."""
    executors_lost: int = 0
    entries: int = 0
    """Of the log at the end."""
    appended_by_query: int = 0
    appended_by_client: int = 0
    files: int = 0
    """Of the table."""
    seconds: float = 0.0
    faults: list[str] = field(default_factory=list)
    """Empty if each entry is in the table once, and each row in the log once."""


class StuckError(Exception):
    """Something did not happen in time, or ended; the message says what."""


def run(plan: Plan, report: Report) -> Outcome:
    """StuckError if something does not happen in time."""
    start = time.monotonic()
    outcome = Outcome(plan)
    with tempfile.TemporaryDirectory(prefix="roundelay-recovery-") as name:
        home = Path(name)
        report("starting nodes")
        rows = write(home / "rows", plan.rows, BYTES, PER_BATCH * BYTES)
        with Group(home, plan.fsync) as group:
            job = Job(
                master="local[2]",
                journals=",".join(str(group.journal(node)) for node in NODES),
                controls=",".join(str(group.control(node)) for node in NODES),
                rows=str(rows),
                table=str(home / "table"),
                staging=str(home / "staging"),
                per_batch=PER_BATCH,
                rest=False,
            )
            run = _Run(plan, outcome, group, home, job, report, Random(plan.seed))
            with Load(group, plan.rate) as load:
                for number in range(plan.rounds):
                    run.round(number)
            files = run.rest()
        report("comparing")
        journals = {node: in_journal(group.journal(node) / "bench") for node in NODES}
        by_query = [entry.payload for entry in in_journal(rows)]
        outcome.entries = len(journals[NODES[0]])
        outcome.appended_by_query = len(by_query)
        outcome.appended_by_client = load.appended
        outcome.files = len(files)
        outcome.faults = faults(journals, in_files(files), [*by_query, *load.payloads()])
        if outcome.entries != len(by_query) + load.appended:
            outcome.faults.append(f"the log has {outcome.entries} entries, of whomever")
    outcome.seconds = time.monotonic() - start
    return outcome


@dataclass(frozen=True, slots=True)
class _Run:
    plan: Plan
    outcome: Outcome
    group: Group
    home: Path
    job: Job
    report: Report
    random: Random

    def round(self, number: int) -> None:
        victims = (NODES[2 * number % len(NODES)], NODES[(2 * number + 1) % len(NODES)])
        self.report(f"round {number + 1} of {self.plan.rounds}, on local[2]")
        with self._driver(self.job) as driver:
            self._lose_node(driver, victims[0])
        self.report(f"round {number + 1} of {self.plan.rounds}, on a cluster")
        logs = self.home / f"cluster-{number}"
        logs.mkdir()
        with standalone(logs) as url, self._driver(replace(self.job, master=url)) as driver:
            lost = min(executors(logs))
            os.kill(lost, signal.SIGKILL)
            self.outcome.executors_lost += 1
            self._go_on(driver)
            self._lose_node(driver, victims[1])

    def _lose_node(self, driver: "Driver", victim: str) -> None:
        """Kill a node, and then the driver; the node comes back."""
        self.group.kill(victim)
        self.outcome.node_kills += 1
        self._go_on(driver)
        time.sleep(self.random.uniform(0, PAUSE_S))
        driver.kill()
        self.outcome.driver_kills += 1
        self.outcome.in_batches += any(
            noted("offsets", place) > noted("commits", place) for place in self._places
        )
        self.group.start(victim)
        self.group.wait_open()

    def rest(self) -> list[str]:
        """Read and append what is left; the files of the table, once all nodes have the log."""
        self.report("reading and appending what is left")
        with Driver(replace(self.job, per_batch=1000, rest=True), self.home) as driver:
            files: list[str] = json.loads(driver.hear())
        limit = time.monotonic() + LIMIT_S
        while len({self.group.committed(node) for node in NODES}) > 1:
            if time.monotonic() > limit:
                raise StuckError("the nodes do not all have the log")
            time.sleep(LOOK_S)
        return files

    @contextmanager
    def _driver(self, job: Job) -> Iterator["Driver"]:
        with Driver(job, self.home) as driver:
            if driver.hear() != "started":
                raise StuckError("a driver did not start")
            self._go_on(driver)
            yield driver

    def _go_on(self, driver: "Driver") -> None:
        """Wait until both queries have done two more batches, if there are so many left."""
        before = [noted("commits", place) for place in self._places]
        appended = min(before[1] + 2, -(-self.plan.rows // PER_BATCH))

        def gone_on() -> bool:
            now = [noted("commits", place) for place in self._places]
            return now[0] >= before[0] + 2 and now[1] >= appended

        driver.until(gone_on, "batches of both queries")

    @property
    def _places(self) -> tuple[str, str]:
        return self.job.table, self.job.staging


def noted(kind: str, place: str) -> int:
    """How many batches Spark has noted as begun (`offsets`) or done (`commits`)."""
    found = Path(checkpoint(place), kind).glob("*")
    return sum(1 for path in found if path.name.isdecimal())


class Driver:
    """A process with both queries and the Java process behind it; a context manager that leaves
    neither behind."""

    def __init__(self, job: Job, home: Path) -> None:
        self._log = home / "driver.log"
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "roundelay.bench.recovery.driver", job.text()],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )

    def hear(self) -> str:
        """The next line that it says."""
        assert self._process.stdout is not None
        ready = select.poll()  # `select` takes no numbers above 1023.
        ready.register(self._process.stdout, select.POLLIN)
        if not ready.poll(LIMIT_S * 1000):
            raise StuckError(f"a driver said nothing for {LIMIT_S:.0f} s")
        line = self._process.stdout.readline().strip()
        if not line:
            raise StuckError(f"a driver ended: {self._said()}")
        return line

    def until(self, condition: Callable[[], bool], what: str) -> None:
        limit = time.monotonic() + LIMIT_S
        while not condition():
            if self._process.poll() is not None:
                raise StuckError(f"a driver ended: {self._said()}")
            if time.monotonic() > limit:
                raise StuckError(f"no {what} within {LIMIT_S:.0f} s")
            time.sleep(LOOK_S)

    def kill(self) -> None:
        """It and its Java, at once."""
        if self._process.returncode is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _said(self) -> str:
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "nothing was said"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        assert self._process.stdout is not None
        self._process.stdout.close()


class Load:
    """A client that appends to the log all the time, through whichever node takes it; a context
    manager that ends once all that it began is committed."""

    SESSION = "load"
    EACH = 10
    """Entries of one request."""
    PAUSE_S = 0.05
    """How long it waits after a node has failed it, in seconds."""

    def __init__(self, group: Group, rate: float) -> None:
        self._group = group
        self._between_s = self.EACH / rate
        self._over = threading.Event()
        self._given_up = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.appended = 0

    def payloads(self) -> list[bytes]:
        """All that it has appended."""
        return self._payloads(0, self.appended)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._given_up = kind is not None
        self._over.set()
        self._thread.join(LIMIT_S)
        if kind is None and self._thread.is_alive():
            raise StuckError("what a client had appended was not committed")

    def _payloads(self, first: int, count: int) -> list[bytes]:
        return [b"%s %09d" % (self.SESSION.encode(), first + n) for n in range(count)]

    def _run(self) -> None:
        turn = 0
        while not self._over.wait(self._between_s):
            made = self._payloads(self.appended, self.EACH)
            sizes = b"".join(len(payload).to_bytes(4) for payload in made)
            while not self._given_up:
                try:
                    with Client(self._group.control(NODES[turn % len(NODES)])) as client:
                        client.append_all(self.SESSION, self.appended, sizes, b"".join(made), 5.0)
                    self.appended += self.EACH
                    break
                except ClientError:
                    turn += 1
                    time.sleep(self.PAUSE_S)
