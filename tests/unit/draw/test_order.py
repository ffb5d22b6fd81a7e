"""One order for rows of the simulator, of real nodes, and of traces that make no sense."""

from roundelay.core.effects import Kind
from roundelay.draw.order import ordered
from roundelay.trace.schema import Row

from . import stories


def test_the_simulators_order_is_kept() -> None:
    _, rows = stories.lossy()
    assert ordered(rows[::-1]) == rows


def test_real_nodes_keep_their_own_order_and_that_of_packets() -> None:
    send = Row(Kind.SEND, 0, 0, 1, t_ns=500, pkt=9)
    rows = [
        Row(Kind.ARRIVE, 1, 0, 0, t_ns=100, pkt=9),  # Its clock is behind.
        Row(Kind.DELIVER, 1, 0, 1, t_ns=110),
        send,
        Row(Kind.SUBMIT, 0, 0, 0, t_ns=490),
    ]
    kinds = [row.kind for row in ordered(rows)]
    assert kinds == [Kind.SUBMIT, Kind.SEND, Kind.ARRIVE, Kind.DELIVER]


def test_a_circle_ends() -> None:
    rows = [
        Row(Kind.ARRIVE, 0, 0, 0, pkt=1),
        Row(Kind.SEND, 0, 0, 1, pkt=2),
        Row(Kind.ARRIVE, 1, 0, 0, pkt=2),
        Row(Kind.SEND, 1, 0, 1, pkt=1),
    ]
    assert sorted(ordered(rows)) == sorted(rows)
