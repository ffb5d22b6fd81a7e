"""Ctrl-C, as a terminal sends it to all processes of a command: one line, no traceback."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.patience import LIMIT_S, until

from roundelay.transport.address import free_addresses

pytestmark = pytest.mark.process

EXAMPLES = Path(__file__).parents[2] / "examples"


@contextmanager
def started(*words: str) -> "Iterator[subprocess.Popen[str]]":
    """A program in a process group of its own, whose input stays open."""
    process = subprocess.Popen(
        [sys.executable, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def interrupt(process: "subprocess.Popen[str]") -> str:
    """What it says to Ctrl-C."""
    os.killpg(process.pid, signal.SIGINT)
    process.wait(LIMIT_S)
    assert process.stderr is not None
    said = process.stderr.read()
    assert "Traceback" not in said, said
    # Python itself ends so that a shell sees the same where our line came inside its `exec`.
    assert process.returncode in (130, -signal.SIGINT), said
    return said


def children(process: "subprocess.Popen[str]") -> int:
    path = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return len(path.read_text().split())


def test_the_relay_ends_while_it_waits_for_a_line():
    with started(
        *("-m", "roundelay", "chaos", "--peer=a=127.0.0.1:5401", "--peer=b=127.0.0.1:5402")
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("{")
        assert interrupt(process) == "interrupted\n"


@pytest.mark.parametrize(
    "words",
    [
        ("sim", "swarm", "--protocol", "totem", "--seeds", "5000", "--jobs", "2"),
        ("claims", "totem", "--jobs", "2", "--seeds", "50"),
    ],
)
def test_a_command_ends_with_the_processes_that_work_for_it(words):
    with started("-m", "roundelay", *words) as process:
        until(lambda: children(process) >= 2, "workers")
        assert interrupt(process).endswith("interrupted\n")


def test_a_command_ends_while_it_is_still_loading():
    """Sent as soon as the interpreter has begun with our modules."""
    with started("-X", "importtime", "-m", "roundelay", "sim", "list") as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "argparse" in line:
                break
        assert interrupt(process).endswith("interrupted\n")


def test_a_command_ends_in_the_middle_of_a_class():
    """Python makes a RuntimeError of what is raised there, and nobody would know the cause."""
    program = """
import functools, os, signal
functools.cached_property.__set_name__ = lambda *_: os.kill(os.getpid(), signal.SIGINT)
from roundelay.__main__ import run
run()
"""
    with started("-c", program) as process:
        assert process.wait(LIMIT_S) == 130
        assert process.stderr is not None
        assert process.stderr.read() == "interrupted\n"


@pytest.mark.parametrize(("name", "begins"), [("hello.py", "waiting for"), ("chat.py", "-- here:")])
def test_an_example_ends(name, begins):
    port = free_addresses("a")["a"].rpartition(":")[2]
    with started(str(EXAMPLES / name), "a", port) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(begins)
        interrupt(process)
