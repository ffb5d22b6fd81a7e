"""Mishaps that a seed may draw for any engine: crashes, partitions, lost frames, slow nodes."""

from roundelay.sim.draft import MS, Mishap, ScenarioDraft


def _crash(draft: ScenarioDraft, at: int, later: int) -> None:
    """A node crashes, at once or in the middle of a step, and is usually restarted."""
    node = draft.random.choice(draft.nodes)
    after = draft.random.choice(("", "", f" after={draft.random.randint(1, 12)}"))
    draft.at(at, f"crash {node}{after}")
    if draft.random.random() < 0.8:
        draft.restart(later, node)


def _last_words(draft: ScenarioDraft, at: int, later: int) -> None:
    """A node crashes, and what it sent last reached nobody, or not all, or with a gap."""
    node, *others = draft.random.sample(draft.nodes, len(draft.nodes))
    lost = sorted(others[draft.random.randint(0, min(2, len(others) - 1)) :])
    before = at - draft.random.choice((2 * draft.rotation_ns, 3 * MS))
    # All of it is lost, or even what others repeat, or one copy for each: of the first packet.
    lose = draft.random.choice((f"from={node}", "", f"from={node} times={len(lost)}"))
    draft.at(before, f"lose {draft.carrier()} to={','.join(lost)} {lose}")
    draft.at(before, f"submit {node} last")
    draft.at(before, f"submit {node} words safe")
    draft.at(at - draft.rotation_ns, f"submit {others[0]} behind{draft.service()}")
    draft.at(at, f"crash {node}")
    draft.at(at + 400 * MS, "lose none")
    if draft.random.random() < 0.8:
        draft.restart(later, node)


def _ambush(draft: ScenarioDraft, at: int, later: int) -> None:
    """Such a crash, and another just when the next ring is being formed; up to three times."""
    for again in range(draft.random.randint(1, 3)):
        start = at + again * 500 * MS
        node, other = draft.random.sample(draft.nodes, 2)
        rest = ",".join(peer for peer in draft.nodes if peer != node)
        draft.at(start - 6 * draft.rotation_ns, f"lose {draft.carrier()} from={node} to={rest}")
        draft.at(start - 6 * draft.rotation_ns, f"submit {node} gap")
        draft.at(start - 3 * draft.rotation_ns, f"submit {other} behind{draft.service()}")
        draft.at(start, f"crash {node}")
        draft.restart(start + MS, node)
        # About as many effects as until everybody has everything and nobody has installed.
        draft.at(start + MS, f"crash {other} after={draft.random.randint(21, 31)}")
        draft.at(start + 300 * MS, "lose none")
        draft.restart(start + 300 * MS, other)


def _partition(draft: ScenarioDraft, at: int, later: int) -> None:
    """The network falls into two to four parts, and is mended."""
    random = draft.random
    sides: list[list[str]] = [[] for _ in range(random.randint(2, min(4, len(draft.nodes))))]
    for i, node in enumerate(random.sample(draft.nodes, len(draft.nodes))):
        side = sides[i] if i < len(sides) else random.choice(sides)
        side.append(node)
    draft.at(at, "partition " + " ".join(",".join(sorted(side)) for side in sides))
    draft.at(later + random.choice((0, 300)) * MS, "merge")


def _one_way(draft: ScenarioDraft, at: int, later: int) -> None:
    """One to three links carry nothing in one direction, and are mended."""
    count = draft.random.randint(1, 3)
    links = [draft.random.sample(draft.nodes, 2) for _ in range(count)]
    draft.at(at, "cut " + " ".join(f"{a}>{b}" for a, b in links))
    draft.at(later + draft.random.choice((0, 300)) * MS, "merge")


def _pause(draft: ScenarioDraft, at: int, later: int) -> None:
    """A node stops for a while, and goes on with what has come meanwhile."""
    node = draft.random.choice(draft.nodes)
    draft.at(at, f"pause {node}")
    draft.at(later + draft.random.choice((0, 300)) * MS, f"resume {node}")


def _slow(draft: ScenarioDraft, at: int, later: int) -> None:
    """A node takes longer over everything, for a while."""
    node = draft.random.choice(draft.nodes)
    draft.at(at, f"slow {node} {draft.random.choice((1, 3, 10))}ms")
    draft.at(later, f"slow {node} 0ms")


