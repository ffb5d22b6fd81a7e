"""A group changes its key: in every order, late, twice, and back."""

from itertools import permutations

import pytest
from tests.unit.sealing.lab import GROUP, KEYS, Lab

from roundelay.sealing.seal import OLD_KEY_S, SWITCH_S
from roundelay.wire.primitives import Reason

K0, K1, K2, K3, _ = KEYS
BOTH = (K1, K0)


def sends_with(lab: Lab, name: str) -> str:
    found = lab.seals[name].status(lab.now)["sends_with"]
    for number, key in enumerate(KEYS):
        if key.id(GROUP).hex() == found:
            return f"K{number}"
    raise AssertionError(found)


def nobody_is_deaf(lab: Lab, seconds: float, step: float = 0.05) -> None:
    """Every frame of all arrives at all, for so long."""
    until = lab.now + seconds
    while lab.now < until:
        for sender in lab.names:
            for receiver in lab.names:
                if sender != receiver:
                    assert lab.hears(receiver, sender), f"{receiver} is deaf to {sender}"
                    lab.settle()
        lab.now += step


@pytest.mark.parametrize("pause", [0.0, 0.2, 3.0, 14.0])
@pytest.mark.parametrize("order", list(permutations("abc")), ids="".join)
def test_in_every_order_without_losing_a_frame(order, pause):
    lab = Lab("abc")
    lab.meet()
    for name in order:
        assert sends_with(lab, name) == "K0"
        assert lab.seals[name].change_keys(BOTH, lab.now)
        nobody_is_deaf(lab, pause)
    nobody_is_deaf(lab, 0.2)
    assert {sends_with(lab, name) for name in "abc"} == {"K1"}
    nobody_is_deaf(lab, OLD_KEY_S + 1.0, 0.5)
    for name in "abc":
        assert lab.seals[name].key_ids == (K1.id(GROUP),)
        assert lab.seals[name].key_ring == (K1,)


def old_key_dies() -> None:
    """A machine that was stolen has the old key: `OLD_KEY_S` after the change it is shut out."""
    lab = Lab("abc")
    lab.meet()
    for name in "ab":
        lab.seals[name].change_keys(BOTH, lab.now)
    changed_at = lab.now
    while lab.now < changed_at + OLD_KEY_S - 0.3:
        lab.talk(seconds=0.25)
        assert lab.hears("a", "c")
    lab.now = changed_at + OLD_KEY_S
    for name in "ab":
        assert lab.open(name, lab.send("c")) is Reason.KEY
        assert lab.pending == []
        assert lab.seals[name].key_ids == (K1.id(GROUP),)
    assert lab.hears("a", "b")


def test_the_old_key_dies():
    old_key_dies()


def test_a_node_that_never_gets_the_key_does_not_hold_up_the_others():
    lab = Lab("abc")
    lab.meet()
    for name in "ab":
        lab.seals[name].change_keys(BOTH, lab.now)
    nobody_is_deaf(lab, SWITCH_S - 0.5, 0.5)
    assert sends_with(lab, "a") == sends_with(lab, "b") == "K0"
    lab.now += 1.0
    assert lab.hears("a", "b")
    assert sends_with(lab, "a") == "K1"
    assert lab.open("c", lab.send("a")) is Reason.KEY


def test_a_node_that_gets_the_key_late_comes_back():
    lab = Lab("abc")
    lab.meet()
    for name in "ab":
        lab.seals[name].change_keys(BOTH, lab.now)
    lab.talk(seconds=2 * OLD_KEY_S, step=0.5)
    assert lab.proven("c") == []
    lab.seals["c"].change_keys(BOTH, lab.now)
    lab.meet()
    nobody_is_deaf(lab, 3.0)


def test_the_old_key_is_taken_out_at_once():
    lab = Lab()
    lab.meet()
    for name in "ab":
        lab.seals[name].change_keys(BOTH, lab.now)
    nobody_is_deaf(lab, 1.0)
    old = lab.seals["b"]._seal(lab.frame("b"), lab.seals["b"]._sealers[1])
    for name in "ab":
        assert lab.seals[name].change_keys((K1,), lab.now)
        assert lab.seals[name].key_ids == (K1.id(GROUP),)
        nobody_is_deaf(lab, 0.2)
    assert lab.open("a", old) is Reason.KEY


