"""Invariants that no single core can see: asserted over all hosts while a run goes on."""

from typing import Any

from roundelay.core.ids import NodeId, View, ViewId
from roundelay.group.engines import description_of
from roundelay.group.stack import Stack
from roundelay.sim.machine_watch import MachineWatch
from roundelay.sim.seal_watch import SealWatch
from roundelay.sim.simulation import Watcher, simulation_of
from roundelay.sim.world import World


class Watch:
    """Is told of everything that happens in a world and raises AssertionError at the first breach.

    - All members of a view fix the same last number of the exchange that led to it.
    - A view id has one membership, and a ring number is used once by each node.
    - What sealed traffic promises, where there is any: see `seal_watch`.
    - Nobody is shown another entry at an index of a generation of a replicated log than others.
    - Replicated machines do what plain copies of them do: see `machine_watch`.
    - What the watch of the engine says, if its simulation has one.
    """

    def __init__(self) -> None:
        self._install_seqs: dict[ViewId, int] = {}
        self._members: dict[ViewId, tuple[NodeId, ...]] = {}
        self._installed: set[tuple[NodeId, ViewId]] = set()
        self._seals = SealWatch()
        self._shown: dict[tuple[int, int], tuple[int, int]] = {}
        """By generation and index: the session and number of the entry that somebody was shown."""
        self._machines: MachineWatch | None = None
        self._begun = False
        """An operator has begun a generation."""
        self._engine: Watcher | None = None
        self._engine_known = False

    def __call__(self, world: World, node: NodeId, verb: str, what: Any) -> None:
        if verb == "installs":
            self._on_install(world, node, what)
        elif verb == "opens":
            self._seals.opens(world, node, what)
            return
        elif verb == "commits":
            self._on_commit(world, node)
            return
        elif verb == "begins":  # Nodes with old journals may still show what was lost.
            self._begun = True
            return
        if not self._engine_known:
            self._find_engine(world, node)
        if self._engine is not None:
            self._engine(world, node, verb, what)

    def _on_commit(self, world: World, node: NodeId) -> None:
        log = world.hosts[node].log
        assert log is not None
        generation = log.generation if self._begun else 0
        for index, named in log.pop_shown():
            first = self._shown.setdefault((generation, index), named)
            assert first == named, f"{node} is shown another entry at {index} than others"
        if log.application.machines is not None:
            self._machines = self._machines or MachineWatch()
            self._machines.look(node, log.application.machines)

    def _find_engine(self, world: World, node: NodeId) -> None:
        """All nodes of a world run the same engine: the first that does something tells which."""
        engine = getattr(world.hosts[node].core, "engine", None)
        if engine is None:
            return
        self._engine_known = True
        description = description_of(type(engine))
        if description is not None:
            watch = simulation_of(description.name).watch
            self._engine = None if watch is None else watch()

    def _on_install(self, world: World, node: NodeId, view: View) -> None:
        members = self._members.setdefault(view.id, view.members)
        assert members == view.members, f"{view.id} is {members} and {view.members}"
        assert (node, view.id) not in self._installed, f"{node} installs {view.id} twice"
        self._installed.add((node, view.id))
        core = world.hosts[node].core
        if isinstance(core, Stack) and core.membership.recovery is not None:
            recovery = core.membership.recovery
            if recovery.id == view.id and recovery.install_seq is not None:
                first = self._install_seqs.setdefault(view.id, recovery.install_seq)
                assert first == recovery.install_seq, f"{view.id} ends its exchange in two places"
