"""[TachikawaTakizawa] Figures 3 and 5: which logs are selectively totally ordered, and the failure
section and the sort points of a message that was lost."""

from collections.abc import Iterable, Sequence
from itertools import combinations

from roundelay.experiments.audit_st.orders import disagree, reverse, run_in_circles

SENT = ("abc", "pq", "xyz")
FIGURE_3A = ("cxzp", "xaqby", "axczq")
FIGURE_3B = ("xcpz", "axbyq", "axczq")
FIGURE_5 = ("xcpz", "axbyq", "axzq")
"""Node 3 has lost c."""


def numbers(logs: Iterable[str]) -> list[list[int]]:
    return [[ord(message) for message in log] for log in logs]


def sent_in_order() -> list[tuple[int, int]]:
    return [(ord(a), ord(b)) for line in SENT for a, b in combinations(line, 2)]


def precedes(logs: Sequence[str]) -> set[tuple[str, str]]:
    """The paper's relation =>, without equality: before it in some log, and what follows."""
    pairs = {pair for log in logs for pair in combinations(log, 2)}
    while more := {(a, d) for a, b in pairs for c, d in pairs if b == c} - pairs:
        pairs |= more
    return pairs


def test_figure_3a_keeps_the_order_of_each_sender_and_no_other():
    logs = numbers(FIGURE_3A)
    assert not reverse(logs, sent_in_order())
    assert disagree(logs)
    assert run_in_circles(logs)


def test_figure_3b_has_one_order():
    logs = numbers(FIGURE_3B)
    assert not reverse(logs, sent_in_order())
    assert not disagree(logs)
    assert not run_in_circles(logs)


def test_figure_5_the_failure_section_of_c_is_between_x_and_z():
    before = precedes(FIGURE_5)
    log = FIGURE_5[2]
    earlier = [m for m in log if (m, "c") in before]
    later = [m for m in log if ("c", m) in before]
    assert (earlier[-1], later[0]) == ("x", "z")


def test_figure_5_what_must_be_sorted_and_where_each_member_begins():
    before = precedes(FIGURE_5)
    concerned = {"c"} | {m for log in FIGURE_5 for m in log if ("c", m) in before}
    assert concerned == set("cpqz")
    assert [next(m for m in log if m in concerned) for log in FIGURE_5] == ["c", "q", "z"]


def test_example_1_appending_on_arrival_makes_a_circle_that_no_two_members_see():
    logs = numbers(("ca", "ab", "bc"))
    assert not disagree(logs)
    assert run_in_circles(logs)
