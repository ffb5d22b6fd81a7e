"""The paper's recovery as pure functions: the numbers of its examples 2 and 3."""

from roundelay.protocols.st.messages import Name
from roundelay.protocols.st.sort_line import least, losses, lowered, repaired, sort_point

A, B, C = Name(0, 1), Name(0, 2), Name(0, 3)
P, Q = Name(1, 1), Name(1, 2)
X, Y, Z = Name(2, 1), Name(2, 2), Name(2, 3)
LOGS = ([X, C, P, Z], [A, X, B, Y, Q], [A, X, Z, Q])
EXPECTED = ((4, 3, 4), (4, 3, 4), (3, 3, 4))


def test_example_2_the_lines_that_members_propose():
    proposed = [lowered(log, mine, EXPECTED[2]) for log, mine in zip(LOGS, EXPECTED, strict=True)]
    assert proposed == [(3, 1, 3), (4, 3, 4), (3, 3, 4)]
    assert least(proposed) == (3, 1, 3)


def test_example_2_the_sort_points():
    points = [log[sort_point(log, (3, 1, 3))] for log in LOGS]
    assert points == [C, Q, Z]


def test_without_a_packet_that_is_not_below_the_line_the_sort_point_is_the_end():
    assert sort_point([A, X], (2, 1, 2)) == 2
    assert lowered([A, X], (2, 1, 2), (2, 1, 2)) == (2, 1, 2)


def test_the_sort_point_itself_lowers_the_line():
    assert lowered([C], (4, 3, 4), (3, 3, 4)) == (3, 3, 4)


def test_a_line_is_never_raised():
    assert lowered([C], (1, 3, 4), (3, 3, 4)) == (1, 3, 4)


def test_fail_counts_pairs_and_not_packets():
    got = {0: (1, 1, 1), 1: (1, 1, 1), 2: (1, 1, 1)}
    sent = {0: (1, 1, 3), 1: (1, 1, 1), 2: (1, 1, 1)}
    assert losses(got, sent) == [(2, 0)]


def rank(name: Name) -> tuple[int, int]:
    """In the order 3, 1, 2 of example 3."""
    return (2, 0, 1).index(name.source), name.number


def test_example_3_one_loss_is_inserted_before_the_sort_point():
    assert repaired([Z, Q], [C], 1, rank) == [C, Z, Q]


def test_example_3_more_than_one_loss_sorts_all():
    assert repaired([C, P, Z], [], 2, rank) == [Z, C, P]
    assert repaired([Q], [Y], 2, rank) == [Y, Q]
    assert repaired([Z, Q], [C], 2, rank) == [Z, C, Q]


def test_without_a_loss_nothing_is_sorted():
    assert repaired([C, P, Z], [], 0, rank) == [C, P, Z]
