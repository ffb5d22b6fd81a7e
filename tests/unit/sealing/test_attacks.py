"""What an attacker without the key can do to proofs: replay, withhold, cross and flood."""

from random import Random

import pytest
from tests.unit.sealing.lab import KEYS, Lab, frame_of

from roundelay.core.contract import Boot
from roundelay.sealing.lives import PROOF_S
from roundelay.sealing.proofs import Answer, Challenge
from roundelay.sealing.seal import UNPROVEN_OPENINGS, Seal
from roundelay.wire.primitives import Reason


def old_life_of_b() -> tuple[Lab, dict[str, list[bytes]]]:
    """Nodes a and b that know each other, and what was captured of an earlier life of b."""
    lab = Lab()
    lab.meet()
    captured: dict[str, list[bytes]] = {"data": [lab.send("b") for _ in range(5000)]}
    for kind in (Challenge, Answer):
        captured[kind.__name__] = []
    lab.start("a", KEYS[:1])
    for _ in range(20):
        lab.now += 3.0
        lab.talk()
    for each in lab.emitted:
        if each.by == "b":
            captured[type(each.proof).__name__].append(each.data)
    lab.start("b", KEYS[:1])
    lab.now += 10.0
    lab.meet()
    return lab, captured


def replays_do_not_starve_a_proof(kind: str = "Challenge") -> None:
    """An attacker takes every chance to make a node say something, and a member keeps talking."""
    lab, captured = old_life_of_b()
    replays = captured[kind]
    for ms in range(int(3 * PROOF_S * 1000)):
        lab.now += 0.001
        assert lab.open("a", replays[ms % len(replays)]) in (Reason.UNPROVEN, None)
        lab.pending.clear()  # What the replays lead to is lost.
        if ms % 25 == 0:
            assert lab.hears("a", "b"), f"lost after {ms} ms"
            lab.settle()


@pytest.mark.parametrize("kind", ["data", "Challenge", "Answer"])
def test_replays_of_an_earlier_life_do_not_keep_a_proof_from_being_renewed(kind):
    replays_do_not_starve_a_proof(kind)


def overtaken_frames_count() -> None:
    """Replays make a node ask for proofs all the time, and frames that the answers overtake are
    not lost."""
    lab, captured = old_life_of_b()
    late = [lab.send("b") for _ in range(30)]
    for at, data in enumerate(late):
        lab.now += 0.045
        lab.open("a", captured["data"][at])
        lab.settle()
        assert lab.hears("a", "b")
        assert isinstance(lab.open("a", data), bytes), f"datagram {at} was lost"


def test_replays_of_an_earlier_life_do_not_lose_frames_that_were_overtaken():
    overtaken_frames_count()


@pytest.mark.parametrize("interval", [0.03, 0.05, 0.1, 0.25])
def test_nodes_that_do_everything_at_the_same_time_prove_themselves(interval):
    crossing_challenges_are_answered(interval)


def crossing_challenges_are_answered(interval: float = 0.05) -> None:
    """Each must be answered although one was just sent."""
    lab = Lab("abc")
    for _ in range(4):
        frames = {name: lab.send(name) for name in lab.names}
        for receiver in lab.names:
            for sender in lab.names:
                if sender != receiver:
                    lab.open(receiver, frames[sender])
        for _ in range(3):
            lab.now += 0.001
            arriving, lab.pending = lab.pending, []
            for each in arriving:
                lab.open(each.to, each.data)
        lab.now += interval
    for name in lab.names:
        assert lab.proven(name) == sorted(set(lab.names) - {name})


def test_a_member_that_was_silent_comes_back_during_a_flood():
    """The flood has the right key id and boots that nobody knows, so that each would have to be
    opened; a boot that was proven before is known by its header."""
    lab = Lab()
    lab.meet()
    lab.now += PROOF_S + 1.0
    header = lab.send("b")[:12]

    def flood(name: str) -> None:
        for n in range(UNPROVEN_OPENINGS + 1):
            lab.open(name, header + b"%16d" % n + bytes(60))

    for _ in range(20):
        lab.now += 0.010
        flood("a")
        flood("b")
        lab.open("a", lab.send("b"))
        lab.settle()
    assert lab.proven("a") == ["b"]
    assert lab.proven("b") == ["a"]


