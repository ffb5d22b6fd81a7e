"""The rounds of a soak with kills: all kinds come, none asks for more than the log promises, and a
damaged journal is found damaged."""

import random
from collections import Counter

import pytest
from tests.unit.journal.logs import die, log_files, mark, open_journal, some, with_checkpoints

from roundelay.bench.kills.damage import damage
from roundelay.bench.kills.rounds import DECK, Kind, draw


@pytest.mark.parametrize("nodes", ["abc", "abcd", "abcde", "abcdefghi"])
def test_all_kinds_of_rounds_come_and_a_majority_keeps_its_disks(nodes):
    minority = (len(nodes) - 1) // 2
    drawn = draw(nodes, "always", 10 * len(DECK), 1)
    assert Counter(one.kind for one in drawn) == {kind: 10 * DECK.count(kind) for kind in Kind}
    sizes: dict[Kind, set[int]] = {}
    for one in drawn:
        assert len(set(one.victims)) == len(one.victims)
        assert set(one.victims) <= set(nodes)
        sizes.setdefault(one.kind, set()).add(len(one.victims))
    few, single, every = set(range(1, minority + 1)), {1}, {len(nodes)}
    assert sizes == {
        **{Kind.MINORITY: few, Kind.WIPED: few},
        **{Kind.DONORS: single, Kind.DAMAGED: single},
        **{Kind.ALL: every, Kind.POWER: every},
    }


def test_there_is_no_power_cut_for_a_policy_that_promises_nothing_for_it():
    kinds = {one.kind for one in draw("abc", "interval", 50, 1)}
    assert kinds == set(Kind) - {Kind.POWER}


def test_a_seed_draws_the_same_rounds_again():
    assert draw("abc", "always", 20, 7) == draw("abc", "always", 20, 7)
    assert draw("abc", "always", 20, 7) != draw("abc", "always", 20, 8)


@pytest.mark.parametrize("records", [[mark(), *some(30)], with_checkpoints(300, 40)])
@pytest.mark.parametrize("boot", ["boot 1", "boot 2"])
def test_a_damaged_record_is_found_as_damage_and_never_as_a_torn_tail(tmp_path, records, boot):
    journal = open_journal(tmp_path / "whole")
    journal.set_able()
    journal.append(records)
    journal.sync()
    die(journal)
    chance = random.Random(1)
    for case in range(20):
        path = tmp_path / f"damaged-{case}"
        (path / "log").mkdir(parents=True)
        for file in (tmp_path / "whole").iterdir():
            if file.is_file():
                (path / file.name).write_bytes(file.read_bytes())
        for file in log_files(tmp_path / "whole"):
            (path / "log" / file.name).write_bytes(file.read_bytes())
        damaged = damage(path / "log", chance)
        again = open_journal(path, boot=boot)
        known = [segment.path for segment in again._segments]
        if again.kept.able:
            # A start reads the last two files only.
            assert damaged in known[:-2]
        else:
            assert f"{damaged.name} is damaged at byte" in again.kept.why
        die(again)
