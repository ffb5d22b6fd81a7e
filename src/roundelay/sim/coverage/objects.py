"""Goals of replicated machines: what their clients live through."""

from collections import defaultdict
from collections.abc import Iterator

from roundelay.sim.coverage.evidence import Evidence, life, when
from roundelay.trace.schema import Row


def _answered(run: Evidence, *ops: str) -> Iterator[tuple[Row, Row]]:
    """Calls that were answered: how they began, and their replies."""
    begun = {(life(row), row.lseq): row for row in run.kinds["invoke"] if row.op in ops}
    for row in run.kinds["reply"]:
        call = begun.get((life(row), row.cause or 0))
        if call is not None:
            yield call, row


def lock_of_the_lost(run: Evidence) -> bool:
    """The lock is granted although its holder has not given it back, since that one was lost."""
    given = {row.arg for row in run.kinds["invoke"] if (row.obj, row.op) == ("lock", "release")}
    granted = [row for _, row in _answered(run, "acquire") if row.obj == "lock"]
    tokens = sorted(row.res for row in granted if row.res is not None)
    return any(token not in given for token in tokens[:-1])


def item_taken_again(run: Evidence) -> bool:
    """An item of a queue is taken twice: it was given back, or its taker was lost."""
    taken = [row.res for _, row in _answered(run, "take")]
    return len(taken) > len(set(taken))


def unanswered_write_seen(run: Evidence) -> bool:
    """A client reads what another wrote who was never answered."""
    answered = {(life(call), call.lseq) for call, _ in _answered(run, "set")}
    lost = {
        (row.obj, row.arg)
        for row in run.kinds["invoke"]
        if row.op == "set" and (life(row), row.lseq) not in answered
    }
    return any((row.obj, row.res) in lost for _, row in _answered(run, "get"))


def call_through_a_view_change(run: Evidence) -> bool:
    """A client's write is answered in another view than it was called in."""
    views = defaultdict(list)
    for row in run.regular:
        views[life(row)].append(when(row))
    return any(
        when(call) < change < when(reply)
        for call, reply in _answered(run, "set", "add", "put")
        for change in views[life(call)][1:]
    )


WITH_MACHINES = (
    lock_of_the_lost,
    item_taken_again,
    unanswered_write_seen,
    call_through_a_view_change,
)
