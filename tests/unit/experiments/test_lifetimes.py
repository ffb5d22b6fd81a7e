"""Delivery and stability times, on rows written by hand."""

from roundelay.core.effects import Kind
from roundelay.experiments.lifetimes import Lifetimes
from roundelay.trace.schema import Row


def row(kind: Kind, proc: int, t_ns: int, message: tuple[int, int] | None = None, **fields) -> Row:
    m_src, m_seq = message or (None, None)
    return Row(kind, proc, 0, 0, t_ns=t_ns, m_src=m_src, m_seq=m_seq, **fields)


def test_times_end_at_the_last_member():
    lives = Lifetimes(2)
    lives.submitted(0, 5, 100)
    lives.append(row(Kind.DELIVER, 0, 130, (0, 5)))
    assert lives.delivered == 0
    lives.append(row(Kind.DELIVER, 1, 150, (0, 5)))
    lives.append(row(Kind.STABLE, 1, 170, (0, 5)))
    assert (lives.delivered, lives.delivery_ns) == (1, 50)
    assert lives.alive
    lives.append(row(Kind.STABLE, 0, 190, (0, 5)))
    assert (lives.stable, lives.stability_ns) == (1, 90)
    assert not lives.alive


def test_what_was_not_handed_over_in_time_does_not_count():
    lives = Lifetimes(1)
    lives.submitted(0, 1, 100)
    for number in range(3):
        lives.append(row(Kind.DELIVER, 0, 200, (0, number)))
        lives.append(row(Kind.STABLE, 0, 300, (0, number)))
    assert (lives.delivery_ns, lives.stability_ns) == (100, 200)


def test_work_is_counted_by_member_and_only_while_counting():
    lives = Lifetimes(2)

    def work() -> None:
        lives.append(row(Kind.ORIGINATE, 0, 10, (0, 0)))
        lives.append(row(Kind.TOKEN, 1, 20, tag="acquire"))
        lives.append(row(Kind.TOKEN, 1, 30, tag="release"))

    work()
    assert not lives.originated
    assert not lives.released
    lives.counting = True
    work()
    assert lives.originated == {0: 1}
    assert lives.released == {1: 1}
