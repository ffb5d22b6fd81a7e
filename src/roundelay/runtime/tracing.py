"""A real node's trace: one file for each of its lives, a check of its own rows, or both."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from roundelay.core.ids import NodeId
from roundelay.group.engines import engine_config, envelope
from roundelay.runtime.core_setup import CoreSetup
from roundelay.runtime.settings import Settings
from roundelay.trace.manifest import Manifest, TraceError
from roundelay.trace.recorder import Append, Recorder
from roundelay.trace.schema import Row
from roundelay.trace.writer import Writer
from roundelay.wire.endpoint import Endpoint
from roundelay.wire.frame import Frame

if TYPE_CHECKING:
    from roundelay.runtime.checking import OwnCheck

BATCH_ROWS = 16_384
"""Rows that are written to the file at a time. Too small: every write costs time; too large: more
memory, and a killed node loses more rows."""

UNCLOSED = "as its node was killed, or still runs, before its last rows were written"
"""Why rows may be missing; completes "the trace of node b ends early, ..."."""


class MonotonicClock:
    """The machine's clock that never goes back; the same for all processes of the machine."""

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
        if settings.trace is not None:
            self._writer = Writer(
                settings.trace,
                manifest,
                # A node that may be killed writes lines: a file of lines can be read up to its end.
                format="jsonl" if every else "auto",
                name=name,
                batch_rows=BATCH_ROWS,
                unclosed={} if every else {writer: f"{UNCLOSED} ({name})"},
            )
        self.recorder = Recorder(
            self._sink(),
            {name: number for number, name in enumerate(names)},
            settings.node,
            setup.boot.incarnation,
            MonotonicClock(),
            net=settings.trace_frames,
        )
        self.trouble: Callable[[str], None] = lambda sentence: None
        """Called with a sentence when the trace ends early."""
        self._every = every
        self._pending = False

    def _sink(self) -> Append:
        """Where rows go."""
        if self.check is None:
            return self._append
        return self.check.append if self._writer is None else self._append_and_check

    def _append(self, row: Row) -> None:
        if self._writer is None:
            return
        self._pending = True
        try:
            self._writer.append(row)
        except TraceError as e:
            self._end(e)

    def _append_and_check(self, row: Row) -> None:
        self._append(row)
        assert self.check is not None
        self.check.append(row)

    def arrive(self, frame: Frame[Any], endpoint: Endpoint[Any]) -> None:
        """A frame was admitted: the rows that follow are its consequences."""
        origin = frame.origin
        self.recorder.lamport = endpoint.lamport
        tag = endpoint.codec.tags[frame.tag]
        self.recorder.arrive(origin.node, origin.incarnation, frame.number, tag, frame.size)

    def send(self, to: NodeId | None, tag: int, size: int, endpoint: Endpoint[Any]) -> None:
        """A frame was encoded and is about to leave."""
        self.recorder.lamport = endpoint.lamport
        self.recorder.send(to, endpoint.frame_number, endpoint.codec.tags[tag], size)
        self.write_out()

    def write_out(self) -> None:
        """Called before anything leaves this node: if every row counts, rows are written first."""
        if self._every and self._pending:
            self.flush()

    def flush(self) -> None:
        self._pending = False
        if self._writer is not None:
            try:
                self._writer.flush()
            except TraceError as e:
                self._end(e)

    def close(self) -> None:
        """End the trace with its manifest: this node stopped as it should."""
        self.recorder.crash()
        if self._writer is not None:
            try:
                self._writer.close()
                self._writer = None
            except TraceError as e:
                self._end(e)
        if self.check is not None:
            self.check.close()

    def _end(self, error: TraceError) -> None:
        assert self._writer is not None
        self._writer.abandon()
        self._writer = None
        self.trouble(f"the trace ends here: {error}")


def _own_check(settings: Settings, manifest: Manifest) -> "OwnCheck":
    from roundelay.runtime.checking import OwnCheck  # Nodes that do not check start faster without.

    name, traced = f"{settings.group}/{settings.node}", settings.trace is not None
    return OwnCheck(name, manifest, traced=traced)
