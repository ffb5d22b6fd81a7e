"""Coverage: what must *sometimes* happen in a swarm campaign.

A campaign that finds nothing has shown something only if it went where the trouble is: a Commit
token lost in each rotation, a safe message delivered across a crash, a message behind a gap. Each
such goal is a function that looks at what a run showed and says whether it happened there; its name
and its first line are the catalogue. A goal that no seed of a campaign reaches fails it.
"""

from collections.abc import Callable, Mapping

from roundelay.sim.coverage import dtp, links, totem, traffic, views
from roundelay.sim.coverage.evidence import Evidence

__all__ = ["Detector", "Evidence", "catalogue", "goal_name", "reached", "sentence"]

Detector = Callable[[Evidence], bool]
"""Whether a run reached a goal. Its docstring is one line, for people."""

_OWN: Mapping[str, tuple[tuple[Detector, ...], tuple[Detector, ...]]] = {
    "totem": (totem.ALWAYS, totem.IN_VIEWS),
    "fifo": (links.ALWAYS, links.IN_VIEWS),
    "dtp": (dtp.ALWAYS, dtp.IN_VIEWS),
    "cm": (dtp.ALWAYS, dtp.IN_VIEWS),
    "pinwheel": (dtp.ALWAYS + dtp.PINWHEEL, dtp.IN_VIEWS),
}
"""By engine: goals of its own, and those that it has where views come and go."""


def catalogue(protocol: str, *, static: bool = False) -> dict[str, Detector]:
    """The goals of a campaign, by name: those of every engine, and the engine's own."""
    always, in_views = _OWN.get(protocol, ((), ()))
    goals = [*traffic.ALWAYS, *always]
    if not static:
        goals += [*views.IN_VIEWS, *in_views]
    return {goal_name(goal): goal for goal in goals}


def goal_name(goal: Detector) -> str:
    """What a goal is called."""
    return goal.__name__.replace("_", "-")


def sentence(goal: Detector) -> str:
    """What happens where a goal is reached."""
    assert goal.__doc__ is not None
    return goal.__doc__


def reached(evidence: Evidence, goals: Mapping[str, Detector]) -> tuple[str, ...]:
    """The names of the goals that a run reached, in the order of the catalogue."""
    return tuple(name for name, goal in goals.items() if goal(evidence))
