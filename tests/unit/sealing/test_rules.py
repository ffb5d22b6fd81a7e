"""What becomes of a frame of a boot that is not proven, rule by rule; and whose name it has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.sealing.footprint import footprint
from tests.unit.sealing.lab import GROUP, KEYS, Lab, frame_of, stream

from roundelay.core.contract import Boot, Origin
from roundelay.core.ids import ViewId
from roundelay.sealing.lives import CHALLENGE_S, PROOF_S, RENEW_S
from roundelay.sealing.proofs import CODEC, NO_CHALLENGE, Answer, Challenge, encode_proof
from roundelay.sealing.seal import (
    PROOF_INTERVAL_S,
    UNPROVEN_OPENINGS,
    UNPROVEN_S,
    Seal,
    _start,
)
from roundelay.wire.frame import ORIGIN_AT, decode, encode, encode_origin
from roundelay.wire.primitives import Reason, WireError


def member(lab: Lab, name: str, *, group: str = GROUP, incarnation: int = 1) -> Seal:
    """A seal with the key of the lab, for whoever can lie."""
    return Seal(
        Boot(group, name, incarnation), "", KEYS[:1], stream(f"{name} {incarnation}"), lab.now
    )


# (a) to (g)


def test_a_an_unknown_key_is_dropped_unopened():
    lab = Lab()
    lab.start("b", KEYS[1:2])
    assert lab.open("a", lab.send("b")) is Reason.KEY
    assert lab.pending == []


def test_a_the_key_of_another_group_is_unknown():
    lab = Lab()
    other = Seal(Boot("h", "b"), "ab", KEYS[:1], stream("h"), lab.now)
    assert lab.open("a", other.seal(frame_of("b", group="h"))) is Reason.KEY


def test_b_few_datagrams_of_unknown_boots_are_opened_at_a_time():
    lab = Lab("abc", now=0.0)
    header = lab.send("b")[:12]
    flood = [header + b"%16d" % n + bytes(60) for n in range(100)]
    found = [lab.open("a", data) for data in flood]
    assert found == [Reason.SEAL] * UNPROVEN_OPENINGS + [Reason.UNPROVEN] * (100 - 16)
    lab.now += UNPROVEN_S / 2
    assert lab.open("a", lab.send("b")) is Reason.UNPROVEN
    assert lab.pending == [], "it was not opened"
    lab.now += UNPROVEN_S / 2
    assert lab.open("a", lab.send("b")) is Reason.UNPROVEN
    assert [each.to for each in lab.pending] == ["b"]


def test_b_members_do_not_share_that_limit():
    lab = Lab()
    lab.meet()
    header = lab.send("b")[:12]
    for n in range(100):
        lab.open("a", header + b"%16d" % n + bytes(60))
        assert lab.hears("a", "b")


def test_c_what_does_not_open_is_dropped():
    lab = Lab()
    data = lab.send("b")
    assert lab.open("a", data[:-1] + bytes([data[-1] ^ 1])) is Reason.SEAL
    assert lab.pending == []


def test_d_a_name_that_is_no_peer_is_a_stranger():
    lab = Lab()
    stranger = member(lab, "c")
    assert lab.open("a", stranger.seal(frame_of("c", incarnation=1))) is Reason.STRANGER
    proof = encode_proof(Origin(GROUP, "c", 1, None), Challenge(bytes(16), bytes(8)))
    assert lab.open("a", stranger.seal(proof)) is Reason.STRANGER
    assert lab.pending == []


def test_e_a_challenge_is_answered_and_asked_back():
    lab = Lab()
    lab.open("a", lab.send("b"))
    (asked,) = lab.pending
    assert isinstance(asked.proof, Challenge)
    lab.pending.clear()
    assert lab.open("b", asked.data) is None
    (said,) = lab.pending
    answer = said.proof
    assert isinstance(answer, Answer)
    assert said.to == "a"
    assert answer.challenge == asked.proof.challenge
    assert answer.boot == lab.seals["a"].boot
    assert answer.back not in (NO_CHALLENGE, asked.proof.challenge)
    assert lab.proven("b") == [], "a challenge proves nothing"


def test_f_an_answer_proves_and_is_answered():
    lab = Lab()
    lab.open("a", lab.send("b"))
    lab.settle()
    assert [(each.by, type(each.proof)) for each in lab.emitted] == [
        ("a", Challenge),
        ("b", Answer),
        ("a", Answer),
    ]
    last = lab.emitted[-1].proof
    assert isinstance(last, Answer)
    assert last.back == NO_CHALLENGE
    assert lab.proven("a") == ["b"]
    assert lab.proven("b") == ["a"]
    assert lab.hears("a", "b")
    assert lab.hears("b", "a")


def test_g_anything_else_is_dropped_and_asked_for_a_proof():
    lab = Lab()
    assert lab.open("a", lab.send("b")) is Reason.UNPROVEN
    (said,) = lab.pending
    assert isinstance(said.proof, Challenge)
    assert (said.by, said.to) == ("a", "b")


# Answers that prove nothing


def asked() -> tuple[Lab, bytes, bytes]:
    """Node a has asked b: the challenge, and b's answer, which has not arrived."""
    lab = Lab("abc")
    lab.open("a", lab.send("b"))
    (challenge,) = lab.pending
    lab.pending.clear()
    lab.open("b", challenge.data)
    (answer,) = lab.pending
    lab.pending.clear()
    assert isinstance(challenge.proof, Challenge)
    return lab, challenge.proof.challenge, answer.data