def test_replays_do_not_keep_new_boots_apart_for_long():
    """Both nodes are new, and each is sent a thousand old challenges of the other in a second, so
    that an answer to one of those takes almost every turn. What arrives in one millisecond comes in
    any order."""
    lab, captured = old_life_of_b()
    lab.now += 10.0
    lab.talk("ab")
    old = {"a": captured["Challenge"], "b": []}
    old["b"] = [each.data for each in lab.emitted if each.by == "a"]
    for name in lab.names:
        lab.start(name, KEYS[:1])
    order = Random(20)
    for ms in range(5000):
        lab.now += 0.001
        arriving = [(each.to, each.data) for each in lab.pending]
        arriving += [(name, order.choice(old[name])) for name in lab.names]
        if ms % 50 == 0:
            arriving += [("a", lab.send("b")), ("b", lab.send("a"))]
        lab.pending.clear()
        order.shuffle(arriving)
        for to, data in arriving:
            lab.open(to, data)
    assert lab.proven("a") == ["b"]
    assert lab.proven("b") == ["a"]


def test_an_answer_that_proves_nothing_still_asks():
    """Node a answers an old challenge of b; the new life of b learns from it that a is there, and
    answers the challenge in it."""
    lab, captured = old_life_of_b()
    lab.start("b", KEYS[:1])
    lab.now += 10.0
    assert lab.open("a", captured["Challenge"][0]) is None
    (said,) = lab.pending
    assert isinstance(said.proof, Answer)
    lab.settle()
    assert lab.proven("a") == ["b"]
    assert lab.proven("b") == ["a"]


def test_a_clock_may_begin_anywhere():
    """Below zero too: nothing counts before the first proof."""
    for begin in (-1e6, -3.0, 0.0, 1e9):
        lab = Lab(now=begin)
        early = lab.send("b")
        assert lab.open("a", early) is Reason.UNPROVEN
        lab.settle()
        assert lab.proven("a") == ["b"]
        assert lab.open("a", early) is Reason.REPLAY
        assert lab.hears("a", "b")


def test_a_node_that_hears_itself_does_not_prove_itself():
    """Where a channel shows each sender its own frames, its challenges come back too."""
    lab = Lab("b")
    a = Seal(Boot("g", "a", 1), "ab", KEYS[:1], lambda n: b"r" * n, lab.now, reflect=True)
    lab.seals["b"] = Seal(Boot("g", "b", 1), "ab", KEYS[:1], lambda n: b"s" * n, lab.now)
    lab.starts["b"] = 1
    assert a.open(lab.send("b"), lab.now) is Reason.UNPROVEN
    ((_, challenge),) = a.outbox
    a.outbox.clear()
    assert a.open(challenge, lab.now) is Reason.OWN
    assert a.outbox == []
    frame = frame_of("a", incarnation=1)
    a.tick(lab.now + 1000)
    assert a.open(a.seal(frame), lab.now + 1000) == frame
    assert a.status(lab.now)["proven"] == []


def old_key_stays_dead() -> None:
    """The file still has both keys when it is read again."""
    lab = Lab()
    lab.meet()
    ring = (KEYS[1], KEYS[0])
    for name in lab.names:
        assert lab.seals[name].change_keys(ring, lab.now)
    lab.talk(seconds=61.0, step=1.0)
    assert lab.seals["a"].key_ids == (KEYS[1].id("g"),)
    assert not lab.seals["a"].change_keys(ring, lab.now), "the file still has both keys"
    assert lab.seals["a"].key_ids == (KEYS[1].id("g"),)


def test_a_second_reload_does_not_bring_the_old_key_back():
    old_key_stays_dead()


def test_two_changes_at_once_leave_nobody_out():
    """One node has the third key while another still has the first."""
    lab = Lab("abc")
    lab.meet()
    for name in "ab":
        lab.seals[name].change_keys((KEYS[1], KEYS[0]), lab.now)
    lab.talk(seconds=1.0)
    lab.seals["c"].change_keys((KEYS[1], KEYS[0]), lab.now)
    lab.talk(seconds=1.0)
    lab.seals["a"].change_keys((KEYS[2], KEYS[1]), lab.now)
    lab.talk(seconds=1.0)
    for sender in "abc":
        for receiver in "abc":
            if sender != receiver:
                assert lab.hears(receiver, sender), f"{receiver} does not hear {sender}"


def test_a_silent_peer_without_the_new_key_is_still_sent_to_with_the_old_one():
    lab = Lab("abc")
    lab.meet()
    lab.now += PROOF_S + 1.0
    for name in "ab":
        lab.seals[name].change_keys((KEYS[1], KEYS[0]), lab.now)
    lab.talk("ab", "ba", seconds=1.0)
    assert lab.open("c", lab.send("a")) is Reason.UNPROVEN  # And not KEY.
