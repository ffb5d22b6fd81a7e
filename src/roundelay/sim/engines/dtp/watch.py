"""Invariants of DTP, CM and Pinwheel that no single core can see, and those that are cheap to see
from outside.

They hold under the repaired rules alone: groups that run the paper's are not watched.
"""

from collections import defaultdict
from typing import Any

from roundelay.core.effects import Deliver
from roundelay.core.ids import NodeId, ViewId
from roundelay.protocols.dtp.engine import DtpEngine
from roundelay.protocols.dtp.messages import Ack, Uid
from roundelay.protocols.dtp.policy import PINWHEEL
from roundelay.protocols.dtp.token import Grip
from roundelay.sim.world import World

ACKS_PER_MEMBER = 3
MSGS_PER_MEMBER = 4
"""How much may lie about in a group that loses frames, where one packet is ordered at a time. More
would be a leak. Without loss there is a sharper bound, which tests look at."""


class DtpWatch:
    """Is told of everything that happens in a world, and raises AssertionError at the first breach.

    - One member at most has the token, and no transfer of it is made twice.
    - A number is given to one packet, a packet gets one number, a sender's packets in their order.
    - Nobody is believed to hold more than it does. What is believed and seen never shrinks.
    - What is delivered is held by F more than one; what is stable is forgotten.
    - Nobody has more packets without a number than its window allows, and buffers do not leak.
    """

    def __init__(self) -> None:
        self._hops: dict[tuple[ViewId, int], Ack] = {}
        self._uids: dict[tuple[ViewId, int], Uid] = {}
        self._last: dict[tuple[ViewId, int], int] = defaultdict(int)
        """By view and sender: its last packet that has a number."""
        self._seen: dict[tuple[ViewId, NodeId, int], list[int]] = {}
        """By view, node and incarnation: what may only grow, as it was when we last looked."""

    def __call__(self, world: World, node: NodeId, verb: str, what: Any) -> None:
        if verb == "sends" and what.tag == "ACK":
            self._on_ack(world, node, what.frame.origin.view, what.frame.message)
        elif verb == "delivers":
            self._on_delivery(world, node, what)

    def _on_ack(self, world: World, node: NodeId, view: ViewId, ack: Ack) -> None:
        if _engine(world, node, view) is None:
            return
        if ack.hop:
            first = self._hops.setdefault((view, ack.hop), ack)
            assert first == ack, f"two transfers of the token of {view} are number {ack.hop}"
        for number, uid in enumerate(ack.uids, ack.last - len(ack.uids) + 1):
            if (view, number) not in self._uids:
                sender, its = uid
                due = self._last[view, sender] + 1
                assert its == due, f"{uid} of {view} has number {number}, before or after its turn"
                self._last[view, sender] = its
            first_uid = self._uids.setdefault((view, number), uid)
            assert first_uid == uid, f"{number} of {view} is {first_uid} and {uid}"
        self._check_members(world, view)

    def _on_delivery(self, world: World, node: NodeId, effect: Deliver) -> None:
        engine = _engine(world, node, effect.view)
        if engine is None or engine.frozen or effect.key is None:
            return
        assert effect.view is not None
        engines = _engines(world, effect.view)
        gone = engine.size - len(engines)
        having = sum(e.ledger.ready >= effect.key[0] for e in engines)
        assert having + gone > engine.resilience, f"{node} delivers what only {having} have"

    def _check_members(self, world: World, view: ViewId) -> None:
        """Check all members of a view that are in it still."""
        engines = _engines(world, view)
        holding = [engine.node for engine in engines if engine.token.grip is Grip.HOLD]
        assert len(holding) <= 1, f"{' and '.join(holding)} have the token of {view}"
        for engine in engines:
            self._check_member(world, engine)
            for other in engines:
                believed = engine.ledger.held[other.ledger.me]
                holds = other.ledger.ready
                assert believed <= holds, (
                    f"{engine.node} believes that {other.node} holds {believed}, and it is {holds}"
                )

    def _check_member(self, world: World, engine: DtpEngine) -> None:
        ledger, node = engine.ledger, engine.node
        assert engine.delivered <= ledger.ready, f"{node} delivers what it does not hold"
        kept = min(ledger.acks, default=engine.claimed + 1)
        assert kept > engine.claimed, f"{node} keeps {kept}, which is stable"
        window = engine.config.window_packets
        assert engine.outstanding <= window, f"{node} has {engine.outstanding} without a number"
        growing = [engine.token.hop, engine.delivered, *ledger.held, *ledger.expected]
        key = (engine.view.id, node, world.hosts[node].incarnation)
        before = self._seen.get(key, growing)
        assert all(map(int.__le__, before, growing)), f"{node} went back from {before} to {growing}"
        self._seen[key] = growing
        if engine.policy is not PINWHEEL:
            acks = ACKS_PER_MEMBER * engine.config.batch_packets * engine.size
            assert len(ledger.acks) <= acks, f"{node} leaks numbers"
            msgs = MSGS_PER_MEMBER * window * engine.size
            assert len(ledger.msgs) <= msgs, f"{node} leaks packets"


def _engines(world: World, view: ViewId) -> list[DtpEngine]:
    found = (_engine(world, node, view) for node in world.nodes)
    return [engine for engine in found if engine is not None]


def _engine(world: World, node: NodeId, view: ViewId | None) -> DtpEngine | None:
    """The engine of a node, if it runs in this view now, and under rules that are watched."""
    host = world.hosts[node]
    engine = getattr(host.core, "engine", None) if host.alive else None
    if not isinstance(engine, DtpEngine) or not hasattr(engine, "view") or engine.literal:
        return None
    return engine if engine.view.id == view else None
