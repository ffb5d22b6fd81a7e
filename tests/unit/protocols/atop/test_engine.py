"""The ATOP engine: when it sends dummies and distributions, and what it makes of bad options."""

import pytest
from tests.unit.protocols.link_members import (
    VIEW,
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
from roundelay.core.effects import CancelTimer, SetTimer
from roundelay.group.engines import engine_config
from roundelay.links.messages import Data
from roundelay.protocols.atop.atom import COUNT_MAX, DISTRIBUTION_MAX, NUMBER_MAX, Tag
from roundelay.protocols.atop.atop import AtopEngine
from roundelay.protocols.atop.messages import CODEC, Content
from roundelay.protocols.atop.slots import WEIGHT_RATIO_MAX, owners
from roundelay.wire.primitives import WireError

LETTERS = [VIEW.members[owners(VIEW.id.seq, 0, (1, 1, 1))(slot)] for slot in range(12)]
"""Owners of the first slots."""


def data(sender, number, tag, content=None, *, received=None):
    had = received or tuple(number if i == sender else 0 for i in range(3))
    return Data(sender, number, 0, had, Content(tag, content))


def dummies(effects):
    contents = [m.content for m in sent(effects) if isinstance(m, Data)]
    return [content.tag for content in contents if content.packet is None]


def test_slots_of_the_view_that_the_tests_below_count_on():
    assert "".join(LETTERS) == "ccacbccbccab"


def test_a_member_covers_the_slots_for_which_others_wait_after_a_while():
    member, _ = engine("atop", "c", hold_s=0.003)
    effects = hear(member, "b", data(1, 1, Tag(0, 0), packet("b")))
    assert SetTimer("hold", 0.003) in effects
    assert dummies(member.expire("hold")) == [Tag(0, 0, 3)]
    assert member.dummies == 1
    assert dummies(member.expire("hold")) == []
    assert delivered(hear(member, "a", data(0, 1, Tag(0, 0, 1)))) == ["b:0"]


def test_one_dummy_fills_all_slots_before_all_that_waits():
    member, _ = engine("atop", "c")
    for number in (1, 2):
        hear(member, "b", data(1, number, Tag(0, number - 1), packet("b", number)))
    assert dummies(member.expire("hold")) == [Tag(0, 0, 5)]


def test_who_has_something_to_send_fills_its_slot_with_it():
    member, queue = engine("atop", "a")
    hear(member, "b", data(1, 1, Tag(0, 0), packet("b")))
    hear(member, "c", data(2, 1, Tag(0, 0, 5)))
    queue.packets.append(packet("a"))
    effects = member.submit()
    assert delivered(effects) == ["a:0", "b:0"]
    assert CancelTimer("hold") in effects


@pytest.mark.parametrize(("rule", "filled"), [("demand", 1), ("switch", 0), ("none", 0)])
def test_other_rules_fill_less(rule, filled):
    member, _ = engine("atop", "c", dummies=rule)
    for number in (1, 2):
        hear(member, "b", data(1, number, Tag(0, number - 1), packet("b", number)))
    assert [tag.count for tag in dummies(member.expire("hold"))] == [1] * filled


def test_without_dummies_no_timer_is_armed():
    member, _ = engine("atop", "c", dummies="none")
    effects = hear(member, "b", data(1, 1, Tag(0, 0), packet("b")))
    assert not [e for e in effects if isinstance(e, SetTimer) and e.timer == "hold"]


@pytest.mark.parametrize("rule", ["cover", "demand", "switch"])
def test_a_silent_member_tells_that_it_uses_a_new_distribution(rule):
    member, _ = engine("atop", "c", dummies=rule)
    hear(member, "a", data(0, 1, Tag(1, 0, 1, (5, 2, 1)), packet("a")))
    assert dummies(member.expire("hold")) == [Tag(1, 0, 1, (5, 2, 1))]


def test_the_first_member_keeps_the_books_and_publishes_with_its_next_content():
    member, queue = engine("atop", "a", factor=1, period_s=0.1)
    for number in (1, 2, 3):
        effects = hear(member, "b", data(1, number, Tag(0, number - 1), packet("b", number)))
        assert (SetTimer("period", 0.1) in effects) == (number == 1)
    member.expire("period")
    assert member.atom.known[1] == (1, 49, 1)
    queue.packets.append(packet("a"))
    (frame,) = sent(member.submit())
    assert frame.content.tag == Tag(1, 0, 1, (1, 49, 1))


def test_other_members_keep_none():
    member, _ = engine("atop", "b", factor=1)
    for number in (1, 2, 3):
        effects = hear(member, "a", data(0, number, Tag(0, number - 1), packet("a", number)))
        assert not [e for e in effects if isinstance(e, SetTimer) and e.timer == "period"]


def test_a_quiet_group_is_silent():
    member, _ = engine("atop", "a", factor=1)
    assert dummies(member.expire("hold")) == []
    hear(member, "b", data(1, 1, Tag(0, 0, 9)))
    assert dummies(member.expire("hold")) == [], "a dummy calls for no dummy"


def test_given_weights_are_used_from_the_beginning():
    member, _ = engine("atop", "a", policy="given", weights="b:7")
    assert member.atom.known[1] == (1, 7, 1)
    other, _ = engine("atop", "b", policy="given", weights="b:7")
    assert other.atom.known == {0: (1, 1, 1)}, "the first member tells it"


def test_a_member_stops_while_a_window_of_its_own_is_not_delivered_here():
    """All have what it sent: the window of the link is open, and that of the order is not."""
    member, queue = engine("atop", "a", window_packets=2)
    queue.packets += [packet("a", i) for i in range(5)]
    assert len(sent(member.submit())) == 2
    hear(member, "b", data(1, 1, Tag(0, 0, 2), received=(2, 1, 0)))
    effects = hear(member, "c", data(2, 1, Tag(0, 0, 1), received=(2, 1, 1)))
    assert member.link.room == 2
    assert sent(effects) == []
    effects = hear(member, "c", data(2, 2, Tag(0, 1, 9), received=(2, 1, 2)))
    assert delivered(effects) == ["a:0", "a:1"]
    assert [type(message) for message in sent(effects)].count(Data) == 2


def test_at_the_end_of_a_view_all_is_delivered_in_the_order_of_slots():
    a, _ = engine("atop", "a", [packet("a", 0), packet("a", 1)])
    b, _ = engine("atop", "b", [packet("b", 0, safe=True), packet("b", 1)])
    both = (["a:0"], ["b:0", "b:1", "a:1"])  # Slots 2 and 10 are a's, 4 and 7 are b's.
    assert end(a, b) == [both, both]


# What is forged


@pytest.mark.parametrize(
    "tag",
    [
        Tag(1, 0, 1, (5, 2)),
        Tag(1, 0, 1, (5, 2, 1, 1)),
        Tag(1, 0, 1, (WEIGHT_RATIO_MAX + 1, 1, 1)),
    ],
    ids=["one is missing", "one for a stranger", "too different"],
)
def test_weights_that_no_distribution_has_are_refused(tag):
    member, _ = engine("atop", "a")
    assert refused(hear(member, "b", data(1, 1, tag, packet("b"))))
    assert member.atom.newest == 0
    member.freeze()
    with pytest.raises(WireError):
        member.absorb(Item((1, 1), CODEC.pack(Content(tag, packet("b")))))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (Tag(0, 0), Tag(0, 0)),
        (Tag(0, 0), Tag(0, 2)),
        (Tag(0, 0), Tag(1, 1)),
        (Tag(1, 0, 1, (5, 2, 1)), Tag(0, 0)),
        (Tag(1, 0, 1, (5, 2, 1)), Tag(1, 0, 1, (5, 2, 1))),
    ],
    ids=["twice", "a gap", "no weights", "goes back", "begins again"],
)
def test_tags_that_do_not_fit_together_end_the_view(first, second):
    member, _ = engine("atop", "a")
    hear(member, "b", data(1, 1, first, packet("b", 1)))
    effects = hear(member, "b", data(1, 2, second, packet("b", 2)))
    assert suspicions(effects) == ["what b sends does not fit together"]
    assert member.atom.waiting == 1, "it is left out"


