"""What `roundelay lock` does when two things happen at once."""

import argparse
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from roundelay.cli import lock
from roundelay.cli.kv import common

SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


class Node:
    """A client of a node that tells of a loss when it is asked to, or when it is told anything."""

    def __init__(self) -> None:
        self.news = threading.Event()
        self.told: list[dict[str, Any]] = []
        self.read_end, self.write_end = os.pipe()

    def fileno(self) -> int:
        return self.read_end

    def answer(self, *, patient: bool) -> dict[str, Any]:
        assert self.news.wait(10.0)
        return {"lost": "others have it"} if not self.told else {"released": True}

    def tell(self, **message: Any) -> None:
        self.told.append(message)
        self.news.set()


@pytest.fixture
def node() -> Iterator[Node]:
    before = {number: signal.getsignal(number) for number in SIGNALS}
    made = Node()
    yield made
    for number, handler in before.items():
        signal.signal(number, handler)
    os.close(made.read_end)
    os.close(made.write_end)


def guarded(node: Node, *command: str) -> lock._Guarded:
    args = argparse.Namespace(name="door", on_loss="end", grace_s=0.1)
    return lock._Guarded(node, args, list(command), 7)  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_that_comes_before_the_command_runs_ends_it(node, number, monkeypatch):
    begin = subprocess.Popen

    def interrupted(*words: Any, **settings: Any) -> Any:
        signal.raise_signal(number)
        return begin(*words, **settings)

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    assert guarded(node, "sleep", "3").run() == 128 + number
    assert node.told == [{"do": "release"}]


class Asked(threading.Event):
    """An event at which whoever looks is held up, after it has looked."""

    def __init__(self, by: threading.Event) -> None:
        super().__init__()
        self.looked = by
        self.go = threading.Event()

    def is_set(self) -> bool:
        found = super().is_set()
        self.looked.set()
        self.go.wait(0.05)
        return found


def test_a_loss_that_is_told_as_the_command_ends_is_a_loss(node, monkeypatch):
    guard = guarded(node, "sh", "-c", "exit 0")
    looked = threading.Event()
    guard._ended = asked = Asked(looked)
    tell = node.tell

    def released(**message: Any) -> None:
        tell(**message)
        asked.go.set()

    monkeypatch.setattr(node, "tell", released)
    monkeypatch.setattr(lock, "RELEASE_S", 0.2)
    wait = subprocess.Popen.wait

    def ends(process: Any) -> int:
        node.news.set()
        assert looked.wait(10.0)
        return wait(process)

    monkeypatch.setattr(subprocess.Popen, "wait", ends)
    assert guard.run() == common.UNCERTAIN
    assert node.told == []
