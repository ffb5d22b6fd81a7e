"""A real node's trace: one file for each of its lives, a check of its own rows, or both.

Rows are gathered in compact form and written by a thread. If every row counts, they are written by
the event loop instead, before anything leaves the node that follows from them.
"""

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from roundelay.core.ids import NodeId
from roundelay.group.engines import engine_config, envelope
from roundelay.runtime.core_setup import CoreSetup
from roundelay.runtime.settings import Settings
from roundelay.runtime.trace_thread import TraceThread
from roundelay.trace.compact_recorder import CompactRecorder
from roundelay.trace.manifest import Manifest, TraceError
from roundelay.trace.pieces import PieceWriter
from roundelay.trace.recorder import Append, Recorder
from roundelay.trace.schema import Row
from roundelay.trace.writer import Writer
from roundelay.wire.endpoint import Endpoint
from roundelay.wire.frame import Frame

if TYPE_CHECKING:
    from roundelay.runtime.checking import OwnCheck

BATCH_ROWS = 32_768
"""Rows that are written to the file at a time. Too small: every write costs time; too large: more
memory, 4 MB for each batch, and a killed node loses more rows."""

ROLL_SLACK_S = 0.5
"""Seconds by which a file may be rolled too early. Less than half the time between two rounds of
`housekeeping`: a round that comes a little early would leave rolling to the next one."""

UNCLOSED = "as its node was killed, or still runs, before its last rows were written"
"""Why rows may be missing; completes "the trace of node b ends early, ..."."""


class MonotonicClock:
    """The machine's clock that never goes back; the same for all processes of the machine."""

    read = staticmethod(time.monotonic_ns)

    @property
    def now(self) -> int:
        return time.monotonic_ns()


