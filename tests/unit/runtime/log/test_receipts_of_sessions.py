"""Receipts of named sessions and of own messages are never taken for each other."""

from roundelay.core.effects import Appended
from roundelay.core.log import NAMED
from roundelay.runtime.log.receipts import LogReceipt, LogReceipts, SessionReceipt


def test_a_session_that_nobody_waits_for_settles_nothing():
    receipts = LogReceipts()
    own = LogReceipt((receipts.own(0), 0, None))
    receipts.on_appended(Appended(NAMED | 5, 0, 1, 70))
    assert not own.committed
    receipts.on_appended(Appended(5, 0, 1, 71))
    assert own.index == 71


def test_a_repeated_append_settles_its_own_session_alone():
    receipts = LogReceipts()
    one = SessionReceipt((receipts.named(NAMED | 5, 3), 3, None))
    other = SessionReceipt((receipts.named(NAMED | 6, 3), 3, None))
    receipts.on_appended(Appended(NAMED | 5, 3, 1, 70))
    assert (one.index, other.committed) == (70, False)