def answer_proves_once() -> None:
    """The same answer again, later too, proves nothing; nor does it for another boot."""
    lab, _, answer = asked()
    assert lab.open("a", answer) is None
    assert lab.proven("a") == ["b"]
    lab.now += PROOF_S
    assert lab.proven("a") == []
    assert lab.open("a", answer) is Reason.REPLAY
    lab.start("a", KEYS[:1])
    assert lab.open("a", answer) is Reason.UNPROVEN
    assert lab.proven("a") == []


def test_an_answer_proves_once():
    answer_proves_once()


def test_an_answer_that_is_too_late_proves_nothing():
    lab, _, answer = asked()
    lab.now += CHALLENGE_S
    assert lab.open("a", answer) is Reason.UNPROVEN
    assert lab.proven("a") == []


def test_an_answer_proves_from_when_its_challenge_was_made():
    lab, _, answer = asked()
    lab.now += 1.9
    assert lab.open("a", answer) is None
    lab.now += PROOF_S - 1.9 - 0.001
    assert lab.proven("a") == ["b"]
    lab.now += 0.001
    assert lab.proven("a") == []


def challenge_is_bound_to_the_boot() -> None:
    """An answer to the same challenge for another boot than this one's proves nothing: it was given
    to somebody else."""
    lab, challenge, _ = asked()
    b = lab.seals["b"]
    origin = Origin(GROUP, "b", lab.starts["b"], None)
    for boot in (lab.seals["c"].boot, bytes(16), b.boot):
        frame = encode_proof(origin, Answer(challenge, boot, NO_CHALLENGE, bytes(8)))
        assert lab.open("a", b.seal(frame)) is Reason.UNPROVEN
        assert lab.proven("a") == []
    right = Answer(challenge, lab.seals["a"].boot, NO_CHALLENGE, bytes(8))
    assert lab.open("a", b.seal(encode_proof(origin, right))) is None
    assert lab.proven("a") == ["b"]


def test_a_challenge_is_bound_to_the_boot_that_made_it():
    challenge_is_bound_to_the_boot()


def test_the_answer_of_one_peer_proves_nothing_of_another():
    """Node c repeats what b was asked."""
    lab, challenge, answer = asked()
    assert lab.open("c", answer) is Reason.UNPROVEN
    origin = Origin(GROUP, "c", lab.starts["c"], None)
    frame = encode_proof(origin, Answer(challenge, lab.seals["a"].boot, NO_CHALLENGE, bytes(8)))
    assert lab.open("a", lab.seals["c"].seal(frame)) is Reason.UNPROVEN
    assert lab.proven("a") == lab.proven("c") == []


