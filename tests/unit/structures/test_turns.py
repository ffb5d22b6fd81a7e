"""Locks and semaphores: first come first served, nothing granted twice, tokens that grow.

What PySyncObj's tests of its battery `ReplLockManager` and kazoo's tests of its recipes `Lock` and
`Semaphore` check is checked here too: hand-over, cancelled and timed-out waiting, loss of a session
while holding and while waiting, asking again, and contention.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundelay.core.log import NAMED
from roundelay.structures import Lock, Refused, Rehearsal, Semaphore
from roundelay.structures.rehearsal import CancelledJob
from roundelay.structures.turns import Turns

THREE = ("a", "b", "c")


def test_a_free_lock_is_granted_at_once_and_the_token_is_the_index():
    log = Rehearsal(Lock, THREE)
    log.append("b", b"another entry")
    hold = log.run(log.face("a").acquire())
    assert (hold.token, hold.number, hold.lost) == (1, 1, False)
    assert log.face("c").holder.stale() == "a"
    assert log.face("c").locked.stale()


def test_a_lock_goes_to_those_who_wait_in_the_order_in_which_they_came():
    log = Rehearsal(Lock, THREE)
    first = log.run(log.face("a").acquire())
    second, third = (log.start(log.face(node).acquire()) for node in "cb")
    assert not second.done
    assert log.face("a").queue.stale() == ["c", "b"]
    log.run(first.release())
    log.settle()
    assert second.result.token > first.token
    assert not third.done
    log.run(second.result.release())
    log.settle()
    assert third.result.token > second.result.token


def test_a_node_can_wait_for_itself():
    log = Rehearsal(Lock)
    hold = log.run(log.face().acquire())
    other = log.start(log.face().acquire())
    assert not other.done
    log.run(hold.release())
    log.settle()
    assert not other.result.lost


def test_a_node_locks_again_what_it_gave_up():
    log = Rehearsal(Lock)
    tokens = []
    for _ in range(2):
        hold = log.face().acquire.wait()
        tokens.append(hold.token)
        assert hold.release.wait()
    assert tokens == [0, 2]
    assert not log.face().locked.stale()


def test_of_many_that_try_at_once_one_gets_the_lock():
    log = Rehearsal(Lock, THREE)
    jobs = [log.start(log.face(node).try_acquire()) for node in "abc" * 10]
    assert sum(job.result is not None for job in jobs) == 1


def test_a_lock_that_is_given_up_twice_is_given_up_once():
    log = Rehearsal(Lock, THREE)
    hold = log.run(log.face("a").acquire())
    log.start(log.face("b").acquire())
    assert log.run(hold.release())
    assert not log.run(hold.release())
    assert log.face("a").holder.stale() == "b"


def test_nobody_gives_up_the_lock_of_another():
    log = Rehearsal(Lock, THREE)
    log.run(log.face("a").acquire())
    assert not log.face("b").give.wait(1)  # The handle that `a` used.
    assert log.face("b").holder.stale() == "a"


def test_a_question_that_is_repeated_is_one_claim():
    log = Rehearsal(Lock, THREE)
    lock = log.face("a")
    assert lock.ask.wait(5) == 0
    assert lock.ask.wait(5) == 0
    other = log.face("b")
    assert other.ask.wait(5) is None
    assert other.ask.wait(5) is None
    assert lock.queue.stale() == ["b"]


def test_a_lock_is_tried_without_waiting():
    log = Rehearsal(Lock, THREE)
    hold = log.run(log.face("a").try_acquire())
    assert hold is not None
    assert log.run(log.face("a").try_acquire()) is None  # Not even by the same node.
    assert log.run(log.face("b").try_acquire()) is None
    assert log.face("a").queue.stale() == []
    log.run(hold.release())
    assert log.run(log.face("b").try_acquire()) is not None


def test_who_waits_too_long_leaves_the_queue():
    log = Rehearsal(Lock, THREE)
    hold = log.run(log.face("a").acquire())
    before_us = log.clock_us
    with pytest.raises(TimeoutError):
        log.face("b").acquire.wait(timeout_s=3)
    assert log.clock_us == before_us + 3_000_000
    log.settle()
    assert log.face("a").queue.stale() == []
    log.run(hold.release())
    assert log.face("a").holder.stale() is None


def test_who_is_cancelled_leaves_the_queue_or_gives_the_lock_back():
    log = Rehearsal(Lock, THREE)
    hold = log.run(log.face("a").acquire())
    waiting = log.start(log.face("b").acquire())
    waiting.cancel()
    log.settle()
    assert isinstance(waiting.error, CancelledJob)
    assert log.face("a").queue.stale() == []
    log.run(hold.release())
    assert not log.face("a").locked.stale()


def test_a_block_holds_the_lock_and_gives_it_back_even_if_it_fails():
    log = Rehearsal(Lock, THREE)
    lock = log.face("a")
    block = lock.hold()
    with pytest.raises(ZeroDivisionError), block as hold:
        raise ZeroDivisionError
    log.settle()
    assert lock.holder.stale() is None
    assert hold.lost


async def _hold_for_a_block(lock: Lock) -> int:
    async with lock.hold() as hold:
        return hold.token


def test_a_block_of_asyncio_holds_the_lock():
    log = Rehearsal(Lock)
    assert log.run(_hold_for_a_block(log.face())) == 0
    log.settle()
    assert not log.face().locked.stale()


def test_a_lock_is_released_at_the_first_mark_without_its_holder_and_not_before():
    log = Rehearsal(Lock, THREE)
    hold = log.run(log.face("a").acquire())
    other = log.start(log.face("b").acquire())
    log.kill("a")
    log.pass_s(3600)
    assert not other.done  # Time ends nothing.
    log.begin_term("b", "c")
    assert other.result.token > hold.token


def test_a_holder_that_is_cut_off_is_told_although_its_state_says_that_it_holds():
    log = Rehearsal(Lock, THREE)
    hold = log.run(log.face("a").acquire())
    told = log.start(hold.until_lost())
    assert not told.done
    log.begin_term("b", "c")
    assert log.face("a").holder.stale() == "a"
    assert hold.lost
    assert told.done


def test_a_holder_keeps_its_lock_over_a_term_that_has_its_session():
    log = Rehearsal(Lock, THREE)
    hold = log.run(log.face("a").acquire())
    log.begin_term("a", "b")
    assert not hold.lost
    assert log.face("b").holder.stale() == "a"


def test_a_restarted_node_is_not_the_holder_that_it_was():
    log = Rehearsal(Lock, THREE)
    log.run(log.face("a").acquire())
    again = log.restart("a")
    assert again.holder.stale() is None


def test_a_node_that_lost_its_place_while_it_was_cut_off_asks_again():
    log = Rehearsal(Lock, THREE)
    hold = log.run(log.face("b").acquire())
    waiting = log.start(log.face("a").acquire())
    log.begin_term("b", "c")
    log.begin_term("a", "b", "c")
    assert log.face("b").queue.stale() == ["a"]
    log.run(hold.release())
    log.settle()
    assert waiting.result.token > hold.token


def test_a_node_that_came_back_does_not_have_what_it_had():
    log = Rehearsal(Lock, THREE)
    hold = log.run(log.face("a").acquire())
    log.begin_term("b", "c")
    log.begin_term("a", "b", "c")
    assert hold.lost
    assert not log.run(hold.release())


def test_a_session_that_did_not_wait_any_more_is_passed_over():
    log = Rehearsal(Lock, THREE)
    log.run(log.face("a").acquire())
    log.start(log.face("b").acquire())
    last = log.start(log.face("c").acquire())
    log.begin_term("c")
    assert not last.result.lost


def test_a_named_session_holds_nothing():
    log = Rehearsal(Lock)
    with pytest.raises(Refused, match="named session"):
        log.face().ask.once("client", 0).wait(1)
    assert not log.face().locked.stale()
    assert log.entries[0].session & NAMED


def test_the_lock_tells_its_status():
    log = Rehearsal(Lock, THREE)
    log.run(log.face("a").acquire("backup"))
    log.start(log.face("b").acquire())
    assert log.state("c").status() == {"holders": ["a"], "waiting": 1, "token": 0}


def test_a_token_at_a_mark_and_that_of_the_next_entry_differ():
    """A grant at a mark has the index of the entry that comes next; if that entry grants again it
    needs another token."""
    log = Rehearsal(Lock, THREE)
    log.run(log.face("a").acquire())
    second, third = log.start(log.face("b").acquire()), log.start(log.face("c").acquire())
    log.begin_term("b", "c")
    assert second.result.token == len(log.entries)
    log.run(second.result.release())
    log.settle()
    assert third.result.token == second.result.token + 1


def test_a_semaphore_is_held_by_as_many_as_its_limit():
    log = Rehearsal(Semaphore, THREE)
    semaphore = log.face("a")
    assert semaphore.resize.wait(2) == 1
    holds = [log.run(log.face(node).acquire()) for node in "ab"]
    third = log.start(log.face("c").acquire())
    assert not third.done
    assert (semaphore.free.stale(), semaphore.holders.stale()) == (0, ["a", "b"])
    log.run(holds[0].release())
    log.settle()
    assert third.done
    assert len({hold.token for hold in (*holds, third.result)}) == 3


def test_a_semaphore_grows_for_those_who_wait_and_shrinks_as_they_leave():
    log = Rehearsal(Semaphore, THREE)
    semaphore = log.face("a")
    holds = [log.start(semaphore.acquire()) for _ in range(4)]
    assert [hold.done for hold in holds] == [True, False, False, False]
    semaphore.resize.wait(3)
    log.settle()
    assert [hold.done for hold in holds] == [True, True, True, False]
    semaphore.resize.wait(1)
    for hold in holds[:2]:
        log.run(hold.result.release())
        log.settle()
        assert not holds[3].done
    log.run(holds[2].result.release())
    log.settle()
    assert holds[3].done


def test_a_semaphore_begins_with_the_limit_it_is_made_for():
    log = Rehearsal(Semaphore.of(2), THREE)
    assert [log.start(log.face(node).acquire()).done for node in THREE] == [True, True, False]
    log.face("a").resize.wait(4)
    assert log.restart("c").free.stale() == 2  # One of the turns was that of c.
    with pytest.raises(ValueError, match="at least 1"):
        Semaphore.of(0)


def test_a_semaphore_without_turns_is_refused():
    with pytest.raises(Refused, match="at least 1"):
        Rehearsal(Semaphore).face().resize.wait(0)


def test_who_waits_too_long_for_a_semaphore_or_is_cancelled_leaves_the_queue():
    log = Rehearsal(Semaphore.of(2), THREE)
    holds = [log.run(log.face("a").acquire()) for _ in range(2)]
    with pytest.raises(TimeoutError):
        log.face("b").acquire.wait(timeout_s=1)
    waiting = log.start(log.face("b").acquire())
    assert log.face("a").queue.stale() == ["b"]
    waiting.cancel()
    log.settle()
    assert log.face("a").queue.stale() == []
    log.run(holds[0].release())
    assert log.face("a").free.stale() == 1  # Nobody who has left got it.
    again = log.start(log.face("b").acquire())
    assert not again.result.lost


def test_a_semaphore_is_tried_without_waiting():
    log = Rehearsal(Semaphore.of(2), THREE)
    holds = [log.run(log.face("a").try_acquire()) for _ in range(3)]
    assert [hold is not None for hold in holds] == [True, True, False]
    assert holds[0] is not None
    assert log.run(holds[0].release())
    assert log.run(log.face("b").try_acquire()) is not None


def test_a_semaphore_gives_back_what_a_lost_node_had():
    log = Rehearsal(Semaphore, THREE)
    log.face("a").resize.wait(2)
    log.run(log.face("b").acquire())
    log.run(log.face("b").acquire())
    log.begin_term("a", "c")
    assert log.face("a").free.stale() == 2


steps = st.lists(
    st.tuples(
        st.sampled_from(["ask", "try", "give", "term", "restart", "resize"]),
        st.sampled_from(THREE),
        st.integers(1, 3),
    ),
    max_size=40,
)


@given(steps)
def test_whatever_happens_turns_are_granted_in_order_and_within_the_limit(script):
    log = Rehearsal(Semaphore, THREE)
    tokens: list[int] = []
    for what, node, n in script:
        state: Turns = log.state(log.members[0])
        limit, was_over = state.limit, len(state.granted) > state.limit
        if what == "term":
            log.begin_term(*{"a", THREE[n - 1]})
        elif what == "restart":
            log.restart(node)
        elif node in log.members:
            face = log.face(node)
            if what == "give":
                face.give.wait(n)
            elif what == "resize":
                face.resize.wait(n)
            else:
                face.ask.wait(n, wait=what == "ask")
        state = log.state(log.members[0])
        assert len(state.granted) <= state.limit or was_over or state.limit < limit
        assert not state.waiting or len(state.granted) >= state.limit  # Nobody waits for nothing.
        tokens += [c.token for c in state.granted if c.token not in tokens]
        assert tokens == sorted(tokens)
        claims = [(c.session, c.handle) for c in (*state.granted, *state.waiting)]
        assert len(set(claims)) == len(claims)
        alive = {log.sessions[member] for member in log.members}
        assert what != "term" or {session for session, _ in claims} <= alive
