"""What clients saw of a replicated object, and whether one copy of it could have shown the same.

A history is a list of operations with the times at which they were called and returned, as the
clients' clocks show them: they must be of one machine, or so near each other that it does not
matter. Pure functions; whoever runs clients brings the history.

    H1  linearizable    some order of the operations fits real time and the object
    H2  certified       the indexes that operations carry are such an order, and replaying the log
                        in it gives every reply
    H3  fenced          tokens of a lock grow, and nobody holds it while another does
        warned          who loses it is told before another gets it, unless it is stopped
    H4  done once       items of a queue are done once, and taken again only when they were given up
"""

from roundelay.check.histories.certificate import Replay, certified, certified_by_itself
from roundelay.check.histories.fences import Holding, Taking, done_once, fenced, warned
from roundelay.check.histories.history import Judgement, Operation
from roundelay.check.histories.linearizable import linearizable
from roundelay.check.histories.models import (
    Model,
    counter,
    highest,
    loan,
    machine,
    member,
    register,
)

__all__ = [
    "Holding",
    "Judgement",
    "Model",
    "Operation",
    "Replay",
    "Taking",
    "certified",
    "certified_by_itself",
    "counter",
    "done_once",
    "fenced",
    "highest",
    "linearizable",
    "loan",
    "machine",
    "member",
    "register",
    "warned",
]
