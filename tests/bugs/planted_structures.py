"""Bugs of replicated machines, which histories of their clients show."""

from collections.abc import Mapping
from typing import Any

from roundelay.core.ids import NodeId
from roundelay.structures.queue import Queue
from roundelay.structures.turns import Claim, Turns

from .planted import Patch, bug


@bug("The token of a lock counts how often a node got it.")
def lock_token_per_node() -> list[Patch]:
    def grant(self: Turns, claim: Claim) -> Claim:
        granted = original(self, claim)
        counts = vars(self).setdefault("told_counts", {})
        counts[claim.node] = counts.get(claim.node, 0) + 1
        own = granted._replace(token=counts[claim.node])
        self.granted[self.granted.index(granted)] = own
        return own

    original = Turns._grant
    return [(Turns, "_grant", grant)]


@bug("At each term all items that were taken go back to the queue.")
def items_of_everybody_go_back() -> list[Patch]:
    def on_term(self: Queue[Any], sessions: Mapping[NodeId, int]) -> None:
        original(self, {})

    original = Queue.on_term
    return [(Queue, "on_term", on_term)]
