"""Every planted bug of the seal is convicted, by a test that the sound seal passes."""

from collections.abc import Callable

import pytest
from tests.unit.sealing import test_attacks, test_format, test_lives, test_rotation, test_rules
from tests.unit.sealing.test_adversary import adversary_gets_nowhere

from .planted_seal import SEAL_BUGS, planted

CONVICTIONS: dict[str, Callable[[], None]] = {
    "nonce_reused_after_a_restart": test_format.no_keystream_twice,
    "window_off_by_one": test_lives.window_is_exact,
    "challenge_not_bound_to_the_asker": test_rules.challenge_is_bound_to_the_boot,
    "challenge_not_bound_to_the_boot": test_rules.new_boot_ends_the_one_before,
    "proof_without_end": test_rules.proof_ends,
    "proof_of_the_past": test_rules.held_back_for_ever,
    "header_not_authenticated": test_format.header_is_authentic,
    "counter_believed_unopened": test_format.forged_counter_moves_nothing,
    "old_key_alive_after_a_rotation": test_rotation.old_key_dies,
    "old_key_comes_back": test_attacks.old_key_stays_dead,
    "unproven_boot_counts_as_a_member": test_rules.unproven_boot_is_nobody,
    "name_not_bound": test_rules.boot_is_bound_to_its_name,
    "renewals_starved": test_attacks.replays_do_not_starve_a_proof,
    "askers_do_not_answer": test_attacks.crossing_challenges_are_answered,
    "proofs_too_often": test_attacks.overtaken_frames_count,
    "challenges_without_limit": test_rules.unproven_boots_are_answered_seldom,
    "lives_kept": test_rules.new_boot_ends_the_one_before,
}
SEEN = {
    "nonce_reused_after_a_restart": "a nonce is used twice",
    "window_off_by_one": "it was opened before",
    "challenge_not_bound_to_the_boot": "it proves another boot|it is deaf",
    "proof_without_end": "it proves too much",
    "proof_of_the_past": "it is too old",
    "header_not_authenticated": "it does not have the documented format",
    "counter_believed_unopened": "it has an effect",
    "old_key_alive_after_a_rotation": "this key is dead",
    "old_key_comes_back": "it has these keys",
    "unproven_boot_counts_as_a_member": "only an answer proves",
    "askers_do_not_answer": "not all are proven",
    "challenges_without_limit": "it says too much",
    "lives_kept": "it keeps more boots than it has peers",
}
"""What an adversary without the key finds, and what it says then."""
UNSEEN = {
    "challenge_not_bound_to_the_asker": "only a member can give such an answer",
    "name_not_bound": "only a member can send such a frame",
    "renewals_starved": "it takes seconds of replays",
    "proofs_too_often": "it loses frames, which the network may do",
}
"""What an adversary without the key does not find, and why."""


def test_every_bug_has_its_conviction():
    assert CONVICTIONS.keys() == SEAL_BUGS.keys()


@pytest.mark.parametrize("name", CONVICTIONS)
def test_a_planted_bug_is_convicted(name):
    with planted(name), pytest.raises(AssertionError):
        CONVICTIONS[name]()


@pytest.mark.parametrize("name", CONVICTIONS)
def test_the_sound_seal_passes_the_same_test(name):
    CONVICTIONS[name]()


def test_every_bug_is_seen_by_the_adversary_or_there_is_a_reason():
    assert SEEN.keys() | UNSEEN.keys() == SEAL_BUGS.keys()
    assert not SEEN.keys() & UNSEEN.keys()


@pytest.mark.parametrize("name", SEEN)
def test_the_adversary_finds_it(name):
    with planted(name), pytest.raises(AssertionError, match=SEEN[name]):
        adversary_gets_nowhere(examples=400)
