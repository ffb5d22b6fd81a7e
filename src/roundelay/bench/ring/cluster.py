"""Starts the processes of a run, talks to them, and ends them even if the run fails."""

import contextlib
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

EXIT_S = 10.0
"""How many seconds a process has to leave before it is killed."""


class Task(Protocol):
    """What one process is to do."""

    @property
    def node(self) -> str:
        """The name of the process."""
        ...

    def to_json(self) -> str: ...


class RunError(Exception):
    """A run failed; the message says why in a sentence."""


class SplitError(RunError):
    """A node suspected others that were running all the time."""


class Cluster:
    """The processes of a run; a context manager that leaves none of them behind."""

    def __init__(self, module: str, disk: Path | None = None) -> None:
        """Files of the nodes go to a new directory below `disk`, or below that for temporary
        files."""
        self.module = module
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self._listeners: dict[str, threading.Thread] = {}
        self._leaving: set[int] = set()
        """Processes that were told to leave."""
        self._said: queue.Queue[tuple[str, dict[str, Any] | None]] = queue.Queue()
        """Pairs of a process and what it said; None if it ended."""
        self._scratch = tempfile.TemporaryDirectory(prefix="roundelay-bench-", dir=disk)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.kill(*self._processes)
        self._scratch.cleanup()

    @property
    def directory(self) -> Path:
        """The directory for files of the nodes; it is removed at the end."""
        return Path(self._scratch.name)

    def start(self, job: Task) -> None:
        """Start a process for this node. It replaces an earlier one of that name."""
        errors = (self.directory / f"{job.node}.log").open("w")
        with errors:
            process = subprocess.Popen(
                [sys.executable, "-m", self.module, job.to_json()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, "PYTHONHASHSEED": "0"},  # See `Ledger`.
            )
        self._processes[job.node] = process
        listener = threading.Thread(target=self._listen, args=(job.node, process), daemon=True)
        self._listeners[job.node] = listener
        listener.start()

    def tell(self, **words: Any) -> None:
        """Say this to every process."""
        for name in self._processes:
            self.tell_one(name, **words)

    def tell_one(self, name: str, **words: Any) -> None:
        """Say this to one process."""
        process = self._processes[name]
        if "leave" in words:
            self._leaving.add(process.pid)
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # `hear` reports its end.
            process.stdin.write(json.dumps(words) + "\n")
            process.stdin.flush()

    def expect(self, word: str, names: Iterable[str], limit_s: float) -> dict[str, Any]:
        """Wait until each of these processes has said `word`, and return what they said with it.
        Everything else that they say meanwhile is ignored."""
        missing = dict.fromkeys(names)
        heard: dict[str, Any] = {}
        while missing:
            name, words = self.hear(limit_s)
            if word in words and name in missing:
                heard[name] = words[word]
                del missing[name]
        return heard

    def hear(self, limit_s: float) -> tuple[str, dict[str, Any]]:
        """The next thing that any process says. Raises RunError if a process ended instead, or if
        nothing is said for `limit_s` seconds."""
        name, words = self.hear_within(limit_s)
        if not name:
            raise RunError(f"no node had anything to say for {limit_s:.0f} seconds")
        return name, words

    def hear_within(self, limit_s: float) -> tuple[str, dict[str, Any]]:
        """The same, but silence is an empty name and no words."""
        try:
            name, words = self._said.get(timeout=max(0.0, limit_s))
        except queue.Empty:
            return "", {}
        if words is None:
            raise RunError(f"node {name} ended early: {self._last_words(name)}")
        if "split" in words:
            raise SplitError(f"node {name} lost sight of others that run: a false suspicion")
        if "failure" in words:
            raise RunError(f"node {name} failed: {words['failure']}")
        return name, words

    def kill(self, *names: str) -> float:
        """End processes by `kill -9`, all in one moment; returns the time of that. What they said
        before can be heard then."""
        processes = {name: self._processes.pop(name) for name in names}
        at = time.monotonic()
        for process in processes.values():
            process.kill()
        for name, process in processes.items():
            process.wait()
            self._listeners.pop(name).join()
            for pipe in (process.stdin, process.stdout):
                assert pipe is not None
                with contextlib.suppress(BrokenPipeError):  # Words that it did not take in.
                    pipe.close()
        return at

    def leave(self) -> None:
        """Tell every process to leave, and wait for its end."""
        self.tell(leave=True)
        for process in self._processes.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(EXIT_S)

    def running(self) -> list[str]:
        """The processes that were started and not killed."""
        return list(self._processes)

    def _listen(self, name: str, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            if line.endswith("\n"):  # Else it was killed in the middle of a word.
                self._said.put((name, json.loads(line)))
        # Else it was killed on purpose, or told to leave.
        if self._processes.get(name) is process and process.pid not in self._leaving:
            self._said.put((name, None))

    def _last_words(self, name: str) -> str:
        lines = (self.directory / f"{name}.log").read_text().strip().splitlines()
        return lines[-1] if lines else "it left no message"
