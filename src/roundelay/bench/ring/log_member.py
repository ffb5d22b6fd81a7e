"""A node with a journal in a run: `python -m roundelay.bench.ring.log_member JOB`.

What it sends is appended, and what it reads are committed entries.
"""

import asyncio
import itertools
import sys
import time
from typing import Any

from roundelay import Entry, EntryBatch, QueueFullError, View
from roundelay.bench.ring.jobs import Job
from roundelay.bench.ring.member import TIME, TURN_BYTES, TURN_MESSAGES, Member, main, run
from roundelay.bench.ring.talk import say
from roundelay.bench.ring.workload import END, pool

READERS = 256
"""How many tasks read at the same time when the rate of reads is measured. Fewer: the time of one
read bounds the rate; more: memory."""
BEAT_S = 0.1
"""How often a node tells how long its log is, in seconds."""


class LogMember(Member):
    """One node with a journal, and what it measures."""

    async def run(self) -> dict[str, Any]:
        async with asyncio.TaskGroup() as tasks:
            watch = tasks.create_task(self._watch_views())
            match self._job.task:
                case "reads":
                    result = await self._reads()
                case "fill":
                    result = await self._fill()
                case "join":
                    result = await self._join()
                case _:
                    result = await super().run()
            watch.cancel()
        return result

    async def _watch_views(self) -> None:
        async for event in self._group.batches():
            if isinstance(event, View) and self._job.task not in ("fill", "join"):
                self._on_view(event)

    async def _joined(self) -> None:
        await super()._joined()
        await self._group.log.caught_up()

    # At full speed

    async def _send(self, until: float) -> None:
        log, size = self._group.log, self._job.cell.size
        messages = itertools.cycle(pool(self._job.node, size, self._job.cell.sizes))
        turn = max(TURN_MESSAGES, TURN_BYTES // size)
        while time.monotonic() < until:
            try:
                for payload in itertools.islice(messages, turn):
                    log.append_nowait(payload)
            except QueueFullError:
                await log.append(payload)
            else:
                await asyncio.sleep(0)
        self._sent = (await log.append(END)).number + 1

    async def _read_batches(self) -> None:
        ledger, due = self._ledger, 0
        async for batch in self._group.log.batches(0):
            assert isinstance(batch, EntryBatch)
            assert batch.index == due, "an entry out of its place"
            due += len(batch)
            ledger.add(batch.sender, batch.number, batch.payloads)
            if ledger.complete:
                return

    async def _read_messages(self) -> None:
        """Read entries one by one; each must be the next, and each batch must be complete."""
        ledger, due, end = self._ledger, 0, 0
        async for entry in self._group.log.read(0):
            assert isinstance(entry, Entry)
            assert entry.index == due, "an entry out of its place"
            if due == end:
                batch = entry.batch
                end += len(batch)
                ledger.add(batch.sender, batch.number, batch.payloads)
            due += 1
            if due == end and ledger.complete:
                return

    # At a slow pace

    async def _send_slowly(self, start: float) -> None:
        job, log = self._job, self._group.log
        filler = bytes(max(0, job.cell.size - TIME.size))
        for i in range(round(job.seconds * job.rate)):
            await asyncio.sleep(start + i / job.rate - time.monotonic())
            log.append_nowait(TIME.pack(time.monotonic()) + filler)
        self._sent = log.append_nowait(END).number + 1

    async def _time_messages(self, since: float) -> None:
        ended = 0
        async for entry in self._group.log.read(0):
            assert isinstance(entry, Entry)
            now = time.monotonic()
            self._ledger.order(entry.sender, entry.number)
            if entry.payload == END:
                ended += 1
                if ended == len(self._job.senders):
                    return
            elif (sent := TIME.unpack_from(entry.payload)[0]) >= since:
                self._latencies.append(now - sent)

    # Linearizable reads

    async def _reads(self) -> dict[str, Any]:
        """The first node reads alone, one read after the other; then all read at once."""
        job, log = self._job, self._group.log
        start = await self._started()
        times: list[float] = []
        if job.node in job.senders:
            while (before := time.monotonic()) < start + job.seconds:
                await log.sync()
                times.append(time.monotonic() - before)
        await asyncio.sleep(start + job.seconds + job.warm_s - time.monotonic())
        before, end, count = time.monotonic(), time.monotonic() + job.seconds, 0

        async def read() -> int:
            count = 0
            while time.monotonic() < end:
                await log.sync()
                count += 1
            return count

        count = sum(await asyncio.gather(*(read() for _ in range(READERS))))
        return {
            "latencies_s": times,
            "reads_per_s": count / (time.monotonic() - before),
            **self._proof(),
        }

    # Catching up

    async def _fill(self) -> dict[str, Any]:
        """Append what the leader wants, and tell how long the log is."""
        await self._started()
        work: asyncio.Task[None] | None = None
        beats = asyncio.create_task(self._beat())
        while (order := await asyncio.to_thread(self._orders.wait, "do")) != "end":
            if work is not None:
                work.cancel()
            if order != "stop":
                work = asyncio.create_task(self._append_bytes(order))
        beats.cancel()
        return self._proof()

    async def _append_bytes(self, due: int) -> None:
        """Append so many bytes, and tell when they are committed."""
        log, size = self._group.log, self._job.cell.size
        messages = itertools.cycle(pool(self._job.node, size, self._job.cell.sizes))
        receipt = None
        for i in range(max(1, due // size)):
            receipt = await log.append(next(messages))
            if i % TURN_MESSAGES == 0:
                await asyncio.sleep(0)
        assert receipt is not None
        await receipt
        say(filled=log.committed)

    async def _join(self) -> dict[str, Any]:
        """Catch up with the others."""
        start = time.monotonic()
        beats = asyncio.create_task(self._beat())
        await self._group.wait_for()
        await self._group.log.caught_up()
        say(caught={"seconds": time.monotonic() - start, "committed": self._group.log.committed})
        await asyncio.to_thread(self._orders.wait, "do")
        beats.cancel()
        return self._proof()

    async def _beat(self) -> None:
        if self._job.task == "load":
            await super()._beat()
        while True:
            status = self._group.status()["log"]
            say(
                beat={
                    "at_s": time.monotonic(),
                    "length": status["length"],
                    "committed": status["committed"],
                }
            )
            await asyncio.sleep(BEAT_S)


if __name__ == "__main__":
    run(main(Job.from_json(sys.argv[1]), LogMember))
