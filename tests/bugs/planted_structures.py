"""Bugs of replicated machines, which histories of their clients show."""

from collections.abc import Mapping
from itertools import count
from typing import Any

from roundelay.core.ids import NodeId
from roundelay.structures.locks import Lock
from roundelay.structures.maps import Map
from roundelay.structures.queue import Queue, Taken
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


@bug("What a lost node held stays its own.")
def claims_outlive_their_node() -> list[Patch]:
    return [(Turns, "on_term", lambda self, sessions: None)]


@bug("The lock is granted while somebody has it.")
def lock_granted_while_held() -> list[Patch]:
    def begin(self: Lock) -> None:
        original(self)
        self.limit = 2

    original = Lock.__init__
    return [(Lock, "__init__", begin)]


@bug("An item that is given back is gone.")
def item_given_back_is_lost() -> list[Patch]:
    def give_back(self: Queue[Any], taken: Taken) -> None:
        del self.taken[taken.item.id]

    return [(Queue, "_give_back", give_back)]


@bug("The last item leaves a queue first.")
def queue_turned_round() -> list[Patch]:
    def hand_out(self: Queue[Any]) -> None:
        self.items.sort(reverse=True)
        original(self)

    original = Queue._hand_out
    return [(Queue, "_hand_out", hand_out)]


@bug("A time to live ends by the clock of each node, and no two clocks are the same.")
def time_to_live_by_local_clocks() -> list[Patch]:
    def set_for(self: Map[Any], key: str, value: object, ttl_s: float | None) -> int:
        late_s = vars(self).setdefault("late_s", 0.1 * next(clocks))
        return original(self, key, value, None if ttl_s is None else ttl_s + late_s)

    original, clocks = Map._set, count()
    return [(Map, "_set", set_for)]
