"""Goals of every engine, with views and without: packets, pieces, damage."""

from collections import defaultdict

from roundelay.core.ids import Service
from roundelay.membership.messages import FIRST_TAG
from roundelay.sim.coverage.evidence import Evidence, Life, life, message, when
from roundelay.trace.schema import WORLD
from roundelay.wire.primitives import Reason


def packed(run: Evidence) -> bool:
    """A packet with several messages is delivered."""
    return any(row.count > 1 for row in run.kinds["deliver"])


def large_message(run: Evidence) -> bool:
    """A message that was sent in pieces is delivered."""
    pieces = {(d.life, d.ordered, d.span[:3]) for d in run.deliveries if not d.span.count}
    return any(d.span.count and (d.life, d.ordered, d.span[:3]) in pieces for d in run.deliveries)


def damaged_frame(run: Evidence) -> bool:
    """A frame is damaged on its way, and refused."""
    reasons = set(Reason)
    return any(row.proc != WORLD and row.tag in reasons for row in run.kinds["drop"])


def behind_a_safe_one(run: Evidence) -> bool:
    """A message that is not safe waits behind a safe one of the same sender."""
    services = {message(row): row.svc for row in run.kinds["originate"]}
    waiting: dict[tuple[Life, int | None, int | None], set[int | None]] = defaultdict(set)
    events = (*run.kinds["receive"], *run.kinds["deliver"])
    for row in sorted(events, key=when):
        safe = waiting[life(row), row.m_src, row.m_inc]
        if row.kind == "deliver":
            safe.discard(row.m_seq)
        elif services[message(row)] == Service.SAFE:
            safe.add(row.m_seq)
        elif safe:
            return True
    return False


def read_as_a_burst(run: Evidence) -> bool:
    """Several frames of one sender are read together, and go to the core as one burst."""
    last: dict[Life, tuple[int, int | None, int]] = {}
    for row in run.kinds["arrive"]:
        if run.frame(row).frame.frame.tag >= FIRST_TAG:
            continue  # One of membership, which may well be ignored without a row.
        if last.get(life(row)) == (row.lseq - 1, row.peer, row.t_ns):
            return True
        last[life(row)] = (row.lseq, row.peer, row.t_ns)
    return False


def flushed_together(run: Evidence) -> bool:
    """Several messages of the application leave with one flush."""
    return any(row.count > 1 for row in run.kinds["submit"])


ALWAYS = (
    packed,
    large_message,
    damaged_frame,
    behind_a_safe_one,
    read_as_a_burst,
    flushed_together,
)
