"""Invariants of FC over all hosts: one line of confirmed decisions, held by a majority.

Under the rules `paper` and `link` members may confirm different decisions, which the checker finds.
There only what each member promises by itself is watched.
"""

from typing import Any

from roundelay.core.effects import Deliver
from roundelay.core.ids import NodeId, Packet, ViewId
from roundelay.protocols.fc.literal import LiteralMember
from roundelay.protocols.fc.member import Member
from roundelay.protocols.fc.messages import ROOT, Dec, DecisionId, Epoch
from roundelay.protocols.fc.safe import SafeMember
from roundelay.sim.world import World

Life = tuple[ViewId, NodeId, int]
"""A node in one incarnation, in one view."""


class Line:
    """The confirmed decisions of a view, as the first member to confirm each of them has it."""

    def __init__(self, size: int) -> None:
        self.ids: list[DecisionId] = [ROOT]
        self.ordered = [0] * size
        """By sender: its last request."""


class FcWatch:
    """Raises AssertionError at the first breach.

    - I1, I2, I3: all members confirm the same decisions, one number after the other.
    - I4: a request is on that line once, after those of its sender before it; what is delivered
      with a key is the same packet everywhere, and keys of a member grow.
    - I5: an epoch has one decision for each number.
    - I6: what is promised and accepted never goes back, and nothing is accepted that was not
      promised.
    - I7: a member extends what it has confirmed.
    - I8: a decision is made by the member that follows on its parent's ring, or begins an epoch.
    - I9: a request that is here is on the chain or waits for a place.
    - Nobody is believed to hold more than it does, and a majority holds what is confirmed.
    """

    def __init__(self) -> None:
        self._made: dict[ViewId, dict[DecisionId, Dec]] = {}
        self._numbers: dict[tuple[ViewId, object, int], DecisionId] = {}
        """By view, epoch and number: the decision."""
        self._lines: dict[ViewId, Line] = {}
        self._confirmed: dict[Life, DecisionId] = {}
        self._epochs: dict[Life, tuple[Epoch, Epoch]] = {}
        """What a member has promised and accepted."""
        self._keys: dict[Life, tuple[int, ...]] = {}
        """The key of its last delivery."""
        self._packets: dict[tuple[ViewId, tuple[int, ...]], Packet] = {}

    def __call__(self, world: World, node: NodeId, verb: str, what: Any) -> None:
        if verb == "sends":
            view = what.frame.origin.view
            engine = _engine(world, node, view)
            if engine is None:
                return
            if what.tag == "DEC" and isinstance(engine, SafeMember):
                self._on_decision(world, engine, what.frame.message)
            self._look(world, engine)
        elif verb == "delivers" and what.key is not None:
            engine = _engine(world, node, what.view)
            if engine is not None:
                self._on_delivery(world, engine, what)
                self._look(world, engine)

    # Decisions

    def _on_decision(self, world: World, engine: SafeMember, d: Dec) -> None:
        view, me = engine.view.id, engine.node
        made = self._made.setdefault(view, {})
        if made.get(d.id) == d:
            return  # It is sent again.
        first = self._numbers.setdefault((view, d.epoch, d.number), d.id)
        only = first == d.id and d.id not in made
        assert only, f"{me} makes {d}, and there is another decision {d.number} of that epoch"
        made[d.id] = d
        assert d.maker == engine.me, f"{me} makes {d} under the name of another"
        assert d.maker in d.ring, f"{me} makes {d}, and is off its ring"
        if d.parent.epoch != d.epoch:
            assert d.epoch.regenerator == d.maker, f"{me} begins the epoch of another with {d}"
        elif (parent := made.get(d.parent)) is not None:
            after = parent.ring[(parent.ring.index(parent.maker) + 1) % len(parent.ring)]
            assert after == d.maker, f"{me} makes {d}, and {after + 1} had the token"
        for other in _engines(world, view):
            if isinstance(other, SafeMember) and other.accepted == d.epoch:
                believed, chain = d.have[other.me], other.chain
                holds = believed <= chain.floor or (
                    believed <= chain.number and _holds_requests(other, believed)
                )
                assert holds, f"{me} believes that {other.node} holds {believed}"

    # What one member has

    def _look(self, world: World, engine: Member) -> None:
        """Check a member that did something."""
        life = (engine.view.id, engine.node, world.hosts[engine.node].incarnation)
        before = self._confirmed.get(life, ROOT)
        if engine.confirmed != before:
            if isinstance(engine, SafeMember):
                self._on_confirmation(world, engine, before)
            assert engine.confirmed.number > before.number, (
                f"{engine.node} had confirmed {before}, and has {engine.confirmed}"
            )
            self._confirmed[life] = engine.confirmed
        if isinstance(engine, SafeMember):
            self._check_epochs(engine, life)
            assert engine.chain.holds(engine.confirmed), (
                f"{engine.node} gave up {engine.confirmed}, which it had confirmed"
            )
            _check_requests(engine)

    def _on_confirmation(self, world: World, engine: SafeMember, before: DecisionId) -> None:
        """Compare what a member has confirmed since with what others have."""
        made, node = self._made.get(engine.view.id, {}), engine.node
        line = self._lines.setdefault(engine.view.id, Line(engine.size))
        path: list[Dec] = []
        id_ = engine.confirmed
        while id_.number > before.number:
            path.append(made[id_])
            id_ = made[id_].parent
        assert id_ == before, f"{node} had confirmed {before}, and {engine.confirmed} is not behind"
        for decision in reversed(path):
            if decision.number == len(line.ids):
                _extend(line, decision)
            first = line.ids[decision.number]
            assert first == decision.id, f"{node} confirms {decision.id}, another {first}"
        members = _engines(world, engine.view.id)
        holding = sum(_holds(other, engine.confirmed) for other in members)
        gone = engine.size - len(members)
        assert holding + gone >= engine.size // 2 + 1, (
            f"{node} confirms {engine.confirmed}, which only {holding} hold"
        )

    def _check_epochs(self, engine: SafeMember, life: Life) -> None:
        promised, accepted = engine.promised, engine.accepted
        before = self._epochs.get(life)
        if before == (promised, accepted):
            return
        assert accepted <= promised, f"{engine.node} accepts {accepted} and promised {promised}"
        if before is not None:
            further = promised >= before[0] and accepted >= before[1]
            assert further, f"{engine.node} goes back to {promised} and {accepted} from {before}"
        self._epochs[life] = promised, accepted

    def _on_delivery(self, world: World, engine: Member, effect: Deliver) -> None:
        view, node = engine.view.id, engine.node
        key = effect.key
        assert key is not None
        life = (view, node, world.hosts[node].incarnation)
        last = self._keys.get(life, (0, -1))
        assert key > last, f"{node} delivers at {key} after {last}"
        self._keys[life] = key
        if isinstance(engine, SafeMember):
            first = self._packets.setdefault((view, key), effect.packet)
            assert first == effect.packet, f"{node} delivers {effect.packet} where {first} was"


