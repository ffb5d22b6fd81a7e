"""Who failed in a run of FC, and who failed at the same time: what E2 is about.

A replica fails if it crashes, if another suspects it, or if its successor does not get its
decision. What a replica that crashes got, or made of it, is nobody else's failure.
"""

from collections.abc import Mapping

from roundelay.check.model import Event, Model
from roundelay.core.effects import Kind
from roundelay.trace.schema import WORLD, Row

DECISION = "DEC"
"""The tag of the frames in which FC's replicas tell their decisions."""

NEVER = float("inf")


def failures(model: Model) -> dict[int, list[Event | Row]]:
    """Who failed, and the rows that show it: a crash first."""
    failed: dict[int, list[Event | Row]] = {}
    for crash in model.by_kind.get(Kind.CRASH, ()):
        failed.setdefault(crash.proc, []).append(crash)
    crashed = set(failed)
    decisions: dict[int, int] = {}
    arrived: set[tuple[int | None, int]] = set()
    for row in model.rows:
        if row.kind == Kind.SEND and row.tag == DECISION and row.pkt is not None:
            decisions[row.pkt] = row.proc
        elif row.kind == Kind.ARRIVE:
            arrived.add((row.pkt, row.proc))
    for row in model.rows:
        if row.kind == Kind.SUSPECT and row.proc not in crashed:
            for proc in row.members or ():
                failed.setdefault(proc, []).append(row)
        elif row.kind == Kind.DROP and row.pkt in decisions:
            maker, receiver = decisions[row.pkt], row.peer if row.proc == WORLD else row.proc
            if receiver == _successor(model, maker, crashed) and (row.pkt, receiver) not in arrived:
                failed.setdefault(maker, []).append(row)
    return failed


def _successor(model: Model, proc: int, gone: set[int]) -> int:
    """The next replica on the ring that has not crashed."""
    place = model.processes.index(proc)
    ring = model.processes[place + 1 :] + model.processes[:place]
    return next((other for other in ring if other not in gone), proc)


def longest_run(model: Model, failed: set[int]) -> tuple[int, ...]:
    """The most neighbours on the ring that all failed."""
    longest: tuple[int, ...] = ()
    for place in range(len(model.processes)):
        run: list[int] = []
        for proc in model.processes[place:] + model.processes[:place]:
            if proc not in failed:
                break
            run.append(proc)
        if len(run) > len(longest):
            longest = tuple(run)
    return longest


def apart(model: Model, failed: Mapping[int, list[Event | Row]]) -> tuple[int, ...]:
    """Replicas that failed at the same time though they were no neighbours, on the ring without
    those who had failed before. Where nothing tells what came first, all failed at one time."""
    begun = {proc: min(map(_when, rows)) if model.total else 0 for proc, rows in failed.items()}
    over = _over(model) if model.total else {}
    gone: set[int] = set()
    group: set[int] = set()
    for proc in sorted(failed, key=lambda proc: (begun[proc], proc)):
        if group and begun[proc] > max(over.get(other, NEVER) for other in group):
            gone |= group
            group = set()
        group.add(proc)
        ring = [other for other in model.processes if other not in gone]
        after = [*ring[1:], ring[0]]
        ends = sum(a in group and b not in group for a, b in zip(ring, after, strict=True))
        if ends > 1:
            return tuple(sorted(group))
    return ()


def _over(model: Model) -> dict[int, float]:
    """By replica that crashes: when its failure was over. Since the crash, every replica that never
    crashes has then decided twice: in between the token has come to the place of the one that is
    gone, and has passed it."""
    crashes = {crash.proc: _when(crash) for crash in model.by_kind.get(Kind.CRASH, ())}
    staying = set(model.processes) - crashes.keys()
    decided = [row for row in model.rows if row.kind == Kind.ORDER and row.proc in staying]
    over: dict[int, float] = {}
    for proc, crashed in crashes.items():
        first: dict[int, int] = {}
        second: dict[int, int] = {}
        for row in decided:
            if _when(row) > crashed and row.proc not in second:
                number = row.k2 or 0
                if number > first.setdefault(row.proc, number):
                    second[row.proc] = _when(row)
        if staying <= second.keys():
            over[proc] = max(second.values(), default=crashed)
    return over


def _when(what: Event | Row) -> int:
    """Its place in a trace with a total order."""
    row = what.row if isinstance(what, Event) else what
    return row.gseq or 0
