"""Every planted bug is caught, by a small story that the product comes through.

A story is a scenario file. The product does what the file says; with the bug in it something else
happens, or an invariant breaks. A bug that survives its story fails here.
"""

from pathlib import Path

import pytest

from roundelay.sim.runner import ScenarioRunner
from roundelay.sim.scenario import parse, rewrite
from roundelay.sim.watch import Watch

from .planted import BUGS, planted

SCENARIOS = Path(__file__).parents[1] / "scenarios"
COMMANDS_MAX = 30

STORIES = {
    "one_rotation_safe": "totem/g04_two_rotations",
    "anybody_raises_aru": "totem/g10_gap",
    "token_seq_ignored": "totem/primary_regained",
    "window_kept_for_ever": "totem/window_smaller_than_ring",
    "literal_fail_to_receive": "totem/g13_fail_to_receive",
    "discarded_too_early": "totem/g01_start_alone",
    "agreed_overtakes_safe": "totem/g11_behind_a_safe_one",
    "gap_ignored": "totem/g10_gap",
    "own_safe_line_counts": "totem/g11_behind_a_safe_one",
    "not_frozen": "totem/idle_rings_meet",
    "old_ring_not_sealed": "totem/late_packet_in_recovery",
    "no_obligations": "totem/g12_failure_during_recovery",
    "older_obligations_forgotten": "totem/two_failures_during_recovery",
    "items_of_two_rings_mixed_up": "totem/items_of_two_rings",
    "transitional_by_name": "totem/g09_quick_restart",
    "nothing_exchanged": "totem/g10_gap",
    "literal_retransmission_flag": "totem/g10_gap",
    "installed_without_aru": "totem/primary_regained",
    "commit_copy_accepted": "totem/everything_twice",
    "number_not_stored": "totem/g09_quick_restart",
    "number_stored_too_late": "totem/crash_behind_the_commit_token",
    "number_not_raised_at_start": "totem/g09_quick_restart",
    "literal_consensus_timer": "totem/commit_token_lost",
    "literal_join_in_commit": "totem/commit_does_not_return",
    "literal_outsider_join": "totem/g13_fail_to_receive",
    "no_merge_detection": "totem/g08_merge",
    "no_forced_failure": "totem/commit_never_passes",
    "pieces_joined_across_views": "totem/joining_during_a_large_message",
    "queue_lost_with_the_view": "totem/joining_during_a_large_message",
    "pauses_for_everybody": "totem/flapping_partition",
    "installed_and_left": "totem/installed_and_not_answered",
    "bad_link_tried_at_once": "totem/bad_link",
    "accuser_uses_the_token_again": "totem/accuser_stops_the_token",
    "engine_started_too_early": "totem/large_message_at_a_view_change",
    "merge_detection_at_half_speed": "totem/idle_rings_meet",
    "who_asks_is_silent": "dtp/slow_member",
    "lost_disk_votes": "totem/primary_lost_disk",
    "lost_disk_counts_in_a_doubt": "totem/primary_restarted_in_doubt",
    "attempts_pushed_out": "totem/primary_fifth_attempt",
    "attempts_not_stored": "totem/primary_attempt_kept",
    "attempt_stored_too_late": "totem/primary_attempt_kept",
    "last_primary_not_stored": "totem/primary_after_restarts",
    "half_is_a_majority": "totem/primary_even_split",
}

OF_PRIMARY_VIEWS = (
    "lost_disk_votes",
    "lost_disk_counts_in_a_doubt",
    "attempts_pushed_out",
    "attempts_not_stored",
    "attempt_stored_too_late",
    "last_primary_not_stored",
    "half_is_a_majority",
)
"""Bugs that give two primary views."""


def play(text: str) -> str:
    return rewrite(text, ScenarioRunner(watch=Watch()).play)


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_caught(name):
    text = (SCENARIOS / f"{STORIES[name]}.txt").read_text()
    with planted(name):
        try:
            happened = play(text)
        except AssertionError:
            return  # An invariant of the cores or of the simulator.
    assert happened != text, f"{name} survives {STORIES[name]}"


@pytest.mark.parametrize("name", OF_PRIMARY_VIEWS)
def test_a_bug_of_the_rule_of_primary_views_is_convicted(name):
    """By the verdict, not by a transcript that differs somehow."""
    text = (SCENARIOS / f"{STORIES[name]}.txt").read_text()
    with planted(name):
        assert "M10 violated" in play(text)


@pytest.mark.parametrize("story", sorted(set(STORIES.values())))
def test_the_product_comes_through_the_story(story):
    text = (SCENARIOS / f"{story}.txt").read_text()
    assert play(text) == text
    assert sum(len(block.commands) for block in parse(text)) <= COMMANDS_MAX


def test_every_bug_has_its_story_and_there_are_enough():
    assert STORIES.keys() == BUGS.keys()
    assert len(BUGS) >= 15
