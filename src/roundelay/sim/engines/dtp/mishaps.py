"""Mishaps for engines that order after sending: what is lost is the word about an order."""

from roundelay.sim.draft import MS, Mishap, ScenarioDraft


def _overtaken(draft: ScenarioDraft, at: int, later: int) -> None:
    """A node misses acknowledgments, gets later ones, and is cut off before it can ask."""
    node, *others = draft.random.sample(draft.nodes, len(draft.nodes))
    draft.at(at, f"lose ACK to={node} times={draft.random.randint(1, 3)}")
    draft.at(at, f"lose REQ from={node}")
    for i in range(3):
        draft.at(at + 6 * i * draft.rotation_ns, f"submit {draft.random.choice(others)} missed")
        draft.at(at + 6 * i * draft.rotation_ns, f"submit {node} behind{draft.service()}")
    draft.at(at + 20 * draft.rotation_ns, f"partition {node} {','.join(sorted(others))}")
    draft.at(later + 400 * MS, "lose none")
    draft.at(later + draft.random.choice((400, 700)) * MS, "merge")


def _orphaned(draft: ScenarioDraft, at: int, later: int) -> None:
    """A node that has the token hands it on, one other hears of it at most, and it crashes."""
    node, *others = draft.random.sample(draft.nodes, len(draft.nodes))
    draft.at(at - 100 * MS, f"lose ACK from={node} to={','.join(sorted(others[1:] or others))}")
    draft.at(at, f"crash {node}")
    draft.at(at, "lose none")
    if draft.random.random() < 0.8:
        draft.restart(later + 400 * MS, node)


MISHAPS: dict[str, Mishap] = {"overtaken": _overtaken, "orphaned": _orphaned}
