"""Causal: no packet before its causes, and what becomes of one that lacks them for ever."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.protocols.link_members import (
    delivered,
    end,
    engine,
    hear,
    packet,
    refused,
    sent,
    suspicions,
)

from roundelay.core.contract import Item
from roundelay.links.ledger import AHEAD_MAX
from roundelay.links.messages import Data, Request
from roundelay.protocols.causal import CausalOrder, Content
from roundelay.wire.primitives import I64_MAX, WireError

ALL = [I64_MAX] * 4


class Group:
    """Orders of one view, and by receiver and sender what has not arrived."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.orders = [CausalOrder(size, me) for me in range(size)]
        self.flying: list[list[list[tuple[int, Content]]]] = [
            [[] for _ in range(size)] for _ in range(size)
        ]
        self.logs: list[list[tuple[int, int]]] = [[] for _ in range(size)]
        self.causes: dict[tuple[int, int], tuple[int, ...]] = {}
        self.sent = [0] * size

    def send(self, member: int) -> None:
        self.sent[member] += 1
        number = self.sent[member]
        content = Content(self.orders[member].causes(), packet("abcd"[member], number))
        self.causes[member, number] = content.causes
        for receiver in range(self.size):
            if receiver != member:
                self.flying[receiver][member].append((number, content))
        self.take(member, member, number, content)

    def arrive(self, receiver: int, sender: int) -> None:
        if self.flying[receiver][sender]:
            self.take(receiver, sender, *self.flying[receiver][sender].pop(0))

    def take(self, receiver: int, sender: int, number: int, content: Content) -> None:
        order = self.orders[receiver]
        assert order.sound(content)
        order.arrive(sender, number, content)
        self.logs[receiver] += [(o.sender, o.number) for o in order.ready(ALL)]

    def check(self, log: list[tuple[int, int]]) -> None:
        """Each sender's packets in their order and without gaps, and none before its causes."""
        had = [0] * self.size
        for sender, number in log:
            assert number == had[sender] + 1
            assert all(map(int.__le__, self.causes[sender, number], had))
            had[sender] = number


scripts = st.lists(
    st.tuples(st.sampled_from(("send", "arrive", "arrive")), st.integers(0, 3), st.integers(0, 3)),
    max_size=80,
)


def played(size, script):
    group = Group(size)
    for what, one, other in script:
        if what == "send":
            group.send(one % size)
        else:
            group.arrive(one % size, other % size)
    return group


@given(st.integers(1, 4), scripts)
def test_nothing_comes_before_its_causes_and_all_of_it_comes(size, script):
    group = played(size, script)
    for receiver in range(size):
        for sender in range(size):
            while group.flying[receiver][sender]:
                group.arrive(receiver, sender)
        group.check(group.logs[receiver])
        assert {*group.logs[receiver]} == {*group.causes}


def arrived(group: Group, receiver: int, sender: int) -> int:
    """How many packets of a sender a member has, delivered or not."""
    flying = group.flying[receiver][sender]
    return flying[0][0] - 1 if flying else group.sent[sender]


@given(st.integers(2, 4), scripts, st.lists(st.integers(0, 5), min_size=4, max_size=4))
def test_what_lacks_a_cause_is_dropped_alike_by_all_who_hold_the_same(size, script, lost):
    """The last members are gone, and of each one nobody present has the last few packets."""
    group = played(size, script)
    present = range(size - 1)
    kept = {
        sender: max(0, group.sent[sender] - (lost[sender] if sender not in present else 0))
        for sender in range(size)
    }
    held = {
        sender: max([kept[sender], *(arrived(group, m, sender) for m in present)])
        for sender in range(size)
    }
    for receiver in present:
        for sender in range(size):
            while group.flying[receiver][sender]:
                if group.flying[receiver][sender][0][0] > held[sender]:
                    break
                group.arrive(receiver, sender)
        group.orders[receiver].close()
        group.check(group.logs[receiver])
    assert len({frozenset(group.logs[receiver]) for receiver in present}) == 1
    had = {*group.logs[0]}
    for (sender, number), causes in group.causes.items():
        here = number <= held[sender]
        complete = all((m, cause) in had for m, cause in enumerate(causes) if cause)
        behind = number == 1 or (sender, number - 1) in had
        assert ((sender, number) in had) == (here and complete and behind)


