"""Small-scope exploration: every placement of a few deviations in a small group.

Theory of operation
===================

What is explored is the product: stacks of group layer, membership and engine, run by the
simulator's own hosts. Chance plays no part. There is one *plain run*: frames take the latency of
their link and arrive in the order sent, timers run out when they are due. A *deviation* departs
from it at one point:

    lose      a copy of a frame does not arrive
    delay     it arrives later: after the next frame that reaches its receiver, or as soon as the
              receiver has gone on to another phase, any of those it goes through
    copy      it arrives a second time, at once; a late second arrival is a delay, if its sender
              repeats the frame
    expire    a timer runs out early, just before its node's next event; timers that only repeat a
              frame are left out, since a copy of that frame is the same
    crash     a node stops: before an event, or after any of its effects that somebody can see
    restart   a node that stopped starts again, its storage kept or lost: a millisecond later, or
              as soon as one of the others is in a phase that none was in since the crash

A *situation* is where a plain run begins (`situations`). The search follows it, moment by moment,
until the group is quiet: all who live are in one view, and everybody has delivered, and claimed to
be stable, what was sent in it. At every moment it branches into every deviation that is possible
there, follows each of those runs in the same way, with one deviation less to spend, and so on.
Within these words the search is exhaustive; what it leaves out is more deviations, other
latencies and timers, other situations, and what is done to a group that is quiet.

Every run is judged: by the asserts of the cores, by the invariants of `sim.watch` while it lasts,
and at its end, once for every history, by the checker. A run that is not quiet `BOUND_NS` after
its last deviation, or that goes round in a circle, is judged as it stands; then the checker finds
what is missing.

Runs that meet are followed once. A run ends where it comes to a state that is known: the same
cores, storage, frames on their way and time left on timers, the same choices still open, and the
same history, which is all that the checker and the invariants go by (`stage`). So whatever could
be said of the rest was said, or will be, of the run that was there first, which had as many
deviations left, or more. Three things are taken for equal that are not quite: times within a
microsecond, which is less than any two latencies differ by; states whose 64-bit digests are equal;
and states at different times of day, which only a node that starts without storage can tell apart:
it takes its ring number from the clock.

A run is named by its deviations, and they are commands of the scenario language. So every violation
is a scenario file that `roundelay sim run` plays, moment by moment the same.
"""

from roundelay.sim.explore.exploration import Exploration
from roundelay.sim.explore.search import Search
from roundelay.sim.explore.situations import SITUATIONS
from roundelay.sim.explore.tally import Tally, Violation

__all__ = ["SITUATIONS", "Exploration", "Search", "Tally", "Violation"]
