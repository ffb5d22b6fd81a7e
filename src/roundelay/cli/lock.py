"""`roundelay lock NAME -- COMMAND`: runs a command while a node of this host holds a lock for it.

The connection to the node stands for the lock. The command inherits it, so a command that outlives
this program, because somebody killed it, keeps the lock until it ends.
"""

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from types import FrameType

from roundelay.cli import connection
from roundelay.cli.errors import UserError
from roundelay.cli.kv import common
from roundelay.runtime.client import Client, ClientError

GRACE_S = 10.0
"""How long a command may go on after SIGTERM before it is killed, in seconds. Too small: it cannot
clean up; too large: two commands may run at once for that long."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="of the lock")
    parser.add_argument(
        "command",
        nargs=argparse.REMAINDER,
        metavar="-- COMMAND",
        help="and its arguments; it finds the fencing token in $ROUNDELAY_TOKEN",
    )
    parser.add_argument(
        "--timeout",
        dest="timeout_s",
        type=common.seconds,
        metavar="SECONDS",
        help="how long to wait for the lock; 0: not at all (default: for ever)",
    )
    parser.add_argument(
        "--on-loss",
        choices=("end", "go-on"),
        default="end",
        help="what to do with the command when the lock may be lost (default: end it)",
    )
    parser.add_argument(
        "--grace",
        dest="grace_s",
        type=common.seconds,
        default=GRACE_S,
        metavar="SECONDS",
        help=f"between SIGTERM and SIGKILL (default: {GRACE_S:g})",
    )
    connection.configure(parser)


def run(args: argparse.Namespace) -> int:
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if command is args.command and command and command[0].startswith("-"):
        raise UserError(f"{command[0]} stands behind NAME; options come before it")
    if not command:
        raise UserError("say what to run: roundelay lock NAME -- COMMAND")
    try:
        with common.asking(args, "lock") as client:
            held = client.ask(
                patient=True,
                do="lock",
                name=args.name,
                label=" ".join(command)[:200],
                timeout_s=args.timeout_s,
            )
            return _Guarded(client, args, command, int(held["token"])).run()
    except common.Stopped as e:
        return e.code


class _Guarded:
    """A command that runs under a lock."""

    def __init__(
        self, client: Client, args: argparse.Namespace, command: list[str], token: int
    ) -> None:
        self._client = client
        self._args = args
        self._command = command
        self._environment = {
            **os.environ,
            "ROUNDELAY_LOCK": args.name,
            "ROUNDELAY_TOKEN": str(token),
        }
        self._own_group = not sys.stdin.isatty()
        """At a terminal, Ctrl-C must reach the command, so it stays in our process group."""
        self._process: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []
        """Signals that came before there was a process to pass them on to."""
        self._ended = threading.Event()
        self._released = threading.Event()
        self._lost = False
        """Whether the lock was lost before the command ended."""
        self._first = threading.Lock()
        """Held while it is decided which of them came first."""

    def run(self) -> int:
        """The exit code of the command, or that of a lost lock."""
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, self._pass_on)
        try:
            self._process = subprocess.Popen(
                self._command,
                env=self._environment,
                pass_fds=(self._client.fileno(),),
                process_group=0 if self._own_group else None,
            )
        except OSError as e:
            print(f"roundelay lock: {self._command[0]}: {e.strerror}", file=sys.stderr)
            return 127 if isinstance(e, FileNotFoundError) else 126
        for early in self._early:
            self._signal(early)
        listening = threading.Thread(target=self._listen, daemon=True)
        listening.start()
        code = self._process.wait()
        with self._first:
            self._ended.set()
        if self._lost and self._args.on_loss == "end":
            self._end_all()
        if not self._lost:
            with contextlib.suppress(ClientError):
                self._client.tell(do="release")
                self._released.wait(RELEASE_S)
        if self._lost and self._args.on_loss == "end":
            return common.UNCERTAIN
        return code if code >= 0 else 128 - code

    def _listen(self) -> None:
        """Wait for news of the lock."""
        try:
            answer = self._client.answer(patient=True)
            why = str(answer.get("lost", ""))
        except ClientError as e:
            why = str(e)
        with self._first:
            self._lost = bool(why) and not self._ended.is_set()
        if not self._lost:
            self._released.set()
            return
        print(
            f"roundelay lock: {self._args.name} may be lost: {connection.printable(why)}",
            file=sys.stderr,
            flush=True,
        )
        if self._args.on_loss == "end":
            self._signal(signal.SIGTERM)
            if not self._ended.wait(self._args.grace_s):
                self._signal(signal.SIGKILL)

    def _end_all(self) -> None:
        """The command has ended; what it started may go on."""
        assert self._process is not None
        group = self._process.pid
        until = time.monotonic() + self._args.grace_s
        with contextlib.suppress(ProcessLookupError):
            while self._own_group and time.monotonic() < until:
                os.killpg(group, 0)
                time.sleep(0.05)
            if self._own_group:
                os.killpg(group, signal.SIGKILL)

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        """The command decides what a signal to us means."""
        if self._process is None:
            self._early.append(number)
        elif number != signal.SIGINT or self._own_group:  # Else the terminal has told it.
            self._signal(number)

    def _signal(self, number: int) -> None:
        process = self._process
        if process is None or self._ended.is_set():
            return
        with contextlib.suppress(ProcessLookupError):
            if self._own_group:
                os.killpg(process.pid, number)
            else:
                process.send_signal(number)


RELEASE_S = 5.0
"""How long to wait until the lock is released, in seconds. Without a majority it cannot be, and
the node gives it up later."""
