"""Guessing who sends next."""

import pytest

from roundelay.membership.next_sender import NextSender


def after(senders: str) -> str:
    guessed = NextSender("a")
    for sender in senders:
        if sender != guessed.repeated:  # As engines do, to save time.
            guessed.note(sender)
    return guessed.guess


@pytest.mark.parametrize(
    ("senders", "guess"),
    [
        ("", "a"),
        ("b", "b"),
        ("bbbb", "b"),
        ("bbbba", "a"),
        ("ababa", "b"),
        ("ababab", "a"),
        ("abcabca", "b"),
        ("aabbaabba", "a"),
        ("aabbaabbaa", "b"),
        ("aaaabaaaab", "a"),
    ],
)
def test_the_guess_is_whoever_came_next_the_last_time(senders, guess):
    assert after(senders) == guess


def test_a_sender_that_goes_on_is_not_noted_again_and_again():
    guessed = NextSender("a")
    for _ in range(3):
        guessed.note("b")
    assert guessed.repeated == "b"
    guessed.note("c")
    assert guessed.repeated is None
