"""A node under load, as the tests of real processes run it: `python worker.py SETTINGS`; without
arguments it forks such nodes.

SETTINGS is JSON: the node's settings, and `rate` (messages a second), `safe_every` (the first of so
many is safe), `receipts` (a file, to which every receipt of a safe message is written), `clock_s`
(by how much the clock is wrong) and `old_key_s` (how long an old key is accepted, if it has one).
With `appends` (a file) the messages are appended to the log, and every one that is confirmed is
written there; with `power` (a boot id) the journal loses what is not synced when the node is
killed, as if its machine had lost its power.
SIGUSR1 stops the load, SIGTERM the node.
"""

import asyncio
import json
import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TextIO

import roundelay
from roundelay.runtime.group import Group
from roundelay.runtime.log import opening
from roundelay.runtime.machine import Machine
from roundelay.runtime.settings import settings


async def main(told: dict[str, object]) -> None:
    rate = float(str(told.pop("rate")))
    safe_every = int(str(told.pop("safe_every")))
    receipts = Path(str(told.pop("receipts")))
    stop, quiet = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    loop.add_signal_handler(signal.SIGUSR1, quiet.set)
    clock_ns = int(float(str(told.pop("clock_s"))) * 1e9)
    old_key_s = told.pop("old_key_s")
    if told.get("key") is not None and old_key_s is not None:
        from roundelay.sealing import seal

        seal.OLD_KEY_S = float(str(old_key_s))
        seal.SWITCH_S = seal.OLD_KEY_S / 2
    appends, power = told.pop("appends", None), told.pop("power", None)
    machine = Machine(wall_ns=lambda: time.time_ns() + clock_ns)
    if power is not None:
        from roundelay.journal.files import HeldFiles

        opening.make_files = HeldFiles
        machine = replace(machine, boot=str(power))
    async with Group(settings(told), machine) as group:
        tasks = [asyncio.create_task(read(group))]
        if appends is None:
            tasks.append(asyncio.create_task(load(group, rate, safe_every, receipts, quiet)))
        else:
            tasks.append(asyncio.create_task(follow(group)))
            tasks.append(asyncio.create_task(append(group, rate, Path(str(appends)), quiet)))
        stopped = asyncio.create_task(stop.wait())
        done, _ = await asyncio.wait((stopped, *tasks), return_when=asyncio.FIRST_COMPLETED)
        for task in done - {stopped}:
            task.result()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def read(group: roundelay.Group) -> None:
    async for _ in group.batches():
        pass


async def load(
    group: roundelay.Group, rate: float, safe_every: int, receipts: Path, quiet: asyncio.Event
) -> None:
    incarnation = group.status()["incarnation"]
    with receipts.open("a") as file:
        async with asyncio.TaskGroup() as notes:  # None of them outlives the file.
            for number in range(sys.maxsize):
                if quiet.is_set():
                    await asyncio.Event().wait()
                safe = number % safe_every == 0
                receipt = await group.send(b"%d" % number, safe=safe)
                if safe:
                    notes.create_task(note(receipt, incarnation, file))
                await asyncio.sleep(1 / rate)


async def append(group: roundelay.Group, rate: float, appends: Path, quiet: asyncio.Event) -> None:
    status = group.status()
    name = f"{status['node']} {status['incarnation']}"
    with appends.open("a") as file:
        async with asyncio.TaskGroup() as notes:
            for number in range(sys.maxsize):
                if quiet.is_set():
                    await asyncio.Event().wait()
                payload = f"{name} {number}"
                receipt = await group.log.append(payload.encode())
                notes.create_task(confirm(receipt, payload, file))
                await asyncio.sleep(1 / rate)


async def confirm(receipt: roundelay.LogReceipt, payload: str, file: TextIO) -> None:
    file.write(json.dumps([payload, await receipt]) + "\n")
    file.flush()


async def follow(group: roundelay.Group) -> None:
    """Read the log from its beginning, for ever: a hole ends this node, damage only the reading."""
    due = None
    try:
        async for batch in group.log.batches("first"):
            if isinstance(batch, roundelay.Lossy):
                continue  # An operator went on with what was left.
            assert due is None or batch.index == due, f"{batch} instead of {due}"
            due = batch.index + len(batch)
    except roundelay.LogError as e:
        print(f"follow: {e}", file=sys.stderr, flush=True)  # noqa: T201  # For the test.
        await asyncio.Event().wait()


async def note(receipt: roundelay.Receipt, incarnation: int, file: TextIO) -> None:
    await receipt
    assert receipt.view is not None
    view = receipt.view
    entry = {
        "incarnation": incarnation,
        "number": receipt.number,
        "view": [*view.id],
        "transitional": view.transitional,
        "members": view.members,
    }
    file.write(json.dumps(entry) + "\n")
    file.flush()


def serve() -> None:
    """Fork a node for every line of the input, which holds its settings and the file for its log;
    write its process id to the output."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # Nobody waits for them.
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            told, log = json.loads(line)
            os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT), 2)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            asyncio.run(main(told))
            return
        print(pid, flush=True)  # noqa: T201  # For whoever asked.


if len(sys.argv) > 1:
    asyncio.run(main(json.loads(sys.argv[1])))
else:
    serve()