class Tracing:
    """Records what one life of a node did. With the setting `trace` rows are written to a file, in
    batches unless every row counts; with the setting `check` they are checked.

    Once it is open it raises nothing: a group matters more than its trace. If the disk fails, the
    trace ends there, and `trouble` says so.
    """

    def __init__(self, settings: Settings, setup: CoreSetup, version: str, machine: str) -> None:
        """Open the file, if there is to be one, or raise TraceError."""
        names = tuple(sorted(settings.peers))
        every = settings.trace_every_row
        name = f"{settings.node}-{setup.boot.incarnation}"
        writer = f"{names.index(settings.node)}.{setup.boot.incarnation}"
        manifest = Manifest(
            run=settings.run or settings.group,
            nodes=names,
            protocol=setup.engine,
            rules=setup.options.get("rules", "safe"),
            resilience=getattr(engine_config(setup.engine, setup.options), "resilience", None),
            envelope=envelope(setup.engine, setup.options),
            mode="views",
            revision=version,
            machine=machine,
            fsync="" if settings.journal is None else settings.policy.name,
            config={"options": setup.options, "timeout_s": setup.timeout_s},
        )
        self.check = _own_check(settings, manifest) if settings.check else None
        self._writer: Writer | None = None
        """Writes rows in the event loop."""
        self._thread: TraceThread | None = None
        """Writes what `_compact` has gathered."""
        self._compact: CompactRecorder | None = None
        self._divisible = False
        """Whether rows that are written outlive a node that is killed; other files are lost."""
        self._roll_s = settings.trace_roll_s
        self._rolled = time.monotonic()
        about: tuple[Mapping[NodeId, int], NodeId, int, MonotonicClock] = (
            {name: number for number, name in enumerate(names)},
            settings.node,
            setup.boot.incarnation,
            MonotonicClock(),
        )
        net = settings.trace_frames
        if settings.trace is not None:
            # A node that may be killed writes lines: a file of lines can be read up to its end.
            unclosed = {} if every else {writer: f"{UNCLOSED} ({name})"}
            made = _writer(settings, manifest, name, unclosed)
            self._divisible = made.divisible
            if every:
                self._writer = made
            else:
                self._thread = TraceThread(made, f"{settings.group}/{settings.node}")
                also = None if self.check is None else self.check.append
                self._compact = CompactRecorder(self.flush, BATCH_ROWS, *about, net=net, also=also)
        self.recorder: Recorder = self._compact or Recorder(self._sink(), *about, net=net)
        self.trouble: Callable[[str], None] = lambda sentence: None
        """Called with a sentence when the trace ends early."""
        self._every = every
        self._pending = False
        self._over = False
        """Whether nothing more is written ..."""
        self._ended = ""
        """... and if the disk failed, how."""

    def _sink(self) -> Append:
        """Where rows go that are not gathered."""
        if self.check is None:
            return self._append
        return self.check.append if self._writer is None else self._append_and_check

    def _append(self, row: Row) -> None:
        if self._writer is not None:
            self._pending = True
            self._do(partial(self._writer.append, row))

    def _append_and_check(self, row: Row) -> None:
        self._append(row)
        assert self.check is not None
        self.check.append(row)

    def arrive(self, frame: Frame[Any], endpoint: Endpoint[Any]) -> None:
        """A frame was admitted: the rows that follow are its consequences."""
        origin, recorder = frame.origin, self.recorder
        recorder.lamport = endpoint.lamport
        tag = endpoint.codec.tags[frame.tag] if recorder.net else ""
        recorder.arrive(origin.node, origin.incarnation, frame.number, tag, frame.size)

    def send(self, to: NodeId | None, tag: int, size: int, endpoint: Endpoint[Any]) -> None:
        """A frame was encoded and is about to leave."""
        recorder = self.recorder
        recorder.lamport = endpoint.lamport
        if recorder.net:
            recorder.send(to, endpoint.frame_number, endpoint.codec.tags[tag], size)
        self.write_out()

    def write_out(self) -> None:
        """Called before anything leaves this node: if every row counts, rows are written first."""
        if self._every and self._pending:
            self.flush()

    def flush(self) -> None:
        """Write the rows so far, or have them written."""
        self._pending = False
        batch = None if self._compact is None else self._compact.take()
        if self._thread is not None and batch is not None:
            self._do(partial(self._thread.write, batch))
        elif self._writer is not None:
            self._do(self._writer.flush)

    def save(self) -> None:
        """Called once a second: what is written now is not lost if the node is killed."""
        if self._divisible:
            self.flush()
        now = time.monotonic()
        if self._roll_s is None or now - self._rolled < self._roll_s - ROLL_SLACK_S:
            return
        self._rolled = now
        if self._thread is not None:
            self.flush()
            self._do(self._thread.roll)
        elif isinstance(self._writer, PieceWriter):
            self._do(self._writer.roll)

    def close(self) -> None:
        """End the trace with its manifest: this node stopped as it should."""
        self.recorder.crash()
        self.flush()
        if self._thread is not None:
            self._do(self._thread.close)
        elif self._writer is not None:
            self._do(self._writer.close)
        self._over = True
        if self.check is not None:
            self.check.close()

    def status(self) -> dict[str, Any] | None:
        """How the writing goes, as a part of the status document; None if no trace is written."""
        if self._thread is None and self._writer is None:
            return None
        waits, waited_s = (0, 0.0) if self._thread is None else self._thread.waited
        return {"waits": waits, "waited_s": round(waited_s, 3), "ended": self._ended}

    def _do(self, work: Callable[[], object]) -> None:
        if self._over:
            return
        try:
            work()
        except TraceError as e:
            self._over, self._ended = True, str(e)
            if self._writer is not None:
                self._writer.abandon()
            self.trouble(f"the trace ends here: {e}")


def _writer(
    settings: Settings, manifest: Manifest, name: str, unclosed: Mapping[str, str]
) -> Writer:
    """What writes the file; Parquet has checksums, so that its rows need no hash."""
    assert settings.trace is not None
    every = settings.trace_every_row
    told: Any = {
        "name": name,
        "format": "jsonl" if every else "auto",
        "unclosed": unclosed,
        "batch_rows": BATCH_ROWS,
    }
    if settings.trace_roll_s is not None:
        return PieceWriter(settings.trace, manifest, **told)
    return Writer(settings.trace, manifest, hashed=None, **told)


def _own_check(settings: Settings, manifest: Manifest) -> "OwnCheck":
    from roundelay.runtime.checking import OwnCheck  # Nodes that do not check start faster without.

    name, traced = f"{settings.group}/{settings.node}", settings.trace is not None
    return OwnCheck(name, manifest, traced=traced)
