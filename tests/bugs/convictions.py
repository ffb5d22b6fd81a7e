"""What convicts each planted bug: a scenario, and what must be found wrong in it.

Most bugs break a promise: the checker says that a property is violated. Some run into an assertion,
of a core or of `sim.watch`, before they can. A few break no promise of the properties, because they
only cost time or because another rule of the product repairs what they did; for each of these there
is a bound on what the scenario may do, which the product keeps and the bug does not.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from roundelay.core.effects import Kind
from roundelay.trace.schema import Row

MS = 1_000_000
"""Nanoseconds in a millisecond, the unit of times in scenarios."""


@dataclass(frozen=True)
class Played:
    """What a scenario left behind."""

    nodes: Sequence[str]
    rows: Sequence[Row]
    printed: str
    """The scenario file with what its commands print."""

    def of(self, node: str, kind: Kind, until_ms: float = float("inf")) -> Iterator[Row]:
        """Rows of one kind at one node, up to a time."""
        proc = self.nodes.index(node)
        return (
            r for r in self.rows if (r.kind, r.proc) == (kind, proc) and r.t_ns <= until_ms * MS
        )


@dataclass(frozen=True)
class Violates:
    """The checker finds these properties violated, perhaps among others."""

    scenario: str
    properties: str
    watched: bool = True
    """Whether the watch looks on; where it would notice first it does not."""

    def __str__(self) -> str:
        return f"{self.properties} violated"


@dataclass(frozen=True)
class Breaks:
    """An assertion with these words in it ends the run."""

    scenario: str
    words: str

    def __str__(self) -> str:
        return f"the assertion {self.words!r}"


@dataclass(frozen=True)
class Exceeds:
    """The bound holds of the product and not of the bug."""

    scenario: str
    bound: str
    """One sentence."""
    holds: Callable[[Played], bool]

    def __str__(self) -> str:
        return f"the bound {self.bound!r}"


Conviction = Violates | Breaks | Exceeds


def views(node: str, most: int, until_ms: float = float("inf")) -> Callable[[Played], bool]:
    """The node installs at most so many regular views up to a time."""

    def few(played: Played) -> bool:
        installed = played.of(node, Kind.INSTALL, until_ms)
        return sum(row.c_kind == 0 for row in installed) <= most

    return few


def installs(node: str, members: int, until_ms: float) -> Callable[[Played], bool]:
    """By then the node has started and has then installed another view of so many members."""

    def done(played: Played) -> bool:
        sizes = [len(r.members or ()) for r in played.of(node, Kind.INSTALL, until_ms)]
        return members in sizes[1:]

    return done


def delivers(node: str, sender: str, until_ms: float) -> Callable[[Played], bool]:
    """By then the node has delivered a message of that sender."""

    def done(played: Played) -> bool:
        source = played.nodes.index(sender)
        return any(row.m_src == source for row in played.of(node, Kind.DELIVER, until_ms))

    return done


def delivers_all(node: str, messages: int, until_ms: float) -> Callable[[Played], bool]:
    """By then the application of the node has so many messages."""

    def done(played: Played) -> bool:
        rows = played.of(node, Kind.DELIVER, until_ms)
        return sum(row.count for row in rows if row.layer == "app") >= messages

    return done


def suspects_nobody(played: Played) -> bool:
    return not any(row.kind == Kind.SUSPECT for row in played.rows)


def stops_after_its_suspicion(node: str) -> Callable[[Played], bool]:
    """From its first suspicion to its next view, the node takes no token."""

    def idle(played: Played) -> bool:
        since = next(played.of(node, Kind.SUSPECT)).t_ns
        until = next(r.t_ns for r in played.of(node, Kind.INSTALL) if r.t_ns > since)
        taken = [row for row in played.of(node, Kind.TOKEN) if row.tag == "acquire"]
        return not any(since < row.t_ns < until for row in taken)

    return idle


def log_ends(node: str, message: str) -> Callable[[Played], bool]:
    """The application of the node has the message, as the last line of its log says."""

    def has(played: Played) -> bool:
        logs = [line for line in played.printed.splitlines() if line.startswith(f"{node}: ")]
        return logs[-1].endswith(f" {message}")

    return has


def sends(node: str, tag: str, most: int) -> Callable[[Played], bool]:
    """The node sends at most so many frames of a type."""

    def few(played: Played) -> bool:
        return sum(row.tag == tag for row in played.of(node, Kind.SEND)) <= most

    return few


CONVICTIONS: dict[str, Conviction] = {
    # The ring
    "one_rotation_safe": Violates("totem/g04_two_rotations", "S1 S4"),
    "anybody_raises_aru": Violates("totem/g10_gap", "S1"),
    "token_seq_ignored": Breaks("totem/everything_twice", "make hop"),
    "window_kept_for_ever": Exceeds(
        "totem/window_smaller_than_ring",
        "c, which is last on the ring, delivers a message of its own within 2 ms",
        delivers("c", "c", until_ms=202),
    ),
    "literal_fail_to_receive": Exceeds(
        "totem/g13_fail_to_receive",
        "1 delivers its safe message within 40 ms though 3 does not receive it",
        delivers("1", "1", until_ms=100),
    ),
    "accelerated_asks_at_once": Breaks("totem/accelerated_ring", "and a rotation ago"),
    "accelerated_safe_too_early": Violates("totem/accelerated_safe", "S1 S4"),
    "no_sign_by_packets": Exceeds(
        "totem/many_nodes_on_busy_machines",
        "nobody is suspected, though a rotation takes longer than the token loss",
        suspects_nobody,
    ),
    "no_patience": Exceeds(
        "totem/many_nodes_on_busy_machines",
        "nobody is suspected, though tokens are sent again that are on their way",
        suspects_nobody,
    ),
    "discarded_too_early": Violates("totem/items_lost_in_recovery", "D7"),
    "agreed_overtakes_safe": Violates("totem/g11_behind_a_safe_one", "D2 O4"),
    "accuser_uses_the_token_again": Exceeds(
        "totem/accuser_stops_the_token",
        "b takes no token between its accusation and the next view",
        stops_after_its_suspicion("b"),
    ),
    # The end of a view
    "gap_ignored": Violates("totem/g10_gap", "O1r O2r"),
    "own_safe_line_counts": Violates("totem/safe_line_of_one", "D7 S4"),
    "not_frozen": Breaks("totem/idle_rings_meet", "in a view that is over"),
    "old_ring_not_sealed": Violates("totem/late_packet_in_recovery", "D7"),
    "no_obligations": Violates("totem/g12_failure_during_recovery", "S3"),
    "older_obligations_forgotten": Violates("totem/two_failures_during_recovery", "S3"),
    "items_of_two_rings_mixed_up": Violates("totem/items_of_two_rings", "D7"),
    "transitional_by_name": Violates("totem/g09_quick_restart", "M7"),
    "nothing_exchanged": Violates("totem/g10_gap", "D7"),
    "literal_retransmission_flag": Violates("totem/g10_gap", "L1 L2 L3"),
    "installed_without_aru": Violates("totem/items_lost_in_recovery", "D7"),
    # Gather and Commit
    "commit_copy_accepted": Breaks("totem/everything_twice", "does not come from its own view"),
    "number_not_stored": Violates("totem/g09_quick_restart", "M5"),
    "number_stored_too_late": Violates("totem/crash_behind_the_commit_token_in_time", "L2"),
    "number_not_raised_at_start": Violates("totem/g09_quick_restart", "M5"),
    "literal_consensus_timer": Violates("totem/commit_token_lost_in_time", "L2"),
    "literal_join_in_commit": Violates("totem/commit_with_a_dead_member", "L2"),
    "literal_outsider_join": Exceeds(
        "totem/g13_fail_to_receive",
        "1 installs five views within 400 ms, since 3, given up twice, has to wait",
        views("1", most=5, until_ms=400),
    ),
    "installed_and_left": Exceeds(
        "totem/installed_and_not_answered",
        "a installs its own view and one of all, and stays in that",
        views("a", most=2),
    ),
    "no_merge_detection": Violates("totem/g08_merge", "L1 L2"),
    "no_forced_failure": Exceeds(
        "totem/commit_never_passes",
        "1 goes on alone within 400 ms, when the membership has failed three times",
        installs("1", members=1, until_ms=400),
    ),
    "pauses_for_everybody": Violates("totem/flapping_partition_in_time", "L2"),
    "bad_link_tried_at_once": Exceeds(
        "totem/bad_link",
        "c installs twelve views in 31 s, since the pauses between tries double",
        views("c", most=12, until_ms=31_000),
    ),
    "merge_detection_at_half_speed": Violates("totem/idle_rings_meet_in_time", "L1 L2"),
    # Primary views
    "lost_disk_votes": Violates("totem/primary_lost_disk", "M10"),
    "lost_disk_counts_in_a_doubt": Violates("totem/primary_restarted_in_doubt", "M10"),
    "attempts_pushed_out": Violates("totem/primary_fifth_attempt", "M10"),
    "attempts_not_stored": Violates("totem/primary_attempt_kept", "M10"),
    "attempt_stored_too_late": Violates("totem/primary_attempt_kept", "M10"),
    "last_primary_not_stored": Violates("totem/primary_after_restarts", "M10"),
    "half_is_a_majority": Violates("totem/primary_even_split", "M10"),
    # The group layer
    "engine_started_too_early": Violates("totem/large_message_at_a_view_change", "T3"),
    "pieces_joined_across_views": Exceeds(
        "totem/joining_during_a_large_message",
        "the application of c, which joined while a:0 was sent, has all of it",
        log_ends("c", "a:0"),
    ),
    "queue_lost_with_the_view": Violates("totem/joining_during_a_large_message", "L7"),
    # Links and fifo
    "link_ignores_gaps": Violates("fifo/second_before_first", "O1 O1r"),
    "link_misses_the_last_loss": Violates("fifo/last_lost_unnoticed", "D8 L1"),
    "link_stable_by_majority": Violates("fifo/safe", "S1"),
    "link_exchanges_nothing": Violates("fifo/held_by_one", "D7"),
    "link_never_suspects": Violates("fifo/held_by_one", "L2"),
    "link_asks_once": Violates("fifo/request_lost", "D8 L1"),
    "fifo_safe_in_the_old_view": Violates("fifo/partition", "S3"),
    "fifo_own_stable_line": Violates("fifo/stable_line_of_one", "D7"),
    # DTP, CM and Pinwheel
    "who_asks_is_silent": Exceeds(
        "dtp/slow_member",
        "a stays in the view of all for 1.1 s while c asks for what it lacks",
        views("a", most=2, until_ms=1100),
    ),
    "dtp_transfer_counts_again": Breaks("dtp/partition_few", "two transfers of the token"),
    "dtp_holds_without_the_packet": Breaks("dtp/g6_lost_token", "believes that"),
    "dtp_one_holder_too_few": Breaks("dtp/g3_resilience", "delivers what only 2 have"),
    "dtp_safe_is_not_awaited": Violates("dtp/safe_waits", "S4"),
    "dtp_sender_need_not_know": Violates("dtp/partition_many", "O5"),
    "dtp_own_line_at_the_end": Violates("dtp/partition_many", "D7"),
    "dtp_withdrawn_in_doubt": Violates("dtp/number_that_is_not_known", "D2"),
    "dtp_left_over_as_they_came": Violates("dtp/left_over_in_one_order", "O5w"),
    "dtp_exchanges_nothing": Violates("dtp/packet_of_one", "D7"),
    "dtp_token_not_repeated": Violates("dtp/token_lost_twice", "D8 L1"),
    "dtp_token_to_who_holds_most": Violates("dtp/slow_member", "L4"),
    "dtp_forgets_too_early": Violates("dtp/packet_asked_for", "D8 L1"),
    "cm_token_skips_a_member": Violates("dtp/cm_token_goes_round", "L1 L7"),
    "pinwheel_batch_read_backwards": Violates("dtp/pinwheel_batches", "O1 O3f O5"),
    "pinwheel_orders_backwards": Breaks("dtp/pinwheel_window", "before or after its turn"),
    # ATOP, All-Ack and causal
    "atop_own_slot_list": Breaks("atop/golden", "in place of"),
    "atop_skips_who_is_silent": Breaks("atop/golden", "p sends for 1, and 3 was delivered"),
    "atop_changes_without_the_late": Breaks("atop/golden", "r sends for 10, and"),
    "atop_uses_the_last_heard": Breaks("atop/old_news", "q goes back to"),
    "atop_numbers_go_on": Breaks("atop/golden", "and 0 comes next"),
    "atop_numbers_twice": Breaks("atop/late_learner", "a knows d1 as"),
    "atop_drops_what_waits": Violates("atop/view_ends_half_way", "D6 L5 L7"),
    "atop_one_slot_at_a_time": Exceeds(
        "atop/burst",
        "a delivers all thirty packets of b within 3 ms, which one delay of a dummy takes",
        delivers_all("a", 30, until_ms=3),
    ),
    "atop_never_switches": Violates("atop/silent_switch", "L1 L7"),
    "order_safe_is_not_awaited": Violates("atop/view_ends_half_way", "S3 S4"),
    "allack_waits_for_nobody": Breaks("allack/safe", "delivers at 3 after 4"),
    "allack_one_place_for_two": Breaks("allack/stamps", "in place of"),
    "allack_sends_no_nulls": Violates("allack/answer", "L1 L7"),
    "causal_waits_for_nothing": Breaks("causal/waits_for_a_cause", "b delivers after 1 0 0 c:0"),
    "causal_names_no_causes": Breaks("causal/waits_for_a_cause", "names (0, 0, 0) as causes"),
    "causal_safe_before_its_causes": Violates("causal/safe_behind_a_lost_cause", "S3"),
    "causal_delivers_without_causes": Breaks("causal/cause_lost", "a delivers after 0 1 0 0 c:0"),
    # ST
    "st_appends_on_arrival": Breaks("st/st_g9_three_losses", "2.1 comes before 1.1, and after it"),
    "st_asks_destinations_alone": Violates("st/behind_a_gap_elsewhere", "S7"),
    "st_no_cut": Breaks("st/missed_by_all", "1.1 comes before 2.1, and after it"),
    "st_no_gate": Breaks("st/seen_by_another", "5.1 comes before 1.1, and after it"),
    "st_not_heard_itself": Breaks("st/own_place_unknown", "3.1 comes before 1.1, and after it"),
    "st_heard_is_agreed": Breaks("st/destinations", "a believes (3, 3, 1) of b"),
    "st_list_changes": Breaks("st/went_on_sending", "tells another list of member 1"),
    "st_deliveries_are_no_edges": Breaks(
        "st/made_before_placed_after", "4.2 comes before 2.1, and after it"
    ),
    "st_done_too_early": Breaks("st/fetched_in_order", "a member was done without a packet"),
    "st_again_is_heard_now": Breaks("st/each_lost_once", "1.1 comes before 3.1, and after it"),
    "st_epoch_is_not_checked": Exceeds(
        "st/word_of_an_old_epoch", "c begins one recovery", sends("c", "RST", most=1)
    ),
    "st_ends_with_its_own_list": Violates("st/crash_of_the_reflector", "D7"),
    "st_skips_what_others_ended": Breaks("st/members_apart", "and a:0 is due"),
    "st_owes_nothing": Violates("st/owed_to_one_that_is_gone", "S3"),
    "st_answers_answers": Breaks("st/went_on_sending", "frames to end epoch 0"),
    "st_repeats_in_step": Violates("st/answer_among_repetitions", "D10 L1"),
    "st_asks_again_and_again": Exceeds(
        "st/many_fetched", "a sends each of twenty packets again once", sends("a", "RET", most=20)
    ),
    "st_window_never_closes": Breaks("st/no_room", "undelivered packets"),
    "st_recovery_claims_nothing": Violates("st/stable_after_recovery", "L4"),
    # FC
    "fc_promise_not_kept": Breaks("fc/shorter_chain", "goes back to"),
    "fc_half_is_a_majority": Breaks("fc/minority_ends_a_view", "which only 2 hold"),
    "fc_holds_without_the_requests": Breaks("fc/body_asked_for", "believes that b holds"),
    "fc_longest_chain": Breaks("fc/shorter_chain", "c delivers a:0 where c:0 was"),
    "fc_own_chain_extended": Breaks("fc/shorter_chain", "c delivers a:0 where c:0 was"),
    "fc_dropped_for_good": Breaks("fc/shorter_chain", "do not wait for a place"),
    "fc_safe_without_the_masked": Violates("fc/safe_waits_for_the_masked", "S4"),
    "fc_epoch_not_advanced": Breaks("fc/three_of_five_gone", "goes back to"),
    "fc_confirmed_is_given_up": Breaks("fc/paused_maker", "which it had confirmed"),
    "fc_ordered_twice": Breaks("fc/equal_counters", "believes that e holds"),
    "fc_own_chain_at_the_end": Violates("fc/chains_differ_at_the_end", "D7"),
    "fc_all_confirmed_at_the_end": Violates("fc/minority_ends_a_view", "O3i O6"),
    "fc_safe_in_the_old_view": Violates("fc/minority_ends_a_view", "S3 S4"),
    "fc_exchanges_nothing": Violates("fc/chains_differ_at_the_end", "D7"),
    "fc_suspects_itself": Exceeds(
        "fc/paused_maker",
        "a, which was paused for less than silence_s, stays in its view",
        views("a", most=2),
    ),
    "fc_waits_for_the_silent": Exceeds(
        "fc/window_without_the_silent",
        "a delivers its ten packets within 60 ms, while e is paused",
        delivers_all("a", 10, until_ms=360),
    ),
    "fc_never_asks_for_requests": Violates("fc/body_asked_for", "L6 L7"),
    # The replicated log
    "log_stored_before_the_sync": Violates("log/r04_power_cut_before_the_majority", "J7 J8"),
    "log_ready_before_the_sync": Violates("log/slow_to_be_ready", "J6"),
    "log_attempt_stored_too_late": Violates("log/in_doubt_and_restarted", "J7 J9"),
    "log_attempts_not_stored": Violates("log/in_doubt_and_restarted", "J7 J9"),
    "log_newest_attempt_only": Violates("log/two_attempts", "J9"),
    "log_attempts_pushed_out": Violates("log/five_attempts", "J9"),
    "log_last_moves_at_install": Violates("log/installed_without_the_entries", "J7"),
    "log_lost_disk_votes": Violates("log/r07_lost_disk", "J7 J8"),
    "log_lost_disk_counts_in_a_doubt": Violates("log/in_doubt_without_its_disk", "J7 J9"),
    "log_all_of_the_last_view": Violates("log/disks_lost_and_an_old_member", "J7 J9"),
    "log_interval_votes_after_a_power_cut": Violates("log/interval_power_cut", "J7"),
    "log_transitional_deliveries": Violates("log/behind_a_gap", "J1", watched=False),
    "log_packets_before_the_opening": Violates("log/append_before_the_opening", "J6"),
    "log_longest_wins": Violates("log/longest_is_not_best", "J1", watched=False),
    "log_others_acknowledge": Violates("log/filled_member_does_not_count", "J5"),
    "log_offers_of_a_majority": Violates("log/offers_of_all", "J7"),
    "log_sent_again_as_new": Violates("log/sent_again_or_not", "J2 J11"),
    "log_duplicate_indexed": Violates("log/r10_client_repeats", "J2 J11"),
    "log_chunks_by_index": Violates("log/fetched_by_term_and_index", "J1 J10", watched=False),
    "log_window_joined_with_a_gap": Violates("log/window_with_a_gap", "J1 J10", watched=False),
    "log_damage_taken_for_a_torn_end": Violates("log/rot_in_the_middle", "J8"),
    "log_failed_sync_ignored": Violates("log/failed_sync", "J8"),
    "log_read_answered_locally": Violates("log/r11_read_waits", "J12"),
    "log_others_answer_probes": Violates("log/answers_of_voters", "J12"),
    "log_snapshot_without_sessions": Violates("log/snapshot_and_a_retry", "J2 J11", watched=False),
    "log_open_drops_later_attempts": Violates("log/r13_opened_as_it_ends", "J7 J9"),
    "log_cut_below_committed": Violates("log/recovered_and_an_old_journal", "J4"),
    # Replicated machines
    "lock_token_per_node": Violates("log/lock_hand_over", "H3", watched=False),
    "items_of_everybody_go_back": Violates("log/item_of_the_lost", "H4", watched=False),
    "claims_outlive_their_node": Breaks("log/lock_hand_over", "where a plain copy replies"),
    "lock_granted_while_held": Violates("log/lock_hand_over", "H3", watched=False),
    "item_given_back_is_lost": Breaks(
        "log/item_given_back", "in its queue, where a plain copy has {'size': 1"
    ),
    "queue_turned_round": Breaks("log/item_of_the_lost", "where a plain copy replies"),
    "time_to_live_by_local_clocks": Violates("log/time_to_live", "H2", watched=False),
}
