"""Our structures: `python -m roundelay.bench.structures.member JOB`."""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import roundelay
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
from roundelay.structures import Counter, Map


async def _member(job: Job) -> None:
    replicas = roundelay.Replicas(
        "bench",
        node=job.node,
        peers=job.addresses,
        journal=job.directory,
        fsync=job.fsync,
    )
    numbers, counter = replicas.add("map", Map[int]), replicas.add("counter", Counter)
    async with replicas:
        await replicas.group.wait_for(primary=True)
        await numbers.set("k0", 0)
        say(ready=True)
        waiting = tasks()
        while (task := await asyncio.to_thread(next, waiting, None)) is not None:
            say(**await _result(task, numbers, counter))


async def _result(task: Task, numbers: "Map[int]", counter: Counter) -> dict[str, Any]:
    before = cpu_s()
    found: dict[str, Any]
    if task.do == "reads":
        found = {"reads_per_cpu_s": _reads(numbers, task.seconds)}
    elif task.do == "map":
        keys = [f"k{n}" for n in range(KEYS)]
        found = await _writes(task, lambda n: numbers.set(keys[n % KEYS], n))
    else:
        found = await _writes(task, lambda _: counter.add())
    return {**found, "cpu_s": cpu_s() - before}


async def _writes(task: Task, write: Callable[[int], Awaitable[object]]) -> dict[str, Any]:
    begin = time.monotonic()
    counted, end = begin + WARM_SHARE * task.seconds, begin + task.seconds
    times: list[float] = []

    async def writer(n: int) -> None:
        now = time.monotonic()
        while now < end:
            before = now
            await write(n)
            n += task.outstanding
            now = time.monotonic()
            if counted <= before and now <= end:
                times.append(now - before)

    await asyncio.gather(*(writer(n) for n in range(task.outstanding)))
    await asyncio.sleep(max(0.0, end - time.monotonic()))
    return {"writes": len(times), "times_s": times if task.outstanding == 1 else []}


def _reads(numbers: "Map[int]", seconds: float) -> float:
    get = numbers.get.stale
    count, begin = 0, time.process_time()
    while (passed := time.process_time() - begin) < seconds:
        for _ in range(READS_AT_A_TIME):
            get("k0")
        count += READS_AT_A_TIME
    return count / passed


if __name__ == "__main__":
    asyncio.run(_member(Job(**json.loads(sys.argv[1]))))
