"""Causal in the simulator: packets that wait for their causes, and those that never get them."""

from collections import defaultdict
from collections.abc import Mapping
from random import Random
from typing import Any

from roundelay.core.effects import Deliver
from roundelay.core.ids import NodeId, ViewId
from roundelay.links.messages import Data
from roundelay.sim.coverage import links
from roundelay.sim.coverage.evidence import Evidence, Life, Message, life, message, view
from roundelay.sim.draft import MS, Mishap, ScenarioDraft
from roundelay.sim.engines.links_watch import LinksWatch, Member
from roundelay.sim.simulation import Simulation, Tuning
from roundelay.sim.world import World


class CausalWatch(LinksWatch):
    """Raises AssertionError at the first breach: of what every engine on links keeps, and of these.

    - A packet names as its causes just what its sender had delivered.
    - A node delivers each sender's packets in their order and without gaps, and none before its
      causes.
    """

    def __init__(self) -> None:
        super().__init__()
        self._delivered: dict[Member, list[int]] = {}
        """By member of a view: how many packets of each member it has delivered."""

    def _counts(self, world: World, node: NodeId, view: ViewId) -> list[int]:
        who = (view, node, world.hosts[node].incarnation)
        return self._delivered.setdefault(who, [0] * len(self.members(world, view)))

    def on_first_sent(self, world: World, node: NodeId, view: ViewId, data: Data[Any]) -> None:
        had = tuple(self._counts(world, node, view))
        causes = data.content.causes
        assert causes == had, f"{node} names {causes} as causes, and has delivered {had}"

    def on_delivery(self, world: World, node: NodeId, effect: Deliver) -> None:
        view = effect.view
        assert view is not None, f"{node} delivers in no view"
        members = self.members(world, view)
        if len(members) == 1:
            return
        sender = members.index(effect.packet.span.node)
        counts = self._counts(world, node, view)
        sent = self.contents[view, sender, counts[sender] + 1]
        assert sent.packet == effect.packet, f"{node} delivers {effect.packet} before {sent}"
        assert all(map(int.__le__, sent.causes, counts)), f"{node} delivers {sent}, has {counts}"
        counts[sender] += 1


def waits_for_a_cause(run: Evidence) -> bool:
    """A packet arrives in its sender's order, and before another member's that it depends on."""
    got: dict[tuple[Life, ViewId | None, int], set[int]] = defaultdict(set)
    for row in run.kinds["arrive"]:
        if row.tag != "DATA":
            continue
        sent = run.frame(row)
        where, m = (life(row), sent.view), sent.message
        got[*where, m.sender].add(m.number)
        for member, node in enumerate(run.members(sent.view)):
            cause = m.content.causes[member]
            others = member != m.sender and run.number(node) != row.proc
            if others and cause and cause not in got[*where, member]:
                return True
    return False


def in_two_orders(run: Evidence) -> bool:
    """Two members deliver in different orders packets that do not know of each other."""
    logs: dict[tuple[int | None, int | None], dict[Life, list[Message]]] = defaultdict(dict)
    for row in run.kinds["deliver"]:
        logs[view(row)].setdefault(life(row), []).append(message(row))
    for by_life in logs.values():
        first, *others = by_life.values()
        for other in others:
            both = {*first} & {*other}
            if [m for m in first if m in both] != [m for m in other if m in both]:
                return True
    return False


def dropped_for_want_of_a_cause(run: Evidence) -> bool:
    """A view ends, and a packet is dropped since nobody present has one that it depends on."""
    contents: dict[tuple[tuple[int, int], int, int], Any] = {}
    for sent in links.first_sent(run):
        assert sent.view is not None
        where = (sent.view.seq, run.number(sent.view.rep))
        contents[where, sent.message.sender, sent.message.number] = sent.message.content
    left = {(life(before), view(before)) for before, _ in run.steps}
    received = {(life(row), message(row)) for row in run.kinds["receive"]}
    delivered = {(life(row), message(row)) for row in run.kinds["deliver"]}

    def name(span: Any) -> Message:
        return run.number(span.node), span.incarnation, span.first

    for (where, _, _), content in contents.items():
        mine = name(content.packet.span)
        for who in {who for who, of in left if of == where}:
            if (who, mine) not in received or (who, mine) in delivered:
                continue
            for member, number in enumerate(content.causes):
                cause = contents.get((where, member, number))
                if cause is None or not cause.packet.span.count:
                    continue
                missing = name(cause.packet.span)
                if missing[:2] != who and (who, missing) not in received:
                    return True
    return False


def _options(random: Random, nodes: int, static: bool) -> Mapping[str, object]:
    return {
        "window_packets": random.choice((None, None, 16, 3)),
        "stall_s": random.choice((None, 0.3, 0.15)),
    }


def _cause_lost(draft: ScenarioDraft, at: int, later: int) -> None:
    """A packet reaches one other member, who answers it; both crash, and the answer is left."""
    random = draft.random
    author, witness, *others = random.sample(draft.nodes, len(draft.nodes))
    for loser in (author, witness):
        if others:
            lost = f"lose DATA sender={draft.nodes.index(author)} from={loser}"
            draft.at(at, f"{lost} to={','.join(sorted(others))}")
    draft.at(at, f"submit {author} cause")
    draft.at(at + draft.rotation_ns, f"submit {witness} answer{draft.service()}")
    crash = at + 3 * draft.rotation_ns + random.choice((0, 0, 2)) * MS
    draft.at(crash, f"crash {author}")
    draft.at(crash, f"crash {witness}")
    draft.at(crash + 300 * MS, "lose none")
    for node in (author, witness):
        draft.restart(later + 400 * MS, node)


MISHAPS: dict[str, Mishap] = {"cause-lost": _cause_lost}

ALWAYS = (waits_for_a_cause, in_two_orders)
IN_VIEWS = (dropped_for_want_of_a_cause,)

SIMULATION = Simulation(
    goals=(*links.ALWAYS, *ALWAYS),
    goals_in_views=(*links.IN_VIEWS, *IN_VIEWS),
    watch=CausalWatch,
    mishaps=MISHAPS,
    options=_options,
    tuning=Tuning(
        "silence_s=0.04",
        "37ms",
        repeating=frozenset({"heartbeat", "missing"}),
        noted=frozenset({"DATA"}),
    ),
)
