"""Mishaps of groups with a journal: power cuts, disks that are lost, rot, fill up, slow down or
die, nodes that die as a log opens or while others catch up, clients that repeat what they appended.
"""

from roundelay.sim.draft import MS, Mishap, ScenarioDraft

CLIENTS = ("red", "blue", "green", "grey", "white", "pink", "black", "brown", "gold", "lime")
"""Clients that number what they append. More than the smallest table of sessions has room for."""


def _power(draft: ScenarioDraft, at: int, later: int) -> None:
    """A machine loses power, at once or within a step, and with it what was not synced."""
    node = draft.random.choice(draft.nodes)
    after = draft.random.choice(("", "", f" after={draft.random.randint(1, 40)}"))
    _append(draft, at - 2 * MS, draft.random.randint(1, 4))
    draft.at(at, f"crash {node} power{after}")
    if draft.random.random() < 0.85:
        draft.at(later, f"restart {node}")


def _blackout(draft: ScenarioDraft, at: int, later: int) -> None:
    """All machines lose power at once, and some come back later than others, or never."""
    random = draft.random
    _append(draft, at - draft.random.choice((1, 2, 5)) * MS, random.randint(1, 6))
    draft.at(at, "blackout")
    gap = random.choice((0, 1, 30, 300)) * MS
    back = random.sample(draft.nodes, len(draft.nodes))
    if random.random() < 0.3:
        back = back[: random.randint(1, len(back))]
    for i, node in enumerate(back):
        draft.at(later + MS + i * gap, f"restart {node}")


def _disk_lost(draft: ScenarioDraft, at: int, later: int) -> None:
    """A node crashes, and comes back with an empty disk, soon or when others have gone on."""
    node = draft.random.choice(draft.nodes)
    draft.at(at, f"crash {node}")
    draft.at(later, f"restart {node} storage={'kept' if node == draft.keeper else 'lost'}")


def _rot(draft: ScenarioDraft, at: int, later: int) -> None:
    """A node crashes, and finds one bit of its journal wrong when it comes back."""
    node, index = draft.random.choice(draft.nodes), draft.random.choice((0, 1, 2, 5, 10, 20, 40))
    draft.at(at, f"crash {node}")
    draft.at(later, f"restart {node} storage=rot:{index}")


def _disk_full(draft: ScenarioDraft, at: int, later: int) -> None:
    """The disks of one or two nodes are full for a while."""
    for node in draft.random.sample(
        draft.nodes, min(len(draft.nodes), draft.random.choice((1, 2)))
    ):
        draft.at(at, f"disk {node} full")
        draft.at(later + draft.random.choice((0, 400)) * MS, f"disk {node} ok")


def _slow_disk(draft: ScenarioDraft, at: int, later: int) -> None:
    """The disks of some nodes take a hundred times as long, for a while."""
    count = draft.random.randint(1, len(draft.nodes))
    for node in draft.random.sample(draft.nodes, count):
        draft.at(at, f"disk {node} slow")
        draft.at(later + draft.random.choice((0, 400)) * MS, f"disk {node} ok")


def _dying_disk(draft: ScenarioDraft, at: int, later: int) -> None:
    """A disk fails to sync, which stops its node; it comes back with a sound disk."""
    node = draft.random.choice(draft.nodes)
    draft.at(at, f"disk {node} fails")
    draft.at(at + MS, f"append {draft.random.choice(draft.nodes)} dying")
    draft.at(later + 20 * MS, f"disk {node} ok")
    # It is down if anything was stored meanwhile, and else goes on.
    draft.at(later + 21 * MS, f"restart {node}")