def test_a_distribution_that_is_told_twice_with_different_weights_ends_the_view():
    member, _ = engine("atop", "a")
    hear(member, "b", data(1, 1, Tag(1, 0, 1, (5, 2, 1)), packet("b")))
    effects = hear(member, "c", data(2, 1, Tag(1, 0, 1, (5, 2, 2)), packet("c")))
    assert suspicions(effects) == ["what c sends does not fit together"]
    assert member.atom.known[1] == (5, 2, 1)


def test_the_last_distribution_is_kept_when_there_are_no_more_numbers():
    member, queue = engine("atop", "a", factor=1)
    last = Tag(DISTRIBUTION_MAX, 0, 1, (5, 2, 1))
    for number in (1, 2, 3):
        tag = last if number == 1 else Tag(DISTRIBUTION_MAX, number - 1)
        hear(member, "b", data(1, number, tag, packet("b", number)))
    member.expire("period")
    queue.packets.append(packet("a"))
    (frame,) = sent(member.submit())
    assert frame.content.tag == last
    assert CODEC.decode(*CODEC.encode(frame), 0) == frame


@pytest.mark.parametrize(
    "tag",
    [
        Tag(0, 0, 0),
        Tag(0, 0, COUNT_MAX + 1),
        Tag(0, NUMBER_MAX + 1),
        Tag(DISTRIBUTION_MAX + 1, 0, 1, (1, 1, 1)),
        Tag(1, 0),
        Tag(0, 0, 1, (1, 1, 1)),
        Tag(1, 4, 1, (1, 1, 1)),
        Tag(1, 0, 1, ()),
        Tag(1, 0, 1, (1, 0, 1)),
    ],
)
def test_bytes_of_an_impossible_tag_are_no_frame(tag):
    body = CODEC.pack(Content(tag))
    with pytest.raises(WireError):
        CODEC.unpack(body)


