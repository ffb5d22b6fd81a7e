"""Receipts of appended messages: the indexes that they get in the log.

Messages that are appended between two flushes share a *run*, which knows what became of all of
them. So a packet of a thousand entries costs one step here and not a thousand, and a receipt that
nobody keeps costs nothing once its run is settled.
"""

import asyncio
from bisect import bisect_right
from collections import deque
from collections.abc import Generator
from typing import TYPE_CHECKING, NamedTuple

from roundelay.core.effects import Appended
from roundelay.core.log import NAMED
from roundelay.runtime.errors import (
    ClosedError,
    RoundelayError,
    SessionForgottenError,
    UncertainError,
)

RUN_MESSAGES = 1024
"""Messages of one run at most. Smaller: more runs; larger: a receipt that the application keeps
keeps what is known of that many others."""


class Run:
    """Messages of one session with consecutive numbers."""

    __slots__ = ("_futures", "count", "done", "error", "first", "pieces")

    def __init__(self, first: int) -> None:
        self.first = first
        self.count = 0
        self.done = 0
        """Messages whose fate is known."""
        self.pieces: list[tuple[int, int, int | None]] = []
        """What is committed, in the order of numbers: the first number, how many, and the index of
        the first; None if the log does not remember it."""
        self.error: RoundelayError | None = None
        """Why nothing more will be known."""
        self._futures: dict[int, list[asyncio.Future[None]]] = {}
        """Of those who wait, by the number of their message."""

    @property
    def settled(self) -> bool:
        return self.done >= self.count

    def find(self, number: int) -> tuple[bool, int | None]:
        """Whether the message of this number is committed, and at which index."""
        at = bisect_right(self.pieces, number, key=_first_number)
        if at:
            first, count, index = self.pieces[at - 1]
            if number < first + count:
                return True, None if index is None else index + number - first
        return False, None

    def settle(self, first: int, count: int, index: int | None) -> None:
        """So many messages from the number `first` on are committed; some may be of other runs."""
        start, end = max(first, self.first), min(first + count, self.first + self.count)
        if start < end:
            self.pieces.append(
                (start, end - start, None if index is None else index + start - first)
            )
            self.done += end - start
            if self._futures:
                self._wake([number for number in self._futures if start <= number < end])

    def fail(self, error: RoundelayError) -> None:
        self.error = error
        self.done = self.count
        self._wake(list(self._futures))

    def wait(self, number: int, deadline: float | None) -> Generator[object, None, None]:
        """Wait until more is known of that message, or until the deadline, which is on the event
        loop's clock."""
        if self.error is not None:
            raise self.error
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._futures.setdefault(number, []).append(future)
        timer = None
        if deadline is not None:
            timer = loop.call_at(deadline, _set, future)
        try:
            yield from future
        finally:
            if timer is not None:
                timer.cancel()
            self._forget(number, future)
        if self.error is not None:
            raise self.error

    def _forget(self, number: int, future: "asyncio.Future[None]") -> None:
        """Whoever waited may have given up."""
        futures = self._futures.get(number, [])
        if future in futures:
            futures.remove(future)
            if not futures:
                del self._futures[number]

    def _wake(self, numbers: list[int]) -> None:
        for number in numbers:
            for future in self._futures.pop(number):
                _set(future)


def _first_number(piece: tuple[int, int, int | None]) -> int:
    return piece[0]


