"""Mishaps of ATOP: what can happen to a distribution on its way, and members that fall silent.

The book-keeper is the first member of its view, which is mostly the first node. It makes a new
distribution when the shares of senders change, so a mishap begins with a burst of one sender.
"""

from roundelay.sim.draft import MS, Mishap, ScenarioDraft


def _burst(draft: ScenarioDraft, at: int, node: str) -> None:
    times = draft.random.choice((8, 20, 40))
    draft.at(at, f"submit {node} burst{draft.service()} times={times} size=90B")


def _half_told(draft: ScenarioDraft, at: int, later: int) -> None:
    """The book-keeper crashes when one other member, at most, has heard of its distribution."""
    random = draft.random
    keeper, *others = draft.nodes
    told = random.sample(others, random.choice((0, 1, 1)))
    deaf = [node for node in others if node not in told]
    _burst(draft, at - random.choice((5, 25, 110)) * MS, random.choice(draft.nodes))
    if deaf:
        draft.at(at - random.choice((2, 20)) * MS, f"lose DATA from={keeper} to={','.join(deaf)}")
    for node in (keeper, *told):
        draft.at(at - 2 * draft.rotation_ns, f"submit {node} told{draft.service()}")
    draft.at(at, f"crash {keeper}")
    draft.at(at + random.choice((0, 200)) * MS, "lose none")
    draft.restart(later + 400 * MS, keeper)


def _one_speaks(draft: ScenarioDraft, at: int, later: int) -> None:
    """All members but one fall silent: that one sends bursts, and nobody else anything more."""
    speaker, *others = draft.random.sample(draft.nodes, len(draft.nodes))
    step = draft.random.choice((5, 30)) * MS
    for i in range(draft.random.randint(2, 6)):
        _burst(draft, at + i * step, speaker)
    if draft.random.random() < 0.3:
        draft.at(at, f"slow {others[0]} 1ms")
        draft.at(later + 10 * step, f"slow {others[0]} 0ms")


def _taking_turns(draft: ScenarioDraft, at: int, later: int) -> None:
    """Members send bursts in turn, so that distributions follow each other closely."""
    step = draft.random.choice((4, 21, 105)) * MS
    for i in range(draft.random.randint(3, 8)):
        _burst(draft, at + i * step, draft.random.choice(draft.nodes))


def _late_learner(draft: ScenarioDraft, at: int, later: int) -> None:
    """A member gets no packets while shares change, goes on sending, and catches up."""
    node, *others = draft.random.sample(draft.nodes, len(draft.nodes))
    step = draft.random.choice((4, 21)) * MS
    draft.at(at, f"lose DATA to={node}")
    for i in range(4):
        _burst(draft, at + i * step, draft.random.choice(others))
        draft.at(at + i * step + MS, f"submit {node} unaware{draft.service()}")
    draft.at(at + 5 * step, "lose none")


def _cut_in_a_change(draft: ScenarioDraft, at: int, later: int) -> None:
    """A view ends half-way through a change: some do not hear of it, and are cut off or crash."""
    random = draft.random
    mixed = random.sample(draft.nodes, len(draft.nodes))
    split = random.randint(1, len(mixed) - 1)
    unaware, aware = sorted(mixed[:split]), sorted(mixed[split:])
    before = at - random.choice((5, 25, 110)) * MS
    _burst(draft, before, random.choice(aware))
    draft.at(before + MS, f"lose DATA from={','.join(aware)} to={','.join(unaware)}")
    for node in draft.nodes:
        draft.at(at - 2 * draft.rotation_ns, f"submit {node} half{draft.service()}")
    if random.random() < 0.5:
        draft.at(at, f"partition {','.join(unaware)} {','.join(aware)}")
        draft.at(later + random.choice((100, 400)) * MS, "merge")
    else:
        draft.at(at, f"crash {unaware[0]}")
        draft.restart(later + 300 * MS, unaware[0])
    draft.at(at + 2 * MS, "lose none")


def _covered_in_vain(draft: ScenarioDraft, at: int, later: int) -> None:
    """A member fills its slots for packets that reached it alone, and crashes with their sender."""
    random = draft.random
    author, witness, *others = random.sample(draft.nodes, len(draft.nodes))
    if others:
        lost = f"lose DATA sender={draft.nodes.index(author)} from={author},{witness}"
        draft.at(at, f"{lost} to={','.join(sorted(others))}")
        draft.at(at, f"submit {random.choice(others)} between times=3 size=900B")
    # A packet for each message, so that there are many slots to fill.
    draft.at(at, f"submit {author} burst times=12 size=900B")
    crash = at + random.choice((4, 14, 14)) * MS + draft.rotation_ns
    for node in (author, witness):
        draft.at(crash, f"crash {node}")
        draft.restart(later + 400 * MS, node)
    draft.at(crash + 300 * MS, "lose none")


MISHAPS: dict[str, Mishap] = {
    "half-told": _half_told,
    "one-speaks": _one_speaks,
    "taking-turns": _taking_turns,
    "late-learner": _late_learner,
    "cut-in-a-change": _cut_in_a_change,
    "covered-in-vain": _covered_in_vain,
}