def test_what_a_node_has_sent_itself_comes_back_in_vain():
    lab, _, _ = asked()
    for each in list(lab.emitted):
        assert lab.open(each.by, each.data) is Reason.OWN
    assert lab.open("a", lab.send("a")) is Reason.OWN
    assert lab.pending == []


def test_a_proof_that_makes_no_sense_is_dropped():
    lab = Lab()
    lab.meet()
    b = lab.seals["b"]
    start = encode_origin(Origin(GROUP, "b", lab.starts["b"], None))
    for body in (b"", b"\2" + bytes(24), b"\0" + bytes(23), b"\1" + bytes(80)):
        frame = encode(start, 254, 0, 0, body, sealed=True)
        assert lab.open("a", b.seal(frame)) is Reason.MALFORMED
        assert lab.pending == []


# What an unproven boot may do


def unproven_boot_is_nobody() -> None:
    """A boot that has not proven itself is heard by nobody, whatever it sends and whoever else of
    its name is a member; and it ends nobody's proof."""
    lab = Lab()
    lab.meet()
    twin = member(lab, "b", incarnation=9)
    for _ in range(50):
        lab.now += 0.05
        assert lab.open("a", twin.seal(frame_of("b", incarnation=9))) is Reason.UNPROVEN
        origin = Origin(GROUP, "b", 9, None)
        assert (
            lab.open("a", twin.seal(encode_proof(origin, Challenge(b"x" * 16, bytes(8))))) is None
        )
        wrong = Answer(b"x" * 16, lab.seals["a"].boot, b"y" * 16, bytes(8))
        assert lab.open("a", twin.seal(encode_proof(origin, wrong))) is Reason.UNPROVEN
        lab.pending.clear()
        assert lab.hears("a", "b")
        lab.settle()
    assert lab.proven("a") == ["b"]


def test_an_unproven_boot_is_nobody():
    unproven_boot_is_nobody()


def proof_ends() -> None:
    """A frame of a member counts until `PROOF_S` after its challenge was made, if nothing proves
    again that it is alive."""
    lab = Lab(now=0.0)
    lab.open("a", lab.send("b"))
    lab.settle()
    while lab.now < 3 * PROOF_S:
        lab.now += 0.125
        found = lab.open("a", lab.send("b"))
        lab.pending.clear()
        assert isinstance(found, bytes) is (lab.now < PROOF_S), lab.now


def test_a_proof_ends():
    proof_ends()


def held_back_for_ever() -> None:
    """Datagrams of a member that are held back for longer than a proof lasts have no effect,
    although the member is proven all the time."""
    lab = Lab()
    lab.meet()
    held = [lab.send("b") for _ in range(3)]
    lab.talk(seconds=PROOF_S + 0.5)
    assert lab.proven("a") == ["b"]
    assert lab.open("a", held[0]) is Reason.REPLAY
    lab.now += 100.0
    assert lab.open("a", held[1]) in (Reason.REPLAY, Reason.UNPROVEN)


def test_what_was_held_back_has_no_effect():
    held_back_for_ever()


def new_boot_ends_the_one_before() -> None:
    """Also what it sent last and what arrives only now."""
    lab = Lab()
    lab.meet()
    left = [lab.send("b") for _ in range(3)]
    assert isinstance(lab.open("a", left[0]), bytes)
    lab.start("b", KEYS[:1])
    lab.now += 0.1
    lab.talk("ba")
    assert lab.hears("a", "b")
    for data in left:
        lab.now += 0.1
        assert lab.open("a", data) is Reason.UNPROVEN
    assert lab.hears("a", "b")


def test_a_new_boot_ends_the_one_before():
    new_boot_ends_the_one_before()


def test_a_restarted_node_believes_no_capture():
    """All that the members ever sent is replayed to the new life of one."""
    lab = Lab("abc")
    captured: list[bytes] = []
    for _ in range(20):
        captured += [lab.send(name) for name in lab.names]
        lab.talk(seconds=0.5)
    captured += [each.data for each in lab.emitted]
    lab.start("a", KEYS[:1])
    lab.now += 0.5
    for data in captured:
        lab.now += 0.001
        assert not isinstance(lab.open("a", data), bytes)
    assert lab.proven("a") == []
    lab.settle()
    lab.meet()


# How often it speaks


