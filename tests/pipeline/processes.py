"""Processes of this machine: who descends from whom, and who is left."""

import ctypes
import signal
import time
from pathlib import Path

PR_SET_PDEATHSIG = 1

Process = tuple[int, int]
"""A process id, and when the process was started, in clock ticks: ids are used again."""


def die_with_parent() -> None:
    """Called in a new process: the kernel kills it when the process that started it ends.

    For what would go on by itself if a test run is killed: servers, and whole test processes.
    """
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def descendants(ancestor: int) -> set[Process]:
    """Processes that this one started, and those that these started, and so on; not itself."""
    parents = dict(_running())
    found: set[Process] = set()
    ids = {ancestor}
    while True:
        more = {process for process, parent in parents.items() if parent in ids} - found
        if not more:
            return found
        found |= more
        ids |= {process[0] for process in more}


def left_of(processes: set[Process], limit_s: float) -> set[Process]:
    """Those that still run after so many seconds; returns as soon as there are none."""
    deadline = time.monotonic() + limit_s
    while True:
        left = processes & {process for process, _ in _running()}
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.1)


def command(process: Process) -> str:
    """What a process was started as; empty if it is gone."""
    try:
        return (Path("/proc") / str(process[0]) / "cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def _running() -> list[tuple[Process, int]]:
    """Every process that is not a zombie, with the id of its parent."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                text = (entry / "stat").read_text()
            except OSError:
                continue
            fields = text.rpartition(")")[2].split()
            if fields[0] != "Z":
                found.append(((int(entry.name), int(fields[19])), int(fields[1])))
    return found