def data(sender, number, causes, *, safe=False, received=(0, 0, 0)):
    """A member's packet, in a frame that says what its sender has."""
    return Data(
        sender, number, 0, received, Content(causes, packet("abc"[sender], number, safe=safe))
    )


def test_a_packet_waits_for_its_cause():
    member, _ = engine("causal", "a")
    assert delivered(hear(member, "b", data(1, 1, (0, 0, 1)))) == []
    assert delivered(hear(member, "c", data(2, 1, (0, 0, 0)))) == ["c:1", "b:1"]


def test_own_packets_name_what_was_delivered():
    member, queue = engine("causal", "a")
    hear(member, "b", data(1, 1, (0, 0, 0)))
    hear(member, "c", data(2, 1, (0, 2, 0)))
    queue.packets += [packet("a"), packet("a", 1)]
    frames = [m for m in sent(member.submit()) if isinstance(m, Data)]
    assert [frame.content.causes[1:] for frame in frames] == [(1, 0), (1, 0)]


def test_a_safe_packet_waits_until_all_have_it_and_its_causes():
    member, _ = engine("causal", "a")
    hear(member, "c", data(2, 1, (0, 0, 0), received=(0, 0, 1)))
    effects = hear(member, "b", data(1, 1, (0, 0, 1), safe=True, received=(0, 1, 0)))
    effects += hear(member, "c", data(2, 2, (0, 0, 1), received=(0, 1, 2)))
    assert delivered(effects) == ["c:2"], "b is not known to have what its packet depends on"
    assert delivered(hear(member, "b", data(1, 2, (0, 0, 1), received=(0, 2, 1)))) == ["b:1", "b:2"]


def test_at_the_end_a_packet_without_its_cause_is_dropped_with_all_behind_it():
    member, _ = engine("causal", "a")
    hear(member, "b", data(1, 1, (0, 0, 0)))
    hear(member, "c", data(2, 1, (0, 1, 0), safe=True))
    for number in (2, 3):  # Answers to a second packet of b, which is lost.
        hear(member, "c", data(2, number, (0, 2, 0)))
    assert end(member) == [([], ["c:1"])]


@pytest.mark.parametrize(
    "causes", [(0, 0), (0, 0, 0, 0), (1, 0, 0), (0, 0, AHEAD_MAX + 1), (0, 0, I64_MAX)]
)
def test_causes_that_cannot_be_are_refused(causes):
    """Of too few or too many members, of our own more than we sent, or more than can be."""
    member, _ = engine("causal", "a")
    assert refused(hear(member, "b", Data(1, 1, 0, (0, 1, 0), Content(causes, packet("b", 1)))))
    member.freeze()
    with pytest.raises(WireError):
        member.absorb(Item((1, 1), member.codec.pack(Content(causes, packet("b", 1)))))


def test_causes_that_grow_smaller_end_the_view():
    member, _ = engine("causal", "a")
    hear(member, "c", data(2, 1, (0, 0, 0)))
    hear(member, "b", data(1, 1, (0, 0, 1)))
    assert suspicions(hear(member, "b", data(1, 2, (0, 0, 0)))) != []


def test_a_cause_that_never_comes_is_asked_for_and_ends_the_view():
    """Only a forged packet has one: else its sender has told of it before."""
    member, _ = engine("causal", "a", stall_s=0.05)
    hear(member, "b", data(1, 1, (0, 0, 3)))
    found: list[str] = []
    for _ in range(11):
        effects = member.expire("missing")
        assert [m.numbers for m in sent(effects) if isinstance(m, Request)] == [(1, 2, 3)]
        found += suspicions(effects)
    assert found == ["what is missing does not come"]