def test_a_change_back():
    lab = Lab()
    lab.meet()
    lab.seals["a"].change_keys(BOTH, lab.now)
    nobody_is_deaf(lab, 1.0)
    lab.seals["a"].change_keys((K0,), lab.now)
    nobody_is_deaf(lab, 2 * OLD_KEY_S, 0.5)


def test_keys_in_the_other_order():
    """One file has them the wrong way round: both keys are accepted, so all are heard."""
    lab = Lab()
    lab.meet()
    lab.seals["a"].change_keys((K1, K0), lab.now)
    lab.seals["b"].change_keys((K0, K1), lab.now)
    nobody_is_deaf(lab, SWITCH_S - 1.0, 0.5)


def test_three_changes_one_after_the_other():
    lab = Lab("abc")
    lab.meet()
    for ring in (K1, K0), (K2, K1), (K3, K2):
        for name in lab.names:
            lab.seals[name].change_keys(ring, lab.now)
            nobody_is_deaf(lab, 0.5)
        assert {sends_with(lab, name) for name in "abc"} == {f"K{KEYS.index(ring[0])}"}


def test_other_keys_altogether():
    """No key in common: nobody is heard until all have changed, and then at once, since they are
    known."""
    lab = Lab("abc")
    lab.meet()
    lab.seals["a"].change_keys((K2,), lab.now)
    assert lab.open("a", lab.send("b")) is Reason.KEY
    assert lab.open("b", lab.send("a")) is Reason.KEY
    lab.now += 1.0
    for name in "bc":
        lab.seals[name].change_keys((K2,), lab.now)
    nobody_is_deaf(lab, 5.0)


def test_other_keys_altogether_after_a_while():
    lab = Lab("abc")
    lab.meet()
    lab.seals["a"].change_keys((K2, K3), lab.now)
    lab.now += 100.0
    for name in "bc":
        lab.seals[name].change_keys((K2,), lab.now)
    lab.meet()
    nobody_is_deaf(lab, 5.0)


@pytest.mark.parametrize("ring", [(K0,), (K1,), BOTH])
def test_a_node_that_starts_during_a_change(ring):
    """With the old file, with the file after the change, and with both keys."""
    lab = Lab("abc")
    lab.meet()
    lab.seals["a"].change_keys(BOTH, lab.now)
    if ring != (K0,):
        lab.seals["b"].change_keys(BOTH, lab.now)
    lab.talk(seconds=1.0)
    lab.start("c", ring)
    lab.meet()
    nobody_is_deaf(lab, 3.0)


def test_the_same_keys_again_change_nothing():
    lab = Lab()
    assert not lab.seals["a"].change_keys((K0,), lab.now)
    assert lab.seals["a"].change_keys(BOTH, lab.now)
    lab.now += 50.0
    assert not lab.seals["a"].change_keys(BOTH, lab.now)
    lab.now += 10.0
    lab.open("a", b"anything")
    assert lab.seals["a"].key_ids == (K1.id(GROUP),), "the time was not begun again"


def test_counters_go_on_so_that_what_was_opened_with_one_key_is_not_opened_with_another():
    """Each datagram has a counter of its own, whichever key it has."""
    lab = Lab()
    lab.meet()
    for name in "ab":
        lab.seals[name].change_keys(BOTH, lab.now)
    b = lab.seals["b"]
    sent = [b._seal(lab.frame("b"), b._sealers[n % 2]) for n in range(6)]
    counters = [int.from_bytes(data[28:36]) for data in sent]
    assert len(set(counters)) == 6
    assert counters == sorted(counters)
    for data in sent:
        assert isinstance(lab.open("a", data), bytes)
    for data in sent:
        assert lab.open("a", data) is Reason.REPLAY


def test_status_tells_the_keys():
    lab = Lab("abc")
    lab.meet()
    lab.seals["a"].change_keys(BOTH, lab.now)
    status = lab.seals["a"].status(lab.now)
    assert status == {
        "cipher": "AES-256-GCM",
        "sends_with": K0.id(GROUP).hex(),
        "accepts": [K1.id(GROUP).hex(), K0.id(GROUP).hex()],
        "proven": ["b", "c"],
    }
