"""The exchange of a ring being formed, when somebody forges its frames."""

from roundelay.core.contract import Item
from roundelay.core.ids import ViewId
from roundelay.membership.messages import Commit, CommitEntry, RingItem
from roundelay.membership.recovery import Recovery
from roundelay.membership.ring import RingConfig, Token

OLD = ViewId(4, "a")
MEMBERS = ("a", "b", "c")


def recovery(me: str) -> Recovery:
    entries = tuple(CommitEntry(node, OLD) for node in MEMBERS)
    made = Recovery(me, Commit(ViewId(8, "a"), 3, 3, entries), OLD, RingConfig())
    made.ring.token_seq = 4
    return made


def item(seq: int) -> RingItem:
    return RingItem(seq, OLD, Item((seq,), b"x"))


def test_nobody_sends_an_item_before_the_representative_has():
    representative, other = recovery("a"), recovery("b")
    assert representative.receive(item(1)) is None
    assert representative.ring.high_seq == 0
    assert other.receive(item(1)) is not None
    step = representative.visit(representative.first_token(6))
    assert (step.token.seq, step.token.aru) == (0, 0)


def test_a_second_commit_token_at_the_representative_makes_a_token_that_knows_of_the_items():
    representative = recovery("a")
    representative.visit(representative.first_token(6))
    representative.receive(item(2))
    step = representative.visit(representative.first_token(9))
    assert (step.token.seq, step.token.aru, step.token.aru_id) == (2, 0, 0)


def go_round(rings: list[Recovery], token: Token) -> Token:
    for ring in rings:
        token = ring.visit(token).token
    return token


def test_a_flag_that_nobody_set_is_cleared_and_the_ring_is_installed():
    rings = [recovery(node) for node in MEMBERS]
    for ring in rings:
        ring.ring.token_seq = 0
    first = rings[0].first_token(0)
    token = Token(first.token_seq, flag=True)  # Forged: none of them has anything to exchange.
    for _ in range(3):
        token = go_round(rings, token)
    assert not token.flag
    for _ in range(2):
        token = go_round(rings, token)
    assert rings[1].visit(token).install


def test_the_flag_stays_set_while_anybody_has_items_left():
    rings = [recovery(node) for node in MEMBERS]
    rings[2].offer([Item((number,), b"x") for number in range(50)])
    token = rings[0].first_token(0)
    flags = []
    for _ in range(4):
        for ring in rings:
            step = ring.visit(token)
            token = step.token
            for other in rings:
                for sent in step.sends:
                    other.receive(sent)
        flags.append(token.flag)
    assert flags == [True, True, False, False]
    assert token.seq == 50
