"""The judge of the soak with kills convicts every broken promise, and nobody else."""

import pytest

from roundelay.bench.kills.judge import Held, Receipts, judge


def held(node, payloads, first=0, term="1.a", session=7, number=0):
    journal = Held(node, first)
    for i, payload in enumerate(payloads):
        journal.add(first + i, term, session, number + i, [payload])
    return journal


def told(*payloads, first=0):
    receipts = Receipts()
    for i, payload in enumerate(payloads):
        receipts.add(payload.decode(), payload, first + i)
    return receipts


def test_equal_journals_with_all_that_was_told_keep_every_promise():
    verdict = judge(told(b"x", b"y"), [held("a", [b"x", b"y", b"z"]), held("b", [b"x", b"y"])])
    assert verdict.kept
    assert (verdict.confirmed, verdict.entries) == (2, 3)
    assert verdict.words == ()


def test_batches_are_compared_entry_by_entry():
    whole = Held("a")
    whole.add(0, "1.a", 7, 0, [b"x", b"y", b"z"])
    assert judge(told(b"x"), [whole, held("b", [b"x", b"y", b"z"])]).kept


@pytest.mark.parametrize(
    ("journal", "words"),
    [
        (held("b", [b"x"]), "y was confirmed at 1, where b holds nothing"),
        (held("b", [b"x", b"n"]), "y was confirmed at 1, where b holds another entry"),
    ],
)
def test_a_confirmed_append_that_a_journal_lacks_is_lost(journal, words):
    verdict = judge(told(b"x", b"y"), [journal])
    assert (verdict.lost, verdict.kept) == (1, False)
    assert verdict.words == (words,)


def test_what_a_group_that_is_stuck_may_not_know_yet_is_not_lost_and_what_it_has_otherwise_is():
    stuck = judge(told(b"x", b"y"), [held("b", [b"x"])], caught_up=False)
    assert stuck.lost == 0
    assert judge(told(b"x", b"y"), [held("b", [b"n"])], caught_up=False).lost == 1


def test_an_append_whose_index_nobody_remembers_must_be_somewhere():
    receipts = Receipts()
    receipts.add("x", b"x", None)
    assert judge(receipts, [held("a", [b"n", b"x"])]).kept
    assert judge(receipts, [held("a", [b"n"])]).lost == 1


def test_an_append_that_is_told_twice_has_one_index():
    receipts = told(b"x")
    receipts.add("x", b"x", None)
    receipts.add("x", b"x", 0)
    assert judge(receipts, [held("a", [b"x", b"y"])]).kept
    receipts.add("x", b"x", 1)
    assert judge(receipts, [held("a", [b"x", b"y"])]).lost == 1


@pytest.mark.parametrize(
    "other",
    [
        held("b", [b"x", b"n"]),
        held("b", [b"x", b"y"], term="2.b"),
        held("b", [b"x", b"y"], session=8),
        held("b", [b"x", b"y"], number=1),
    ],
    ids=["payload", "term", "session", "number"],
)
def test_journals_that_differ_disagree(other):
    verdict = judge(Receipts(), [held("a", [b"x", b"y"]), other])
    assert verdict.disagreements == 1
    assert not verdict.kept


def test_journals_are_compared_where_both_hold_something():
    assert judge(Receipts(), [held("a", [b"x", b"y"]), held("b", [b"y"], first=1, number=1)]).kept
    verdict = judge(Receipts(), [held("a", [b"x", b"y"]), held("b", [b"n"], first=1, number=1)])
    assert verdict.words == ("a and b hold different entries at 1",)


def test_what_was_removed_from_a_journal_is_not_lost():
    assert judge(told(b"x", b"y"), [held("a", [b"y"], first=1)]).kept


def test_an_append_that_is_there_twice_is_repeated():
    journal = Held("a")
    journal.add(0, "1.a", 7, 0, [b"x"])
    journal.add(1, "1.a", 8, 0, [b"x"])
    assert judge(Receipts(), [journal]).repeated == 1


def test_a_hole_and_a_number_that_does_not_grow_are_disorder():
    hole = Held("a")
    hole.add(1, "1.a", 7, 0, [b"x"])
    assert judge(Receipts(), [hole]).disordered == 1
    back = Held("a")
    back.add(0, "1.a", 7, 1, [b"x", b"y"])
    back.add(2, "1.a", 7, 2, [b"z"])
    assert judge(Receipts(), [back]).disordered == 1


def test_all_breaches_are_counted_and_the_first_are_told():
    verdict = judge(told(*(b"%d" % i for i in range(9))), [held("a", [])])
    assert (verdict.lost, len(verdict.words)) == (9, 5)
