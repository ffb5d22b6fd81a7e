"""Asks the worker: one request at a time, each within a limit of time."""

import asyncio
import contextlib
import json
import subprocess
import sys
import weakref
from collections.abc import Mapping
from typing import Any

from roundelay.web.lab.errors import LaboratoryError
from roundelay.web.lab.worker import DONE

ANSWER_S_MAX = 30.0
"""How long an answer may take, in seconds. Less: the longest scenarios break off on a slow machine;
more: whoever comes next waits."""
WAITING_MAX = 12
"""How many requests may wait for the worker. Fewer: quick steps through a run lose diagrams; more:
answers come for questions that nobody has any more."""


class Laboratory:
    """The worker and those who wait for it. The worker is started when it is first asked, and anew
    after it was stopped."""

    def __init__(self, *, answer_s_max: float = ANSWER_S_MAX) -> None:
        self._answer_s_max = answer_s_max
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._end: weakref.finalize[..., Laboratory] | None = None

    async def ask(self, request: Mapping[str, Any]) -> bytes:
        """The answer as JSON; LaboratoryError if there is none, with the reason."""
        if self._waiting >= WAITING_MAX:
            raise LaboratoryError("the laboratory is busy; try again in a moment")
        self._waiting += 1
        try:
            async with self._turn:
                return await self._ask(request)
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """Stop the worker."""
        if self._end is not None:
            self._end()
        self._process = self._end = None

    async def _ask(self, request: Mapping[str, Any]) -> bytes:
        if self._process is None:
            self._process = self._start()
            self._end = weakref.finalize(self, _stop, self._process)
        late = asyncio.get_running_loop().call_later(self._answer_s_max, self._process.kill)
        try:
            outcome, body = await asyncio.to_thread(_exchange, self._process, request)
        except (OSError, EOFError):
            self.close()
            raise LaboratoryError(
                f"this takes more than {self._answer_s_max:g} s or too much memory; "
                "`roundelay sim run` has no such limit"
            ) from None
        except asyncio.CancelledError:
            self.close()  # Its answer would be taken for that of the next request.
            raise
        finally:
            late.cancel()
        if outcome != DONE:
            raise LaboratoryError(json.loads(body)["error"])
        return body

    def _start(self) -> "subprocess.Popen[bytes]":
        # In a session of its own: Ctrl-C is for the server, whose end closes the input.
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "roundelay.web.lab.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )


def _exchange(
    process: "subprocess.Popen[bytes]", request: Mapping[str, Any]
) -> tuple[bytes, bytes]:
    """The outcome and the body of an answer; EOFError if the worker ends before it has answered."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(request).encode() + b"\n")
    process.stdin.flush()
    outcome, _, length = process.stdout.readline().partition(b" ")
    if not length:
        raise EOFError
    body = process.stdout.read(int(length))
    if len(body) < int(length):
        raise EOFError
    return outcome, body


def _stop(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):  # What was still to be written to a dead process.
                pipe.close()
