"""The online checker: a trace sink that reports a breach at the row that breaks a property.

Theory of operation
===================

Rows come in the order of the run. What later rows will be compared with is kept in a *window*: for
each view a fixed number of packet records, the latest ones. A record tells who holds a packet's
messages, who delivered them, in which view and under which key. So memory does not grow with the
run.

A record that leaves the window is reduced to who obtained and who delivered its messages, and kept
for each sender as ranges of message numbers; in a healthy run one range holds all of them. A row
about such an older message is still checked where that is enough (D1, D2, S1, S4, S6). Where it is
not, the property is in doubt and its verdict is `inconclusive`. As long as no row comes back to a
message that left the window, there is no doubt.

A row that covers several messages makes one record. If two rows cut the same messages in different
ways, the record is split, no further than needed.

What the replicated log promises (J, H, L8, L9) is judged by the batch checker alone: it compares
what nodes knew at different times, and a window would forget that.

What a breach is called is in `check.sentences`, and is the same for both checkers.

    findings    what was counted, broken and doubted      window       messages that are remembered
    views       where each process is; M1, M2, M4         wellformed   T1 to T4
    delivery    D1, D2, D3, D9, D11                       order        O1, O6
    primacy     M10
    keys        O3f, O3i, O4, K1                          acyclic      O5
    evidence    S1, S1d, S4, S6                           tokens       K3
    saved       all of it as plain tuples, and back
    checker     hands each row to the others
"""

from roundelay.check.online.checker import COVERED, OnlineChecker
from roundelay.check.online.findings import ViolationError

__all__ = ["COVERED", "OnlineChecker", "ViolationError"]