def unproven_boots_are_answered_seldom(kind: str = "data") -> None:
    """Not more than 50 times a second, however much arrives."""
    lab = Lab("abc")
    sent = {"data": lab.send("b")}
    lab.open("b", lab.send("a"))
    sent["challenge"] = lab.pending.pop().data
    lab.pending.clear()
    lab.emitted.clear()
    lab.now += 10.0
    for _ in range(1000):
        lab.now += 0.001
        lab.open("a", sent["data"])
        lab.open("a", sent[kind])
    assert 20 <= len(lab.emitted) <= 50
    assert {each.to for each in lab.emitted} == {"b"}
    assert all(len(each.data) <= 200 for each in lab.emitted)


@pytest.mark.parametrize("kind", ["data", "challenge"])
def test_unproven_boots_are_answered_50_times_a_second_at_most(kind):
    unproven_boots_are_answered_seldom(kind)


def test_peers_do_not_share_that_limit():
    lab = Lab("abcd")
    for name in "bcd":
        lab.open("a", lab.send(name))
    assert [each.to for each in lab.pending] == ["b", "c", "d"]


def test_one_datagram_leads_to_one_at_most():
    lab = Lab("abc")
    for _ in range(200):
        lab.now += 0.05
        for sender in lab.names:
            data = lab.send(sender)
            for receiver in lab.names:
                arriving = [(receiver, data)]
                while arriving:
                    lab.open(*arriving.pop())
                    assert len(lab.pending) <= 1
                    arriving += [(each.to, each.data) for each in lab.pending]
                    lab.pending.clear()
    assert lab.proven("a") == ["b", "c"]


# Renewal


def test_a_proof_is_renewed_while_frames_arrive_and_not_before():
    lab = Lab()
    lab.open("a", lab.send("b"))
    lab.settle()
    lab.emitted.clear()
    begin = lab.now
    lab.now = begin + RENEW_S - 0.01
    assert lab.hears("a", "b")
    assert lab.emitted == []
    lab.now = begin + RENEW_S
    assert lab.hears("a", "b")
    assert [type(each.proof) for each in lab.emitted] == [Challenge]
    lab.settle()
    lab.now = begin + RENEW_S + PROOF_S - 0.001
    assert lab.hears("a", "b")


def test_no_frame_is_lost_at_a_renewal():
    lab = Lab()
    lab.meet()
    for _ in range(3000):
        lab.now += 0.01
        overtaken = lab.send("b")
        assert lab.hears("a", "b")
        lab.settle()
        assert isinstance(lab.open("a", overtaken), bytes)


@pytest.mark.parametrize("pairs", [["ba"], ["ab"], ["ab", "ba"]])
def test_frames_in_one_direction_keep_both_proofs(pairs):
    lab = Lab()
    lab.meet()
    for _ in range(30):
        lab.talk(*pairs, seconds=1.0, step=0.25)
        assert lab.proven("a") == ["b"]
        assert lab.proven("b") == ["a"]


def test_both_proofs_come_back_after_a_silence():
    lab = Lab()
    lab.meet()
    lab.now += 1000.0
    assert lab.open("a", lab.send("b")) is Reason.UNPROVEN
    assert lab.open("b", lab.send("a")) is Reason.UNPROVEN
    lab.settle()
    assert lab.hears("a", "b")
    assert lab.hears("b", "a")


def test_a_challenge_that_was_lost_is_repeated_and_a_new_one_made_after_two_seconds():
    lab = Lab()
    made = []
    for _ in range(100):
        lab.open("a", lab.send("b"))
        made += [each.proof.challenge for each in lab.pending]
        lab.pending.clear()
        lab.now += PROOF_INTERVAL_S
    assert len(made) in (99, 100)
    assert len(set(made)) == 2


# Names