def _set(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


class _Fields(NamedTuple):
    run: Run
    number: int
    deadline: float | None


class _Receipt(tuple[Run, int, float | None]):
    """What both kinds of receipts have. They are tuples, because they come by the million."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def _run(self) -> Run: ...

        @property
        def number(self) -> int:
            """The message's number in its session."""

        @property
        def _deadline(self) -> float | None: ...

    else:
        _run, number, _deadline = _Fields.run, _Fields.number, _Fields.deadline

    @property
    def committed(self) -> bool:
        """Whether the message is in the log for ever, and known to be here."""
        return self._run.find(self.number)[0]

    @property
    def index(self) -> int | None:  # type: ignore[override]  # A tuple's method, of no use here.
        """Its index in the log; None while it is not committed."""
        return self._run.find(self.number)[1]

    def __repr__(self) -> str:
        known, index = self._run.find(self.number)
        if not known:
            return f"<LogReceipt of message {self.number}: not committed yet>"
        return f"<LogReceipt of message {self.number}: committed at {index}>"

    def _settled(self) -> Generator[object, None, int | None]:
        while True:
            known, index = self._run.find(self.number)
            if known:
                return index
            if self._deadline is not None:
                late = asyncio.get_running_loop().time() >= self._deadline
                if late and self._run.error is None:
                    raise UncertainError(
                        "the message was sent, and is not known to be committed in time; it may "
                        "still be: to repeat it without having it twice, use log.session(...)"
                    )
            yield from self._run.wait(self.number, self._deadline)


class LogReceipt(_Receipt):
    """Stands for a message that was appended. Awaiting it gives its index, once it is committed and
    known to be so here; UncertainError after the time-out that was given to `append`, or if the
    index was lost with a log that a snapshot replaced; ClosedError if the group is left before."""

    __slots__ = ()

    def __await__(self) -> Generator[object, None, int]:
        index = yield from self._settled()
        if index is None:
            raise UncertainError(
                "the message is committed, and at which index is not known here: this node was "
                "behind, and took the log from a peer's snapshot"
            )
        return index


class SessionReceipt(_Receipt):
    """Stands for a message of a named session. Awaiting it gives its index; or None if it had been
    committed before, and so long ago that the log does not remember where."""

    __slots__ = ()

    def __await__(self) -> Generator[object, None, int | None]:
        return self._settled()


class LogReceipts:
    """The runs of one node's messages that are not settled yet."""

    def __init__(self) -> None:
        self.runs: deque[Run] = deque()
        """Of own messages, in their order."""
        self._named: dict[int, dict[int, Run]] = {}
        """By session and number."""
        self._spans: dict[int, list[Run]] = {}
        """Consecutive messages of named sessions that were appended at once, by session."""
        self._error: ClosedError | None = None

    @property
    def waits(self) -> bool:
        """Whether something that was appended is not known to be committed."""
        return bool(self.runs or self._named or self._spans)

    def last(self) -> Run | None:
        """The run of the newest own messages, if it is not settled."""
        return self.runs[-1] if self.runs else None

    def own(self, number: int) -> Run:
        """The run that an own message with the next number belongs to."""
        runs = self.runs
        if not runs or (run := runs[-1]).count >= RUN_MESSAGES:
            run = Run(number)
            runs.append(run)
        assert number == run.first + run.count, "own messages are numbered one by one"
        run.count += 1
        return run

    def named(self, session: int, number: int) -> Run:
        """The run of one message of a named session; the same if it is appended twice."""
        runs = self._named.setdefault(session, {})
        run = runs.get(number)
        if run is None:
            run = runs[number] = Run(number)
            run.count = 1
        return run

    def span(self, session: int, number: int) -> Run:
        """A run for messages of a named session from this number on, which the caller counts as it
        appends them."""
        run = Run(number)
        self._spans.setdefault(session, []).append(run)
        return run

    def drop_span(self, session: int, run: Run) -> None:
        """Nobody waits for this run."""
        runs = self._spans.get(session, [])
        if run in runs:
            runs.remove(run)
            if not runs:
                del self._spans[session]

    def on_appended(self, effect: Appended) -> None:
        """These messages are committed, or their session is forgotten."""
        if effect.session & NAMED:
            for run in self._spans.get(effect.session, ()):
                self._on_span(effect, run)
            runs = self._named.get(effect.session)
            if runs is not None:  # Else nobody waits for them any more.
                self._on_named(effect, runs)
            return
        while self.runs:
            run = self.runs[0]
            if run.first >= effect.number + effect.count:
                return
            if effect.forgotten:
                run.fail(session_forgotten())
            else:
                run.settle(effect.number, effect.count, effect.index)
            if not run.settled:
                return
            self.runs.popleft()

    def _on_named(self, effect: Appended, runs: dict[int, Run]) -> None:
        end = effect.number + effect.count
        for number in [number for number in runs if effect.number <= number < end]:
            run = runs.pop(number)
            if effect.forgotten:
                run.fail(session_forgotten())
            else:
                run.settle(effect.number, effect.count, effect.index)
        if not runs:
            del self._named[effect.session]

    def _on_span(self, effect: Appended, run: Run) -> None:
        """Messages of one node and session are committed in the order of their numbers. The same
        may come twice, if they were appended twice."""
        if effect.forgotten:
            run.fail(session_forgotten())
            return
        number, end = max(effect.number, run.first + run.done), effect.number + effect.count
        if number < end:
            index = None if effect.index is None else effect.index + number - effect.number
            run.settle(number, end - number, index)

    def fail(self, error: ClosedError) -> None:
        """Nothing more will be known: every task that waits is told `error`."""
        self._error = error
        for run in self.runs:
            run.fail(error)
        for runs in self._named.values():
            for run in runs.values():
                run.fail(error)
        for spans in self._spans.values():
            for run in spans:
                run.fail(error)
        self._spans.clear()
        self.runs.clear()
        self._named.clear()


def session_forgotten() -> SessionForgottenError:
    return SessionForgottenError(
        "the log remembers this session no more, so the message was not taken; look whether it is "
        "there, and open another session"
    )
