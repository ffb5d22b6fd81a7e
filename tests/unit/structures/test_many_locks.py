"""`Locks`: each name is a lock of its own."""

import pytest

from roundelay.structures import Locks, Rehearsal


def test_locks_of_different_names_do_not_wait_for_each_other_and_tokens_grow_over_all():
    log = Rehearsal(Locks, ("a", "b"))
    first = log.face("a").acquire.wait("x")
    second = log.face("b").acquire.wait("y")
    assert second.token > first.token
    assert log.face("b").holders.wait() == {"x": "a", "y": "b"}


def test_a_lock_goes_to_those_who_wait_in_the_order_in_which_they_came():
    log = Rehearsal(Locks, ("a", "b", "c"))
    hold = log.face("a").acquire.wait("x")
    jobs = [log.start(log.face(node).acquire("x")) for node in "cb"]
    log.settle()
    assert log.face("a").queue.wait("x") == ["c", "b"]
    log.run(hold.release())
    log.settle()
    assert [job.done for job in jobs] == [True, False]
    log.run(jobs[0].result.release())
    log.settle()
    assert jobs[1].result.token > jobs[0].result.token > hold.token


def test_a_lock_that_nobody_wants_any_more_leaves_nothing():
    log = Rehearsal(Locks)
    with log.face().hold("x") as hold:
        assert log.state().lines
        assert not hold.lost
    assert log.face().holder.wait("x") is None
    assert not log.state().lines


def test_locks_are_released_at_the_first_mark_without_their_holder():
    log = Rehearsal(Locks, ("a", "b", "c"))
    holds = [log.face("a").acquire.wait(name) for name in "xy"]
    waiting = [log.start(log.face("b").acquire(name)) for name in "yx"]
    log.settle()
    log.kill("a")
    assert not any(job.done for job in waiting)
    log.begin_term("b", "c")
    assert all(job.done for job in waiting)
    tokens = {hold.token for hold in holds} | {job.result.token for job in waiting}
    assert len(tokens) == 4
    assert max(hold.token for hold in holds) < min(job.result.token for job in waiting)


def test_a_lock_is_tried_without_waiting():
    log = Rehearsal(Locks, ("a", "b"))
    hold = log.face("a").try_acquire.wait("x")
    assert hold is not None
    assert log.face("b").try_acquire.wait("x") is None
    assert log.face("b").queue.wait("x") == []
    log.run(hold.release())
    assert log.face("b").try_acquire.wait("x") is not None


def test_who_waits_too_long_leaves_the_queue():
    log = Rehearsal(Locks, ("a", "b"))
    log.face("a").acquire.wait("x")
    with pytest.raises(TimeoutError):
        log.face("b").acquire.wait("x", timeout_s=1.0)
    assert log.face("a").queue.wait("x") == []


def test_a_question_that_is_repeated_is_one_claim_and_the_lock_is_given_up_once():
    log = Rehearsal(Locks, ("a", "b"))
    face = log.face("a")
    assert face.ask.wait("x", 7) == face.ask.wait("x", 7)
    assert log.face("b").ask.wait("x", 7) is None
    assert log.face("b").ask.wait("x", 7) is None
    assert face.give.wait("x", 7)
    assert not face.give.wait("x", 7)
    assert face.holder.wait("x") == "b"


def test_what_locks_tell_of_themselves():
    log = Rehearsal(Locks, ("a", "b"))
    log.face("a").ask.wait("x", 1)
    log.face("b").ask.wait("x", 1)
    assert log.state().status() == {"held": 1, "waiting": 1, "holders": ["x=a"], "token": 0}
