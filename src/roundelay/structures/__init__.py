"""Replicated structures: states that are the same at all nodes of a log, and their faces.

Pure: a machine is given commands and marks, and returns replies. Nothing here knows how a log comes
about, nor of time and networks.
"""

from roundelay.structures.barrier import Barrier
from roundelay.structures.counter import Counter
from roundelay.structures.errors import GapError, MachineError, Refused, UpgradeError
from roundelay.structures.kinds import Codec
from roundelay.structures.leader import Leader, Leadership
from roundelay.structures.locks import Lock, Semaphore
from roundelay.structures.machine import Machine, Now
from roundelay.structures.many_locks import Locks
from roundelay.structures.maps import Change, Map
from roundelay.structures.methods import read, task, write
from roundelay.structures.port import Placed, Stale
from roundelay.structures.queue import Job, Queue
from roundelay.structures.rehearsal import Rehearsal
from roundelay.structures.sets import Set
from roundelay.structures.turns import Hold
from roundelay.structures.values import Value
from roundelay.structures.watcher import BlockingWatcher, Watcher

__all__ = [
    "Barrier",
    "BlockingWatcher",
    "Change",
    "Codec",
    "Counter",
    "GapError",
    "Hold",
    "Job",
    "Leader",
    "Leadership",
    "Lock",
    "Locks",
    "Machine",
    "MachineError",
    "Map",
    "Now",
    "Placed",
    "Queue",
    "Refused",
    "Rehearsal",
    "Semaphore",
    "Set",
    "Stale",
    "UpgradeError",
    "Value",
    "Watcher",
    "read",
    "task",
    "write",
]
