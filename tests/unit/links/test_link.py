"""The link: everything arrives, once, in order, within bounds, whatever the network does."""

from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundelay.core.contract import Item, Origin
from roundelay.links.ledger import AHEAD_MAX
from roundelay.links.link import SILENCE_CHECKS, LinkConfig
from roundelay.links.messages import Data, Heartbeat, Request

from .party import NAMES, Party

steps = st.lists(
    st.one_of(
        st.tuples(st.just("say"), st.integers(0, 2)),
        st.tuples(st.sampled_from(["arrive", "twice", "drop"]), st.integers(0, 400)),
        st.tuples(st.sampled_from(["heartbeat", "missing"]), st.integers(0, 2)),
    ),
    max_size=120,
)


def go(party: Party, steps: list[tuple[str, int]]) -> None:
    """Let all this happen; a frame is named by its place among those under way."""
    for what, which in steps:
        if what == "say":
            party.say(which)
        elif what in ("heartbeat", "missing"):
            party.expire(which, what)
        elif party.flying:
            index = which % len(party.flying)
            if what == "drop":
                del party.flying[index]
            else:
                party.arrive(index, copies=2 if what == "twice" else 1)


@given(steps)
@settings(max_examples=150, deadline=None)
def test_whatever_the_network_does_all_have_everything_once_it_is_kind(steps):
    party = Party(window_packets=6, ack_packets=3, request_packets=2)
    go(party, steps)
    party.settle()
    for member in range(3):
        assert party.taken[member] == party.sent
        assert sorted(party.settled[member]) == sorted(chain(*party.sent))
        assert not any(party.links[member].ledger.held)


def test_a_content_is_broadcast_once_and_arrives_at_its_sender_at_once():
    party = Party()
    assert party.say(0)
    assert [to for _, to, _ in party.flying] == [1, 2]
    assert party.taken[0][0] == ["a0"]


def test_what_comes_early_waits_for_what_is_missing():
    party = Party()
    party.say(0)
    party.say(0)
    lost = party.flying.pop(0)
    assert lost[1] == 1
    party.arrive(1)  # a's second, at b.
    assert party.taken[1][0] == []
    assert "missing" in party.armed[1]
    party.expire(1, "missing")
    assert party.flying[-1] == ("b", 0, Request(0, (1,)))
    party.arrive(len(party.flying) - 1)
    party.arrive(len(party.flying) - 1)
    assert party.taken[1][0] == ["a0", "a1"]


def test_the_loss_of_the_last_one_is_told_by_a_heartbeat():
    party = Party()
    party.say(0)
    party.flying.clear()
    assert "missing" not in party.armed[1]
    party.expire(0, "heartbeat")
    party.arrive(0)
    assert "missing" in party.armed[1]


def test_others_are_asked_when_the_sender_does_not_answer():
    party = Party(sender_attempts=2)
    party.say(0)
    party.flying.pop(0)  # To b.
    party.arrive(0)
    party.expire(2, "heartbeat")
    party.arrive(next(i for i, f in enumerate(party.flying) if f[1] == 1))
    party.flying.clear()
    asked = []
    for _ in range(4):
        party.expire(1, "missing")
        asked += [to for _, to, message in party.flying if isinstance(message, Request)]
        party.flying.clear()
    assert asked == [0, 0, 2, 2]  # Of a, nothing shows that it has anything.


def test_a_window_that_nobody_acknowledges_is_full():
    party = Party(window_packets=4, ack_packets=2)
    while party.say(0):
        pass
    assert len(party.sent[0]) == 4
    party.settle(1)
    assert party.links[0].room == 4


def test_one_slow_member_holds_the_sender_to_its_window():
    party = Party(window_packets=4, ack_packets=1)
    for _ in range(50):
        party.say(0)
        party.flying = [copy for copy in party.flying if copy[1] != 2]
        while party.flying:
            party.arrive(0)
    assert len(party.sent[0]) == 4


def test_much_is_acknowledged_at_once_and_little_soon():
    party = Party(ack_packets=2)
    assert party.armed[1]["heartbeat"] == party.config.heartbeat_s
    party.say(0)
    party.arrive(0)
    assert party.armed[1]["heartbeat"] == party.config.ack_s
    party.say(0)
    party.arrive(1)
    heartbeats = [f for f in party.flying if isinstance(f[2], Heartbeat)]
    assert [(f[0], f[2]) for f in heartbeats] == [("b", Heartbeat((2, 0, 0)))] * 2
    assert party.armed[1]["heartbeat"] == party.config.heartbeat_s


def test_a_silent_member_is_suspected_and_again_after_as_long():
    party = Party()
    for _ in range(2 * (SILENCE_CHECKS + 1)):
        party.hear(0, "b", Heartbeat((0, 0, 0)))
        party.expire(0, "silence")
    assert [s.members for s in party.suspects] == [("c",), ("c",)]


def test_who_is_heard_and_receives_nothing_is_suspected():
    party = Party()
    party.say(0)
    looks = round(party.config.stall_s / party.config.silence_s * SILENCE_CHECKS) + 2
    for _ in range(looks):
        party.hear(0, "b", Heartbeat((1, 0, 0)))
        party.hear(0, "c", Heartbeat((0, 0, 0)))
        party.expire(0, "silence")
    assert [(s.members, s.reason) for s in party.suspects] == [(("c",), "nothing is acknowledged")]


