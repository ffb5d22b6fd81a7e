"""Counter, set, leader and barrier."""

from collections.abc import Callable
from typing import NoReturn

import pytest

from roundelay.structures import (
    Barrier,
    Counter,
    Hold,
    Leader,
    Leadership,
    Refused,
    Rehearsal,
    Set,
    Value,
)
from roundelay.structures.rehearsal import Job
from roundelay.structures.values import INT_BITS_MAX

THREE = ("a", "b", "c")


# A counter, as PySyncObj's ReplCounter and kazoo's Counter are tested.


def test_a_counter_counts_each_addition_once():
    log = Rehearsal(Counter, THREE)
    replies = [log.face(node).add.wait() for node in "abcabc"]
    assert replies == [1, 2, 3, 4, 5, 6]
    assert log.face("c").value.wait() == 6
    assert log.face("c").add.wait(-10) == -4


def test_many_that_add_at_once_get_different_numbers():
    log = Rehearsal(Counter, THREE)
    jobs = [log.start(log.face(node).add()) for node in "abc" * 20]
    assert sorted(job.result for job in jobs) == list(range(1, 61))


def test_a_counter_is_set():
    log = Rehearsal(Counter)
    assert log.face().set.wait(5) == 0
    assert not log.face().compare_and_set.wait(4, 6)
    assert log.face().compare_and_set.wait(5, 6)
    assert log.face().value.stale() == 6


def test_a_counter_has_bounds():
    log = Rehearsal(Counter)
    log.face().set.wait((1 << INT_BITS_MAX) - 1)
    with pytest.raises(Refused, match="bits"):
        log.face().add.wait(1)
    assert log.state().status() == {"value": (1 << INT_BITS_MAX) - 1}
    with pytest.raises(TypeError, match="float where int is wanted"):
        log.face().add.wait(2.5)  # type: ignore[arg-type]


# A set.


def test_members_are_there_once():
    log = Rehearsal(Set[Value], THREE)
    face = log.face()
    assert [face.add.wait(member) for member in ("x", [1], "x", {"b": 1, "a": 2})] == [1, 1, 0, 1]
    assert face.contains.stale({"a": 2, "b": 1})
    assert not face.contains.stale([2])
    assert face.items.stale() == ["x", [1], {"b": 1, "a": 2}]
    assert [face.discard.wait([1]), face.discard.wait([1])] == [True, False]
    assert face.size.stale() == 2
    assert face.clear.wait() == 2


def test_members_that_python_calls_equal_are_told_apart():
    face = Rehearsal(Set[Value]).face()
    assert [face.add.wait(member) for member in (1, True, 1.0, "1", b"1", None)] == [True] * 6
    assert [repr(member) for member in face.items.stale()] == [
        *("1", "True", "1.0", "'1'", "b'1'", "None")
    ]


# A leader, as kazoo's Election is tested.


def test_one_leads_and_all_know():
    log = Rehearsal(Leader, THREE)
    term = log.run(log.face("b").acquire("10.0.0.2"))
    other = log.start(log.face("a").acquire())
    assert log.face("c").leader.stale() == Leadership(1, "b", "10.0.0.2", term.token)
    log.run(term.release())
    log.settle()
    assert other.result.number == 2
    assert log.face("c").leader.stale() == Leadership(2, "a", "", other.result.token)


def test_who_follows_sees_each_election_and_the_end_of_it():
    log = Rehearsal(Leader, THREE)
    seen: list[Leadership | None] = []

    async def follow() -> None:
        async for now in log.face("c").follow():
            seen.append(now)  # noqa: PERF401  # What was seen when it ends counts.

    log.start(follow())
    log.run(log.face("a").acquire("x"))
    log.settle()
    log.begin_term("b", "c")
    term = log.run(log.face("b").acquire("y"))
    log.settle()
    log.run(term.release())
    log.settle()
    assert [now and (now.number, now.node) for now in seen] == [
        *(None, (1, "a"), None, (2, "b"), None)
    ]


def test_who_campaigns_is_told_of_each_term_and_of_its_end():
    log = Rehearsal(Leader, THREE)
    told: list[tuple[str, str, int]] = []

    def campaign(node: str) -> Job[NoReturn]:
        def tell(what: str) -> Callable[[Hold], object]:
            return lambda term: told.append((node, what, term.number))

        return log.start(log.face(node).campaign(tell("elected"), tell("lost"), node))

    first, _ = campaign("a"), campaign("b")
    assert told == [("a", "elected", 1)]
    log.begin_term("b", "c")
    assert told[1:] == [("a", "lost", 1), ("b", "elected", 2)]
    log.begin_term("a", "b", "c")
    log.begin_term("a", "c")
    assert told[3:] == [("a", "elected", 3), ("b", "lost", 2)]
    first.cancel()
    log.settle()
    assert told[5:] == [("a", "lost", 3)]
    assert log.face("c").leader.stale() is None


