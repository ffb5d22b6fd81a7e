"""What a forged frame with a right checksum can do to a group and what it cannot: the claims of
`docs/security.md`."""

from typing import Any

import pytest

from roundelay.core.contract import Boot
from roundelay.core.effects import Send
from roundelay.core.ids import Packet, Service, Span, ViewId
from roundelay.group.body import pack
from roundelay.membership.messages import SEQ_MAX, Join, Leave, Merge
from roundelay.membership.plausibility import SEQ_BELIEVED, SEQ_STEP
from roundelay.membership.ring import Token
from roundelay.protocols.totem import Data, TokenPass
from roundelay.sim.runner import ScenarioRunner
from roundelay.sim.scenario import parse
from roundelay.sim.transmission import Transmission
from roundelay.wire.endpoint import Endpoint
from roundelay.wire.primitives import I64_MAX, Reason

GROUP = "sim"
MEMBERS = ("a", "b", "c")


class Group:
    """Three simulated nodes, and somebody who sends them frames in the name of others."""

    def __init__(self) -> None:
        self.story = ScenarioRunner()
        self.do("engine totem", "network lan latency=100us", "show", "nodes a b c", "run 60ms")
        assert self.views() == {MEMBERS}

    def do(self, *commands: str) -> str:
        (block,) = parse("\n".join((*commands, "----", "")))
        return self.story.play(block)

    def core(self, node: str) -> Any:
        return self.story.world.hosts[node].core

    def views(self) -> set[tuple[str, ...]]:
        return {self.core(node).membership.view.members for node in MEMBERS}

    @property
    def view(self) -> ViewId:
        found = self.core("a").membership.view.id
        assert isinstance(found, ViewId)
        return found

    def hop(self, node: str) -> int:
        """A hop count that this node takes for that of the token."""
        count = self.core(node).engine.ring.token_seq + self.core(node).engine.ring.hops
        assert isinstance(count, int)
        return count

    def forge(self, message: object, sender: str, *to: str, lamport: int = 0) -> None:
        """A frame of the present view in the name of `sender`, life and all."""
        life = self.story.world.hosts[sender].incarnation
        boot = Boot(GROUP, sender, life)
        endpoint: Endpoint[Any] = Endpoint(boot, self.core("a").codec)
        endpoint.lamport = lamport
        frame = Transmission(endpoint, sender, life, Send(message, self.view), {})
        for node in to:
            self.story.world.hosts[node].arrive((frame, None))

    def recovers(self) -> None:
        """One view of all, in which messages of everybody reach everybody."""
        self.do("run 3s", "submit a one", "submit b two", "submit c three safe", "run 100ms")
        assert self.views() == {MEMBERS}
        log = self.do("log").splitlines()
        for line in log:
            assert {"one", "two", "three"} <= set(line.split()), line


def test_a_forged_goodbye_expels_a_member_for_a_moment():
    group = Group()
    before = group.view
    group.forge(Leave(), "c", "a", "b")
    group.do("run 5ms")
    assert ("a", "b") in group.views()
    group.recovers()
    assert group.view != before


def test_a_forged_token_stalls_the_group_until_it_suspects_somebody():
    """A token that speaks of packets which nobody has: everybody asks for them, in vain."""
    group = Group()
    before = group.view
    group.forge(TokenPass(Token(group.hop("b"), seq=5)), "a", "b")
    group.do("run 1ms", "submit a late", "run 50ms")
    assert "late" not in group.do("log b")
    group.do("run 100ms")
    assert group.view != before
    group.recovers()


def test_a_forged_token_makes_safe_delivery_untrue():
    group = Group()
    group.do("lose DATA to=c", "submit a secret safe")
    for _ in range(2):
        group.forge(TokenPass(Token(group.hop("a"), seq=1, aru=1)), "c", "a")
    logs = group.do("log").splitlines()
    assert ["secret" in line.split() for line in logs] == [True, False, False]
    assert not group.core("c").engine.ring.have


def test_forged_data_takes_the_place_of_true_data():
    group = Group()
    packet = Packet(Span("b", 0, 0), Service.AGREED, pack([b"forged"]))
    group.forge(Data(1, packet), "b", "c")
    group.do("submit a true", "run 5ms")
    logs = group.do("log").splitlines()
    assert ["true" in line.split() for line in logs] == [True, True, False]
    assert ["forged" in line.split() for line in logs] == [False, False, True]
    group.recovers()


def test_a_forged_clock_changes_nothing_but_the_clock_of_the_trace():
    group = Group()
    before = group.view
    group.forge(Merge(), "b", "a", "c", lamport=I64_MAX - 1)
    group.do("run 10ms")
    assert group.story.world.hosts["a"].endpoint.lamport == I64_MAX
    group.recovers()
    assert group.view == before


@pytest.mark.parametrize("seq", [SEQ_MAX, SEQ_BELIEVED + SEQ_STEP + 1])
def test_a_forged_join_of_an_incredible_ring_number_is_refused(seq):
    group = Group()
    before = group.view
    group.forge(Join(MEMBERS, (), seq), "b", "a", "c")
    assert group.story.world.hosts["a"].endpoint.drops == {Reason.IMPLAUSIBLE: 1}
    group.recovers()
    assert group.view == before


def test_forged_ring_numbers_at_the_limit_leave_room_for_all_that_come():
    """The largest number that is believed moves the group there, and counting goes on; also after
    all have restarted, and after a second forged number."""
    group = Group()
    for _ in range(3):
        limit = max(SEQ_BELIEVED, group.view.seq) + SEQ_STEP
        group.forge(Join(MEMBERS, (), limit), "b", "a", "c")
        group.recovers()
        assert limit < group.view.seq < limit + 100
        group.do(*(f"crash {node}" for node in MEMBERS), *(f"restart {node}" for node in MEMBERS))
        group.recovers()
