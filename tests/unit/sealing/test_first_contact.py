"""Two nodes that meet: whoever speaks first, and also if both do."""

import itertools
from random import Random

import pytest

from roundelay.core.contract import Boot, Origin
from roundelay.sealing.keys import GroupKey
from roundelay.sealing.seal import Seal
from roundelay.wire.frame import encode, encode_origin
from roundelay.wire.primitives import Reason

KEYS = (GroupKey(b"k" * 32),)


def seal(node: str) -> Seal:
    return Seal(Boot("g", node, 0), ("a", "b"), KEYS, Random(node).randbytes, 0.0)


def frame(node: str) -> bytes:
    return encode(encode_origin(Origin("g", node, 0, None)), 1, 0, 0, b"body", sealed=True)


@pytest.mark.parametrize("first", [("a",), ("b",), ("a", "b")])
def test_nodes_that_speak_at_the_same_moment_know_each_other_after_two_round_trips(first):
    """A challenge that crosses one of our own is answered, however short ago ours was sent."""
    nodes = {"a": seal("a"), "b": seal("b")}
    other = {"a": "b", "b": "a"}
    under_way = [(other[node], nodes[node].seal(frame(node))) for node in first]
    for step in itertools.count(1):
        now = step * 0.001
        arriving, under_way = under_way, []
        for to, data in arriving:
            assert nodes[to].open(data, now) in (None, Reason.UNPROVEN)
            under_way += nodes[to].outbox
            nodes[to].outbox.clear()
        if not under_way:
            break
    assert step <= 5
    for node, peer in other.items():
        assert nodes[node].open(nodes[peer].seal(frame(peer)), 0.01) == frame(peer)
