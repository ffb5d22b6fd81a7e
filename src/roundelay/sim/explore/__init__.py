"""Small-scope exploration: every placement of a few deviations in a small group.

Theory of operation
===================

What is explored is the product itself: stacks of group layer, membership and engine, run by the
simulator's own hosts. Nothing is random. There is one *plain run*: frames take the latency of their
link and arrive in the order sent, and timers expire when they are due. A *deviation* departs from
the plain run at one point:

    lose      a copy of a frame does not arrive
    delay     it arrives later: after the next frame that reaches its receiver, or as soon as the
              receiver has entered another phase, each one that it enters
    copy      it arrives a second time, at once; a late second arrival is a delay, if its sender
              repeats the frame
    expire    a timer expires early, just before its node's next event; timers that only repeat a
              frame are left out, since a copy of that frame has the same effect
    crash     a node stops: before an event, or after any of its effects that others, its storage or
              its application can see
    restart   a node that stopped starts again, its storage kept or lost: a millisecond later, or
              as soon as one of the others is in a phase that none was in since the crash

A *situation* is where a plain run begins (`situations`). The search follows it, moment by moment,
until the group is quiet: all live nodes are in one view, and each has delivered, and claimed to be
stable, what was sent in it. At every moment the search branches into every deviation that is
possible there, and follows each of these runs in the same way with one deviation less. Within these
limits the search is exhaustive. It leaves out more deviations, other latencies and timers, other
situations, and faults in a group that is quiet.

Every run is judged: by the assertions of the cores and the invariants of `sim.watch` while it
lasts, and at its end by the checker, once for each history. A run that is not quiet `BOUND_NS`
after its last deviation, or that comes back to one of its own states, is judged as it is; then the
checker finds what is missing.

Runs that reach the same state are followed once. A state is known by the cores, their storage, the
frames on their way, the time left on timers, the choices that are still open, and the history,
which holds all that the checker and the invariants depend on (`stepped`). A run ends at a state
that an earlier run with as many deviations left, or more, has reached: the rest of it is judged
there. Three things are treated as equal that are not quite: times within a microsecond, while any
two latencies differ by more; states with equal 64-bit digests; and states at different times of
day, which matter only to a node that starts without storage, as it takes its ring number from the
clock.

The deviations of a run are commands of the scenario language. So every violation becomes a scenario
file, which `roundelay sim run` plays in exactly the same way.
"""

from roundelay.sim.explore.exploration import Exploration
from roundelay.sim.explore.search import Search
from roundelay.sim.explore.situations import SITUATIONS
from roundelay.sim.explore.tally import Tally, Violation

__all__ = ["SITUATIONS", "Exploration", "Search", "Tally", "Violation"]
