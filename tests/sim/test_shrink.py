"""Bugs planted in the stack, found in runs full of faults, come down to a few lines."""

from typing import Any

import pytest

from roundelay.core.effects import Deliver
from roundelay.core.ids import Service
from roundelay.group.stack import Stack
from roundelay.membership.ring import Ring
from roundelay.protocols.totem import TotemEngine
from roundelay.sim.failure import Judge
from roundelay.sim.scenario import parse
from roundelay.sim.shrink import shrink


class OneRotation(TotemEngine):
    """Takes a message for safe when the token has gone round once."""

    def _deliver(self):
        line = 0 if self.ring.last is None else self.ring.last.aru
        while (packet := self.ring.have.get(self.delivered + 1)) is not None:
            if packet.service is Service.SAFE and self.delivered + 1 > line:
                return
            self.delivered += 1
            self._out.append(Deliver(packet, self.view.id, (self.delivered, 0)))


class Silent(TotemEngine):
    """Offers nothing to the others when a view ends."""

    def seal(self, summaries):
        return []


class Forgetful(TotemEngine):
    """Forgets packets that others may yet ask for."""

    def _claim_stable(self):
        super()._claim_stable()
        self.ring.discard(max(self.ring.discarded, self.delivered - 3))


class Miscounting(TotemEngine):
    """Does not count what it sends again."""

    def start(self, view):
        effects = super().start(view)
        self.ring.__class__ = _MiscountingRing
        return effects


class _MiscountingRing(Ring[Any]):
    def visit(self, *args, **options):
        visit = super().visit(*args, **options)
        self.sent = len(visit.fresh)
        return visit


def stack(engine):
    return lambda boot, founders: Stack(boot, founders, engine)


LOSSY = """seed 2
engine totem window_packets=4 fail_to_receive_visits=8
group packet_bytes=1200
network lan latency=488us jitter=300us
nodes a b c d e
faults loss=10%
load messages=34 rate=3/s size=2000 safe=50%
at 1.291s lose DATA to=c
at 1.291s lose JOIN to=c
run 1912ms
heal
load messages=4 rate=88/s safe=50%
end after=8000ms
----
"""

RESTARTS = """seed 7
engine totem window_packets=4 fail_to_receive_visits=40
network switched jitter=300us
nodes a b c
faults corrupt=2%
load messages=117 rate=38/s size=300 safe=0%
load messages=5 rate=3/s size=9000
at 355ms crash a
at 355ms lose COMMIT to=c
at 360ms restart a storage=kept
at 652ms pause a
at 785ms lose none
at 846ms crash a
at 846ms lose COMMIT to=c
at 851ms restart a storage=torn
run 1014ms
heal
load messages=7 rate=32/s safe=50%
end after=2s
----
"""

DEAF = """seed 5
engine totem window_packets=4 visit_packets=2 fail_to_receive_visits=40
network wan latency=4ms jitter=20us
nodes a b c d e
faults corrupt=0.5%
load messages=32 rate=4/s size=40 safe=100%
load messages=2 rate=1/s size=9000
at 225ms lose DATA to=b
at 225ms lose JOIN to=b
at 648ms crash d after=2
at 745ms lose none
at 845ms lose DATA to=d
at 994ms lose DATA to=e
at 1.199s crash d after=8
at 1.2s restart d storage=kept
at 1.25s lose none
run 1321ms
heal
load messages=6 rate=94/s safe=50%
end after=2s
----
"""

CUTS = """seed 0
engine totem window_packets=4
network switched jitter=20us
nodes a b c d e
faults duplicate=15% loss=2%
load messages=120 rate=55/s size=40 safe=20%
at 25ms crash e
at 25ms lose RTOKEN to=d times=10
at 30ms restart e storage=kept
at 237ms crash c
at 237ms lose RTOKEN to=a times=2
at 242ms restart c storage=kept
at 249ms cut d>e
at 279ms merge
at 430ms cut e>a
run 431ms
heal
load messages=6 rate=45/s safe=50%
end after=2s
----
"""

UNORDERED = """seed 1
engine template static
network wan latency=3ms jitter=300us
nodes a b c d
faults reorder=15% spike=1% loss=20%
load messages=71 rate=192/s size=4
run 700ms
heal
end after=1s
----
"""


@pytest.mark.parametrize(
    ("scenario", "engine", "kept"),
    [
        (RESTARTS, OneRotation, "S4"),
        (DEAF, Silent, "D7"),
        (LOSSY, Forgetful, "KeyError"),
        (CUTS, Miscounting, "fcc of"),
        (UNORDERED, None, "D8"),
    ],
    ids=["one rotation", "nothing exchanged", "discarded", "miscounted", "unordered"],
)
def test_a_planted_bug_comes_down_to_a_few_lines(scenario, engine, kept):
    planted = None if engine is None else stack(engine)
    shrunk = shrink(scenario, stack=planted, budget=100, found="a test")
    assert kept in str(shrunk.failure)
    assert len(shrunk.commands) <= 12, shrunk.scenario
    assert shrunk.runs <= 100
    # The file tells the same to whoever runs it.
    assert shrunk.scenario.startswith(f"# {str(shrunk.failure)[:50]}")
    commands = tuple(command for block in parse(shrunk.scenario) for _, command in block.commands)
    again = Judge(stack=planted).run(commands, shrunk.failure).failure
    assert again is not None
    assert kept in str(again)
    if engine is not None:
        # It is the bug that the scenario shows, and nothing that shrinking did.
        assert Judge().run(shrunk.commands).failure is None
