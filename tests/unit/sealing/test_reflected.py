"""Where a node hears its own datagrams, they count once, and not when they are old."""

from random import Random

from roundelay.core.contract import Boot, Origin
from roundelay.sealing.keys import GroupKey
from roundelay.sealing.seal import Seal
from roundelay.wire.frame import encode, encode_origin
from roundelay.wire.primitives import Reason

FRAME = encode(encode_origin(Origin("g", "a", 0, None)), 1, 0, 0, b"body", sealed=True)


def reflecting() -> Seal:
    keys = (GroupKey(b"k" * 32),)
    return Seal(Boot("g", "a", 0), ("a", "b"), keys, Random(1).randbytes, 0.0, reflect=True)


def test_an_own_datagram_is_opened_once():
    seal = reflecting()
    data = seal.seal(FRAME)
    assert seal.open(data, 0.1) == FRAME
    assert seal.open(data, 0.2) is Reason.REPLAY


def test_an_own_datagram_that_was_held_back_is_too_old_after_five_seconds():
    for heard_every_s in (0.1, 1.9, 4.0, 7.0):
        seal = reflecting()
        held_back, now = seal.seal(FRAME), 0.0
        while now < 5.0:
            now += heard_every_s
            seal.open(seal.seal(FRAME), now)
        assert seal.open(held_back, now + 0.1) is Reason.REPLAY
        assert not seal.outbox


def test_own_datagrams_that_are_on_their_way_when_others_become_old_are_opened():
    seal = reflecting()
    for step in range(1, 200):
        data = seal.seal(FRAME)
        assert seal.open(data, step * 0.1) == FRAME
        late = seal.seal(FRAME)
        assert seal.open(seal.seal(FRAME), step * 0.1 + 0.05) == FRAME
        assert seal.open(late, step * 0.1 + 0.06) == FRAME


def test_after_a_silence_the_driver_tells_the_time_before_it_seals():
    seal = reflecting()
    held_back = seal.seal(FRAME)
    seal.tick(1000.0)
    assert seal.open(seal.seal(FRAME), 1000.1) == FRAME
    assert seal.open(held_back, 1000.2) is Reason.REPLAY