def _at_the_opening(draft: ScenarioDraft, at: int, later: int) -> None:
    """A node restarts, and others die between offer, cut, ready and open; up to three times."""
    random = draft.random
    for again in range(random.randint(1, 3)):
        start = at + again * 600 * MS
        node, *others = random.sample(draft.nodes, len(draft.nodes))
        _append(draft, start - 2 * draft.rotation_ns, random.randint(1, 3))
        if random.random() < 0.4:
            draft.at(start, f"lose {random.choice(('OFFER', 'READY', 'LOGACK'))} times=40")
        draft.at(start, f"crash {node}{random.choice(('', ' power'))}")
        draft.at(start + MS, f"restart {node}")
        for other in others[: random.randint(1, max(1, len(others) - 1))]:
            power = random.choice(("", "", " power"))
            draft.at(start + MS, f"crash {other}{power} after={random.randint(20, 60)}")
            draft.at(start + random.choice((150, 400)) * MS, f"restart {other}")
        draft.at(start + 400 * MS, "lose none")


def _donor_dies(draft: ScenarioDraft, at: int, later: int) -> None:
    """A node is away while the others append, comes back, and somebody dies while it catches up."""
    random = draft.random
    if len(draft.nodes) < 3:
        return
    node, *others = random.sample(draft.nodes, len(draft.nodes))
    draft.at(at, f"crash {node}")
    back = at + random.choice((300, 600)) * MS
    writer = random.choice(others)
    draft.at(at + 10 * MS, f"append {writer} away times={random.randint(5, 60)} size=300B")
    draft.at(back - 20 * MS, f"append {writer} late times={random.randint(5, 60)} size=300B")
    draft.at(back, f"restart {node}")
    silent = random.random() < 0.5
    if silent:  # The donor lives, and is not heard for longer than a learner waits.
        draft.at(back, f"lose CHUNK to={node} times={random.randint(2, 12)}")
        draft.at(back + 700 * MS, "lose none")
        return
    donor = random.choice(others)
    draft.at(back + random.randint(1, 60) * MS, f"crash {donor}")
    draft.at(back + 500 * MS, f"restart {donor}")


def _long_learner(draft: ScenarioDraft, at: int, later: int) -> None:
    """A node is away while others append much and remove the beginning of their logs."""
    random = draft.random
    if len(draft.nodes) < 2:
        return
    node, *others = random.sample(draft.nodes, len(draft.nodes))
    draft.at(at, f"crash {node}")
    writer = random.choice(others)
    for k in range(random.randint(1, 3)):
        when = at + (20 + 30 * k) * MS
        draft.at(when, f"append {writer} much times={random.randint(10, 60)} size=500B")
    # A view change in between: only whole terms, or what is before a checkpoint, are removed.
    draft.at(at + 150 * MS, f"crash {others[-1]}")
    draft.at(at + 151 * MS, f"restart {others[-1]}")
    back = at + random.choice((300, 450)) * MS
    for other in others:
        if random.random() < 0.8:
            draft.at(back - 10 * MS, f"snapshot {other}")
    storage = "lost" if node != draft.keeper and random.random() < 0.4 else "kept"
    draft.at(back, f"restart {node} storage={storage}")
    for k in range(4):
        draft.at(
            back + 20 * k * MS, f"append {writer} more times={random.randint(5, 30)} size=500B"
        )


def _tail(draft: ScenarioDraft, at: int, later: int) -> None:
    """A node appends what reaches nobody, or one other, and is cut off while the others go on."""
    random = draft.random
    node, *others = random.sample(draft.nodes, len(draft.nodes))
    if not others:
        return
    lost = sorted(others[random.randint(0, min(1, len(others) - 1)) :])
    draft.at(
        at - 2 * draft.rotation_ns, f"lose {draft.carriers[0]} from={node} to={','.join(lost)}"
    )
    draft.at(at - draft.rotation_ns, f"append {node} tail times={random.randint(1, 3)}")
    rest = [other for other in draft.nodes if other != node and other in lost]
    draft.at(at, f"partition {','.join(rest)} {','.join(n for n in draft.nodes if n not in rest)}")
    draft.at(at + MS, "lose none")
    back = at + random.choice((250, 400)) * MS
    draft.at(back - 30 * MS, f"append {random.choice(rest)} new times={random.randint(1, 3)}")
    if random.random() < 0.3:
        draft.at(at + 2 * MS, f"crash {node}{random.choice(('', ' power'))}")
        draft.at(back, f"restart {node}")
    draft.at(back, "merge")


