"""The replay window of a boot, and for how long its proofs count."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundelay.sealing.lives import CHALLENGE_S, PROOF_S, RENEW_S, WINDOW, Life, Peer

U64_MAX = 2**64 - 1


def life(counter: int = 1, asked_at: float = 0.0) -> Life:
    found = Life(Peer("b"), b"boot", b"origin")
    found.prove(counter, asked_at, asked_at)
    return found


def window_is_exact() -> None:
    """Every counter is admitted once, up to `WINDOW` - 1 late, and never later."""
    b = life()
    b.mark(WINDOW + 10)
    assert not b.admits(WINDOW + 10, 1.0)
    assert b.admits(WINDOW + 9, 1.0)
    assert not b.admits(10, 1.0), "its place is that of the newest"
    assert not b.admits(9, 1.0)
    assert b.admits(11, 1.0), "the last within the window"
    b.mark(11)
    assert not b.admits(11, 1.0)
    assert not b.admits(WINDOW + 10, 1.0)
    assert b.admits(WINDOW + 11, 1.0)


def test_the_window_is_exact():
    window_is_exact()


@given(
    st.lists(
        st.integers(1, 40)
        | st.integers(WINDOW - 20, WINDOW + 40)
        | st.integers(3 * WINDOW - 5, 3 * WINDOW + 5)
        | st.integers(U64_MAX - 5, U64_MAX),
        max_size=60,
    ),
    st.integers(0, 3),
)
def test_the_window_is_a_set_of_counters(counters, floor):
    """Compared with a window that remembers everything."""
    b, opened, top = life(floor), {floor}, floor
    for counter in counters:
        expected = counter > floor and counter not in opened and counter > top - WINDOW
        assert b.admits(counter, 1.0) is expected
        if expected:
            b.mark(counter)
            opened.add(counter)
            top = max(top, counter)
        assert b.top == top


@pytest.mark.parametrize("counter", [0, 1, 7])
def test_a_proof_vouches_for_nothing_before_its_answer(counter):
    b = life(counter)
    for older in range(counter + 1):
        assert not b.admits(older, 0.0)
    assert b.admits(counter + 1, 0.0)


def test_the_largest_counter_is_admitted_once():
    b = life()
    assert b.admits(U64_MAX, 1.0)
    b.mark(U64_MAX)
    assert not b.admits(U64_MAX, 1.0)
    assert b.admits(U64_MAX - WINDOW + 1, 1.0)
    assert not b.admits(U64_MAX - WINDOW, 1.0)


def test_when_a_proof_expires_and_when_it_is_renewed():
    b = life(asked_at=10.0)
    assert (b.renew_at, b.expires) == (10.0 + RENEW_S, 10.0 + PROOF_S)
    assert (RENEW_S, PROOF_S, CHALLENGE_S) == (2.0, 5.0, 2.0)


def test_datagrams_that_the_answer_overtook_count_until_the_proof_before_expires():
    b = life(counter=1, asked_at=0.0)
    b.prove(100, 2.0, 2.5)
    assert b.admits(50, 4.9)
    assert not b.admits(50, PROOF_S)
    assert not b.admits(1, 2.6)
    assert b.admits(101, 6.9)
    b.mark(50)
    assert not b.admits(50, 4.9)


def test_only_the_last_two_proofs_count():
    b = life(counter=1, asked_at=0.0)
    b.prove(100, 2.0, 2.1)
    b.prove(200, 4.0, 4.1)
    assert not b.admits(50, 4.2)
    assert b.admits(150, 4.2)
    assert not b.admits(150, 7.0)
    assert b.admits(201, 7.0)


def test_a_proof_that_comes_early_changes_nothing():
    b = life(counter=1, asked_at=0.0)
    for counter in range(10, 100, 10):
        b.prove(counter, 0.5, 0.6)
        assert b.expires == PROOF_S
        assert not b.admits(counter, 0.7)
    assert b.admits(9, 0.7)


def test_a_proof_after_a_long_silence_does_not_bring_the_old_datagrams_back():
    b = life(counter=1, asked_at=0.0)
    b.prove(100, 1000.0, 1000.1)
    for counter in (2, 50, 99, 100):
        assert not b.admits(counter, 1000.2)
    assert b.admits(101, 1000.2)


def test_a_floor_never_sinks():
    """A member may lie about the counter of its answer, and gains nothing."""
    b = life(counter=100, asked_at=0.0)
    b.prove(5, 2.0, 2.0)
    assert not b.admits(50, 2.1)
    assert not b.admits(50, 6.9)


@given(
    st.lists(
        st.tuples(st.floats(0.001, 3.0), st.sampled_from(["send", "answer", "late"])), max_size=60
    )
)
def test_what_is_admitted_is_younger_than_a_proof_lasts(steps):
    """An honest peer counts its datagrams; the network holds any of them back for any time."""
    now, counter, asked_at = 0.0, 1, 0.0
    b = life(counter, asked_at)
    held: list[tuple[int, float]] = []
    for wait, step in steps:
        now += wait
        counter += 1
        if step == "send":
            held.append((counter, now))
        elif step == "answer":
            b.prove(counter, now - 0.001, now)
        for number, sent_at in held:
            if now < b.expires and b.admits(number, now):
                assert now - sent_at <= PROOF_S


def test_a_challenge_is_open_for_two_seconds():
    peer = Peer("b")
    assert peer.open_challenge(-1e9) is None
    assert peer.open_challenge(0.0) is None
    peer.challenge, peer.asked_at = b"c", 5.0
    assert peer.open_challenge(5.0) == b"c"
    assert peer.open_challenge(5.0 + CHALLENGE_S - 1e-9) == b"c"
    assert peer.open_challenge(5.0 + CHALLENGE_S) is None
