"""The audit of ST: its cases, how runs are judged, and that a case tells the same everywhere."""

from roundelay.experiments.audit_st.cases import MESSAGES, Case, Sent, draw
from roundelay.experiments.audit_st.orders import disagree, reverse, run_in_circles
from roundelay.experiments.audit_st.play import Outcome, play
from roundelay.experiments.audit_st.story import story
from roundelay.experiments.audit_st.survey import survey

X3 = Case(
    0,
    3,
    5,
    (
        Sent(1000, 0, (1, 2), (2,)),
        Sent(1100, 1, (1, 2), ()),
        Sent(1200, 0, (1, 2), ()),
    ),
)
"""One loss becomes two, and both go before what was sent between them."""
FINE = Outcome(False, False, False, False, False)


def test_a_case_is_always_the_same_and_has_a_loss():
    for number in range(30):
        case = draw(number, 4, 5)
        assert case == draw(number, 4, 5)
        assert case.losses
        assert len(case.messages) == MESSAGES
        for sent in case.messages:
            assert sent.to
            assert sent.source not in sent.missed
            assert set(sent.lost) == set(sent.missed) & set(sent.to)
    assert draw(0, 4, 5) != draw(1, 4, 5)
    assert draw(0, 4, 5) != draw(0, 4, 15)


def test_orders_that_differ():
    assert disagree([[1, 2, 3], [3, 1]])
    assert not disagree([[1, 2, 3], [1, 3], [4, 2]])


def test_orders_that_run_in_circles():
    assert run_in_circles([[1, 2], [2, 3], [3, 1]])
    assert not run_in_circles([[1, 2], [2, 3], [1, 3]])


def test_orders_that_reverse_a_pair():
    assert reverse([[1, 2], [2, 1]], [(1, 2)])
    assert not reverse([[1, 2], [2]], [(1, 2), (3, 2)])


def test_a_single_loss_breaks_the_order_of_the_paper_and_not_that_of_the_safe_rules():
    assert play(X3, "paper") == Outcome(True, True, False, False, False)
    assert play(X3, "safe") == FINE


def test_a_message_before_one_that_its_sender_had_heard_is_counted():
    """1 answers m1 of 2 with m2; 3 missed m1, 1 misses m3, and so 3 sorts by senders."""
    sent = (
        Sent(1000, 1, (0, 2), (2,)),
        Sent(1100, 0, (2,), ()),
        Sent(1200, 2, (0,), (0,)),
    )
    case = Case(0, 3, 5, sent)
    assert play(case, "paper") == Outcome(False, False, False, True, False)
    assert play(case, "safe") == FINE


def test_the_scenario_of_a_case_tells_what_the_audit_found():
    told = story(X3, "paper")
    assert "O5p violated" in told
    assert "\n2: m1 m2 m3\n3: m1 m3 m2\n" in told
    assert told.startswith("# Case 0 of the audit of ST, 3 members, 5 % loss, rules=paper.")
    assert "violated" not in story(X3, "safe")


def test_a_survey_counts_the_same_whatever_the_number_of_processes():
    one = survey(40, 4, (5, 30), jobs=1, report=lambda done, total: None)
    two = survey(40, 4, (5, 30), jobs=2, report=lambda done, total: None)
    assert one == two
    paper, safe = one.counts
    assert one.runs == 40
    assert 0 < one.single < 40
    assert paper.violations > 0
    assert safe.violations == 0
    assert all(paper.violations >= paper.kinds[kind] for kind in ("pairwise", "cyclic", "source"))