def test_a_packet_fills_one_slot():
    with pytest.raises(WireError):
        CODEC.unpack(CODEC.pack(Content(Tag(0, 0, 2), packet("a"))))


# Options


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"policy": "x"}, "policy=x: write one of bookkeeper, given"),
        ({"dummies": "x"}, "dummies=x: write one of cover, demand, switch, none"),
        ({"hold_s": "0"}, "above 0, like hold_s=0.002"),
        ({"hold_s": "-1"}, "above 0, like hold_s=0.002"),
        ({"period_s": "0"}, "period_s"),
        ({"weights": "a:3"}, "weights are for policy=given; write that too, or leave them out"),
        ({"policy": "given"}, "write names and weights, like weights=a:20,b:5"),
        ({"policy": "given", "weights": "a:0"}, "between 1 and 4096"),
        ({"factor": "0"}, "at least 1"),
        ({"scale": "0"}, "at least 1"),
        ({"threshold_permille": "-1"}, "at least 0"),
        ({"window_packets": "0"}, "between 1 and 4096"),
    ],
)
def test_bad_options_are_told_in_one_sentence(options, says):
    with pytest.raises(ValueError, match=says) as caught:
        engine_config("atop", options)
    assert "\n" not in str(caught.value)


def test_hold_of_allack_is_a_time_too():
    with pytest.raises(ValueError, match=r"above 0, like hold_s=0.002"):
        engine_config("allack", {"hold_s": "0"})


def test_the_engine_is_what_its_description_says():
    assert isinstance(engine("atop", "a")[0], AtopEngine)
