"""A receipt comes once for each message, at its sender, with the position that everybody sees."""

import pytest

from roundelay.core.effects import Deliver, Receipt
from roundelay.core.ids import View, ViewId
from roundelay.sim.runner import ScenarioRunner
from roundelay.sim.scenario import parse

SCENARIO = """
seed {seed}
engine {engine}
group packet_bytes=120
network lan latency=200us jitter=100us
nodes a b c
faults loss=3% duplicate=2% reorder=2%
load messages=60 rate=60/s size=30 safe=30%
load messages=4 rate=4/s size=1500
at 200ms partition a b,c
at 500ms merge
at 700ms crash c
run 900ms
end after=3s
----
"""

Position = tuple[ViewId, int]


@pytest.mark.parametrize("engine", ["totem", "fifo", "atop", "allack", "causal"])
@pytest.mark.parametrize("seed", range(3))
def test_receipts_are_given_once_at_the_position_of_the_delivery(engine, seed):
    receipts: dict[tuple[str, int], Position] = {}
    positions: dict[tuple[str, int], set[Position]] = {}
    views: dict[str, ViewId] = {}

    def watch(world, node, verb, what):
        if isinstance(what, Receipt):
            assert what.span.node == node
            assert what.view is not None
            for i in range(what.span.count):
                message = (node, what.span.first + i)
                assert message not in receipts, "a second receipt"
                receipts[message] = (what.view, what.index + i)
        elif isinstance(what, Deliver):
            view = views[node]
            span = what.packet.span
            assert what.index is not None
            assert len(what.payloads) == span.count
            for i in range(span.count):
                message = (span.node, span.first + i)
                positions.setdefault(message, set()).add((view, what.index + i))
        elif isinstance(what, View):
            assert node in what.members
            views[node] = what.id

    story = ScenarioRunner(watch=watch)
    for block in parse(SCENARIO.format(engine=engine, seed=seed)):
        story.play(block)
    submitted = {
        (story.world.nodes[row.proc], row.m_seq) for row in story.rows if row.kind == "submit"
    }
    assert len(receipts) > 40
    assert receipts.keys() <= submitted
    # Everything that a and b submitted was delivered to them: they never crashed.
    assert {m for m in submitted if m[0] != "c"} <= receipts.keys()
    for message, position in receipts.items():
        assert position in positions[message]
        if engine == "totem" and len(positions[message]) > 1:
            # One side may deliver it in the old view, the others do in transitional ones.
            assert sum(view.seq % 4 == 0 for view, _ in positions[message]) <= 1
