"""FC on static groups: members crash for good, a minority at most, or frames are lost.

Never both, under the safe rules: a request that only its sender has, because frames were lost, may
be ordered by its sender, which crashes. Then nothing behind it is confirmed until the view ends,
and that of a static group never does.

Under the rules `paper` and `link` a run stays inside what the paper assumes: few members fail, all
of them neighbours or at different times; what they say in their last moments may reach anybody or
nobody; what others say reaches everybody, in time.
"""

from random import Random

from roundelay.sim.draft import MS, ScenarioDraft
from roundelay.sim.engines.fc import mishaps
from roundelay.sim.mishaps import MISHAPS
from roundelay.sim.simulation import Conditions

STATIC_NODES_MIN = {"paper": 3, "link": 3}
"""With fewer nodes, none may fail."""

WAITING = ("pause", "slow", "drift", "false-suspicion", "regenerators", "paused-maker")
"""Mishaps after which no request is lost."""

LINK_US, FAILING_LINK_US = 500, 1500
"""How long frames take under the paper's rules, in microseconds: longer from and to members that
will fail. So whoever misses the last decision of one of them makes the token anew, and tells those
who got it before their wait is over. Otherwise these would suspect that member."""


def draw(random: Random, nodes: list[str], rules: str) -> Conditions:
    """The conditions of a seed."""
    if rules != "safe":
        return _inside(random, nodes, rules)
    most = (len(nodes) - 1) // 2
    own = {
        "false-suspicion": mishaps.false_suspicion,
        "regenerators": mishaps.regenerators,
        "paused-maker": mishaps.paused_maker,
        "own-body": mishaps.own_body,
        "changed-chains": mishaps.changed_chains,
    }
    known = {**MISHAPS, **own}
    if most and random.random() < 0.5:
        falling = random.sample(nodes, random.randint(1, most))

        def fall(draft: ScenarioDraft, length_ms: int) -> None:
            for node in falling:
                _fall(draft, node, random.randint(20, length_ms) * MS)

        return Conditions(
            rates=("duplicate", "reorder", "spike"),
            safe=False,
            mishaps={name: known[name] for name in WAITING},
            events=fall,
        )
    names = ("partition", "one-way", "pause", "slow", "drift", "deaf", *own)
    return Conditions(
        rates=("loss", "duplicate", "reorder", "spike", "corrupt"),
        mishaps={name: known[name] for name in names},
    )


def _fall(draft: ScenarioDraft, node: str, at: int) -> None:
    """A member crashes for good; often only some hear its last decisions."""
    random = draft.random
    others = [other for other in draft.nodes if other != node]
    if random.random() < 0.6 and (deaf := mishaps.some(draft, others)):
        draft.at(at - random.choice(mishaps.WAITS_MS) * MS, f"lose DEC from={node} to={deaf}")
    draft.at(at - random.choice((1, 6)) * MS, f"submit {node} last")
    draft.at(at, f"crash {node}{random.choice(('', f' after={random.randint(1, 8)}'))}")


def _inside(random: Random, nodes: list[str], rules: str) -> Conditions:
    """Some neighbours fail, k at most. If others may, one of them does so much later. In some runs
    nobody fails: only there are safe messages delivered."""
    most = (len(nodes) - 1) // 2
    k = min(random.choice((1, 2, 2)), most)
    first, count = random.randrange(len(nodes)), random.choice((0, 1, 1, k, k, k, k))
    failing = [nodes[(first + i) % len(nodes)] for i in range(count)]
    wait_ms = random.choice((30, 60))
    later = ""
    if 0 < count < most and random.random() < 0.5:
        later = nodes[(first + count + 1) % len(nodes)]
    slow = {*failing, later}
    links = [
        f"{a}>{b}={FAILING_LINK_US if slow & {a, b} else LINK_US}us"
        for a in nodes
        for b in nodes
        if a != b
    ]

    def fail(draft: ScenarioDraft, length_ms: int) -> None:
        at = random.randint(50, 150) * MS
        _fail_together(draft, failing, at, wait_ms)
        if later:
            _fail_together(draft, [later], at + 20 * wait_ms * MS, wait_ms)

    return Conditions(
        rates=("duplicate",),
        options={
            "k": k,
            "wait_s": wait_ms / 1000,
            "stagger_s": 0.008,
            "idle_s": random.choice((0.005, 0.01)),
            "repeat_s": 0.005,
            "silence_s": None,
            "batch_packets": random.choice((None, 1)),
            "window_packets": None,
        },
        network=f"network wan {' '.join(links)}",
        latency_ns=FAILING_LINK_US * 1000,
        safe=not failing,
        events=fail if failing else None,
    )


def _fail_together(draft: ScenarioDraft, failing: list[str], at: int, wait_ms: int) -> None:
    """Neighbours fail one after the other: only some hear what they decide last. The second may
    not hear the first, and makes the token anew before it fails."""
    random = draft.random
    order = [node for node in draft.nodes if node not in failing]
    after = order.index(_next(draft.nodes, failing[-1]))
    others = order[after:] + order[:after]
    alone = random.random() < 0.7
    """Whether those who fail do not hear each other."""
    apart = random.choice((wait_ms + 12, wait_ms + 12, 0)) * MS
    missed: set[str] = set()
    for i, node in enumerate(failing):
        deaf = {*failing} - {node} if alone else set()
        # Of those who stay, the last or the first, so that they hear different decisions.
        pair = (others[-1:], others[:1])[i]
        deaf |= {*random.choice((pair, pair, random.sample(others, len(others) // 2)))}
        if missed:
            # One that misses two in a row waits longer than the next member, and is suspected.
            deaf -= {*others[:1]}
        missed |= deaf & {others[0]}
        if deaf:
            draft.at(at - 15 * MS, f"lose DEC from={node} to={','.join(sorted(deaf))}")
        draft.at(at - random.randint(1, 12) * MS, f"submit {node} last{i}")
        draft.at(at + i * apart, f"crash {node}")
    draft.at(at + MS, f"submit {others[-1]} by")


def _next(nodes: list[str], node: str) -> str:
    return nodes[(nodes.index(node) + 1) % len(nodes)]