def test_a_leader_whose_work_fails_leads_no_more():
    log = Rehearsal(Leader, THREE)
    told: list[int] = []
    with pytest.raises(ZeroDivisionError):
        log.face("a").campaign.wait(lambda _: 1 // 0, lambda term: told.append(term.number))
    assert told == [1]
    assert log.face("b").leader.stale() is None


def test_a_leader_that_was_cut_off_and_kept_its_turn_leads_a_new_term():
    log = Rehearsal(Leader, THREE)
    elected: list[int] = []
    log.start(log.face("a").campaign(lambda term: elected.append(term.number)))
    log.members = ()  # No view is open anywhere, and then one with all.
    log.settle()
    log.begin_term(*THREE)
    assert elected == [1, 2]


def test_a_candidate_that_gives_up_is_not_elected():
    log = Rehearsal(Leader, THREE)
    term = log.run(log.face("a").acquire())
    candidate = log.start(log.face("b").acquire())
    candidate.cancel()
    log.settle()
    log.run(term.release())
    assert log.face("a").leader.stale() is None


# A barrier, as kazoo's DoubleBarrier is tested.


def test_nobody_goes_on_before_all_have_come():
    log = Rehearsal(Barrier, THREE)
    jobs = [log.start(log.face(node).wait(3)) for node in "ab"]
    assert not any(job.done for job in jobs)
    assert log.face("c").waiting.stale() == ["a", "b"]
    jobs.append(log.start(log.face("c").wait(3)))
    log.settle()
    assert [job.result for job in jobs] == [0, 0, 0]
    assert log.face("c").waiting.stale() == []


def test_a_barrier_begins_anew():
    log = Rehearsal(Barrier, THREE)
    for round_ in range(3):
        jobs = [log.start(log.face(node).wait(2)) for node in "ab"]
        log.settle()
        assert [job.result for job in jobs] == [round_, round_]


def test_who_waits_too_long_at_a_barrier_has_not_come():
    log = Rehearsal(Barrier, THREE)
    with pytest.raises(TimeoutError):
        log.face("a").wait.wait(2, timeout_s=1)
    log.settle()
    job = log.start(log.face("b").wait(2))
    log.settle()
    assert not job.done
    log.start(log.face("a").wait(2))
    log.settle()
    assert job.done


def test_who_is_lost_at_a_barrier_has_not_come():
    log = Rehearsal(Barrier, THREE)
    log.start(log.face("a").wait(2))
    log.begin_term("b", "c")
    job = log.start(log.face("b").wait(2))
    log.settle()
    assert not job.done


def test_who_was_cut_off_at_a_barrier_arrives_again():
    log = Rehearsal(Barrier, THREE)
    job = log.start(log.face("a").wait(2))
    log.begin_term("b", "c")
    log.begin_term("a", "b", "c")
    log.start(log.face("b").wait(2))
    log.settle()
    assert job.done


def test_who_was_cut_off_while_others_passed_has_not_passed_with_them():
    log = Rehearsal(Barrier, (*THREE, "d"))
    cut_off = log.start(log.face("a").wait(3))
    log.begin_term("b", "c", "d")
    others = [log.start(log.face(node).wait(3)) for node in "bcd"]
    log.settle()
    assert [job.result for job in others] == [0, 0, 0]
    log.begin_term("a", "b", "c", "d")
    log.settle()
    assert not cut_off.done
    assert log.face("b").waiting.stale() == ["a"]
    for node in "bc":
        log.start(log.face(node).wait(3))
    log.settle()
    assert cut_off.result == 1


def test_who_passed_a_barrier_and_sees_it_late_has_passed():
    log = Rehearsal(Barrier, THREE)
    barrier = log.face("a")
    assert [barrier.arrive.wait(handle, 2) for handle in (7, 8)] == [0, 0]
    assert [log.face("b").arrive.wait(handle, 2) for handle in (7, 8)] == [1, 1]
    assert barrier.arrive.wait(7, 2) == 0  # It does not wait again.
    assert not barrier.leave.wait(7)
    log.restart("a")
    assert [arrival.node for arrival in log.state("c").passed] == ["b", "b"]


def test_a_barrier_forgets_who_passed():
    log = Rehearsal(Barrier, THREE)
    for node in THREE:
        log.start(log.face(node).wait(3))
    log.settle()
    assert log.state().passed == []


def test_all_at_a_barrier_agree_how_many_are_to_come():
    log = Rehearsal(Barrier, THREE)
    log.start(log.face("a").wait(2))
    with pytest.raises(Refused, match="waiting for 2, not 3"):
        log.face("b").wait.wait(3)
    with pytest.raises(Refused, match="at least one"):
        log.face("b").wait.wait(0)
    assert log.state().status() == {"waiting": 1, "parties": 2, "round": 0}


def test_a_barrier_for_one_is_no_barrier():
    assert Rehearsal(Barrier).face().wait.wait(1) == 0
