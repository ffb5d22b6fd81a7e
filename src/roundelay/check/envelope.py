"""E: what a protocol's paper assumes of the world below it.

If one of these fails, the protocol promised nothing, and its other properties are not judged.
"""

from collections.abc import Callable, Hashable

from roundelay.check.events import about
from roundelay.check.failures import apart, failures, longest_run
from roundelay.check.liveness import unsettled
from roundelay.check.model import Event, Message, Model, read_model
from roundelay.check.order import circle, shared
from roundelay.check.property import PROPERTIES, Finding, declare
from roundelay.core.effects import Kind
from roundelay.trace.schema import LOWER_LAYER, Row


@declare("E1", "All nodes receive in one order")
def one_channel(model: Model) -> Finding:
    """Frames, where the trace tells which frame brought a message: what is sent again is then
    another frame, with a place of its own. Else messages."""
    received = {
        proc: [e for e in events if e.kind == Kind.RECEIVE and e.message is not None]
        for proc, events in model.by_proc.items()
    }
    frames = any(e.row.pkt is not None for events in received.values() for e in events)
    item: Callable[[Event], Hashable] = _frame if frames else about
    lines: list[list[Event]] = []
    for proc in model.processes:
        first: dict[Hashable, Event] = {}
        for event in received[proc]:
            if not frames or event.row.pkt is not None:
                first.setdefault(item(event), event)
        lines.append(list(first.values()))
    count = shared([[item(event) for event in line] for line in lines])
    return circle(model, count, lines, item)


def _frame(event: Event) -> int | None:
    return event.row.pkt


@declare("E2", "Few replicas fail, none comes back, and nothing is cut off")
def few_failures(model: Model) -> Finding:
    """At most k neighbours on the ring at a time, and in all fewer than half.

    A replica fails if it crashes, if another suspects it, or if its successor does not get its
    decision: a protocol without an oracle cannot tell these apart. Whoever fails may miss anything.
    """
    count = len(model.processes)
    for recover in model.by_kind.get(Kind.RECOVER, ()):
        return Finding(count, f"{model.name(recover.proc)} comes back after a crash", (recover,))
    for fault in model.faults:
        if fault.tag in ("partition", "cut"):
            return Finding(count, "the network is cut", (fault,))
    failed = failures(model)
    if failed and len(failed) > (count - 1) // 2:
        reason = f"{model.names(sorted(failed))} failed, {len(failed)} of {count}"
        return Finding(count, reason, tuple(failed[proc][0] for proc in sorted(failed)))
    k = model.manifest.envelope.get("k") if model.manifest is not None else None
    if failed and not isinstance(k, int):
        return Finding(count, unknown="the manifest does not tell how many neighbours may fail")
    neighbours = longest_run(model, set(failed))
    if isinstance(k, int) and len(neighbours) > k:
        reason = f"{model.names(neighbours)} are neighbours and failed; at most {k} may"
        return Finding(count, reason, tuple(failed[proc][0] for proc in neighbours))
    if strangers := apart(model, failed):
        reason = f"{model.names(strangers)} failed at the same time, and are no neighbours"
        return Finding(count, reason, tuple(failed[proc][0] for proc in strangers))
    frames = any(row.kind == Kind.SEND for row in model.rows)
    if not frames and any(fault.tag == "rates" for fault in model.faults):
        return Finding(count, unknown="the trace does not tell which frames were lost")
    return Finding(count)


@declare("E3", "The group does not change, nobody crashes, and everything arrives at last")
def static_and_reliable(model: Model) -> Finding:
    count = len(model.processes)
    if (finding := no_crash(model)).reason:
        return finding
    for installs in model.installs.values():
        regular = [event for event in installs if event.cfg is not None and event.cfg.regular]
        if len(regular) > 1:
            first, second = regular[:2]
            reason = (
                f"{model.name(first.proc)} goes from {model.view(first.cfg)} to "
                f"{model.view(second.cfg)}"
            )
            return Finding(count, reason, (first, second))
    for message, events in model.originates.items():
        having = model.holders[message]
        for proc in model.destinations(message):
            if proc in having:
                continue
            if doubt := unsettled(model):
                return Finding(count, unknown=f"{doubt}, so what is missing may yet arrive")
            reason = f"{model.label(message)} never arrives at {model.name(proc)}"
            return Finding(count, reason, (events[0],))
    return Finding(count)


@declare("E4", "Nobody crashes")
def no_crash(model: Model) -> Finding:
    count = len(model.processes)
    for crash in model.by_kind.get(Kind.CRASH, ()):
        return Finding(count, f"{model.name(crash.proc)} crashes", (crash,))
    return Finding(count)


VIEW_SYNCHRONY = ("M1", "M2", "M3", "M4", "D1", "D2", "D4s", "O1r")
"""What ATOP asks of the layer below it."""


@declare("E5", "The layer below keeps views and messages in step")
def view_synchronous(model: Model) -> Finding:
    if not any(row.layer == LOWER_LAYER for row in model.rows):
        return Finding(0)
    below = read_model(model.rows, model.manifest, layer=LOWER_LAYER)
    count = 0
    for name in VIEW_SYNCHRONY:
        finding = PROPERTIES[name].check(below)
        count += finding.instances
        if finding.reason:
            return Finding(count, f"{name} of the layer below: {finding.reason}", finding.witness)
    return Finding(count)


@declare("E6", "No packet arrives with other bytes than were sent")
def no_corruption(model: Model) -> Finding:
    """By the digests of what was sent and received; those of deliveries are the protocol's own
    responsibility."""
    sent: dict[tuple[int | None, ...], Row] = {}
    count = 0
    rows = [row for row in model.rows if row.layer == "net" or row.layer not in model.skipped]
    for row in rows:
        if row.kind == Kind.ORIGINATE and row.digest is not None:
            sent.setdefault(_packet(row), row)
    for row in rows:
        origin = sent.get(_packet(row)) if row.digest is not None else None
        if origin is None or row.kind not in (Kind.ORIGINATE, Kind.RECEIVE) or row is origin:
            continue
        count += 1
        if row.digest != origin.digest:
            label = model.label(Message(row.m_src or 0, row.m_inc or 0, row.m_seq or 0))
            verb = "sends" if row.kind == Kind.ORIGINATE else "receives"
            reason = (
                f"{model.name(row.proc)} {verb} {label} with other bytes than "
                f"{model.name(origin.proc)} sent"
            )
            return Finding(count, reason, (origin, row))
    return Finding(count)


def _packet(row: Row) -> tuple[int | None, ...]:
    return row.m_src, row.m_inc, row.m_seq, row.count