def boot_is_bound_to_its_name() -> None:
    """Its frames have the group, the name and the incarnation of its answer."""
    lab = Lab("abc")
    lab.meet()
    b = lab.seals["b"]
    for frame in (
        frame_of("c", incarnation=lab.starts["c"]),
        frame_of("a", incarnation=lab.starts["a"]),
        frame_of("b", incarnation=lab.starts["b"] + 1),
        frame_of("b", incarnation=lab.starts["b"], group="h"),
        frame_of("x", incarnation=lab.starts["b"]),
        lab.frame("b")[:20],
        b"",
    ):
        assert lab.open("a", b.seal(frame)) is Reason.IMPOSTOR
    assert lab.hears("a", "b")
    lab.now += PROOF_S + 1.0
    assert lab.open("a", b.seal(frame_of("c", incarnation=1))) is Reason.IMPOSTOR
    assert lab.pending == []


def test_a_boot_is_bound_to_the_name_of_its_answer():
    boot_is_bound_to_its_name()


def test_a_frame_under_its_own_name_is_counted_and_changes_nothing():
    lab = Lab()
    lab.meet()
    old = lab.send("a")
    lab.start("a", KEYS[:1])
    assert lab.open("a", old) is Reason.OWN_NAME
    twin = member(lab, "a", incarnation=77)
    assert lab.open("a", twin.seal(frame_of("a", incarnation=77))) is Reason.OWN_NAME
    assert lab.pending == []


def test_a_member_of_another_group_with_this_groups_key_lies():
    lab = Lab()
    liar = member(lab, "b")
    assert lab.open("a", liar.seal(frame_of("b", group="h"))) is Reason.GROUP


@pytest.mark.parametrize("short", [b"", b"RD", bytes(29)])
def test_what_opens_and_is_no_frame_is_dropped(short):
    lab = Lab()
    assert lab.open("a", lab.seals["b"].seal(short)) is Reason.TRUNCATED
    assert lab.open("a", lab.seals["b"].seal(bytes(40))) is Reason.MALFORMED
    assert lab.pending == []


def test_groups_and_names_that_are_long():
    for group in ("x" * 64, "ß" * 32):
        names = ["n" * 64, "ü" * 32]
        first, second = (
            Seal(Boot(group, name, 2**63 - 1), names, KEYS[:1], stream(name), 0.0) for name in names
        )
        frame = frame_of(names[0], group=group, incarnation=2**63 - 1)
        assert second.open(first.seal(frame), 0.0) is Reason.UNPROVEN
        for _ in range(3):
            for here, there in ((first, second), (second, first)):
                for _, data in here.outbox:
                    there.open(data, 0.0)
                here.outbox.clear()
        assert second.open(first.seal(frame), 0.0) == frame


names = st.text("ab", max_size=3)
numbers = st.integers(0, 3) | st.integers(2**56, 2**56 + 1)
origins = st.builds(
    Origin, names, names.filter(bool), numbers, st.none() | st.builds(ViewId, numbers, names)
)


@given(origins, origins, st.integers(-3, 3))
def test_no_origin_begins_like_that_of_another_node(one, other, wrong_size):
    """Names that begin with each other, and lengths that are wrong: what decodes behind the start
    of a life's origin is that life's."""
    raw = bytearray(encode(encode_origin(other), 254, 0, 0, bytes(25), sealed=True))
    raw[28:30] = (int.from_bytes(raw[28:30]) + wrong_size).to_bytes(2)
    same = (one.group, one.node, one.incarnation) == (other.group, other.node, other.incarnation)
    begins = bytes(raw).startswith(_start(one), ORIGIN_AT)
    assert begins is same
    if begins:
        try:
            found = decode(bytes(raw), CODEC, {}, sealed=True).origin
        except WireError:
            return
        assert (found.group, found.node, found.incarnation) == (
            one.group,
            one.node,
            one.incarnation,
        )


# Memory


def test_what_is_kept_does_not_grow():
    lab = Lab("abc")
    lab.meet()
    kept = footprint(lab.seals["a"])
    for n in range(3000):
        lab.now += 0.003
        stranger = Seal(Boot(GROUP, "bcx"[n % 3], n), "abc", KEYS[:1], stream(str(n)), lab.now)
        frame = frame_of("bcx"[n % 3], incarnation=n)
        lab.open("a", stranger.seal(frame))
        lab.open("a", lab.send("b")[:12] + b"%16d" % n + bytes(60))
        lab.pending.clear()
    assert footprint(lab.seals["a"]) <= kept
