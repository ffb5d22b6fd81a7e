"""A real node's trace: one file for each of its lives, a check of its own rows, or both."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from roundelay.core.ids import NodeId
from roundelay.group.engines import engine_config
from roundelay.runtime.plan import Plan
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

UNCLOSED = "as its node was killed, or still runs, before its last rows were written"
"""Completes "the trace of node b ends early, ..."."""


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

    def __init__(self, settings: Settings, plan: Plan, version: str, machine: str) -> None:
        """Open the file, if there is to be one, or raise TraceError."""
        names = tuple(sorted(settings.peers))
        every = settings.trace_every_row
        name = f"{settings.node}-{plan.boot.incarnation}"
        writer = f"{names.index(settings.node)}.{plan.boot.incarnation}"
        manifest = Manifest(
            run=settings.run or settings.group,
            nodes=names,
            protocol=plan.engine,
            rules=plan.options.get("rules", "safe"),
            resilience=getattr(engine_config(plan.engine, plan.options), "resilience", None),
            mode="views",
            revision=version,
            machine=machine,
            config={"options": plan.options, "timeout_s": plan.timeout_s},
        )
        self.check = _own_check(settings, manifest) if settings.check else None
        self._writer: Writer | None = None
        if settings.trace is not None:
            self._writer = Writer(
                settings.trace,
                manifest,
                # Whoever may be killed writes lines, which can be read up to the last one.
                format="jsonl" if every else "auto",
                name=name,
                batch_rows=BATCH_ROWS,
                unclosed={} if every else {writer: f"{UNCLOSED} ({name})"},
            )
        self.recorder = Recorder(
            self._sink(),
            {name: number for number, name in enumerate(names)},
            settings.node,
            plan.boot.incarnation,
            MonotonicClock(),
            net=settings.trace_frames,
        )
        self.trouble: Callable[[str], None] = lambda sentence: None
        """Told that the trace ends, and why."""
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
        """A frame was admitted: the rows that follow are its doing."""
        origin = frame.origin
        self.recorder.lamport = endpoint.lamport
        tag = endpoint.codec.tags[frame.tag]
        self.recorder.arrive(origin.node, origin.incarnation, frame.packet, tag, frame.size)

    def send(self, to: NodeId | None, tag: int, size: int, endpoint: Endpoint[Any]) -> None:
        """A frame was encoded and is about to leave."""
        self.recorder.lamport = endpoint.lamport
        self.recorder.send(to, endpoint.packet, endpoint.codec.tags[tag], size)
        self.settle()

    def settle(self) -> None:
        """Something is about to leave this node: where every row counts, they go first."""
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