def _drift(draft: ScenarioDraft, at: int, later: int) -> None:
    """A node's timers go wrong from now on, by a fifth too fast up to a third too slow."""
    factor = draft.random.choice((0.8, 0.95, 1.05, 1.3))
    draft.at(at, f"drift {draft.random.choice(draft.nodes)} {factor}")


def _deaf(draft: ScenarioDraft, at: int, later: int) -> None:
    """A node hears what is sent to it alone, but no packets, and perhaps no Joins."""
    node = draft.random.choice(draft.nodes)
    draft.at(at, f"lose {draft.carriers[0]} to={node}")
    if draft.random.random() < 0.5:
        draft.at(at, f"lose JOIN to={node}")
    draft.at(later + 400 * MS, "lose none")


def _obstruct(draft: ScenarioDraft, at: int, later: int) -> None:
    """A node restarts, and no new ring comes about: one node does not get what forms it."""
    node, other = draft.random.sample(draft.nodes, 2)
    times = draft.random.choice(("", "", f" times={draft.random.randint(1, 12)}"))
    draft.at(at, f"lose {draft.random.choice(('COMMIT', 'RTOKEN'))} to={node}{times}")
    draft.at(at, f"crash {other}")
    draft.restart(at + 5 * MS, other)
    draft.at(later + 400 * MS, "lose none")


def _outage(draft: ScenarioDraft, at: int, later: int) -> None:
    """All nodes or most of them crash at once, and come back one by one, some with lost storage."""
    random, nodes = draft.random, draft.nodes
    count = random.choice((len(nodes), len(nodes), len(nodes) - 1, len(nodes) // 2 + 1))
    fallen = random.sample(nodes, count)
    for node in fallen:
        draft.at(at + random.choice((0, 0, 1)) * MS, f"crash {node}")
    draft.return_(later + 2 * MS, fallen, random.choice((0, 1, 20, 150, 300)) * MS)


def _shrink(draft: ScenarioDraft, at: int, later: int) -> None:
    """Nodes crash one by one until one or two are left, or none; then the first return."""
    random = draft.random
    order = random.sample(draft.nodes, len(draft.nodes))
    staying = random.randint(1, min(2, len(order) - 1))
    # As long as the others need to go on without a node, or not.
    step = random.choice((30, 250, 300)) * MS
    fallen, rest = order[:-staying], order[-staying:]
    for i, node in enumerate(fallen):
        draft.at(at + i * step, f"crash {node}")
    end = at + len(fallen) * step
    if random.random() < 0.5:
        for node in rest:
            draft.at(end, f"crash {node}")
        draft.return_(end + random.choice((30, 400)) * MS, rest, MS)
    draft.return_(end + random.choice((1, 30, 250)) * MS, fallen, random.choice((1, 30)) * MS)


def _half_formed(draft: ScenarioDraft, at: int, later: int) -> None:
    """A node restarts, and others crash about when the new ring is complete; up to three times."""
    random = draft.random
    for again in range(random.randint(1, 3)):
        start = at + again * 600 * MS
        node, *others = random.sample(draft.nodes, len(draft.nodes))
        draft.at(start - 3 * draft.rotation_ns, f"submit {others[0]} before{draft.service()}")
        draft.at(start, f"crash {node}")
        draft.restart(start + MS, node)
        # As many effects as until some have everything, and perhaps have installed.
        fallen = others[: random.randint(1, len(others))]
        least = random.choice((22, 26, 26))
        for other in fallen:
            draft.at(start + MS, f"crash {other} after={least + random.randint(0, 8)}")
        draft.return_(
            start + random.choice((150, 300)) * MS, fallen, random.choice((0, 1, 20)) * MS
        )


MISHAPS: dict[str, Mishap] = {
    "crash": _crash,
    "last-words": _last_words,
    "ambush": _ambush,
    "partition": _partition,
    "one-way": _one_way,
    "pause": _pause,
    "slow": _slow,
    "drift": _drift,
    "deaf": _deaf,
    "obstruct": _obstruct,
    "outage": _outage,
    "shrink": _shrink,
    "half-formed": _half_formed,
}