def _extend(line: Line, decision: Dec) -> None:
    """Put a decision behind those that were confirmed."""
    line.ids.append(decision.id)
    for run in decision.runs:
        due = line.ordered[run.sender] + 1
        assert run.first == due, f"{decision.id} orders {run}, and number {due} comes next"
        line.ordered[run.sender] = run.last


def _check_requests(engine: SafeMember) -> None:
    requests, ordered = engine.requests, engine.chain.tip.ordered
    for sender, arrived in enumerate(requests.arrived):
        if arrived > ordered[sender]:
            assert sender in requests.waiting, (
                f"{engine.node} has {arrived} requests of {sender + 1}, {ordered[sender]} are "
                f"ordered, and the others do not wait for a place"
            )


def _holds(engine: Member, id_: DecisionId) -> bool:
    """Whether a member has a decision, and the requests up to it."""
    if not engine.chain.holds(id_):
        return False
    return id_.number <= engine.chain.floor or _holds_requests(engine, id_.number)


def _holds_requests(engine: Member, number: int) -> bool:
    """Whether a member has all requests that its chain orders up to this number."""
    ordered = engine.chain.at(number).ordered
    return all(map(int.__ge__, engine.requests.arrived, ordered))


def _engines(world: World, view: ViewId) -> list[Member]:
    found = (_engine(world, node, view) for node in world.nodes)
    return [engine for engine in found if engine is not None]


def _engine(world: World, node: NodeId, view: ViewId | None) -> Member | None:
    """The engine of a node, if it runs in this view now, with others."""
    host = world.hosts[node]
    engine = getattr(host.core, "engine", None) if host.alive else None
    if not isinstance(engine, SafeMember | LiteralMember) or not hasattr(engine, "view"):
        return None
    return engine if engine.view.id == view and engine.size > 1 else None
