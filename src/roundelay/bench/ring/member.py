"""The process of one node of Roundelay in a run: `python -m roundelay.bench.ring.member JOB`."""

import asyncio
import cProfile
import itertools
import resource
import struct
import sys
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from roundelay import Batch, Group, QueueFullError, View, join
from roundelay.bench.ring.jobs import KEY_FILE, Cell, Job
from roundelay.bench.ring.talk import Orders, say
from roundelay.bench.ring.workload import END, Ledger, expected, outgoing
from roundelay.group.engines import describe
from roundelay.runtime.settings import DATAGRAM_BYTES, SETTINGS

GROUP = "bench"
FORMING_S = 30.0
"""How many seconds the nodes have to form one view; then the run fails."""
TURN_MESSAGES = 64
TURN_BYTES = 65_536
"""A sender yields to the event loop after TURN_MESSAGES messages, or after more of them if they are
smaller than TURN_BYTES together. If it yields less often, the node reads too late; if more often,
yielding takes the time."""

LOSSES = ("unsent", "buffer_full", "held_too_long", "refused")
"""Reasons for which a node has not got a datagram that another one sent."""

TOKEN_TAG = "TOKEN"
"""The tag of the frames that pass a token on."""

TIME = struct.Struct(">d")
"""When a message was handed over, at its beginning."""


class SplitError(Exception):
    """A view without some nodes was installed though all of them run."""


