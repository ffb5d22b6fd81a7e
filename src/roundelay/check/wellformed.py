"""T: whether the trace itself can be trusted. A breach here makes every other verdict worthless.

These properties are about how a trace was written, so T1 and T2 look at the rows as they are, with
ranges not expanded and frames and timers included.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from roundelay.check import sentences as say
from roundelay.check.model import Model
from roundelay.check.property import Finding, Scope, declare
from roundelay.core.effects import Kind
from roundelay.trace.schema import Row

Writer = tuple[int, int]
"""Who wrote rows: (proc, inc)."""


@declare("T1", "Every node's rows are all there, numbered without a gap", scope=Scope.NODE)
def gap_free(model: Model) -> Finding:
    written: dict[Writer, list[Row]] = {}
    for row in model.rows:
        written.setdefault((row.proc, row.inc), []).append(row)
    counts = _counts(model)
    writers = sorted(written.keys() | (counts or {}).keys())
    for writer in writers:
        rows = sorted(written.get(writer, []), key=_lseq)
        log = say.log_of(model.name(writer[0]), writer[1])
        for i, row in enumerate(rows):
            if row.lseq != i:
                around = tuple(rows[max(i - 1, 0) : i + 1])
                return Finding(len(writers), say.row_missing(log, row.lseq, i), around)
        if counts is not None and counts.get(writer, 0) != len(rows):
            expected = counts.get(writer, 0)
            reason = f"the log of {log} has {len(rows)} rows where {expected} were written"
            if not model.rows:
                return Finding(len(writers), unknown=f"{reason}, and no other row is left")
            return Finding(len(writers), reason, tuple(rows[-1:]) or beside(writer, written))
    if model.manifest is not None and model.manifest.ended:
        return Finding(len(writers), unknown=model.manifest.cut_short()[0])
    return Finding(len(writers))


def beside(writer: Writer, written: Mapping[Writer, Sequence[Row]]) -> tuple[Row, ...]:
    """What is next to a life of which there is no row: where the node's life before ends and the
    one after begins, or where the log of another node begins."""
    before = max((w for w in written if w[0] == writer[0] and w < writer), default=None)
    after = min((w for w in written if w[0] == writer[0] and w > writer), default=None)
    found = [] if before is None else [max(written[before], key=_lseq)]
    found += [] if after is None else [min(written[after], key=_lseq)]
    return tuple(found) or (min(written[min(written)], key=_lseq),)


def _lseq(row: Row) -> int:
    return row.lseq


def _counts(model: Model) -> dict[Writer, int] | None:
    """Rows per writer as the manifest counts them; None if it does not."""
    if model.manifest is None or model.manifest.rows is None:
        return None
    counts = {}
    for key, count in model.manifest.rows.items():
        proc, _, inc = key.partition(".")
        counts[int(proc), int(inc)] = count
    return counts


@declare("T2", "A node does nothing between its crash and its recovery", scope=Scope.NODE)
def lifecycle(model: Model) -> Finding:
    # The log of a real node ends where it was killed, without a crash row; its next life is then
    # known by its number. In the simulator the crash must be there.
    killed = not model.total
    if killed and (unknown := _out_of_order(model)):
        return Finding(len(model.by_proc), unknown=unknown)
    down: dict[int, Row] = {}
    latest: dict[int, Row] = {}
    for row in model.rows:
        if row.kind == Kind.DROP or row.proc not in model.by_proc:
            continue  # A frame lost at a node that is down is the network's doing.
        who = model.name(row.proc)
        crash, last = down.get(row.proc), latest.get(row.proc)
        if row.kind == Kind.RECOVER:
            if crash is None and not killed:
                return Finding(len(latest) + 1, say.never_crashed(who), (row,))
            if last is not None and row.inc <= last.inc:
                reason = say.same_life(who, row.inc)
                return Finding(len(latest), reason, (last, row) if crash is None else (crash, row))
            down.pop(row.proc, None)
        elif crash is not None:
            return Finding(len(latest), say.row_while_down(who, row.kind), (crash, row))
        elif last is not None and row.inc != last.inc:
            return Finding(len(latest), say.life_changes(who, last.inc, row.inc), (last, row))
        if row.kind == Kind.CRASH:
            down[row.proc] = row
        latest[row.proc] = row
    return Finding(len(latest))


def _out_of_order(model: Model) -> str:
    """Whether lives of a node came in another order than that of their numbers, which everything
    that looks beyond one life relies on. That can be seen where both have times of one clock."""
    clocks = model.manifest.clocks() if model.manifest is not None else {}
    times: dict[Writer, tuple[int, int]] = {}
    for row in model.rows:
        first, last = times.get((row.proc, row.inc), (row.t_ns, row.t_ns))
        times[row.proc, row.inc] = min(first, row.t_ns), max(last, row.t_ns)
    lives: dict[tuple[int, str], list[int]] = {}
    for proc, inc in sorted(times):
        if clock := clocks.get(f"{proc}.{inc}"):
            lives.setdefault((proc, clock), []).append(inc)
    for (proc, _), incs in lives.items():
        for one, next_ in pairwise(incs):
            if times[proc, next_][1] < times[proc, one][0]:
                return (
                    f"{model.name(proc)} lived as incarnation {next_} before it lived as {one}: "
                    "its clock was set back and it kept no state, so nobody knows which of its "
                    "lives came first"
                )
    return ""


@declare(
    "T3", "A message is sent once, or withdrawn and sent again in another view", scope=Scope.NODE
)
def one_origin(model: Model) -> Finding:
    for message, origins in model.originates.items():
        for first, second in pairwise(origins):
            who, what = model.name(second.proc), model.label(message)
            if second.proc != first.proc:
                reason = say.sent_by_two(who, what, model.name(first.proc))
                return Finding(len(model.originates), reason, (first, second))
            taken_back = model.withdrawn(first)
            if taken_back is None or taken_back.at > second.at:
                reason = say.sent_twice(who, what)
                return Finding(len(model.originates), reason, (first, second))
            if first.reg == second.reg:
                reason = say.sent_twice_in(who, what, model.view(first.reg))
                return Finding(len(model.originates), reason, (first, taken_back, second))
    return Finding(len(model.originates))


@declare("T4", "Nothing is received before it was sent")
def no_receipt_from_nowhere(model: Model) -> Finding:
    received = model.by_kind.get(Kind.RECEIVE, ())
    for event in received:
        if event.message is None or model.origins(event):
            continue
        late = model.originates.get(event.message, ())[:1]
        who, what = model.name(event.proc), model.label(event.message)
        reason = say.unsent(who, "receives", what, later=bool(late))
        return Finding(len(received), reason, (event, *late))
    return Finding(len(received))
