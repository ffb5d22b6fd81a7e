"""Messages that come by themselves while a simulated group runs."""

from collections.abc import Iterator

from roundelay.experiments.meter import Meter
from roundelay.sim.load import Submission
from roundelay.sim.world import World

FOREVER_NS = 1 << 62


def feed(
    world: World,
    submissions: Iterator[Submission],
    meter: Meter | None = None,
    end_ns: int = FOREVER_NS,
) -> None:
    """Hand over one message when it is due; each calls for the next, until they are over or come
    too late. The meter is told of each."""
    submission = next(submissions, None)
    if submission is None or submission.time_ns >= end_ns:
        return

    def due(_: object) -> None:
        if meter is not None:
            meter.submitted(world.numbers[submission.node], submission.time_ns)
        world.submit(*submission[1:])
        feed(world, submissions, meter, end_ns)

    world.loop.at(submission.time_ns, due)
