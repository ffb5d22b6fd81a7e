"""The process of one node in a soak with kills: `python -m roundelay.bench.kills.member JOB`.

It says `acked`, lists of a client, a number and an index, and `own`, lists of an own number and an
index; its `standing`: `filling` while it fetches what its journal lacks, `voting` while all nodes
have votes; `caught` when it was asked to catch up; `read` when it was asked to read its whole log,
and whether it could; and `left` before it ends in good order.
"""

import asyncio
import contextlib
import json
import os
import sys
import threading
import time
from typing import Any

from roundelay import Group, LogError
from roundelay.bench.kills.jobs import GROUP, SEGMENT_BYTES, Job, client_payload, own_payload
from roundelay.bench.ring.member import run
from roundelay.bench.ring.talk import say
from roundelay.journal.files import HeldFiles
from roundelay.runtime.log import opening
from roundelay.runtime.machine import Machine
from roundelay.runtime.settings import settings

BEAT_S = 0.02
"""How often what was confirmed is told, in seconds. Too small: the leader is busy with lines; too
large: a kill hides what was confirmed shortly before."""
TURN_S = 0.01
"""How often a node appends messages of its own, in seconds."""
WAITING_MAX = 2_000
"""Own messages that are not committed yet, at most."""


class Member:
    """One node, its clients' sessions, and its own appends."""

    def __init__(self, job: Job, group: Group) -> None:
        self._job = job
        self._group = group
        self._queues: dict[str, asyncio.Queue[int]] = {}
        """Numbers that each client wants to have appended."""
        self._acked: list[tuple[str, int, int | None]] = []
        self._own: list[tuple[int, int]] = []
        self._waiting = 0

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:

            def hear(words: dict[str, Any]) -> None:
                match words:
                    case {"append": [client, number]}:
                        if client not in self._queues:
                            self._queues[client] = asyncio.Queue()
                            work.append(tasks.create_task(self._serve(client)))
                        self._queues[client].put_nowait(number)
                    case {"quiet": _}:
                        load.cancel()
                    case {"catch_up": _}:
                        work.append(tasks.create_task(self._catch_up()))
                    case {"read": _}:
                        work.append(tasks.create_task(self._read()))
                    case {"leave": _}:
                        ended.set()

            load = tasks.create_task(self._append())
            work = [load, tasks.create_task(self._tell())]
            threading.Thread(target=_listen, args=(loop, hear), daemon=True).start()
            await ended.wait()
            for task in work:
                task.cancel()
        self._say_acked()

    # Clients

    async def _serve(self, client: str) -> None:
        """Append what a client wants, in its order, without waiting for what is under way."""
        queue = self._queues[client]
        session = await self._group.log.session(client)
        async with asyncio.TaskGroup() as waiting:
            while True:
                number = await queue.get()
                payload = client_payload(client, number, self._job.size)
                receipt = await session.append(payload, number=number)
                waiting.create_task(self._confirm(client, number, receipt))

    async def _confirm(self, client: str, number: int, receipt: Any) -> None:
        self._acked.append((client, number, await receipt))

    # Own messages

    async def _append(self) -> None:
        """Append at a steady rate, as far as messages get committed."""
        job, number, due = self._job, 0, 0.0
        async with asyncio.TaskGroup() as waiting:
            while True:
                await asyncio.sleep(TURN_S)
                due = min(due + TURN_S * job.per_s, WAITING_MAX - self._waiting)
                while due >= 1:
                    payload = own_payload(job.node, job.life, number, job.size)
                    receipt = await self._group.log.append(payload)
                    self._waiting += 1
                    waiting.create_task(self._confirm_own(number, receipt))
                    number, due = number + 1, due - 1

    async def _confirm_own(self, number: int, receipt: Any) -> None:
        index = await receipt
        self._waiting -= 1
        self._own.append((number, index))

    # What is told

    async def _tell(self) -> None:
        while True:
            await asyncio.sleep(BEAT_S)
            self._say_acked()
            standing = self._standing()
            if standing:
                say(standing=standing, life=self._job.life)

    def _standing(self) -> str:
        log = self._group.log
        if log.condition == "able" and len(log.voters) == len(self._job.addresses):
            return "voting"
        return "filling" if log.condition == "filling" else ""

    def _say_acked(self) -> None:
        if self._acked or self._own:
            say(acked=self._acked, own=self._own, life=self._job.life, at_s=time.monotonic())
            self._acked, self._own = [], []

    async def _catch_up(self) -> None:
        await self._group.log.caught_up()
        say(caught=self._group.log.committed, life=self._job.life)

    async def _read(self) -> None:
        """Read all that is committed, from the files."""
        log = self._group.log
        end, index = log.committed, 0
        try:
            async for batch in log.batches(0):
                index += len(batch)
                if index >= end:
                    break
        except LogError:
            say(read=False, life=self._job.life)
        else:
            say(read=True, life=self._job.life)


def _listen(loop: asyncio.AbstractEventLoop, hear: Any) -> None:
    """Hand over what the leader says. The process ends if the leader is gone."""
    for line in sys.stdin:
        with contextlib.suppress(RuntimeError):  # The loop is closed.
            loop.call_soon_threadsafe(hear, json.loads(line))
    os._exit(1)


async def main(job: Job) -> None:
    if job.holds_writes:
        opening.make_files = HeldFiles
    told = {
        "group": GROUP,
        "node": job.node,
        "peers": job.addresses,
        "engine": job.engine,
        "journal": job.journal,
        "fsync": job.fsync,
        "segment_bytes": SEGMENT_BYTES,
        "catchup_bytes_per_s": job.catchup_bytes_per_s,
    }
    async with Group(settings(told), Machine(boot=job.boot)) as group:
        group.ignore()
        await Member(job, group).run()
    say(left=True, life=job.life)


if __name__ == "__main__":
    run(main(Job.from_json(sys.argv[1])))
