"""Mishaps of ST: packets that nobody hears, members that miss that others have stopped, recoveries
that follow each other or never end.

Over a reflector all transmissions come from the first member of the view, which is mostly the first
node; so what is lost is named by its receiver.
"""

from roundelay.sim.draft import MS, Mishap, ScenarioDraft


def _part(draft: ScenarioDraft, nodes: list[str], least: int = 1) -> str:
    """Some of these nodes, for a command."""
    return ",".join(sorted(draft.random.sample(nodes, draft.random.randint(least, len(nodes)))))


def _to(draft: ScenarioDraft, *certain: str) -> str:
    """Words of a `submit` that name its destinations, these among them; often all."""
    if draft.random.random() < 0.3:
        return ""
    chosen = {*certain, *_part(draft, draft.nodes).split(",")}
    return f" to={','.join(sorted(chosen))}"


def _lose_one(draft: ScenarioDraft, at: int, node: str) -> None:
    """A node misses a packet and soon hears of it: a recovery begins."""
    other = draft.random.choice([peer for peer in draft.nodes if peer != node])
    draft.at(at, f"lose DT to={node} times=1")
    draft.at(at, f"submit {other} missed{_to(draft, node)}")
    if draft.random.random() < 0.5:
        draft.at(at + MS // 2, f"submit {other} next{_to(draft, node)}")


def _lost_by_all(draft: ScenarioDraft, at: int, later: int) -> None:
    """Nobody whom a packet is for hears it, perhaps not even its source; others are heard."""
    random = draft.random
    sender, *others = random.sample(draft.nodes, len(draft.nodes))
    deaf = _part(draft, others).split(",")
    lost = sorted({*deaf, *random.choice(((), (), (sender,)))})
    draft.at(at, f"lose DT to={','.join(lost)} times={len(lost)}")
    draft.at(at, f"submit {sender} unheard to={','.join(sorted(deaf))}")
    draft.at(at + MS // 4, f"submit {random.choice(others)} heard{_to(draft)}")
    draft.at(at + 20 * MS, "lose none")


def _own_lost(draft: ScenarioDraft, at: int, later: int) -> None:
    """A sender does not hear its own packets, though others do."""
    sender, *others = draft.random.sample(draft.nodes, len(draft.nodes))
    draft.at(at, f"lose DT to={sender} times={draft.random.randint(1, 3)}")
    draft.at(at, f"submit {sender} own{_to(draft)}")
    draft.at(at + MS // 2, f"submit {draft.random.choice(others)} other{_to(draft)}")
    draft.at(at + MS, f"submit {sender} more{_to(draft, sender)}")
    draft.at(at + 20 * MS, "lose none")


def _unaware(draft: ScenarioDraft, at: int, later: int) -> None:
    """A recovery begins, and a member that does not hear of it goes on sending."""
    node, sender = draft.random.sample(draft.nodes, 2)
    draft.at(at - MS, f"lose RST to={sender}")
    draft.at(at - MS, f"lose PAK to={sender}")
    _lose_one(draft, at, node)
    for i in range(draft.random.randint(2, 6)):
        draft.at(at + i * MS, f"submit {sender} on{_to(draft)}{draft.service()}")
    draft.at(at + draft.random.choice((3, 15, 40)) * MS, "lose none")


def _one_after_the_other(draft: ScenarioDraft, at: int, later: int) -> None:
    """Several recoveries follow each other closely, each because of another loss."""
    step = draft.random.choice((2, 6, 15)) * MS
    for i in range(draft.random.randint(2, 5)):
        _lose_one(draft, at + i * step, draft.random.choice(draft.nodes))
    draft.at(at + 6 * step, "lose none")


def _laggard(draft: ScenarioDraft, at: int, later: int) -> None:
    """One member does not hear that all are done, and stays an epoch behind for a while."""
    node, *others = draft.random.sample(draft.nodes, len(draft.nodes))
    _lose_one(draft, at, draft.random.choice(draft.nodes))
    for tag in ("DONE", "DT", "RR"):
        draft.at(at + MS, f"lose {tag} to={node}")
    for i in range(4):
        draft.at(at + (2 + 3 * i) * MS, f"submit {draft.random.choice(others)} on{_to(draft)}")
    draft.at(at + draft.random.choice((8, 25, 60)) * MS, "lose none")


def _word_lost(draft: ScenarioDraft, at: int, later: int) -> None:
    """What belongs to a recovery is lost at one member, or at some, for a while."""
    draft.at(
        at - MS,
        f"lose {draft.random.choice(('PAK', 'DONE', 'WANT', 'RET', 'RST'))} to="
        + _part(draft, draft.nodes),
    )
    for node in draft.random.sample(draft.nodes, 2):
        _lose_one(draft, at, node)
    draft.at(at + draft.random.choice((5, 25, 70)) * MS, "lose none")


def _quiet_words(draft: ScenarioDraft, at: int, later: int) -> None:
    """A member hears packets, but not the words of those who have nothing to send."""
    node, sender, *_ = draft.random.sample(draft.nodes, len(draft.nodes))
    draft.at(at, f"lose RR to={node}")
    for i in range(draft.random.randint(1, 4)):
        draft.at(at + i * MS, f"submit {sender} said{_to(draft, node)}{draft.service()}")
    draft.at(at + draft.random.choice((5, 20, 60)) * MS, "lose none")


def _burst(draft: ScenarioDraft, at: int, later: int) -> None:
    """Several members send more than a slow member can keep up with."""
    random = draft.random
    slow = random.choice(draft.nodes)
    draft.at(at, f"slow {slow} {random.choice(('300us', '1ms'))}")
    for node in random.sample(draft.nodes, random.randint(1, len(draft.nodes))):
        draft.at(
            at, f"submit {node} burst{_to(draft)} times={random.choice((5, 20, 40))} size=200B"
        )
    draft.at(at + 30 * MS, f"slow {slow} 0ms")


def _reflector_dies(draft: ScenarioDraft, at: int, later: int) -> None:
    """The first node crashes with frames that it has not put on the channel, or not for all."""
    first, *others = draft.nodes
    if draft.random.random() < 0.5:
        draft.at(at - MS, f"lose DT from={first} to={_part(draft, others)}")
    for node in draft.nodes:
        draft.at(at - draft.random.choice((0, draft.rotation_ns)), f"submit {node} by{_to(draft)}")
    draft.at(at, f"crash {first}{draft.random.choice(('', ' after=3', ' after=9'))}")
    draft.at(at + MS, "lose none")
    draft.restart(later + 300 * MS, first)


def _crash_in_a_recovery(draft: ScenarioDraft, at: int, later: int) -> None:
    """A member crashes, or is cut off, before, in or just after a recovery."""
    random = draft.random
    node, gone = random.sample(draft.nodes, 2)
    _lose_one(draft, at, node)
    if random.random() < 0.5:
        tag = random.choice(("DONE", "PAK", "RET"))
        draft.at(at, f"lose {tag} to={_part(draft, draft.nodes)}")
    draft.at(at + MS, f"submit {gone} last{_to(draft)}{draft.service()}")
    moment = at + MS + random.choice((0, draft.rotation_ns, 3 * draft.rotation_ns, 12 * MS))
    draft.at(moment + MS, "lose none")
    if random.random() < 0.7:
        draft.at(moment, f"crash {gone}")
        draft.restart(later + 300 * MS, gone)
    else:
        rest = ",".join(peer for peer in draft.nodes if peer != gone)
        draft.at(moment, f"partition {gone} {rest}")
        draft.at(later + 300 * MS, "merge")


def _epochs_apart(draft: ScenarioDraft, at: int, later: int) -> None:
    """A view ends when some have finished a recovery and others have not."""
    random = draft.random
    gone, *others = random.sample(draft.nodes, len(draft.nodes))
    behind = others[: random.randint(1, max(1, len(others) - 1))]
    missing = random.choice([node for node in draft.nodes if node not in behind])
    for tag in ("DONE", "DT", "RR"):
        draft.at(at - MS, f"lose {tag} to={','.join(sorted(behind))}")
    _lose_one(draft, at, missing)
    draft.at(at + MS // 2, f"submit {gone} next{_to(draft, missing)}")
    for node in draft.nodes:
        apart = f"submit {node} apart{_to(draft)}{draft.service()}"
        draft.at(at + random.choice((2, 5)) * MS, apart)
    crash = at + random.choice((6, 12, 30)) * MS
    draft.at(crash, f"crash {gone}")
    if random.random() < 0.6:
        draft.restart(crash + random.choice((0, 2)) * MS, gone)
        draft.at(crash + random.choice((2, 40)) * MS, "lose none")
    else:
        draft.at(crash + random.choice((50, 200)) * MS, "lose none")
        draft.restart(later + 400 * MS, gone)


def _sent_before(draft: ScenarioDraft, at: int, later: int) -> None:
    """A source crashes when its last packet is with some, and others hold an earlier one back."""
    random = draft.random
    source, held, *others = random.sample(draft.nodes, len(draft.nodes))
    draft.at(at - MS, f"lose RR to={held}{random.choice(('', f' times={random.randint(1, 4)}'))}")
    draft.at(at, f"submit {source} earlier to={held}")
    draft.at(at, f"submit {source} later to={','.join(sorted({held, *others[:1]}))}")
    crash = at + random.choice((2, 4, 8)) * MS + 2 * draft.rotation_ns
    draft.at(crash, f"crash {source}")
    draft.at(crash + random.choice((1, 150)) * MS, "lose none")
    draft.restart(later + 400 * MS, source)


def _cannot_receive(draft: ScenarioDraft, at: int, later: int) -> None:
    """A member misses a packet, and gets nothing of what would make it good."""
    node = draft.random.choice(draft.nodes)
    for tag in draft.random.choice((("PAK",), ("RET",), ("PAK", "RET"))):
        draft.at(at - MS, f"lose {tag} to={node}")
    _lose_one(draft, at, node)
    draft.at(max(later, at + 900 * MS) + 400 * MS, "lose none")


ALWAYS: dict[str, Mishap] = {
    "lost-by-all": _lost_by_all,
    "own-lost": _own_lost,
    "unaware": _unaware,
    "one-after-the-other": _one_after_the_other,
    "laggard": _laggard,
    "word-lost": _word_lost,
    "quiet-words": _quiet_words,
    "burst": _burst,
}
IN_VIEWS: dict[str, Mishap] = {
    "reflector-dies": _reflector_dies,
    "crash-in-a-recovery": _crash_in_a_recovery,
    "epochs-apart": _epochs_apart,
    "sent-before": _sent_before,
    "cannot-receive": _cannot_receive,
}
MISHAPS = {**ALWAYS, **IN_VIEWS}