class Member:
    """One node and what it measures."""

    def __init__(self, job: Job, group: Group, orders: Orders) -> None:
        self._job = job
        self._group = group
        self._orders = orders
        in_one_order = describe(job.cell.engine).orders_all
        exact = expected(job.senders, job.cell, job.verify)
        self._ledger = Ledger(job.senders, exact, in_one_order=in_one_order)
        self._mark = (0.0, 0)
        """The time at which counting began, and the messages delivered before it."""
        self._whole = False
        """Whether the view of all nodes was seen."""
        self._before: dict[str, int] = {}
        """Counters when the group had formed: some processes were still starting before."""
        self._tokens_before = 0
        self._sent = 0
        self._latencies: list[float] = []
        self._answerer = job.senders[1] if job.cell.pattern == "conversation" else None

    async def run(self) -> dict[str, Any]:
        match self._job.task:
            case "load":
                return await self._load()
            case "pace":
                return await self._pace()
            case "idle":
                return await self._idle()
            case "stay":
                return await self._stay()
            case task:
                raise ValueError(f"a node without a journal has no task {task!r}")

    async def _joined(self) -> None:
        """Wait until all nodes are in one view."""
        await self._group.wait_for(timeout_s=FORMING_S)

    async def _started(self) -> float:
        """Wait until all nodes are in one view and the leader names the time to begin; returns that
        time."""
        await self._joined()
        self._before = self._troubles()
        self._tokens_before = self._tokens()
        say(ready=True)
        start: float = await asyncio.to_thread(self._orders.wait, "start")
        await asyncio.sleep(start - time.monotonic())
        return start

    # At full speed

    async def _load(self) -> dict[str, Any]:
        job = self._job
        start = await self._started()
        before = time.process_time()
        asyncio.get_running_loop().call_at(start + job.warm_s, self._set_mark)
        read = self._read_batches if job.cell.reading == "batches" else self._read_messages
        beats = asyncio.create_task(self._beat()) if job.beat_s else None
        async with asyncio.TaskGroup() as tasks:
            if job.node in job.senders:
                tasks.create_task(self._send(start + job.seconds))
            tasks.create_task(read())
        end = time.monotonic()
        if beats is not None:
            beats.cancel()
        since, already = self._mark
        return {
            "msgs_per_s": (self._ledger.count - already) / (end - since),
            "cpu_s": time.process_time() - before,
            **self._proof(),
        }

    def _set_mark(self) -> None:
        self._mark = (time.monotonic(), self._ledger.count)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self._job.beat_s)
            say(beat={"messages": self._ledger.count, "peak_mb": _peak_mb()})

    async def _send(self, until: float) -> None:
        """Send as fast as the queue accepts messages; wait while it is full."""
        group, size = self._group, self._job.cell.size
        safe = self._job.cell.service == "safe"
        messages = outgoing(self._job.node, self._job.cell, self._job.verify)
        turn = max(TURN_MESSAGES, TURN_BYTES // size)
        while time.monotonic() < until:
            try:
                for payload in itertools.islice(messages, turn):
                    group.send_nowait(payload, safe=safe)
            except QueueFullError:
                await group.send(payload, safe=safe)
            else:
                await asyncio.sleep(0)
        self._sent = (await group.send(END, safe=safe)).number + 1

    async def _read_batches(self) -> None:
        ledger = self._ledger
        async for batch in self._group.batches():
            if isinstance(batch, View):
                self._on_view(batch)
                continue
            ledger.add(batch.sender, batch.number, batch.payloads)
            if ledger.complete:
                return

    async def _read_messages(self) -> None:
        """Read messages one by one. Each must be the next of its batch, and each batch must be
        complete."""
        ledger = self._ledger
        batch: Batch | None = None
        size = due = 0
        async for event in self._group:
            if isinstance(event, View):
                self._on_view(event)
                continue
            if event.batch is not batch:
                assert due == size, "a batch was cut short"
                batch = event.batch
                size, due = len(batch), 0
                ledger.add(batch.sender, batch.number, batch.payloads)
            assert event.offset == due, "a message out of its place in the batch"
            due += 1
            if due == size and ledger.complete:
                return

    def _on_view(self, view: View) -> None:
        """Raise SplitError if a node is missing after all were in a view: no node fails in these
        runs, and what happened on the other side of a split cannot be verified."""
        whole = len(view.members) == len(self._job.addresses)
        if self._whole and not whole:
            raise SplitError
        self._whole = self._whole or whole

    # At a slow pace

    async def _pace(self) -> dict[str, Any]:
        job = self._job
        start = await self._started()
        async with asyncio.TaskGroup() as tasks:
            if job.node in job.senders and job.node != self._answerer:
                tasks.create_task(self._send_slowly(start))
            tasks.create_task(self._time_messages(start + job.warm_s))
        return {"latencies_s": self._latencies, **self._proof()}

    async def _send_slowly(self, start: float) -> None:
        """Each message begins with the time at which it was handed over."""
        job = self._job
        filler = bytes(max(0, job.cell.size - TIME.size))
        safe = job.cell.service == "safe"
        for i in range(round(job.seconds * job.rate)):
            await asyncio.sleep(start + i / job.rate - time.monotonic())
            self._group.send_nowait(TIME.pack(time.monotonic()) + filler, safe=safe)
        self._sent = self._group.send_nowait(END, safe=safe) + 1

    def _answer(self, payload: bytes) -> None:
        """Send the answer to a message of another node: as long, with its own time."""
        answer = payload
        if payload != END:
            answer = TIME.pack(time.monotonic()) + payload[TIME.size :]
        self._sent = self._group.send_nowait(answer) + 1

    async def _time_messages(self, since: float) -> None:
        job, ended = self._job, 0
        async for event in self._group:
            if isinstance(event, View):
                self._on_view(event)
                continue
            now = time.monotonic()
            self._ledger.order(event.sender, event.number)
            if self._answerer == job.node != event.sender:
                self._answer(event.payload)
            if event.payload == END:
                ended += 1
                if ended == len(job.senders):
                    return
            elif (sent := TIME.unpack_from(event.payload)[0]) >= since:
                self._latencies.append(now - sent)

    # Idle

    async def _idle(self) -> dict[str, Any]:
        self._group.ignore()
        await self._started()
        await asyncio.sleep(self._job.warm_s)
        before = time.process_time()
        await asyncio.sleep(self._job.seconds)
        cpu_s = time.process_time() - before
        return {"cpu_share": cpu_s / self._job.seconds, **self._proof()}

    # Views

    async def _stay(self) -> dict[str, Any]:
        reader = asyncio.create_task(self._tell_views())
        sender = asyncio.create_task(self._send_slowly(time.monotonic()))
        await asyncio.to_thread(self._orders.wait, "leave")
        for task in (reader, sender):
            task.cancel()
        return self._proof()

    async def _tell_views(self) -> None:
        """Tell of every view once a message was delivered in it, and of the pauses in deliveries
        since the last one that was told of."""
        view: View | None = None
        view_s = last_s = time.monotonic()
        pauses: list[tuple[float, float]] = []
        async for event in self._group.batches():
            now = time.monotonic()
            if isinstance(event, View):
                if not event.transitional:
                    view, view_s = event, now
                continue
            pauses.append((now, now - last_s))
            last_s = now
            if view is not None:
                say(view=list(view.members), at_s=view_s, pauses=pauses)
                view, pauses = None, []

    def _proof(self) -> dict[str, Any]:
        """What the leader compares, and counters that may explain a bad figure."""
        counters = self._group.status()["counters"]
        troubles = self._troubles()
        return {
            "digest": self._ledger.digest,
            "counts": self._ledger.counts(),
            "sent": self._sent,
            **{name: count - self._before.get(name, 0) for name, count in troubles.items()},
            "stalls": counters["stalls"],
            "packets": counters["packets_delivered"],
            "tokens": self._tokens() - self._tokens_before,
            "frames_sent": counters["frames_sent"],
            "peak_mb": _peak_mb(),
        }

    def _tokens(self) -> int:
        """Frames that this node has sent to pass a token on; 0 in engines without one."""
        frames: dict[str, int] = self._group.status()["frames"]
        return frames.get(TOKEN_TAG, 0)

    def _troubles(self) -> dict[str, int]:
        """What should not happen on one machine, or not without another: so far."""
        status = self._group.status()
        return {
            "suspicions": status["counters"]["suspicions"],
            "recoveries": status["frames"].get(describe(self._job.cell.engine).recovery_tag, 0),
            "lost": sum(status["drops"][name] for name in LOSSES),
        }


def _peak_mb() -> float:
    """The peak memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def fixed_settings(cell: Cell) -> dict[str, Any]:
    """The settings of a node that do not depend on where it runs."""
    told: dict[str, Any] = {
        "engine": cell.engine,
        "datagram_bytes": cell.datagram,
        "queue_bytes": cell.queue,
    }
    if cell.options:
        told["options"] = dict(option.split("=", 1) for option in cell.options)
    if cell.timeout_s is not None:
        told["timeout_s"] = cell.timeout_s
    return told


def unusual(variant: str) -> dict[str, Any]:
    """The settings that are not those of an application which sets none, in every cell. What a cell
    sets differently stands in its name."""
    return {
        name: told
        for name, told in fixed_settings(Cell()).items()
        if told != SETTINGS[name].default and told != DATAGRAM_BYTES["loopback"]
    }


RETAIN_BYTES = 256 << 20
"""How much of its log a node keeps in a soak, which appends for minutes."""


async def main(job: Job, kind: type[Member] = Member) -> None:
    orders = Orders()
    more = fixed_settings(job.cell)
    if job.cell.journal != "none":
        more["journal"] = Path(job.directory) / f"journal-{job.node}"
        more["fsync"] = job.cell.journal
        if job.beat_s:
            more["retain_bytes"] = RETAIN_BYTES
    elif job.directory:
        more["state"] = Path(job.directory) / f"state-{job.node}"
    if job.cell.trace:
        more["trace"] = Path(job.directory) / f"trace-{job.node}"
    if job.cell.check:
        more["check"] = True
    if job.cell.cipher != "none":
        more["key"] = Path(job.directory) / KEY_FILE
        more["cipher"] = job.cell.cipher
    say(joining=time.monotonic())
    async with join(GROUP, node=job.node, peers=job.addresses, **more) as group:
        # CPU time, so that waiting does not count.
        profiler = cProfile.Profile(time.thread_time, builtins=False) if job.profile else None
        try:
            if profiler is not None:
                profiler.enable()
            result = await kind(job, group, orders).run()
        finally:
            if profiler is not None:
                profiler.disable()
                profiler.dump_stats(Path(job.directory) / f"{job.node}.prof")
        say(result=result)
        if job.task != "stay":
            await asyncio.to_thread(orders.wait, "leave")


def _first(error: BaseException) -> BaseException:
    """The first exception of a group of exceptions."""
    return _first(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


def run(task: Coroutine[Any, Any, None]) -> None:
    """Run the process of a node; the leader is told what ends it."""
    try:
        asyncio.run(task)
    except Exception as e:
        cause = _first(e)
        if isinstance(cause, SplitError):
            say(split=True)
        else:
            say(failure=f"{type(cause).__name__}: {cause}")
        raise


if __name__ == "__main__":
    run(main(Job.from_json(sys.argv[1])))
