"""Mishaps of FC: decisions that some hear, members that are slow to the wrong moment."""

from roundelay.sim.draft import MS, Mishap, ScenarioDraft

WAITS_MS = (8, 25, 60)
"""How long something lasts: shorter than the wait for a token, longer, several times as long."""


def some(draft: ScenarioDraft, nodes: list[str], least: int = 0) -> str:
    """A part of these nodes, for a command."""
    return ",".join(sorted(draft.random.sample(nodes, draft.random.randint(least, len(nodes)))))


def _partly_heard(draft: ScenarioDraft, at: int, later: int) -> None:
    """A member makes decisions that only some hear, and crashes."""
    maker, *others = draft.random.sample(draft.nodes, len(draft.nodes))
    before = at - draft.random.choice(WAITS_MS) * MS
    if deaf := some(draft, others):
        draft.at(before, f"lose DEC from={maker} to={deaf}")
    draft.at(before, f"submit {maker} heard")
    draft.at(at - draft.rotation_ns, f"submit {draft.random.choice(others)} by{draft.service()}")
    draft.at(at, f"crash {maker}")
    draft.at(at + 5 * MS, "lose none")
    if draft.random.random() < 0.8:
        draft.restart(later + draft.random.choice((5, 400)) * MS, maker)


def false_suspicion(draft: ScenarioDraft, at: int, later: int) -> None:
    """Nobody, or not everybody, hears the decisions of a live member for a while."""
    maker, *others = draft.random.sample(draft.nodes, len(draft.nodes))
    draft.at(at, f"lose DEC from={maker} to={some(draft, others, 1)}")
    for node in (maker, draft.random.choice(others)):
        draft.at(at + 2 * MS, f"submit {node} doubted{draft.service()}")
    draft.at(at + draft.random.choice(WAITS_MS) * MS, "lose none")


def regenerators(draft: ScenarioDraft, at: int, later: int) -> None:
    """No decision is heard, and hardly a promise, until several members make the token anew."""
    draft.at(at, "lose DEC")
    if draft.random.random() < 0.7:
        draft.at(
            at, f"lose {draft.random.choice(('REGEN', 'PROMISE'))} to={some(draft, draft.nodes, 1)}"
        )
    draft.at(at + MS, f"submit {draft.random.choice(draft.nodes)} between{draft.service()}")
    draft.at(at + draft.random.choice((25, 35, 60)) * MS, "lose none")


def paused_maker(draft: ScenarioDraft, at: int, later: int) -> None:
    """A member stops for longer than the wait, with something to say, and comes back."""
    node = draft.random.choice(draft.nodes)
    draft.at(at - draft.rotation_ns, f"submit {node} before{draft.service()}")
    draft.at(at, f"pause {node}")
    for other in draft.nodes:
        if other != node:
            draft.at(at + 3 * MS, f"submit {other} meanwhile{draft.service()}")
    draft.at(at + draft.random.choice((25, 40, 80)) * MS, f"resume {node}")


def own_body(draft: ScenarioDraft, at: int, later: int) -> None:
    """For a while nobody, or hardly anybody, gets the requests of a member."""
    node, *others = draft.random.sample(draft.nodes, len(draft.nodes))
    draft.at(at, f"lose REQ from={node} to={some(draft, others, max(1, len(others) - 1))}")
    draft.at(at + MS, f"submit {node} own{draft.service()}")
    draft.at(at + draft.random.choice(WAITS_MS) * MS, "lose none")


def _lost_bodies(draft: ScenarioDraft, at: int, later: int) -> None:
    """For a while nobody gets the requests of a member; or one gets no requests, for very long."""
    if draft.random.random() < 0.6:
        own_body(draft, at, later)
        return
    node, *others = draft.random.sample(draft.nodes, len(draft.nodes))
    start = at // 4
    draft.at(start, f"lose REQ to={node}")
    for i in range(6):
        draft.at(start + i * 200 * MS, f"submit {draft.random.choice(others)} unheard")
        draft.at(start + i * 200 * MS, f"lose REQ to={node}")  # Others may have ended it.
    draft.at(start + 1300 * MS, "lose none")


def _orphaned_body(draft: ScenarioDraft, at: int, later: int) -> None:
    """Members order requests that only they have, and crash."""
    random = draft.random
    node, *others = random.sample(draft.nodes, len(draft.nodes))
    gone = [node, *others[: random.randint(0, max(0, len(others) - 2))]]
    left = [other for other in others if other not in gone]
    draft.at(at, f"lose REQ from={','.join(sorted(gone))} to={','.join(sorted(left))}")
    draft.at(at, f"submit {node} orphan{draft.service()}")
    draft.at(at + 2 * MS, f"submit {random.choice(left)} behind{draft.service()}")
    crash = at + random.choice((6, 12, 30)) * MS
    for each in gone:
        draft.at(crash, f"crash {each}")
        draft.restart(later + 400 * MS, each)
    draft.at(crash + MS, "lose none")


def changed_chains(draft: ScenarioDraft, at: int, later: int) -> None:
    """Decisions and promises reach one part and then the other, so that chains compete."""
    random = draft.random
    for i in range(random.randint(2, 4)):
        start = at + i * random.choice((22, 30, 45)) * MS
        draft.at(start, "lose none")
        for tag in ("DEC", random.choice(("REGEN", "PROMISE", "CHAIN"))):
            senders, receivers = some(draft, draft.nodes, 1), some(draft, draft.nodes, 1)
            draft.at(start, f"lose {tag} from={senders} to={receivers}")
        draft.at(start + MS, f"submit {random.choice(draft.nodes)} chain{i}")
    draft.at(at + random.choice((100, 200)) * MS, "lose none")


def _in_a_regeneration(draft: ScenarioDraft, at: int, later: int) -> None:
    """A member is cut off while it asks for promises, or a majority crashes then."""
    random = draft.random
    mixed = random.sample(draft.nodes, len(draft.nodes))
    split = random.randint(1, len(mixed) - 1)
    draft.at(at - 25 * MS, f"lose DEC from={mixed[0]}")
    for node in draft.nodes:
        draft.at(at - 22 * MS, f"submit {node} asking{draft.service()}")
    if random.random() < 0.5:
        sides = ",".join(sorted(mixed[:split])), ",".join(sorted(mixed[split:]))
        draft.at(at, f"partition {sides[0]} {sides[1]}")
        draft.at(later + random.choice((100, 400)) * MS, "merge")
    else:
        for node in mixed[:split]:
            draft.at(at, f"crash {node}")
            draft.restart(later + 300 * MS, node)
    draft.at(at + MS, "lose none")


MISHAPS: dict[str, Mishap] = {
    "partly-heard": _partly_heard,
    "false-suspicion": false_suspicion,
    "regenerators": regenerators,
    "paused-maker": paused_maker,
    "own-body": _lost_bodies,
    "orphaned-body": _orphaned_body,
    "changed-chains": changed_chains,
    "in-a-regeneration": _in_a_regeneration,
}
"""In views."""