def _in_doubt(draft: ScenarioDraft, at: int, later: int) -> None:
    """A part of the group installs a view that hardly opens, and its members meet others."""
    random = draft.random
    nodes = random.sample(draft.nodes, len(draft.nodes))
    if len(nodes) < 3:
        return
    some = len(nodes) // 2 + 1
    first, rest = sorted(nodes[:some]), sorted(nodes[some:])
    for frame in random.choice((("OFFER",), ("READY",), ("READY", "LOGACK"))):
        to = random.choice(("", f" to={','.join(first[1:])}"))
        draft.at(at, f"lose {frame}{to}")
    draft.at(at, f"partition {','.join(first)} {','.join(rest)}")
    again = at + random.choice((235, 260, 300, 400, 600)) * MS
    back = random.sample(first, random.choice((1, 1, 1, 2)))
    others = [node for node in first if node not in back]
    sides = [sorted([*back, *rest]), sorted(others)]
    draft.at(again, "lose none")
    draft.at(again, "partition " + " ".join(",".join(side) for side in sides if side))
    draft.at(again + 250 * MS, f"append {random.choice(rest)} doubt")
    draft.at(again + random.choice((300, 450, 600)) * MS, "merge")


def _retry(draft: ScenarioDraft, at: int, later: int) -> None:
    """A client numbers what it appends and repeats it through another node."""
    random = draft.random
    client = random.choice(CLIENTS)
    first, second = random.choice(draft.nodes), random.choice(draft.nodes)
    number = draft.numbers.get(client, 0)
    draft.numbers[client] = number + 1
    said = _in_session(draft, client, number)
    draft.at(at, f"append {first} {said}")
    if random.random() < 0.4:
        draft.at(at + random.choice((0, 1, 3)) * MS, f"crash {first}")
        draft.restart(later, first)
    gap = random.choice((0, 2, 50, 400)) * MS
    draft.at(at + gap, f"append {second} {said}")


def _many_clients(draft: ScenarioDraft, at: int, later: int) -> None:
    """More clients append than the log remembers, and then the first ones again."""
    random = draft.random
    homes = {client: random.choice(draft.nodes) for client in CLIENTS}
    for k, client in enumerate((*CLIENTS, *CLIENTS[:3])):
        number = draft.numbers.get(client, 0)
        draft.numbers[client] = number + 1
        when = at + (4 * k + (60 if k >= len(CLIENTS) else 0)) * MS
        draft.at(when, f"append {homes[client]} {_in_session(draft, client, number)}")


def _reads(draft: ScenarioDraft, at: int, later: int) -> None:
    """Several nodes read, at once or while a view changes."""
    random = draft.random
    for k in range(random.randint(2, 8)):
        node = random.choice(draft.nodes)
        stale = random.choice(("", "", " stale"))
        draft.at(at + k * random.choice((0, 1, 20, 100)) * MS, f"read {node}{stale}")
    if random.random() < 0.4:
        node = random.choice(draft.nodes)
        draft.at(at, f"partition {node} {','.join(n for n in draft.nodes if n != node)}")
        draft.at(later + 300 * MS, "merge")


def _in_session(draft: ScenarioDraft, client: str, number: int) -> str:
    """What a client appends under a number of its session."""
    once = " open=once" if draft.few_sessions else ""
    return f"{client}{number} session={client} number={number}{once}"


def _append(draft: ScenarioDraft, at: int, times: int) -> None:
    """Something that is under way when a mishap comes."""
    draft.at(at, f"append {draft.random.choice(draft.nodes)} under times={times}")


LOG_MISHAPS: dict[str, Mishap] = {
    "power": _power,
    "blackout": _blackout,
    "disk-lost": _disk_lost,
    "rot": _rot,
    "disk-full": _disk_full,
    "slow-disk": _slow_disk,
    "dying-disk": _dying_disk,
    "at-the-opening": _at_the_opening,
    "donor-dies": _donor_dies,
    "long-learner": _long_learner,
    "tail": _tail,
    "in-doubt": _in_doubt,
    "retry": _retry,
    "many-clients": _many_clients,
    "reads": _reads,
}
