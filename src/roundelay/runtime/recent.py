"""What a node did lately, in memory, for those who watch it through its control socket.

Two things are kept, both bounded: what happened, in the words of the log, always; and rows of the
trace, from which diagrams are made, only while somebody asks for them.
"""

import asyncio
import time
from typing import Any, Protocol

from roundelay.core.ids import View
from roundelay.runtime.happened import Happened
from roundelay.runtime.instruments import Instruments
from roundelay.runtime.tracing import Tracing
from roundelay.runtime.watched import SLICE_NS, RecentRows, Subject, WatchedTracing
from roundelay.trace.recorder import Recorder
from roundelay.trace.schema import Row

UNASKED_S = 15.0
"""Seconds after the last request that rows are still made. Too small: a page in the background
loses them; too large: a node pays although nobody watches."""
ANSWER_ROWS_MAX = 1000
"""Rows in one answer. Too small: a diagram shows little; too large: the event loop of the node is
held up while they are encoded."""


class Observed(Protocol):
    """What a recorder needs to know of its node when it begins in the middle of its life."""

    @property
    def view(self) -> View | None: ...

    @property
    def instruments(self) -> Instruments: ...


class Recent:
    """What one node keeps for its watchers."""

    def __init__(self, subject: Subject, keep_s: float, happened: Happened) -> None:
        """With `keep_s` 0 no rows are kept."""
        self.happened = happened
        self._subject = subject
        self._rows = RecentRows(round(keep_s * 1e9)) if keep_s else None
        self._keep_s = keep_s
        self._asked = 0.0
        self._recording = False
        self._tee: _Tee | None = None
        """Of a node that writes a trace anyway."""

    def answer(self, request: dict[str, Any], node: Observed) -> dict[str, Any]:
        """The answer to a watcher. TypeError or ValueError if the request makes no sense."""
        since, at_ns, limit = (request.get(key) for key in ("since", "at_ns", "limit"))
        told: dict[str, Any] = {"now_ns": time.monotonic_ns(), "machine": self._subject.machine}
        if request.get("record") and self._rows is not None:
            self._record(node, self._rows)
        if since is not None:
            told["happened"] = self.happened.since(int(since))
            told["next"] = self.happened.number
        if at_ns is not None:
            rows = [] if self._rows is None else self._rows.near(int(at_ns), _limit(limit))
            told["columns"] = Row._fields
            told["rows"] = rows
        told["recording"] = self._recording
        return told

    def ease(self, node: Observed) -> None:
        """Called once a second: nobody may be watching any more."""
        unasked_s = time.monotonic() - self._asked
        if self._rows is not None and unasked_s > UNASKED_S + self._keep_s:
            self._rows.forget()
        if self._recording and unasked_s > UNASKED_S:
            self._recording = False
            if self._tee is not None:
                self._tee.end()
                self._tee = None
            else:
                node.instruments.tracing = None

    def _record(self, node: Observed, rows: RecentRows) -> None:
        """Rows are made from now on, if they are not made already."""
        self._asked = time.monotonic()
        if self._recording:
            return
        self._recording = True
        tracing = node.instruments.tracing
        if isinstance(tracing, Tracing):
            self._tee = _Tee(tracing.recorder, rows)
        else:
            node.instruments.tracing = WatchedTracing(self._subject, rows, node.view)


class _Tee:
    """Gives the rows of a trace to those who watch too, while the present slice has room: whole
    rows cost a node more than those that it writes."""

    def __init__(self, recorder: Recorder, rows: RecentRows) -> None:
        self._recorder = recorder
        self._rows = rows
        self._ended = False
        recorder.tee(self._append)

    def end(self) -> None:
        self._ended = True
        self._recorder.tee(None)

    def _append(self, row: Row) -> None:
        self._rows.append(row)
        if self._rows.full:
            self._recorder.tee(None)
            asyncio.get_running_loop().call_later(SLICE_NS / 1e9, self._go_on)

    def _go_on(self) -> None:
        if not self._ended:
            self._rows.make_room()
            self._recorder.tee(self._append)


def _limit(told: object) -> int:
    if told is None:
        return ANSWER_ROWS_MAX
    if type(told) is not int or told < 1:
        raise ValueError("no number of rows")
    return min(told, ANSWER_ROWS_MAX)
