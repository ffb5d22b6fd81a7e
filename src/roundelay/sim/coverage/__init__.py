"""Coverage: what must *sometimes* happen in a swarm campaign.

A campaign that finds nothing has shown something only if it went where the trouble is: a Commit
token lost in each rotation, a safe message delivered across a crash, a message behind a gap. Each
such goal is a function that looks at what a run showed and says whether it happened there; its name
and its first line are the catalogue. A goal that no seed of a campaign reaches fails it.
"""

from collections.abc import Mapping

from roundelay.sim.coverage import logs, objects, sealed, traffic, views
from roundelay.sim.coverage.evidence import Evidence
from roundelay.sim.simulation import Detector, simulation_of

__all__ = ["Detector", "Evidence", "catalogue", "goal_name", "reached", "sentence"]


def catalogue(
    protocol: str,
    *,
    static: bool = False,
    rules: str = "safe",
    intruder: bool = False,
    log: bool = False,
) -> dict[str, Detector]:
    """The goals of a campaign, by name: those of every engine, and the engine's own. Under other
    rules than the safe ones an engine may have goals of their own, and no others. With an
    `intruder` there are goals of sealed traffic besides, with `log` those of a replicated log."""
    simulation = simulation_of(protocol)
    goals = [*traffic.ALWAYS, *simulation.goals]
    if rules in simulation.goals_of_rules:
        goals = [*simulation.goals_of_rules[rules]]
    elif not static:
        goals += [*views.IN_VIEWS, *simulation.goals_in_views]
    if intruder:
        goals += [*sealed.ALWAYS, *(() if static else sealed.IN_VIEWS)]
    if log:
        goals += [*logs.WITH_A_LOG, *objects.WITH_MACHINES]
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
