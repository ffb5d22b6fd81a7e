"""A queue: order, hand-over, items that come back, done once. Includes what PySyncObj's tests of
ReplQueue and ReplPriorityQueue and kazoo's of LockingQueue check."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundelay.structures import Queue, Refused, Rehearsal, Value

THREE = ("a", "b", "c")


def test_items_leave_in_the_order_in_which_they_came():
    log = Rehearsal(Queue[Value], THREE)
    ids = [log.face("a").put.wait(item) for item in ("x", "y", "z")]
    jobs = [log.run(log.face(node).take()) for node in "bca"]
    assert [job.value for job in jobs] == ["x", "y", "z"]
    assert [job.id for job in jobs] == ids


def test_smaller_priorities_leave_first():
    log = Rehearsal(Queue[Value])
    face = log.face()
    for item, priority in (("late", 5), ("soon", -1), ("soon too", -1), ("usual", 0)):
        face.put.wait(item, priority)
    assert face.peek.stale() == "soon"
    found = [log.run(face.take()).value for _ in range(4)]
    assert found == ["soon", "soon too", "usual", "late"]


def test_who_waits_gets_items_in_the_order_of_asking():
    log = Rehearsal(Queue[Value], THREE)
    jobs = [log.start(log.face(node).take()) for node in "bca"]
    log.face("a").put.wait("x")
    log.face("a").put.wait("y")
    log.settle()
    assert [job.done for job in jobs] == [True, True, False]
    assert [job.result.value for job in jobs[:2]] == ["x", "y"]


def test_an_item_is_done_once():
    log = Rehearsal(Queue[Value], THREE)
    log.face("a").put.wait("x")
    job = log.run(log.face("b").take())
    assert log.face("a").in_work.stale() == 1
    assert not job.lost
    assert log.run(job.done())
    assert not log.run(job.done())
    assert job.lost
    assert log.state().status() == {"size": 0, "in work": 0, "takers": 0, "done": 1}


def test_an_item_that_is_given_back_is_the_next_one():
    log = Rehearsal(Queue[Value], THREE)
    for item in "xyz":
        log.face("a").put.wait(item)
    first = log.run(log.face("b").take())
    assert log.run(first.give_back())
    assert not log.run(first.give_back())
    second = log.run(log.face("c").take())
    assert (second.value, second.times) == ("x", 2)
    assert second.token > first.token
    assert not log.run(first.done())  # It belongs to another by now.
    assert log.run(second.done())


def test_what_a_lost_node_had_goes_back_to_its_place():
    log = Rehearsal(Queue[Value], THREE)
    for item in "xyz":
        log.face("b").put.wait(item)
    lost = [log.run(log.face("a").take()) for _ in range(2)]
    log.kill("a")
    log.pass_s(3600)
    assert log.face("b").size.stale() == 1
    log.begin_term("b", "c")
    assert [log.run(log.face("b").take()).value for _ in range(3)] == ["x", "y", "z"]
    assert [job.lost for job in lost] == [True, True]


def test_a_node_that_was_cut_off_cannot_say_that_it_is_done():
    log = Rehearsal(Queue[Value], THREE)
    log.face("b").put.wait("x")
    old = log.run(log.face("a").take())
    log.begin_term("b", "c")
    assert old.lost
    new = log.run(log.face("b").take())
    log.begin_term("a", "b", "c")
    assert not log.run(old.done())
    assert log.run(new.done())


def test_who_waited_too_long_gets_nothing():
    log = Rehearsal(Queue[Value], THREE)
    with pytest.raises(TimeoutError):
        log.face("a").take.wait(timeout_s=2)
    log.settle()
    log.face("b").put.wait("x")
    assert log.face("b").size.stale() == 1


def test_who_is_cancelled_after_it_got_an_item_gives_it_back():
    log = Rehearsal(Queue[Value], THREE)
    job = log.start(log.face("a").take())
    log.append("b", log._head + b'["put",1,"x",0]')  # No job runs before the next line.
    assert log.face("b").in_work.stale() == 1
    job.cancel()
    log.settle()
    assert (log.face("b").size.stale(), log.face("b").in_work.stale()) == (1, 0)


def test_an_item_is_taken_without_waiting_if_there_is_one():
    log = Rehearsal(Queue[Value], THREE)
    assert log.run(log.face("a").try_take()) is None
    log.face("b").put.wait("x")
    job = log.run(log.face("a").try_take())
    assert job is not None
    assert job.value == "x"


def test_a_question_that_is_repeated_takes_one_item():
    log = Rehearsal(Queue[Value])
    face = log.face()
    face.put.wait("x")
    face.put.wait("y")
    assert face.ask.wait(7)
    assert face.ask.wait(7)
    assert face.size.stale() == 1


def test_who_lost_its_place_while_it_was_cut_off_asks_again():
    log = Rehearsal(Queue[Value], THREE)
    job = log.start(log.face("a").take())
    log.begin_term("b", "c")
    log.face("b").put.wait("x")
    assert log.face("b").size.stale() == 1
    log.begin_term("a", "b", "c")
    assert job.result.value == "x"


def test_a_named_session_takes_nothing():
    log = Rehearsal(Queue[Value])
    with pytest.raises(Refused, match="named session"):
        log.face().ask.once("client", 0).wait(1)


def test_a_priority_has_bounds():
    with pytest.raises(Refused, match="priority"):
        Rehearsal(Queue[Value]).face().put.wait("x", 2**40)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["put", "take", "done", "back", "term", "restart"]),
            st.sampled_from(THREE),
            st.integers(0, 3),
        ),
        max_size=40,
    )
)
def test_whatever_happens_each_item_is_waiting_or_taken_or_done_once(script):
    log = Rehearsal(Queue[Value], THREE)
    put, done = [], Counter[int]()
    for what, node, n in script:
        if what == "term":
            log.begin_term(*{"a", THREE[n % 3]})
        elif what == "restart":
            log.restart(node)
        elif node in log.members:
            face, state = log.face(node), log.state(node)
            if what == "put":
                put.append(face.put.wait(n, n - 2))
            elif what == "take":
                log.run(face.try_take())
            elif state.taken:
                taken = list(state.taken.values())[n % len(state.taken)]
                token = taken.token - (n == 3)
                if what == "done":
                    done[taken.item.id] += face.finish.wait(taken.item.id, token)
                else:
                    face.give_back.wait(taken.item.id, token)
        state = log.state(log.members[0])
        there = [item.id for item in state.items] + list(state.taken) + list(done.elements())
        assert sorted(there) == put
        alive = {log.sessions[member] for member in log.members}
        assert what != "term" or {t.taker.session for t in state.taken.values()} <= alive
