"""Invariants of Totem that no single core can see: asserted over all hosts while a run goes on."""

from typing import Any

from roundelay.core.ids import NodeId, View, ViewId
from roundelay.protocols.totem import TokenPass, TotemEngine
from roundelay.sim.transmission import Transmission
from roundelay.sim.world import World

HOPS_REMEMBERED = 64
"""Hops of a token that are compared with copies of it. Smaller: a late copy is taken for the first.
Larger: memory."""


class TotemWatch:
    """Raises AssertionError at the first breach.

    - One token per view: a hop is made by one node, and only once with new contents.
    - Flow control counts right: the token's figures are the sums of what its members remember.
    - Of an accelerated ring: nobody asks for a packet that may still be on its way to everybody,
      because the token has not been round once since it first told of it.
    """

    def __init__(self) -> None:
        self._hops: dict[tuple[ViewId, int], tuple[NodeId, TokenPass]] = {}
        self._newest: dict[ViewId, int] = {}
        self._members: dict[ViewId, tuple[NodeId, ...]] = {}

    def __call__(self, world: World, node: NodeId, verb: str, what: Any) -> None:
        if verb == "sends" and what.tag == "TOKEN":
            self._on_token(world, node, what)
        elif verb == "installs":
            view: View = what
            self._members.setdefault(view.id, view.members)

    def _on_token(self, world: World, node: NodeId, transmission: Transmission) -> None:
        view, message = transmission.frame.origin.view, transmission.frame.message
        assert view is not None
        token = message.token
        sent = self._hops.setdefault((view, token.token_seq), (node, message))
        assert sent == (node, message), f"two tokens of {view} make hop {token.token_seq}"
        newest = self._newest.get(view, -1)
        if token.token_seq <= newest:
            return  # A retransmission.
        self._newest[view] = token.token_seq
        self._hops.pop((view, token.token_seq - HOPS_REMEMBERED), None)
        members = self._members.get(view, ())
        engines = [self._engine(world, member, view) for member in members]
        if engines and all(engine is not None for engine in engines):
            rings = [engine.ring for engine in engines if engine is not None]
            assert token.fcc == sum(ring.sent for ring in rings), f"fcc of {view} is wrong"
            assert token.backlog == sum(ring.left for ring in rings), f"backlog of {view} is wrong"
            window = rings[0].config.window_packets
            assert token.fcc <= window, f"{token.fcc} packets in a rotation of {window}"
            if rings[0].config.accelerated_packets and token.requests:
                before = self._hops.get((view, token.token_seq - len(members)))
                told = 0 if before is None else before[1].token.seq
                assert token.requests[-1] <= told, (
                    f"{node} asks for {token.requests[-1]}, and a rotation ago {told} were sent"
                )

    def _engine(self, world: World, node: NodeId, view: ViewId) -> TotemEngine | None:
        """The engine of a member, if it runs in this view now."""
        host = world.hosts[node]
        engine = getattr(host.core, "engine", None) if host.alive else None
        if not isinstance(engine, TotemEngine) or not hasattr(engine, "view"):
            return None
        return engine if engine.view.id == view else None