def test_a_member_alone_needs_nobody():
    party = Party(1)
    for _ in range(200):
        assert party.say(0)
    assert party.taken[0][0] == party.settled[0] == party.sent[0]
    assert not party.flying
    assert not party.armed[0]


@pytest.mark.parametrize(
    "message",
    [
        Data(3, 1, 0, (0, 0, 0), "x"),
        Data(0, 1, 0, (0, 0, 0), "x"),
        Data(1, 2, 1, (0, 2, 0), "x"),
        Data(1, AHEAD_MAX + 1, 0, (0, 1, 0), "x"),
        Data(1, 1, 0, (0, 0), "x"),
        Data(1, 1, 0, (1, 0, 0), "x"),
        Heartbeat((0, 0, 0, 0)),
        Heartbeat((1, 0, 0)),
        Request(3, (1,)),
    ],
    ids=str,
)
def test_what_no_member_can_have_sent_changes_nothing(message):
    party = Party()
    before = repr(vars(party.links[0].ledger)), dict(party.armed[0])
    assert not party.hear(0, "b", message)
    assert (repr(vars(party.links[0].ledger)), party.armed[0]) == before
    assert not party.flying


def test_strangers_this_node_itself_and_other_lives_are_not_heard():
    party = Party()
    heartbeat = Heartbeat((0, 1, 0))
    assert not party.hear(0, "z", heartbeat)
    assert not party.hear(0, "a", heartbeat)
    assert party.hear(0, "b", heartbeat)
    later = Origin("g", "b", 1, party.view.id)
    assert not party.links[0].receive(later, heartbeat)


@pytest.mark.parametrize("window", [0, AHEAD_MAX + 1])
def test_a_window_has_its_limits(window):
    with pytest.raises(ValueError, match="window_packets"):
        LinkConfig(window_packets=window)


# The end of a view


def end(party: Party, movers: list[int]) -> list[list[str]]:
    """These members move on together; by member, what they take at the end, by sender."""
    summaries = {NAMES[m]: party.links[m].freeze() for m in movers}
    items: dict[tuple[int, ...], Item] = {}
    for m in movers:
        for item in party.links[m].seal(summaries):
            items.setdefault(item.key, item)
    for m in movers:
        link = party.links[m]
        for item in (*items.values(), *items.values()):
            link.absorb(link.unpack(item))
        for sender, _, content in link.pop_arrived():
            party.taken[m][sender].append(content)
    assert len({tuple(party.links[m].agreed_stable(summaries)) for m in movers}) == 1
    return [list(chain(*party.taken[m])) for m in movers]


@given(steps, st.sampled_from([[0], [0, 1], [1, 2], [0, 2], [0, 1, 2]]))
@settings(max_examples=150, deadline=None)
def test_members_that_move_on_together_hold_the_same(steps, movers):
    party = Party(window_packets=6, ack_packets=3, request_packets=2)
    go(party, steps)
    ends = end(party, movers)
    assert all(e == ends[0] for e in ends)
    party.check()
    for m in movers:
        assert party.taken[m][m] == party.sent[m], "nobody loses its own"


def test_a_frozen_link_stores_and_says_nothing():
    party = Party(ack_packets=1)
    party.say(0)
    party.links[1].freeze()
    party.arrive(0)
    assert party.taken[1][0] == ["a0"]
    assert party.links[1].room == 0
    assert [f[1] for f in party.flying] == [2]
    party.hear(1, "a", Request(0, (1,)))
    party.hear(1, "a", Heartbeat((3, 0, 0)))
    assert [f[1] for f in party.flying] == [2]


def test_what_another_knows_to_be_everywhere_is_forgotten_and_still_taken():
    party = Party(window_packets=6, ack_packets=1)
    party.say(0)
    party.arrive(0)
    party.arrive(0)
    for _ in range(2):  # To a, from b and from c: a alone knows.
        party.arrive(next(i for i, f in enumerate(party.flying) if f[1] == 0))
    assert [link.ledger.stable[0] for link in party.links] == [1, 0, 0]
    assert end(party, [0, 1]) == [["a0"], ["a0"]]
    assert not any(party.links[1].ledger.held)


def test_only_what_another_lacks_is_sealed():
    party = Party()
    for _ in range(3):
        party.say(0)
    party.flying = [f for f in party.flying if f[1] == 1]
    for _ in range(2):
        party.arrive(0)
    summaries = {name: party.links[m].freeze() for m, name in enumerate("ab")}
    assert [item.key for item in party.links[0].seal(summaries)] == [(0, 3)]
    assert party.links[1].seal(summaries) == []
    assert party.links[0].seal({"a": summaries["a"]}) == []


def test_what_lies_behind_a_gap_that_nobody_fills_is_lost_alike():
    party = Party()
    party.say(2)
    party.say(2)
    party.arrive(3)  # c's second, at b; c leaves with its first.
    ends = end(party, [0, 1])
    assert ends == [[], []]
