"""PySyncObj's dict and counter: `python -m roundelay.bench.structures.peer JOB`.

One thread drives the node, which is its fastest way. Entries are sent in batches if many writes are
outstanding, and at once if there is one, as its documentation advises for either.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pysyncobj import SyncObj, SyncObjConf
from pysyncobj.batteries import ReplCounter, ReplDict

from roundelay.bench.structures.talk import (
    KEYS,
    READS_AT_A_TIME,
    WARM_SHARE,
    Job,
    Task,
    cpu_s,
    say,
    tasks,
)

QUEUE = 100_000
"""Commands that may wait, more than any task has."""
NEVER = 1_000_000_000
"""After how many entries and seconds the log is compacted: never in a run, which is short."""
TICK_S = 0.01
"""How long the node waits for its sockets at a time."""


class Member:
    """One node."""

    def __init__(self, job: Job) -> None:
        self._conf = SyncObjConf(
            autoTick=False,
            commandsQueueSize=QUEUE,
            appendEntriesUseBatch=False,  # So that it can be switched later.
            logCompactionMinEntries=NEVER,
            logCompactionMinTime=NEVER,
            journalFile=str(Path(job.directory) / "journal"),
        )
        self._dict, self._counter = ReplDict(), ReplCounter()
        others = [address for node, address in job.addresses.items() if node != job.node]
        Path(job.directory).mkdir(parents=True, exist_ok=True)
        self._node = SyncObj(
            job.addresses[job.node], others, self._conf, consumers=[self._dict, self._counter]
        )

    def run(self) -> None:
        while not self._node.isReady() or self._node._getLeader() is None:
            self._node.doTick(TICK_S)
        say(ready=True)
        told = _Told()
        while (task := told.next()) is not None:
            while task is WAITING:
                self._node.doTick(TICK_S)
                task = told.next()
            if task is None:
                return
            assert isinstance(task, Task)
            say(**self._result(task))

    def _result(self, task: Task) -> dict[str, Any]:
        before = cpu_s()
        self._conf.appendEntriesUseBatch = task.outstanding > 1
        found: dict[str, Any]
        if task.do == "reads":
            found = {"reads_per_cpu_s": self._reads(task.seconds)}
        elif task.do == "map":
            keys = [f"k{n}" for n in range(KEYS)]
            found = self._writes(
                task, lambda n, done: self._dict.set(keys[n % KEYS], n, callback=done)
            )
        else:
            found = self._writes(task, lambda _, done: self._counter.add(1, callback=done))
        return {**found, "cpu_s": cpu_s() - before}

    def _writes(
        self, task: Task, write: Callable[[int, Callable[[object, int], None]], object]
    ) -> dict[str, Any]:
        begin = time.monotonic()
        counted, end = begin + WARM_SHARE * task.seconds, begin + task.seconds
        times: list[float] = []
        under_way = 0

        def submit(n: int) -> None:
            nonlocal under_way
            before = time.monotonic()

            def done(result: object, error: int) -> None:
                nonlocal under_way
                under_way -= 1
                now = time.monotonic()
                if not error and counted <= before and now <= end:
                    times.append(now - before)
                if now < end:
                    submit(n + task.outstanding)

            under_way += 1
            write(n, done)

        for n in range(task.outstanding):
            submit(n)
        while under_way or time.monotonic() < end:
            self._node.doTick(TICK_S)
        return {"writes": len(times), "times_s": times if task.outstanding == 1 else []}

    def _reads(self, seconds: float) -> float:
        get = self._dict.get
        count, begin = 0, time.process_time()
        while (passed := time.process_time() - begin) < seconds:
            for _ in range(READS_AT_A_TIME):
                get("k0")
            count += READS_AT_A_TIME
        return count / passed


WAITING = object()


class _Told:
    """What the leader says, read in a thread, since the node must be driven meanwhile."""

    def __init__(self) -> None:
        import queue
        import threading

        self._tasks: queue.Queue[Task | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for task in tasks():
            self._tasks.put(task)
        self._tasks.put(None)

    def next(self) -> object:
        """A task, `WAITING`, or None at the end."""
        return WAITING if self._tasks.empty() else self._tasks.get()


if __name__ == "__main__":
    Member(Job(**json.loads(sys.argv[1]))).run()
